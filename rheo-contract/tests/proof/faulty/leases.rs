//! Defects that the cases of `leases` are there for.

mod attempts;
mod expiry;
mod fencing;
mod ids;
mod renewal;
mod winners;

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{Lease, LeaseId};

use super::Faulty;
use crate::tweak::{Step, lock};

pub(super) const FAULTY: &[&[Faulty]] = &[
    ids::FAULTY,
    fencing::FAULTY,
    expiry::FAULTY,
    attempts::FAULTY,
    renewal::FAULTY,
    winners::FAULTY,
];

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
