//! One page of a query: the events that match, in the query's total order.

use std::collections::BTreeMap;

use rheo_core::{
    Cursor, Direction, Event, Order, OrderBy, Page, Partition, Position, Query, Result, Sequence,
};

use crate::log::Log;

/// The page of `query` that follows its cursor (QRY-1 to QRY-3).
pub(crate) fn page(log: &Log, query: &Query) -> Result<Page> {
    let count = log.partition_count();
    if let Some(partition) = query.partition {
        count.check("partition", partition)?;
    }
    let ended = match &query.cursor {
        Some(cursor) => Some(cursor.position(query.order)?),
        None => None,
    };
    let limit = query.limit() as usize;
    if limit == 0 {
        return Ok(Page::default());
    }

    let (after, until) = bounds(query, ended);
    let ranges = count
        .partitions()
        .filter(|partition| query.partition.is_none_or(|only| only == *partition))
        .map(|partition| log[partition].range(after, until));
    let wanted = |event: &&Event| {
        ended.is_none_or(|ended| query.order.compare(&Position::from(*event), &ended).is_gt())
            && query.matches(event)
    };
    let events: Vec<Event> = match query.order.by {
        OrderBy::Sequence => by_sequence(ranges, query.order.direction)
            .filter(wanted)
            .take(limit)
            .cloned()
            .collect(),
        OrderBy::Timestamp => {
            let all = ranges.flatten().filter(wanted).collect();
            first(all, query.order, limit).cloned().collect()
        }
    };
    let next = match events.last() {
        Some(last) if events.len() == limit => Some(Cursor::after(last, query.order)),
        _ => None,
    };
    Ok(Page { events, next })
}

/// The sequences that can matter: exclusive below, inclusive above.
fn bounds(query: &Query, ended: Option<Position>) -> (Sequence, Sequence) {
    let after = query.after_sequence.unwrap_or(Sequence::ZERO);
    let until = query.until_sequence.unwrap_or(Sequence::MAX);
    match (ended, query.order.by, query.order.direction) {
        (Some(ended), OrderBy::Sequence, Direction::Ascending) => {
            (after.max(ended.sequence.previous()), until)
        }
        (Some(ended), OrderBy::Sequence, Direction::Descending) => {
            (after, until.min(ended.sequence))
        }
        _ => (after, until),
    }
}

/// Merges partitions by sequence, then partition, without looking further than it is asked.
fn by_sequence<'a>(
    ranges: impl Iterator<Item = &'a [Event]>,
    direction: Direction,
) -> impl Iterator<Item = &'a Event> {
    let split = move |events: &'a [Event]| match direction {
        Direction::Ascending => events.split_first(),
        Direction::Descending => events.split_last(),
    };
    let place = |event: &Event| (event.sequence, event.partition);

    let mut heads: BTreeMap<(Sequence, Partition), (&Event, &[Event])> = ranges
        .filter_map(split)
        .map(|(head, rest)| (place(head), (head, rest)))
        .collect();
    std::iter::from_fn(move || {
        let (_, (event, rest)) = match direction {
            Direction::Ascending => heads.pop_first()?,
            Direction::Descending => heads.pop_last()?,
        };
        if let Some((head, rest)) = split(rest) {
            heads.insert(place(head), (head, rest));
        }
        Some(event)
    })
}

/// The first `limit` events in an order, by selecting before sorting.
fn first(mut events: Vec<&Event>, order: Order, limit: usize) -> impl Iterator<Item = &Event> {
    let compare = |l: &&Event, r: &&Event| order.compare(&Position::from(*l), &Position::from(*r));
    if limit < events.len() {
        events.select_nth_unstable_by(limit, compare);
        events.truncate(limit);
    }
    events.sort_unstable_by(compare);
    events.into_iter()
}
