//! Event ids: unique in their stream, the caller's or made of the time.

use std::collections::BTreeSet;
use std::time::Duration;

use rheo_core::{Backend, ErrorKind, EventId, NewEvent, Partition, Timestamp};
use uuid::Uuid;

use crate::expect::{Outcome, expect, expect_eq, expect_error, expect_invalid};
use crate::fixture::Fixture;
use crate::scene::{P0, P1};

/// Ids come from other systems; any UUID is one.
pub(super) async fn a_given_id_is_kept(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for id in [
        Uuid::new_v4(),
        Uuid::nil(),
        Uuid::max(),
        Uuid::from_u128(0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8),
        Uuid::from_u128(0x7473_8ff5_5367_5958_9aee_98ff_fdcd_1876),
        Uuid::from_u128(0xffff_ffff_0000_0000_0000_0000_0000_0001),
    ]
    .map(EventId::new)
    {
        let appended = stream.append_event(t.new_event().with_id(id)).await?;

        expect_eq("the id", appended.id, id)?;
        let last = stream.read(P0).await?.pop().map(|event| event.id);
        expect_eq("the id in the log", last, Some(id))?;
    }
    Ok(())
}

/// After `Ambiguous`, the same append is made again: it must neither double nor replace.
pub(super) async fn a_taken_id_is_refused(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let first = t.new_event().with_id(t.unknown_id());
    let appended = vec![stream.append_event(first.clone()).await?];
    let other = t.new_event().with_id(appended[0].id);

    for again in [first, other] {
        let result = t.backend.append(&stream.name, again).await;
        expect_error(result, ErrorKind::AlreadyExists)?;
        expect_eq("the log", stream.read(P0).await?, appended.clone())?;
    }
    Ok(())
}

/// An id names one event of the stream, wherever it is.
pub(super) async fn a_taken_id_is_refused_in_every_partition(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    let first = stream.append_to(P0, 1).await?.remove(0);
    let again = t.new_event().with_partition(P1).with_id(first.id);
    let result = t.backend.append(&stream.name, again).await;

    expect_error(result, ErrorKind::AlreadyExists)?;
    expect_eq("partition 1", stream.read(P1).await?, vec![])
}

/// As a taken id: the caller may have read it.
pub(super) async fn a_generated_id_is_taken_too(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let appended = stream.append(1).await?;
    let again = t.new_event().with_id(appended[0].id);
    let result = t.backend.append(&stream.name, again).await;

    expect_error(result, ErrorKind::AlreadyExists)?;
    expect_eq("the log", stream.read(P0).await?, appended)
}

/// Who corrects a refused event sends it with its id.
pub(super) async fn a_refused_id_stays_free(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let event = t.new_event().with_id(t.unknown_id());
    let nowhere = event.clone().with_partition(P1);
    expect_invalid(t.backend.append(&stream.name, nowhere).await, "partition")?;

    stream.append_event(event).await?;
    Ok(())
}

/// A batch of five, with ids in every other place.
fn batch(t: &Fixture) -> Vec<NewEvent> {
    let given = |at: usize| match at % 2 {
        0 => t.new_event().with_id(t.unknown_id()),
        _ => t.new_event(),
    };
    (0..5).map(given).collect()
}

/// After `Ambiguous`, a batch is made again, or what is left of it.
pub(super) async fn every_id_of_a_batch_is_taken(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let written = batch(&t);
    let appended = t.backend.append_batch(&stream.name, written).await?;

    for event in &appended {
        let again = || t.new_event().with_id(event.id);
        let alone = t.backend.append(&stream.name, again()).await;
        expect_error(alone, ErrorKind::AlreadyExists)?;
        for at in 0..3 {
            let mut batch = vec![t.new_event(), t.new_event(), t.new_event()];
            batch[at] = again();
            let together = t.backend.append_batch(&stream.name, batch).await;
            expect_error(together, ErrorKind::AlreadyExists)?;
        }
    }
    expect_eq("the log", stream.read(P0).await?, appended)
}

/// An id names one event of the stream, wherever its batch put it.
pub(super) async fn every_id_of_a_batch_is_taken_in_every_partition(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    let to = |event: NewEvent, number: usize| {
        event.with_partition(Partition::new(
            u32::try_from(number % 3).unwrap_or_default(),
        ))
    };
    let spread = batch(&t).into_iter().zip(0..);
    let written = spread.map(|(event, at)| to(event, at)).collect();
    let appended = t.backend.append_batch(&stream.name, written).await?;

    for (event, at) in appended.iter().zip(0..) {
        for further in 0..3 {
            let again = to(t.new_event().with_id(event.id), at + further);
            let batch = vec![to(t.new_event(), at), again.clone()];
            let alone = t.backend.append(&stream.name, again).await;
            expect_error(alone, ErrorKind::AlreadyExists)?;
            let together = t.backend.append_batch(&stream.name, batch).await;
            expect_error(together, ErrorKind::AlreadyExists)?;
        }
    }
    for number in 0..3 {
        let partition = Partition::new(number);
        let mut expected = appended.clone();
        expected.retain(|event| event.partition == partition);
        expect_eq("the log", stream.read(partition).await?, expected)?;
    }
    Ok(())
}

/// A log that is copied keeps its ids, batch by batch.
pub(super) async fn one_batch_may_be_in_many_streams(t: Fixture) -> Outcome {
    let written = batch(&t);
    let ids: Vec<Option<EventId>> = written.iter().map(|event| event.id).collect();
    for _ in 0..4 {
        let stream = t.stream(1).await?;
        let copy = written.clone();
        let appended = t.backend.append_batch(&stream.name, copy).await?;

        for (event, id) in appended.iter().zip(&ids) {
            expect_eq("the id", event.id, id.unwrap_or(event.id))?;
        }
        expect_eq("the log", stream.read(P0).await?, appended)?;
    }
    Ok(())
}

/// An event that is copied from one stream to another keeps its id.
pub(super) async fn one_id_may_be_in_two_streams(t: Fixture) -> Outcome {
    let (one, two) = (t.stream(1).await?, t.stream(1).await?);
    let first = one.append(1).await?;
    let copy = t.new_event().with_id(first[0].id);
    let second = vec![two.append_event(copy).await?];

    expect_eq("the first stream", one.read(P0).await?, first)?;
    expect_eq("the second stream", two.read(P0).await?, second)
}

/// Many events are appended at one and the same moment.
pub(super) async fn generated_ids_are_unique(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let ids: BTreeSet<EventId> = stream.append(40).await?.iter().map(|e| e.id).collect();

    expect_eq("the number of different ids of 40 events", ids.len(), 40)
}

/// Ids that begin with the time keep an index on them small and warm.
pub(super) async fn generated_ids_hold_the_time_of_the_append(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for _ in 0..2 {
        let event = stream.append(1).await?.remove(0);

        let id = event.id.as_uuid();
        expect(
            id.get_version_num() == 7 && id.get_variant() == uuid::Variant::RFC4122,
            "an id of version 7",
            id,
        )?;
        // An id holds whole milliseconds; the rest of the time is the event's.
        let millis = i64::try_from(id.as_u128() >> 80).unwrap_or(i64::MAX / 1_000);
        let rest = event.timestamp.as_micros().rem_euclid(1_000);
        let time = Timestamp::from_micros(millis * 1_000 + rest)?;
        t.expect_now("the time in the id", time)?;
        t.pass(Duration::from_millis(7)).await;
    }
    Ok(())
}

/// As above: later events have higher ids.
pub(super) async fn generated_ids_sort_by_millisecond(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(stream.append(1).await?.remove(0).id);
        t.pass(Duration::from_millis(1)).await;
    }

    expect(
        ids.is_sorted(),
        "ascending ids of events a millisecond apart",
        format_args!("{ids:?}"),
    )
}
