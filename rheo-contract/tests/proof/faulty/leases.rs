//! Defects that the cases of `leases` are there for.

use rheo_core::{Lease, Result, async_trait};

use super::Faulty;
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[faulty! {
    AckIsAlwaysFine: "an ack of any lease is Ok",
    says: "Err(StaleLease)",
    kills: [
            "leases::LSE-2::a_replaced_lease_settles_nothing",
            "lifecycle::ERR-7::a_closed_handle_settles_no_batch",
            "lifecycle::ERR-7::a_closed_handle_settles_nothing",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
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
