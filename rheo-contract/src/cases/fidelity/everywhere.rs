//! One event, seen from everywhere.

use std::time::Duration;

use rheo_core::{
    Backend, Event, EventKey, EventType, Guarantee, JsonObject, NewEvent, Partition, Query,
    RetryOptions, StreamName, Timestamp,
};
use serde_json::json;

use crate::durations::MICROSECOND;
use crate::expect::{Outcome, broken, expect, expect_eq};
use crate::fixture::{Fixture, new_event};
use crate::scene::P0;

/// An event with something in every field.
fn full_event(t: &Fixture) -> Outcome<NewEvent> {
    let payload =
        json!({ "number": t.number(), "lines": [{ "sku": "a-1", "price": 12.5 }], "note": null });
    let metadata = json!({ "trace": "00-4bf92f35", "tenant": { "id": 7 } });
    Ok(new_event("order.placed", payload)
        .with_id(t.unknown_id())
        .with_key(EventKey::new("customer:42")?)
        .with_partition(P0)
        .with_metadata(JsonObject::metadata(metadata)?))
}

/// Demands that an event is what was given, at that sequence of partition 0, appended now.
fn expect_as_given(
    t: &Fixture,
    seen: &Event,
    given: &NewEvent,
    stream: &StreamName,
    sequence: u64,
) -> Outcome {
    t.expect_now("the timestamp", seen.timestamp)?;
    let expected = Event {
        id: given.id.unwrap_or(seen.id),
        stream: stream.clone(),
        partition: P0,
        sequence: sequence.try_into()?,
        event_type: given.event_type.clone(),
        key: given.key.clone(),
        payload: given.payload.clone(),
        metadata: given.metadata.clone(),
        timestamp: seen.timestamp,
    };
    expect_eq("the appended event", seen.clone(), expected)
}

/// What a producer was told is what consumers get.
pub(super) async fn append_read_and_fetch_give_the_same_event(t: Fixture) -> Outcome {
    let group = t.group().await?;
    for sequence in 1..=2 {
        let given = full_event(&t)?;
        let appended = group.stream.append_event(given.clone()).await?;

        expect_as_given(&t, &appended, &given, &group.stream.name, sequence)?;
        let read = group.stream.read(P0).await?.pop();
        expect_eq("the event, read", read, Some(appended.clone()))?;
        let lease = group.fetch_one("a").await?;
        expect_eq("the event, fetched", lease.event, appended)?;
        t.pass(Duration::from_micros(1_001)).await;
    }
    Ok(())
}

/// As a single event.
pub(super) async fn a_batch_gives_the_same_events(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let given = vec![full_event(&t)?, t.new_event(), full_event(&t)?];
    let appended = t.backend.append_batch(&stream.name, given.clone()).await?;

    expect_eq("the number of events", appended.len(), given.len())?;
    for (sequence, (seen, given)) in (1..).zip(appended.iter().zip(&given)) {
        expect_as_given(&t, seen, given, &stream.name, sequence)?;
    }
    expect_eq("the log", stream.read(P0).await?, appended)
}

/// The hundredth event is as good as the first, and like no other.
pub(super) async fn every_event_of_a_large_batch_is_whole(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let mut given = Vec::new();
    for number in 0..260 {
        let event = new_event(&format!("type-{}", number % 7), json!({ "number": number }));
        let event = match number % 5 {
            4 => event,
            _ => event.with_metadata(JsonObject::metadata(json!({ "trace": number }))?),
        };
        let event = match number % 3 {
            2 => event.with_partition(P0),
            _ => event.with_key(EventKey::new(format!("customer:{number}"))?),
        };
        given.push(match number % 2 {
            1 => event,
            _ => event.with_id(t.unknown_id()),
        });
    }
    let appended = group.stream.append_all(given.clone()).await?;

    expect_eq("the number of events", appended.len(), given.len())?;
    let name = &group.stream.name;
    for (sequence, (seen, given)) in (1..).zip(appended.iter().zip(&given)) {
        expect_as_given(&t, seen, given, name, sequence)?;
    }
    expect_eq("the log", group.stream.read(P0).await?, appended.clone())?;
    let leases = group.fetch_exactly("a", given.len()).await?;
    let fetched: Vec<Event> = leases.into_iter().map(|lease| lease.event).collect();
    expect_eq("the events, fetched", fetched, appended)
}

/// As a read.
pub(super) async fn a_query_gives_the_same_event(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut appended = vec![stream.append_event(full_event(&t)?).await?];
    t.pass(Duration::from_micros(1_001)).await;
    appended.push(stream.append_event(t.new_event()).await?);

    let found = stream.query(&Query::new()).await?.events;
    expect_eq("the events, queried", found, appended)
}

/// Whoever holds a lease works from the event in it.
pub(super) async fn a_renewed_and_a_redelivered_lease_hold_the_same_event(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let appended = group.stream.append_event(full_event(&t)?).await?;
    let lease = group.fetch_one("a").await?;
    let renewed = t.backend.renew(&lease, t.brief_lease()).await?;
    t.let_lease_expire(&renewed).await;
    let reclaimed = group.fetch_one("b").await?;
    t.backend.retry(&reclaimed, &RetryOptions::new()).await?;
    let retried = group.fetch_one("c").await?;

    expect_eq("the event, renewed", renewed.event, appended.clone())?;
    expect_eq("the event, reclaimed", reclaimed.event, appended.clone())?;
    expect_eq("the event, retried", retried.event, appended)
}

/// People repair by what a dead letter holds.
pub(super) async fn a_dead_letter_holds_the_same_event(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let appended = vec![
        group.stream.append_event(full_event(&t)?).await?,
        group.stream.append_event(t.new_event()).await?,
    ];
    for lease in group.fetch_exactly("a", 2).await? {
        t.pass(Duration::from_micros(1_001)).await;
        group.reject(&lease, "no such customer").await?;
    }

    let dead = group.dead_letters().await?;
    let events: Vec<Event> = dead.into_iter().map(|letter| letter.event).collect();
    expect_eq("the events of the dead letters", events, appended)
}

/// No key is not an empty key; empty metadata is an object like any other.
pub(super) async fn a_missing_key_and_empty_metadata_stay_so(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let appended = group
        .stream
        .append_event(new_event("ping", json!({})))
        .await?;
    let lease = group.fetch_one("a").await?;
    let read = group.stream.read(P0).await?;

    for event in [Some(&appended), read.first(), Some(&lease.event)] {
        let event = event.ok_or_else(|| broken("an event", "none"))?;
        expect(
            event.key.is_none(),
            "no key",
            format_args!("{:?}", event.key),
        )?;
        expect_eq("the payload", &event.payload, &JsonObject::default())?;
        expect_eq("the metadata", &event.metadata, &JsonObject::default())?;
    }
    Ok(())
}

/// Events are found by their time; the answer of the append must be as precise as the log.
pub(super) async fn a_timestamp_keeps_its_microseconds(t: Fixture) -> Outcome {
    let group = t.group().await?;
    for micros in [1, 1_000, 541, 999] {
        t.pass(Duration::from_micros(micros)).await;
        let appended = group.stream.append(1).await?.remove(0);

        t.expect_now("the timestamp", appended.timestamp)?;
        let read = group.stream.read(P0).await?.pop();
        let read = read.map(|event| event.timestamp);
        expect_eq("the timestamp, read", read, Some(appended.timestamp))?;
        let fetched = group.fetch_one("a").await?.event.timestamp;
        expect_eq("the timestamp, fetched", fetched, appended.timestamp)?;
    }
    Ok(())
}

/// An event happened when it was appended, wherever it went and whatever went before it.
pub(super) async fn every_append_has_its_own_time(t: Fixture) -> Outcome {
    let partitions = match t.capabilities().guarantees(Guarantee::Partitions) {
        true => 3,
        false => 1,
    };
    let stream = t.stream(partitions).await?;
    let to = |number: u32| t.new_event().with_partition(Partition::new(number));
    let mut appended = Vec::new();
    for number in (0..partitions).chain(0..partitions) {
        t.pass(Duration::from_micros(1_001)).await;
        let mut events = stream.append_to(Partition::new(number), 2).await?;
        events.extend(stream.append_all(vec![to(number), to(number)]).await?);
        let everywhere = (0..partitions).map(to).collect();
        events.extend(stream.append_all(everywhere).await?);
        for event in &events {
            t.expect_now("the timestamp", event.timestamp)?;
        }
        appended.extend(events);
    }

    for partition in (0..partitions).map(Partition::new) {
        let mut expected = appended.clone();
        expected.retain(|event| event.partition == partition);
        expect_eq("the log", stream.read(partition).await?, expected)?;
    }
    Ok(())
}

/// A clock that was wrong is put right; what is appended then has the right time.
pub(super) async fn a_timestamp_follows_the_clock_back(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut moments = Vec::new();
    for back in [0, 1, 3_600] {
        t.turn_back(Duration::from_secs(back));
        for count in [1, 2] {
            let events = (0..count).map(|_| t.new_event()).collect();
            for appended in stream.append_all(events).await? {
                expect_eq("the timestamp", appended.timestamp, t.now())?;
                moments.push(t.now());
            }
        }
    }

    let read = stream.read(P0).await?;
    let seen: Vec<Timestamp> = read.iter().map(|event| event.timestamp).collect();
    expect_eq("the timestamps in the log", seen, moments)
}

/// A clock that is badly wrong, or a log of the past, must not lose events.
pub(super) async fn the_first_and_the_last_timestamp_come_back(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let before_1970 = Timestamp::UNIX_EPOCH.saturating_sub(MICROSECOND);
    let moments = [Timestamp::MIN, before_1970, Timestamp::MAX];
    for moment in moments {
        t.jump_to(moment);
        let appended = stream.append(1).await?.remove(0);
        expect_eq("the timestamp", appended.timestamp, moment)?;
    }

    let read = stream.read(P0).await?;
    let seen: Vec<Timestamp> = read.iter().map(|event| event.timestamp).collect();
    expect_eq("the timestamps in the log", seen, moments.to_vec())
}

/// Text is data, byte for byte; what looks alike is not the same.
pub(super) async fn any_event_type_and_key_come_back(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let both = [
        "a.b",
        "a:b",
        "A",
        "a",
        "a ",
        " a",
        "ü",
        "u\u{308}",
        "%",
        "_",
        "$where",
        "*",
        ">",
        "a/b",
        "'; DROP TABLE events; --",
        "\"",
        "\\",
        "\\u0061",
        "{\"$gt\":\"\"}",
        "null",
        "0",
        "1.0",
        "🦀",
        "\u{ffff}",
        "\u{202e}abc",
        "\u{feff}a",
        "system.",
        "__proto__",
    ];
    let mut texts: Vec<(String, String)> = both
        .iter()
        .map(|text| ((*text).to_owned(), (*text).to_owned()))
        .collect();
    // The longest ones, and keys with what a name may not have.
    texts.push(("ü".repeat(127) + "t", "🦀".repeat(256)));
    texts.push(("t".repeat(255), "k".repeat(1_024)));
    texts.push(("t".into(), "\u{1}\t\n\r\u{7f}\u{85}".into()));
    let mut appended = Vec::new();
    for (event_type, key) in &texts {
        let event = new_event(event_type, json!({})).with_key(EventKey::new(key)?);
        appended.push(group.stream.append_event(event).await?);
    }

    let read = group.stream.read(P0).await?;
    let leases = group.fetch_exactly("a", texts.len()).await?;
    let fetched = leases.into_iter().map(|lease| lease.event).collect();
    for (how, events) in [("appended", appended), ("read", read), ("fetched", fetched)] {
        expect_eq(
            &format!("the number of events {how}"),
            events.len(),
            texts.len(),
        )?;
        for (event, (event_type, key)) in events.iter().zip(&texts) {
            let seen = (&event.event_type, event.key.as_ref());
            let expected = (EventType::new(event_type)?, EventKey::new(key)?);
            expect_eq(
                &format!("type and key, {how},"),
                seen,
                (&expected.0, Some(&expected.1)),
            )?;
        }
    }
    Ok(())
}
