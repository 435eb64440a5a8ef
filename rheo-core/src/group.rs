//! Streams and consumer groups: how they are created, listed and described.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::query::DEFAULT_LIMIT;
use crate::{
    Error, EventId, GroupName, Lag, Partition, PartitionCount, Partitions, Sequence, StreamName,
    Timestamp,
};

/// How a stream is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StreamOptions {
    /// How many partitions; default 1, fixed for ever (STR-1).
    pub partition_count: PartitionCount,
}

impl StreamOptions {
    /// One partition.
    pub fn new() -> Self {
        Self::default()
    }

    /// That many partitions.
    #[must_use]
    pub fn with_partition_count(mut self, count: PartitionCount) -> Self {
        self.partition_count = count;
        self
    }
}

/// How a group is made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GroupOptions {
    /// Where it starts; default the beginning (DLV-2).
    pub start: Start,
    /// How often an event is handed out; default 5 (DLQ-2).
    pub max_attempts: MaxAttempts,
}

impl GroupOptions {
    /// From the beginning, 5 attempts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starting there.
    #[must_use]
    pub fn with_start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// With that many attempts.
    #[must_use]
    pub fn with_max_attempts(mut self, max_attempts: MaxAttempts) -> Self {
        self.max_attempts = max_attempts;
        self
    }
}

/// How often an event is handed out before it is a dead letter: at least 1, default 5 (DLQ-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct MaxAttempts(u32);

impl MaxAttempts {
    /// The largest allowed number, `i32::MAX`.
    pub const MAX: u32 = i32::MAX.cast_unsigned();

    /// Checks a number.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] outside 1 to `i32::MAX`.
    pub fn new(attempts: u32) -> Result<Self, Error> {
        if (1..=Self::MAX).contains(&attempts) {
            Ok(Self(attempts))
        } else {
            Err(Error::invalid("max_attempts", attempts, "1 to 2147483647"))
        }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for MaxAttempts {
    fn default() -> Self {
        Self(5)
    }
}

impl TryFrom<u32> for MaxAttempts {
    type Error = Error;
    fn try_from(attempts: u32) -> Result<Self, Error> {
        Self::new(attempts)
    }
}

impl<'de> Deserialize<'de> for MaxAttempts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(u32::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Where a group starts in each partition (DLV-2, RPL-5).
///
/// The first event it gets is the one after its start, and its frontier begins there (FRN-2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Start {
    /// Before the first event.
    #[default]
    Beginning,
    /// After this sequence in every partition; Invalid beyond the high watermark of any of them.
    AfterSequence(Sequence),
    /// After these sequences; a partition that is not named starts at its beginning. Invalid beyond
    /// the partition's high watermark.
    AfterSequences(BTreeMap<Partition, Sequence>),
    /// Just before the lowest sequence whose timestamp is at or after this time; at the end where
    /// there is none.
    AtTime(Timestamp),
    /// After the last event that is there now.
    End,
}

impl Start {
    /// Checks the partitions that are named in [`AfterSequences`](Self::AfterSequences).
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for the argument `start` when one is out of range or not among the
    /// `partitions` that the operation is about.
    pub fn check(&self, count: PartitionCount, partitions: &Partitions) -> Result<(), Error> {
        let Self::AfterSequences(sequences) = self else {
            return Ok(());
        };
        for partition in sequences.keys() {
            count.check("start", *partition)?;
            if !partitions.contains(*partition) {
                return Err(Error::invalid(
                    "start",
                    format_args!("partition {partition}"),
                    "partitions that are selected",
                ));
            }
        }
        Ok(())
    }

    /// The sequence after which a group starts in `partition`.
    ///
    /// `first_at` gives the lowest sequence with a timestamp at or after a time, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for the argument `start` beyond the high watermark.
    pub fn resolve(
        &self,
        partition: Partition,
        high_watermark: Sequence,
        first_at: impl FnOnce(Timestamp) -> Option<Sequence>,
    ) -> Result<Sequence, Error> {
        let start = match self {
            Self::Beginning => Sequence::ZERO,
            Self::AfterSequence(sequence) => *sequence,
            Self::AfterSequences(sequences) => {
                sequences.get(&partition).copied().unwrap_or(Sequence::ZERO)
            }
            Self::AtTime(time) => first_at(*time).map_or(high_watermark, Sequence::previous),
            Self::End => high_watermark,
        };
        if start > high_watermark {
            return Err(Error::invalid(
                "start",
                format_args!("after sequence {start} in partition {partition}"),
                format!("at most the high watermark, {high_watermark}"),
            ));
        }
        Ok(start)
    }
}

/// A page of a listing by name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions<Name> {
    /// Only names above this one, byte for byte; it need not exist. Default from the first.
    pub after: Option<Name>,
    /// How many at most; default 100, 0 gives none.
    pub limit: u32,
}

impl<Name> ListOptions<Name> {
    /// The first 100.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only names above `after`.
    #[must_use]
    pub fn with_after(mut self, after: Name) -> Self {
        self.after = Some(after);
        self
    }

    /// At most `limit`.
    #[must_use]
    pub fn with_limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }
}

impl<Name> Default for ListOptions<Name> {
    fn default() -> Self {
        Self {
            after: None,
            limit: DEFAULT_LIMIT,
        }
    }
}

/// A page of a group's dead letters (DLQ-5).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetterOptions {
    /// Only dead letters behind the one with this event id, which must be there. Default from the
    /// first.
    pub after: Option<EventId>,
    /// How many at most; default 100, 0 gives none.
    pub limit: u32,
}

impl DeadLetterOptions {
    /// The first 100.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only dead letters behind this one.
    #[must_use]
    pub fn with_after(mut self, after: EventId) -> Self {
        self.after = Some(after);
        self
    }

    /// At most `limit`.
    #[must_use]
    pub fn with_limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }
}

impl Default for DeadLetterOptions {
    fn default() -> Self {
        Self {
            after: None,
            limit: DEFAULT_LIMIT,
        }
    }
}

/// A stream, as `list_streams` gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamInfo {
    /// Its name.
    pub stream: StreamName,
    /// How many partitions it has.
    pub partition_count: PartitionCount,
}

/// A group, as `group_info` gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupInfo {
    /// The stream it reads.
    pub stream: StreamName,
    /// Its name.
    pub group: GroupName,
    /// How often it hands out an event.
    pub max_attempts: MaxAttempts,
    /// How many events have a current lease, expired ones that nobody reclaimed included.
    pub leased: u64,
    /// How many dead letters it has.
    pub dead_letters: u64,
    /// Its progress.
    pub lag: Lag,
}

#[cfg(test)]
mod tests {
    use super::*;

    const P0: Partition = Partition::ZERO;

    fn sequence(number: u64) -> Sequence {
        Sequence::new(number).expect("in range")
    }

    #[test]
    fn a_start_resolves_to_a_sequence() {
        let resolve = |start: Start| start.resolve(P0, sequence(10), |_| Some(sequence(4)));
        assert_eq!(resolve(Start::Beginning), Ok(Sequence::ZERO));
        assert_eq!(
            resolve(Start::AfterSequence(sequence(10))),
            Ok(sequence(10))
        );
        assert_eq!(
            resolve(Start::AfterSequences(BTreeMap::new())),
            Ok(Sequence::ZERO)
        );
        assert_eq!(
            resolve(Start::AtTime(Timestamp::UNIX_EPOCH)),
            Ok(sequence(3))
        );
        assert_eq!(resolve(Start::End), Ok(sequence(10)));
        let none = Start::AtTime(Timestamp::MAX).resolve(P0, sequence(10), |_| None);
        assert_eq!(none, Ok(sequence(10)));
    }

    #[test]
    fn a_start_beyond_the_high_watermark_is_invalid() {
        let error = Start::AfterSequence(sequence(11))
            .resolve(P0, sequence(10), |_| None)
            .expect_err("beyond");
        let Error::Invalid(invalid) = error else {
            panic!("{error}")
        };
        assert_eq!(invalid.argument, "start");
        assert!(invalid.allowed.contains("10"));
    }

    #[test]
    fn a_start_names_selected_partitions_only() {
        let count = PartitionCount::new(2).expect("allowed");
        let start = |p| Start::AfterSequences(BTreeMap::from([(Partition::new(p), sequence(0))]));
        assert!(start(1).check(count, &Partitions::All).is_ok());
        assert!(start(2).check(count, &Partitions::All).is_err());
        assert!(start(1).check(count, &Partitions::from(P0)).is_err());
    }

    #[test]
    fn an_event_is_handed_out_at_least_once() {
        assert!(MaxAttempts::new(0).is_err());
        assert!(MaxAttempts::new(1).is_ok());
        assert!(MaxAttempts::new(u32::MAX).is_err());
        assert_eq!(MaxAttempts::default().get(), 5);
    }
}
