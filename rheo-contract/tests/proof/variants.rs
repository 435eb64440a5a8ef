//! Correct backends that use the freedom the rules leave: all of them must be certified.

mod answering;
mod checking;
mod declaring;
mod delivering;
mod dividing;
mod landing;
mod locking;
mod querying;

use std::sync::Arc;

use rheo_contract::ClockControl;
use rheo_core::{Backend, Clock};

use crate::defect::{Defect, Real, Wrapped};

/// A correct backend of its own kind.
pub(crate) trait Variant: Sync {
    fn name(&self) -> &'static str;

    fn clock(&self) -> ClockControl {
        ClockControl::Suite
    }

    /// The clock that the store goes by, where it is not just the one handed out.
    fn tick(&self, clock: Arc<dyn Clock>) -> Arc<dyn Clock> {
        clock
    }

    fn wrap(&self, real: Real) -> Arc<dyn Backend>;
}

pub(crate) fn all() -> impl Iterator<Item = &'static dyn Variant> {
    let times: [&'static dyn Variant; 5] = [
        &AsItIs,
        &StoreTime,
        &CoarseStoreTime,
        &SkewedStoreTime("StoreTimeAnHourLate", -3_600_000_000),
        &SkewedStoreTime("StoreTimeTwoSecondsEarly", 2_000_000),
    ];
    let others = [
        answering::ALL,
        checking::ALL,
        declaring::ALL,
        delivering::ALL,
        dividing::ALL,
        landing::ALL,
        locking::ALL,
        querying::ALL,
    ];
    times
        .into_iter()
        .chain(others.into_iter().flatten().copied())
}

/// A variant of a name that wraps the memory backend in something.
struct Differing<D>(&'static str, fn() -> D);

impl<D: Defect> Variant for Differing<D> {
    fn name(&self) -> &'static str {
        self.0
    }

    fn wrap(&self, real: Real) -> Arc<dyn Backend> {
        let defect = Box::new(self.1());
        Arc::new(Wrapped { real, defect })
    }
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
        AsItIs.wrap(real)
    }
}

/// Its store's time stands still for ten milliseconds and then jumps.
struct CoarseStoreTime;

impl Variant for CoarseStoreTime {
    fn name(&self) -> &'static str {
        "CoarseStoreTime"
    }

    fn clock(&self) -> ClockControl {
        ClockControl::Store
    }

    fn tick(&self, clock: Arc<dyn Clock>) -> Arc<dyn Clock> {
        Arc::new(Coarse(clock))
    }

    fn wrap(&self, real: Real) -> Arc<dyn Backend> {
        AsItIs.wrap(real)
    }
}

#[derive(Debug)]
struct Coarse(Arc<dyn Clock>);

impl Clock for Coarse {
    fn now(&self) -> rheo_core::Timestamp {
        const TICK: i64 = 10_000;
        let micros = self.0.now().as_micros();
        rheo_core::Timestamp::from_micros(micros - micros.rem_euclid(TICK)).expect("in range")
    }
}

/// Its store's clock is wrong by some microseconds, as servers' clocks are.
struct SkewedStoreTime(&'static str, i64);

impl Variant for SkewedStoreTime {
    fn name(&self) -> &'static str {
        self.0
    }

    fn clock(&self) -> ClockControl {
        ClockControl::Store
    }

    fn tick(&self, clock: Arc<dyn Clock>) -> Arc<dyn Clock> {
        Arc::new(Skewed(clock, self.1))
    }

    fn wrap(&self, real: Real) -> Arc<dyn Backend> {
        AsItIs.wrap(real)
    }
}

#[derive(Debug)]
struct Skewed(Arc<dyn Clock>, i64);

impl Clock for Skewed {
    fn now(&self) -> rheo_core::Timestamp {
        let micros = self.0.now().as_micros();
        rheo_core::Timestamp::from_micros(micros + self.1).expect("in range")
    }
}
