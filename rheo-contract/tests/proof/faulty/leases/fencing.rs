//! Settles by others than the current claim.

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{
    Cause, DeadLetter, DeadLetterOptions, Error, FetchOptions, GroupName, Lease, LeaseDuration,
    LeaseId, Reason, Replay, Result, RetryDelay, RetryOptions, RetryOutcome, StreamName, Timestamp,
    async_trait,
};

use super::Settled;
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Back, Claims, Place, Step, Tweak, lock, place_of, void};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        AckIsAlwaysFine: "an ack of any lease is Ok",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_replaced_lease_settles_nothing",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::hundreds_of_leases_are_over_after_one_batch",
            "batches::LSE-8::hundreds_of_leases_settle_in_one_batch",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
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
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
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
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
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
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
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
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
        ],
    },
    faulty! {
        AckOfNothingIsFine: "an ack that finds no claim is Ok",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::an_acked_lease_is_stale",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::hundreds_of_leases_are_over_after_one_batch",
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
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
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
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "settling::DLQ-2::a_given_up_event_is_settled",
        ],
    },
    faulty! {
        DelayedRetryIsALongLease: "a retry with a delay lengthens the lease",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "inspect::OPS-3::group_info_counts_current_leases",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_counts_nothing_after_a_reset",
            "inspect::OPS-3::group_info_counts_nothing_of_other_groups",
            "inspect::OPS-3::group_info_counts_what_a_replay_left",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
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
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
        ],
    },
    faulty! {
        DeadLetterComesBeforeTheCheck: "a reject writes its dead letter before it looks at the lease",
        says: "no dead letters",
        kills: [
            "leases::LSE-2::a_stale_lease_makes_no_dead_letter",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
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
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
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
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
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
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
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
];

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
