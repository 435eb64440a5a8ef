//! Events that go to another partition than they should.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use rheo_core::{
    Event, EventKey, NewEvent, Partition, PartitionCount, Result, StreamName, StreamOptions,
    async_trait,
};

use crate::defect::{Defect, Real};

macro_rules! routes {
    ($type:ident, |$event:ident, $count:ident, $number:ident| $route:block) => {
        #[derive(Default)]
        pub(super) struct $type {
            counts: Mutex<HashMap<StreamName, u32>>,
            numbers: AtomicU32,
        }

        #[async_trait]
        impl Defect for $type {
            async fn create_stream(
                &self,
                real: &Real,
                stream: &StreamName,
                options: &StreamOptions,
            ) -> Result<()> {
                real.backend.create_stream(stream, options).await?;
                let mut counts = self.counts.lock().expect("not poisoned");
                counts.insert(stream.clone(), options.partition_count.get());
                Ok(())
            }
            async fn append_batch(
                &self,
                real: &Real,
                stream: &StreamName,
                mut events: Vec<NewEvent>,
            ) -> Result<Vec<Event>> {
                let known = self
                    .counts
                    .lock()
                    .expect("not poisoned")
                    .get(stream)
                    .copied();
                let $count = known.unwrap_or(1);
                for $event in &mut events {
                    let $number = self.numbers.fetch_add(1, Ordering::SeqCst);
                    let route: Option<Partition> = $route;
                    $event.partition = route;
                }
                real.backend.append_batch(stream, events).await
            }
        }
    };
}

routes!(KeysGoByTheSumOfTheirBytes, |event, count, _number| {
    let sum = |key: &EventKey| key.as_str().bytes().map(u32::from).sum::<u32>() % count;
    event
        .partition
        .or(event.key.as_ref().map(sum).map(Partition::new))
});

routes!(KeysAreHashedAsAscii, |event, count, _number| {
    let count = PartitionCount::new(count).expect("allowed");
    let ascii = |key: &EventKey| {
        let text: String = key.as_str().chars().filter(char::is_ascii).collect();
        EventKey::new(text + "").map_or(Partition::ZERO, |key| count.partition_of(&key))
    };
    event.partition.or(event.key.as_ref().map(ascii))
});

routes!(KeyGoesBeforeThePartition, |event, _count, _number| {
    event.partition.filter(|_| event.key.is_none())
});

routes!(EventsWithoutKeyAreSpread, |event, count, number| {
    let none = event.partition.is_none() && event.key.is_none();
    if none {
        Some(Partition::new(number % count))
    } else {
        event.partition
    }
});

routes!(SinglePartitionIsHashedToo, |event, count, _number| {
    let two = PartitionCount::new(2).expect("allowed");
    let hashed = event.key.as_ref().map(|key| two.partition_of(key));
    event.partition.or(hashed.filter(|_| count == 1))
});

routes!(PartitionIsWrappedAround, |event, count, _number| {
    event
        .partition
        .map(|partition| Partition::new(partition.number() % count))
});

#[derive(Default)]
pub(super) struct BatchGoesToOnePartition;

#[async_trait]
impl Defect for BatchGoesToOnePartition {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        if let [first, rest @ ..] = &mut events[..] {
            for event in rest.iter_mut().filter(|event| event.id.is_none()) {
                event.partition = Some(first.partition.unwrap_or_default());
            }
        }
        real.backend.append_batch(stream, events).await
    }
}

/// Cuts keys before they are hashed.
#[derive(Default)]
pub(super) struct KeysAreHashedTo255Bytes {
    counts: Mutex<HashMap<StreamName, PartitionCount>>,
}

#[async_trait]
impl Defect for KeysAreHashedTo255Bytes {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        real.backend.create_stream(stream, options).await?;
        let mut counts = self.counts.lock().expect("not poisoned");
        counts.insert(stream.clone(), options.partition_count);
        Ok(())
    }
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let count = self
            .counts
            .lock()
            .expect("not poisoned")
            .get(stream)
            .copied();
        for event in &mut events {
            if let (None, Some(key), Some(count)) = (event.partition, &event.key, count) {
                let text = key.as_str();
                let cut = EventKey::new(&text[..text.floor_char_boundary(255)])?;
                event.partition = Some(count.partition_of(&cut));
            }
        }
        real.backend.append_batch(stream, events).await
    }
}

/// Of the partitions in a batch, the first digit is kept.
#[derive(Default)]
pub(super) struct PartitionsOfABatchAreOneDigit;

#[async_trait]
impl Defect for PartitionsOfABatchAreOneDigit {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        if events.len() > 1 {
            for event in &mut events {
                let two_digits = event
                    .partition
                    .filter(|of| (10..100).contains(&of.number()));
                if let Some(partition) = two_digits {
                    event.partition = Some(Partition::new(partition.number() / 10));
                }
            }
        }
        real.backend.append_batch(stream, events).await
    }
}
