//! More fields than most ask for.

use rheo_core::{JsonObject, NewEvent, Query};
use serde_json::json;

use super::order::{ORDERS, all_by};
use super::paging::pages;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::{Fixture, new_event};

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
