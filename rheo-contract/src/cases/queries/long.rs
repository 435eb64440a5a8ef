//! Queries of a long log.

use rheo_core::{Event, EventType, Query};
use serde_json::json;

use super::order::{ORDERS, all_by, places, sorted};
use super::paging::pages;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::{Fixture, new_event};
use crate::scene::Stream;

/// How many events.
const COUNT: usize = 2_203;

/// A long stream whose first, last and middle events, and some around its thousandths, are of another type.
async fn long_stream(t: &Fixture) -> Outcome<(Stream, Vec<Event>)> {
    let stream = t.stream(1).await?;
    let mut batch = vec![new_event("order.placed", json!({})); COUNT];
    for rare in [1, 1_001, 1_002, 1_102, 2_203] {
        batch[rare - 1] = new_event("order.lost", json!({}));
    }
    let events = stream.append_all(batch).await?;
    Ok((stream, events))
}

async fn expect_pages(stream: &Stream, query: &Query, events: &[Event]) -> Outcome {
    for order in ORDERS {
        let mut query = query.clone();
        query.order = all_by(order).order;
        let found = pages(stream, query).await?.concat();
        let what = format!(
            "sequence and partition by {:?}, {:?},",
            order.by, order.direction
        );
        expect_eq(&what, places(&found), places(&sorted(events, order)))?;
    }
    Ok(())
}

/// An export of everything is many pages.
pub(super) async fn pages_join_up_beyond_a_thousand_events(t: Fixture) -> Outcome {
    let (stream, events) = long_stream(&t).await?;

    expect_pages(&stream, &Query::new().with_limit(400), &events).await
}

/// Mistakes are rare, and are what one looks for.
pub(super) async fn rare_events_are_found_a_thousand_events_apart(t: Fixture) -> Outcome {
    let (stream, mut events) = long_stream(&t).await?;
    let rare = EventType::new("order.lost")?;
    events.retain(|event| event.event_type == rare);
    let query = Query::new().with_event_type(rare);

    for limit in [1, 3, 100] {
        expect_pages(&stream, &query.clone().with_limit(limit), &events).await?;
    }
    let whole = stream.query(&query).await?.events;
    expect_eq("the rare events of one page", whole, events)
}

/// Whoever asks for much of one kind gets much of it.
pub(super) async fn a_page_holds_1500_matching_events(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let event = |number: u32| match number % 16 {
        0 => new_event("order.lost", json!({ "v": 0 })),
        _ => new_event("order.placed", json!({ "v": 1 })),
    };
    let batch = (0..1_600).map(event);
    let mut events = stream.append_all(batch.collect()).await?;
    events.retain(|event| event.event_type.as_str() == "order.placed");

    for query in [
        Query::new().with_event_type(EventType::new("order.placed")?),
        Query::new().with_payload_field("v", json!(1))?,
    ] {
        for order in ORDERS {
            let mut query = query.clone().with_limit(1_500);
            query.order = all_by(order).order;
            let found = stream.query(&query).await?.events;
            let expected = sorted(&events, order);
            expect_eq(
                "sequence and partition of one page",
                places(&found),
                places(&expected),
            )?;
        }
    }
    Ok(())
}
