//! Leases that are settled twice.

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{Lease, LeaseId, Result, Timestamp, async_trait};

use super::Settled;
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Step, Tweak, lock};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        SecondSettleIsFine: "a lease that was settled may be settled otherwise, to no effect",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-7::a_lease_is_settled_once",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::hundreds_of_leases_are_over_after_one_batch",
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
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "settling::DLQ-2::a_given_up_event_is_settled",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
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
