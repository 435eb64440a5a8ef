//! Streams and what goes into them.

use std::collections::HashSet;

use rheo_core::{
    Error, Event, EventId, Existing, NewEvent, Partition, Result, StreamName, StreamOptions,
    Timestamp,
};

use crate::keyspace::{Keyspace, Stream};

pub(crate) fn create_stream(
    keys: &mut Keyspace,
    name: &StreamName,
    options: &StreamOptions,
) -> Result<()> {
    if keys.streams.contains_key(name) {
        return Err(Error::AlreadyExists(Existing::Stream(name.clone())));
    }
    let stream = Stream::new(name.clone(), options.partition_count);
    keys.streams.insert(name.clone(), stream);
    Ok(())
}

pub(crate) fn append(
    keys: &mut Keyspace,
    stream: &StreamName,
    new: NewEvent,
    now: Timestamp,
) -> Result<Event> {
    let stream = keys.stream(stream)?;
    let (id, partition) = place(stream, &new, now)?;
    Ok(add(stream, id, partition, new, now))
}

/// Everything is checked before the first entry is added: a script is not rolled back (LOG-3).
pub(crate) fn append_batch(
    keys: &mut Keyspace,
    stream: &StreamName,
    batch: Vec<NewEvent>,
    now: Timestamp,
) -> Result<Vec<Event>> {
    let stream = keys.stream(stream)?;
    let mut given = HashSet::with_capacity(batch.len());
    let mut placed = Vec::with_capacity(batch.len());
    for new in batch {
        let (id, partition) = place(stream, &new, now)?;
        if !given.insert(id) {
            return Err(Error::AlreadyExists(Existing::Event(id)));
        }
        placed.push((id, partition, new));
    }
    let add = |(id, partition, new)| add(stream, id, partition, new, now);
    Ok(placed.into_iter().map(add).collect())
}

/// The id and the partition of a new event (LOG-6, LOG-7).
fn place(stream: &Stream, new: &NewEvent, now: Timestamp) -> Result<(EventId, Partition)> {
    let partition = new.route(stream.partition_count)?;
    let id = new.id.unwrap_or_else(|| EventId::generate(now));
    if stream.ids.contains_key(&id) {
        return Err(Error::AlreadyExists(Existing::Event(id)));
    }
    Ok((id, partition))
}

fn add(
    stream: &mut Stream,
    id: EventId,
    partition: Partition,
    new: NewEvent,
    now: Timestamp,
) -> Event {
    let log = &mut stream.partitions[partition.number() as usize];
    let event = Event {
        id,
        stream: stream.name.clone(),
        partition,
        sequence: log.high_watermark().next(),
        event_type: new.event_type,
        key: new.key,
        payload: new.payload,
        metadata: new.metadata,
        timestamp: now,
    };
    let entry = log.native.add(event.clone(), now);
    log.by_sequence.push(entry);
    stream.ids.insert(id, (partition, entry));
    event
}
