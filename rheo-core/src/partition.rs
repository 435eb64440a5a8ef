//! Partitions, sequences and the hash that routes keys.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use twox_hash::XxHash64;

use crate::{Error, EventKey};

/// The number of a partition within its stream, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Partition(u32);

impl Partition {
    /// Partition 0, where events without key and partition go.
    pub const ZERO: Self = Self(0);

    /// Any number; whether the stream has that partition is checked against its
    /// [`PartitionCount`].
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

/// How many partitions a stream has: 1 to 1,024, default 1 (STR-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PartitionCount(u32);

impl PartitionCount {
    /// The largest allowed count.
    pub const MAX: u32 = 1_024;

    /// Checks a count.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] outside 1 to 1,024.
    pub fn new(count: u32) -> Result<Self, Error> {
        if (1..=Self::MAX).contains(&count) {
            Ok(Self(count))
        } else {
            Err(Error::invalid("partition_count", count, "1 to 1024"))
        }
    }

    /// The count.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// All partitions, ascending.
    pub fn partitions(self) -> impl DoubleEndedIterator<Item = Partition> + ExactSizeIterator {
        (0..self.0).map(Partition)
    }

    /// Checks that the stream has this partition.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for `argument` when it is out of range (LOG-6).
    pub fn check(self, argument: &str, partition: Partition) -> Result<(), Error> {
        if partition.0 < self.0 {
            Ok(())
        } else {
            Err(Error::invalid(
                argument,
                partition,
                format!("0 to {}", self.0 - 1),
            ))
        }
    }

    /// The partition of a key: `XXH64(key as UTF-8, seed 0) mod count` (LOG-6).
    ///
    /// The same in every process, backend and version. Test vectors:
    ///
    /// ```
    /// use rheo_core::{EventKey, PartitionCount};
    ///
    /// let hash_mod = |key: &str, count| -> Result<u32, rheo_core::Error> {
    ///     Ok(PartitionCount::new(count)?.partition_of(&EventKey::new(key)?).number())
    /// };
    /// for (key, of_3, of_16, of_1024) in rheo_core::PARTITION_TEST_VECTORS {
    ///     assert_eq!(hash_mod(key, 1)?, 0);
    ///     assert_eq!(hash_mod(key, 3)?, *of_3);
    ///     assert_eq!(hash_mod(key, 16)?, *of_16);
    ///     assert_eq!(hash_mod(key, 1_024)?, *of_1024);
    /// }
    /// # Ok::<(), rheo_core::Error>(())
    /// ```
    pub fn partition_of(self, key: &EventKey) -> Partition {
        let hash = XxHash64::oneshot(0, key.as_str().as_bytes());
        let number = hash % u64::from(self.0);
        Partition(u32::try_from(number).unwrap_or_default())
    }
}

impl Default for PartitionCount {
    fn default() -> Self {
        Self(1)
    }
}

impl TryFrom<u32> for PartitionCount {
    type Error = Error;
    fn try_from(count: u32) -> Result<Self, Error> {
        Self::new(count)
    }
}

impl<'de> Deserialize<'de> for PartitionCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(u32::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Keys with their partition among 3, 16 and 1,024: what every implementation must compute (LOG-6).
pub const PARTITION_TEST_VECTORS: &[(&str, u32, u32, u32)] = &[
    ("a", 2, 11, 603),
    ("order-1", 1, 13, 173),
    ("order-2", 0, 13, 877),
    ("customer:42", 2, 7, 439),
    ("ü", 1, 13, 317),
    ("u\u{308}", 2, 1, 513),
    ("🦀", 1, 12, 188),
    ("the quick brown fox jumps over the lazy dog", 0, 2, 914),
];

/// The number of an event within its partition: 1, 2, 3 … without a gap (LOG-1).
///
/// 0 stands for "before the first". At most `i64::MAX`, so that every store can hold it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(transparent)]
pub struct Sequence(u64);

impl Sequence {
    /// Before the first event.
    pub const ZERO: Self = Self(0);
    /// The largest sequence, `i64::MAX`.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// Checks a number.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] above [`MAX`](Self::MAX).
    pub fn new(number: u64) -> Result<Self, Error> {
        if number <= Self::MAX.0 {
            Ok(Self(number))
        } else {
            Err(Error::invalid(
                "sequence",
                number,
                "0 to 9223372036854775807",
            ))
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number as the signed integer that most stores have.
    pub const fn as_i64(self) -> i64 {
        self.0.cast_signed()
    }

    /// The next one; stays at [`MAX`](Self::MAX).
    #[must_use]
    pub fn next(self) -> Self {
        Self((self.0 + 1).min(Self::MAX.0))
    }

    /// The one before; stays at [`ZERO`](Self::ZERO).
    #[must_use]
    pub fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl TryFrom<u64> for Sequence {
    type Error = Error;
    fn try_from(number: u64) -> Result<Self, Error> {
        Self::new(number)
    }
}

impl TryFrom<i64> for Sequence {
    type Error = Error;
    fn try_from(number: i64) -> Result<Self, Error> {
        match u64::try_from(number) {
            Ok(number) => Self::new(number),
            Err(_) => Err(Error::invalid(
                "sequence",
                number,
                "0 to 9223372036854775807",
            )),
        }
    }
}

impl<'de> Deserialize<'de> for Sequence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(u64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Which partitions an operation is about: all of them (the default) or some.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Partitions {
    /// Every partition of the stream.
    #[default]
    All,
    /// Just these; an empty set selects none.
    Only(BTreeSet<Partition>),
}

impl Partitions {
    /// Just these partitions.
    pub fn only(partitions: impl IntoIterator<Item = Partition>) -> Self {
        Self::Only(partitions.into_iter().collect())
    }

    /// Whether `partition` is selected.
    pub fn contains(&self, partition: Partition) -> bool {
        match self {
            Self::All => true,
            Self::Only(partitions) => partitions.contains(&partition),
        }
    }

    /// The selected partitions of a stream, ascending.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for the argument `partitions` when one is out of range.
    pub fn resolve(&self, count: PartitionCount) -> Result<Vec<Partition>, Error> {
        match self {
            Self::All => Ok(count.partitions().collect()),
            Self::Only(partitions) => {
                for partition in partitions {
                    count.check("partitions", *partition)?;
                }
                Ok(partitions.iter().copied().collect())
            }
        }
    }
}

impl From<Partition> for Partitions {
    fn from(partition: Partition) -> Self {
        Self::only([partition])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_1_to_1024_partitions() {
        assert!(PartitionCount::new(0).is_err());
        assert!(PartitionCount::new(1).is_ok());
        assert!(PartitionCount::new(1_024).is_ok());
        assert!(PartitionCount::new(1_025).is_err());
    }

    #[test]
    fn sequences_fit_a_signed_integer() {
        assert!(Sequence::new(u64::MAX).is_err());
        assert!(Sequence::try_from(-1_i64).is_err());
        assert_eq!(Sequence::MAX.as_i64(), i64::MAX);
        assert_eq!(Sequence::MAX.next(), Sequence::MAX);
        assert_eq!(Sequence::ZERO.previous(), Sequence::ZERO);
    }

    #[test]
    fn a_selection_out_of_range_says_what_is_allowed() {
        let count = PartitionCount::new(2).expect("allowed");
        let error = Partitions::only([Partition::new(2)]).resolve(count);
        assert_eq!(error, Err(Error::invalid("partitions", 2, "0 to 1")));
        assert_eq!(Partitions::only([]).resolve(count), Ok(vec![]));
    }
}
