//! Dead letters that are not what died.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use rheo_core::{
    DeadLetter, DeadLetterOptions, Event, EventId, FetchOptions, GroupName, Lag, Lease,
    ReadOptions, Reason, Replay, Result, StreamName, async_trait,
};

use crate::book::{all_dead, held};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        RejectHidesFromOtherGroups: "what one group rejected is delivered to no other",
        says: "the claimable sequences to be [2, 3]",
        kills: [
            "dead_letters::DLQ-4::reject_is_for_that_group_alone",
            "dead_letters::DLQ-4::one_event_can_be_dead_in_two_groups",
            "dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "inspect::OPS-3::group_info_counts_nothing_of_other_groups",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-1::replay_reopens_what_was_acked_and_what_is_dead",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
            "reset::RPL-5::reset_to_no_sequences_starts_at_the_beginning",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
        ],
    },
    faulty! {
        RejectMovesTheEvent: "a rejected event is no longer in the log",
        says: "the log to be equal",
        kills: [
            "dead_letters::DLQ-4::reject_leaves_the_log_alone",
            "log::LOG-4::a_dead_letter_stays_in_the_log",
            "log::LOG-4::settling_changes_no_event",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
        ],
    },
    faulty! {
        DeadLettersAreKeptByEvent: "an event that is dead in two groups has the later reason in both",
        says: "group and reason to be [(\"billing\", \"no price\")]",
        kills: ["dead_letters::DLQ-4::one_event_can_be_dead_in_two_groups"],
    },
    faulty! {
        RejectOnlyEndsTheLease: "a rejected event is delivered again",
        says: "no claimable event",
        kills: [
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "batches::LSE-8::a_batch_of_rejects_keeps_the_reason_of_each",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "batches::LSE-8::hundreds_of_leases_are_over_after_one_batch",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "dead_letters::DLQ-4::one_event_can_be_dead_in_two_groups",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_limit_bounds_a_page_of_dead_letters",
            "dead_letters::DLQ-5::a_reason_is_kept_character_by_character",
            "dead_letters::DLQ-5::a_reason_of_1_kib_is_kept",
            "dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream",
            "dead_letters::DLQ-5::an_after_that_was_replayed_is_cursor_not_found",
            "dead_letters::DLQ-5::dead_letters_are_in_order_of_partition_first",
            "dead_letters::DLQ-5::dead_letters_are_in_order_of_sequence",
            "dead_letters::DLQ-5::dead_letters_of_twelve_partitions_are_in_order",
            "dead_letters::DLQ-5::listing_dead_letters_takes_none_away",
            "dead_letters::DLQ-5::more_than_a_hundred_dead_letters_are_given_where_asked_for",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
            "dead_letters::DLQ-5::pages_of_dead_letters_join_up",
            "dead_letters::DLQ-5::pages_of_dead_letters_join_up_across_partitions",
            "dead_letters::DLQ-5::what_is_not_dead_is_no_dead_letter",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "delivery::DLV-3::nothing_claimable_gives_nothing",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "distribution::DST-1::dead_letters_are_the_same_on_both",
            "durability::DUR-1::dead_letters_survive",
            "durability::DUR-1::what_is_settled_stays_settled",
            "fidelity::LOG-5::a_dead_letter_holds_the_same_event",
            "inspect::OPS-3::group_info_counts_any_number_of_leases_and_dead_letters",
            "inspect::OPS-3::group_info_counts_chosen_events_below_the_start",
            "inspect::OPS-3::group_info_counts_current_leases",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_counts_nothing_after_a_reset",
            "inspect::OPS-3::group_info_counts_nothing_of_other_groups",
            "inspect::OPS-3::group_info_counts_over_all_partitions",
            "inspect::OPS-3::group_info_counts_over_twelve_partitions",
            "inspect::OPS-3::group_info_counts_what_a_replay_left",
            "leases::LSE-2::a_rejected_lease_is_stale",
            "leases::LSE-2::the_other_fields_of_a_lease_are_not_compared",
            "leases::LSE-4::an_expired_lease_still_settles",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "leases::LSE-7::a_lease_is_settled_once",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "log::LOG-4::a_dead_letter_stays_in_the_log",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::a_late_settle_fills_its_hole",
            "progress::FRN-1::the_frontier_follows_random_work",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
            "replay::RPL-1::dead_letters_above_are_gone_and_those_below_stay",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-6::reset_leaves_other_groups_alone",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
            "streams::STR-4::dead_letters_are_isolated",
            "streams::STR-4::settling_on_one_stream_leaves_the_other",
        ],
    },
    faulty! {
        DeadLettersHoldTheFrontier: "the frontier stops below the lowest dead letter",
        says: "the frontier to be 3",
        kills: [
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "batches::LSE-8::a_batch_of_retries_moves_the_frontier_where_it_gives_up",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::a_late_settle_fills_its_hole",
            "progress::FRN-1::the_frontier_follows_random_work",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "settling::DLQ-2::a_given_up_event_lets_the_frontier_pass",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
        ],
    },
];

#[derive(Default)]
struct RejectHidesFromOtherGroups {
    rejected: Mutex<HashSet<EventId>>,
}

#[async_trait]
impl Defect for RejectHidesFromOtherGroups {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(lease, reason).await?;
        held(&self.rejected).insert(lease.event.id);
        Ok(())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        leases.retain(|lease| !held(&self.rejected).contains(&lease.event.id));
        Ok(leases)
    }
}

#[derive(Default)]
struct RejectMovesTheEvent {
    rejected: Mutex<HashSet<EventId>>,
}

#[async_trait]
impl Defect for RejectMovesTheEvent {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(lease, reason).await?;
        held(&self.rejected).insert(lease.event.id);
        Ok(())
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        events.retain(|event| !held(&self.rejected).contains(&event.id));
        Ok(events)
    }
}

#[derive(Default)]
struct DeadLettersAreKeptByEvent {
    reasons: Mutex<HashMap<EventId, Reason>>,
}

#[async_trait]
impl Defect for DeadLettersAreKeptByEvent {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(lease, reason).await?;
        held(&self.reasons).insert(lease.event.id, reason.clone());
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
            if let Some(reason) = held(&self.reasons).get(&letter.event.id) {
                letter.reason = reason.clone();
            }
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct RejectOnlyEndsTheLease;

#[async_trait]
impl Defect for RejectOnlyEndsTheLease {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(lease, reason).await?;
        let id = Replay::Events(vec![lease.event.id]);
        real.backend
            .replay(&lease.event.stream, &lease.group, &id)
            .await
    }
}

#[derive(Default)]
struct DeadLettersHoldTheFrontier;

#[async_trait]
impl Defect for DeadLettersHoldTheFrontier {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for letter in all_dead(real, stream, group).await? {
            let progress = &mut lag.partitions[letter.event.partition.number() as usize];
            progress.frontier = progress.frontier.min(letter.event.sequence.previous());
        }
        Ok(lag)
    }
}
