//! Durations at which some backend's arithmetic ends.

use std::time::Duration;

/// Short ones show rounding, long ones what does not fit a number of milliseconds or microseconds, or
/// what a native store cuts; all are allowed for leases and delays.
pub(crate) const DURATIONS: [Duration; 9] = [
    Duration::from_micros(1),
    Duration::from_micros(1_500),
    Duration::from_micros(999_999),
    // A quarter of an hour, half a day: what some queues allow at most.
    Duration::from_micros(15 * 60 * 1_000_000 + 1),
    Duration::from_micros(12 * HOUR + 1),
    Duration::from_micros(7 * 24 * HOUR + 1),
    // More milliseconds than 31 bits hold, then 32.
    Duration::from_micros(25 * 24 * HOUR + 1),
    Duration::from_micros(50 * 24 * HOUR + 1),
    Duration::from_micros(365 * 24 * HOUR),
];

/// In microseconds.
const HOUR: u64 = 3_600_000_000;

/// The smallest difference between two points in time.
pub(crate) const MICROSECOND: Duration = Duration::from_micros(1);
