//! Errors that name something else.

use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, Event, EventId, Existing, FetchOptions, GroupName,
    GroupOptions, Lease, NewEvent, ReadOptions, Result, StreamName, async_trait,
};
use uuid::Uuid;

use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        MissingStreamsAreNamedWithoutCase: "a read of a missing stream names it in lower case",
        says: "read to give Err(StreamNotFound",
        kills: ["input::ERR-10::a_missing_stream_is_named_as_it_was_given"],
    },
    faulty! {
        MissingGroupsAreNamedAsTheirStream: "a fetch names a missing group as its stream too",
        says: "fetch to give Err(GroupNotFound",
        kills: ["input::ERR-10::a_missing_group_is_named_with_its_stream"],
    },
    faulty! {
        ATakenGroupIsNamedAsItsStream: "a group that exists is named as a stream that does",
        says: "the error",
        kills: ["input::ERR-10::a_taken_name_is_named_as_it_was_given"],
    },
    faulty! {
        ATakenIdIsNil: "an id that exists is named as the nil one",
        says: "the error",
        kills: [
            "input::ERR-10::a_taken_id_is_named",
            "input::ERR-10::the_taken_id_of_a_batch_is_named",
        ],
    },
    faulty! {
        TheFirstIdOfABatchIsNamed: "whichever id of a batch exists, the first is named",
        says: "the error",
        kills: ["input::ERR-10::the_taken_id_of_a_batch_is_named"],
    },
    faulty! {
        NoCursorIsNamed: "a cursor that is not found is named as the nil id",
        says: "the error",
        kills: ["input::ERR-10::a_cursor_that_is_not_found_is_named"],
    },
];

#[derive(Default)]
struct MissingStreamsAreNamedWithoutCase;

#[async_trait]
impl Defect for MissingStreamsAreNamedWithoutCase {
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        match real.backend.read(stream, options).await {
            Err(Error::StreamNotFound { stream }) => {
                let stream = StreamName::new(stream.as_str().to_lowercase())?;
                Err(Error::StreamNotFound { stream })
            }
            result => result,
        }
    }
}

#[derive(Default)]
struct MissingGroupsAreNamedAsTheirStream;

#[async_trait]
impl Defect for MissingGroupsAreNamedAsTheirStream {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        match real.backend.fetch(stream, group, options).await {
            Err(Error::GroupNotFound { stream, .. }) => Err(Error::GroupNotFound {
                group: GroupName::new(stream.as_str())?,
                stream,
            }),
            result => result,
        }
    }
}

#[derive(Default)]
struct ATakenGroupIsNamedAsItsStream;

#[async_trait]
impl Defect for ATakenGroupIsNamedAsItsStream {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        match real.backend.create_group(stream, group, options).await {
            Err(Error::AlreadyExists(_)) => {
                Err(Error::AlreadyExists(Existing::Stream(stream.clone())))
            }
            result => result,
        }
    }
}

fn nil() -> EventId {
    EventId::new(Uuid::nil())
}

#[derive(Default)]
struct ATakenIdIsNil;

#[async_trait]
impl Defect for ATakenIdIsNil {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        match real.backend.append_batch(stream, events).await {
            Err(Error::AlreadyExists(_)) => Err(Error::AlreadyExists(Existing::Event(nil()))),
            result => result,
        }
    }
}

#[derive(Default)]
struct TheFirstIdOfABatchIsNamed;

#[async_trait]
impl Defect for TheFirstIdOfABatchIsNamed {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let first = events.iter().find_map(|event| event.id);
        match (real.backend.append_batch(stream, events).await, first) {
            (Err(Error::AlreadyExists(_)), Some(first)) => {
                Err(Error::AlreadyExists(Existing::Event(first)))
            }
            (result, _) => result,
        }
    }
}

#[derive(Default)]
struct NoCursorIsNamed;

#[async_trait]
impl Defect for NoCursorIsNamed {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        match real.backend.dead_letters(stream, group, options).await {
            Err(Error::CursorNotFound { .. }) => Err(Error::CursorNotFound { after: nil() }),
            result => result,
        }
    }
}
