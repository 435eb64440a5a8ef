//! Variants that check in another order: between bad input and what exists already it is free (ERR-6).

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{
    Error, ErrorKind, Event, EventId, Existing, GroupName, GroupOptions, NewEvent, Page, Partition,
    PartitionCount, Query, ReadOptions, Result, StreamName, async_trait,
};

use super::{Differing, Variant};
use crate::defect::{Defect, Real};

pub(super) const ALL: &[&dyn Variant] = &[
    &Differing("IdsBeforePartitions", IdsBeforePartitions::default),
    &Differing("NameBeforeStart", NameBeforeStart::default),
    &Differing("ImpossiblePartitionsFirst", || ImpossiblePartitionsFirst),
];

fn is_invalid<T>(result: &Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == ErrorKind::Invalid)
}

/// It looks ids up before it checks the partitions.
#[derive(Default)]
struct IdsBeforePartitions(Mutex<HashSet<(StreamName, EventId)>>);

#[async_trait]
impl Defect for IdsBeforePartitions {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let ids: Vec<EventId> = events.iter().filter_map(|event| event.id).collect();
        let appended = real.backend.append_batch(stream, events).await;
        let mut known = self.0.lock().expect("not poisoned");
        if is_invalid(&appended) {
            let taken = ids
                .iter()
                .find(|id| known.contains(&(stream.clone(), **id)));
            if let Some(id) = taken {
                return Err(Error::AlreadyExists(Existing::Event(*id)));
            }
        }
        let new = appended.iter().flatten();
        known.extend(new.map(|event| (stream.clone(), event.id)));
        appended
    }
}

/// It finds that a group is there before it checks the start.
#[derive(Default)]
struct NameBeforeStart;

#[async_trait]
impl Defect for NameBeforeStart {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let made = real.backend.create_group(stream, group, options).await;
        if is_invalid(&made) && real.backend.lag(stream, group).await.is_ok() {
            return Err(Error::AlreadyExists(Existing::Group(group.clone())));
        }
        made
    }
}

/// No stream has more than 1,024 partitions, so a partition above that is refused before all else.
struct ImpossiblePartitionsFirst;

fn expect_possible(partition: Partition) -> Result<()> {
    if partition.number() < PartitionCount::MAX {
        return Ok(());
    }
    let allowed = "0 to 1023";
    Err(Error::invalid("partition", partition.number(), allowed))
}

#[async_trait]
impl Defect for ImpossiblePartitionsFirst {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let mut partitions = events.iter().filter_map(|event| event.partition);
        partitions.try_for_each(expect_possible)?;
        real.backend.append_batch(stream, events).await
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        expect_possible(options.partition)?;
        real.backend.read(stream, options).await
    }
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        query.partition.map_or(Ok(()), expect_possible)?;
        real.backend.query(stream, query).await
    }
}
