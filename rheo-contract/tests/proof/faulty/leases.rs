//! Defects that the cases of `leases` are there for.

use rheo_core::{Lease, Result, async_trait};

use super::Faulty;
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[faulty! {
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
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
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
            "settling::DLQ-1::each_delay_is_its_own",
            "settling::DLQ-2::a_given_up_event_is_settled",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "streams::STR-2::stream_and_group_are_not_run_together",
            "unavailable::ERR-4::without_a_store_each_lease_of_a_batch_has_its_error",
            "unavailable::ERR-4::without_a_store_no_lease_is_stale",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
}];

#[derive(Default)]
struct AckIsAlwaysFine;

#[async_trait]
impl Defect for AckIsAlwaysFine {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let _ = real.backend.ack(lease).await;
        Ok(())
    }
}
