//! Names, types and keys that are not kept as they are.

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{
    ConsumerId, Error, Event, EventKey, EventType, Existing, FetchOptions, GroupName, GroupOptions,
    Lease, NewEvent, ReadOptions, Result, StreamName, StreamOptions, async_trait,
};

use crate::defect::{Defect, Real};

/// Names that were taken, as a store knows them that does not keep them as they are.
#[derive(Default)]
pub(super) struct Taken(Mutex<HashSet<String>>);

impl Taken {
    fn take(&self, name: impl Into<String>) -> bool {
        self.0.lock().expect("not poisoned").insert(name.into())
    }
}

fn taken_stream(stream: &StreamName) -> Error {
    Error::AlreadyExists(Existing::Stream(stream.clone()))
}

#[derive(Default)]
pub(super) struct StreamNamesFoldCase(Taken);

#[async_trait]
impl Defect for StreamNamesFoldCase {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        real.backend.create_stream(stream, options).await?;
        if self.0.take(stream.as_str().to_lowercase()) {
            return Ok(());
        }
        Err(taken_stream(stream))
    }
}

#[derive(Default)]
pub(super) struct StreamNamesAreTrimmed(Taken);

#[async_trait]
impl Defect for StreamNamesAreTrimmed {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        real.backend.create_stream(stream, options).await?;
        if self.0.take(stream.as_str().trim_end()) {
            return Ok(());
        }
        Err(taken_stream(stream))
    }
}

#[derive(Default)]
pub(super) struct NamesAreCutAt63Bytes(Taken);

#[async_trait]
impl Defect for NamesAreCutAt63Bytes {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        real.backend.create_stream(stream, options).await?;
        let name = stream.as_str();
        if self.0.take(&name[..name.floor_char_boundary(63)]) {
            return Ok(());
        }
        Err(taken_stream(stream))
    }
}

#[derive(Default)]
pub(super) struct GroupNamesFoldCase(Taken);

#[async_trait]
impl Defect for GroupNamesFoldCase {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        if self
            .0
            .take(format!("{stream:?}{}", group.as_str().to_lowercase()))
        {
            return Ok(());
        }
        Err(Error::AlreadyExists(Existing::Group(group.clone())))
    }
}

#[derive(Default)]
pub(super) struct GroupsAreNamedInLowerCase;

#[async_trait]
impl Defect for GroupsAreNamedInLowerCase {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for lease in &mut leases {
            lease.group = GroupName::new(group.as_str().to_lowercase())?;
        }
        Ok(leases)
    }
}

#[derive(Default)]
pub(super) struct StreamAndGroupAreJoined(Taken);

#[async_trait]
impl Defect for StreamAndGroupAreJoined {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        if self.0.take(format!("{stream}:{group}")) {
            return Ok(());
        }
        Err(Error::AlreadyExists(Existing::Group(group.clone())))
    }
}

fn with_consumers(leases: Vec<Lease>, change: impl Fn(&str) -> String) -> Vec<Lease> {
    let changed = |lease: Lease| {
        let consumer = ConsumerId::new(change(lease.consumer.as_str()));
        Lease {
            consumer: consumer.unwrap_or(lease.consumer),
            ..lease
        }
    };
    leases.into_iter().map(changed).collect()
}

#[derive(Default)]
pub(super) struct ConsumersAreTrimmed;

#[async_trait]
impl Defect for ConsumersAreTrimmed {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        Ok(with_consumers(leases, |name| name.trim().to_owned()))
    }
}

#[derive(Default)]
pub(super) struct ConsumersAreQuoted;

#[async_trait]
impl Defect for ConsumersAreQuoted {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        Ok(with_consumers(leases, |name| name.replace('\'', "''")))
    }
}

#[derive(Default)]
pub(super) struct KeysAreTrimmed;

#[async_trait]
impl Defect for KeysAreTrimmed {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        for event in &mut events {
            let trimmed = event
                .key
                .as_ref()
                .map(|key| EventKey::new(key.as_str().trim()));
            event.key = trimmed.and_then(Result::ok).or(event.key.take());
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
pub(super) struct KeysAreCut;

#[async_trait]
impl Defect for KeysAreCut {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        for event in &mut events {
            if let Some(key) = &event.key {
                let key = key.as_str();
                event.key = Some(EventKey::new(&key[..key.floor_char_boundary(255)])?);
            }
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
pub(super) struct TypesLoseTheirBlanks;

#[async_trait]
impl Defect for TypesLoseTheirBlanks {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        for event in &mut events {
            if let Ok(trimmed) = EventType::new(event.event_type.as_str().trim()) {
                event.event_type = trimmed;
            }
        }
        real.backend.append_batch(stream, events).await
    }
}

fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(63)]
}

/// Groups whose names begin alike share one delivery state: that of the first.
#[derive(Default)]
pub(super) struct GroupsShareDeliveriesBy63Bytes(Mutex<Vec<(StreamName, GroupName)>>);

#[async_trait]
impl Defect for GroupsShareDeliveriesBy63Bytes {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        let mut made = self.0.lock().expect("not poisoned");
        made.push((stream.clone(), group.clone()));
        Ok(())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let made = self.0.lock().expect("not poisoned").clone();
        let is_alike = |(of, name): &&(StreamName, GroupName)| {
            of == stream && cut(name.as_str()) == cut(group.as_str())
        };
        let shared = made.iter().find(is_alike).map_or(group, |(_, name)| name);
        let mut leases = real.backend.fetch(stream, shared, options).await?;
        leases
            .iter_mut()
            .for_each(|lease| lease.group = group.clone());
        Ok(leases)
    }
}

/// Streams whose names begin alike are read as the first of them.
#[derive(Default)]
pub(super) struct StreamsAreReadBy127Bytes(Mutex<Vec<StreamName>>);

#[async_trait]
impl Defect for StreamsAreReadBy127Bytes {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        real.backend.create_stream(stream, options).await?;
        self.0.lock().expect("not poisoned").push(stream.clone());
        Ok(())
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let made = self.0.lock().expect("not poisoned").clone();
        let cut = |name: &StreamName| {
            let name = name.as_str();
            name[..name.floor_char_boundary(127)].to_owned()
        };
        let alike = made.iter().find(|name| cut(name) == cut(stream));
        real.backend.read(alike.unwrap_or(stream), options).await
    }
}
