//! Correct backends that use the freedom the rules leave: all of them must be certified.

use std::sync::Arc;

use rheo_contract::ClockControl;
use rheo_core::Backend;

use crate::defect::{Defect, Real, Wrapped};

/// A correct backend of its own kind.
pub(crate) trait Variant: Sync {
    fn name(&self) -> &'static str;

    fn clock(&self) -> ClockControl {
        ClockControl::Suite
    }

    fn wrap(&self, real: Real) -> Arc<dyn Backend>;
}

pub(crate) fn all() -> impl Iterator<Item = &'static dyn Variant> {
    const ALL: &[&dyn Variant] = &[&AsItIs, &StoreTime];
    ALL.iter().copied()
}

/// Nothing different at all.
struct Nothing;

impl Defect for Nothing {}

struct AsItIs;

impl Variant for AsItIs {
    fn name(&self) -> &'static str {
        "AsItIs"
    }

    fn wrap(&self, real: Real) -> Arc<dyn Backend> {
        Arc::new(Wrapped {
            real,
            defect: Box::new(Nothing),
        })
    }
}

/// Its store knows its own time only.
struct StoreTime;

impl Variant for StoreTime {
    fn name(&self) -> &'static str {
        "StoreTime"
    }

    fn clock(&self) -> ClockControl {
        ClockControl::Store
    }

    fn wrap(&self, real: Real) -> Arc<dyn Backend> {
        Arc::new(Wrapped {
            real,
            defect: Box::new(Nothing),
        })
    }
}
