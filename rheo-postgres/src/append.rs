//! Appending to the log and reading it in order; making the streams that it is in.

use std::collections::{HashMap, HashSet};

use rheo_core::{
    Error, Event, EventId, Existing, JsonObject, NewEvent, Operation, Partition, PartitionCount,
    ReadOptions, Result, Sequence, StreamName, StreamOptions, Timestamp,
};
use tokio::time::Instant;
use uuid::Uuid;

use crate::error::{Subject, failed};
use crate::json::Jsonb;
use crate::row::{self, column, small};
use crate::store::{Statement, Store};

/// The most bytes of JSON in a batch: in the server all of it is one array, which has less than 1 GiB,
/// and as `jsonb` a list of small numbers is six times as long as its text.
pub(crate) const MAX_BATCH_BYTES: usize = 64 * 1024 * 1024;

/// A stream as the store knows it. Neither changes as long as the stream is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamRow {
    pub(crate) stream_id: i64,
    pub(crate) partition_count: PartitionCount,
}

/// Events in columns, as they go out.
#[derive(Debug, Default)]
struct Columns {
    ids: Vec<Uuid>,
    partitions: Vec<i32>,
    types: Vec<String>,
    keys: Vec<Option<String>>,
    payloads: Vec<Jsonb>,
    metadata: Vec<Jsonb>,
}

const CREATE_STREAM: &str = "SELECT {schema}.create_stream($1, $2)";
const FIND_STREAM: &str = "SELECT stream_id, partition_count FROM {schema}.find_stream($1)";
const APPEND: &str = "SELECT partition, base FROM {schema}.append($1, $2, $3, $4, $5, $6, $7, $8)";
const READ: &str = "SELECT * FROM {schema}.read($1, $2, $3, $4)";

impl Store {
    pub(crate) async fn create_stream(
        &self,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let subject = Subject::of_stream(stream);
        let bind = |statement: Statement| {
            statement
                .bind(stream.as_str().to_owned())
                .bind(options.partition_count.get().cast_signed())
        };
        self.rows(Operation::CreateStream, &subject, CREATE_STREAM, bind)
            .await?;
        Ok(())
    }

    /// Looks a stream up; `operation` is what it is for, and must be one that only reads.
    pub(crate) async fn find_stream(
        &self,
        deadline: Instant,
        stream: &StreamName,
    ) -> Result<StreamRow> {
        let subject = Subject::of_stream(stream);
        let bind = |statement: Statement| statement.bind(stream.as_str().to_owned());
        let row = self
            .row_until(deadline, Operation::Read, &subject, FIND_STREAM, bind)
            .await?;
        Ok(StreamRow {
            stream_id: column(&row, "stream_id")?,
            partition_count: PartitionCount::new(small(&row, "partition_count")?)?,
        })
    }

    /// Appends events to a stream with that many partitions, all or nothing (LOG-3).
    pub(crate) async fn append(
        &self,
        stream: &StreamName,
        count: PartitionCount,
        events: Vec<NewEvent>,
        deadline: Instant,
    ) -> Result<Vec<Event>> {
        let mut given = HashSet::new();
        for id in events.iter().filter_map(|event| event.id) {
            if !given.insert(id) {
                return Err(Error::AlreadyExists(Existing::Event(id)));
            }
        }
        let now = self.now();
        let mut events = prepare(stream, count, events, now)?;
        if events.is_empty() {
            // Nothing to do; but whether the store is reached comes first (ERR-6).
            return self.ping(deadline).await.map(|()| events);
        }
        let columns = Columns::of(&events);
        columns.check_size(&events, MAX_BATCH_BYTES)?;
        let mut columns = Some(columns);
        let given: Vec<EventId> = given.into_iter().collect();
        let subject = Subject {
            events: &given,
            ..Subject::of_stream(stream)
        };
        let rows = self
            .rows_until(
                deadline,
                Operation::AppendBatch,
                &subject,
                APPEND,
                |statement| {
                    // Made again only for a statement that is repeated.
                    let columns = columns.take().unwrap_or_else(|| Columns::of(&events));
                    statement
                        .bind(stream.as_str().to_owned())
                        .bind(now.as_micros())
                        .bind(columns.ids)
                        .bind(columns.partitions)
                        .bind(columns.types)
                        .bind(columns.keys)
                        .bind(columns.payloads)
                        .bind(columns.metadata)
                },
            )
            .await?;
        let mut last: HashMap<Partition, Sequence> = HashMap::with_capacity(rows.len());
        for row in &rows {
            last.insert(row::partition(row)?, row::sequence(row, "base")?);
        }
        for event in &mut events {
            let last = last.entry(event.partition).or_default();
            *last = last.next();
            event.sequence = *last;
        }
        Ok(events)
    }

    /// Appends events of different callers, each with a result of its own.
    pub(crate) async fn append_each(
        &self,
        stream: &StreamName,
        count: PartitionCount,
        events: Vec<NewEvent>,
        deadline: Instant,
    ) -> Vec<Result<Event>> {
        let together = events.len();
        let mut lower = match together {
            1 => Vec::new(),
            _ => events.clone(),
        };
        match self.append(stream, count, events, deadline).await {
            Ok(events) => events.into_iter().map(Ok).collect(),
            Err(error @ (Error::BackendUnavailable(_) | Error::Ambiguous(_))) => {
                vec![Err(error); together]
            }
            Err(error) if together == 1 => vec![Err(error)],
            // One of them was refused, and with it all: now half of them, so that it takes few
            // statements to find which.
            Err(_) => {
                let upper = lower.split_off(together / 2);
                let lower = Box::pin(self.append_each(stream, count, lower, deadline)).await;
                let upper = Box::pin(self.append_each(stream, count, upper, deadline)).await;
                lower.into_iter().chain(upper).collect()
            }
        }
    }

    pub(crate) async fn read(
        &self,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let subject = Subject::of_stream(stream);
        let rows = self
            .rows(Operation::Read, &subject, READ, |statement| {
                statement
                    .bind(stream.as_str().to_owned())
                    .bind(i64::from(options.partition.number()))
                    .bind(options.after.as_i64())
                    .bind(i64::from(options.limit))
            })
            .await?;
        rows.iter().map(|row| row::event(stream, row)).collect()
    }
}

/// The one event of an append of one.
pub(crate) fn only(events: Vec<Event>) -> Result<Event> {
    let lost = || failed("the store gave no event back");
    events.into_iter().next().ok_or_else(lost)
}

/// The events as they will be in the log, but for their sequences.
fn prepare(
    stream: &StreamName,
    count: PartitionCount,
    events: Vec<NewEvent>,
    now: Timestamp,
) -> Result<Vec<Event>> {
    let prepared = events.into_iter().map(|event| {
        Ok(Event {
            partition: event.route(count)?,
            id: event.id.unwrap_or_else(|| EventId::generate(now)),
            stream: stream.clone(),
            sequence: Sequence::ZERO,
            event_type: event.event_type,
            key: event.key,
            payload: event.payload,
            metadata: event.metadata,
            timestamp: now,
        })
    });
    prepared.collect()
}

impl Columns {
    fn of(events: &[Event]) -> Self {
        let mut columns = Self::default();
        for event in events {
            let key = event.key.as_ref().map(|key| key.as_str().to_owned());
            columns.ids.push(event.id.as_uuid());
            columns
                .partitions
                .push(event.partition.number().cast_signed());
            columns.types.push(event.event_type.as_str().to_owned());
            columns.keys.push(key);
            columns.payloads.push(Jsonb::new(&event.payload));
            columns.metadata.push(Jsonb::new(&event.metadata));
        }
        columns
    }

    fn check_size(&self, events: &[Event], most: usize) -> Result<()> {
        let json = self.payloads.iter().chain(&self.metadata);
        if json.map(Jsonb::len).sum::<usize>() <= most {
            return Ok(());
        }
        // What is sent may be longer than the compact JSON that the limit is about, never shorter.
        let json = events.iter().flat_map(|e| [&e.payload, &e.metadata]);
        let bytes: usize = json.map(JsonObject::byte_len).sum();
        if bytes <= most {
            return Ok(());
        }
        Err(Error::invalid(
            "events",
            format_args!("{bytes} bytes of JSON"),
            format!("at most {most} bytes in a batch on this backend"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_batch_has_a_limit_of_compact_json() -> Result<()> {
        // Four times as long when it is sent.
        let payload = json!({"a": vec![1e19; 100]});
        let event = NewEvent::new("t", payload)?;
        let bytes = 3 * (event.payload.byte_len() + event.metadata.byte_len());
        let (stream, one) = (StreamName::new("s")?, PartitionCount::new(1)?);
        let events = prepare(&stream, one, vec![event; 3], Timestamp::MIN)?;
        let columns = Columns::of(&events);
        assert_eq!(columns.check_size(&events, bytes), Ok(()));
        assert!(columns.check_size(&events, bytes - 1).is_err());
        Ok(())
    }
}
