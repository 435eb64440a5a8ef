//! The ids of entries: time and a counter, strictly increasing.

use std::fmt;

use rheo_core::Timestamp;

/// The id of an entry, e.g. `1700000000000-0`: milliseconds since 1970 and a counter within them.
///
/// Within a stream ids increase strictly, whatever the clock does. They have gaps and say nothing
/// about how many entries there are, so they are no sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntryId {
    millis: u64,
    counter: u64,
}

impl EntryId {
    /// `0-0`, before every entry.
    pub const ZERO: Self = Self {
        millis: 0,
        counter: 0,
    };

    /// `18446744073709551615-18446744073709551615`, after every entry.
    pub const MAX: Self = Self {
        millis: u64::MAX,
        counter: u64::MAX,
    };

    /// The id of an entry that is added now, when `self` is the last one: a clock that stands still
    /// or goes back raises the counter instead.
    #[must_use]
    pub fn next(self, now: Timestamp) -> Self {
        let millis = u64::try_from(now.as_micros().div_euclid(1_000)).unwrap_or(0);
        if millis > self.millis {
            Self { millis, counter: 0 }
        } else {
            Self {
                millis: self.millis,
                counter: self.counter + 1,
            }
        }
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.millis, self.counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_whatever_the_clock_does() {
        let at = |micros| Timestamp::from_micros(micros).expect("in range");
        let mut id = EntryId::ZERO;
        let ids = [5_000, 5_999, 6_000, 2_000, -7, 6_000, 7_000].map(|micros| {
            id = id.next(at(micros));
            id.to_string()
        });
        assert_eq!(ids, ["5-0", "5-1", "6-0", "6-1", "6-2", "6-3", "7-0"]);
        assert_eq!(EntryId::ZERO.next(Timestamp::MIN).to_string(), "0-1");
    }
}
