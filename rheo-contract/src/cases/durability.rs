//! Durability: what was confirmed is there after the handle was closed and the store opened again.

use std::collections::BTreeMap;
use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, ErrorKind, EventKey, FetchOptions, Gate, GroupOptions, Guarantee,
    JsonObject, LeaseDuration, OptionalOperation, Partition, Query, ReadOptions, ResetOptions,
    RetryDelay, RetryOptions, RetryOutcome, Sequence, Start, StreamOptions,
};
use serde_json::json;

use crate::case::{Case, case};
use crate::expect::{Outcome, expect_eq, expect_error, expect_invalid};
use crate::fixture::Fixture;
use crate::scene::{P0, sequences};

const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);
const REPLAY: Gate = Gate::Guarantee(Guarantee::Replay);
const RANGE_SCAN: Gate = Gate::Guarantee(Guarantee::OrderedRangeScan);
const DEAD_LETTERS: Gate = Gate::Operation(OptionalOperation::DeadLetters);

pub(crate) const CASES: &[Case] = &[
    case!(
        "DUR-1" => events_survive,
        "appends are confirmed before they are written through"
    ),
    case!(
        "DUR-1" => sequences_go_on,
        "the next sequence is kept in memory, or in a counter that starts again"
    ),
    case!(
        "DUR-1" => partitions_survive,
        "the number of partitions is known to the handle that made the stream alone"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DUR-1" => taken_ids_stay_taken,
        "ids are compared with those that the handle has seen"
    ),
    case!(
        "DUR-1" => names_stay_taken,
        "streams or groups are compared with those that the handle has made"
    ),
    case!(
        "DUR-1" => what_is_settled_stays_settled,
        "acks and rejects are collected in memory and written now and then"
    ),
    case!(
        "DUR-1" => a_lease_survives,
        "leases belong to the session or the handle, and closing gives them back"
    ),
    case!(
        "DUR-1" => a_stale_lease_stays_stale,
        "lease ids are kept in memory, and what is not known is taken for current"
    ),
    case!(
        "DUR-1" => the_expiry_of_a_lease_survives,
        "leases are counted from the start of the process, or expire when it ends"
    ),
    case!(
        "DUR-1" => renewals_survive,
        "renewals are collected in memory, and written now and then"
    ),
    case!(
        "DUR-1" => attempts_survive,
        "attempts are counted in memory"
    ),
    case!(
        "DUR-1" => max_attempts_survives,
        "the options of a group are kept by the handle that made it, and default elsewhere"
    ),
    case!(
        "DUR-1" => the_delay_of_a_retry_survives,
        "delays are timers of the process"
    ),
    case!(
        "DUR-1" => starts_survive,
        "the start of a group is applied by the handle that made it"
    ),
    case!(
        "DUR-1" => dead_letters_survive,
        "dead letters are kept in memory"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "DUR-1" => frontiers_survive,
        "acks above a hole are kept in memory until the hole is filled"
    )
    .needs(&[FRONTIER]),
    case!(
        "DUR-1" => a_replay_survives,
        "the handle writes back, at its close, the position that it had before"
    )
    .needs(&[REPLAY]),
    case!(
        "DUR-1" => a_reset_survives,
        "the handle writes back, at its close, the position that it had before"
    )
    .needs(&[REPLAY]),
    case!(
        "DUR-1" => a_cursor_survives,
        "a cursor stands for a snapshot or a statement of the connection"
    )
    .needs(&[RANGE_SCAN]),
    case!(
        "DUR-1" => making_indexes_after_a_restart_loses_nothing,
        "a process that starts makes its tables anew"
    ),
];

/// The log is what everything else is built on.
async fn events_survive(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut appended = stream.append(2).await?;
    let rich = t
        .new_event()
        .with_key(EventKey::new("customer-7")?)
        .with_metadata(JsonObject::metadata(json!({ "trace": 7 }))?);
    appended.push(stream.append_event(rich).await?);
    let reopened = t.reopen().await?;

    expect_eq("the log", stream.via(&reopened).read(P0).await?, appended)
}

/// A sequence that is given twice makes two events one.
async fn sequences_go_on(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut appended = stream.append(2).await?;
    let reopened = t.reopen().await?;

    let stream = stream.via(&reopened);
    appended.extend(stream.append(2).await?);
    expect_eq("the sequences", sequences(&appended), vec![1, 2, 3, 4])?;
    expect_eq("the log", stream.read(P0).await?, appended)
}

/// Keys must go to the partitions that they went to before.
async fn partitions_survive(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    let keyed = |key| Ok::<_, rheo_core::Error>(t.new_event().with_key(EventKey::new(key)?));
    let mut before = Vec::new();
    for key in ["a", "order-1", "order-2", "\u{1f980}"] {
        before.push((key, stream.append_event(keyed(key)?).await?.partition));
    }
    let reopened = t.reopen().await?;

    let stream = stream.via(&reopened);
    for (key, partition) in before {
        let event = stream.append_event(keyed(key)?).await?;
        expect_eq("the partition", event.partition, partition)?;
    }
    stream.append_to(Partition::new(2), 1).await?;
    let beyond = ReadOptions::new().with_partition(Partition::new(3));
    expect_invalid(reopened.read(&stream.name, &beyond).await, "partition")
}

/// A producer that repeats an append after a crash counts on it.
async fn taken_ids_stay_taken(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let given = t.new_event().with_id(t.unknown_id());
    let mut appended = vec![stream.append_event(given.clone()).await?];
    appended.extend(stream.append(1).await?);
    let reopened = t.reopen().await?;

    let stream = stream.via(&reopened);
    for id in [appended[0].id, appended[1].id] {
        let again = reopened
            .append(&stream.name, given.clone().with_id(id))
            .await;
        expect_error(again, ErrorKind::AlreadyExists)?;
    }
    expect_eq("the log", stream.read(P0).await?, appended)
}

/// A service makes its streams and groups at every start.
async fn names_stay_taken(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    group.ack(&group.fetch_exactly("a", 1).await?).await?;
    let reopened = t.reopen().await?;

    let (stream, name) = (&group.stream.name, &group.name);
    let made = reopened.create_stream(stream, &StreamOptions::new()).await;
    expect_error(made, ErrorKind::AlreadyExists)?;
    let made = reopened
        .create_group(stream, name, &GroupOptions::new())
        .await;
    expect_error(made, ErrorKind::AlreadyExists)?;
    group.via(&reopened).expect_nothing("b").await
}

/// Work that is done must not be done again after every deployment.
async fn what_is_settled_stays_settled(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    let leases = group.fetch_exactly("a", 4).await?;
    t.backend.ack(&leases[0]).await?;
    group.reject(&leases[1], "bad").await?;
    t.backend.ack(&leases[3]).await?;
    let reopened = t.reopen().await?;

    let group = group.via(&reopened);
    group.expect_claimable("b", &[5]).await?;
    for settled in [&leases[0], &leases[1], &leases[3]] {
        expect_error(reopened.ack(settled).await, ErrorKind::StaleLease)?;
    }
    Ok(reopened.ack(&leases[2]).await?)
}

/// A worker in another process goes on while the service that fetched is restarted.
async fn a_lease_survives(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    let reopened = t.reopen().await?;

    group.via(&reopened).expect_nothing("b").await?;
    let renewed = reopened.renew(&leases[0], LeaseDuration::default()).await?;
    expect_eq("the lease id", &renewed.lease_id, &leases[0].lease_id)?;
    reopened.ack(&leases[0]).await?;
    let again = RetryOptions::new();
    let outcome = reopened.retry(&leases[1], &again).await?;
    expect_eq("the outcome", outcome, RetryOutcome::Retrying)
}

/// The fence must stand after a restart, too: that is when consumers wake up late.
async fn a_stale_lease_stays_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let stale = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&stale).await;
    let current = group.fetch_one("b").await?;
    let reopened = t.reopen().await?;

    expect_error(reopened.ack(&stale).await, ErrorKind::StaleLease)?;
    Ok(reopened.ack(&current).await?)
}

/// Neither may a restart end a lease, nor make it last for ever.
async fn the_expiry_of_a_lease_survives(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let brief = group.fetch_one_briefly("a").await?;
    let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
    let long = FetchOptions::new(ConsumerId::new("a")?).with_lease_duration(hour);
    let long = group.gather(long, 1).await?;
    let reopened = t.reopen().await?;
    t.let_lease_expire(&brief).await;

    let group = group.via(&reopened);
    for reclaimed in group.expect_claimable("b", &[1]).await? {
        expect_eq("the attempt", reclaimed.attempt, 2)?;
    }
    expect_error(reopened.ack(&brief).await, ErrorKind::StaleLease)?;
    group.ack(&long).await
}

/// Who works for long renews: a deployment meanwhile gives the event neither to somebody else, nor to nobody.
async fn renewals_survive(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let shorter = group.fetch_one("a").await?;
    // Last, since nobody fetches then until it is renewed.
    let longer = group.fetch_one_briefly("a").await?;
    let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
    t.backend.renew(&longer, hour).await?;
    let shorter = t.backend.renew(&shorter, t.brief_lease()).await?;
    let reopened = t.reopen().await?;
    t.let_lease_expire(&longer).await;
    t.let_lease_expire(&shorter).await;

    let group = group.via(&reopened);
    for reclaimed in group.expect_claimable("b", &[1]).await? {
        expect_eq("the attempt", reclaimed.attempt, 2)?;
    }
    Ok(reopened.ack(&longer).await?)
}

/// An event that makes its consumer crash would otherwise be tried for ever.
async fn attempts_survive(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    for _ in 0..2 {
        let lease = group.fetch_one("a").await?;
        t.backend.retry(&lease, &RetryOptions::new()).await?;
    }
    let reopened = t.reopen().await?;

    let lease = group.via(&reopened).fetch_one("a").await?;
    expect_eq("the attempt", lease.attempt, 3)
}

/// The options of a group belong to the group, not to who made it.
async fn max_attempts_survives(t: Fixture) -> Outcome {
    let group = t.stream(1).await?.group_of_attempts("billing", 2).await?;
    group.stream.append(1).await?;
    let lease = group.fetch_one("a").await?;
    t.backend.retry(&lease, &RetryOptions::new()).await?;
    let reopened = t.reopen().await?;

    let group = group.via(&reopened);
    let lease = group.fetch_one("a").await?;
    let outcome = reopened.retry(&lease, &RetryOptions::new()).await?;
    expect_eq("the outcome", outcome, RetryOutcome::DeadLettered)?;
    group.expect_nothing("a").await
}

/// Who waits for another system to recover must not be called early, nor never.
async fn the_delay_of_a_retry_survives(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    for (lease, delay) in leases.iter().zip([t.brief(), Duration::from_secs(3_600)]) {
        let delayed = RetryOptions::new().with_delay(RetryDelay::new(delay)?);
        t.backend.retry(lease, &delayed).await?;
    }
    let reopened = t.reopen().await?;
    t.pass(t.brief()).await;

    let group = group.via(&reopened);
    for lease in group.expect_claimable("b", &[1]).await? {
        expect_eq("the attempt", lease.attempt, 2)?;
    }
    Ok(())
}

/// A group that was to skip the past must not get it after a restart.
async fn starts_survive(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(2).await?;
    let end = stream.group_from("end", Start::End).await?;
    let second = Start::AfterSequences(BTreeMap::from([(P0, Sequence::new(1)?)]));
    let second = stream.group_from("second", second).await?;
    let reopened = t.reopen().await?;

    stream.via(&reopened).append(1).await?;
    end.via(&reopened).expect_claimable("a", &[3]).await?;
    second.via(&reopened).expect_claimable("a", &[2, 3]).await?;
    Ok(())
}

/// They wait for people, who take longer than a process lives.
async fn dead_letters_survive(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    group.reject(&leases[0], "bad").await?;
    group.reject(&leases[2], "worse").await?;
    let before = group.dead_letters().await?;
    expect_eq("the number of dead letters", before.len(), 2)?;
    let reopened = t.reopen().await?;

    let after = group.via(&reopened).dead_letters().await?;
    expect_eq("the dead letters", after, before)
}

/// Acks above a hole count as soon as the hole is filled, whoever fills it.
async fn frontiers_survive(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    t.backend.ack(&leases[0]).await?;
    t.backend.ack(&leases[2]).await?;
    let before = group.lag().await?;
    let reopened = t.reopen().await?;

    let group = group.via(&reopened);
    expect_eq("the lag", group.lag().await?, before)?;
    group.expect_frontier(1).await?;
    reopened.ack(&leases[1]).await?;
    group.expect_frontier(3).await
}

/// An operator replays and then restarts the consumers.
async fn a_replay_survives(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    group.ack(&group.fetch_exactly("a", 3).await?).await?;
    group.replay_after(1).await?;
    let reopened = t.reopen().await?;

    let group = group.via(&reopened);
    for lease in group.expect_claimable("b", &[2, 3]).await? {
        expect_eq("the attempt", lease.attempt, 1)?;
    }
    Ok(())
}

/// An operator resets and then restarts the consumers.
async fn a_reset_survives(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    let start = Start::AfterSequence(Sequence::new(2)?);
    group.reset(&ResetOptions::new().with_start(start)).await?;
    let reopened = t.reopen().await?;

    for lease in &leases {
        expect_error(reopened.ack(lease).await, ErrorKind::StaleLease)?;
    }
    group.via(&reopened).expect_claimable("b", &[3]).await?;
    Ok(())
}

/// A reader keeps its cursor where it keeps its own progress.
async fn a_cursor_survives(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let appended = stream.append(4).await?;
    let query = Query::new().with_limit(3);
    let first = stream.query(&query).await?;
    expect_eq("the first page", first.events, appended[..3].to_vec())?;
    let reopened = t.reopen().await?;

    let Some(cursor) = first.next else {
        return Err(crate::expect::broken(
            "a cursor, since an event follows",
            "none",
        ));
    };
    let rest = stream
        .via(&reopened)
        .query(&query.with_cursor(cursor))
        .await?;
    expect_eq("the second page", rest.events, appended[3..].to_vec())
}

/// This is how nearly every process starts.
async fn making_indexes_after_a_restart_loses_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    t.backend.ack(&leases[0]).await?;
    let log = group.stream.read(P0).await?;
    let reopened = t.reopen().await?;
    reopened.ensure_indexes().await?;

    let group = group.via(&reopened);
    expect_eq("the log", group.stream.read(P0).await?, log)?;
    group.expect_claimable("b", &[3]).await?;
    Ok(reopened.ack(&leases[1]).await?)
}
