//! A stream: its log and the groups that read it.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use rheo_core::{
    Error, Event, EventId, Existing, GroupName, GroupOptions, Lease, ListOptions, NewEvent, Page,
    Partition, PartitionCount, Query, ReadOptions, Result, Sequence, StreamName, Timestamp,
};

use crate::delivery::Delivery;
use crate::group::Group;
use crate::log::Log;
use crate::query;

/// A stream, isolated from all others (STR-4).
pub(crate) struct Stream {
    name: StreamName,
    log: Log,
    groups: BTreeMap<GroupName, Group>,
}

impl Stream {
    /// An empty stream.
    pub(crate) fn new(name: &StreamName, count: PartitionCount) -> Self {
        Self {
            name: name.clone(),
            log: Log::new(count),
            groups: BTreeMap::new(),
        }
    }

    /// How many partitions it has.
    pub(crate) fn partition_count(&self) -> PartitionCount {
        self.log.partition_count()
    }

    /// Appends events: all are checked before any is written (LOG-3, LOG-7).
    pub(crate) fn append(&mut self, events: Vec<NewEvent>, now: Timestamp) -> Result<Vec<Event>> {
        let mut routed = Vec::with_capacity(events.len());
        let mut given = HashSet::new();
        for event in events {
            let partition = self.check(&event)?;
            if let Some(id) = event.id
                && !given.insert(id)
            {
                return Err(Error::AlreadyExists(Existing::Event(id)));
            }
            routed.push((partition, event));
        }
        let write = |(partition, event)| self.write(partition, event, now);
        Ok(routed.into_iter().map(write).collect())
    }

    /// Appends one event.
    pub(crate) fn append_one(&mut self, event: NewEvent, now: Timestamp) -> Result<Event> {
        let partition = self.check(&event)?;
        Ok(self.write(partition, event, now))
    }

    /// Where the event goes, if it may.
    fn check(&self, event: &NewEvent) -> Result<Partition> {
        let partition = event.route(self.partition_count())?;
        match event.id {
            Some(id) if self.log.place(id).is_some() => {
                Err(Error::AlreadyExists(Existing::Event(id)))
            }
            _ => Ok(partition),
        }
    }

    fn write(&mut self, partition: Partition, event: NewEvent, now: Timestamp) -> Event {
        let event = Event {
            id: event.id.unwrap_or_else(|| EventId::generate(now)),
            stream: self.name.clone(),
            partition,
            sequence: self.log[partition].high_watermark().next(),
            event_type: event.event_type,
            key: event.key,
            payload: event.payload,
            metadata: event.metadata,
            timestamp: now,
        };
        self.log.push(event.clone());
        event
    }

    /// The events of a partition above a sequence (LOG-9).
    pub(crate) fn read(&self, options: &ReadOptions) -> Result<Vec<Event>> {
        self.partition_count()
            .check("partition", options.partition)?;
        let events = self.log[options.partition].range(options.after, Sequence::MAX);
        Ok(events
            .iter()
            .take(options.limit as usize)
            .cloned()
            .collect())
    }

    /// A page of a query; no group notices (QRY-4).
    pub(crate) fn query(&self, query: &Query) -> Result<Page> {
        query::page(&self.log, query)
    }

    /// Makes a group.
    pub(crate) fn create_group(&mut self, name: &GroupName, options: &GroupOptions) -> Result<()> {
        if self.groups.contains_key(name) {
            return Err(Error::AlreadyExists(Existing::Group(name.clone())));
        }
        let group = Group::new(name, options, &self.log)?;
        self.groups.insert(name.clone(), group);
        Ok(())
    }

    /// A group, and the log that it reads.
    pub(crate) fn group(&mut self, name: &GroupName) -> Result<(&mut Group, &Log)> {
        match self.groups.get_mut(name) {
            Some(group) => Ok((group, &self.log)),
            None => Err(Error::GroupNotFound {
                stream: self.name.clone(),
                group: name.clone(),
            }),
        }
    }

    /// The delivery state that a lease is about; a lease of nothing is stale (LSE-2).
    pub(crate) fn delivery_of(&mut self, lease: &Lease) -> Result<&mut Delivery> {
        let group = self.groups.get_mut(&lease.group);
        let delivery = group.and_then(|group| group.delivery(lease.event.partition));
        delivery.ok_or(Error::StaleLease)
    }

    /// A page of the groups' names.
    pub(crate) fn list_groups(&self, options: &ListOptions<GroupName>) -> Vec<GroupName> {
        let after = options
            .after
            .as_ref()
            .map_or(Bound::Unbounded, Bound::Excluded);
        let names = self
            .groups
            .range::<GroupName, _>((after, Bound::Unbounded))
            .map(|(name, _)| name);
        names.take(options.limit as usize).cloned().collect()
    }
}
