//! More fields than most ask for.

use rheo_core::{Event, EventKey, EventType, Guarantee, JsonObject, NewEvent, Partition, Query};
use serde_json::json;

use super::order::{ORDERS, all_by, places, sorted};
use super::paging::pages;
use crate::durations::MICROSECOND;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::{Fixture, new_event};
use crate::scene::P0;

const PAYLOAD: [&str; 4] = ["a", "b", "c", "d"];
const METADATA: [&str; 3] = ["e", "f", "g"];

/// An event where each field is 1, but for one of them.
fn event_without(field: &str) -> Outcome<NewEvent> {
    let value = |name: &str| u8::from(name != field);
    let payload = PAYLOAD.map(|name| (name.to_owned(), json!(value(name))));
    let metadata = METADATA.map(|name| (name.to_owned(), json!(value(name))));
    let event = new_event("order.placed", payload.into_iter().collect());
    Ok(event.with_metadata(JsonObject::metadata(metadata.into_iter().collect())?))
}

/// A query for 1 in each of these fields.
fn with_fields(mut query: Query, payload: &[&str], metadata: &[&str]) -> Outcome<Query> {
    for name in payload {
        query = query.with_payload_field(*name, json!(1))?;
    }
    for name in metadata {
        query = query.with_metadata_field(*name, json!(1))?;
    }
    Ok(query)
}

/// Each event but the last ones lacks just one of the fields: a filter that is left out lets it through.
pub(super) async fn any_number_of_fields_must_match(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let all = || PAYLOAD.iter().chain(&METADATA);
    for field in all() {
        stream.append_event(event_without(field)?).await?;
    }
    for _ in 0..3 {
        stream.append_event(event_without("none")?).await?;
    }

    for (payload, metadata) in [
        (&PAYLOAD[..3], &METADATA[..0]),
        (&PAYLOAD[1..], &METADATA[..0]),
        (&PAYLOAD[..], &METADATA[..0]),
        (&PAYLOAD[..0], &METADATA[..2]),
        (&PAYLOAD[..0], &METADATA[..]),
        (&PAYLOAD[..2], &METADATA[1..]),
        (&PAYLOAD[..], &METADATA[..]),
    ] {
        let lacks = |field: &&str| !payload.contains(field) && !metadata.contains(field);
        let others = (1..).zip(all()).filter(|(_, field)| lacks(field));
        let mut expected: Vec<u64> = others.map(|(sequence, _)| sequence).collect();
        expected.extend([8, 9, 10]);
        for order in ORDERS {
            let query = with_fields(all_by(order).with_limit(2), payload, metadata)?;
            let found = pages(&stream, query).await?.concat();
            let mut found: Vec<u64> = found.iter().map(|event| event.sequence.get()).collect();
            found.sort_unstable();
            let what = format!("the sequences with 1 in {payload:?} and {metadata:?}");
            expect_eq(&what, found, expected.clone())?;
        }
    }
    Ok(())
}

/// An event that all filters but one let through, and the one that each of them does.
pub(super) async fn every_filter_holds_beside_all_others(t: Fixture) -> Outcome {
    let partitions = match t.capabilities().guarantees(Guarantee::Partitions) {
        true => 2,
        false => 1,
    };
    let stream = t.stream(partitions).await?;
    let last = Partition::new(partitions - 1);
    let event = |event_type: &str, key: &str, a: u8, b: u8, c: u8| -> Outcome<NewEvent> {
        let event = new_event(event_type, json!({ "a": a, "b": b }));
        let event = event.with_metadata(JsonObject::metadata(json!({ "c": c }))?);
        Ok(event.with_key(EventKey::new(key)?).with_partition(last))
    };
    let good = || event("placed", "k", 1, 1, 1);
    let early = stream.append_event(good()?).await?;
    t.pass(MICROSECOND).await;
    let first = stream.append_event(good()?).await?;
    for other in [
        event("other", "k", 1, 1, 1)?,
        event("placed", "other", 1, 1, 1)?,
        event("placed", "k", 0, 1, 1)?,
        event("placed", "k", 1, 0, 1)?,
        event("placed", "k", 1, 1, 0)?,
        good()?.with_partition(P0),
    ] {
        stream.append_event(other).await?;
    }
    // Early again, and behind the first by its sequence, where the clock can go back.
    let back = MICROSECOND * 3;
    if t.sets_the_clock() {
        t.turn_back(back);
    }
    stream.append_event(good()?).await?;
    t.pass(back).await;
    let end = stream.append_event(good()?).await?;
    t.pass(MICROSECOND).await;
    stream.append_event(good()?).await?;

    let query = Query::new()
        .with_event_type(EventType::new("placed")?)
        .with_key(EventKey::new("k")?)
        .with_partition(last)
        .with_payload_field("a", json!(1))?
        .with_payload_field("b", json!(1))?
        .with_metadata_field("c", json!(1))?;
    let in_time = query
        .clone()
        .with_from(first.timestamp)
        .with_until(end.timestamp);
    let in_order = query
        .with_after_sequence(early.sequence)
        .with_until_sequence(end.sequence);
    let both = in_time
        .clone()
        .with_after_sequence(early.sequence)
        .with_until_sequence(end.sequence);
    let log = stream.read(last).await?;
    for query in [in_time, in_order, both] {
        let matching = log.iter().filter(|event| query.matches(event));
        let expected: Vec<Event> = matching.cloned().collect();
        for order in ORDERS {
            let mut paged = query.clone().with_limit(2);
            paged.order = all_by(order).order;
            let found = pages(&stream, paged).await?.concat();
            let expected = places(&sorted(&expected, order));
            expect_eq("the places found", places(&found), expected)?;
        }
    }
    Ok(())
}
