//! Reading: the log by sequence and by query, and what there is to list.

use std::ops::Bound::{Excluded, Unbounded};

use rheo_core::{
    Cursor, DeadLetter, DeadLetterOptions, Direction, Error, Event, GroupInfo, GroupName,
    ListOptions, OrderBy, Page, Position, Query, ReadOptions, Result, Sequence, StreamInfo,
    StreamName,
};

use crate::keyspace::{Keyspace, PartitionLog, Stream};
use crate::progress;

pub(crate) fn read(
    keys: &mut Keyspace,
    stream: &StreamName,
    options: &ReadOptions,
) -> Result<Vec<Event>> {
    let log = keys.stream(stream)?.log("partition", options.partition)?;
    let events = log.events(options.after, Sequence::MAX);
    Ok(events.take(options.limit as usize).cloned().collect())
}

/// A native stream has one order and no index, so a page is found by ranges over the partitions. By
/// sequence, each needs to be followed only as far as the page can reach.
pub(crate) fn query(keys: &mut Keyspace, stream: &StreamName, query: &Query) -> Result<Page> {
    let stream = keys.stream(stream)?;
    let logs: Vec<&PartitionLog> = match query.partition {
        Some(partition) => vec![stream.log("partition", partition)?],
        None => stream.partitions.iter().collect(),
    };
    let order = query.order;
    let cursor = query.cursor.as_ref();
    let behind = cursor.map(|cursor| cursor.position(order)).transpose()?;

    let limit = query.limit() as usize;
    let reach = match order.by {
        OrderBy::Sequence => limit.saturating_add(1),
        OrderBy::Timestamp => usize::MAX,
    };
    let mut found: Vec<&Event> = Vec::new();
    for log in logs {
        let matching = candidates(log, query, behind)
            .filter(|event| query.matches(event))
            .filter(|event| {
                behind.is_none_or(|at| order.compare(&Position::from(*event), &at).is_gt())
            });
        found.extend(matching.take(reach));
    }
    found.sort_unstable_by(|a, b| order.compare(&Position::from(*a), &Position::from(*b)));

    let more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| more);
    Ok(Page {
        next: last.map(|event| Cursor::after(event, order)),
        events: found.into_iter().cloned().collect(),
    })
}

/// The events of one partition that the bounds and the cursor leave, in the query's direction.
fn candidates<'a>(
    log: &'a PartitionLog,
    query: &Query,
    behind: Option<Position>,
) -> Box<dyn Iterator<Item = &'a Event> + 'a> {
    let mut after = query.after_sequence.unwrap_or(Sequence::ZERO);
    let mut until = query.until_sequence.unwrap_or(Sequence::MAX);
    let by_sequence = query.order.by == OrderBy::Sequence;
    let reached = behind.filter(|_| by_sequence).map(|at| at.sequence);
    match query.order.direction {
        Direction::Ascending => {
            after = after.max(reached.map_or(Sequence::ZERO, Sequence::previous));
            Box::new(log.events(after, until))
        }
        Direction::Descending => {
            until = until.min(reached.unwrap_or(Sequence::MAX));
            Box::new(log.events(after, until).rev())
        }
    }
}

pub(crate) fn list_streams(
    keys: &mut Keyspace,
    options: &ListOptions<StreamName>,
) -> Result<Vec<StreamInfo>> {
    let after = options.after.as_ref().map_or(Unbounded, Excluded);
    let streams = keys.streams.range::<StreamName, _>((after, Unbounded));
    let info = |(name, stream): (&StreamName, &Stream)| StreamInfo {
        stream: name.clone(),
        partition_count: stream.partition_count,
    };
    Ok(streams.take(options.limit as usize).map(info).collect())
}

pub(crate) fn list_groups(
    keys: &mut Keyspace,
    stream: &StreamName,
    options: &ListOptions<GroupName>,
) -> Result<Vec<GroupName>> {
    let stream = keys.stream(stream)?;
    let after = options.after.as_ref().map_or(Unbounded, Excluded);
    let groups = stream.groups.range::<GroupName, _>((after, Unbounded));
    let names = groups.map(|(name, _)| name.clone());
    Ok(names.take(options.limit as usize).collect())
}

pub(crate) fn dead_letters(
    keys: &mut Keyspace,
    stream: &StreamName,
    name: &GroupName,
    options: &DeadLetterOptions,
) -> Result<Vec<DeadLetter>> {
    let stream = keys.stream(stream)?;
    let after = options.after;
    let after = after.map(|id| (id, stream.ids.get(&id).copied()));
    let dead = &stream.group(name)?.dead;
    let after = match after {
        None => Unbounded,
        Some((after, place)) => match place.filter(|place| dead.contains_key(place)) {
            Some(place) => Excluded(place),
            None => return Err(Error::CursorNotFound { after }),
        },
    };
    let page = dead.range((after, Unbounded)).map(|(_, letter)| letter);
    Ok(page.take(options.limit as usize).cloned().collect())
}

pub(crate) fn group_info(
    keys: &mut Keyspace,
    stream: &StreamName,
    name: &GroupName,
) -> Result<GroupInfo> {
    let lag = progress::lag(keys, stream, name)?;
    let group = keys.stream(stream)?.group(name)?;
    let leased: usize = group.partitions.iter().map(|p| p.leased()).sum();
    Ok(GroupInfo {
        stream: stream.clone(),
        group: name.clone(),
        max_attempts: group.max_attempts,
        leased: leased as u64,
        dead_letters: group.dead.len() as u64,
        lag,
    })
}
