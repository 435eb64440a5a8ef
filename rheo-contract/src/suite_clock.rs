//! The time that a run goes by: the suite's own, or the store's as far as the suite can tell it.

use std::sync::Arc;
use std::time::Duration;

use rheo_core::{
    Backend, Clock, ManualClock, NewEvent, Result, StreamName, StreamOptions, SystemClock,
    Timestamp,
};
use serde_json::json;

/// When a case begins, where the time can be set: with microseconds, so that their loss shows.
const START_MICROS: i64 = 1_767_270_896_123_457;

/// The clock of one case.
pub(crate) enum SuiteClock {
    /// The suite puts it where it likes.
    Manual(Arc<ManualClock>),
    /// The store's: the suite waits.
    Store(StoreClock),
}

impl SuiteClock {
    /// A clock that the suite controls.
    pub(crate) fn manual() -> Result<Self> {
        let start = Timestamp::from_micros(START_MICROS)?;
        Ok(Self::Manual(Arc::new(ManualClock::new(start))))
    }

    /// The time now, as near as the suite knows it.
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::Manual(clock) => clock.now(),
            Self::Store(clock) => clock.now(),
        }
    }

    /// What the harness gets.
    pub(crate) fn handed_out(&self) -> Arc<dyn Clock> {
        match self {
            Self::Manual(clock) => Arc::clone(clock) as Arc<dyn Clock>,
            Self::Store(_) => Arc::new(SystemClock),
        }
    }
}

/// The store's time: this machine's, corrected by how far the store's clock is from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StoreClock {
    ahead_micros: i64,
    unsure: Duration,
}

impl StoreClock {
    /// How many events are appended to learn it; the quickest tells the most.
    const SAMPLES: usize = 5;

    /// Learns it from the timestamps of a few appends to a stream of its own.
    ///
    /// Which of two clocks is right plays no part: a store an hour late is as good as any, as long
    /// as all its times are.
    pub(crate) async fn learn(backend: &dyn Backend) -> Result<Self> {
        let stream = StreamName::new("what-time-is-it")?;
        backend
            .create_stream(&stream, &StreamOptions::default())
            .await?;
        let mut best: Option<Self> = None;
        for _ in 0..Self::SAMPLES {
            let asked = SystemClock.now();
            let event = NewEvent::new("asked", json!({}))?;
            let told = backend.append(&stream, event).await?.timestamp;
            let answered = SystemClock.now();
            let unsure = answered.saturating_since(asked) / 2;
            let middle = asked.saturating_add(unsure);
            if best.is_none_or(|best| unsure < best.unsure) {
                best = Some(Self {
                    ahead_micros: told.as_micros() - middle.as_micros(),
                    unsure,
                });
            }
        }
        Ok(best.unwrap_or_default())
    }

    /// The time now, as near as the suite knows it.
    pub(crate) fn now(self) -> Timestamp {
        let here = SystemClock.now();
        let off = Duration::from_micros(self.ahead_micros.unsigned_abs());
        if self.ahead_micros < 0 {
            here.saturating_sub(off)
        } else {
            here.saturating_add(off)
        }
    }

    /// Waits until the store has surely passed that moment.
    pub(crate) async fn wait_until(self, moment: Timestamp) {
        let left = moment.saturating_since(self.now());
        tokio::time::sleep(left + self.unsure).await;
    }
}
