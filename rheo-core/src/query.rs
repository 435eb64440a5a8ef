//! Reading the log: from one partition in order, or by filters over all of them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::check_value;
use crate::{
    Cursor, Error, Event, EventKey, EventType, JsonObject, Partition, Position, Sequence,
    Timestamp, json_equal,
};

/// How many events a read, a query or a listing gives when nothing is said.
pub const DEFAULT_LIMIT: u32 = 100;

/// What `read` shall give (LOG-9).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Which partition; default 0.
    pub partition: Partition,
    /// Only events above this sequence; default 0, from the first.
    pub after: Sequence,
    /// How many events at most; default 100, 0 gives none.
    pub limit: u32,
}

impl ReadOptions {
    /// The first 100 events of partition 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// From that partition.
    #[must_use]
    pub fn with_partition(mut self, partition: Partition) -> Self {
        self.partition = partition;
        self
    }

    /// Only events above `after`.
    #[must_use]
    pub fn with_after(mut self, after: Sequence) -> Self {
        self.after = after;
        self
    }

    /// At most `limit` events.
    #[must_use]
    pub fn with_limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            partition: Partition::ZERO,
            after: Sequence::ZERO,
            limit: DEFAULT_LIMIT,
        }
    }
}

/// What a query's events are ordered by, first of all (QRY-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderBy {
    /// Sequence, then partition.
    #[default]
    Sequence,
    /// Timestamp, then sequence, then partition.
    Timestamp,
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Lowest first.
    #[default]
    Ascending,
    /// Highest first: exactly the ascending order reversed, ties too.
    Descending,
}

/// A total order of events (QRY-2); default by sequence, ascending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Order {
    /// By what.
    pub by: OrderBy,
    /// Which way.
    pub direction: Direction,
}

impl Order {
    /// Compares two positions in this order; equal only for the same event.
    pub fn compare(self, left: &Position, right: &Position) -> Ordering {
        let key = |p: &Position| (p.sequence, p.partition);
        let ascending = match self.by {
            OrderBy::Sequence => key(left).cmp(&key(right)),
            OrderBy::Timestamp => left
                .timestamp
                .cmp(&right.timestamp)
                .then_with(|| key(left).cmp(&key(right))),
        };
        match self.direction {
            Direction::Ascending => ascending,
            Direction::Descending => ascending.reverse(),
        }
    }
}

/// Filters, order and limit of a query; all filters must match (QRY-1).
///
/// ```
/// use rheo_core::{OrderBy, Query};
/// use serde_json::json;
///
/// let query = Query::new()
///     .with_payload_field("customer", json!(7))?
///     .with_order_by(OrderBy::Timestamp)
///     .with_limit(20);
/// # Ok::<(), rheo_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Query {
    /// Only this type.
    pub event_type: Option<EventType>,
    /// Only this key.
    pub key: Option<EventKey>,
    /// Only this partition.
    pub partition: Option<Partition>,
    /// Top-level payload fields with the value each must have.
    pub payload: BTreeMap<String, Value>,
    /// Top-level metadata fields with the value each must have.
    pub metadata: BTreeMap<String, Value>,
    /// Only events at this time or later.
    pub from: Option<Timestamp>,
    /// Only events at this time or earlier.
    pub until: Option<Timestamp>,
    /// Only sequences above this.
    pub after_sequence: Option<Sequence>,
    /// Only sequences up to and including this.
    pub until_sequence: Option<Sequence>,
    /// The order; default by sequence, ascending.
    pub order: Order,
    /// How many events a page holds at most; default 100 (`None`), 0 gives an empty page.
    pub limit: Option<u32>,
    /// Where the page before ended; `None` for the first page.
    pub cursor: Option<Cursor>,
}

impl Query {
    /// Every event, by sequence, 100 a page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only this type.
    #[must_use]
    pub fn with_event_type(mut self, event_type: EventType) -> Self {
        self.event_type = Some(event_type);
        self
    }

    /// Only this key.
    #[must_use]
    pub fn with_key(mut self, key: EventKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Only this partition.
    #[must_use]
    pub fn with_partition(mut self, partition: Partition) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Only events whose payload has this top-level field with this value.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when name or value are outside the domain of LOG-8, so that no event
    /// could match.
    pub fn with_payload_field(
        mut self,
        field: impl Into<String>,
        value: Value,
    ) -> Result<Self, Error> {
        let field = field.into();
        check_field("payload", &field, &value)?;
        self.payload.insert(field, value);
        Ok(self)
    }

    /// Only events whose metadata has this top-level field with this value.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when name or value are outside the domain of LOG-8, so that no event
    /// could match.
    pub fn with_metadata_field(
        mut self,
        field: impl Into<String>,
        value: Value,
    ) -> Result<Self, Error> {
        let field = field.into();
        check_field("metadata", &field, &value)?;
        self.metadata.insert(field, value);
        Ok(self)
    }

    /// Only events at this time or later.
    #[must_use]
    pub fn with_from(mut self, from: Timestamp) -> Self {
        self.from = Some(from);
        self
    }

    /// Only events at this time or earlier.
    #[must_use]
    pub fn with_until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }

    /// Only sequences above this.
    #[must_use]
    pub fn with_after_sequence(mut self, after: Sequence) -> Self {
        self.after_sequence = Some(after);
        self
    }

    /// Only sequences up to and including this.
    #[must_use]
    pub fn with_until_sequence(mut self, until: Sequence) -> Self {
        self.until_sequence = Some(until);
        self
    }

    /// Ordered by this.
    #[must_use]
    pub fn with_order_by(mut self, by: OrderBy) -> Self {
        self.order.by = by;
        self
    }

    /// Ordered this way.
    #[must_use]
    pub fn with_direction(mut self, direction: Direction) -> Self {
        self.order.direction = direction;
        self
    }

    /// At most `limit` events a page.
    #[must_use]
    pub fn with_limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The page that follows the one this cursor came with.
    #[must_use]
    pub fn with_cursor(mut self, cursor: Cursor) -> Self {
        self.cursor = Some(cursor);
        self
    }

    /// The limit, or its default.
    pub fn limit(&self) -> u32 {
        self.limit.unwrap_or(DEFAULT_LIMIT)
    }

    /// Whether it filters by type, key, payload or metadata, which needs
    /// [`Guarantee::SecondaryIndexes`](crate::Guarantee::SecondaryIndexes).
    pub fn needs_secondary_indexes(&self) -> bool {
        self.event_type.is_some()
            || self.key.is_some()
            || !self.payload.is_empty()
            || !self.metadata.is_empty()
    }

    /// Checks fields that were set directly, not by `with_…`; the facade does.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for `payload` or `metadata`, as `with_payload_field`.
    pub fn check_fields(&self) -> Result<(), Error> {
        for (argument, fields) in [("payload", &self.payload), ("metadata", &self.metadata)] {
            for (field, value) in fields {
                check_field(argument, field, value)?;
            }
        }
        Ok(())
    }

    /// Whether an event passes all filters; order, limit and cursor play no part.
    pub fn matches(&self, event: &Event) -> bool {
        let has = |object: &JsonObject, fields: &BTreeMap<String, Value>| {
            fields.iter().all(|(field, wanted)| {
                object
                    .get(field)
                    .is_some_and(|value| json_equal(value, wanted))
            })
        };
        self.event_type
            .as_ref()
            .is_none_or(|t| *t == event.event_type)
            && self
                .key
                .as_ref()
                .is_none_or(|key| event.key.as_ref() == Some(key))
            && self.partition.is_none_or(|p| p == event.partition)
            && self.from.is_none_or(|from| event.timestamp >= from)
            && self.until.is_none_or(|until| event.timestamp <= until)
            && self
                .after_sequence
                .is_none_or(|after| event.sequence > after)
            && self
                .until_sequence
                .is_none_or(|until| event.sequence <= until)
            && has(&event.payload, &self.payload)
            && has(&event.metadata, &self.metadata)
    }
}

fn check_field(argument: &str, field: &str, value: &Value) -> Result<(), Error> {
    check_value(
        argument,
        &Value::String(field.to_owned()),
        crate::MAX_JSON_DEPTH,
    )?;
    check_value(argument, value, crate::MAX_JSON_DEPTH - 1)
}

/// One page of a query's events.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Page {
    /// The events, in the query's order: as many as match, up to the limit.
    pub events: Vec<Event>,
    /// Where the next page begins. `None`: nothing followed when the page was made. `Some` does
    /// not promise that anything follows.
    pub next: Option<Cursor>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn position(timestamp: i64, sequence: u64, partition: u32) -> Position {
        Position {
            timestamp: Timestamp::from_micros(timestamp).expect("in range"),
            sequence: Sequence::new(sequence).expect("in range"),
            partition: Partition::new(partition),
        }
    }

    #[test]
    fn ties_fall_to_sequence_then_partition_both_ways() {
        let (a, b, c) = (position(2, 1, 0), position(1, 1, 1), position(1, 2, 0));
        let order = |by, direction| {
            let mut all = [a, b, c];
            all.sort_by(|l, r| Order { by, direction }.compare(l, r));
            all
        };
        assert_eq!(order(OrderBy::Sequence, Direction::Ascending), [a, b, c]);
        assert_eq!(order(OrderBy::Sequence, Direction::Descending), [c, b, a]);
        assert_eq!(order(OrderBy::Timestamp, Direction::Ascending), [b, c, a]);
        assert_eq!(order(OrderBy::Timestamp, Direction::Descending), [a, c, b]);
    }

    #[test]
    fn a_field_that_no_event_can_have_is_invalid() {
        assert!(Query::new().with_payload_field("\0", json!(1)).is_err());
        assert!(
            Query::new()
                .with_metadata_field("a", json!(["\0"]))
                .is_err()
        );
        assert!(
            Query::new()
                .with_metadata_field("", json!({"$gt": ""}))
                .is_ok()
        );
    }
}
