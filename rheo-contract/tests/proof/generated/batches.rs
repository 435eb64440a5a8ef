//! Batches that are right one by one, and not when they overlap.

use std::collections::BTreeSet;
use std::sync::Mutex;

use rheo_core::{Error, Event, EventId, Existing, NewEvent, Query, StreamName};

use crate::faulty::{Faulty, faulty};
use crate::generated::meddling::UnderWay;
use crate::generated::spoils::spoils;
use crate::tweak::lock;

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        BatchesReserveIdsOneByOne: "a batch reserves its ids one by one, and gives them back where one of them is reserved",
        says: "Err(AlreadyExists) only where one of the ids is in the log",
        kills: ["races::LOG-7::batches_at_once_that_share_ids_are_whole_or_refused"],
    },
    faulty! {
        OverlappingBatchesAreWrittenInParts: "where batches overlap, one that is refused has written its first event",
        says: "the log: the batches that were written",
        kills: ["races::LOG-7::batches_at_once_that_share_ids_are_whole_or_refused"],
    },
    faulty! {
        LosersOfOverlappingBatchesWin: "a batch that is refused while others are under way is taken for a repeated one, and answered with what is there",
        says: "the log: the batches that were written",
        kills: ["races::LOG-7::batches_at_once_that_share_ids_are_whole_or_refused"],
    },
];

/// Batches that are under way, by their streams.
type Batches = UnderWay<StreamName>;

fn ids_of(events: &[NewEvent]) -> Vec<EventId> {
    events.iter().filter_map(|event| event.id).collect()
}

#[derive(Default)]
struct Reserved(Mutex<BTreeSet<(StreamName, EventId)>>);

#[derive(Default)]
struct BatchesReserveIdsOneByOne;

spoils! { BatchesReserveIdsOneByOne {
    append_batch(self, real, stream, events) {
        let reserved = real.beside.of::<Reserved>();
        let ids = ids_of(&events);
        let distinct: BTreeSet<&EventId> = ids.iter().collect();
        if ids.len() < 2 || distinct.len() < ids.len() {
            return real.backend.append_batch(stream, events).await;
        }
        let mut own = Vec::new();
        let mut taken = None;
        for id in ids {
            let key = (stream.clone(), id);
            if !lock(&reserved.0).insert(key.clone()) {
                taken = Some(id);
                break;
            }
            own.push(key);
            tokio::task::yield_now().await;
        }
        let result = match taken {
            Some(id) => Err(Error::AlreadyExists(Existing::Event(id))),
            None => real.backend.append_batch(stream, events).await,
        };
        lock(&reserved.0).retain(|key| !own.contains(key));
        result
    }
} }

#[derive(Default)]
struct OverlappingBatchesAreWrittenInParts;

spoils! { OverlappingBatchesAreWrittenInParts {
    append_batch(self, real, stream, events) {
        let open = real.beside.of::<Batches>();
        let overlaps = open.has(stream);
        let _open = open.begin(stream.clone());
        if !overlaps || events.len() < 2 {
            return real.backend.append_batch(stream, events).await;
        }
        let mut events = events;
        let rest = events.split_off(1);
        let mut written = real.backend.append_batch(stream, events).await?;
        written.extend(real.backend.append_batch(stream, rest).await?);
        Ok(written)
    }
} }

#[derive(Default)]
struct LosersOfOverlappingBatchesWin;

spoils! { LosersOfOverlappingBatchesWin {
    append_batch(self, real, stream, events) {
        let open = real.beside.of::<Batches>();
        let overlaps = open.has(stream);
        let _open = open.begin(stream.clone());
        let ids = ids_of(&events);
        let appended = real.backend.append_batch(stream, events).await;
        if !overlaps || ids.len() < 2 || appended.is_ok() {
            return appended;
        }
        let page = real.backend.query(stream, &Query::new().with_limit(10_000)).await?;
        let there = |id: &EventId| page.events.iter().find(|event| event.id == *id).cloned();
        let there: Option<Vec<Event>> = ids.iter().map(there).collect();
        there.map_or(appended, Ok)
    }
} }
