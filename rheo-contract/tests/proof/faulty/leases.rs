//! Defects that the cases of `leases` are there for.

use rheo_core::{Lease, Result, async_trait};

use super::Faulty;
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[faulty! {
    AckIsAlwaysFine: "an ack of any lease is Ok",
    says: "Err(StaleLease)",
    kills: ["leases::LSE-2::a_replaced_lease_settles_nothing"],
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
