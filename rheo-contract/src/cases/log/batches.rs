//! Batches: in input order, whole or not at all.

use rheo_core::{
    Backend, ErrorKind, Event, EventId, EventKey, NewEvent, Partition, StreamName, StreamOptions,
};

use crate::expect::{Outcome, expect_empty, expect_eq, expect_error, expect_invalid};
use crate::fixture::Fixture;
use crate::scene::{P0, P1, Stream, sequences};

fn ids(events: &[Event]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

/// The caller finds the event of each input by its place.
pub(super) async fn a_batch_comes_back_in_input_order(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(1).await?;
    // Ids that descend, so that sorting by id shows.
    let mut given: Vec<EventId> = (0..4).map(|_| t.unknown_id()).collect();
    given.sort_by(|left, right| right.cmp(left));
    let batch = given.iter().map(|id| t.new_event().with_id(*id)).collect();
    let appended = t.backend.append_batch(&stream.name, batch).await?;

    expect_eq("the ids, in input order", ids(&appended), given)?;
    expect_eq("the sequences", sequences(&appended), vec![2, 3, 4, 5])?;
    let read = stream.read(P0).await?;
    expect_eq("the batch in the log", read[1..].to_vec(), appended)
}

/// Events of one key must keep their order, whatever else is in the batch.
pub(super) async fn a_batch_is_in_input_order_in_each_partition(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    stream.append_to(P1, 1).await?;
    let batch: Vec<NewEvent> = [P1, P0, P1, P0, P1]
        .into_iter()
        .map(|partition| {
            t.new_event()
                .with_id(t.unknown_id())
                .with_partition(partition)
        })
        .collect();
    let given: Vec<Option<EventId>> = batch.iter().map(|event| event.id).collect();
    let appended = t.backend.append_batch(&stream.name, batch).await?;

    let seen: Vec<Option<EventId>> = ids(&appended).into_iter().map(Some).collect();
    expect_eq("the ids, in input order", seen, given)?;
    expect_eq("the sequences", sequences(&appended), vec![2, 1, 3, 2, 4])?;
    let of = |partition| {
        let events = appended
            .iter()
            .filter(move |event| event.partition == partition);
        events.cloned().collect::<Vec<Event>>()
    };
    expect_eq("partition 0", stream.read(P0).await?, of(P0))?;
    expect_eq("partition 1", stream.read(P1).await?[1..].to_vec(), of(P1))
}

/// Half a batch is neither what the caller wanted nor what it can repeat.
pub(super) async fn a_batch_with_a_taken_id_writes_nothing(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let before = stream.append(1).await?;
    for bad in 0..3 {
        let mut batch = vec![t.new_event(), t.new_event(), t.new_event()];
        batch[bad].id = Some(before[0].id);

        let result = t.backend.append_batch(&stream.name, batch).await;
        expect_error(result, ErrorKind::AlreadyExists)?;
        expect_eq("the log", stream.read(P0).await?, before.clone())?;
    }
    Ok(())
}

/// As a taken id: which of the two would it be?
pub(super) async fn a_batch_with_an_id_twice_writes_nothing(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let id = t.unknown_id();
    let batch = vec![
        t.new_event(),
        t.new_event().with_id(id),
        t.new_event().with_id(id),
    ];
    let result = t.backend.append_batch(&stream.name, batch).await;

    expect_error(result, ErrorKind::AlreadyExists)?;
    expect_empty("event in the log", &stream.read(P0).await?)?;
    stream.append_event(t.new_event().with_id(id)).await?;
    Ok(())
}

/// One id in two places, however the events get there.
pub(super) async fn a_batch_with_an_id_twice_in_two_partitions_writes_nothing(
    t: Fixture,
) -> Outcome {
    let stream = t.stream(3).await?;
    let to = |number| t.new_event().with_partition(Partition::new(number));
    // Of three partitions: 1, 0 and 2.
    let [one, none, two] = ["order-1", "order-2", "customer:42"];
    let keyed = |key| -> Outcome<NewEvent> { Ok(t.new_event().with_key(EventKey::new(key)?)) };
    for (batch, twice) in [
        (vec![to(0), to(1)], [0, 1]),
        (vec![to(2), to(1), to(1), to(0)], [0, 3]),
        (vec![to(0), to(1), to(1), to(2)], [1, 3]),
        (vec![keyed(one)?, keyed(two)?, keyed(none)?], [0, 2]),
        (vec![t.new_event(), keyed(one)?, keyed(two)?], [0, 2]),
    ] {
        let (mut batch, id) = (batch, t.unknown_id());
        for at in twice {
            batch[at].id = Some(id);
        }
        let result = t.backend.append_batch(&stream.name, batch).await;
        expect_error(result, ErrorKind::AlreadyExists)?;
        for number in 0..3 {
            let log = stream.read(Partition::new(number)).await?;
            expect_empty("event in the log", &log)?;
        }
    }
    Ok(())
}

/// As a taken id.
pub(super) async fn a_batch_with_a_partition_out_of_range_writes_nothing(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for bad in 0..2 {
        let mut batch = vec![t.new_event(), t.new_event()];
        batch[bad].partition = Some(P1);

        let result = t.backend.append_batch(&stream.name, batch).await;
        expect_invalid(result, "partition")?;
        expect_empty("event in the log", &stream.read(P0).await?)?;
    }
    Ok(())
}

/// Whole or not at all, over all partitions: only `Ambiguous` may leave some of it behind.
pub(super) async fn a_refused_batch_writes_nothing_to_any_partition(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    let before = stream.append_to(P1, 1).await?;
    let good = t.unknown_id();
    let batch = vec![
        t.new_event().with_partition(P0).with_id(good),
        t.new_event().with_partition(P1).with_id(before[0].id),
    ];
    let result = t.backend.append_batch(&stream.name, batch).await;

    expect_error(result, ErrorKind::AlreadyExists)?;
    expect_empty("event in partition 0", &stream.read(P0).await?)?;
    expect_eq("partition 1", stream.read(P1).await?, before)?;
    stream.append_event(t.new_event().with_id(good)).await?;
    Ok(())
}

/// Who collects events and flushes them need not ask whether there are any.
pub(super) async fn an_empty_batch_writes_nothing(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let appended = t.backend.append_batch(&stream.name, vec![]).await?;

    expect_empty("event", &appended)?;
    expect_empty("event in the log", &stream.read(P0).await?)
}

/// It needs no promise that more than one event are written together.
pub(super) async fn a_batch_of_one_is_an_append(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let batch = vec![t.new_event()];
    let appended = t.backend.append_batch(&stream.name, batch).await?;

    expect_eq("the sequences", sequences(&appended), vec![1])?;
    expect_eq("the log", stream.read(P0).await?, appended)
}

fn missing_stream(t: &Fixture) -> Outcome<Stream> {
    Ok(t.existing_stream(StreamName::new("missing")?))
}

/// A wrong name must show at once, not with the first event.
pub(super) async fn an_empty_batch_to_a_missing_stream_is_an_error(t: Fixture) -> Outcome {
    let stream = missing_stream(&t)?;
    let result = t.backend.append_batch(&stream.name, vec![]).await;

    expect_error(result, ErrorKind::StreamNotFound)?;
    Ok(())
}

/// A misspelt name must not become a stream that nobody reads.
pub(super) async fn an_append_to_a_missing_stream_makes_none(t: Fixture) -> Outcome {
    let stream = missing_stream(&t)?;
    let result = t.backend.append(&stream.name, t.new_event()).await;

    expect_error(result, ErrorKind::StreamNotFound)?;
    t.backend
        .create_stream(&stream.name, &StreamOptions::new())
        .await?;
    expect_empty("event in the log", &stream.read(P0).await?)
}
