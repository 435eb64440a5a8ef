//! Where the time comes from.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use crate::Timestamp;

/// The only source of time for a backend.
///
/// A backend takes an `Arc<dyn Clock>` when it is built and asks it whenever it needs the time, so
/// that a test can decide what time it is. Clocks may stand still and may jump; a backend must be
/// right all the same.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Timestamp::UNIX_EPOCH.saturating_add(after),
            Err(before) => Timestamp::UNIX_EPOCH.saturating_sub(before.duration()),
        }
    }
}

/// A clock that moves only when told to.
///
/// ```
/// use std::time::Duration;
/// use rheo_core::{Clock, ManualClock, Timestamp};
///
/// let clock = ManualClock::new("2026-01-01T00:00:00Z".parse()?);
/// clock.advance(Duration::from_secs(30));
/// assert_eq!(clock.now(), "2026-01-01T00:00:30Z".parse()?);
/// # Ok::<(), rheo_core::Error>(())
/// ```
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.as_micros()))
    }

    /// Puts the clock to `now`, forwards or backwards.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_micros(), Ordering::SeqCst);
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().saturating_add(by));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst)).unwrap_or(Timestamp::MAX)
    }
}
