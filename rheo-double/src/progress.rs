//! Groups: where they start, how far they are, and how they go back.

use std::collections::BTreeSet;

use rheo_core::{
    Error, Existing, GroupName, GroupOptions, Lag, Partition, PartitionLag, Partitions, Replay,
    ResetOptions, Result, Sequence, Start, StreamName, Timestamp,
};

use crate::deliveries::Deliveries;
use crate::error::portable;
use crate::keyspace::{Group, Keyspace, Stream};
use crate::server::EntryId;

pub(crate) fn create_group(
    keys: &mut Keyspace,
    stream: &StreamName,
    name: &GroupName,
    options: &GroupOptions,
) -> Result<()> {
    let stream = keys.stream(stream)?;
    if stream.groups.contains_key(name) {
        return Err(Error::AlreadyExists(Existing::Group(name.clone())));
    }
    let selected = stream.partition_count.partitions().collect();
    let starts = starts(stream, &options.start, &Partitions::All, selected)?;
    for (log, (_, start)) in stream.partitions.iter_mut().zip(&starts) {
        let created = log.native.create_group(name.as_str(), *start);
        created.map_err(|refused| portable(refused, &stream.name, name))?;
    }
    let group = Group {
        max_attempts: options.max_attempts,
        partitions: starts.iter().map(|_| Deliveries::default()).collect(),
        dead: Default::default(),
        turns: 0,
    };
    stream.groups.insert(name.clone(), group);
    Ok(())
}

/// The native id that each selected partition starts after.
fn starts(
    stream: &Stream,
    start: &Start,
    partitions: &Partitions,
    selected: Vec<Partition>,
) -> Result<Vec<(Partition, EntryId)>> {
    start.check(stream.partition_count, partitions)?;
    let resolve = |partition: Partition| {
        let log = &stream.partitions[partition.number() as usize];
        let high_watermark = log.high_watermark();
        let after = start.resolve(partition, high_watermark, |time| {
            log.events(Sequence::ZERO, high_watermark)
                .find(|event| event.timestamp >= time)
                .map(|event| event.sequence)
        })?;
        Ok((partition, log.id_at(after)))
    };
    selected.into_iter().map(resolve).collect()
}

pub(crate) fn replay(
    keys: &mut Keyspace,
    stream: &StreamName,
    name: &GroupName,
    replay: &Replay,
    now: Timestamp,
) -> Result<()> {
    let stream = keys.stream(stream)?;
    stream.group(name)?;
    let count = stream.partition_count;
    match replay {
        Replay::After {
            sequence,
            partitions,
        } => {
            for partition in partitions.resolve(count)? {
                replay_after(stream, name, partition, *sequence)?;
            }
        }
        Replay::AfterEach(sequences) => {
            Partitions::only(sequences.keys().copied()).resolve(count)?;
            for (partition, sequence) in sequences {
                replay_after(stream, name, *partition, *sequence)?;
            }
        }
        Replay::Events(events) => {
            let mut chosen = BTreeSet::new();
            for id in events {
                let place = stream.ids.get(id).copied();
                chosen.insert(place.ok_or_else(|| {
                    Error::invalid("events", id, "ids of events that are in the stream")
                })?);
            }
            for (partition, id) in chosen {
                let mut partition = stream.group_partition(name, partition)?;
                if id <= partition.native.last_delivered() {
                    partition.reopen(id, now);
                }
            }
        }
    }
    Ok(())
}

/// The native group goes back, and never forward (RPL-3).
fn replay_after(
    stream: &mut Stream,
    name: &GroupName,
    partition: Partition,
    sequence: Sequence,
) -> Result<()> {
    let mut partition = stream.group_partition(name, partition)?;
    let back_to = partition.id_of(sequence);
    if let Some(id) = back_to.filter(|id| *id < partition.native.last_delivered()) {
        partition.restart(id, id);
    }
    Ok(())
}

pub(crate) fn reset_group(
    keys: &mut Keyspace,
    stream: &StreamName,
    name: &GroupName,
    options: &ResetOptions,
) -> Result<()> {
    let stream = keys.stream(stream)?;
    stream.group(name)?;
    let selected = options.partitions.resolve(stream.partition_count)?;
    for (partition, start) in starts(stream, &options.start, &options.partitions, selected)? {
        let mut partition = stream.group_partition(name, partition)?;
        partition.restart(start, EntryId::ZERO);
    }
    Ok(())
}

pub(crate) fn lag(keys: &mut Keyspace, stream: &StreamName, name: &GroupName) -> Result<Lag> {
    let stream = keys.stream(stream)?;
    stream.group(name)?;
    let partitions = stream.partition_count.partitions();
    let progress = |partition| {
        let high_watermark = stream.log("partitions", partition)?.high_watermark();
        Ok(PartitionLag {
            partition,
            frontier: stream.group_partition(name, partition)?.frontier(),
            high_watermark,
        })
    };
    Ok(Lag {
        partitions: partitions.map(progress).collect::<Result<_>>()?,
    })
}

/// From when on something is claimable for the group in some partition.
pub(crate) fn next_claimable(
    keys: &mut Keyspace,
    stream: &StreamName,
    name: &GroupName,
) -> Result<Option<Timestamp>> {
    let stream = keys.stream(stream)?;
    stream.group(name)?;
    let mut next = None;
    for partition in stream.partition_count.partitions() {
        let claimable = stream.group_partition(name, partition)?.next_claimable();
        next = next.into_iter().chain(claimable).min();
    }
    Ok(next)
}
