//! Ids that are not kept, not unique, or not of their time.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rheo_core::{
    Error, Event, EventId, Existing, GroupName, GroupOptions, NewEvent, Partition, ReadOptions,
    Result, StreamName, Timestamp, async_trait,
};
use uuid::Builder;

use crate::defect::{Defect, Real};

#[derive(Default)]
pub(super) struct GivenIdsMustBeOfVersion7;

#[async_trait]
impl Defect for GivenIdsMustBeOfVersion7 {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        for event in &mut events {
            event.id = event.id.filter(|id| id.as_uuid().get_version_num() == 7);
        }
        real.backend.append_batch(stream, events).await
    }
}

/// `ON CONFLICT DO NOTHING`, and then what is there is read.
#[derive(Default)]
pub(super) struct TakenIdIsIgnored;

#[async_trait]
impl Defect for TakenIdIsIgnored {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let is_one = events.len() == 1;
        match real.backend.append_batch(stream, events).await {
            Err(Error::AlreadyExists(Existing::Event(id))) if is_one => {
                let mut read = Vec::new();
                for partition in [Partition::ZERO, Partition::new(1)] {
                    let options = ReadOptions::new()
                        .with_partition(partition)
                        .with_limit(u32::MAX);
                    read.extend(
                        real.backend
                            .read(stream, &options)
                            .await
                            .unwrap_or_default(),
                    );
                }
                read.retain(|event| event.id == id);
                Ok(read)
            }
            appended => appended,
        }
    }
}

/// Writes under another id what the real backend refuses, if `is_fine`.
async fn append_anyway(
    real: &Real,
    stream: &StreamName,
    events: Vec<NewEvent>,
    is_fine: bool,
) -> Result<Vec<Event>> {
    match real.backend.append_batch(stream, events.clone()).await {
        Err(Error::AlreadyExists(_)) if is_fine => {
            let mut again = events;
            again.iter_mut().for_each(|event| event.id = None);
            real.backend.append_batch(stream, again).await
        }
        appended => appended,
    }
}

#[derive(Default)]
pub(super) struct IdsAreUniqueInTheirPartition {
    seen: Mutex<HashMap<EventId, Partition>>,
}

#[async_trait]
impl Defect for IdsAreUniqueInTheirPartition {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let is_elsewhere = |event: &NewEvent| {
            let seen = self.seen.lock().expect("not poisoned");
            let taken = event.id.and_then(|id| seen.get(&id).copied());
            taken.is_some_and(|taken| taken != event.partition.unwrap_or_default())
        };
        let is_fine = events.len() == 1 && events.iter().all(is_elsewhere);
        let appended = append_anyway(real, stream, events, is_fine).await?;
        let mut seen = self.seen.lock().expect("not poisoned");
        seen.extend(appended.iter().map(|event| (event.id, event.partition)));
        Ok(appended)
    }
}

#[derive(Default)]
pub(super) struct GeneratedIdsAreNotRemembered {
    generated: Mutex<HashSet<EventId>>,
}

#[async_trait]
impl Defect for GeneratedIdsAreNotRemembered {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let generates = events.iter().all(|event| event.id.is_none());
        let is_generated = |event: &NewEvent| {
            let generated = self.generated.lock().expect("not poisoned");
            event.id.is_some_and(|id| generated.contains(&id))
        };
        let is_fine = events.len() == 1 && events.iter().all(is_generated);
        let appended = append_anyway(real, stream, events, is_fine).await?;
        if generates {
            let mut generated = self.generated.lock().expect("not poisoned");
            generated.extend(appended.iter().map(|event| event.id));
        }
        Ok(appended)
    }
}

#[derive(Default)]
pub(super) struct IdsAreNotedFirst {
    noted: Mutex<HashSet<(StreamName, EventId)>>,
}

#[async_trait]
impl Defect for IdsAreNotedFirst {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        for id in events.iter().filter_map(|event| event.id) {
            let mut noted = self.noted.lock().expect("not poisoned");
            if !noted.insert((stream.clone(), id)) {
                return Err(Error::AlreadyExists(Existing::Event(id)));
            }
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
pub(super) struct IdsAreUniqueOverAllStreams {
    seen: Mutex<HashMap<EventId, StreamName>>,
}

#[async_trait]
impl Defect for IdsAreUniqueOverAllStreams {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let taken = |event: &NewEvent| {
            let seen = self.seen.lock().expect("not poisoned");
            event
                .id
                .filter(|id| seen.get(id).is_some_and(|taken| taken != stream))
        };
        if let Some(id) = events.iter().find_map(taken) {
            return Err(Error::AlreadyExists(Existing::Event(id)));
        }
        let appended = real.backend.append_batch(stream, events).await?;
        let mut seen = self.seen.lock().expect("not poisoned");
        seen.extend(appended.iter().map(|event| (event.id, stream.clone())));
        Ok(appended)
    }
}

macro_rules! generates {
    ($type:ident, |$real:ident, $number:ident| $id:block) => {
        #[derive(Default)]
        pub(super) struct $type {
            numbers: AtomicU64,
        }

        #[async_trait]
        impl Defect for $type {
            async fn append_batch(
                &self,
                $real: &Real,
                stream: &StreamName,
                mut events: Vec<NewEvent>,
            ) -> Result<Vec<Event>> {
                for event in events.iter_mut().filter(|event| event.id.is_none()) {
                    let $number = self.numbers.fetch_add(1, Ordering::SeqCst);
                    event.id = Some(EventId::new($id));
                }
                $real.backend.append_batch(stream, events).await
            }
        }
    };
}

generates!(GeneratedIdsAreOfVersion4, |_real, number| {
    Builder::from_random_bytes((u128::MAX - (u128::from(number) << 80)).to_be_bytes()).into_uuid()
});

generates!(GeneratedIdsAreOfAnotherClock, |_real, number| {
    let wrong = Timestamp::UNIX_EPOCH.saturating_add(Duration::from_secs(1_000_000_000 - number));
    EventId::generate(wrong).as_uuid()
});

/// Of the millisecond and a number below 32; only while no group would miss what is refused.
#[derive(Default)]
pub(super) struct IdsAreOfTheTimeAndFiveBits {
    numbers: AtomicU64,
    has_group: AtomicBool,
}

#[async_trait]
impl Defect for IdsAreOfTheTimeAndFiveBits {
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
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let is_affected = !self.has_group.load(Ordering::SeqCst);
        for event in events
            .iter_mut()
            .filter(|event| is_affected && event.id.is_none())
        {
            let number = self.numbers.fetch_add(1, Ordering::SeqCst) % 32;
            let millis = EventId::generate(real.now()).as_uuid().as_u128() >> 80;
            let mut tail = [0; 10];
            tail[2..].copy_from_slice(&number.to_be_bytes());
            let id = Builder::from_unix_timestamp_millis(u64::try_from(millis).unwrap_or(0), &tail);
            event.id = Some(EventId::new(id.into_uuid()));
        }
        real.backend.append_batch(stream, events).await
    }
}
