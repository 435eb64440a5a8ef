//! Distribution: several handles on one store see and change the same.

use std::collections::BTreeSet;

use rheo_core::{
    Backend, ErrorKind, EventKey, Gate, GroupName, GroupOptions, Guarantee, Lease, LeaseDuration,
    OptionalOperation, Query, ReadOptions, ResetOptions, RetryOptions, RetryOutcome, Start,
    StreamName, StreamOptions,
};
use tokio::task::JoinSet;

use crate::case::{Case, case};
use crate::expect::{Failure, Outcome, broken, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::scene::{Group, P0, sequences, sequences_of};

const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);
const REPLAY: Gate = Gate::Guarantee(Guarantee::Replay);
const RANGE_SCAN: Gate = Gate::Guarantee(Guarantee::OrderedRangeScan);
const DEAD_LETTERS: Gate = Gate::Operation(OptionalOperation::DeadLetters);

pub(crate) const CASES: &[Case] = &[
    case!(
        "DST-1" => a_stream_made_elsewhere_is_there,
        "a handle remembers that a stream was missing"
    ),
    case!(
        "DST-1" => a_group_made_elsewhere_is_there,
        "a handle remembers that a group was missing"
    ),
    case!(
        "DST-1" => a_name_taken_elsewhere_is_taken,
        "a handle compares names with those that it has made itself"
    ),
    case!(
        "DST-1" => of_creators_on_two_handles_one_wins,
        "create_stream looks first and inserts then, each handle under a lock of its own"
    ),
    case!(
        "DST-1" => two_handles_append_to_one_log,
        "each handle keeps the next sequence in memory"
    ),
    case!(
        "DST-1" => concurrent_appends_of_two_handles_leave_no_gap,
        "the next sequence is read and written in two steps"
    ),
    case!(
        "DST-1" => an_id_taken_elsewhere_is_taken,
        "ids are compared with those that the handle has appended itself"
    ),
    case!(
        "DST-1" => keys_go_to_the_same_partition_on_both,
        "a handle that did not make the stream takes it for one of a single partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DST-1" => two_handles_share_the_events,
        "each handle keeps its claims in memory"
    ),
    case!(
        "DST-1" => concurrent_fetches_of_two_handles_claim_each_event_once,
        "claims are looked up and written in two steps"
    ),
    case!(
        "DST-1" => a_lease_is_settled_on_any_handle,
        "a handle settles just the leases that it has given out"
    ),
    case!(
        "DST-1" => a_lease_settled_elsewhere_is_stale,
        "a handle decides by its own memory whether a lease is current"
    ),
    case!(
        "DST-1" => of_settles_on_two_handles_one_wins,
        "the current claim is looked up and removed in two steps"
    ),
    case!(
        "DST-1" => a_lease_replaced_elsewhere_is_stale,
        "a handle decides by its own memory whether a lease is current"
    ),
    case!(
        "DST-1" => a_lease_renewed_elsewhere_is_not_reclaimed,
        "a handle reclaims by the expiry that it has seen itself"
    ),
    case!(
        "DST-1" => a_retry_elsewhere_counts_as_an_attempt,
        "attempts are counted by each handle for itself"
    ),
    case!(
        "DST-1" => max_attempts_hold_on_every_handle,
        "the options of a group are known to the handle that made it alone"
    ),
    case!(
        "DST-1" => an_append_elsewhere_is_fetched,
        "a handle that saw the end of the log does not look again"
    ),
    case!(
        "DST-1" => a_replay_elsewhere_is_seen,
        "a handle keeps its position, or what it has acked, in memory"
    )
    .needs(&[REPLAY]),
    case!(
        "DST-1" => a_reset_elsewhere_is_seen,
        "a handle keeps its position, or its claims, in memory"
    )
    .needs(&[REPLAY]),
    case!(
        "DST-1" => progress_is_the_same_on_both,
        "lag is computed from what the handle has seen itself"
    )
    .needs(&[FRONTIER]),
    case!(
        "DST-1" => dead_letters_are_the_same_on_both,
        "dead letters are kept by the handle that rejected"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "DST-1" => a_cursor_goes_on_elsewhere,
        "a cursor stands for a snapshot or a statement of the connection"
    )
    .needs(&[RANGE_SCAN]),
];

/// A group, and the same group through a second handle.
async fn pair(t: &Fixture, events: usize) -> Outcome<(Group, Group)> {
    let here = t.group_with_events(events).await?;
    let there = here.via(&t.second_handle().await?);
    Ok((here, there))
}

/// A consumer that starts before the stream is made tries until it is.
async fn a_stream_made_elsewhere_is_there(t: Fixture) -> Outcome {
    let name = StreamName::new("orders")?;
    let read = t.backend.read(&name, &ReadOptions::new()).await;
    expect_error(read, ErrorKind::StreamNotFound)?;
    let other = t.second_handle().await?;
    other.create_stream(&name, &StreamOptions::new()).await?;

    let stream = t.existing_stream(name);
    let appended = stream.append(1).await?;
    expect_eq("the log", stream.read(P0).await?, appended)
}

/// A consumer that starts before the group is made tries until it is.
async fn a_group_made_elsewhere_is_there(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(1).await?;
    let group = stream.existing_group(GroupName::new("billing")?);
    let options = rheo_core::FetchOptions::new(rheo_core::ConsumerId::new("a")?);
    let fetched = t.backend.fetch(&stream.name, &group.name, &options).await;
    expect_error(fetched, ErrorKind::GroupNotFound)?;
    let other = t.second_handle().await?;
    stream.via(&other).group("billing").await?;

    group.expect_claimable("a", &[1]).await?;
    Ok(())
}

/// Every instance of a service makes its streams and groups.
async fn a_name_taken_elsewhere_is_taken(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 1).await?;
    here.ack(&here.fetch_exactly("a", 1).await?).await?;
    let (stream, name) = (&there.stream.name, &there.name);

    let made = there
        .backend
        .create_stream(stream, &StreamOptions::new())
        .await;
    expect_error(made, ErrorKind::AlreadyExists)?;
    let made = there
        .backend
        .create_group(stream, name, &GroupOptions::new())
        .await;
    expect_error(made, ErrorKind::AlreadyExists)?;
    there.expect_nothing("b").await
}

/// Instances that start at once must agree on who made the stream.
async fn of_creators_on_two_handles_one_wins(t: Fixture) -> Outcome {
    let other = t.second_handle().await?;
    let name = StreamName::new("orders")?;
    let mut creators = JoinSet::new();
    for backend in [&t.backend, &other, &t.backend, &other] {
        let (backend, name) = (backend.clone(), name.clone());
        creators.spawn(async move { backend.create_stream(&name, &StreamOptions::new()).await });
    }
    let created = all(creators).await?;

    let winners = created.iter().filter(|created| created.is_ok()).count();
    expect_eq("the creators that won", winners, 1)?;
    for lost in created.into_iter().filter(Result::is_err) {
        expect_error(lost, ErrorKind::AlreadyExists)?;
    }
    Ok(())
}

async fn all<T: 'static>(mut tasks: JoinSet<T>) -> Outcome<Vec<T>> {
    let mut values = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        values.push(joined?);
    }
    Ok(values)
}

/// Producers in two processes write one log.
async fn two_handles_append_to_one_log(t: Fixture) -> Outcome {
    let here = t.stream(1).await?;
    let there = here.via(&t.second_handle().await?);
    let mut appended = here.append(1).await?;
    appended.extend(there.append(2).await?);
    appended.extend(here.append(2).await?);
    appended.extend(there.append(1).await?);

    expect_eq(
        "the sequences",
        sequences(&appended),
        vec![1, 2, 3, 4, 5, 6],
    )?;
    expect_eq("the log here", here.read(P0).await?, appended.clone())?;
    expect_eq("the log there", there.read(P0).await?, appended)
}

/// They do so at the same time.
async fn concurrent_appends_of_two_handles_leave_no_gap(t: Fixture) -> Outcome {
    let here = t.stream(1).await?;
    let there = here.via(&t.second_handle().await?);
    let mut producers = JoinSet::new();
    for stream in [&here, &there, &here, &there] {
        let stream = stream.clone();
        producers.spawn(async move { stream.append(10).await });
    }
    let mut appended = Vec::new();
    for events in all(producers).await? {
        appended.extend(events?);
    }

    appended.sort_by_key(|event| event.sequence);
    expect_eq("the sequences", sequences(&appended), (1..=40).collect())?;
    expect_eq("the log here", here.read(P0).await?, appended.clone())?;
    expect_eq("the log there", there.read(P0).await?, appended)
}

/// A producer that fails over to another instance repeats its append there.
async fn an_id_taken_elsewhere_is_taken(t: Fixture) -> Outcome {
    let here = t.stream(1).await?;
    let there = here.via(&t.second_handle().await?);
    let event = t.new_event().with_id(t.unknown_id());
    let appended = here.append_event(event.clone()).await?;

    let again = there.backend.append(&there.name, event).await;
    expect_error(again, ErrorKind::AlreadyExists)?;
    expect_eq("the log there", there.read(P0).await?, vec![appended])
}

/// The order of a key's events depends on it.
async fn keys_go_to_the_same_partition_on_both(t: Fixture) -> Outcome {
    let here = t.stream(3).await?;
    let there = here.via(&t.second_handle().await?);

    for key in ["a", "order-1", "order-2", "customer:42", "\u{1f980}"] {
        let event = t.new_event().with_key(EventKey::new(key)?);
        let first = here.append_event(event.clone()).await?;
        let second = there.append_event(event).await?;
        expect_eq("the partition", second.partition, first.partition)?;
        expect_eq("the sequence", second.sequence, first.sequence.next())?;
    }
    Ok(())
}

/// Two instances of a service divide the work.
async fn two_handles_share_the_events(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 6).await?;
    let mut claimed = Vec::new();
    for _ in 0..3 {
        claimed.push(here.fetch_one("a").await?);
        claimed.push(there.fetch_one("b").await?);
    }

    expect_eq(
        "the claimed sequences",
        sequences_of(&claimed),
        vec![1, 2, 3, 4, 5, 6],
    )?;
    here.expect_nothing("a").await?;
    there.expect_nothing("b").await?;
    here.ack(&claimed).await?;
    there.expect_nothing("b").await
}

/// They do so at the same time.
async fn concurrent_fetches_of_two_handles_claim_each_event_once(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 24).await?;
    let mut consumers = JoinSet::new();
    for group in [&here, &there, &here, &there] {
        let group = group.clone();
        consumers.spawn(async move {
            let mut leases = Vec::new();
            for _ in 0..6 {
                leases.extend(group.fetch("a", 1).await?);
            }
            Ok::<_, Failure>(leases)
        });
    }
    let mut claimed: Vec<Lease> = Vec::new();
    for leases in all(consumers).await? {
        claimed.extend(leases?);
    }
    claimed.extend(here.fetch_all("a").await?);

    let mut seen = sequences_of(&claimed);
    seen.sort_unstable();
    expect_eq("the claimed sequences", seen, (1..=24).collect())?;
    let ids: BTreeSet<_> = claimed.iter().map(|lease| &lease.lease_id).collect();
    expect_eq("the number of lease ids", ids.len(), 24)?;
    there.ack(&claimed).await
}

/// The instance that fetched and the one that settles need not be the same.
async fn a_lease_is_settled_on_any_handle(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 4).await?;
    let leases = here.fetch_exactly("a", 4).await?;
    let other = &there.backend;
    other.ack(&leases[0]).await?;
    other.retry(&leases[1], &RetryOptions::new()).await?;
    there.reject(&leases[2], "bad").await?;
    let renewed = other.renew(&leases[3], LeaseDuration::default()).await?;

    here.expect_claimable("a", &[2]).await?;
    Ok(t.backend.ack(&renewed).await?)
}

/// A settle that is repeated on another instance must not count twice.
async fn a_lease_settled_elsewhere_is_stale(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 2).await?;
    let leases = here.fetch_exactly("a", 2).await?;
    there.backend.ack(&leases[0]).await?;
    there
        .backend
        .retry(&leases[1], &RetryOptions::new())
        .await?;

    for lease in &leases {
        let renewed = t.backend.renew(lease, LeaseDuration::default()).await;
        expect_error(renewed, ErrorKind::StaleLease)?;
        expect_error(t.backend.ack(lease).await, ErrorKind::StaleLease)?;
    }
    here.expect_claimable("a", &[2]).await?;
    Ok(())
}

/// One of them did it, and only one.
async fn of_settles_on_two_handles_one_wins(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 1).await?;
    let lease = here.fetch_one("a").await?;
    let mut settles = JoinSet::new();
    for group in [&here, &there, &here, &there] {
        let (backend, lease) = (group.backend.clone(), lease.clone());
        settles.spawn(async move { backend.ack(&lease).await });
    }
    let settled = all(settles).await?;

    let winners = settled.iter().filter(|settled| settled.is_ok()).count();
    expect_eq("the settles that won", winners, 1)?;
    for lost in settled.into_iter().filter(Result::is_err) {
        expect_error(lost, ErrorKind::StaleLease)?;
    }
    there.expect_nothing("b").await
}

/// The classic pause, on two machines.
async fn a_lease_replaced_elsewhere_is_stale(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 1).await?;
    let stale = here.fetch_one_briefly("a").await?;
    t.let_lease_expire(&stale).await;
    let current = there.fetch_one("b").await?;

    expect_eq("the attempt", current.attempt, 2)?;
    let renewed = t.backend.renew(&stale, LeaseDuration::default()).await;
    expect_error(renewed, ErrorKind::StaleLease)?;
    expect_error(t.backend.ack(&stale).await, ErrorKind::StaleLease)?;
    Ok(there.backend.ack(&current).await?)
}

/// A watchdog that renews may be a process of its own.
async fn a_lease_renewed_elsewhere_is_not_reclaimed(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 1).await?;
    let lease = here.fetch_one_briefly("a").await?;
    let hour = LeaseDuration::new(std::time::Duration::from_secs(3_600))?;
    there.backend.renew(&lease, hour).await?;
    t.let_lease_expire(&lease).await;

    here.expect_nothing("b").await?;
    there.expect_nothing("b").await?;
    Ok(t.backend.ack(&lease).await?)
}

/// An event that fails on every instance must come to an end.
async fn a_retry_elsewhere_counts_as_an_attempt(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 1).await?;

    for (attempt, group) in (1..).zip([&here, &there, &there, &here]) {
        let lease = group.fetch_one("a").await?;
        expect_eq("the attempt", lease.attempt, attempt)?;
        group.backend.retry(&lease, &RetryOptions::new()).await?;
    }
    Ok(())
}

/// The options of a group belong to the group, not to who made it.
async fn max_attempts_hold_on_every_handle(t: Fixture) -> Outcome {
    let here = t.stream(1).await?.group_of_attempts("billing", 1).await?;
    here.stream.append(1).await?;
    let there = here.via(&t.second_handle().await?);
    let lease = there.fetch_one("a").await?;

    let outcome = there.backend.retry(&lease, &RetryOptions::new()).await?;
    expect_eq("the outcome", outcome, RetryOutcome::DeadLettered)?;
    here.expect_nothing("a").await
}

/// This is every consumer's usual day.
async fn an_append_elsewhere_is_fetched(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 1).await?;
    here.ack(&here.fetch_exactly("a", 1).await?).await?;
    here.expect_nothing("a").await?;
    there.stream.append(2).await?;

    here.expect_claimable("a", &[2, 3]).await?;
    Ok(())
}

/// An operator's tool is a process of its own.
async fn a_replay_elsewhere_is_seen(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 3).await?;
    let leases = here.fetch_exactly("a", 3).await?;
    here.ack(&leases[..2]).await?;
    here.expect_nothing("a").await?;
    there.replay_after(1).await?;

    expect_error(t.backend.ack(&leases[2]).await, ErrorKind::StaleLease)?;
    here.expect_claimable("a", &[2, 3]).await?;
    Ok(())
}

/// An operator's tool is a process of its own.
async fn a_reset_elsewhere_is_seen(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 3).await?;
    let lease = here.fetch_one("a").await?;
    there
        .reset(&ResetOptions::new().with_start(Start::End))
        .await?;

    expect_error(t.backend.ack(&lease).await, ErrorKind::StaleLease)?;
    here.expect_nothing("a").await?;
    there.stream.append(1).await?;
    here.expect_claimable("a", &[4]).await?;
    Ok(())
}

/// A dashboard sees what the consumers do.
async fn progress_is_the_same_on_both(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 3).await?;
    let leases = here.fetch_exactly("a", 3).await?;
    here.expect_frontier(0).await?;
    there.backend.ack(&leases[1]).await?;
    here.expect_frontier(0).await?;
    there.backend.ack(&leases[0]).await?;
    here.expect_frontier(2).await?;
    there.expect_frontier(2).await?;
    there.stream.append(1).await?;

    let lag = here.lag().await?;
    expect_eq("the lag", lag.total(), 2)?;
    expect_eq("the lag there", there.lag().await?, lag)
}

/// Whoever repairs them is seldom who gave up on them.
async fn dead_letters_are_the_same_on_both(t: Fixture) -> Outcome {
    let (here, there) = pair(&t, 2).await?;
    here.reject(&here.fetch_one("a").await?, "bad").await?;
    there.reject(&there.fetch_one("b").await?, "worse").await?;

    let dead = here.dead_letters().await?;
    expect_eq("the number of dead letters", dead.len(), 2)?;
    expect_eq("the dead letters there", there.dead_letters().await?, dead)
}

/// The next page of a web page is served by another instance.
async fn a_cursor_goes_on_elsewhere(t: Fixture) -> Outcome {
    let here = t.stream(1).await?;
    let there = here.via(&t.second_handle().await?);
    let appended = here.append(4).await?;
    let query = Query::new().with_limit(3);
    let first = here.query(&query).await?;

    let Some(cursor) = first.next else {
        return Err(broken("a cursor, since an event follows", "none"));
    };
    let rest = there.query(&query.with_cursor(cursor)).await?;
    expect_eq("the second page", rest.events, appended[3..].to_vec())
}
