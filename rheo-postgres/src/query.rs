//! One page of a query: the events that match, in the query's total order.
//!
//! There are two shapes. Where a filter has an index of its own (type, key, payload), or the order is
//! by time, all partitions are searched at once. Else the partitions are read side by side, each in
//! its order and no further than a page, and merged. The texts are sent unprepared, so that the
//! server plans for the filters that are there.

use rheo_core::{
    Cursor, Direction, OrderBy, Page, Position, Query, Result, Sequence, StreamName, Timestamp,
};
use tokio::time::Instant;

use crate::append::StreamRow;
use crate::error::Subject;
use crate::json::Jsonb;
use crate::row;
use crate::store::Store;

macro_rules! columns {
    () => {
        "e.partition, e.sequence, e.event_id, e.event_type, e.key, e.payload, e.metadata, e.timestamp"
    };
}

/// `@>` is what the index serves, but it also lets objects with more fields pass.
macro_rules! filters {
    () => {
        " e.stream_id = $1 \
          AND e.sequence > $4 AND e.sequence <= $5 \
          AND e.timestamp >= $6 AND e.timestamp <= $7 \
          AND ($8::text IS NULL OR e.event_type = $8) \
          AND ($9::text IS NULL OR e.key = $9) \
          AND ($10::jsonb IS NULL OR (e.payload @> $10 AND NOT EXISTS ( \
              SELECT FROM jsonb_each($10) f WHERE e.payload -> f.key IS DISTINCT FROM f.value))) \
          AND ($11::jsonb IS NULL OR (e.metadata @> $11 AND NOT EXISTS ( \
              SELECT FROM jsonb_each($11) f WHERE e.metadata -> f.key IS DISTINCT FROM f.value)))"
    };
}

macro_rules! at_once {
    ($after:literal, $order:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM {schema}.events e WHERE e.partition >= $2 AND e.partition <= $3 AND",
            filters!(),
            " AND ",
            $after,
            " ORDER BY ",
            $order,
            " LIMIT $15"
        )
    };
}

macro_rules! side_by_side {
    ($after:literal, $way:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM generate_series($2::integer, $3::integer) p CROSS JOIN LATERAL ( \
               SELECT * FROM {schema}.events e WHERE e.partition = p AND",
            filters!(),
            " AND ",
            $after,
            " ORDER BY e.sequence ",
            $way,
            " LIMIT $15 \
             ) e ORDER BY e.sequence ",
            $way,
            ", e.partition ",
            $way,
            " LIMIT $15"
        )
    };
}

const BY_SEQUENCE: [&str; 2] = [
    side_by_side!("(e.sequence, e.partition) > ($12, $13)", "ASC"),
    side_by_side!("(e.sequence, e.partition) < ($12, $13)", "DESC"),
];
const FILTERED_BY_SEQUENCE: [&str; 2] = [
    at_once!(
        "(e.sequence, e.partition) > ($12, $13)",
        "e.sequence, e.partition"
    ),
    at_once!(
        "(e.sequence, e.partition) < ($12, $13)",
        "e.sequence DESC, e.partition DESC"
    ),
];
const BY_TIME: [&str; 2] = [
    at_once!(
        "(e.timestamp, e.sequence, e.partition) > ($14, $12, $13)",
        "e.timestamp, e.sequence, e.partition"
    ),
    at_once!(
        "(e.timestamp, e.sequence, e.partition) < ($14, $12, $13)",
        "e.timestamp DESC, e.sequence DESC, e.partition DESC"
    ),
];

/// Where a page begins: behind this timestamp, sequence and partition.
struct Behind {
    timestamp: i64,
    sequence: i64,
    partition: i32,
}

impl Store {
    pub(crate) async fn query(
        &self,
        deadline: Instant,
        stream: &StreamName,
        found: StreamRow,
        query: &Query,
    ) -> Result<Page> {
        if let Some(partition) = query.partition {
            found.partition_count.check("partition", partition)?;
        }
        let ended = query
            .cursor
            .as_ref()
            .map(|cursor| cursor.position(query.order))
            .transpose()?;
        let limit = query.limit();
        if limit == 0 {
            // Nothing to do; but whether the store is reached comes first (ERR-6).
            return self.ping(deadline).await.map(|()| Page::default());
        }
        let (first, last) = match query.partition {
            Some(partition) => (partition.number(), partition.number()),
            None => (0, found.partition_count.get() - 1),
        };
        let (after, until) = bounds(query, ended);
        let behind = Behind::new(query.order.direction, ended);
        let fields = |fields: &std::collections::BTreeMap<_, _>| {
            (!fields.is_empty()).then(|| Jsonb::of(fields))
        };
        let rows = self
            .rows_until(
                deadline,
                rheo_core::Operation::Query,
                &Subject::of_stream(stream),
                text(query),
                |statement| {
                    statement
                        .persistent(false)
                        .bind(found.stream_id)
                        .bind(first.cast_signed())
                        .bind(last.cast_signed())
                        .bind(after.as_i64())
                        .bind(until.as_i64())
                        .bind(query.from.unwrap_or(Timestamp::MIN).as_micros())
                        .bind(query.until.unwrap_or(Timestamp::MAX).as_micros())
                        .bind(query.event_type.as_ref().map(ToString::to_string))
                        .bind(query.key.as_ref().map(ToString::to_string))
                        .bind(fields(&query.payload))
                        .bind(fields(&query.metadata))
                        .bind(behind.sequence)
                        .bind(behind.partition)
                        .bind(behind.timestamp)
                        .bind(i64::from(limit))
                },
            )
            .await?;
        let events: Vec<_> = rows
            .iter()
            .map(|row| row::event(stream, row))
            .collect::<Result<_>>()?;
        let next = match events.last() {
            Some(last) if events.len() == limit as usize => Some(Cursor::after(last, query.order)),
            _ => None,
        };
        Ok(Page { events, next })
    }
}

impl Behind {
    fn new(direction: Direction, ended: Option<Position>) -> Self {
        match (ended, direction) {
            (Some(ended), _) => Self {
                timestamp: ended.timestamp.as_micros(),
                sequence: ended.sequence.as_i64(),
                partition: i32::try_from(ended.partition.number()).unwrap_or(i32::MAX),
            },
            (None, Direction::Ascending) => Self {
                timestamp: i64::MIN,
                sequence: -1,
                partition: -1,
            },
            (None, Direction::Descending) => Self {
                timestamp: i64::MAX,
                sequence: i64::MAX,
                partition: i32::MAX,
            },
        }
    }
}

fn text(query: &Query) -> &'static str {
    let has_index = query.event_type.is_some() || query.key.is_some() || !query.payload.is_empty();
    let texts = match query.order.by {
        OrderBy::Timestamp => BY_TIME,
        OrderBy::Sequence if has_index => FILTERED_BY_SEQUENCE,
        OrderBy::Sequence => BY_SEQUENCE,
    };
    match query.order.direction {
        Direction::Ascending => texts[0],
        Direction::Descending => texts[1],
    }
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
