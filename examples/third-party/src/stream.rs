//! One stream: its only partition as a map by sequence, and its groups.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use rheo_core::{
    Error, Event, EventId, Existing, GroupName, GroupOptions, NewEvent, Partition, PartitionCount,
    Partitions, ReadOptions, Result, Sequence, StreamName, Timestamp,
};

use crate::group::Group;

/// The events of a partition by their sequence: 1, 2, 3 …
pub(crate) type Log = BTreeMap<Sequence, Event>;

#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(crate) log: Log,
    pub(crate) groups: BTreeMap<GroupName, Group>,
    ids: BTreeSet<EventId>,
}

/// The last sequence, 0 while there is none.
pub(crate) fn high_watermark(log: &Log) -> Sequence {
    log.last_key_value()
        .map_or(Sequence::ZERO, |(last, _)| *last)
}

/// The events above a sequence, ascending.
pub(crate) fn after(log: &Log, sequence: Sequence) -> impl Iterator<Item = &Event> {
    log.range((Excluded(sequence), Unbounded))
        .map(|(_, event)| event)
}

/// Every stream of this backend has one partition.
pub(crate) fn partition_count() -> PartitionCount {
    PartitionCount::default()
}

impl Stream {
    /// All checks come first, so that an error has no effect (ERR-1), in the order of ERR-6.
    pub(crate) fn append(
        &mut self,
        stream: &StreamName,
        event: NewEvent,
        now: Timestamp,
    ) -> Result<Event> {
        let partition = event.route(partition_count())?;
        let id = event.id.unwrap_or_else(|| EventId::generate(now));
        if !self.ids.insert(id) {
            return Err(Error::AlreadyExists(Existing::Event(id)));
        }
        let event = Event {
            id,
            stream: stream.clone(),
            partition,
            sequence: high_watermark(&self.log).next(),
            event_type: event.event_type,
            key: event.key,
            payload: event.payload,
            metadata: event.metadata,
            timestamp: now,
        };
        self.log.insert(event.sequence, event.clone());
        Ok(event)
    }

    pub(crate) fn read(&self, options: &ReadOptions) -> Result<Vec<Event>> {
        partition_count().check("partition", options.partition)?;
        let above = after(&self.log, options.after);
        Ok(above.take(options.limit as usize).cloned().collect())
    }

    pub(crate) fn create_group(&mut self, name: &GroupName, options: &GroupOptions) -> Result<()> {
        options.start.check(partition_count(), &Partitions::All)?;
        let first_at = |time| {
            let mut events = self.log.values();
            let first = events.find(|event| event.timestamp >= time)?;
            Some(first.sequence)
        };
        let high_watermark = high_watermark(&self.log);
        let start = options
            .start
            .resolve(Partition::ZERO, high_watermark, first_at)?;
        if self.groups.contains_key(name) {
            return Err(Error::AlreadyExists(Existing::Group(name.clone())));
        }
        let group = Group::new(name.clone(), start, options.max_attempts);
        self.groups.insert(name.clone(), group);
        Ok(())
    }
}
