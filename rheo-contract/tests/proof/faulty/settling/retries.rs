//! Retries that come back at another time.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use rheo_core::{
    DeadLetter, DeadLetterOptions, Event, FetchOptions, GroupName, Lease, Reason, Replay, Result,
    RetryDelay, RetryOptions, RetryOutcome, StreamName, Timestamp, async_trait,
};

use super::delay;
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Place, Step, Tweak, lock, place_of};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        RetryWaitsForTheLease: "a retried event is claimable when its lease would have expired",
        says: "one lease, since an event is claimable",
        kills: [
            "settling::DLQ-1::a_retried_event_is_claimable_at_once",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "batches::LSE-8::a_batch_of_retries_at_once_needs_no_clock",
            "batches::LSE-8::a_batch_of_retries_gives_up_on_the_used_up_ones_alone",
            "batches::LSE-8::a_batch_of_retries_moves_the_frontier_where_it_gives_up",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::hundreds_of_leases_are_retried_in_one_batch",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "delivery::DLV-3::a_fetch_finds_the_only_claimable_event",
            "delivery::DLV-4::retried_events_come_by_sequence_and_not_by_turn",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "delivery::DLV-6::events_that_come_while_others_are_leased_are_delivered",
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "distribution::DST-1::a_lease_settled_elsewhere_is_stale",
            "distribution::DST-1::a_retry_elsewhere_counts_as_an_attempt",
            "durability::DUR-1::attempts_survive",
            "durability::DUR-1::max_attempts_survives",
            "fidelity::LOG-5::a_renewed_and_a_redelivered_lease_hold_the_same_event",
            "inspect::OPS-3::group_info_counts_a_lease_at_any_attempt",
            "leases::LSE-1::a_lease_id_cannot_be_guessed_from_another",
            "leases::LSE-1::every_claim_has_a_lease_id_of_its_own",
            "leases::LSE-2::a_retried_lease_is_stale",
            "leases::LSE-2::the_attempt_of_a_lease_decides_nothing",
            "leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored",
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "leases::LSE-5::every_claim_counts_as_an_attempt",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "leases::LSE-6::a_renewal_is_no_attempt",
            "leases::LSE-7::a_lease_is_settled_once",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-1::leases_from_before_a_replay_hold_up_nothing",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "reset::RPL-5::attempts_begin_again_after_a_reset",
            "settling::DLQ-1::a_retry_at_once_needs_no_clock",
            "settling::DLQ-1::each_delay_is_its_own",
            "settling::DLQ-1::no_retry_at_once_needs_a_clock",
            "settling::DLQ-1::the_attempt_goes_up_at_the_next_claim",
            "settling::DLQ-2::a_last_retry_without_a_reason_says_so_itself",
            "settling::DLQ-2::at_the_last_attempt_a_retry_gives_up",
            "settling::DLQ-2::five_attempts_are_the_default",
            "settling::DLQ-2::hundreds_of_attempts_are_counted",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "settling::DLQ-2::no_number_of_attempts_is_too_large",
            "settling::DLQ-2::the_reason_of_the_last_retry_is_kept",
            "settling::DLQ-2::very_many_attempts_are_allowed",
            "settling::DLQ-3::a_clock_that_goes_back_keeps_the_last_lease",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
            "settling::DLQ-3::used_up_events_are_never_handed_out_whatever_the_limit",
            "streams::STR-4::settling_on_one_stream_leaves_the_other",
            "wakeup::OPS-4::chosen_events_are_told",
            "wakeup::OPS-4::work_at_any_attempt_is_told",
            "wakeup::OPS-4::work_in_any_partition_is_told",
            "wakeup::OPS-4::work_that_was_given_back_is_told",
        ],
    },
    faulty! {
        RetryWritesTheTime: "a retry at once makes the event claimable from the present time on",
        says: "one lease, since an event is claimable",
        kills: [
            "settling::DLQ-1::a_retry_at_once_needs_no_clock",
            "batches::LSE-8::a_batch_of_retries_at_once_needs_no_clock",
            "settling::DLQ-1::no_retry_at_once_needs_a_clock",
        ],
    },
    faulty! {
        RetryRaisesTheAttempt: "both the retry and the next claim raise the attempt",
        says: "the attempts to be [1, 2, 3, 4]",
        kills: [
            "settling::DLQ-1::the_attempt_goes_up_at_the_next_claim",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "batches::LSE-8::a_batch_of_retries_at_once_needs_no_clock",
            "batches::LSE-8::a_batch_of_retries_moves_the_frontier_where_it_gives_up",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "distribution::DST-1::a_retry_elsewhere_counts_as_an_attempt",
            "inspect::OPS-3::group_info_counts_a_lease_at_any_attempt",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "leases::LSE-2::a_retried_lease_is_stale",
            "leases::LSE-2::the_attempt_of_a_lease_decides_nothing",
            "leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored",
            "leases::LSE-4::an_expired_lease_still_settles",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "leases::LSE-5::every_claim_counts_as_an_attempt",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "leases::LSE-6::a_renewal_is_no_attempt",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "replay::RPL-1::leases_from_before_a_replay_hold_up_nothing",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-1::a_clock_that_goes_back_ends_no_delay",
            "settling::DLQ-1::a_delay_counts_from_a_clock_that_went_back",
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
            "settling::DLQ-1::a_delay_outlasts_the_lease",
            "settling::DLQ-1::a_retry_at_once_needs_no_clock",
            "settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay",
            "settling::DLQ-1::no_delay_goes_beyond_the_highest_timestamp",
            "settling::DLQ-1::no_retry_at_once_needs_a_clock",
            "settling::DLQ-1::the_delay_of_the_last_retry_counts",
            "settling::DLQ-1::what_was_found_due_waits_when_the_clock_goes_back",
            "settling::DLQ-2::five_attempts_are_the_default",
            "settling::DLQ-2::hundreds_of_attempts_are_counted",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "settling::DLQ-2::very_many_attempts_are_allowed",
            "wakeup::OPS-4::an_ended_delay_is_told",
            "wakeup::OPS-4::work_at_any_attempt_is_told",
        ],
    },
    faulty! {
        DelayIsIgnored: "a delayed retry is claimable at once",
        says: "no claimable event",
        kills: [
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_retries_delays_each",
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "delivery::DLV-3::nothing_claimable_gives_nothing",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "partitions::DLV-3::a_blocked_partition_holds_no_other",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
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
            "settling::DLQ-1::a_clock_that_goes_back_ends_no_delay",
            "settling::DLQ-1::a_delay_counts_from_a_clock_that_went_back",
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
            "settling::DLQ-1::a_delay_holds_back_nothing_else",
            "settling::DLQ-1::a_delay_outlasts_the_lease",
            "settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay",
            "settling::DLQ-1::each_delay_is_its_own",
            "settling::DLQ-1::no_delay_goes_beyond_the_highest_timestamp",
            "settling::DLQ-1::the_delay_of_the_last_retry_counts",
            "settling::DLQ-1::what_was_found_due_waits_when_the_clock_goes_back",
        ],
    },
    faulty! {
        DelayIsAMicrosecondShort: "a delay ends a microsecond early",
        says: "no claimable event",
        kills: [
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
            "batches::LSE-8::a_batch_of_retries_delays_each",
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
            "settling::DLQ-1::a_delay_counts_from_a_clock_that_went_back",
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
            "settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay",
            "settling::DLQ-1::the_delay_of_the_last_retry_counts",
        ],
    },
    faulty! {
        DelayIsAMicrosecondLong: "a delay ends a microsecond late",
        says: "one lease, since an event is claimable",
        kills: [
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
            "batches::LSE-8::a_batch_of_retries_delays_each",
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
            "delivery::DLV-4::delayed_events_come_by_sequence_and_not_by_due_time",
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-1::a_clock_that_goes_back_ends_no_delay",
            "settling::DLQ-1::a_delay_counts_from_a_clock_that_went_back",
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
            "settling::DLQ-1::a_delay_outlasts_the_lease",
            "settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay",
            "settling::DLQ-1::each_delay_is_its_own",
            "settling::DLQ-1::the_delay_of_the_last_retry_counts",
            "settling::DLQ-1::what_was_found_due_waits_when_the_clock_goes_back",
            "wakeup::OPS-4::an_ended_delay_is_told",
        ],
    },
    faulty! {
        DelayCountsFromTheClaim: "a delay counts from the time of the claim",
        says: "no claimable event",
        kills: [
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay",
        ],
    },
    faulty! {
        DelayWaitsForTheLease: "a delay lasts at least as long as the lease",
        says: "one lease, since an event is claimable",
        kills: [
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
            "batches::LSE-8::a_batch_of_retries_delays_each",
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
            "delivery::DLV-4::delayed_events_come_by_sequence_and_not_by_due_time",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "settling::DLQ-1::a_clock_that_goes_back_ends_no_delay",
            "settling::DLQ-1::a_delay_counts_from_a_clock_that_went_back",
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
            "settling::DLQ-1::each_delay_is_its_own",
            "settling::DLQ-1::the_delay_of_the_last_retry_counts",
            "settling::DLQ-1::what_was_found_due_waits_when_the_clock_goes_back",
            "wakeup::OPS-4::an_ended_delay_is_told",
        ],
    },
    faulty! {
        DelayEndsWithTheLease: "a delay ends with the lease at the latest",
        says: "no claimable event",
        kills: [
            "settling::DLQ-1::a_delay_outlasts_the_lease",
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
        ],
    },
    faulty! {
        DelayHoldsUpTheGroup: "nothing is fetched while an event waits for its retry",
        says: "the claimable sequences to be [2, 3]",
        kills: [
            "settling::DLQ-1::a_delay_holds_back_nothing_else",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_retries_at_once_needs_no_clock",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_counts_nothing_after_a_reset",
            "inspect::OPS-3::group_info_counts_nothing_of_other_groups",
            "inspect::OPS-3::group_info_counts_what_a_replay_left",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "partitions::DLV-3::a_blocked_partition_holds_no_other",
            "progress::FRN-1::what_waits_for_a_retry_holds_the_frontier",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
            "reset::RPL-5::reset_to_no_sequences_starts_at_the_beginning",
            "reset::RPL-6::reset_leaves_other_groups_alone",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-1::a_retry_at_once_needs_no_clock",
            "settling::DLQ-1::each_delay_is_its_own",
            "settling::DLQ-1::no_retry_at_once_needs_a_clock",
        ],
    },
    faulty! {
        LateRetryHasNoDelay: "a retry of an expired lease is claimable at once, whatever its delay",
        says: "no claimable event",
        kills: ["settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay"],
    },
    faulty! {
        FirstDelayIsForAll: "the first delay is used for all retries of a group",
        says: "the claimable sequences",
        kills: [
            "settling::DLQ-1::each_delay_is_its_own",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
            "settling::DLQ-1::the_delay_of_the_last_retry_counts",
        ],
    },
    faulty! {
        FirstDelayOfAnEventIsKept: "an event that waited once waits as long again",
        says: "one lease, since an event is claimable",
        kills: ["settling::DLQ-1::the_delay_of_the_last_retry_counts"],
    },
    faulty! {
        DelayUnderflows: "a delay is over when the clock is behind the retry",
        says: "no claimable event",
        kills: ["settling::DLQ-1::a_clock_that_goes_back_ends_no_delay"],
    },
    faulty! {
        EveryFailureIsADeadLetter: "each retry leaves a dead letter",
        says: "no dead letters",
        kills: [
            "settling::DLQ-1::a_retried_event_is_no_dead_letter",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::an_after_that_is_no_dead_letter_is_cursor_not_found",
            "dead_letters::DLQ-5::what_is_not_dead_is_no_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "leases::LSE-2::a_stale_lease_makes_no_dead_letter",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "settling::DLQ-2::a_last_retry_without_a_reason_says_so_itself",
            "settling::DLQ-2::the_reason_of_the_last_retry_is_kept",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
        ],
    },
];

const MICROSECOND: Duration = Duration::from_micros(1);

#[derive(Default)]
struct RetryWaitsForTheLease;

impl Tweak for RetryWaitsForTheLease {
    fn retrying(&self, now: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        if options.delay == RetryDelay::NONE {
            let left = lease.expires_at.saturating_since(now);
            options.delay = RetryDelay::new(left).unwrap_or_default();
        }
    }
}

#[derive(Default)]
struct RetryWritesTheTime(Mutex<Option<Timestamp>>);

#[async_trait]
impl Tweak for RetryWritesTheTime {
    async fn before_fetch(
        &self,
        real: &Real,
        _: &StreamName,
        _: &GroupName,
        options: &mut FetchOptions,
    ) {
        if lock(&self.0).is_some_and(|retried_at| retried_at > real.now()) {
            options.limit = 0;
        }
    }
    fn done(&self, now: Timestamp, step: Step, _: &Lease) {
        if step == Step::Retry {
            *lock(&self.0) = Some(now);
        }
    }
}

#[derive(Default)]
struct RetryRaisesTheAttempt(Mutex<HashMap<Place, u32>>);

impl Tweak for RetryRaisesTheAttempt {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        if lease.attempt > 1 {
            lease.attempt += lock(&self.0)
                .get(&place_of(lease))
                .copied()
                .unwrap_or_default();
        }
    }
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Retry {
            *lock(&self.0).entry(place_of(lease)).or_default() += 1;
        }
    }
}

#[derive(Default)]
struct DelayIsIgnored;

impl Tweak for DelayIsIgnored {
    fn retrying(&self, _: Timestamp, _: &Lease, options: &mut RetryOptions) {
        options.delay = RetryDelay::NONE;
    }
}

#[derive(Default)]
struct DelayIsAMicrosecondShort;

impl Tweak for DelayIsAMicrosecondShort {
    fn retrying(&self, _: Timestamp, _: &Lease, options: &mut RetryOptions) {
        delay(options, |delay| delay - MICROSECOND);
    }
}

#[derive(Default)]
struct DelayIsAMicrosecondLong;

impl Tweak for DelayIsAMicrosecondLong {
    fn retrying(&self, _: Timestamp, _: &Lease, options: &mut RetryOptions) {
        delay(options, |delay| delay + MICROSECOND);
    }
}

#[derive(Default)]
struct DelayCountsFromTheClaim;

impl Tweak for DelayCountsFromTheClaim {
    fn retrying(&self, now: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        let since = now.saturating_since(lease.leased_at);
        delay(options, |delay| delay.saturating_sub(since));
    }
}

#[derive(Default)]
struct DelayWaitsForTheLease;

impl Tweak for DelayWaitsForTheLease {
    fn retrying(&self, now: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        let left = lease.expires_at.saturating_since(now);
        delay(options, |delay| delay.max(left));
    }
}

#[derive(Default)]
struct DelayEndsWithTheLease;

impl Tweak for DelayEndsWithTheLease {
    fn retrying(&self, now: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        let left = lease.expires_at.saturating_since(now);
        delay(options, |delay| {
            if left.is_zero() {
                delay
            } else {
                delay.min(left)
            }
        });
    }
}

#[derive(Default)]
struct DelayHoldsUpTheGroup(Mutex<Vec<Timestamp>>);

#[async_trait]
impl Tweak for DelayHoldsUpTheGroup {
    async fn before_fetch(
        &self,
        real: &Real,
        _: &StreamName,
        _: &GroupName,
        options: &mut FetchOptions,
    ) {
        if lock(&self.0).iter().any(|due| *due > real.now()) {
            options.limit = 0;
        }
    }
    fn retrying(&self, now: Timestamp, _: &Lease, options: &mut RetryOptions) {
        let due = now.saturating_add(options.delay.as_duration());
        lock(&self.0).push(due);
    }
}

#[derive(Default)]
struct LateRetryHasNoDelay;

impl Tweak for LateRetryHasNoDelay {
    fn retrying(&self, now: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        if lease.expires_at <= now {
            options.delay = RetryDelay::NONE;
        }
    }
}

#[derive(Default)]
struct FirstDelayIsForAll(Mutex<HashMap<(StreamName, GroupName), RetryDelay>>);

impl Tweak for FirstDelayIsForAll {
    fn retrying(&self, _: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        let group = (lease.event.stream.clone(), lease.group.clone());
        options.delay = *lock(&self.0).entry(group).or_insert(options.delay);
    }
}

#[derive(Default)]
struct DelayUnderflows(Mutex<Vec<(Timestamp, Event)>>);

#[async_trait]
impl Tweak for DelayUnderflows {
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        _: &mut FetchOptions,
    ) {
        let mut waiting = std::mem::take(&mut *lock(&self.0));
        waiting.retain(|(retried_at, _)| *retried_at > real.now());
        let ids = waiting.into_iter().map(|(_, event)| event.id).collect();
        let _ = real
            .backend
            .replay(stream, group, &Replay::Events(ids))
            .await;
    }
    fn retrying(&self, now: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        if options.delay != RetryDelay::NONE {
            lock(&self.0).push((now, lease.event.clone()));
        }
    }
}

#[derive(Default)]
struct EveryFailureIsADeadLetter(Mutex<Vec<DeadLetter>>);

#[async_trait]
impl Defect for EveryFailureIsADeadLetter {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let outcome = real.backend.retry(lease, options).await?;
        if outcome == RetryOutcome::Retrying {
            let reason = options.reason.clone();
            lock(&self.0).push(DeadLetter {
                event: lease.event.clone(),
                group: lease.group.clone(),
                attempt: lease.attempt,
                reason: reason.unwrap_or_else(Reason::max_attempts),
                dead_at: real.now(),
            });
        }
        Ok(outcome)
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let is_mine = |dead: &DeadLetter| Some(dead.event.id) == options.after;
        if lock(&self.0).iter().any(is_mine) {
            return Ok(Vec::new());
        }
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        dead.extend(lock(&self.0).iter().cloned());
        Ok(dead)
    }
}

#[derive(Default)]
struct FirstDelayOfAnEventIsKept(Mutex<HashMap<Place, RetryDelay>>);

impl Tweak for FirstDelayOfAnEventIsKept {
    fn retrying(&self, _: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        if options.delay != RetryDelay::NONE {
            let mut delays = lock(&self.0);
            options.delay = *delays.entry(place_of(lease)).or_insert(options.delay);
        }
    }
}
