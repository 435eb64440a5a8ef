//! Replays after a sequence that do too much or too little.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, EventId, FetchOptions, GroupName, GroupOptions, Lease,
    LeaseDuration, LeaseId, Partitions, Reason, Replay, ResetOptions, Result, RetryDelay,
    RetryOptions, RetryOutcome, Sequence, StreamName, Timestamp, async_trait,
};

use super::{Starts, note_start, sequence_of, start_of};
use crate::book::{Book, all_dead, held};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        ReplayIncludesTheSequence: "a replay reopens the sequence itself too",
        says: "the claimable sequences to be [3, 4]",
        kills: [
            "replay::RPL-1::replay_after_a_sequence_is_exclusive",
            "dead_letters::DLQ-5::an_after_that_was_replayed_is_cursor_not_found",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "durability::DUR-1::a_replay_survives",
            "inspect::OPS-3::group_info_counts_what_a_replay_left",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-1::dead_letters_above_are_gone_and_those_below_stay",
            "replay::RPL-1::each_partition_is_replayed_after_its_own_sequence",
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-3::replay_never_raises_the_frontier",
            "reset::RPL-5::a_group_that_was_reset_forward_can_be_replayed",
        ],
    },
    faulty! {
        ReplayForgetsTheDead: "what is dead is not delivered again after a replay",
        says: "the claimable sequences to be [1, 2, 3, 4]",
        kills: [
            "replay::RPL-1::replay_reopens_what_was_acked_and_what_is_dead",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
        ],
    },
    faulty! {
        GoingBackKeepsWaits: "neither replay nor reset end the wait of a retry",
        says: "the claimable sequences to be [2]",
        kills: [
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "inspect::OPS-3::group_info_counts_what_a_replay_left",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
            "reset::RPL-5::reset_to_no_sequences_starts_at_the_beginning",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
        ],
    },
    faulty! {
        GoingBackPardonsLeases: "leases from before a replay or reset can still be renewed and acked",
        says: "Err(StaleLease)",
        kills: [
            "replay::RPL-1::a_replayed_lease_settles_nothing",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-1::an_expired_lease_is_replayed_too",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
            "reset::RPL-5::reset_may_go_forward",
            "reset::RPL-5::reset_of_one_partition_leaves_the_others",
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "reset::RPL-5::reset_to_no_sequences_starts_at_the_beginning",
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
        ],
    },
    faulty! {
        ReplayPardonsExpiredLeases: "expired leases can still be renewed after a replay",
        says: "Err(StaleLease)",
        kills: ["replay::RPL-1::an_expired_lease_is_replayed_too"],
    },
    faulty! {
        LeaseIdsAreMadeOfAttempts: "the lease id is made of group, event and attempt, so that it comes again",
        says: "Err(StaleLease)",
        kills: [
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "distribution::DST-1::a_lease_renewed_elsewhere_is_not_reclaimed",
            "distribution::DST-1::a_lease_settled_elsewhere_is_stale",
            "distribution::DST-1::concurrent_fetches_of_two_handles_claim_each_event_once",
            "distribution::DST-1::progress_is_the_same_on_both",
            "distribution::DST-1::two_handles_share_the_events",
            "durability::DUR-1::a_lease_survives",
            "durability::DUR-1::a_stale_lease_stays_stale",
            "durability::DUR-1::frontiers_survive",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "durability::DUR-1::what_is_settled_stays_settled",
            "leases::LSE-1::a_lease_id_cannot_be_guessed_from_another",
            "leases::LSE-1::a_replayed_event_gets_a_new_lease_id",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        GoingBackKeepsAttempts: "attempts are counted on after a replay or reset",
        says: "the attempts to be [1, 1, 1]",
        kills: [
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "distribution::DST-1::a_lease_replaced_elsewhere_is_stale",
            "distribution::DST-1::a_retry_elsewhere_counts_as_an_attempt",
            "durability::DUR-1::attempts_survive",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "replay::RPL-1::a_replayed_lease_settles_nothing",
            "replay::RPL-1::an_expired_lease_is_replayed_too",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-1::leases_from_before_a_replay_hold_up_nothing",
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "reset::RPL-5::attempts_begin_again_after_a_reset",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        ReplayGivesEverythingBack: "a replay ends the leases at or below the sequence as well",
        says: "the lease is stale",
        kills: [
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "inspect::OPS-3::group_info_counts_what_a_replay_left",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-3::replay_never_raises_the_frontier",
        ],
    },
    faulty! {
        ReplayStopsAtTheStart: "a replay after a sequence goes no further back than to the group's start",
        says: "the claimable sequences to be [2, 3, 4, 5]",
        kills: [
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-1::a_group_that_started_at_the_end_can_go_back",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "reset::RPL-5::a_group_that_was_reset_forward_can_be_replayed",
        ],
    },
    faulty! {
        ReplayIgnoresThePartitions: "a replay is of all partitions",
        says: "the lease is stale",
        kills: [
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "input::ERR-8::a_replay_out_of_range_is_invalid",
            "replay::ERR-8::replay_of_a_partition_out_of_range_reopens_nothing",
            "replay::RPL-1::replay_of_no_partition_changes_nothing",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ReplayTakesTheLowestOfAll: "of a sequence for each partition, the lowest is used for all",
        says: "the claimable places (partition, sequence) to be [(0, 3), (2, 2), (2, 3)]",
        kills: [
            "replay::RPL-1::each_partition_is_replayed_after_its_own_sequence",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
        ],
    },
    faulty! {
        ReplayOfNoPartitionIsOfAll: "an empty selection of partitions replays all",
        says: "no claimable event",
        kills: ["replay::RPL-1::replay_of_no_partition_changes_nothing"],
    },
    faulty! {
        ReplayOfNoSequenceIsOfAll: "an empty list of sequences replays everything",
        says: "no claimable event",
        kills: ["replay::RPL-1::replay_of_no_partition_changes_nothing"],
    },
    faulty! {
        ReplayKeepsTheListOfTheDead: "replayed dead letters are still listed",
        says: "the dead letters to be equal",
        kills: [
            "replay::RPL-1::dead_letters_above_are_gone_and_those_below_stay",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
        ],
    },
    faulty! {
        TheFirstDeathCounts: "a dead letter that dies again keeps its first attempt and reason",
        says: "attempt and reason of the dead letters to be [(1, \"second\")]",
        kills: [
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
        ],
    },
    faulty! {
        ReplayHappensOnce: "the same replay is done only once",
        says: "Err(StaleLease)",
        kills: [
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
        ],
    },
];

#[derive(Default)]
struct ReplayIncludesTheSequence;

#[async_trait]
impl Defect for ReplayIncludesTheSequence {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let replay = with_sequences(replay, Sequence::previous);
        real.backend.replay(stream, group, &replay).await
    }
}

#[derive(Default)]
struct ReplayForgetsTheDead {
    hidden: Mutex<HashSet<(EventId, GroupName)>>,
}

#[async_trait]
impl Defect for ReplayForgetsTheDead {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        leases.retain(|lease| !held(&self.hidden).contains(&(lease.event.id, lease.group.clone())));
        Ok(leases)
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let dead = all_dead(real, stream, group).await?;
        held(&self.hidden).extend(
            dead.into_iter()
                .map(|letter| (letter.event.id, letter.group)),
        );
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct GoingBackKeepsWaits {
    due: Mutex<HashMap<(EventId, GroupName), Timestamp>>,
}

#[async_trait]
impl Defect for GoingBackKeepsWaits {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let due = real.now().saturating_add(options.delay.as_duration());
        if options.delay > RetryDelay::NONE {
            held(&self.due).insert((lease.event.id, lease.group.clone()), due);
        }
        real.backend.retry(lease, options).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        let waits = |lease: &Lease| {
            held(&self.due).get(&(lease.event.id, lease.group.clone())) > Some(&real.now())
        };
        leases.retain(|lease| !waits(lease));
        Ok(leases)
    }
}

#[derive(Default)]
struct GoingBackPardonsLeases {
    book: Book,
    pardoned: Mutex<HashSet<LeaseId>>,
}

#[async_trait]
impl Defect for GoingBackPardonsLeases {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        match real.backend.ack(lease).await {
            Err(Error::StaleLease) if held(&self.pardoned).contains(&lease.lease_id) => Ok(()),
            result => result,
        }
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        match real.backend.renew(lease, duration).await {
            Err(Error::StaleLease) if held(&self.pardoned).contains(&lease.lease_id) => {
                Ok(lease.clone())
            }
            result => result,
        }
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let current = self.book.current(real, stream, group).await;
        let pardoned = current.into_iter().map(|lease| lease.lease_id);
        held(&self.pardoned).extend(pardoned);
        real.backend.replay(stream, group, replay).await
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let current = self.book.current(real, stream, group).await;
        let pardoned = current.into_iter().map(|lease| lease.lease_id);
        held(&self.pardoned).extend(pardoned);
        real.backend.reset_group(stream, group, options).await
    }
}

#[derive(Default)]
struct ReplayPardonsExpiredLeases {
    book: Book,
    pardoned: Mutex<HashSet<LeaseId>>,
}

#[async_trait]
impl Defect for ReplayPardonsExpiredLeases {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        match real.backend.renew(lease, duration).await {
            Err(Error::StaleLease) if held(&self.pardoned).contains(&lease.lease_id) => {
                Ok(lease.clone())
            }
            result => result,
        }
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let current = self.book.current(real, stream, group).await;
        let pardoned = current
            .into_iter()
            .filter(|lease| lease.expires_at <= real.now())
            .map(|lease| lease.lease_id);
        held(&self.pardoned).extend(pardoned);
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct LeaseIdsAreMadeOfAttempts {
    ids: Mutex<HashMap<String, LeaseId>>,
}

#[async_trait]
impl Defect for LeaseIdsAreMadeOfAttempts {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for lease in &mut leases {
            let id = format!("{}/{}/{}", lease.group, lease.event.id, lease.attempt);
            held(&self.ids).insert(id.clone(), lease.lease_id.clone());
            lease.lease_id = LeaseId::new(id);
        }
        Ok(leases)
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = real.backend.renew(&self.real_one(lease), duration).await?;
        Ok(Lease {
            lease_id: lease.lease_id.clone(),
            ..renewed
        })
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(&self.real_one(lease)).await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        real.backend.retry(&self.real_one(lease), options).await
    }
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(&self.real_one(lease), reason).await
    }
}

#[derive(Default)]
struct GoingBackKeepsAttempts {
    claims: Mutex<HashMap<(EventId, GroupName), u32>>,
}

#[async_trait]
impl Defect for GoingBackKeepsAttempts {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for lease in &mut leases {
            let mut claims = held(&self.claims);
            let count = claims
                .entry((lease.event.id, lease.group.clone()))
                .or_default();
            *count += 1;
            lease.attempt = *count;
        }
        Ok(leases)
    }
}

#[derive(Default)]
struct ReplayGivesEverythingBack {
    book: Book,
}

#[async_trait]
impl Defect for ReplayGivesEverythingBack {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let after = sequence_of(replay).unwrap_or_default();
        for lease in self.book.current(real, stream, group).await {
            if lease.event.sequence <= after {
                real.backend.retry(&lease, &RetryOptions::new()).await?;
            }
        }
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct ReplayStopsAtTheStart {
    starts: Starts,
}

#[async_trait]
impl Defect for ReplayStopsAtTheStart {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        note_start(&self.starts, real, stream, group).await;
        Ok(())
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.reset_group(stream, group, options).await?;
        note_start(&self.starts, real, stream, group).await;
        Ok(())
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let start = start_of(&self.starts, stream, group);
        let replay = with_sequences(replay, |sequence| sequence.max(start));
        real.backend.replay(stream, group, &replay).await
    }
}

#[derive(Default)]
struct ReplayIgnoresThePartitions;

#[async_trait]
impl Defect for ReplayIgnoresThePartitions {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match sequence_of(replay) {
            Some(sequence) => {
                real.backend
                    .replay(stream, group, &Replay::after(sequence))
                    .await
            }
            None => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ReplayTakesTheLowestOfAll;

#[async_trait]
impl Defect for ReplayTakesTheLowestOfAll {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match replay {
            Replay::AfterEach(sequences) if !sequences.is_empty() => {
                let lowest = sequences.values().min().copied().unwrap_or_default();
                let partitions = Partitions::only(sequences.keys().copied());
                let replay = Replay::After {
                    sequence: lowest,
                    partitions,
                };
                real.backend.replay(stream, group, &replay).await
            }
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ReplayOfNoPartitionIsOfAll;

#[async_trait]
impl Defect for ReplayOfNoPartitionIsOfAll {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match replay {
            Replay::After {
                sequence,
                partitions,
            } if *partitions == Partitions::only([]) => {
                real.backend
                    .replay(stream, group, &Replay::after(*sequence))
                    .await
            }
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ReplayOfNoSequenceIsOfAll;

#[async_trait]
impl Defect for ReplayOfNoSequenceIsOfAll {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match replay {
            Replay::AfterEach(sequences) if sequences.is_empty() => {
                real.backend
                    .replay(stream, group, &Replay::after(Sequence::ZERO))
                    .await
            }
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ReplayKeepsTheListOfTheDead {
    kept: Mutex<Vec<DeadLetter>>,
}

#[async_trait]
impl Defect for ReplayKeepsTheListOfTheDead {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        if options.after.is_none() {
            dead.extend(held(&self.kept).iter().cloned());
        }
        Ok(dead)
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let mut dead = all_dead(real, stream, group).await?;
        dead.retain(|letter| Some(letter.event.sequence) > sequence_of(replay));
        held(&self.kept).extend(dead);
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct TheFirstDeathCounts {
    first: Mutex<HashMap<(EventId, GroupName), (u32, Reason)>>,
}

#[async_trait]
impl Defect for TheFirstDeathCounts {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(lease, reason).await?;
        let key = (lease.event.id, lease.group.clone());
        held(&self.first)
            .entry(key)
            .or_insert((lease.attempt, reason.clone()));
        Ok(())
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        for letter in &mut dead {
            if let Some(first) = held(&self.first).get(&(letter.event.id, letter.group.clone())) {
                (letter.attempt, letter.reason) = first.clone();
            }
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct ReplayHappensOnce {
    seen: Mutex<HashSet<String>>,
}

#[async_trait]
impl Defect for ReplayHappensOnce {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        if held(&self.seen).insert(format!("{stream} {group} {replay:?}")) {
            real.backend.replay(stream, group, replay).await
        } else {
            Ok(())
        }
    }
}

/// The sequences of a replay, one for all partitions or one each, changed.
fn with_sequences(replay: &Replay, change: impl Fn(Sequence) -> Sequence) -> Replay {
    match replay {
        Replay::After {
            sequence,
            partitions,
        } => Replay::After {
            sequence: change(*sequence),
            partitions: partitions.clone(),
        },
        Replay::AfterEach(sequences) => Replay::AfterEach(
            sequences
                .iter()
                .map(|(partition, sequence)| (*partition, change(*sequence)))
                .collect(),
        ),
        Replay::Events(ids) => Replay::Events(ids.clone()),
    }
}

impl LeaseIdsAreMadeOfAttempts {
    fn real_one(&self, lease: &Lease) -> Lease {
        let ids = held(&self.ids);
        let lease_id = ids
            .get(lease.lease_id.as_str())
            .unwrap_or(&lease.lease_id)
            .clone();
        Lease {
            lease_id,
            ..lease.clone()
        }
    }
}
