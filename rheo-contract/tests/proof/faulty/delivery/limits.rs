//! Fetches that give too much, too little, or of other partitions.

use std::collections::{BTreeSet, HashSet};
use std::sync::Mutex;

use rheo_core::{
    DeadLetterOptions, Error, EventId, FetchOptions, GroupName, Lease, Partitions, Replay, Result,
    RetryOptions, StreamName, Timestamp, async_trait,
};

use super::{Spot, fetch_each, partitions, spot};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Tweak, lock};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        LimitIsOfEachPartition: "the limit of a fetch applies to each partition",
        says: "1 to 1 leases",
        kills: [
            "delivery::DLV-3::a_fetch_gives_no_more_than_its_limit",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "wakeup::OPS-4::work_in_any_partition_is_told",
        ],
    },
    faulty! {
        LimitIsOffByOne: "a fetch with a limit above one gives one more",
        says: "1 to 2 leases",
        kills: [
            "delivery::DLV-3::a_fetch_gives_no_more_than_its_limit",
            "dead_letters::DLQ-5::an_after_that_is_no_dead_letter_is_cursor_not_found",
            "dead_letters::DLQ-5::what_is_not_dead_is_no_dead_letter",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "delivery::DLV-3::ten_thousand_events_may_be_open",
            "delivery::DLV-4::replayed_events_go_before_what_is_new",
            "delivery::DLV-4::retried_events_come_by_sequence_and_not_by_turn",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::a_lease_that_nobody_heard_of_comes_again",
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "delivery::DLV-7::a_holder_does_not_get_its_own_event_again",
            "delivery::DLV-7::concurrent_fetches_share_no_event",
            "delivery::DLV-7::two_consumers_never_hold_the_same_event",
            "durability::DUR-1::frontiers_survive",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "durability::DUR-1::what_is_settled_stays_settled",
            "input::ERR-10::a_cursor_that_is_not_found_is_named",
            "inspect::OPS-3::group_info_counts_current_leases",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_counts_nothing_after_a_reset",
            "inspect::OPS-3::group_info_counts_nothing_of_other_groups",
            "inspect::OPS-3::group_info_counts_what_a_replay_left",
            "inspect::OPS-3::group_info_gives_the_progress_that_lag_gives",
            "leases::LSE-1::every_claim_has_a_lease_id_of_its_own",
            "leases::LSE-2::a_lease_is_of_its_sequence_alone",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::what_was_never_claimed_holds_the_frontier",
            "progress::FRN-3::the_frontier_never_moves_back_by_itself",
            "queries::QRY-4::queries_change_nothing_for_groups",
            "replay::DLV-4::reopened_events_come_before_later_ones_in_their_order",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-3::replay_never_raises_the_frontier",
            "replay::RPL-4::a_chosen_event_that_was_never_claimed_stays_as_it_is",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
            "reset::RPL-5::reset_to_no_sequences_starts_at_the_beginning",
            "reset::RPL-5::the_frontier_is_the_new_start",
            "reset::RPL-6::reset_leaves_other_groups_alone",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
            "settling::DLQ-3::used_up_events_are_never_handed_out_whatever_the_limit",
        ],
    },
    faulty! {
        LimitOf0IsNone: "a limit of 0 is no limit",
        says: "no lease",
        kills: [
            "delivery::DLV-3::a_limit_of_0_gives_and_claims_nothing",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
        ],
    },
    faulty! {
        LimitOf0ClaimsOne: "a fetch with a limit of 0 claims an event and keeps it",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: [
            "delivery::DLV-3::a_limit_of_0_gives_and_claims_nothing",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
        ],
    },
    faulty! {
        LimitIsSigned: "a limit above i32::MAX is negative, and gives nothing",
        says: "the sequences to be [1, 2, 3]",
        kills: ["delivery::DLV-3::the_largest_limit_is_a_limit_too"],
    },
    faulty! {
        LimitOf1IsTheDefaultOf2: "a limit of 1 counts as nothing said, and becomes 2",
        says: "the sequences to be [1]",
        kills: [
            "delivery::DLV-3::one_lease_is_the_default",
            "dead_letters::DLQ-4::reject_is_for_that_group_alone",
            "delivery::DLV-2::a_start_at_a_time_may_be_a_thousand_events_back",
            "delivery::DLV-3::a_fetch_gives_no_more_than_its_limit",
            "delivery::DLV-7::two_consumers_never_hold_the_same_event",
            "delivery::DLV-8::a_claim_follows_the_clock_back",
            "delivery::DLV-8::a_lease_lasts_as_long_as_was_asked_for",
            "distribution::DST-1::a_reset_elsewhere_is_seen",
            "distribution::DST-1::concurrent_fetches_of_two_handles_claim_each_event_once",
            "distribution::DST-1::dead_letters_are_the_same_on_both",
            "distribution::DST-1::two_handles_share_the_events",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "inspect::OPS-1::a_stream_is_listed_once_whatever_is_in_it",
            "inspect::OPS-3::group_info_changes_nothing",
            "leases::LSE-2::a_made_up_lease_claims_nothing",
            "leases::LSE-2::a_rejected_lease_is_stale",
            "leases::LSE-2::an_acked_lease_is_stale",
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "log::LOG-4::an_expired_lease_changes_no_event",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "progress::FRN-4::lag_changes_nothing",
            "progress::FRN-4::lag_grows_with_appends_and_shrinks_with_acks",
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "reset::RPL-5::reset_may_go_forward",
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "settling::DLQ-1::a_delay_holds_back_nothing_else",
            "settling::DLQ-2::a_given_up_event_is_settled",
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
            "streams::STR-1::a_stream_is_not_made_twice",
            "streams::STR-2::consumer_names_come_back",
            "wakeup::OPS-4::work_that_is_there_is_told",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        DeadLettersFillEmptyFetches: "a fetch that would be empty tries dead letters again",
        says: "no claimable event",
        kills: [
            "delivery::DLV-3::nothing_claimable_gives_nothing",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_retries_gives_up_on_the_used_up_ones_alone",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "batches::LSE-8::hundreds_of_leases_are_over_after_one_batch",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "distribution::DST-1::max_attempts_hold_on_every_handle",
            "durability::DUR-1::max_attempts_survives",
            "durability::DUR-1::what_is_settled_stays_settled",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "leases::LSE-2::a_rejected_lease_is_stale",
            "leases::LSE-2::the_attempt_of_a_lease_decides_nothing",
            "leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored",
            "leases::LSE-4::an_expired_lease_still_settles",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "leases::LSE-7::a_lease_is_settled_once",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::the_frontier_follows_random_work",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-6::reset_leaves_other_groups_alone",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-2::a_given_up_event_is_settled",
            "settling::DLQ-2::at_the_last_attempt_a_delayed_retry_gives_up_too",
            "settling::DLQ-2::at_the_last_attempt_a_retry_gives_up",
            "settling::DLQ-2::five_attempts_are_the_default",
            "settling::DLQ-2::hundreds_of_attempts_are_counted",
            "settling::DLQ-2::lost_leases_count_towards_the_last_attempt",
            "settling::DLQ-2::one_attempt_means_no_second_chance",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
            "settling::DLQ-3::used_up_events_are_never_handed_out_whatever_the_limit",
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
            "streams::STR-4::settling_on_one_stream_leaves_the_other",
        ],
    },
    faulty! {
        FetchLooksAtFiftyEvents: "a fetch looks at the fifty events above the lowest open one",
        says: "the sequences of a single fetch",
        kills: [
            "delivery::DLV-3::a_fetch_finds_the_only_claimable_event",
            "batches::LSE-8::hundreds_of_leases_are_retried_in_one_batch",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
            "delivery::DLV-3::ten_thousand_events_may_be_open",
        ],
    },
    faulty! {
        SelectionIsIgnored: "a fetch looks into all partitions",
        says: "the leased events",
        kills: [
            "delivery::DLV-3::a_fetch_stays_in_its_partitions",
            "delivery::DLV-3::a_selection_is_looked_through_and_no_other",
            "delivery::DLV-5::every_selected_partition_is_served",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
            "input::ERR-8::a_fetch_out_of_range_is_invalid",
            "leases::LSE-4::a_fetch_from_elsewhere_takes_no_lease_away",
            "partitions::DLV-3::a_fetch_is_restricted_to_the_selected_partitions",
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing",
        ],
    },
    faulty! {
        SelectionComesAfterTheLimit: "what is not selected is sorted out after the limit was applied",
        says: "the sequences of a single fetch to be [1]",
        kills: [
            "delivery::DLV-3::a_selection_is_looked_through_and_no_other",
            "delivery::DLV-3::no_partitions_give_and_claim_nothing",
            "leases::LSE-4::a_fetch_from_elsewhere_takes_no_lease_away",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing",
        ],
    },
    faulty! {
        NoPartitionsAreAll: "an empty selection means all partitions",
        says: "no lease",
        kills: [
            "delivery::DLV-3::no_partitions_give_and_claim_nothing",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
            "partitions::DLV-3::a_fetch_is_restricted_to_the_selected_partitions",
        ],
    },
    faulty! {
        GroupIsLookedUpAlone: "a fetch looks up the group, not the stream",
        says: "Err(StreamNotFound)",
        kills: [
            "delivery::ERR-6::a_missing_stream_is_noticed_before_its_group",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::a_missing_stream_comes_before_bad_input",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
        ],
    },
];

#[derive(Default)]
struct LimitIsOfEachPartition;

#[async_trait]
impl Defect for LimitIsOfEachPartition {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let order = partitions(real, stream).await;
        fetch_each(real, (stream, group), options, order, true).await
    }
}

#[derive(Default)]
struct LimitIsOffByOne;

impl Tweak for LimitIsOffByOne {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        if options.limit > 1 {
            options.limit = options.limit.saturating_add(1);
        }
    }
}

#[derive(Default)]
struct LimitOf0IsNone;

impl Tweak for LimitOf0IsNone {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        if options.limit == 0 {
            options.limit = u32::MAX;
        }
    }
}

#[derive(Default)]
struct LimitOf0ClaimsOne;

#[async_trait]
impl Defect for LimitOf0ClaimsOne {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        if options.limit == 0 {
            let one = options.clone().with_limit(1);
            real.backend.fetch(stream, group, &one).await?;
            return Ok(Vec::new());
        }
        real.backend.fetch(stream, group, options).await
    }
}

#[derive(Default)]
struct LimitIsSigned;

impl Tweak for LimitIsSigned {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        if i32::try_from(options.limit).is_err() {
            options.limit = 0;
        }
    }
}

/// Only in a group where nothing was fetched before, so that not every case is full of it.
#[derive(Default)]
struct LimitOf1IsTheDefaultOf2(Mutex<HashSet<(StreamName, GroupName)>>);

#[async_trait]
impl Tweak for LimitOf1IsTheDefaultOf2 {
    async fn before_fetch(
        &self,
        _: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        let is_first = lock(&self.0).insert((stream.clone(), group.clone()));
        if is_first && options.limit == 1 {
            options.limit = 2;
        }
    }
}

#[derive(Default)]
struct DeadLettersFillEmptyFetches;

#[async_trait]
impl Defect for DeadLettersFillEmptyFetches {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        let one = DeadLetterOptions::new().with_limit(1);
        let dead = real.backend.dead_letters(stream, group, &one).await?;
        if !leases.is_empty() || dead.is_empty() {
            return Ok(leases);
        }
        let ids: Vec<EventId> = dead.iter().map(|dead| dead.event.id).collect();
        let again = Replay::Events(ids);
        real.backend.replay(stream, group, &again).await?;
        real.backend.fetch(stream, group, options).await
    }
}

#[derive(Default)]
struct FetchLooksAtFiftyEvents(Mutex<BTreeSet<(Spot, GroupName)>>);

#[async_trait]
impl Defect for FetchLooksAtFiftyEvents {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut seen = Vec::new();
        for lease in real.backend.fetch(stream, group, options).await? {
            let mut open = lock(&self.0).clone();
            open.retain(|(spot, of)| spot.0 == *stream && of == group);
            let lowest = open.first().map_or(lease.event.sequence, |open| open.0.2);
            let is_far = lease.event.sequence.get() > lowest.get() + 50;
            if is_far && lease.attempt > 1 {
                real.backend.retry(&lease, &RetryOptions::new()).await?;
            } else {
                lock(&self.0).insert((spot(&lease.event), group.clone()));
                seen.push(lease);
            }
        }
        Ok(seen)
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        lock(&self.0).remove(&(spot(&lease.event), lease.group.clone()));
        Ok(())
    }
}

#[derive(Default)]
struct SelectionIsIgnored;

impl Tweak for SelectionIsIgnored {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        if options.partitions != Partitions::only([]) {
            options.partitions = Partitions::All;
        }
    }
}

#[derive(Default)]
struct SelectionComesAfterTheLimit;

#[async_trait]
impl Defect for SelectionComesAfterTheLimit {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        // Whatever is wrong with the request is found out here.
        let none = options.clone().with_limit(0);
        let mut selected = real.backend.fetch(stream, group, &none).await?;
        let all = options.clone().with_partitions(Partitions::All);
        for lease in real.backend.fetch(stream, group, &all).await? {
            if options.partitions.contains(lease.event.partition) {
                selected.push(lease);
            } else {
                real.backend.retry(&lease, &RetryOptions::new()).await?;
            }
        }
        Ok(selected)
    }
}

#[derive(Default)]
struct NoPartitionsAreAll;

impl Tweak for NoPartitionsAreAll {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        if options.partitions == Partitions::only([]) {
            options.partitions = Partitions::All;
        }
    }
}

#[derive(Default)]
struct GroupIsLookedUpAlone;

#[async_trait]
impl Defect for GroupIsLookedUpAlone {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        match real.backend.fetch(stream, group, options).await {
            Err(Error::StreamNotFound { stream }) => {
                let group = group.clone();
                Err(Error::GroupNotFound { stream, group })
            }
            other => other,
        }
    }
}
