//! Sequences without gaps, events that are there at once and stay as they are.

use rheo_core::{
    Backend, ErrorKind, Partition, Query, ReadOptions, Reason, ResetOptions, RetryOptions, Start,
};

use crate::expect::{Outcome, expect_eq, expect_error, expect_invalid};
use crate::fixture::Fixture;
use crate::scene::{P0, P1, Stream, sequences, sequences_of};

/// Consumers count on them: a missing number means a missing event.
pub(super) async fn sequences_are_1_2_3(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let appended = stream.append(5).await?;

    expect_eq("the sequences", sequences(&appended), vec![1, 2, 3, 4, 5])?;
    expect_sequences(&stream, P0, &[1, 2, 3, 4, 5]).await
}

/// Frontier and lag are computed for each partition from its sequences.
pub(super) async fn each_partition_counts_on_its_own(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    for number in [0, 1, 0, 2, 1, 0] {
        stream.append_to(Partition::new(number), 1).await?;
    }

    expect_sequences(&stream, P0, &[1, 2, 3]).await?;
    expect_sequences(&stream, P1, &[1, 2]).await?;
    expect_sequences(&stream, Partition::new(2), &[1]).await
}

/// A gap would hold every group's frontier for ever.
pub(super) async fn a_taken_id_uses_up_no_sequence(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let first = stream.append(1).await?.remove(0);
    let again = t.new_event().with_id(first.id);
    expect_error(
        t.backend.append(&stream.name, again).await,
        ErrorKind::AlreadyExists,
    )?;
    stream.append(1).await?;

    expect_sequences(&stream, P0, &[1, 2]).await
}

/// As a taken id.
pub(super) async fn a_partition_out_of_range_uses_up_no_sequence(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let nowhere = t.new_event().with_partition(P1);
    expect_invalid(t.backend.append(&stream.name, nowhere).await, "partition")?;
    stream.append(1).await?;

    expect_sequences(&stream, P0, &[1]).await
}

/// As a taken id; the good members had their turn first.
pub(super) async fn a_refused_batch_uses_up_no_sequence(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let first = stream.append(1).await?.remove(0);
    let batch = vec![
        t.new_event(),
        t.new_event(),
        t.new_event().with_id(first.id),
    ];
    expect_error(
        t.backend.append_batch(&stream.name, batch).await,
        ErrorKind::AlreadyExists,
    )?;
    stream.append(1).await?;

    expect_sequences(&stream, P0, &[1, 2]).await
}

/// As a taken id, where the bad event goes to another partition than the good ones.
pub(super) async fn a_refused_batch_uses_up_no_sequence_of_any_partition(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    let first = stream.append_to(P1, 1).await?.remove(0);
    let batch = vec![
        t.new_event().with_partition(P0),
        t.new_event().with_partition(P1).with_id(first.id),
    ];
    expect_error(
        t.backend.append_batch(&stream.name, batch).await,
        ErrorKind::AlreadyExists,
    )?;
    stream.append_to(P0, 1).await?;
    stream.append_to(P1, 1).await?;

    expect_sequences(&stream, P0, &[1]).await?;
    expect_sequences(&stream, P1, &[1, 2]).await
}

/// Who reads on from the last sequence would never see an event that shows up below it.
pub(super) async fn a_reader_sees_no_event_before_its_predecessors(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(stream.append(1).await?.remove(0).sequence.get());

        let read = t.backend.read(&stream.name, &ReadOptions::new()).await?;
        expect_eq(
            "the sequences that are visible",
            sequences(&read),
            all.clone(),
        )?;
    }
    Ok(())
}

/// As for a reader: a group that goes on after each append gets every event, once and in order.
pub(super) async fn a_group_passes_no_event(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let mut delivered = Vec::new();
    for count in [1, 2, 1] {
        group.stream.append(count).await?;
        let leases = group.fetch_all("a").await?;
        group.ack(&leases).await?;
        delivered.extend(sequences_of(&leases));
    }

    expect_eq("the sequences delivered", delivered, vec![1, 2, 3, 4])
}

/// Who was told that the event is in the log looks for it.
pub(super) async fn an_appended_event_is_read_and_fetched_at_once(t: Fixture) -> Outcome {
    let group = t.group().await?;
    for _ in 0..3 {
        let appended = group.stream.append(1).await?.remove(0);
        let before = ReadOptions::new().with_after(appended.sequence.previous());

        let read = t.backend.read(&group.stream.name, &before).await?;
        expect_eq("the event just appended", read, vec![appended.clone()])?;
        let lease = group.fetch_one("a").await?;
        expect_eq("the event just appended", lease.event, appended)?;
    }
    Ok(())
}

/// As a read.
pub(super) async fn an_appended_event_is_found_by_a_query_at_once(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for _ in 0..3 {
        let appended = stream.append(1).await?.remove(0);
        let query = Query::new().with_after_sequence(appended.sequence.previous());

        let found = stream.query(&query).await?.events;
        expect_eq("the event just appended", found, vec![appended])?;
    }
    Ok(())
}

/// A lag of 0 means that everything is done; nobody may read it while an event waits.
pub(super) async fn an_appended_event_counts_in_the_lag_at_once(t: Fixture) -> Outcome {
    let group = t.group().await?;
    for count in 1..=3 {
        group.stream.append(1).await?;

        let lag = group.lag().await?;
        expect_eq("the lag", lag.total(), count)?;
        let watermark = lag.partition(P0).map(|lag| lag.high_watermark.get());
        expect_eq("the high watermark", watermark, Some(count))?;
    }
    Ok(())
}

/// Other groups read the same log, today or in a year.
pub(super) async fn settling_changes_no_event(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let appended = group.stream.append(5).await?;
    let leases = group.fetch_exactly("a", 5).await?;
    t.backend.ack(&leases[0]).await?;
    t.backend.retry(&leases[1], &RetryOptions::new()).await?;
    group.reject(&leases[2], "no such customer").await?;
    t.backend.renew(&leases[3], t.brief_lease()).await?;
    group.fetch("a", 1).await?;

    expect_eq("the log", group.stream.read(P0).await?, appended)
}

/// An event that is delivered again is the same event, in the same place.
pub(super) async fn an_expired_lease_changes_no_event(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let appended = group.stream.append(2).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;
    group.fetch_exactly("b", 2).await?;

    expect_eq("the log", group.stream.read(P0).await?, appended)
}

/// Giving up on an event is one group's affair.
pub(super) async fn a_dead_letter_stays_in_the_log(t: Fixture) -> Outcome {
    let group = t.stream(1).await?.group_of_attempts("billing", 1).await?;
    let appended = group.stream.append(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.reject(&leases[0], "broken").await?;
    let options = RetryOptions::new().with_reason(Reason::new("broken"));
    t.backend.retry(&leases[1], &options).await?;

    expect_eq(
        "the number of dead letters",
        group.dead_letters().await?.len(),
        2,
    )?;
    expect_eq("the log", group.stream.read(P0).await?, appended)
}

/// Going back moves the group, not the log.
pub(super) async fn replay_and_reset_change_no_event(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let appended = group.stream.append(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    group.ack(&leases[..2]).await?;
    group.replay_after(1).await?;

    expect_eq(
        "the log after a replay",
        group.stream.read(P0).await?,
        appended.clone(),
    )?;
    group.reset(&ResetOptions::new()).await?;
    let end = ResetOptions::new().with_start(Start::End);
    group.reset(&end).await?;
    expect_eq(
        "the log after resets",
        group.stream.read(P0).await?,
        appended,
    )
}

async fn expect_sequences(stream: &Stream, partition: Partition, expected: &[u64]) -> Outcome {
    let read = stream.read(partition).await?;
    expect_eq(
        &format!("the sequences in partition {partition}"),
        sequences(&read),
        expected.to_vec(),
    )
}
