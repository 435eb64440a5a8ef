//! Fields that get lost on one of the ways to an event.

use std::time::Duration;

use rheo_core::{
    Cause, DeadLetter, DeadLetterOptions, Error, Event, EventKey, EventType, FetchOptions,
    GroupName, JsonObject, Lease, LeaseDuration, NewEvent, Page, Partition, Query, ReadOptions,
    Result, StreamName, Timestamp, async_trait,
};
use serde_json::json;

use crate::defect::{Defect, Real};

/// Spoils what is appended.
macro_rules! spoils_input {
    ($type:ident, |$event:ident| $spoil:block) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn append_batch(&self, real: &Real, stream: &StreamName, mut events: Vec<NewEvent>) -> Result<Vec<Event>> {
                for $event in &mut events $spoil
                real.backend.append_batch(stream, events).await
            }
        }
    };
}

/// Spoils all that comes out of the log itself.
macro_rules! spoils_output {
    ($type:ident, |$event:ident| $spoil:block) => {
        #[derive(Default)]
        pub(super) struct $type;

        impl $type {
            fn spoil(event: &mut Event) {
                let $event = event;
                $spoil
            }
        }

        #[async_trait]
        impl Defect for $type {
            async fn append_batch(
                &self,
                real: &Real,
                stream: &StreamName,
                events: Vec<NewEvent>,
            ) -> Result<Vec<Event>> {
                let mut events = real.backend.append_batch(stream, events).await?;
                events.iter_mut().for_each(Self::spoil);
                Ok(events)
            }
            async fn read(
                &self,
                real: &Real,
                stream: &StreamName,
                options: &ReadOptions,
            ) -> Result<Vec<Event>> {
                let mut events = real.backend.read(stream, options).await?;
                events.iter_mut().for_each(Self::spoil);
                Ok(events)
            }
            async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
                let mut page = real.backend.query(stream, query).await?;
                page.events.iter_mut().for_each(Self::spoil);
                Ok(page)
            }
            async fn fetch(
                &self,
                real: &Real,
                stream: &StreamName,
                group: &GroupName,
                options: &FetchOptions,
            ) -> Result<Vec<Lease>> {
                let mut leases = real.backend.fetch(stream, group, options).await?;
                leases
                    .iter_mut()
                    .for_each(|lease| Self::spoil(&mut lease.event));
                Ok(leases)
            }
        }
    };
}

spoils_output!(TimesAreBehindInOtherPartitions, |event| {
    if event.partition > Partition::ZERO {
        let behind = Duration::from_micros(1);
        event.timestamp = event.timestamp.saturating_sub(behind);
    }
});

spoils_output!(TimestampsAreInMilliseconds, |event| {
    let micros = event.timestamp.as_micros();
    event.timestamp = Timestamp::from_micros(micros - micros.rem_euclid(1_000)).expect("in range");
});

spoils_output!(TimestampsAreUnsigned, |event| {
    event.timestamp = event.timestamp.max(Timestamp::UNIX_EPOCH);
});

spoils_input!(MissingKeysAreTheTextNull, |event| {
    event.partition = event
        .partition
        .or(event.key.is_none().then_some(Partition::ZERO));
    event
        .key
        .get_or_insert_with(|| EventKey::new("null").expect("allowed"));
});

spoils_input!(EmptyMetadataGetsAField, |event| {
    if event.metadata.is_empty() {
        event.metadata = JsonObject::metadata(json!({ "version": 1 })).expect("allowed");
    }
});

spoils_input!(TypesAreTrimmed, |event| {
    event.event_type = EventType::new(event.event_type.as_str().trim()).expect("allowed");
});

spoils_input!(KeysAreLowered, |event| {
    let lowered = |key: EventKey| EventKey::new(key.as_str().to_ascii_lowercase());
    event.key = event.key.take().map(lowered).transpose().expect("allowed");
});

spoils_input!(KeysAreCutAt255Bytes, |event| {
    let cut = |key: EventKey| EventKey::new(&key.as_str()[..key.as_str().floor_char_boundary(255)]);
    event.key = event.key.take().map(cut).transpose().expect("allowed");
});

#[derive(Default)]
pub(super) struct TimestampsAreNanosecondsIn64Bits;

#[async_trait]
impl Defect for TimestampsAreNanosecondsIn64Bits {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        if real.now().as_micros().checked_mul(1_000).is_none() {
            return Err(Error::Failed(Cause::new("timestamp out of range")));
        }
        real.backend.append_batch(stream, events).await
    }
}

/// The answer is made of the input, with another look at the clock.
#[derive(Default)]
pub(super) struct AppendAnswersWithAnotherTime;

#[async_trait]
impl Defect for AppendAnswersWithAnotherTime {
    async fn append(&self, real: &Real, stream: &StreamName, event: NewEvent) -> Result<Event> {
        let mut event = real.backend.append(stream, event).await?;
        if event.metadata.is_empty() {
            return Ok(event);
        }
        event.timestamp = event.timestamp.saturating_add(Duration::from_micros(1));
        Ok(event)
    }
}

#[derive(Default)]
pub(super) struct FetchForgetsTheKey;

#[async_trait]
impl Defect for FetchForgetsTheKey {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        leases.iter_mut().for_each(|lease| lease.event.key = None);
        Ok(leases)
    }
}

#[derive(Default)]
pub(super) struct RedeliveryForgetsTheMetadata;

#[async_trait]
impl Defect for RedeliveryForgetsTheMetadata {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for lease in leases.iter_mut().filter(|lease| lease.attempt > 1) {
            lease.event.metadata = JsonObject::default();
        }
        Ok(leases)
    }
}

#[derive(Default)]
pub(super) struct RenewForgetsTheKey;

#[async_trait]
impl Defect for RenewForgetsTheKey {
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let mut renewed = real.backend.renew(lease, duration).await?;
        renewed.event.key = None;
        Ok(renewed)
    }
}

#[derive(Default)]
pub(super) struct QueryForgetsTheMetadata;

#[async_trait]
impl Defect for QueryForgetsTheMetadata {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut page = real.backend.query(stream, query).await?;
        page.events
            .iter_mut()
            .for_each(|event| event.metadata = JsonObject::default());
        Ok(page)
    }
}

#[derive(Default)]
pub(super) struct BatchForgetsTheKeys;

#[async_trait]
impl Defect for BatchForgetsTheKeys {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        if events.len() > 1
            && events
                .iter()
                .all(|event| event.partition.is_some() || event.key.is_none())
        {
            events.iter_mut().for_each(|event| event.key = None);
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
pub(super) struct DeadLettersForgetTheMetadata;

#[async_trait]
impl Defect for DeadLettersForgetTheMetadata {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        dead.iter_mut()
            .for_each(|letter| letter.event.metadata = JsonObject::default());
        Ok(dead)
    }
}

#[derive(Default)]
pub(super) struct DeadLettersAreStampedAnew;

#[async_trait]
impl Defect for DeadLettersAreStampedAnew {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        dead.iter_mut()
            .for_each(|letter| letter.event.timestamp = letter.dead_at);
        Ok(dead)
    }
}

/// Spoils the events of a batch from one on.
macro_rules! spoils_from {
    ($type:ident, $from:literal, |$event:ident, $first:ident| $spoil:block) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn append_batch(
                &self,
                real: &Real,
                stream: &StreamName,
                mut events: Vec<NewEvent>,
            ) -> Result<Vec<Event>> {
                if let Some($first) = events.first().cloned() {
                    for $event in events.iter_mut().skip($from - 1) {
                        $spoil
                    }
                }
                real.backend.append_batch(stream, events).await
            }
        }
    };
}

spoils_from!(MetadataIsLostFromThe11thOfABatch, 11, |event, _first| {
    event.metadata = JsonObject::default();
});

spoils_from!(MetadataIsLostFromThe101stOfABatch, 101, |event, _first| {
    event.metadata = JsonObject::default();
});

spoils_from!(KeysAreLostFromThe251stOfABatch, 251, |event, _first| {
    if event.partition.is_some() || event.key.is_some() {
        event.key = None;
    }
});

spoils_from!(ABatchHasTheTypeOfItsFirst, 2, |event, first| {
    event.event_type = first.event_type.clone();
});

spoils_from!(ABatchHasTheMetadataOfItsFirst, 2, |event, first| {
    if !event.metadata.is_empty() {
        event.metadata = first.metadata.clone();
    }
});

/// From the eleventh event on, a batch is answered with a later time than is kept.
#[derive(Default)]
pub(super) struct LargeBatchesAreAnsweredWithALaterTime;

#[async_trait]
impl Defect for LargeBatchesAreAnsweredWithALaterTime {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let mut appended = real.backend.append_batch(stream, events).await?;
        for event in appended.iter_mut().skip(10) {
            event.timestamp = event.timestamp.saturating_add(Duration::from_micros(1));
        }
        Ok(appended)
    }
}
