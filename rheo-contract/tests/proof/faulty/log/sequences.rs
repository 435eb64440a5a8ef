//! Holes in the sequences, and events that show up late.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rheo_core::{
    Error, Event, FetchOptions, GroupName, GroupOptions, Lag, Lease, NewEvent, Page, Partition,
    Query, ReadOptions, Reason, Replay, ResetOptions, Result, RetryOptions, RetryOutcome,
    StreamName, async_trait,
};
use serde_json::json;

use crate::defect::{Defect, Real};

/// Uses up a sequence: an event that reads do not show.
async fn burn(real: &Real, stream: &StreamName, partition: Partition) {
    let hole = NewEvent::new("hole", json!({}))
        .expect("allowed")
        .with_partition(partition);
    let _ = real.backend.append(stream, hole).await;
}

async fn read_without_holes(
    real: &Real,
    stream: &StreamName,
    options: &ReadOptions,
) -> Result<Vec<Event>> {
    let mut events = real.backend.read(stream, options).await?;
    events.retain(|event| event.event_type.as_str() != "hole");
    Ok(events)
}

macro_rules! burns {
    ($type:ident, |$real:ident, $stream:ident, $events:ident, $appended:ident| $burn:block) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn append_batch(
                &self,
                $real: &Real,
                $stream: &StreamName,
                $events: Vec<NewEvent>,
            ) -> Result<Vec<Event>> {
                let $appended = $real.backend.append_batch($stream, $events.clone()).await;
                $burn;
                $appended
            }
            async fn read(
                &self,
                real: &Real,
                stream: &StreamName,
                options: &ReadOptions,
            ) -> Result<Vec<Event>> {
                read_without_holes(real, stream, options).await
            }
        }
    };
}

burns!(
    BurnsASequenceOnATakenId,
    |real, stream, events, appended| {
        if let (1, Err(Error::AlreadyExists(_))) = (events.len(), &appended) {
            burn(real, stream, events[0].partition.unwrap_or_default()).await;
        }
    }
);

burns!(
    BurnsASequenceOnABadPartition,
    |real, stream, events, appended| {
        if let (1, Err(Error::Invalid(_))) = (events.len(), &appended) {
            burn(real, stream, Partition::ZERO).await;
        }
    }
);

burns!(
    BurnsTheSequencesOfARefusedBatch,
    |real, stream, events, appended| {
        if let (2.., Err(Error::AlreadyExists(_))) = (events.len(), &appended) {
            for event in &events {
                burn(real, stream, event.partition.unwrap_or_default()).await;
            }
        }
    }
);

/// Numbers the events that `$shifts` says one higher, in what append and read give, for as long as
/// there is no group that would stumble over it.
macro_rules! shifts {
    ($type:ident, |$event:ident| $shifts:expr) => {
        #[derive(Default)]
        pub(super) struct $type {
            has_group: AtomicBool,
        }

        impl $type {
            fn shift(&self, events: &mut [Event]) {
                let is_shifted = |$event: &Event| $shifts;
                for event in events.iter_mut() {
                    if is_shifted(event) && !self.has_group.load(Ordering::SeqCst) {
                        event.sequence = event.sequence.next();
                    }
                }
            }
        }

        #[async_trait]
        impl Defect for $type {
            async fn create_group(
                &self,
                real: &Real,
                stream: &StreamName,
                group: &GroupName,
                options: &GroupOptions,
            ) -> Result<()> {
                self.has_group.store(true, Ordering::SeqCst);
                real.backend.create_group(stream, group, options).await
            }
            async fn append_batch(
                &self,
                real: &Real,
                stream: &StreamName,
                events: Vec<NewEvent>,
            ) -> Result<Vec<Event>> {
                let mut events = real.backend.append_batch(stream, events).await?;
                self.shift(&mut events);
                Ok(events)
            }
            async fn read(
                &self,
                real: &Real,
                stream: &StreamName,
                options: &ReadOptions,
            ) -> Result<Vec<Event>> {
                let mut events = real.backend.read(stream, options).await?;
                self.shift(&mut events);
                Ok(events)
            }
        }
    };
}

// As a generator whose block of cached numbers is lost.
shifts!(LosesTheFifthSequence, |event| event.sequence.get() == 5);

shifts!(FirstSequenceOfPartition1Is2, |event| event
    .partition
    .number()
    == 1);

/// Two writers commit in another order than they drew their numbers.
#[derive(Default)]
pub(super) struct ShowsTheNewestBeforeTheOneBeforeIt {
    is_new: AtomicBool,
}

#[async_trait]
impl Defect for ShowsTheNewestBeforeTheOneBeforeIt {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        self.is_new.store(true, Ordering::SeqCst);
        real.backend.append_batch(stream, events).await
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        if self.is_new.swap(false, Ordering::SeqCst) && events.len() == 3 {
            events.remove(1);
        }
        Ok(events)
    }
}

#[derive(Default)]
pub(super) struct ReadsLagBehind {
    is_new: AtomicBool,
}

#[async_trait]
impl Defect for ReadsLagBehind {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let appended = real.backend.append_batch(stream, events).await?;
        self.is_new.store(true, Ordering::SeqCst);
        Ok(appended)
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        if self.is_new.swap(false, Ordering::SeqCst) {
            events.pop();
        }
        Ok(events)
    }
}

#[derive(Default)]
pub(super) struct QueriesLagBehind {
    is_new: AtomicBool,
}

#[async_trait]
impl Defect for QueriesLagBehind {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let appended = real.backend.append_batch(stream, events).await?;
        self.is_new.store(true, Ordering::SeqCst);
        Ok(appended)
    }
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut page = real.backend.query(stream, query).await?;
        if self.is_new.swap(false, Ordering::SeqCst) {
            page.events.pop();
        }
        Ok(page)
    }
}

/// Until the group does something, its lag stays what it was.
#[derive(Default)]
pub(super) struct LagIsCached {
    seen: Mutex<HashMap<(StreamName, GroupName), Lag>>,
}

impl LagIsCached {
    fn forget(&self) {
        self.seen.lock().expect("not poisoned").clear();
    }
}

#[async_trait]
impl Defect for LagIsCached {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let lag = real.backend.lag(stream, group).await?;
        let mut seen = self.seen.lock().expect("not poisoned");
        Ok(seen
            .entry((stream.clone(), group.clone()))
            .or_insert(lag)
            .clone())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.forget();
        real.backend.fetch(stream, group, options).await
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        self.forget();
        real.backend.ack(lease).await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        self.forget();
        real.backend.retry(lease, options).await
    }
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        self.forget();
        real.backend.reject(lease, reason).await
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        self.forget();
        real.backend.replay(stream, group, replay).await
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        self.forget();
        real.backend.reset_group(stream, group, options).await
    }
}

/// Two events that are fetched together come in, and the group goes on behind the second.
#[derive(Default)]
pub(super) struct GroupPassesAnEvent;

#[async_trait]
impl Defect for GroupPassesAnEvent {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        if leases.len() == 2 && leases[0].event.sequence.get() > 1 && options.limit > 1_000 {
            let passed = leases.remove(0);
            real.backend.ack(&passed).await?;
        }
        Ok(leases)
    }
}
