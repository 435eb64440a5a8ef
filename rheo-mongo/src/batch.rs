//! A document of the log: the events of one partition that were appended together.
//!
//! ```json
//! {
//!   "_id": "9b1f….0003.0000000000000000101",   stream, partition, first sequence
//!   "stream": "9b1f…", "partition": 3, "first": 101, "last": 102,
//!   "time": 1764433526000001,                   microseconds since 1970
//!   "write": UUID("…"),                         of the write that made it
//!   "ids": [UUID("…"), UUID("…")],
//!   "given": [UUID("…")],                       those of the ids that a caller gave, if any
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
    given: &[EventId],
) -> Result<RawDocumentBuf> {
    let build = |is_compact| {
        build(
            stream_id, partition, first, write, events, given, is_compact,
        )
    };
    let roomy = build(false);
    let document = match roomy.as_bytes().len() > ROOMY {
        false => roomy,
        true => build(true),
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
    given: &[EventId],
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
    if !given.is_empty() {
        let mut array = RawArrayBuf::new();
        for id in given {
            array.push(uuid(id.as_uuid()));
        }
        document.append("given", array);
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(key_bytes: usize, payload: Value, metadata: Value) -> Event {
        Event {
            id: EventId::new(Uuid::from_u128(7)),
            stream: StreamName::new("s").expect("allowed"),
            partition: Partition::new(1_023),
            sequence: Sequence::ZERO,
            event_type: EventType::new("t".repeat(255)).expect("allowed"),
            key: (key_bytes > 0).then(|| EventKey::new("k".repeat(key_bytes)).expect("allowed")),
            payload: JsonObject::payload(payload).expect("allowed"),
            metadata: JsonObject::metadata(metadata).expect("allowed"),
            timestamp: Timestamp::MAX,
        }
    }

    fn made(events: &[Event], first: u64) -> Result<RawDocumentBuf> {
        let events: Vec<&Event> = events.iter().collect();
        let first = Sequence::new(first)?;
        document(
            &"f".repeat(32),
            events[0].partition,
            first,
            Uuid::nil(),
            &events,
            &[events[0].id],
        )
    }

    fn marks(document: &RawDocumentBuf) -> Vec<i64> {
        let marks = document.get_array("marks").expect("there").into_iter();
        marks
            .map(|mark| mark.expect("whole").as_i64().expect("a number"))
            .collect()
    }

    #[test]
    fn events_come_back_with_their_sequences() {
        let events = [
            event(3, json!({"a": [1, 1.0]}), json!({})),
            event(0, json!({"$u": u64::MAX}), json!({"b": null})),
        ];
        let batch = Batch::new(made(&events, 41).expect("fits")).expect("whole");
        assert_eq!((batch.first.get(), batch.last.get()), (41, 42));
        let read = batch.events(&events[0].stream, |_| true).expect("whole");
        for ((read, event), sequence) in read.iter().zip(&events).zip(41..) {
            let sequence = Sequence::new(sequence).expect("in range");
            assert_eq!(
                *read,
                Event {
                    sequence,
                    ..event.clone()
                }
            );
        }
        let second = batch
            .events(&events[0].stream, |s| s.get() == 42)
            .expect("whole");
        assert_eq!(second, read[1..]);
    }

    #[test]
    fn keys_are_in_the_order_of_places() {
        let key = |p, s| key("x", Partition::new(p), Sequence::new(s).expect("in range"));
        let keys = [
            key(0, 1),
            key(0, 9),
            key(0, 10),
            key(0, u64::MAX >> 1),
            key(9, 1),
            key(10, 1),
        ];
        assert!(keys.is_sorted());
    }

    #[test]
    fn the_largest_batch_fits_one_document() {
        // All that may be large is as large as it may be.
        let share = MOST_BYTES / MOST_EVENTS - r#"{"a":""}{}"#.len();
        let small = event(1_024, json!({"a": "x".repeat(share)}), json!({}));
        let many = vec![small; MOST_EVENTS];
        // Numbers take several times the room in BSON.
        let zeros = json!({ "a": vec![0; 500_000] });
        let large = vec![event(0, zeros.clone(), zeros); 4];
        for events in [many, large] {
            let document = made(&events, u64::MAX >> 2).expect("fits");
            assert_eq!(marks(&document), [UNMARKED], "it is compact");
            let batch = Batch::new(document).expect("whole");
            let read = batch.events(&events[0].stream, |_| true).expect("whole");
            assert_eq!(read.len(), events.len());
            assert_eq!(read[0].payload, events[0].payload);
        }
    }

    #[test]
    fn a_matching_event_is_never_left_out() {
        let wide: serde_json::Map<String, Value> =
            (0..100).map(|n| (format!("f{n}"), json!(n))).collect();
        let events = [
            event(3, json!({"a": 1, "b": {"$gt": ""}}), json!({"c": 2.0})),
            event(0, Value::Object(wide), json!({})),
        ];
        let plain = marks(&made(&events[..1], 1).expect("fits"));
        let query = Query::new()
            .with_event_type(events[0].event_type.clone())
            .with_key(EventKey::new("kkk").expect("allowed"))
            .with_payload_field("a", json!(1.0))
            .and_then(|query| query.with_payload_field("b", json!({"$gt": ""})))
            .and_then(|query| query.with_metadata_field("c", json!(2)))
            .expect("allowed");
        let wanted = marks_of(&query);
        assert_eq!(wanted.len(), 5);
        for mark in wanted {
            assert!(plain.contains(&mark.as_i64().expect("a number")));
        }
        assert!(!plain.contains(&UNMARKED));
        assert!(marks(&made(&events[1..], 1).expect("fits")).contains(&UNMARKED));
    }
}
