//! The log of a stream: its events by partition and sequence, and by id.

use std::collections::BTreeMap;
use std::ops::Index;

use rheo_core::{Event, EventId, Partition, PartitionCount, Sequence, Timestamp};

/// The events of a stream. Nothing in it ever changes or goes away (LOG-4).
pub(crate) struct Log {
    count: PartitionCount,
    partitions: Vec<PartitionLog>,
    /// A tree, since it grows in place: a hash table would stop an append to be rebuilt. Generated
    /// ids are time-ordered, so that it grows at its end.
    places: BTreeMap<EventId, Place>,
}

/// Where an event is; places order as dead letters do, by partition, then sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) partition: Partition,
    pub(crate) sequence: Sequence,
}

impl Log {
    /// An empty log.
    pub(crate) fn new(count: PartitionCount) -> Self {
        Self {
            count,
            partitions: count
                .partitions()
                .map(|_| PartitionLog::default())
                .collect(),
            places: BTreeMap::new(),
        }
    }

    /// How many partitions it has.
    pub(crate) fn partition_count(&self) -> PartitionCount {
        self.count
    }

    /// The place of the event with this id.
    pub(crate) fn place(&self, id: EventId) -> Option<Place> {
        self.places.get(&id).copied()
    }

    /// Adds an event, which has the next sequence of its partition (LOG-1).
    pub(crate) fn push(&mut self, event: Event) {
        let place = Place {
            partition: event.partition,
            sequence: event.sequence,
        };
        self.places.insert(event.id, place);
        self.partitions[event.partition.number() as usize]
            .0
            .push(event);
    }
}

/// The log of a partition that is in range.
impl Index<Partition> for Log {
    type Output = PartitionLog;
    fn index(&self, partition: Partition) -> &PartitionLog {
        &self.partitions[partition.number() as usize]
    }
}

/// The events of one partition: sequence n is at index n - 1.
#[derive(Default)]
pub(crate) struct PartitionLog(Vec<Event>);

impl PartitionLog {
    /// The last sequence.
    pub(crate) fn high_watermark(&self) -> Sequence {
        self.0.last().map_or(Sequence::ZERO, |last| last.sequence)
    }

    /// The events above `after`, up to and including `until`.
    pub(crate) fn range(&self, after: Sequence, until: Sequence) -> &[Event] {
        let end = position(until).min(self.0.len());
        &self.0[position(after).min(end)..end]
    }

    /// The lowest sequence with a timestamp at or after `time`.
    ///
    /// A scan: clocks may jump back, so timestamps need not ascend.
    pub(crate) fn first_at(&self, time: Timestamp) -> Option<Sequence> {
        let first = self.0.iter().find(|event| event.timestamp >= time);
        first.map(|event| event.sequence)
    }
}

/// The event with a sequence from 1 to the high watermark.
impl Index<Sequence> for PartitionLog {
    type Output = Event;
    fn index(&self, sequence: Sequence) -> &Event {
        &self.0[position(sequence) - 1]
    }
}

fn position(sequence: Sequence) -> usize {
    usize::try_from(sequence.get()).unwrap_or(usize::MAX)
}
