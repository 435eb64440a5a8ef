//! What a query lets through.

use std::time::Duration;

use rheo_core::{
    Backend, ErrorKind, Event, EventKey, EventType, JsonObject, NewEvent, Partition, Query,
    Sequence, StreamName, Timestamp,
};
use serde_json::{Value, json};

use crate::expect::{Outcome, expect, expect_eq, expect_error};
use crate::fixture::{Fixture, new_event};
use crate::scene::{FAR, P0, Stream, sequences};

/// The sequences that a query finds, on all its pages.
pub(super) async fn found(stream: &Stream, query: Query) -> Outcome<Vec<u64>> {
    Ok(sequences(&stream.query_all(query).await?))
}

/// Texts that some comparison takes for one another, each of them twice.
const ALIKE: &[&str] = &[
    "abc",
    "ABC",
    "abc ",
    " abc",
    "a%",
    "a_c",
    "%",
    "_",
    ".*",
    "^abc$",
    "a.c",
    "*",
    "a*",
    "ü",
    "u\u{308}",
    "ab",
    "abcd",
    "a\\_c",
    "'abc'",
    "\"abc\"",
    "{\"$gt\":\"\"}",
    "1",
    "1.0",
    "01",
    "null",
    "İ",
    "i\u{307}",
    "ss",
    "ß",
];

/// Events with each of `ALIKE` twice: sequences n and n + ALIKE.len().
async fn alike(stream: &Stream, event: impl Fn(&str) -> Outcome<NewEvent>) -> Outcome {
    for text in ALIKE.iter().chain(ALIKE) {
        stream.append_event(event(text)?).await?;
    }
    Ok(())
}

async fn expect_each_alone(stream: &Stream, query: impl Fn(&str) -> Outcome<Query>) -> Outcome {
    let count = ALIKE.len() as u64;
    for (sequence, text) in (1..).zip(ALIKE) {
        expect_eq(
            &format!("the sequences with {text:?}"),
            found(stream, query(text)?).await?,
            vec![sequence, sequence + count],
        )?;
    }
    Ok(())
}

/// Types are names, compared byte for byte.
pub(super) async fn a_query_by_type_gives_that_type_alone(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    alike(&stream, |text| Ok(new_event(text, json!({})))).await?;

    expect_each_alone(&stream, |text| {
        Ok(Query::new().with_event_type(EventType::new(text)?))
    })
    .await?;
    let unknown = Query::new().with_event_type(EventType::new("unknown")?);
    expect_eq(
        "the events of an unknown type",
        found(&stream, unknown).await?,
        vec![],
    )
}

/// Keys are data; an event without one has none, not an empty one or "null".
pub(super) async fn a_query_by_key_gives_that_key_alone(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let event = |text: &str| Ok(t.new_event().with_key(EventKey::new(text)?));
    alike(&stream, event).await?;
    stream.append(2).await?;

    expect_each_alone(&stream, |text| {
        Ok(Query::new().with_key(EventKey::new(text)?))
    })
    .await?;
    let unknown = Query::new().with_key(EventKey::new("unknown")?);
    expect_eq(
        "the events of an unknown key",
        found(&stream, unknown).await?,
        vec![],
    )
}

/// Partition 0 is a partition, not the absence of one.
pub(super) async fn a_query_by_partition_gives_that_partition_alone(t: Fixture) -> Outcome {
    let stream = t.stream(4).await?;
    let mut appended = Vec::new();
    for number in 0..3 {
        appended.push(stream.append_to(Partition::new(number), 2).await?);
    }
    appended.push(vec![]);

    for (number, expected) in (0..).zip(appended) {
        let query = Query::new().with_partition(Partition::new(number));
        let events = stream.query_all(query).await?;
        expect_eq(
            &format!("the events of partition {number}"),
            events,
            expected,
        )?;
    }
    Ok(())
}

fn with_fields(payload: Value, metadata: Value) -> Outcome<NewEvent> {
    Ok(new_event("order.placed", payload).with_metadata(JsonObject::metadata(metadata)?))
}

/// The same name means one thing to the author of an event and another to its courier.
pub(super) async fn payload_and_metadata_are_not_mixed_up(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let other = json!({ "in": { "v": 1 } });
    stream
        .append_event(with_fields(json!({ "v": 1 }), other.clone())?)
        .await?;
    stream
        .append_event(with_fields(other, json!({ "v": 1 }))?)
        .await?;
    stream
        .append_event(with_fields(json!({ "v": 1, "w": 2 }), json!({ "v": 1 }))?)
        .await?;

    let by_payload = Query::new().with_payload_field("v", json!(1))?;
    expect_eq(
        "payload v = 1",
        found(&stream, by_payload.clone()).await?,
        vec![1, 3],
    )?;
    let by_metadata = Query::new().with_metadata_field("v", json!(1))?;
    expect_eq(
        "metadata v = 1",
        found(&stream, by_metadata).await?,
        vec![2, 3],
    )?;
    let by_both = by_payload.with_metadata_field("v", json!(1))?;
    expect_eq("both", found(&stream, by_both).await?, vec![3])
}

/// Each event but the first misses just one of the filters.
pub(super) async fn all_filters_must_match(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let event = |event_type: &str, key: &str, a: u64, b: u64, c: u64| -> Outcome<NewEvent> {
        let event = new_event(event_type, json!({ "a": a, "b": b }));
        let event = event.with_metadata(JsonObject::metadata(json!({ "c": c }))?);
        Ok(event.with_key(EventKey::new(key)?))
    };
    let good = ("placed", "k", 1, 2, 3);
    let (event_type, key, a, b, c) = good;
    for new in [
        event(event_type, key, a, b, c)?,
        event("other", key, a, b, c)?,
        event(event_type, "other", a, b, c)?,
        event(event_type, key, 0, b, c)?,
        event(event_type, key, a, 0, c)?,
        event(event_type, key, a, b, 0)?,
        event(event_type, key, a, b, c)?,
    ] {
        stream.append_event(new).await?;
    }

    let query = Query::new()
        .with_event_type(EventType::new(event_type)?)
        .with_key(EventKey::new(key)?)
        .with_partition(P0)
        .with_payload_field("a", json!(a))?
        .with_payload_field("b", json!(b))?
        .with_metadata_field("c", json!(c))?;
    expect_eq(
        "what matches all",
        found(&stream, query.clone()).await?,
        vec![1, 7],
    )?;
    let later = query.clone().with_after_sequence(Sequence::new(1)?);
    expect_eq(
        "what matches above 1",
        found(&stream, later).await?,
        vec![7],
    )?;
    let earlier = query.with_until_sequence(Sequence::new(6)?);
    expect_eq(
        "what matches up to 6",
        found(&stream, earlier).await?,
        vec![1],
    )
}

/// Four events, a microsecond apart.
async fn four_events(stream: &Stream) -> Outcome<Vec<Event>> {
    let mut events = Vec::new();
    for _ in 0..4 {
        stream.t.pass(Duration::from_micros(1)).await;
        events.extend(stream.append(1).await?);
    }
    Ok(events)
}

/// Two ranges that meet in a moment must both hold it, to the microsecond.
pub(super) async fn a_time_range_includes_both_ends(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let events = four_events(&stream).await?;
    let time = |sequence: usize| events[sequence - 1].timestamp;
    let micro = Duration::from_micros(1);

    for (query, expected) in [
        (Query::new().with_from(time(2)), vec![2, 3, 4]),
        (
            Query::new().with_from(time(2).saturating_add(micro)),
            vec![3, 4],
        ),
        (Query::new().with_until(time(3)), vec![1, 2, 3]),
        (
            Query::new().with_until(time(3).saturating_sub(micro)),
            vec![1, 2],
        ),
        (
            Query::new().with_from(time(2)).with_until(time(3)),
            vec![2, 3],
        ),
        (Query::new().with_from(time(4)).with_until(time(4)), vec![4]),
        (
            Query::new().with_from(time(4).saturating_add(micro)),
            vec![],
        ),
        (
            Query::new().with_until(time(1).saturating_sub(micro)),
            vec![],
        ),
        (
            Query::new()
                .with_from(Timestamp::MIN)
                .with_until(Timestamp::MAX),
            vec![1, 2, 3, 4],
        ),
    ] {
        let range = format!(
            "the sequences from {:?} until {:?}",
            query.from, query.until
        );
        expect_eq(&range, found(&stream, query).await?, expected)?;
    }
    Ok(())
}

/// `after` is where the last page ended, `until` is the last sequence that is wanted.
pub(super) async fn a_sequence_range_is_exclusive_below_and_inclusive_above(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(4).await?;
    let max = Sequence::MAX.get();

    for (after, until, expected) in [
        (0, max, vec![1, 2, 3, 4]),
        (1, max, vec![2, 3, 4]),
        (4, max, vec![]),
        (max, max, vec![]),
        (0, 0, vec![]),
        (0, 1, vec![1]),
        (0, 4, vec![1, 2, 3, 4]),
        (1, 3, vec![2, 3]),
        (2, 3, vec![3]),
    ] {
        let query = Query::new()
            .with_after_sequence(Sequence::new(after)?)
            .with_until_sequence(Sequence::new(until)?);
        let range = format!("the sequences above {after} up to {until}");
        expect_eq(&range, found(&stream, query).await?, expected)?;
    }
    for far in FAR {
        let above = Query::new().with_after_sequence(Sequence::new(far)?);
        let what = format!("the sequences above {far}");
        expect_eq(&what, found(&stream, above).await?, vec![])?;
        let up_to = Query::new().with_until_sequence(Sequence::new(far)?);
        let what = format!("the sequences up to {far}");
        expect_eq(&what, found(&stream, up_to).await?, vec![1, 2, 3, 4])?;
    }
    let upper_alone = Query::new().with_until_sequence(Sequence::new(2)?);
    expect_eq(
        "the sequences up to 2",
        found(&stream, upper_alone).await?,
        vec![1, 2],
    )
}

/// Bounds are often computed; that nothing is between them is no mistake.
pub(super) async fn bounds_that_leave_nothing_give_an_empty_page(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let events = four_events(&stream).await?;
    let sequence = |number| Sequence::new(number);

    for query in [
        Query::new()
            .with_from(events[2].timestamp)
            .with_until(events[1].timestamp),
        Query::new()
            .with_from(Timestamp::MAX)
            .with_until(Timestamp::MIN),
        Query::new()
            .with_after_sequence(sequence(2)?)
            .with_until_sequence(sequence(2)?),
        Query::new()
            .with_after_sequence(sequence(3)?)
            .with_until_sequence(sequence(1)?),
        Query::new()
            .with_after_sequence(Sequence::MAX)
            .with_until_sequence(Sequence::ZERO),
        Query::new()
            .with_until(events[0].timestamp)
            .with_after_sequence(sequence(1)?),
    ] {
        expect_eq("the sequences found", found(&stream, query).await?, vec![])?;
    }
    Ok(())
}

/// Nobody asks for a page of nothing, but everybody computes limits.
pub(super) async fn a_query_gives_up_to_limit(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(4).await?;

    let none = stream.query(&Query::new().with_limit(0)).await?;
    expect_eq("a page of limit 0", sequences(&none.events), vec![])?;
    expect(
        none.next.is_none(),
        "no next page after limit 0",
        format_args!("{:?}", none.next),
    )?;
    for (limit, expected) in [
        (1, vec![1]),
        (3, vec![1, 2, 3]),
        (4, vec![1, 2, 3, 4]),
        (5, vec![1, 2, 3, 4]),
        (u32::MAX, vec![1, 2, 3, 4]),
    ] {
        let page = stream.query(&Query::new().with_limit(limit)).await?;
        let what = format!("a page of limit {limit}");
        expect_eq(&what, sequences(&page.events), expected)?;
    }
    Ok(())
}

/// The default is the same on every backend.
pub(super) async fn a_query_gives_100_unless_told(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(102).await?;

    let page = stream.query(&Query::new()).await?;
    expect_eq(
        "the sequences of a page",
        sequences(&page.events),
        (1..=100).collect(),
    )?;
    let all = found(&stream, Query::new()).await?;
    expect_eq("the sequences of all pages", all, (1..=102).collect())?;
    let page = stream.query(&Query::new().with_limit(101)).await?;
    expect_eq(
        "the sequences of a page",
        sequences(&page.events),
        (1..=101).collect(),
    )
}

/// An empty page looks like the end, however many events match further on.
pub(super) async fn filters_come_before_the_limit(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for rare in [0, 0, 0, 1, 0, 0, 1, 0, 1] {
        stream
            .append_event(new_event("order.placed", json!({ "rare": rare })))
            .await?;
    }

    let query = Query::new()
        .with_payload_field("rare", json!(1))?
        .with_limit(2);
    let page = stream.query(&query).await?;
    expect_eq("the first page of two", sequences(&page.events), vec![4, 7])?;
    expect_eq("all pages", found(&stream, query).await?, vec![4, 7, 9])
}

/// Two streams may hold the same types, keys and values.
pub(super) async fn a_query_sees_its_own_stream_alone(t: Fixture) -> Outcome {
    let (one, two) = (t.stream(1).await?, t.stream(1).await?);
    let event = || -> Outcome<NewEvent> {
        let event = new_event("order.placed", json!({ "v": 1 }));
        let event = event.with_metadata(JsonObject::metadata(json!({ "v": 1 }))?);
        Ok(event.with_key(EventKey::new("k")?))
    };
    let mine = vec![one.append_event(event()?).await?];
    two.append_event(event()?).await?;
    two.append_event(event()?).await?;

    for query in [
        Query::new(),
        Query::new().with_event_type(EventType::new("order.placed")?),
        Query::new().with_key(EventKey::new("k")?),
        Query::new().with_payload_field("v", json!(1))?,
        Query::new().with_metadata_field("v", json!(1))?,
    ] {
        expect_eq(
            "the events found",
            one.query_all(query).await?,
            mine.clone(),
        )?;
    }
    Ok(())
}

/// A wrong name must not look like a stream without news.
pub(super) async fn querying_a_missing_stream_is_an_error(t: Fixture) -> Outcome {
    let missing = StreamName::new("missing")?;

    for limit in [100, 0] {
        let result = t
            .backend
            .query(&missing, &Query::new().with_limit(limit))
            .await;
        expect_error(result, ErrorKind::StreamNotFound)?;
    }
    Ok(())
}
