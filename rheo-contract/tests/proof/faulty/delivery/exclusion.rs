//! Events that are held twice.

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{
    FetchOptions, GroupName, Lease, Result, RetryDelay, RetryOptions, StreamName, Timestamp,
    async_trait,
};

use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Claims, Place, Tweak, lock, place_of};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        LastEventHasTwoHolders: "a fetch with room left gives another consumer's event as well",
        says: "the sequences",
        kills: [
            "delivery::DLV-7::two_consumers_never_hold_the_same_event",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "batches::LSE-8::a_batch_of_retries_at_once_needs_no_clock",
            "batches::LSE-8::a_batch_of_retries_delays_each",
            "batches::LSE-8::a_batch_of_retries_gives_up_on_the_used_up_ones_alone",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "delivery::DLV-3::a_fetch_stays_in_its_partitions",
            "delivery::DLV-3::ten_thousand_events_may_be_open",
            "delivery::DLV-4::delayed_events_come_by_sequence_and_not_by_due_time",
            "delivery::DLV-4::replayed_events_go_before_what_is_new",
            "delivery::DLV-4::retried_events_come_by_sequence_and_not_by_turn",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "delivery::DLV-6::events_that_come_while_others_are_leased_are_delivered",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "leases::LSE-2::a_rejected_lease_is_stale",
            "leases::LSE-2::an_acked_lease_is_stale",
            "leases::LSE-4::what_was_found_expired_is_leased_when_the_clock_goes_back",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "leases::LSE-7::a_lease_is_settled_once",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "queries::QRY-4::queries_change_nothing_for_groups",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "replay::RPL-1::a_replayed_lease_settles_nothing",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-1::leases_from_before_a_replay_hold_up_nothing",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-4::a_chosen_event_that_was_never_claimed_stays_as_it_is",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
            "reset::RPL-5::a_start_beyond_one_partition_drops_nothing_in_any",
            "reset::RPL-5::each_partition_is_reset_after_its_own_sequence",
            "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
            "reset::RPL-5::reset_of_one_partition_leaves_the_others",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "reset::RPL-5::reset_to_no_sequences_starts_at_the_beginning",
            "reset::RPL-6::reset_leaves_other_groups_alone",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "settling::DLQ-1::each_delay_is_its_own",
            "settling::DLQ-1::what_was_found_due_waits_when_the_clock_goes_back",
            "streams::STR-1::a_stream_is_not_made_twice",
            "streams::STR-4::going_back_on_one_stream_leaves_the_other",
            "streams::STR-4::settling_on_one_stream_leaves_the_other",
        ],
    },
    faulty! {
        HolderGetsItsEventAgain: "a fetch that would be empty gives the consumer what it holds",
        says: "no claimable event",
        kills: [
            "delivery::DLV-7::a_holder_does_not_get_its_own_event_again",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "batches::LSE-8::a_batch_of_retries_at_once_needs_no_clock",
            "batches::LSE-8::a_batch_of_retries_moves_the_frontier_where_it_gives_up",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-2::a_start_at_the_end_gets_all_that_comes_later",
            "delivery::DLV-3::a_fetch_stays_in_its_partitions",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "delivery::DLV-3::a_selection_is_looked_through_and_no_other",
            "delivery::DLV-3::nothing_claimable_gives_nothing",
            "delivery::DLV-6::events_that_come_while_others_are_leased_are_delivered",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "distribution::DST-1::a_reset_elsewhere_is_seen",
            "distribution::DST-1::two_handles_share_the_events",
            "durability::DUR-1::max_attempts_survives",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "leases::LSE-4::a_fetch_from_elsewhere_takes_no_lease_away",
            "leases::LSE-4::a_lease_is_not_reclaimable_before_its_expiry",
            "partitions::DLV-3::a_blocked_partition_holds_no_other",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::the_frontier_follows_random_work",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "settling::DLQ-2::at_the_last_attempt_a_retry_gives_up",
            "settling::DLQ-2::five_attempts_are_the_default",
            "settling::DLQ-2::hundreds_of_attempts_are_counted",
            "settling::DLQ-2::lost_leases_count_towards_the_last_attempt",
            "settling::DLQ-2::one_attempt_means_no_second_chance",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        AckLeavesTheClaim: "an ack takes the lease id away and leaves the claim to expire",
        says: "no claimable event",
        kills: [
            "delivery::DLV-7::an_acked_event_never_comes_again",
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
            "batches::LSE-8::hundreds_of_leases_are_over_after_one_batch",
            "batches::LSE-8::renewals_in_a_batch_end_exactly_then_however_long",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "distribution::DST-1::progress_is_the_same_on_both",
            "durability::DUR-1::frontiers_survive",
            "leases::LSE-4::a_lease_ends_exactly_then_however_long_it_lasts",
            "leases::LSE-6::a_renewed_lease_ends_exactly_then_however_long_it_lasts",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "partitions::FRN-1::each_partition_has_its_own_frontier",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::a_hole_below_a_thousand_acks_holds_the_frontier",
            "progress::FRN-1::a_hole_holds_the_frontier_until_it_is_filled",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "progress::FRN-1::a_late_settle_fills_its_hole",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "progress::FRN-1::holes_hold_the_frontier_however_far_up",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "progress::FRN-1::what_waits_for_a_retry_holds_the_frontier",
            "progress::FRN-1::what_was_never_claimed_holds_the_frontier",
            "progress::FRN-2::from_its_start_the_frontier_moves_on",
            "progress::FRN-3::the_frontier_never_moves_back_by_itself",
            "progress::FRN-4::each_of_twelve_partitions_has_its_progress",
            "progress::FRN-4::lag_grows_with_appends_and_shrinks_with_acks",
            "progress::FRN-4::lag_is_never_ahead_of_racing_acks",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-3::replay_never_raises_the_frontier",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
        ],
    },
    faulty! {
        ConcurrentFetchesChooseFirst: "concurrent fetches choose the same event",
        says: "the sequences",
        kills: [
            "delivery::DLV-7::concurrent_fetches_share_no_event",
        ],
    },
];

#[derive(Default)]
struct LastEventHasTwoHolders(Claims);

impl Tweak for LastEventHasTwoHolders {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn fetched(&self, options: &FetchOptions, leases: &mut Vec<Lease>) {
        let has_room = leases.len() < options.limit as usize;
        let Some(first) = leases.first().filter(|_| has_room).cloned() else {
            return;
        };
        let is_elsewhere = |claim: &&Lease| {
            claim.event.stream == first.event.stream
                && claim.group == first.group
                && claim.consumer != first.consumer
                && claim.expires_at > first.leased_at
        };
        leases.extend(self.0.all().iter().rfind(is_elsewhere).cloned());
    }
}

#[derive(Default)]
struct HolderGetsItsEventAgain(Claims, Mutex<HashSet<Place>>);

#[async_trait]
impl Defect for HolderGetsItsEventAgain {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        lock(&self.1).insert(place_of(lease));
        Ok(())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        leases.iter().for_each(|lease| self.0.note(lease));
        if leases.is_empty() && options.limit == 1 {
            let mut held = self.0.all();
            held.retain(|claim| {
                claim.event.stream == *stream
                    && claim.group == *group
                    && claim.consumer == options.consumer
                    && claim.expires_at > real.now()
                    && !lock(&self.1).contains(&place_of(claim))
            });
            held.truncate(1);
            return Ok(held);
        }
        Ok(leases)
    }
}

#[derive(Default)]
struct AckLeavesTheClaim;

#[async_trait]
impl Defect for AckLeavesTheClaim {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let left = lease.expires_at.saturating_since(real.now());
        match RetryDelay::new(left) {
            Ok(left) if left != RetryDelay::NONE => {
                let until_then = RetryOptions::new().with_delay(left);
                real.backend.retry(lease, &until_then).await.map(drop)
            }
            _ => real.backend.ack(lease).await,
        }
    }
}

/// Fetches wait a little for each other, so that it shows.
#[derive(Default)]
struct ConcurrentFetchesChooseFirst(Mutex<(u32, Option<Lease>)>);

#[async_trait]
impl Defect for ConcurrentFetchesChooseFirst {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        lock(&self.0).0 += 1;
        let mut is_shared = false;
        for _ in 0..200 {
            is_shared = lock(&self.0).0 > 1;
            if is_shared {
                break;
            }
            tokio::task::yield_now().await;
        }
        let leases = real.backend.fetch(stream, group, options).await;
        tokio::task::yield_now().await;
        let mut inside = lock(&self.0);
        inside.0 -= 1;
        let mut leases = leases?;
        if let Some(chosen) = inside.1.take().filter(|_| is_shared)
            && let Some(last) = leases.last_mut()
            && (&chosen.event.stream, &chosen.group) == (stream, group)
        {
            *last = chosen;
        }
        inside.1 = leases.last().cloned();
        Ok(leases)
    }
}
