//! Defects that the cases of `settling` are there for.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use rheo_core::{
    Cause, DeadLetter, DeadLetterOptions, Error, Event, FetchOptions, GroupName, GroupOptions, Lag,
    Lease, MaxAttempts, Partition, Partitions, Reason, Replay, Result, RetryDelay, RetryOptions,
    RetryOutcome, Sequence, StreamName, Timestamp, async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real};
use crate::tweak::{Claims, Place, Step, Tweak, lock, place_of, void};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        RetryWaitsForTheLease: "a retried event is claimable when its lease would have expired",
        says: "one lease, since an event is claimable",
        kills: [
            "settling::DLQ-1::a_retried_event_is_claimable_at_once",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_batch_of_retries_gives_up_on_the_used_up_ones_alone",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "delivery::DLV-3::a_fetch_finds_the_only_claimable_event",
            "delivery::DLV-4::retried_events_come_by_sequence_and_not_by_turn",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::events_that_come_while_others_are_leased_are_delivered",
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
            "fidelity::LOG-5::a_renewed_and_a_redelivered_lease_hold_the_same_event",
            "leases::LSE-1::a_lease_id_cannot_be_guessed_from_another",
            "leases::LSE-1::every_claim_has_a_lease_id_of_its_own",
            "leases::LSE-2::a_retried_lease_is_stale",
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "leases::LSE-5::every_claim_counts_as_an_attempt",
            "leases::LSE-6::a_renewal_is_no_attempt",
            "leases::LSE-7::a_lease_is_settled_once",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "settling::DLQ-1::a_retry_at_once_needs_no_clock",
            "settling::DLQ-1::each_delay_is_its_own",
            "settling::DLQ-1::the_attempt_goes_up_at_the_next_claim",
            "settling::DLQ-2::a_last_retry_without_a_reason_says_so_itself",
            "settling::DLQ-2::at_the_last_attempt_a_retry_gives_up",
            "settling::DLQ-2::five_attempts_are_the_default",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "settling::DLQ-2::the_reason_of_the_last_retry_is_kept",
            "settling::DLQ-2::very_many_attempts_are_allowed",
            "wakeup::OPS-4::work_that_was_given_back_is_told",
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "distribution::DST-1::a_lease_settled_elsewhere_is_stale",
            "distribution::DST-1::a_retry_elsewhere_counts_as_an_attempt",
            "durability::DUR-1::attempts_survive",
            "durability::DUR-1::max_attempts_survives",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "reset::RPL-5::attempts_begin_again_after_a_reset",
            "streams::STR-4::settling_on_one_stream_leaves_the_other",
        ],
    },
    faulty! {
        RetryWritesTheTime: "a retry at once makes the event claimable from the present time on",
        says: "one lease, since an event is claimable",
        kills: ["settling::DLQ-1::a_retry_at_once_needs_no_clock"],
    },
    faulty! {
        RetryRaisesTheAttempt: "both the retry and the next claim raise the attempt",
        says: "the attempts to be [1, 2, 3, 4]",
        kills: [
            "settling::DLQ-1::the_attempt_goes_up_at_the_next_claim",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "leases::LSE-2::a_retried_lease_is_stale",
            "leases::LSE-4::an_expired_lease_still_settles",
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "leases::LSE-5::every_claim_counts_as_an_attempt",
            "leases::LSE-6::a_renewal_is_no_attempt",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "settling::DLQ-1::a_clock_that_goes_back_ends_no_delay",
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "settling::DLQ-1::a_delay_outlasts_the_lease",
            "settling::DLQ-1::a_retry_at_once_needs_no_clock",
            "settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay",
            "settling::DLQ-2::five_attempts_are_the_default",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "settling::DLQ-2::very_many_attempts_are_allowed",
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "distribution::DST-1::a_retry_elsewhere_counts_as_an_attempt",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "replay::RPL-2::replays_at_random_follow_the_rules",
        ],
    },
    faulty! {
        DelayIsIgnored: "a delayed retry is claimable at once",
        says: "no claimable event",
        kills: [
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "batches::LSE-8::a_batch_of_retries_delays_each",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "delivery::DLV-3::nothing_claimable_gives_nothing",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "settling::DLQ-1::a_clock_that_goes_back_ends_no_delay",
            "settling::DLQ-1::a_delay_holds_back_nothing_else",
            "settling::DLQ-1::a_delay_outlasts_the_lease",
            "settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay",
            "settling::DLQ-1::each_delay_is_its_own",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "partitions::DLV-3::a_blocked_partition_holds_no_other",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-6::reset_leaves_other_groups_alone",
        ],
    },
    faulty! {
        DelayIsAMicrosecondShort: "a delay ends a microsecond early",
        says: "no claimable event",
        kills: [
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "batches::LSE-8::a_batch_of_retries_delays_each",
        ],
    },
    faulty! {
        DelayIsAMicrosecondLong: "a delay ends a microsecond late",
        says: "one lease, since an event is claimable",
        kills: [
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "batches::LSE-8::a_batch_of_retries_delays_each",
            "delivery::DLV-4::delayed_events_come_by_sequence_and_not_by_due_time",
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "settling::DLQ-1::a_clock_that_goes_back_ends_no_delay",
            "settling::DLQ-1::a_delay_outlasts_the_lease",
            "settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay",
            "settling::DLQ-1::each_delay_is_its_own",
            "durability::DUR-1::the_delay_of_a_retry_survives",
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
            "batches::LSE-8::a_batch_of_retries_delays_each",
            "delivery::DLV-4::delayed_events_come_by_sequence_and_not_by_due_time",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "settling::DLQ-1::a_clock_that_goes_back_ends_no_delay",
            "settling::DLQ-1::each_delay_is_its_own",
        ],
    },
    faulty! {
        DelayEndsWithTheLease: "a delay ends with the lease at the latest",
        says: "no claimable event",
        kills: [
            "settling::DLQ-1::a_delay_outlasts_the_lease",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
        ],
    },
    faulty! {
        DelayHoldsUpTheGroup: "nothing is fetched while an event waits for its retry",
        says: "the claimable sequences to be [2, 3]",
        kills: [
            "settling::DLQ-1::a_delay_holds_back_nothing_else",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "settling::DLQ-1::a_retry_at_once_needs_no_clock",
            "settling::DLQ-1::each_delay_is_its_own",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_counts_nothing_after_a_reset",
            "partitions::DLV-3::a_blocked_partition_holds_no_other",
            "progress::FRN-1::what_waits_for_a_retry_holds_the_frontier",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
            "reset::RPL-6::reset_leaves_other_groups_alone",
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
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "durability::DUR-1::the_delay_of_a_retry_survives",
        ],
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
            "leases::LSE-2::a_stale_lease_makes_no_dead_letter",
            "settling::DLQ-2::a_last_retry_without_a_reason_says_so_itself",
            "settling::DLQ-2::the_reason_of_the_last_retry_is_kept",
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::an_after_that_is_no_dead_letter_is_cursor_not_found",
            "dead_letters::DLQ-5::what_is_not_dead_is_no_dead_letter",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
        ],
    },
    faulty! {
        OneAttemptTooMany: "attempts are compared with > where it has to be >=",
        says: "the outcomes",
        kills: [
            "settling::DLQ-2::at_the_last_attempt_a_retry_gives_up",
            "batches::LSE-8::a_batch_of_retries_gives_up_on_the_used_up_ones_alone",
            "log::LOG-4::a_dead_letter_stays_in_the_log",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
            "settling::DLQ-2::a_given_up_event_is_settled",
            "settling::DLQ-2::a_given_up_event_lets_the_frontier_pass",
            "settling::DLQ-2::a_last_retry_without_a_reason_says_so_itself",
            "settling::DLQ-2::at_the_last_attempt_a_delayed_retry_gives_up_too",
            "settling::DLQ-2::five_attempts_are_the_default",
            "settling::DLQ-2::lost_leases_count_towards_the_last_attempt",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "settling::DLQ-2::one_attempt_means_no_second_chance",
            "settling::DLQ-2::the_reason_of_the_last_retry_is_kept",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
            "settling::DLQ-3::used_up_events_do_not_fill_a_fetch",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "distribution::DST-1::max_attempts_hold_on_every_handle",
            "durability::DUR-1::max_attempts_survives",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
            "reset::RPL-5::max_attempts_stay_after_a_reset",
        ],
    },
    faulty! {
        DelayedRetryNeverGivesUp: "a retry with a delay does not look at the attempts",
        says: "the outcome to be DeadLettered",
        kills: [
            "settling::DLQ-2::at_the_last_attempt_a_delayed_retry_gives_up_too",
            "inspect::OPS-3::group_info_counts_dead_letters",
        ],
    },
    faulty! {
        TenAttemptsAreTheDefault: "five attempts count as nothing said, and become ten",
        says: "the outcome to be DeadLettered",
        kills: [
            "settling::DLQ-2::five_attempts_are_the_default",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
        ],
    },
    faulty! {
        OneAttemptBecomesTwo: "an event is always tried twice",
        says: "the outcome to be DeadLettered",
        kills: [
            "settling::DLQ-2::one_attempt_means_no_second_chance",
            "log::LOG-4::a_dead_letter_stays_in_the_log",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
            "settling::DLQ-2::a_given_up_event_is_settled",
            "settling::DLQ-2::a_given_up_event_lets_the_frontier_pass",
            "settling::DLQ-2::at_the_last_attempt_a_delayed_retry_gives_up_too",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
            "settling::DLQ-3::used_up_events_do_not_fill_a_fetch",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "distribution::DST-1::max_attempts_hold_on_every_handle",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
            "reset::RPL-5::max_attempts_stay_after_a_reset",
        ],
    },
    faulty! {
        AttemptsAreAtMostTen: "max_attempts is cut to ten",
        says: "the outcome to be Retrying",
        kills: [
            "settling::DLQ-2::very_many_attempts_are_allowed",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
        ],
    },
    faulty! {
        LostLeasesDoNotCount: "only retries count towards the last attempt",
        says: "the outcome to be DeadLettered",
        kills: [
            "settling::DLQ-2::lost_leases_count_towards_the_last_attempt",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "settling::DLQ-3::used_up_events_do_not_fill_a_fetch",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "distribution::DST-1::max_attempts_hold_on_every_handle",
            "durability::DUR-1::max_attempts_survives",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "reset::RPL-5::attempts_begin_again_after_a_reset",
        ],
    },
    faulty! {
        MaxAttemptsIsOfTheStream: "the first group of a stream decides on max_attempts for all",
        says: "the patient group's outcome",
        kills: [
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
        ],
    },
    faulty! {
        GivenUpLeaseStillAcks: "the lease of an event that a retry gave up on can be acked",
        says: "Err(StaleLease)",
        kills: ["settling::DLQ-2::a_given_up_event_is_settled"],
    },
    faulty! {
        FirstReasonIsKept: "the reason of the first retry is kept",
        says: "attempts and reasons",
        kills: ["settling::DLQ-2::the_reason_of_the_last_retry_is_kept"],
    },
    faulty! {
        EarlierReasonStandsIn: "where the last retry has no reason, an earlier one is taken",
        says: "the reasons",
        kills: ["settling::DLQ-2::a_last_retry_without_a_reason_says_so_itself"],
    },
    faulty! {
        LongReasonFails: "a reason of more than 255 characters does not fit its column",
        says: "the last operation to succeed",
        kills: ["settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled"],
    },
    faulty! {
        OnlyAcksMoveTheFrontier: "the frontier stops at dead letters",
        says: "the frontier to be 2",
        kills: [
            "settling::DLQ-2::a_given_up_event_lets_the_frontier_pass",
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::the_frontier_follows_random_work",
            "replay::RPL-2::replays_at_random_follow_the_rules",
        ],
    },
    faulty! {
        LostLeasesAreReclaimedForEver: "only a retry looks at the attempts",
        says: "no claimable event",
        kills: [
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "settling::DLQ-3::used_up_events_do_not_fill_a_fetch",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "distribution::DST-1::max_attempts_hold_on_every_handle",
            "durability::DUR-1::max_attempts_survives",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
        ],
    },
    faulty! {
        LostLastLeaseIsAcked: "an event that was lost at its last attempt counts as done",
        says: "the number of dead letters to be 1",
        kills: [
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "inspect::OPS-3::group_info_counts_dead_letters",
        ],
    },
    faulty! {
        LostLastLeaseHasAnotherReason: "an event that was lost at its last attempt has the reason of a retry",
        says: "the reason",
        kills: [
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
        ],
    },
    faulty! {
        LastLeaseIsVoidOnceExpired: "the lease of the last attempt is void when it expires",
        says: "StaleLease",
        kills: [
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
            "settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing",
            "settling::DLQ-3::a_last_lease_that_was_acked_late_is_no_dead_letter",
        ],
    },
    faulty! {
        ExpiredIsListedAsDead: "listing the dead letters gives up on what expired at its last attempt",
        says: "no dead letters",
        kills: ["settling::DLQ-3::a_last_lease_that_was_acked_late_is_no_dead_letter"],
    },
    faulty! {
        LastLeaseEndsAtItsFirstExpiry: "an event at its last attempt is given up on at the expiry of its claim, whatever the renewals",
        says: "StaleLease",
        kills: [
            "settling::DLQ-3::a_renewed_last_lease_is_not_given_up_on",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
        ],
    },
    faulty! {
        LostLastLeaseStillAcks: "the lease of an event that a fetch gave up on can be acked",
        says: "Err(StaleLease)",
        kills: ["settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale"],
    },
    faulty! {
        UsedUpEventsFillTheFetch: "a fetch gives up on as many events as its limit, and gives that many less",
        says: "the sequences of a single fetch to be [21]",
        kills: [
            "settling::DLQ-3::used_up_events_do_not_fill_a_fetch",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "inspect::OPS-3::group_info_counts_dead_letters",
        ],
    },
    faulty! {
        EmptyFetchGivesUpOnOne: "a fetch that finds nothing gives up on one used-up event alone",
        says: "the number of dead letters to be 20",
        kills: [
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "inspect::OPS-3::group_info_counts_dead_letters",
        ],
    },
    faulty! {
        FetchGivesUpEverywhere: "a fetch from some partitions gives up on used-up events of all",
        says: "StaleLease",
        kills: ["settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing"],
    },
    faulty! {
        LostLastLeaseHoldsTheFrontier: "the frontier stops at what was lost at its last attempt",
        says: "the frontier to be 2",
        kills: [
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
        ],
    },
    faulty! {
        RejectReachesAllGroups: "a rejected event is dead for every group",
        says: "the claimable sequences to be [1, 2]",
        kills: [
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "dead_letters::DLQ-4::one_event_can_be_dead_in_two_groups",
            "dead_letters::DLQ-4::reject_is_for_that_group_alone",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-1::replay_reopens_what_was_acked_and_what_is_dead",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
        ],
    },
];

const MICROSECOND: Duration = Duration::from_micros(1);

/// Changes the delay of a retry that has one.
fn delay(options: &mut RetryOptions, change: impl FnOnce(Duration) -> Duration) {
    if options.delay != RetryDelay::NONE {
        let changed = RetryDelay::new(change(options.delay.as_duration()));
        options.delay = changed.unwrap_or(options.delay);
    }
}

// DLQ-1

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

// DLQ-2

/// Changes the number of attempts that a group is made with.
fn attempts(options: &mut GroupOptions, change: impl FnOnce(u32) -> u32) {
    let changed = MaxAttempts::new(change(options.max_attempts.get()));
    options.max_attempts = changed.unwrap_or(options.max_attempts);
}

#[derive(Default)]
struct OneAttemptTooMany;

impl Tweak for OneAttemptTooMany {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        attempts(options, |attempts| attempts + 1);
    }
}

#[derive(Default)]
struct DelayedRetryNeverGivesUp;

#[async_trait]
impl Defect for DelayedRetryNeverGivesUp {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let outcome = real.backend.retry(lease, options).await?;
        if options.delay != RetryDelay::NONE && outcome == RetryOutcome::DeadLettered {
            let again = Replay::Events(vec![lease.event.id]);
            let (stream, group) = (&lease.event.stream, &lease.group);
            real.backend.replay(stream, group, &again).await?;
            return Ok(RetryOutcome::Retrying);
        }
        Ok(outcome)
    }
}

#[derive(Default)]
struct TenAttemptsAreTheDefault;

impl Tweak for TenAttemptsAreTheDefault {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        attempts(
            options,
            |attempts| if attempts == 5 { 10 } else { attempts },
        );
    }
}

#[derive(Default)]
struct OneAttemptBecomesTwo;

impl Tweak for OneAttemptBecomesTwo {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        attempts(options, |attempts| attempts.max(2));
    }
}

#[derive(Default)]
struct AttemptsAreAtMostTen;

impl Tweak for AttemptsAreAtMostTen {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        attempts(options, |attempts| attempts.min(10));
    }
}

/// The `max_attempts` of each group.
#[derive(Default)]
struct Maxima(Mutex<HashMap<(StreamName, GroupName), u32>>);

impl Maxima {
    fn note(&self, stream: &StreamName, group: &GroupName, options: &GroupOptions) {
        let group = (stream.clone(), group.clone());
        let attempts = options.max_attempts.get();
        lock(&self.0).entry(group).or_insert(attempts);
    }
    fn is_used_up(&self, lease: &Lease) -> bool {
        let group = (lease.event.stream.clone(), lease.group.clone());
        lock(&self.0)
            .get(&group)
            .is_some_and(|max| lease.attempt >= *max)
    }
}

#[derive(Default)]
struct LostLeasesDoNotCount {
    maxima: Maxima,
    retries: Mutex<HashMap<Place, u32>>,
}

#[async_trait]
impl Defect for LostLeasesDoNotCount {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.maxima.note(stream, group, options);
        let mut options = options.clone();
        attempts(&mut options, |_| MaxAttempts::MAX);
        real.backend.create_group(stream, group, &options).await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let retries = lock(&self.retries).get(&place_of(lease)).copied();
        let retried = Lease {
            attempt: retries.unwrap_or_default() + 1,
            ..lease.clone()
        };
        if self.maxima.is_used_up(&retried) {
            let reason = options.reason.clone().unwrap_or_else(Reason::max_attempts);
            real.backend.reject(lease, &reason).await?;
            return Ok(RetryOutcome::DeadLettered);
        }
        let outcome = real.backend.retry(lease, options).await?;
        lock(&self.retries).insert(place_of(lease), retried.attempt);
        Ok(outcome)
    }
}

#[derive(Default)]
struct MaxAttemptsIsOfTheStream(Mutex<HashMap<StreamName, MaxAttempts>>);

impl Tweak for MaxAttemptsIsOfTheStream {
    fn creating(&self, stream: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        let first = options.max_attempts;
        options.max_attempts = *lock(&self.0).entry(stream.clone()).or_insert(first);
    }
}

#[derive(Default)]
struct GivenUpLeaseStillAcks(Mutex<Vec<Lease>>, Maxima);

impl Tweak for GivenUpLeaseStillAcks {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.1.note(stream, group, options);
    }
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Retry && self.1.is_used_up(lease) {
            lock(&self.0).push(lease.clone());
        }
    }
    fn forgives(&self, _: Timestamp, step: Step, lease: &Lease) -> bool {
        let is_it = |given_up: &Lease| given_up.lease_id == lease.lease_id;
        step == Step::Ack && lock(&self.0).iter().any(is_it)
    }
}

#[derive(Default)]
struct FirstReasonIsKept(Mutex<HashMap<Place, Reason>>);

impl Tweak for FirstReasonIsKept {
    fn retrying(&self, _: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        if let Some(reason) = options.reason.take() {
            let mut reasons = lock(&self.0);
            let first = reasons.entry(place_of(lease)).or_insert(reason);
            options.reason = Some(first.clone());
        }
    }
}

#[derive(Default)]
struct EarlierReasonStandsIn(Mutex<HashMap<Place, Reason>>);

impl Tweak for EarlierReasonStandsIn {
    fn retrying(&self, _: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        let place = place_of(lease);
        match options.reason.clone() {
            Some(reason) => drop(lock(&self.0).insert(place, reason)),
            None => options.reason = lock(&self.0).get(&place).cloned(),
        }
    }
}

#[derive(Default)]
struct LongReasonFails;

#[async_trait]
impl Defect for LongReasonFails {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let length = |reason: &Reason| reason.as_str().chars().count();
        if options.reason.as_ref().map_or(0, length) > 255 {
            return Err(Error::Failed(Cause::new(
                "value too long for type varchar(255)",
            )));
        }
        real.backend.retry(lease, options).await
    }
}

/// Puts the frontiers of a group below its dead letters for which that holds.
async fn hold_frontiers(
    real: &Real,
    stream: &StreamName,
    group: &GroupName,
    holds: impl Fn(&DeadLetter) -> bool,
) -> Result<Lag> {
    let mut lag = real.backend.lag(stream, group).await?;
    let all = DeadLetterOptions::new().with_limit(u32::MAX);
    let dead = real.backend.dead_letters(stream, group, &all).await?;
    for letter in dead.iter().filter(|letter| holds(letter)) {
        for progress in &mut lag.partitions {
            if progress.partition == letter.event.partition {
                progress.frontier = progress.frontier.min(letter.event.sequence.previous());
            }
        }
    }
    Ok(lag)
}

#[derive(Default)]
struct OnlyAcksMoveTheFrontier;

#[async_trait]
impl Defect for OnlyAcksMoveTheFrontier {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        hold_frontiers(real, stream, group, |_| true).await
    }
}

// DLQ-3

#[derive(Default)]
struct LostLeasesAreReclaimedForEver(Maxima);

#[async_trait]
impl Defect for LostLeasesAreReclaimedForEver {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.0.note(stream, group, options);
        let mut options = options.clone();
        attempts(&mut options, |_| MaxAttempts::MAX);
        real.backend.create_group(stream, group, &options).await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        if self.0.is_used_up(lease) {
            let reason = options.reason.clone().unwrap_or_else(Reason::max_attempts);
            real.backend.reject(lease, &reason).await?;
            return Ok(RetryOutcome::DeadLettered);
        }
        real.backend.retry(lease, options).await
    }
}

/// What was claimed at its last attempt.
#[derive(Default)]
struct LastAttempts {
    maxima: Maxima,
    claims: Claims,
}

impl LastAttempts {
    fn note(&self, lease: &Lease) {
        if self.maxima.is_used_up(lease) {
            self.claims.note(lease);
        }
    }
    /// The leases of a group that have ended by now, as far as their claims said.
    fn expired(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Vec<Lease> {
        let mut expired = self.claims.expired(stream, group, real.now());
        // Of a lease that was renewed the last expiry counts.
        let is_last = |lease: &Lease| self.claims.by_id(&lease.lease_id).as_ref() == Some(lease);
        expired.retain(is_last);
        expired
    }
}

#[derive(Default)]
struct LostLastLeaseIsAcked(LastAttempts);

#[async_trait]
impl Tweak for LostLastLeaseIsAcked {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        for lease in self.0.expired(real, stream, group) {
            if options.partitions.contains(lease.event.partition) {
                let _ = real.backend.ack(&lease).await;
            }
        }
    }
}

#[derive(Default)]
struct LostLastLeaseHasAnotherReason;

#[async_trait]
impl Defect for LostLastLeaseHasAnotherReason {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        for letter in &mut dead {
            if letter.reason == Reason::lease_expired() {
                letter.reason = Reason::max_attempts();
            }
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct LastLeaseIsVoidOnceExpired(LastAttempts);

impl Tweak for LastLeaseIsVoidOnceExpired {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, now: Timestamp, _: Step, lease: &mut Lease) {
        let claim = self.0.claims.by_id(&lease.lease_id);
        if claim.is_some_and(|claim| claim.expires_at <= now) {
            void(lease);
        }
    }
}

#[derive(Default)]
struct ExpiredIsListedAsDead(LastAttempts);

#[async_trait]
impl Defect for ExpiredIsListedAsDead {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.0.maxima.note(stream, group, options);
        real.backend.create_group(stream, group, options).await
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
        Ok(leases)
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        for lease in self.0.expired(real, stream, group) {
            let _ = real.backend.reject(&lease, &Reason::lease_expired()).await;
        }
        real.backend.dead_letters(stream, group, options).await
    }
}

#[derive(Default)]
struct LastLeaseEndsAtItsFirstExpiry(LastAttempts);

#[async_trait]
impl Tweak for LastLeaseEndsAtItsFirstExpiry {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        for lease in self.0.expired(real, stream, group) {
            if options.partitions.contains(lease.event.partition) && options.limit > 0 {
                let _ = real.backend.reject(&lease, &Reason::lease_expired()).await;
            }
        }
    }
}

#[derive(Default)]
struct LostLastLeaseStillAcks(LastAttempts, Mutex<HashSet<Place>>);

impl Tweak for LostLastLeaseStillAcks {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step != Step::Renew {
            lock(&self.1).insert(place_of(lease));
        }
    }
    fn forgives(&self, now: Timestamp, step: Step, lease: &Lease) -> bool {
        let claim = self.0.claims.by_id(&lease.lease_id);
        let is_lost = claim.is_some_and(|claim| claim.expires_at <= now);
        step == Step::Ack && is_lost && !lock(&self.1).contains(&place_of(lease))
    }
}

#[derive(Default)]
struct UsedUpEventsFillTheFetch(LastAttempts);

#[async_trait]
impl Tweak for UsedUpEventsFillTheFetch {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        for lease in self.0.expired(real, stream, group) {
            if options.limit > 0 && options.partitions.contains(lease.event.partition) {
                let rejected = real.backend.reject(&lease, &Reason::lease_expired()).await;
                options.limit -= u32::from(rejected.is_ok());
            }
        }
    }
}

#[derive(Default)]
struct EmptyFetchGivesUpOnOne(LastAttempts);

#[async_trait]
impl Tweak for EmptyFetchGivesUpOnOne {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        let lost = self.0.expired(real, stream, group);
        let is_selected = |lease: &Lease| options.partitions.contains(lease.event.partition);
        if options.limit == 0 || lost.iter().filter(|lease| is_selected(lease)).count() < 2 {
            return;
        }
        for lease in &lost {
            if real
                .backend
                .reject(lease, &Reason::lease_expired())
                .await
                .is_ok()
            {
                // The others wait for the next fetch, as if they were leased a little longer.
                for other in &lost {
                    let _ = real.backend.renew(other, Default::default()).await;
                }
                return;
            }
        }
    }
}

#[derive(Default)]
struct FetchGivesUpEverywhere(LastAttempts);

#[async_trait]
impl Tweak for FetchGivesUpEverywhere {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        if options.limit > 0 && options.partitions != Partitions::only([]) {
            for lease in self.0.expired(real, stream, group) {
                let _ = real.backend.reject(&lease, &Reason::lease_expired()).await;
            }
        }
    }
}

#[derive(Default)]
struct LostLastLeaseHoldsTheFrontier;

#[async_trait]
impl Defect for LostLastLeaseHoldsTheFrontier {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let is_lost = |letter: &DeadLetter| letter.reason == Reason::lease_expired();
        hold_frontiers(real, stream, group, is_lost).await
    }
}

// DLQ-4

#[derive(Default)]
struct RejectReachesAllGroups(Mutex<HashSet<(StreamName, Partition, Sequence)>>);

impl Tweak for RejectReachesAllGroups {
    fn keeps(&self, lease: &Lease) -> bool {
        let (stream, _, partition, sequence) = place_of(lease);
        lease.attempt > 1 || !lock(&self.0).contains(&(stream, partition, sequence))
    }
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Reject {
            let (stream, _, partition, sequence) = place_of(lease);
            lock(&self.0).insert((stream, partition, sequence));
        }
    }
}
