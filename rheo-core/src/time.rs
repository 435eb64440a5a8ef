//! Points in time and durations, in whole microseconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;

/// A point in time: UTC, microsecond precision, years 1 to 9999.
///
/// Shown and serialized as RFC 3339 with six digits, e.g. `2026-11-29T16:25:26.000001Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 0001-01-01T00:00:00Z.
    pub const MIN: Self = Self(-62_135_596_800_000_000);
    /// 9999-12-30T22:00:00Z, the last instant that every store and text format can hold.
    pub const MAX: Self = Self(253_402_207_200_000_000);
    /// 1970-01-01T00:00:00Z.
    pub const UNIX_EPOCH: Self = Self(0);

    /// From microseconds since 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] outside [`MIN`](Self::MIN)..=[`MAX`](Self::MAX).
    pub fn from_micros(micros: i64) -> Result<Self, Error> {
        if (Self::MIN.0..=Self::MAX.0).contains(&micros) {
            Ok(Self(micros))
        } else {
            Err(Error::invalid(
                "timestamp",
                format_args!("{micros} µs since 1970"),
                "0001-01-01T00:00:00Z to 9999-12-30T22:00:00Z",
            ))
        }
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// `self + duration`, at most [`MAX`](Self::MAX); what is below a microsecond is cut off.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros).min(Self::MAX.0))
    }

    /// `self - duration`, at least [`MIN`](Self::MIN); what is below a microsecond is cut off.
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(micros).max(Self::MIN.0))
    }

    /// How long after `earlier` this is; zero if it is not after.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(at) => write!(f, "{at:.6}"),
            Err(_) => write!(f, "{} µs since 1970", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    /// Reads RFC 3339; what is below a microsecond is cut off.
    fn from_str(text: &str) -> Result<Self, Error> {
        let at: jiff::Timestamp = text.parse().map_err(|_| {
            Error::invalid(
                "timestamp",
                format_args!("{text:?}"),
                "RFC 3339, e.g. 2026-11-29T16:25:26.000001Z",
            )
        })?;
        Self::from_micros(at.as_microsecond())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

const MAX_DURATION: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long a lease lasts: 1 µs to 365 days, default 30 s (DLV-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseDuration(Duration);

impl LeaseDuration {
    /// Checks a duration; what is below a microsecond is cut off.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when it is below 1 µs or above 365 days.
    pub fn new(duration: Duration) -> Result<Self, Error> {
        let whole = Duration::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
        if whole.is_zero() || whole > MAX_DURATION {
            return Err(Error::invalid(
                "lease_duration",
                format_args!("{duration:?}"),
                "1 µs to 365 days",
            ));
        }
        Ok(Self(whole))
    }

    /// The duration, in whole microseconds.
    pub fn as_duration(self) -> Duration {
        self.0
    }
}

impl Default for LeaseDuration {
    fn default() -> Self {
        Self(Duration::from_secs(30))
    }
}

impl TryFrom<Duration> for LeaseDuration {
    type Error = Error;
    fn try_from(duration: Duration) -> Result<Self, Error> {
        Self::new(duration)
    }
}

/// How long a retried event waits before it is claimable again: 0 to 365 days, default 0 (DLQ-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RetryDelay(Duration);

impl RetryDelay {
    /// Claimable at once.
    pub const NONE: Self = Self(Duration::ZERO);

    /// Checks a duration; what is below a microsecond is cut off.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when it is above 365 days.
    pub fn new(duration: Duration) -> Result<Self, Error> {
        if duration > MAX_DURATION {
            return Err(Error::invalid(
                "delay",
                format_args!("{duration:?}"),
                "0 to 365 days",
            ));
        }
        Ok(Self(Duration::from_micros(
            u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
        )))
    }

    /// The duration, in whole microseconds.
    pub fn as_duration(self) -> Duration {
        self.0
    }
}

impl TryFrom<Duration> for RetryDelay {
    type Error = Error;
    fn try_from(duration: Duration) -> Result<Self, Error> {
        Self::new(duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_keeps_microseconds_in_text() {
        for micros in [
            0,
            1,
            -1,
            1_764_433_526_000_001,
            Timestamp::MIN.0,
            Timestamp::MAX.0,
        ] {
            let at = Timestamp::from_micros(micros).expect("in range");
            assert_eq!(at.to_string().parse::<Timestamp>().expect("parses"), at);
        }
        assert_eq!(
            Timestamp::UNIX_EPOCH.to_string(),
            "1970-01-01T00:00:00.000000Z"
        );
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-30T22:00:00.000000Z");
    }

    #[test]
    fn arithmetic_stays_in_range() {
        assert_eq!(Timestamp::MAX.saturating_add(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.saturating_sub(Duration::MAX), Timestamp::MIN);
        assert_eq!(
            Timestamp::UNIX_EPOCH
                .saturating_add(Duration::from_nanos(1_999))
                .as_micros(),
            1
        );
    }

    #[test]
    fn a_lease_lasts_a_microsecond_to_a_year() {
        assert!(LeaseDuration::new(Duration::ZERO).is_err());
        assert!(LeaseDuration::new(Duration::from_nanos(999)).is_err());
        assert!(LeaseDuration::new(Duration::from_micros(1)).is_ok());
        assert!(LeaseDuration::new(MAX_DURATION).is_ok());
        assert!(LeaseDuration::new(Duration::MAX).is_err());
        assert_eq!(
            LeaseDuration::default().as_duration(),
            Duration::from_secs(30)
        );
    }

    #[test]
    fn a_retry_may_wait_not_at_all() {
        assert!(RetryDelay::new(Duration::ZERO).is_ok());
        assert!(RetryDelay::new(Duration::MAX).is_err());
    }
}
