//! What a random history asks for, and what the model says that it finds.

use rheo_core::{
    Direction, Event, EventKey, EventType, Guarantee, OrderBy, Partition, Position, Query, Sequence,
};
use serde_json::{Value, json};

use super::Play;
use crate::expect::{Outcome, expect_eq};

impl Play<'_> {
    pub(super) async fn query(&self, stream: u8, query: Query, order: u8, page: u8) -> Outcome {
        if !self.declares(Guarantee::OrderedRangeScan) {
            return Ok(());
        }
        let stream = self.stream(stream);
        let events = self.events_of(stream);
        let query = query
            .with_order_by([OrderBy::Sequence, OrderBy::Timestamp][usize::from(order % 2)])
            .with_direction(
                [Direction::Ascending, Direction::Descending][usize::from(order / 2 % 2)],
            )
            .with_limit(page.into());
        let mut expected: Vec<Event> = events;
        expected.retain(|event| query.matches(event));
        let order = query.order;
        expected.sort_by(|a, b| order.compare(&Position::from(a), &Position::from(b)));
        let stream = self.t.existing_stream(stream.clone()).via(self.backend());
        let seen = stream.query_all(query).await?;
        expect_eq("the events of the query (QRY-1 to QRY-3)", seen, expected)
    }

    /// A query with filters chosen by the bits of a number, and by another what fields have to equal.
    pub(super) fn filtered(&self, stream: u8, filter: u8, fields: u8) -> Outcome<Query> {
        let events = self.events_of(self.stream(stream));
        let has = |bit: u8| filter & (1 << bit) != 0;
        let mut query = Query::new();
        let middle = &events.get(events.len() / 2);
        if has(0) {
            query = query.with_partition(Partition::ZERO);
        }
        if let (true, Some(event)) = (has(1), middle) {
            query = query.with_from(event.timestamp);
        }
        if let (true, Some(event)) = (has(2), middle) {
            query = query.with_until(event.timestamp);
        }
        if has(3) {
            query = query.with_after_sequence(Sequence::new(1)?);
            if fields.is_multiple_of(2) {
                query = query.with_until_sequence(Sequence::new(u64::from(fields % 9))?);
            }
        }
        if self.declares(Guarantee::SecondaryIndexes) {
            if has(4) {
                query = query.with_event_type(EventType::new("paid")?);
            }
            if has(5) {
                let extra = nth_extra(usize::from(fields % 7)).map(|extra| ("extra", extra));
                let (name, value) = extra.unwrap_or(("third", json!(1)));
                query = query.with_payload_field(name, value)?;
            }
            if has(6) {
                let (name, value) = match fields / 7 % 4 {
                    0 => ("trace", json!({ "sampled": null, "span": [0] })),
                    1 => ("even", json!(false)),
                    _ => ("even", json!(true)),
                };
                query = query.with_metadata_field(name, value)?;
            }
            if has(7) {
                query = query.with_key(EventKey::new("customer-1")?);
            }
        }
        Ok(query)
    }
}

/// What the field `extra` of an event may hold: values that are easily taken for each other.
pub(super) fn nth_extra(number: usize) -> Option<Value> {
    let values = [
        json!(null),
        json!(1),
        json!(1.0),
        json!("1"),
        json!({ "a": 1, "b": [true] }),
        json!(false),
    ];
    values.get(number).cloned()
}
