//! Defects that the cases of `leases` are there for.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rheo_core::{
    Cause, DeadLetter, DeadLetterOptions, Error, FetchOptions, GroupName, Lease, LeaseDuration,
    LeaseId, Partitions, Reason, Replay, Result, RetryDelay, RetryOptions, RetryOutcome,
    StreamName, Timestamp, async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real};
use crate::tweak::{Aliases, Back, Claims, Place, Step, Tweak, lock, place_of, void};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        LeaseIdIsEventAndAttempt: "the lease id is made of the event and the attempt",
        says: "the number of lease ids",
        kills: [
            "leases::LSE-1::every_claim_has_a_lease_id_of_its_own",
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
            "leases::LSE-2::a_lease_is_of_its_group_alone",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "streams::STR-2::group_names_never_collide",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
        ],
    },
    faulty! {
        LeaseIdIsTheClaim: "the lease id is made of all that the claim is about, and its attempt",
        says: "the number of lease ids of three claims to be 3",
        kills: [
            "leases::LSE-1::a_replayed_event_gets_a_new_lease_id",
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
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
        ],
    },
    faulty! {
        LeaseIdIsACounter: "the lease id is a counter",
        says: "differ in at least 8 characters",
        kills: [
            "leases::LSE-1::a_lease_id_cannot_be_guessed_from_another",
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
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
        ],
    },
    faulty! {
        AckIsAlwaysFine: "an ack of any lease is Ok",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_replaced_lease_settles_nothing",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::hundreds_of_leases_settle_in_one_batch",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
            "distribution::DST-1::a_lease_replaced_elsewhere_is_stale",
            "distribution::DST-1::a_lease_settled_elsewhere_is_stale",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "distribution::DST-1::a_reset_elsewhere_is_seen",
            "distribution::DST-1::of_settles_on_two_handles_one_wins",
            "durability::DUR-1::a_reset_survives",
            "durability::DUR-1::a_stale_lease_stays_stale",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "durability::DUR-1::what_is_settled_stays_settled",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_is_of_its_group_alone",
            "leases::LSE-2::a_lease_is_of_its_partition_alone",
            "leases::LSE-2::a_lease_is_of_its_sequence_alone",
            "leases::LSE-2::a_lease_is_of_its_stream_alone",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "leases::LSE-2::a_lease_of_something_that_is_not_there_is_stale",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "leases::LSE-2::a_made_up_lease_claims_nothing",
            "leases::LSE-2::a_made_up_lease_is_stale",
            "leases::LSE-2::a_rejected_lease_is_stale",
            "leases::LSE-2::a_retried_lease_is_stale",
            "leases::LSE-2::an_acked_lease_is_stale",
            "leases::LSE-2::the_other_fields_of_a_lease_are_not_compared",
            "leases::LSE-4::an_expired_lease_holds_until_it_is_reclaimed_itself",
            "leases::LSE-5::the_same_consumer_reclaims_like_any_other",
            "leases::LSE-6::a_copy_from_before_a_renewal_still_settles",
            "leases::LSE-7::a_lease_is_settled_once",
            "leases::LSE-7::of_concurrent_settles_one_wins",
            "lifecycle::ERR-7::a_closed_handle_settles_no_batch",
            "lifecycle::ERR-7::a_closed_handle_settles_nothing",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
            "partitions::LSE-2::one_sequence_in_two_partitions_is_two_deliveries",
            "receipts::LSE-3::a_made_up_lease_with_the_right_receipt_is_stale",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
            "receipts::LSE-3::another_receipt_is_a_mismatch",
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-1::a_replayed_lease_settles_nothing",
            "replay::RPL-1::an_expired_lease_is_replayed_too",
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
            "reset::RPL-5::reset_may_go_forward",
            "reset::RPL-5::reset_of_one_partition_leaves_the_others",
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "settling::DLQ-2::a_given_up_event_is_settled",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
            "streams::STR-2::stream_and_group_are_not_run_together",
            "unavailable::ERR-4::without_a_store_each_lease_of_a_batch_has_its_error",
            "unavailable::ERR-4::without_a_store_no_lease_is_stale",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
    },
    faulty! {
        LeaseIdIsIgnored: "a settle finds the claim by event and group alone",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_replaced_lease_settles_nothing",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_is_of_its_group_alone",
            "leases::LSE-2::a_lease_is_of_its_partition_alone",
            "leases::LSE-2::a_lease_is_of_its_sequence_alone",
            "leases::LSE-2::a_lease_is_of_its_stream_alone",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "leases::LSE-2::a_made_up_lease_is_stale",
            "leases::LSE-2::a_replaced_lease_moves_no_expiry",
            "leases::LSE-2::a_retried_lease_is_stale",
            "leases::LSE-2::a_stale_lease_makes_no_dead_letter",
            "leases::LSE-4::an_expired_lease_holds_until_it_is_reclaimed_itself",
            "leases::LSE-5::the_same_consumer_reclaims_like_any_other",
            "partitions::LSE-2::one_sequence_in_two_partitions_is_two_deliveries",
            "receipts::LSE-3::a_made_up_lease_with_the_right_receipt_is_stale",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
        ],
    },
    faulty! {
        StaleRenewalIsWritten: "a renewal is written before the lease id is compared",
        says: "one lease, since an event is claimable",
        kills: [
            "leases::LSE-2::a_replaced_lease_moves_no_expiry",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
        ],
    },
    faulty! {
        AckOfNothingIsFine: "an ack that finds no claim is Ok",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::an_acked_lease_is_stale",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::hundreds_of_leases_settle_in_one_batch",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "distribution::DST-1::of_settles_on_two_handles_one_wins",
            "leases::LSE-2::the_other_fields_of_a_lease_are_not_compared",
            "leases::LSE-6::a_copy_from_before_a_renewal_still_settles",
            "leases::LSE-7::a_lease_is_settled_once",
            "leases::LSE-7::of_concurrent_settles_one_wins",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
        ],
    },
    faulty! {
        SecondSettleIsFine: "a lease that was settled may be settled otherwise, to no effect",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-7::a_lease_is_settled_once",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::hundreds_of_leases_settle_in_one_batch",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "leases::LSE-2::a_rejected_lease_is_stale",
            "leases::LSE-2::a_retried_lease_is_stale",
            "leases::LSE-2::a_stale_lease_makes_no_dead_letter",
            "leases::LSE-2::an_acked_lease_is_stale",
            "leases::LSE-2::the_other_fields_of_a_lease_are_not_compared",
            "leases::LSE-6::a_copy_from_before_a_renewal_still_settles",
            "leases::LSE-7::of_concurrent_settles_one_wins",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "settling::DLQ-2::a_given_up_event_is_settled",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
        ],
    },
    faulty! {
        RetriedLeaseAcks: "a lease that was retried can still be acked",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_retried_lease_is_stale",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "leases::LSE-2::the_other_fields_of_a_lease_are_not_compared",
            "leases::LSE-6::a_copy_from_before_a_renewal_still_settles",
            "leases::LSE-7::a_lease_is_settled_once",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "settling::DLQ-2::a_given_up_event_is_settled",
        ],
    },
    faulty! {
        DelayedRetryIsALongLease: "a retry with a delay lengthens the lease",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "inspect::OPS-3::group_info_counts_current_leases",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_counts_nothing_after_a_reset",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "settling::DLQ-2::at_the_last_attempt_a_delayed_retry_gives_up_too",
        ],
    },
    faulty! {
        RejectMayBeRepeated: "a second reject is Ok",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_rejected_lease_is_stale",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "leases::LSE-2::the_other_fields_of_a_lease_are_not_compared",
            "leases::LSE-6::a_copy_from_before_a_renewal_still_settles",
            "leases::LSE-7::a_lease_is_settled_once",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
        ],
    },
    faulty! {
        DeadLetterComesBeforeTheCheck: "a reject writes its dead letter before it looks at the lease",
        says: "no dead letters",
        kills: [
            "leases::LSE-2::a_stale_lease_makes_no_dead_letter",
        ],
    },
    faulty! {
        ReplayKeepsClaims: "leases from before a replay after a sequence still settle",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-1::a_replayed_lease_settles_nothing",
            "replay::RPL-1::an_expired_lease_is_replayed_too",
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
        ],
    },
    faulty! {
        ReplayOfEventsKeepsClaims: "leases from before a replay of chosen events still settle",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
        ],
    },
    faulty! {
        ResetKeepsClaims: "leases from before a reset still settle",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
            "reset::RPL-5::reset_may_go_forward",
            "reset::RPL-5::reset_of_one_partition_leaves_the_others",
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
        ],
    },
    faulty! {
        GroupIsNotCompared: "a lease settles whatever group it names",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_lease_is_of_its_group_alone",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "leases::LSE-2::a_lease_of_something_that_is_not_there_is_stale",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
        ],
    },
    faulty! {
        StreamIsNotCompared: "a lease settles whatever stream it names",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_lease_is_of_its_stream_alone",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "leases::LSE-2::a_lease_of_something_that_is_not_there_is_stale",
        ],
    },
    faulty! {
        PartitionIsNotCompared: "a lease settles whatever partition it names",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_lease_is_of_its_partition_alone",
            "leases::LSE-2::a_lease_of_something_that_is_not_there_is_stale",
            "partitions::LSE-2::one_sequence_in_two_partitions_is_two_deliveries",
        ],
    },
    faulty! {
        AnyLeaseOfTheGroupSettles: "any lease id of the group settles the sequence that is named",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_lease_is_of_its_sequence_alone",
            "receipts::LSE-3::a_made_up_lease_with_the_right_receipt_is_stale",
        ],
    },
    faulty! {
        LeaseIdIsAPrefix: "the beginning of the lease id is enough",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_made_up_lease_is_stale",
        ],
    },
    faulty! {
        LeaseIdIsAPattern: "the lease id is matched with LIKE",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_made_up_lease_is_stale",
        ],
    },
    faulty! {
        OddLeaseIdFails: "a lease id of another form than its own is a driver error",
        says: "Err(Failed)",
        kills: [
            "leases::LSE-2::a_made_up_lease_is_stale",
            "batches::LSE-8::each_result_is_that_of_its_lease",
        ],
    },
    faulty! {
        SettleInsertsTheDelivery: "a settle of what was never claimed marks it as done, although it errs",
        says: "one lease, since an event is claimable",
        kills: [
            "leases::LSE-2::a_made_up_lease_claims_nothing",
            "durability::DUR-1::a_reset_survives",
            "leases::LSE-2::a_lease_is_of_its_sequence_alone",
        ],
    },
    faulty! {
        SettleLooksUpItsGroup: "a settle of a missing stream or group says that it is missing",
        says: "Err(StreamNotFound)",
        kills: [
            "leases::LSE-2::a_lease_of_something_that_is_not_there_is_stale",
            "batches::LSE-8::each_result_is_that_of_its_lease",
        ],
    },
    faulty! {
        ConsumerIsCompared: "a lease settles for the consumer alone that fetched it",
        says: "StaleLease",
        kills: [
            "leases::LSE-2::the_other_fields_of_a_lease_are_not_compared",
        ],
    },
    faulty! {
        ExpiryIsCompared: "a lease settles with the expiry alone that it has now",
        says: "StaleLease",
        kills: [
            "leases::LSE-6::a_copy_from_before_a_renewal_still_settles",
            "leases::LSE-2::the_other_fields_of_a_lease_are_not_compared",
            "leases::LSE-4::an_expired_lease_can_be_renewed",
            "leases::LSE-6::a_renewal_counts_from_now",
            "settling::DLQ-3::a_renewed_last_lease_is_not_given_up_on",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
        ],
    },
    faulty! {
        LeaseEndsAMicrosecondEarly: "a lease can be reclaimed a microsecond before its expiry",
        says: "no claimable event",
        kills: [
            "leases::LSE-4::a_lease_is_not_reclaimable_before_its_expiry",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
        ],
    },
    faulty! {
        ExpiryIsKeptInMilliseconds: "the expiry loses its microseconds",
        says: "no claimable event",
        kills: [
            "leases::LSE-4::a_lease_is_not_reclaimable_before_its_expiry",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
        ],
    },
    faulty! {
        LeaseEndsAMicrosecondLate: "a lease cannot be reclaimed at its expiry, but after it",
        says: "one lease, since an event is claimable",
        kills: [
            "leases::LSE-4::a_lease_is_reclaimable_at_its_expiry",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::a_lease_that_nobody_heard_of_comes_again",
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
            "delivery::DLV-8::no_lease_outlasts_the_highest_timestamp",
            "distribution::DST-1::a_lease_replaced_elsewhere_is_stale",
            "durability::DUR-1::a_stale_lease_stays_stale",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_counts_expired_leases_that_nobody_reclaimed",
            "leases::LSE-2::a_replaced_lease_moves_no_expiry",
            "leases::LSE-2::a_replaced_lease_settles_nothing",
            "leases::LSE-4::a_clock_that_goes_back_ends_no_lease",
            "leases::LSE-4::an_expired_lease_holds_until_it_is_reclaimed_itself",
            "leases::LSE-5::every_claim_counts_as_an_attempt",
            "leases::LSE-5::reclaiming_gives_a_new_lease_and_the_next_attempt",
            "leases::LSE-5::the_same_consumer_reclaims_like_any_other",
            "log::LOG-4::an_expired_lease_changes_no_event",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "settling::DLQ-2::lost_leases_count_towards_the_last_attempt",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
        ],
    },
    faulty! {
        ExpiredLeaseIsVoid: "an expired lease settles nothing",
        says: "StaleLease",
        kills: [
            "leases::LSE-4::an_expired_lease_still_settles",
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "distribution::DST-1::a_lease_renewed_elsewhere_is_not_reclaimed",
            "leases::LSE-4::a_fetch_from_elsewhere_takes_no_lease_away",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
            "leases::LSE-4::an_expired_lease_holds_until_it_is_reclaimed_itself",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
            "settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay",
            "settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing",
            "settling::DLQ-3::a_last_lease_that_was_acked_late_is_no_dead_letter",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
            "wakeup::OPS-4::waiting_leaves_leases_alone",
        ],
    },
    faulty! {
        ExpiredLeaseCannotBeRenewed: "an expired lease cannot be renewed",
        says: "StaleLease",
        kills: [
            "leases::LSE-4::an_expired_lease_can_be_renewed",
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "inspect::OPS-3::group_info_changes_nothing",
            "progress::FRN-4::lag_changes_nothing",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
        ],
    },
    faulty! {
        LateRenewalIsNotKept: "a renewal after the expiry is answered and not stored",
        says: "no claimable event",
        kills: [
            "leases::LSE-4::an_expired_lease_can_be_renewed",
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "inspect::OPS-3::group_info_changes_nothing",
            "progress::FRN-4::lag_changes_nothing",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
        ],
    },
    faulty! {
        FetchTakesBackAllThatExpired: "a fetch ends all expired leases of the group",
        says: "StaleLease",
        kills: [
            "leases::LSE-4::an_expired_lease_holds_until_it_is_reclaimed_itself",
            "batches::LSE-8::a_batch_of_renewals_gives_the_renewed_leases_in_order",
            "distribution::DST-1::a_lease_renewed_elsewhere_is_not_reclaimed",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
            "leases::LSE-4::an_expired_lease_can_be_renewed",
            "settling::DLQ-3::a_renewed_last_lease_is_not_given_up_on",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
        ],
    },
    faulty! {
        EmptyFetchTakesBack: "a fetch that may give nothing ends the expired leases first",
        says: "StaleLease",
        kills: [
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
        ],
    },
    faulty! {
        FetchTakesBackElsewhere: "a fetch from some partitions ends the expired leases of all",
        says: "StaleLease",
        kills: [
            "leases::LSE-4::a_fetch_from_elsewhere_takes_no_lease_away",
            "settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing",
        ],
    },
    faulty! {
        LeaseFromTheFutureIsOver: "a lease that was claimed later than now counts as expired",
        says: "no claimable event",
        kills: [
            "leases::LSE-4::a_clock_that_goes_back_ends_no_lease",
        ],
    },
    faulty! {
        ReclaimKeepsTheLeaseId: "a reclaimed event keeps its lease id",
        says: "a new lease id",
        kills: [
            "leases::LSE-5::reclaiming_gives_a_new_lease_and_the_next_attempt",
            "durability::DUR-1::a_stale_lease_stays_stale",
            "leases::LSE-2::a_replaced_lease_moves_no_expiry",
            "leases::LSE-2::a_replaced_lease_settles_nothing",
            "leases::LSE-4::an_expired_lease_holds_until_it_is_reclaimed_itself",
            "leases::LSE-5::the_same_consumer_reclaims_like_any_other",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
        ],
    },
    faulty! {
        ReclaimIsNoAttempt: "a reclaim does not raise the attempt",
        says: "the attempt to be 2",
        kills: [
            "leases::LSE-5::reclaiming_gives_a_new_lease_and_the_next_attempt",
            "delivery::DLV-6::a_lease_that_nobody_heard_of_comes_again",
            "leases::LSE-2::a_replaced_lease_moves_no_expiry",
            "leases::LSE-4::a_clock_that_goes_back_ends_no_lease",
            "leases::LSE-4::an_expired_lease_still_settles",
            "leases::LSE-5::every_claim_counts_as_an_attempt",
            "leases::LSE-5::the_same_consumer_reclaims_like_any_other",
            "leases::LSE-6::a_renewed_lease_holds_until_its_new_expiry",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
            "settling::DLQ-1::a_delay_outlasts_the_lease",
            "settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay",
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
        ],
    },
    faulty! {
        ConsumerGetsItsLeaseBack: "a consumer that reclaims its own event has the old lease id",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-5::the_same_consumer_reclaims_like_any_other",
        ],
    },
    faulty! {
        RetryIsNoAttempt: "only expired leases raise the attempt",
        says: "the attempts to be [1, 2, 3, 4, 5]",
        kills: [
            "leases::LSE-5::every_claim_counts_as_an_attempt",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "distribution::DST-1::a_retry_elsewhere_counts_as_an_attempt",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "leases::LSE-2::a_retried_lease_is_stale",
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "leases::LSE-6::a_renewal_is_no_attempt",
            "leases::LSE-6::a_renewal_may_shorten",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "settling::DLQ-1::a_clock_that_goes_back_ends_no_delay",
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "settling::DLQ-1::a_retry_at_once_needs_no_clock",
            "settling::DLQ-1::the_attempt_goes_up_at_the_next_claim",
            "settling::DLQ-2::five_attempts_are_the_default",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "settling::DLQ-2::very_many_attempts_are_allowed",
        ],
    },
    faulty! {
        AttemptsAreOfTheGroup: "one counter of attempts serves the whole group",
        says: "the attempts to be [4, 1]",
        kills: [
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "delivery::DLV-6::a_lease_that_nobody_heard_of_comes_again",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "reset::RPL-5::attempts_begin_again_after_a_reset",
        ],
    },
    faulty! {
        AttemptsAreOfTheEvent: "attempts are counted with the event, for all groups",
        says: "the other group's attempts",
        kills: [
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "streams::STR-2::group_names_never_collide",
        ],
    },
    faulty! {
        RenewalAddsToTheExpiry: "a renewal counts from the old expiry",
        says: "expires_at less the duration",
        kills: [
            "leases::LSE-6::a_renewal_counts_from_now",
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "leases::LSE-6::a_renewal_may_shorten",
        ],
    },
    faulty! {
        RenewalIsNotKept: "a renewal is answered and not stored",
        says: "no claimable event",
        kills: [
            "leases::LSE-6::a_renewed_lease_holds_until_its_new_expiry",
            "batches::LSE-8::a_batch_of_renewals_gives_the_renewed_leases_in_order",
            "leases::LSE-6::a_renewal_may_shorten",
            "settling::DLQ-3::a_renewed_last_lease_is_not_given_up_on",
            "distribution::DST-1::a_lease_renewed_elsewhere_is_not_reclaimed",
            "fidelity::LOG-5::a_renewed_and_a_redelivered_lease_hold_the_same_event",
        ],
    },
    faulty! {
        RenewalNeverShortens: "a renewal keeps the later expiry",
        says: "expires_at less the duration",
        kills: [
            "leases::LSE-6::a_renewal_may_shorten",
        ],
    },
    faulty! {
        RenewalGivesANewLeaseId: "a renewal gives a new lease id, and the old one is void",
        says: "StaleLease",
        kills: [
            "leases::LSE-6::a_copy_from_before_a_renewal_still_settles",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_batch_of_renewals_gives_the_renewed_leases_in_order",
            "batches::LSE-8::a_lease_may_be_renewed_twice_in_a_batch",
            "batches::LSE-8::hundreds_of_leases_settle_in_one_batch",
            "leases::LSE-4::an_expired_lease_can_be_renewed",
            "leases::LSE-6::a_renewal_counts_from_now",
            "leases::LSE-6::a_renewal_is_no_attempt",
            "settling::DLQ-3::a_renewed_last_lease_is_not_given_up_on",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
            "delivery::DLV-8::no_lease_outlasts_the_highest_timestamp",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "durability::DUR-1::a_lease_survives",
            "partitions::LSE-2::one_sequence_in_two_partitions_is_two_deliveries",
            "progress::FRN-3::the_frontier_never_moves_back_by_itself",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
        ],
    },
    faulty! {
        RenewalIsANewClaim: "a renewed lease says that it was claimed now",
        says: "the renewed lease to be equal",
        kills: [
            "leases::LSE-6::a_renewal_counts_from_now",
        ],
    },
    faulty! {
        RenewalIsAnAttempt: "a renewal raises the attempt",
        says: "the attempt to be 1",
        kills: [
            "leases::LSE-6::a_renewal_is_no_attempt",
            "batches::LSE-8::a_batch_of_renewals_gives_the_renewed_leases_in_order",
            "leases::LSE-6::a_renewal_counts_from_now",
        ],
    },
    faulty! {
        SettleChecksFirst: "of concurrent settles all that saw the claim succeed",
        says: "the number of settles that won to be 1",
        kills: [
            "leases::LSE-7::of_concurrent_settles_one_wins",
        ],
    },
];

// LSE-1

#[derive(Default)]
struct LeaseIdIsEventAndAttempt(Aliases);

impl Tweak for LeaseIdIsEventAndAttempt {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        let alias = format!("{}:{}", lease.event.id, lease.attempt);
        self.0.rename(lease, LeaseId::new(alias));
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.0.restore(lease);
    }
}

/// Written backwards, so that it ends and begins with other characters.
#[derive(Default)]
struct LeaseIdIsTheClaim(Aliases);

impl Tweak for LeaseIdIsTheClaim {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        let seed = format!("{:?} {}", place_of(lease), lease.attempt);
        let hash = |salt: &str| {
            let bytes = seed.bytes().chain(salt.bytes());
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            })
        };
        let alias = format!("{:016x}{:016x}", hash("a"), hash("b"));
        self.0.rename(lease, LeaseId::new(alias));
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.0.restore(lease);
    }
}

#[derive(Default)]
struct LeaseIdIsACounter(Aliases, AtomicU64);

impl Tweak for LeaseIdIsACounter {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        let count = self.1.fetch_add(1, Ordering::Relaxed);
        self.0
            .rename(lease, LeaseId::new(format!("lease-of-node-17-{count}")));
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.0.restore(lease);
    }
}

// LSE-2

#[derive(Default)]
struct AckIsAlwaysFine;

#[async_trait]
impl Defect for AckIsAlwaysFine {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let _ = real.backend.ack(lease).await;
        Ok(())
    }
}

#[derive(Default)]
struct LeaseIdIsIgnored(Claims);

impl Tweak for LeaseIdIsIgnored {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        if let Some(current) = self.0.last_of(lease) {
            lease.lease_id = current.lease_id;
        }
    }
}

#[derive(Default)]
struct StaleRenewalIsWritten(Claims);

#[async_trait]
impl Defect for StaleRenewalIsWritten {
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
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = real.backend.renew(lease, duration).await;
        if let (Err(_), Some(current)) = (&renewed, self.0.last_of(lease)) {
            let _ = real.backend.renew(&current, duration).await;
        }
        renewed
    }
}

/// Leases that were settled, and how.
#[derive(Default)]
struct Settled(Mutex<HashMap<LeaseId, Step>>);

impl Settled {
    fn note(&self, step: Step, lease: &Lease) {
        if step != Step::Renew {
            lock(&self.0).insert(lease.lease_id.clone(), step);
        }
    }
    fn how(&self, lease: &Lease) -> Option<Step> {
        lock(&self.0).get(&lease.lease_id).copied()
    }
}

#[derive(Default)]
struct AckOfNothingIsFine(Settled);

impl Tweak for AckOfNothingIsFine {
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        self.0.note(step, lease);
    }
    fn forgives(&self, _: Timestamp, step: Step, lease: &Lease) -> bool {
        step == Step::Ack && self.0.how(lease) == Some(Step::Ack)
    }
}

#[derive(Default)]
struct SecondSettleIsFine(Settled);

impl Tweak for SecondSettleIsFine {
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        self.0.note(step, lease);
    }
    fn forgives(&self, _: Timestamp, step: Step, lease: &Lease) -> bool {
        step != Step::Renew && self.0.how(lease).is_some_and(|how| how != step)
    }
}

#[derive(Default)]
struct RetriedLeaseAcks(Settled);

impl Tweak for RetriedLeaseAcks {
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        self.0.note(step, lease);
    }
    fn forgives(&self, _: Timestamp, step: Step, lease: &Lease) -> bool {
        step == Step::Ack && self.0.how(lease) == Some(Step::Retry)
    }
}

#[derive(Default)]
struct DelayedRetryIsALongLease;

#[async_trait]
impl Defect for DelayedRetryIsALongLease {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        if options.delay == RetryDelay::NONE {
            return real.backend.retry(lease, options).await;
        }
        let duration = LeaseDuration::new(options.delay.as_duration())?;
        let renewed = real.backend.renew(lease, duration).await;
        renewed.map(|_| RetryOutcome::Retrying)
    }
}

#[derive(Default)]
struct RejectMayBeRepeated(Settled);

impl Tweak for RejectMayBeRepeated {
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        self.0.note(step, lease);
    }
    fn forgives(&self, _: Timestamp, step: Step, lease: &Lease) -> bool {
        step == Step::Reject && self.0.how(lease) == Some(Step::Reject)
    }
}

#[derive(Default)]
struct DeadLetterComesBeforeTheCheck(Mutex<Vec<DeadLetter>>);

#[async_trait]
impl Defect for DeadLetterComesBeforeTheCheck {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        let rejected = real.backend.reject(lease, reason).await;
        if rejected == Err(Error::StaleLease) {
            lock(&self.0).push(DeadLetter {
                event: lease.event.clone(),
                group: lease.group.clone(),
                attempt: lease.attempt,
                reason: reason.clone(),
                dead_at: real.now(),
            });
        }
        rejected
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

/// Leases that are forgiven once their group went back.
#[derive(Default)]
struct Former {
    claims: Claims,
    forgiven: Mutex<HashSet<LeaseId>>,
}

impl Former {
    fn forgive_all(&self) {
        let ids = self.claims.all().into_iter().map(|claim| claim.lease_id);
        lock(&self.forgiven).extend(ids);
    }
    fn is_forgiven(&self, lease: &Lease) -> bool {
        lock(&self.forgiven).contains(&lease.lease_id)
    }
}

#[derive(Default)]
struct ReplayKeepsClaims(Former);

impl Tweak for ReplayKeepsClaims {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.claims.note(lease);
    }
    fn went_back(&self, how: Back<'_>) {
        if matches!(
            how,
            Back::Replay(Replay::After { .. } | Replay::AfterEach(_))
        ) {
            self.0.forgive_all();
        }
    }
    fn forgives(&self, _: Timestamp, step: Step, lease: &Lease) -> bool {
        step == Step::Ack && self.0.is_forgiven(lease)
    }
}

#[derive(Default)]
struct ReplayOfEventsKeepsClaims(Former);

impl Tweak for ReplayOfEventsKeepsClaims {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.claims.note(lease);
    }
    fn went_back(&self, how: Back<'_>) {
        if matches!(how, Back::Replay(Replay::Events(_))) {
            self.0.forgive_all();
        }
    }
    fn forgives(&self, _: Timestamp, step: Step, lease: &Lease) -> bool {
        step == Step::Ack && self.0.is_forgiven(lease)
    }
}

#[derive(Default)]
struct ResetKeepsClaims(Former);

impl Tweak for ResetKeepsClaims {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.claims.note(lease);
    }
    fn went_back(&self, how: Back<'_>) {
        if matches!(how, Back::Reset) {
            self.0.forgive_all();
        }
    }
    fn forgives(&self, _: Timestamp, step: Step, lease: &Lease) -> bool {
        step == Step::Ack && self.0.is_forgiven(lease)
    }
}

#[derive(Default)]
struct GroupIsNotCompared(Claims);

impl Tweak for GroupIsNotCompared {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        if let Some(claim) = self.0.by_id(&lease.lease_id) {
            lease.group = claim.group;
        }
    }
}

#[derive(Default)]
struct StreamIsNotCompared(Claims);

impl Tweak for StreamIsNotCompared {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        if let Some(claim) = self.0.by_id(&lease.lease_id) {
            lease.event.stream = claim.event.stream;
        }
    }
}

#[derive(Default)]
struct PartitionIsNotCompared(Claims);

impl Tweak for PartitionIsNotCompared {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        if let Some(claim) = self.0.by_id(&lease.lease_id) {
            lease.event.partition = claim.event.partition;
        }
    }
}

#[derive(Default)]
struct AnyLeaseOfTheGroupSettles(Claims);

impl Tweak for AnyLeaseOfTheGroupSettles {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        let claim = self.0.by_id(&lease.lease_id);
        let is_neighbour = |claim: &Lease| {
            let (here, there) = (&claim.event, &lease.event);
            claim.group == lease.group
                && (&here.stream, here.partition) == (&there.stream, there.partition)
                && here.sequence != there.sequence
        };
        if claim.is_some_and(|claim| is_neighbour(&claim))
            && let Some(named) = self.0.last_of(lease)
        {
            lease.lease_id = named.lease_id;
        }
    }
}

#[derive(Default)]
struct LeaseIdIsAPrefix(Claims);

impl Tweak for LeaseIdIsAPrefix {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        if let Some(current) = self.0.last_of(lease)
            && !lease.lease_id.as_str().is_empty()
            && current
                .lease_id
                .as_str()
                .starts_with(lease.lease_id.as_str())
        {
            lease.lease_id = current.lease_id;
        }
    }
}

#[derive(Default)]
struct LeaseIdIsAPattern(Claims);

impl Tweak for LeaseIdIsAPattern {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        if let Some(current) = self.0.last_of(lease)
            && lease.lease_id.as_str() == "%"
        {
            lease.lease_id = current.lease_id;
        }
    }
}

#[derive(Default)]
struct OddLeaseIdFails;

#[async_trait]
impl Defect for OddLeaseIdFails {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let id = lease.lease_id.as_str();
        let is_hex = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let acked = real.backend.ack(lease).await;
        match acked {
            Err(Error::StaleLease) if !is_hex && !id.starts_with("void") => Err(Error::Failed(
                Cause::new("invalid input syntax for type uuid"),
            )),
            other => other,
        }
    }
}

#[derive(Default)]
struct SettleInsertsTheDelivery {
    claims: Claims,
    inserted: Mutex<HashSet<Place>>,
}

impl Tweak for SettleInsertsTheDelivery {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.claims.note(lease);
    }
    fn keeps(&self, lease: &Lease) -> bool {
        !lock(&self.inserted).contains(&place_of(lease))
    }
    fn forgives(&self, _: Timestamp, step: Step, lease: &Lease) -> bool {
        if step == Step::Ack && self.claims.last_of(lease).is_none() {
            lock(&self.inserted).insert(place_of(lease));
        }
        false
    }
}

#[derive(Default)]
struct SettleLooksUpItsGroup;

#[async_trait]
impl Defect for SettleLooksUpItsGroup {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let retried = real.backend.retry(lease, options).await;
        if retried == Err(Error::StaleLease) {
            real.backend.lag(&lease.event.stream, &lease.group).await?;
        }
        retried
    }
}

#[derive(Default)]
struct ConsumerIsCompared(Claims);

impl Tweak for ConsumerIsCompared {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        let claim = self.0.by_id(&lease.lease_id);
        if claim.is_some_and(|claim| claim.consumer != lease.consumer) {
            void(lease);
        }
    }
}

#[derive(Default)]
struct ExpiryIsCompared(Claims);

impl Tweak for ExpiryIsCompared {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        let claim = self.0.by_id(&lease.lease_id);
        if claim.is_some_and(|claim| claim.expires_at != lease.expires_at) {
            void(lease);
        }
    }
}

// LSE-4

/// Leases in the store last that much longer or shorter than what is said.
fn stretch(options: &mut FetchOptions, by: impl FnOnce(Duration) -> Duration) {
    let duration = by(options.lease_duration.as_duration());
    options.lease_duration = LeaseDuration::new(duration).unwrap_or(options.lease_duration);
}

const MICROSECOND: Duration = Duration::from_micros(1);

#[derive(Default)]
struct LeaseEndsAMicrosecondEarly;

impl Tweak for LeaseEndsAMicrosecondEarly {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        stretch(options, |duration| duration.saturating_sub(MICROSECOND));
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        if lease.expires_at.saturating_since(lease.leased_at) > MICROSECOND {
            lease.expires_at = lease.expires_at.saturating_add(MICROSECOND);
        }
    }
}

#[derive(Default)]
struct LeaseEndsAMicrosecondLate;

impl Tweak for LeaseEndsAMicrosecondLate {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        if options.lease_duration.as_duration() < Duration::from_secs(86_400) {
            stretch(options, |duration| duration + MICROSECOND);
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        if lease.expires_at.saturating_since(lease.leased_at) < Duration::from_secs(86_401) {
            lease.expires_at = lease.expires_at.saturating_sub(MICROSECOND);
        }
    }
}

/// How far a time is from the last whole millisecond.
fn beyond_the_millisecond(time: Timestamp) -> Duration {
    Duration::from_micros(time.as_micros().rem_euclid(1_000).unsigned_abs())
}

#[derive(Default)]
struct ExpiryIsKeptInMilliseconds(Mutex<Duration>);

impl Tweak for ExpiryIsKeptInMilliseconds {
    fn asked(&self, now: Timestamp, options: &mut FetchOptions) {
        let until = now.saturating_add(options.lease_duration.as_duration());
        let rest = beyond_the_millisecond(until);
        *lock(&self.0) = Duration::ZERO;
        if options.lease_duration.as_duration() > rest {
            stretch(options, |duration| duration - rest);
            *lock(&self.0) = rest;
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        lease.expires_at = lease.expires_at.saturating_add(*lock(&self.0));
    }
}

#[derive(Default)]
struct ExpiredLeaseIsVoid(Claims);

impl Tweak for ExpiredLeaseIsVoid {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, now: Timestamp, step: Step, lease: &mut Lease) {
        let claim = self.0.by_id(&lease.lease_id);
        if step != Step::Renew && claim.is_some_and(|claim| claim.expires_at <= now) {
            void(lease);
        }
    }
}

#[derive(Default)]
struct ExpiredLeaseCannotBeRenewed(Claims);

impl Tweak for ExpiredLeaseCannotBeRenewed {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, now: Timestamp, step: Step, lease: &mut Lease) {
        let claim = self.0.by_id(&lease.lease_id);
        if step == Step::Renew && claim.is_some_and(|claim| claim.expires_at <= now) {
            void(lease);
        }
    }
}

#[derive(Default)]
struct LateRenewalIsNotKept;

#[async_trait]
impl Defect for LateRenewalIsNotKept {
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        if lease.expires_at > real.now() {
            return real.backend.renew(lease, duration).await;
        }
        let back = LeaseDuration::new(MICROSECOND)?;
        let mut renewed = real.backend.renew(lease, back).await?;
        // There is no lease that ends at once, so the event is given back instead.
        let _ = real.backend.retry(lease, &RetryOptions::new()).await;
        renewed.expires_at = real.now().saturating_add(duration.as_duration());
        Ok(renewed)
    }
}

/// Leases that are void since a fetch.
#[derive(Default)]
struct TakenBack {
    claims: Claims,
    void: Mutex<HashSet<LeaseId>>,
}

impl TakenBack {
    fn take(&self, now: Timestamp) {
        let mut claims = self.claims.all();
        claims.retain(|claim| claim.expires_at <= now);
        lock(&self.void).extend(claims.into_iter().map(|claim| claim.lease_id));
    }
    fn spoil(&self, lease: &mut Lease) {
        if lock(&self.void).contains(&lease.lease_id) {
            void(lease);
        }
    }
}

#[derive(Default)]
struct FetchTakesBackAllThatExpired(TakenBack);

impl Tweak for FetchTakesBackAllThatExpired {
    fn asked(&self, now: Timestamp, options: &mut FetchOptions) {
        if options.limit > 0 && options.partitions == Partitions::All {
            self.0.take(now);
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.claims.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.0.spoil(lease);
    }
}

#[derive(Default)]
struct EmptyFetchTakesBack(TakenBack);

impl Tweak for EmptyFetchTakesBack {
    fn asked(&self, now: Timestamp, options: &mut FetchOptions) {
        if options.limit == 0 {
            self.0.take(now);
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.claims.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.0.spoil(lease);
    }
}

#[derive(Default)]
struct FetchTakesBackElsewhere(TakenBack);

impl Tweak for FetchTakesBackElsewhere {
    fn asked(&self, now: Timestamp, options: &mut FetchOptions) {
        if matches!(&options.partitions, Partitions::Only(some) if !some.is_empty()) {
            self.0.take(now);
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.claims.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.0.spoil(lease);
    }
}

#[derive(Default)]
struct LeaseFromTheFutureIsOver(Claims);

#[async_trait]
impl Tweak for LeaseFromTheFutureIsOver {
    async fn before_fetch(&self, real: &Real, _: &StreamName, _: &GroupName, _: &mut FetchOptions) {
        for claim in self.0.all() {
            if claim.leased_at > real.now() {
                let _ = real.backend.retry(&claim, &RetryOptions::new()).await;
            }
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
}

// LSE-5

#[derive(Default)]
struct ReclaimKeepsTheLeaseId(Claims, Aliases);

impl Tweak for ReclaimKeepsTheLeaseId {
    fn claimed(&self, now: Timestamp, lease: &mut Lease) {
        if let Some(former) = self
            .0
            .last_of(lease)
            .filter(|former| former.expires_at <= now)
        {
            self.1.rename(lease, former.lease_id);
        }
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.1.restore(lease);
    }
}

#[derive(Default)]
struct ReclaimIsNoAttempt(Claims);

impl Tweak for ReclaimIsNoAttempt {
    fn claimed(&self, now: Timestamp, lease: &mut Lease) {
        if let Some(former) = self
            .0
            .last_of(lease)
            .filter(|former| former.expires_at <= now)
        {
            lease.attempt = former.attempt;
        }
        self.0.note(lease);
    }
}

#[derive(Default)]
struct ConsumerGetsItsLeaseBack(Claims, Aliases);

impl Tweak for ConsumerGetsItsLeaseBack {
    fn claimed(&self, now: Timestamp, lease: &mut Lease) {
        let is_back =
            |former: &Lease| former.expires_at <= now && former.consumer == lease.consumer;
        if let Some(former) = self.0.last_of(lease).filter(is_back) {
            self.1.rename(lease, former.lease_id);
        }
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.1.restore(lease);
    }
}

#[derive(Default)]
struct RetryIsNoAttempt(Claims);

impl Tweak for RetryIsNoAttempt {
    fn claimed(&self, now: Timestamp, lease: &mut Lease) {
        if let Some(former) = self.0.last_of(lease).filter(|_| lease.attempt > 1) {
            let is_lost = former.expires_at <= now;
            lease.attempt = former.attempt + u32::from(is_lost);
        }
        self.0.note(lease);
    }
}

#[derive(Default)]
struct AttemptsAreOfTheGroup(Mutex<HashMap<(StreamName, GroupName), u32>>);

impl Tweak for AttemptsAreOfTheGroup {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        let group = (lease.event.stream.clone(), lease.group.clone());
        let mut highest = lock(&self.0);
        let highest = highest.entry(group).or_default();
        *highest = lease.attempt.max(*highest);
        lease.attempt = *highest;
    }
}

#[derive(Default)]
struct AttemptsAreOfTheEvent(Claims);

impl Tweak for AttemptsAreOfTheEvent {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
        let mut claims = self.0.all();
        claims.retain(|claim| claim.event == lease.event && claim.group != lease.group);
        lease.attempt += u32::try_from(claims.len()).unwrap_or_default();
    }
}

// LSE-6

#[derive(Default)]
struct RenewalAddsToTheExpiry;

impl Tweak for RenewalAddsToTheExpiry {
    fn renewing(&self, now: Timestamp, lease: &Lease, duration: &mut Duration) {
        let sum = *duration + lease.expires_at.saturating_since(now);
        *duration = sum.min(Duration::from_secs(365 * 24 * 60 * 60));
    }
}

#[derive(Default)]
struct RenewalIsNotKept;

#[async_trait]
impl Defect for RenewalIsNotKept {
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let left = lease.expires_at.saturating_since(real.now());
        let as_before = LeaseDuration::new(left).unwrap_or(duration);
        let mut renewed = real.backend.renew(lease, as_before).await?;
        renewed.expires_at = real.now().saturating_add(duration.as_duration());
        Ok(renewed)
    }
}

#[derive(Default)]
struct RenewalNeverShortens;

impl Tweak for RenewalNeverShortens {
    fn renewing(&self, now: Timestamp, lease: &Lease, duration: &mut Duration) {
        *duration = lease.expires_at.saturating_since(now).max(*duration);
    }
}

#[derive(Default)]
struct RenewalGivesANewLeaseId(Aliases, Mutex<HashSet<LeaseId>>);

impl Tweak for RenewalGivesANewLeaseId {
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        lock(&self.1).insert(lease.lease_id.clone());
        self.0.restore(lease);
        self.0.rename(lease, LeaseId::generate());
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        if lock(&self.1).contains(&lease.lease_id) {
            void(lease);
        }
        self.0.restore(lease);
    }
}

#[derive(Default)]
struct RenewalIsANewClaim;

impl Tweak for RenewalIsANewClaim {
    fn renewed(&self, now: Timestamp, lease: &mut Lease) {
        lease.leased_at = now;
    }
}

#[derive(Default)]
struct RenewalIsAnAttempt;

impl Tweak for RenewalIsAnAttempt {
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        lease.attempt += 1;
    }
}

// LSE-7

/// Acks of one lease wait a little for each other, so that it shows.
#[derive(Default)]
struct SettleChecksFirst(Mutex<HashMap<LeaseId, u32>>);

#[async_trait]
impl Defect for SettleChecksFirst {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let inside = |change: i32| {
            let mut acks = lock(&self.0);
            let inside = acks.entry(lease.lease_id.clone()).or_default();
            *inside = inside.saturating_add_signed(change);
            *inside
        };
        inside(1);
        let mut is_shared = false;
        for _ in 0..500 {
            is_shared = inside(0) > 1;
            if is_shared {
                break;
            }
            tokio::task::yield_now().await;
        }
        let acked = real.backend.ack(lease).await;
        tokio::task::yield_now().await;
        inside(-1);
        if is_shared { Ok(()) } else { acked }
    }
}
