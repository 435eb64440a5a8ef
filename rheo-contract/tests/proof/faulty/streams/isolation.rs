//! Streams that notice each other.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, Event, EventId, Existing, FetchOptions, GroupName,
    GroupOptions, Lease, NewEvent, Page, Query, ReadOptions, Replay, ResetOptions, Result,
    StreamName, StreamOptions, async_trait,
};

use crate::defect::{Defect, Real};

/// The first stream that the handle made.
#[derive(Default)]
pub(super) struct First(Mutex<Option<StreamName>>);

impl First {
    fn see(&self, stream: &StreamName) {
        let mut first = self.0.lock().expect("not poisoned");
        first.get_or_insert_with(|| stream.clone());
    }
    fn other_than(&self, stream: &StreamName) -> Option<StreamName> {
        let first = self.0.lock().expect("not poisoned").clone();
        first.filter(|first| first != stream)
    }
}

#[derive(Default)]
pub(super) struct ReadsGiveTheFirstStreamToo(First);

#[async_trait]
impl Defect for ReadsGiveTheFirstStreamToo {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        self.0.see(stream);
        real.backend.create_stream(stream, options).await
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        if let Some(first) = self.0.other_than(stream) {
            events.extend(real.backend.read(&first, options).await.unwrap_or_default());
            events.sort_by_key(|event| event.sequence);
        }
        Ok(events)
    }
}

#[derive(Default)]
pub(super) struct QueriesGiveTheFirstStreamToo(First);

#[async_trait]
impl Defect for QueriesGiveTheFirstStreamToo {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        self.0.see(stream);
        real.backend.create_stream(stream, options).await
    }
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut page = real.backend.query(stream, query).await?;
        if let Some(first) = self.0.other_than(stream) {
            let other = real.backend.query(&first, query).await.unwrap_or_default();
            page.events.extend(other.events);
        }
        Ok(page)
    }
}

#[derive(Default)]
pub(super) struct DeliveriesByGroupAndSequence(Mutex<HashMap<(GroupName, u32, u64), StreamName>>);

#[async_trait]
impl Defect for DeliveriesByGroupAndSequence {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        let mut claimed = self.0.lock().expect("not poisoned");
        leases.retain(|Lease { event, .. }| {
            let place = (
                group.clone(),
                event.partition.number(),
                event.sequence.get(),
            );
            claimed.entry(place).or_insert_with(|| stream.clone()) == stream
        });
        Ok(leases)
    }
}

#[derive(Default)]
pub(super) struct AckByGroupAndSequence(Mutex<Vec<Lease>>);

#[async_trait]
impl Defect for AckByGroupAndSequence {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        self.0
            .lock()
            .expect("not poisoned")
            .extend(leases.iter().cloned());
        Ok(leases)
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        let mut given = self.0.lock().expect("not poisoned").clone();
        given.retain(|other| {
            other.group == lease.group
                && other.event.stream != lease.event.stream
                && other.event.sequence == lease.event.sequence
        });
        for other in given {
            let _ = real.backend.ack(&other).await;
        }
        Ok(())
    }
}

/// The groups that the handle made.
#[derive(Default)]
pub(super) struct Groups(Mutex<Vec<(StreamName, GroupName)>>);

impl Groups {
    fn see(&self, stream: &StreamName, group: &GroupName) {
        let mut groups = self.0.lock().expect("not poisoned");
        groups.push((stream.clone(), group.clone()));
    }
    /// The streams with a group of that name.
    fn streams(&self, group: &GroupName) -> Vec<StreamName> {
        let groups = self.0.lock().expect("not poisoned");
        let named = groups.iter().filter(|(_, name)| name == group);
        named.map(|(stream, _)| stream.clone()).collect()
    }
}

#[derive(Default)]
pub(super) struct GoesBackByGroupName(Groups);

#[async_trait]
impl Defect for GoesBackByGroupName {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.0.see(stream, group);
        real.backend.create_group(stream, group, options).await
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        for other in self.0.streams(group) {
            let _ = real.backend.replay(&other, group, replay).await;
        }
        Ok(())
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.reset_group(stream, group, options).await?;
        for other in self.0.streams(group) {
            let _ = real.backend.reset_group(&other, group, options).await;
        }
        Ok(())
    }
}

#[derive(Default)]
pub(super) struct DeadLettersByGroupName(Groups);

#[async_trait]
impl Defect for DeadLettersByGroupName {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.0.see(stream, group);
        real.backend.create_group(stream, group, options).await
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        for other in self.0.streams(group) {
            if other != *stream && options.after.is_none() {
                let others = real.backend.dead_letters(&other, group, options).await;
                dead.extend(others.unwrap_or_default());
            }
        }
        Ok(dead)
    }
}

#[derive(Default)]
pub(super) struct IdsAreUniqueEverywhere(Mutex<HashSet<EventId>>);

#[async_trait]
impl Defect for IdsAreUniqueEverywhere {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let taken = {
            let known = self.0.lock().expect("not poisoned");
            let mut ids = events.iter().filter_map(|event| event.id);
            ids.find(|id| known.contains(id))
        };
        if let Some(id) = taken
            && real.backend.ping().await.is_ok()
        {
            return Err(Error::AlreadyExists(Existing::Event(id)));
        }
        let appended = real.backend.append_batch(stream, events).await?;
        let mut known = self.0.lock().expect("not poisoned");
        known.extend(appended.iter().map(|event| event.id));
        Ok(appended)
    }
}
