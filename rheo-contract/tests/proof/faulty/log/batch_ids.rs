//! Ids of batches that are noted in part.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use rheo_core::{
    Error, Event, EventId, Existing, NewEvent, Partition, Result, StreamName, async_trait,
};

use crate::defect::{Defect, Real};

/// Notes what of a batch `$forgets`, and takes it again, alone or in a batch as `$when` says.
macro_rules! forgets {
    ($type:ident, |$written:ident| $forgotten:expr, |$again:ident| $when:expr) => {
        #[derive(Default)]
        pub(super) struct $type {
            forgotten: Mutex<HashSet<EventId>>,
        }

        #[async_trait]
        impl Defect for $type {
            async fn append_batch(
                &self,
                real: &Real,
                stream: &StreamName,
                events: Vec<NewEvent>,
            ) -> Result<Vec<Event>> {
                let mut $again = events.clone();
                if $when {
                    let forgotten = self.forgotten.lock().expect("not poisoned");
                    for event in &mut $again {
                        event.id = event.id.filter(|id| !forgotten.contains(id));
                    }
                }
                let $written = real.backend.append_batch(stream, $again).await?;
                if $written.len() > 1 {
                    let ids: Vec<EventId> = $forgotten;
                    self.forgotten.lock().expect("not poisoned").extend(ids);
                }
                Ok($written)
            }
        }
    };
}

fn ids(events: &[Event]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

forgets!(IdsOfABatchAreNotNoted, |written| ids(&written), |again| {
    again.len() == 1
});

forgets!(
    JustTheFirstIdOfABatchIsNoted,
    |written| ids(&written[1..]),
    |again| !again.is_empty()
);

forgets!(
    TheLastIdOfABatchIsNotNoted,
    |written| ids(&written[written.len() - 1..]),
    |again| again.len() == 1
);

forgets!(
    BatchesAreNotComparedWithBatches,
    |written| ids(&written),
    |again| again.len() > 1
);

/// Ids of a batch are taken in the partition of their event alone.
#[derive(Default)]
pub(super) struct IdsOfABatchAreNotedByPartition {
    batches: Mutex<HashMap<EventId, Partition>>,
}

#[async_trait]
impl Defect for IdsOfABatchAreNotedByPartition {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let known = self.batches.lock().expect("not poisoned").clone();
        for event in &mut events {
            let partition = event.partition.unwrap_or_default();
            let is_elsewhere = |id: &EventId| known.get(id).is_some_and(|of| *of != partition);
            event.id = event.id.filter(|id| !is_elsewhere(id));
        }
        let written = real.backend.append_batch(stream, events).await?;
        if written.len() > 1 {
            let places = written.iter().map(|event| (event.id, event.partition));
            self.batches.lock().expect("not poisoned").extend(places);
        }
        Ok(written)
    }
}

/// Ids of one batch are compared where they name the same partition, or have the same key.
#[derive(Default)]
pub(super) struct IdsOfABatchAreComparedByPartition;

#[async_trait]
impl Defect for IdsOfABatchAreComparedByPartition {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        for at in 1..events.len() {
            let (before, rest) = events.split_at_mut(at);
            let event = &mut rest[0];
            let to = |event: &NewEvent| (event.partition, event.key.clone());
            let is_elsewhere = |other: &NewEvent| other.id == event.id && to(other) != to(event);
            if before.iter().any(is_elsewhere) {
                event.id = None;
            }
        }
        real.backend.append_batch(stream, events).await
    }
}

/// A batch with an id that a batch to another stream had is refused.
#[derive(Default)]
pub(super) struct IdsOfBatchesAreUniqueEverywhere {
    batches: Mutex<HashMap<EventId, StreamName>>,
}

#[async_trait]
impl Defect for IdsOfBatchesAreUniqueEverywhere {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let known = self.batches.lock().expect("not poisoned").clone();
        let elsewhere = |id: &EventId| known.get(id).is_some_and(|of| of != stream);
        let taken = events.iter().filter_map(|event| event.id).find(elsewhere);
        if let Some(id) = taken.filter(|_| events.len() > 1) {
            return Err(Error::AlreadyExists(Existing::Event(id)));
        }
        let written = real.backend.append_batch(stream, events).await?;
        let places = written.iter().map(|event| (event.id, stream.clone()));
        self.batches.lock().expect("not poisoned").extend(places);
        Ok(written)
    }
}
