//! Every filter with every other one, in every order, page by page.

use std::time::Duration;

use rheo_core::{
    Event, EventKey, EventType, Guarantee, JsonObject, NewEvent, Partition, Query, Sequence,
    Timestamp,
};
use serde_json::json;

use super::order::{ORDERS, all_by, places, sorted};
use super::paging::pages;
use crate::expect::{Outcome, expect, expect_eq};
use crate::fixture::{Fixture, new_event};
use crate::scene::Stream;

/// So many events a page that pages end inside runs of equal timestamps and of equal sequences.
const PAGE: u32 = 7;

/// A stream with 72 events of all sorts, and the events. Many share a timestamp, and the timestamps
/// go back now and then, where the clock can.
struct Mixed {
    stream: Stream,
    events: Vec<Event>,
    partitions: u32,
}

/// A filter: its name, and how it is added to a query.
type Filter = (&'static str, fn(Query, &Mixed) -> Outcome<Query>);

impl Mixed {
    async fn on(t: &Fixture, partitions: u32) -> Outcome<Self> {
        let stream = t.stream(partitions).await?;
        let mut events = Vec::new();
        for number in 0..72 {
            match number {
                12 | 36 | 60 => t.pass(Duration::from_micros(1)).await,
                24 | 48 if t.sets_the_clock() => t.turn_back(Duration::from_micros(2)),
                _ => {}
            }
            let partition = Partition::new((number * 5 + number / 7) % partitions);
            let event = mixed_event(number)?.with_partition(partition);
            events.push(stream.append_event(event).await?);
        }
        Ok(Self {
            stream,
            events,
            partitions,
        })
    }

    /// The timestamp that a quarter, or three quarters, of the events lie before.
    fn time(&self, quarters: usize) -> Timestamp {
        let mut times: Vec<Timestamp> = self.events.iter().map(|event| event.timestamp).collect();
        times.sort();
        times[times.len() * quarters / 4]
    }

    /// The sequence that a quarter, or three quarters, of the longest partition lie below.
    fn sequence(&self, quarters: u64) -> Outcome<Sequence> {
        let sequences = self.events.iter().map(|event| event.sequence.get());
        Ok(Sequence::new(
            sequences.max().unwrap_or_default() * quarters / 4,
        )?)
    }

    /// Demands just the events that match, in each order, over all pages.
    async fn expect_found(&self, filters: &str, query: Query) -> Outcome {
        let mut matching = self.events.clone();
        matching.retain(|event| query.matches(event));
        for order in ORDERS {
            let mut paged = query.clone().with_limit(PAGE);
            paged.order = all_by(order).order;
            let found = pages(&self.stream, paged).await?.concat();
            let expected = sorted(&matching, order);
            let (by, direction, partitions) = (order.by, order.direction, self.partitions);
            let what = format!(
                "sequence and partition by {filters}, in pages of {PAGE} by {by:?}, {direction:?}, \
                 of {partitions} partitions,"
            );
            expect_eq(&what, places(&found), places(&expected))?;
            expect(
                found == expected,
                "the events as they were appended",
                "others at these places",
            )?;
        }
        Ok(())
    }

    /// Demands that each filter holds alone, and with each of the filters that follow it.
    async fn expect_each_with_each(&self, filters: &[Filter], others: &[Filter]) -> Outcome {
        for (at, (name, add)) in filters.iter().enumerate() {
            let query = add(Query::new(), self)?;
            self.expect_found(name, query.clone()).await?;
            for (other, and) in filters[at + 1..].iter().chain(others) {
                let both = and(query.clone(), self)?;
                self.expect_found(&format!("{name} and {other}"), both)
                    .await?;
            }
        }
        Ok(())
    }
}

/// Each of the filters below lets half of the events and more through, and so any two of them several
/// pages.
fn mixed_event(number: u32) -> Outcome<NewEvent> {
    let event_type = ["placed", "placed", "Placed"][number as usize % 3];
    let mut payload = json!({ "number": number, "n": 1 + number % 6 / 4 });
    match number % 5 {
        0..3 => payload["tag"] = json!("x"),
        3 => payload["tag"] = json!(null),
        _ => {}
    }
    let metadata = json!({ "m": { "of": number % 7 / 4 } });
    let event = new_event(event_type, payload).with_metadata(JsonObject::metadata(metadata)?);
    Ok(match number % 4 {
        0 | 1 => event.with_key(EventKey::new("k1")?),
        2 => event.with_key(EventKey::new("k2")?),
        _ => event,
    })
}

const INDEXED: &[Filter] = &[
    ("type", |query, _| {
        Ok(query.with_event_type(EventType::new("placed")?))
    }),
    ("key", |query, _| Ok(query.with_key(EventKey::new("k1")?))),
    ("payload tag", |query, _| {
        Ok(query.with_payload_field("tag", json!("x"))?)
    }),
    ("payload n", |query, _| {
        Ok(query.with_payload_field("n", json!(1))?)
    }),
    ("metadata", |query, _| {
        Ok(query.with_metadata_field("m", json!({ "of": 0 }))?)
    }),
];

const RANGES: &[Filter] = &[
    ("partition", |query, mixed| {
        Ok(query.with_partition(Partition::new(mixed.partitions - 1)))
    }),
    ("from", |query, mixed| Ok(query.with_from(mixed.time(1)))),
    ("until", |query, mixed| Ok(query.with_until(mixed.time(2)))),
    ("a range of time", |query, mixed| {
        Ok(query.with_from(mixed.time(1)).with_until(mixed.time(2)))
    }),
    ("after", |query, mixed| {
        Ok(query.with_after_sequence(mixed.sequence(1)?))
    }),
    ("until sequence", |query, mixed| {
        Ok(query.with_until_sequence(mixed.sequence(3)?))
    }),
    ("a range of sequences", |query, mixed| {
        let query = query.with_after_sequence(mixed.sequence(1)?);
        Ok(query.with_until_sequence(mixed.sequence(3)?))
    }),
];

/// 3, where the backend has partitions.
fn some_partitions(t: &Fixture) -> u32 {
    match t.capabilities().guarantees(Guarantee::Partitions) {
        true => 3,
        false => 1,
    }
}

/// A report is a range of time, read page by page from the latest: no page may be of something else.
pub(super) async fn ranges_hold_on_every_page_in_every_order(t: Fixture) -> Outcome {
    let mixed = Mixed::on(&t, some_partitions(&t)).await?;

    mixed.expect_found("no filter", Query::new()).await?;
    mixed.expect_each_with_each(RANGES, &[]).await
}

/// What a filter left out of the first page must not come on the second.
pub(super) async fn filters_hold_on_every_page_in_every_order(t: Fixture) -> Outcome {
    let mixed = Mixed::on(&t, some_partitions(&t)).await?;

    mixed.expect_each_with_each(INDEXED, RANGES).await
}

/// As text, partition 10 comes before partition 9.
pub(super) async fn partitions_above_9_are_ordered_by_number(t: Fixture) -> Outcome {
    let mixed = Mixed::on(&t, 12).await?;

    mixed.expect_found("no filter", Query::new()).await?;
    for (name, add) in RANGES {
        mixed.expect_found(name, add(Query::new(), &mixed)?).await?;
    }
    Ok(())
}
