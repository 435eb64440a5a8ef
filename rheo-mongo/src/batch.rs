//! A document of the log: the events of one partition that were appended together.
//!
//! ```json
//! {
//!   "_id": "9b1f….0003.0000000000000000101",   stream, partition, first sequence
//!   "stream": "9b1f…", "partition": 3, "first": 101, "last": 102,
//!   "time": 1764433526000001,                   microseconds since 1970
//!   "write": UUID("…"),                         of the write that made it
//!   "ids": [UUID("…"), UUID("…")],
//!   "marks": [-77, 1234, …],                    what filters look for
//!   "events": [{"type": "order.placed", "key": "customer-7", "payload": {…}, "metadata": {…}}, …]
//! }
//! ```
//!
//! A payload or metadata object that BSON would change is kept as JSON text ([`json`]).
//! Empty metadata is left out.

use std::collections::BTreeSet;
use std::sync::Arc;

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, RawArrayBuf, RawBson, RawDocument, RawDocumentBuf};
use rheo_core::{
    Error, Event, EventId, EventKey, EventType, JsonObject, Partition, Query, Result, Sequence,
    StreamName, Timestamp,
};
use serde_json::Value;
use uuid::Uuid;

use crate::error::failed;
use crate::json;

/// The most events in a batch, and with it in a document.
pub(crate) const MOST_EVENTS: usize = 5_000;

/// The most bytes of payload and metadata in a batch. With [`MOST_EVENTS`] of at most 1.5 KiB besides,
/// a document has less than 16 MB in its compact form.
pub(crate) const MOST_BYTES: usize = 8 * 1024 * 1024;

/// A document above that is made again in its compact form: all JSON as text, and no marks.
const ROOMY: usize = 15_000_000;

/// More fields of an object than this are not marked: its events are always looked at.
const MOST_MARKED: usize = 64;

/// The mark of a document that has not all marks.
pub(crate) const UNMARKED: i64 = 0;

/// Where a document of the log is: the key that appends compare and set.
pub(crate) fn key(stream_id: &str, partition: Partition, first: Sequence) -> String {
    format!("{stream_id}.{:04}.{:019}", partition.number(), first.get())
}

pub(crate) fn uuid(id: Uuid) -> Binary {
    Binary {
        subtype: BinarySubtype::Uuid,
        bytes: id.as_bytes().to_vec(),
    }
}

/// Makes the document of events that follow each other; the first has sequence `first`.
pub(crate) fn document(
    stream_id: &str,
    partition: Partition,
    first: Sequence,
    write: Uuid,
    events: &[&Event],
) -> Result<RawDocumentBuf> {
    let roomy = build(stream_id, partition, first, write, events, false);
    let document = match roomy.as_bytes().len() > ROOMY {
        false => roomy,
        true => build(stream_id, partition, first, write, events, true),
    };
    if document.as_bytes().len() > 16 * 1024 * 1024 {
        return Err(Error::invalid(
            "events",
            format_args!("a document of {} bytes", document.as_bytes().len()),
            "events of a partition that fit a document of 16 MB",
        ));
    }
    Ok(document)
}

fn build(
    stream_id: &str,
    partition: Partition,
    first: Sequence,
    write: Uuid,
    events: &[&Event],
    is_compact: bool,
) -> RawDocumentBuf {
    let last = first.as_i64() - 1 + i64::try_from(events.len()).unwrap_or(i64::MAX);
    let time = events
        .first()
        .map_or(0, |event| event.timestamp.as_micros());
    let (mut ids, mut array) = (RawArrayBuf::new(), RawArrayBuf::new());
    let mut marks = BTreeSet::new();
    for event in events {
        ids.push(uuid(event.id.as_uuid()));
        array.push(event_document(event, is_compact));
        match is_compact {
            true => _ = marks.insert(UNMARKED),
            false => mark_event(event, &mut marks),
        }
    }
    let mut marked = RawArrayBuf::new();
    for mark in marks {
        marked.push(mark);
    }
    let mut document = RawDocumentBuf::new();
    document.append("_id", key(stream_id, partition, first));
    document.append("stream", stream_id);
    document.append("partition", partition.number().cast_signed());
    document.append("first", first.as_i64());
    document.append("last", last);
    document.append("time", time);
    document.append("write", uuid(write));
    document.append("ids", ids);
    document.append("marks", marked);
    document.append("events", array);
    document
}

fn event_document(event: &Event, is_compact: bool) -> RawDocumentBuf {
    let stored = |object: &JsonObject| -> RawBson {
        match is_compact {
            true => json::text(object),
            false => json::stored(object),
        }
    };
    let mut document = RawDocumentBuf::new();
    document.append("type", event.event_type.as_str());
    if let Some(key) = &event.key {
        document.append("key", key.as_str());
    }
    document.append("payload", stored(&event.payload));
    if !event.metadata.is_empty() {
        document.append("metadata", stored(&event.metadata));
    }
    document
}

// Marks

fn mark_event(event: &Event, marks: &mut BTreeSet<i64>) {
    let mut add = |what: &str, name: &str, value: &Value| {
        if let Bson::Int64(mark) = json::mark(what, name, value) {
            marks.insert(mark);
        }
    };
    add("type", "", &Value::from(event.event_type.as_str()));
    if let Some(key) = &event.key {
        add("key", "", &Value::from(key.as_str()));
    }
    for (what, object) in [("payload", &event.payload), ("metadata", &event.metadata)] {
        if object.as_map().len() > MOST_MARKED {
            marks.insert(UNMARKED);
            continue;
        }
        for (name, value) in object.as_map() {
            json::mark(what, name, value)
                .as_i64()
                .map(|mark| marks.insert(mark));
        }
    }
}

/// The marks that every document with a matching event has, unless it is unmarked.
pub(crate) fn marks_of(query: &Query) -> Vec<Bson> {
    let mut marks = Vec::new();
    if let Some(event_type) = &query.event_type {
        marks.push(json::mark("type", "", &Value::from(event_type.as_str())));
    }
    if let Some(key) = &query.key {
        marks.push(json::mark("key", "", &Value::from(key.as_str())));
    }
    for (what, fields) in [("payload", &query.payload), ("metadata", &query.metadata)] {
        for (name, value) in fields {
            marks.push(json::mark(what, name, value));
        }
    }
    marks
}

// Reading

/// A document of the log that was read.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) partition: Partition,
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
    pub(crate) timestamp: Timestamp,
    document: Arc<RawDocumentBuf>,
}

impl Batch {
    pub(crate) fn new(document: RawDocumentBuf) -> Result<Self> {
        let partition = document.get_i32("partition").map_err(damaged)?;
        Ok(Self {
            partition: Partition::new(partition.cast_unsigned()),
            first: sequence(&document, "first")?,
            last: sequence(&document, "last")?,
            timestamp: Timestamp::from_micros(document.get_i64("time").map_err(damaged)?)?,
            document: Arc::new(document),
        })
    }

    pub(crate) fn byte_len(&self) -> usize {
        self.document.as_bytes().len()
    }

    pub(crate) fn contains(&self, sequence: Sequence) -> bool {
        self.first <= sequence && sequence <= self.last
    }

    /// Its events with a sequence that is wanted, ascending.
    pub(crate) fn events(
        &self,
        stream: &StreamName,
        is_wanted: impl Fn(Sequence) -> bool,
    ) -> Result<Vec<Event>> {
        let ids = self.document.get_array("ids").map_err(damaged)?;
        let events = self.document.get_array("events").map_err(damaged)?;
        let mut wanted = Vec::new();
        let mut sequence = self.first;
        for (id, event) in ids.into_iter().zip(events) {
            let (id, event) = (id.map_err(damaged)?, event.map_err(damaged)?);
            if is_wanted(sequence) {
                let id = id.as_binary().ok_or_else(|| damaged(()))?;
                let id = Uuid::from_slice(id.bytes).map_err(damaged)?;
                let event = event.as_document().ok_or_else(|| damaged(()))?;
                wanted.push(self.event(stream, sequence, EventId::new(id), event)?);
            }
            sequence = sequence.next();
        }
        Ok(wanted)
    }

    /// Where the event with this id is, if it is here.
    pub(crate) fn place_of(&self, id: EventId) -> Result<Option<Sequence>> {
        let ids = self.document.get_array("ids").map_err(damaged)?;
        let mut sequence = self.first;
        for other in ids {
            let other = other.map_err(damaged)?;
            if other
                .as_binary()
                .is_some_and(|other| other.bytes == id.as_uuid().as_bytes())
            {
                return Ok(Some(sequence));
            }
            sequence = sequence.next();
        }
        Ok(None)
    }

    fn event(
        &self,
        stream: &StreamName,
        sequence: Sequence,
        id: EventId,
        event: &RawDocument,
    ) -> Result<Event> {
        let object = |name: &str, made: fn(Value) -> Result<JsonObject>| match event
            .get(name)
            .map_err(damaged)?
        {
            Some(stored) => made(json::value(stored)?),
            None => Ok(JsonObject::default()),
        };
        let key = match event.get("key").map_err(damaged)? {
            Some(key) => Some(EventKey::new(key.as_str().ok_or_else(|| damaged(()))?)?),
            None => None,
        };
        Ok(Event {
            id,
            stream: stream.clone(),
            partition: self.partition,
            sequence,
            event_type: EventType::new(event.get_str("type").map_err(damaged)?)?,
            key,
            payload: object("payload", JsonObject::payload)?,
            metadata: object("metadata", JsonObject::metadata)?,
            timestamp: self.timestamp,
        })
    }
}

fn sequence(document: &RawDocument, name: &str) -> Result<Sequence> {
    Sequence::try_from(document.get_i64(name).map_err(damaged)?)
}

fn damaged<E>(_: E) -> Error {
    failed("a document of the log is damaged")
}
