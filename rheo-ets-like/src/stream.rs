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

    /// Appends events: all are checked before any is written (LOG-3, LOG-7), bad input first (ERR-6).
    pub(crate) fn append(&mut self, events: Vec<NewEvent>, now: Timestamp) -> Result<Vec<Event>> {
        let mut routed = Vec::with_capacity(events.len());
        for event in events {
            routed.push((event.route(self.partition_count())?, event));
        }
        let mut given = HashSet::new();
        for id in routed.iter().filter_map(|(_, event)| event.id) {
            self.check_free(id)?;
            if !given.insert(id) {
                return Err(Error::AlreadyExists(Existing::Event(id)));
            }
        }
        let write = |(partition, event)| self.write(partition, event, now);
        Ok(routed.into_iter().map(write).collect())
    }

    /// Appends one event.
    pub(crate) fn append_one(&mut self, event: NewEvent, now: Timestamp) -> Result<Event> {
        let partition = event.route(self.partition_count())?;
        if let Some(id) = event.id {
            self.check_free(id)?;
        }
        Ok(self.write(partition, event, now))
    }

    fn check_free(&self, id: EventId) -> Result<()> {
        match self.log.place(id) {
            Some(_) => Err(Error::AlreadyExists(Existing::Event(id))),
            None => Ok(()),
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
        let group = Group::new(name, options, &self.log)?;
        if self.groups.contains_key(name) {
            return Err(Error::AlreadyExists(Existing::Group(name.clone())));
        }
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

#[cfg(test)]
mod tests {
    use rheo_core::{Cursor, Direction, OrderBy};
    use serde_json::json;

    use super::*;

    fn stream(partitions: u32) -> Stream {
        let name = StreamName::new("s").expect("allowed");
        Stream::new(&name, PartitionCount::new(partitions).expect("allowed"))
    }

    fn event(partition: u32) -> NewEvent {
        let event = NewEvent::new("t", json!({})).expect("allowed");
        event.with_partition(Partition::new(partition))
    }

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros).expect("in range")
    }

    #[test]
    fn a_batch_is_written_whole_or_not_at_all() {
        let mut stream = stream(2);
        let (old, new) = (EventId::generate(at(0)), EventId::generate(at(0)));
        let written = stream.append_one(event(0).with_id(old), at(0));
        assert_eq!(written.expect("new").sequence.get(), 1);
        let exists = |id| Err(Error::AlreadyExists(Existing::Event(id)));

        let with_an_old_id = vec![event(0), event(1).with_id(new), event(1).with_id(old)];
        assert_eq!(stream.append(with_an_old_id, at(1)), exists(old));
        let with_an_id_twice = vec![event(0).with_id(new), event(1).with_id(new)];
        assert_eq!(stream.append(with_an_id_twice, at(1)), exists(new));
        let out_of_range = vec![event(0).with_id(new), event(2)];
        assert!(matches!(
            stream.append(out_of_range, at(1)),
            Err(Error::Invalid(_))
        ));

        let batch = vec![event(0).with_id(new), event(1), event(0)];
        let written = stream
            .append(batch, at(1))
            .expect("nothing of this is there");
        let places = |event: &Event| (event.partition.number(), event.sequence.get());
        let places: Vec<_> = written.iter().map(places).collect();
        assert_eq!(places, [(0, 2), (1, 1), (0, 3)]);
    }

    #[test]
    fn pages_follow_each_other_in_every_order() {
        let mut stream = stream(3);
        // Partitions of unequal length, equal times, and a clock that goes back.
        for (partition, time) in [
            (0, 5),
            (2, 5),
            (0, 3),
            (1, 3),
            (0, 9),
            (2, 1),
            (0, 5),
            (0, 5),
        ] {
            stream
                .append_one(event(partition), at(time))
                .expect("in range");
        }
        for by in [OrderBy::Sequence, OrderBy::Timestamp] {
            for direction in [Direction::Ascending, Direction::Descending] {
                let all = Query::new().with_order_by(by).with_direction(direction);
                let whole = stream.query(&all).expect("valid").events;
                assert_eq!(whole.len(), 8);
                assert!(whole.is_sorted_by(|l, r| all.order.compare(&l.into(), &r.into()).is_lt()));
                for limit in 1..=9 {
                    assert_eq!(paged(&stream, &all, limit), whole, "{limit} a page");
                }
            }
        }
    }

    fn paged(stream: &Stream, query: &Query, limit: u32) -> Vec<Event> {
        let mut events = Vec::new();
        let mut query = query.clone().with_limit(limit);
        loop {
            let page = stream.query(&query).expect("valid");
            events.extend(page.events);
            match page.next {
                Some(next) => query = query.with_cursor(next),
                None => return events,
            }
        }
    }

    #[test]
    fn a_query_out_of_range_or_with_a_damaged_cursor_is_invalid() {
        let stream = stream(1);
        let damaged = Query::new().with_cursor(Cursor::from_text("1.sa.0.0.0.0"));
        let out_of_range = Query::new().with_partition(Partition::new(1)).with_limit(0);
        for (query, argument) in [(damaged, "cursor"), (out_of_range, "partition")] {
            let Err(Error::Invalid(invalid)) = stream.query(&query) else {
                panic!("{query:?} was accepted");
            };
            assert_eq!(invalid.argument, argument);
        }
    }
}
