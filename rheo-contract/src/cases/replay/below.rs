//! What becomes of chosen events from below the group's start.

use std::time::Duration;

use rheo_core::{Backend, Guarantee, MaxAttempts, OptionalOperation, Start};

use super::replay_events;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::{Group, P0, expect_first_attempts};
use crate::step::Step;

/// A group that began after so many events, and has chosen them all.
async fn all_chosen(t: &Fixture, count: usize) -> Outcome<Group> {
    let stream = t.stream(1).await?;
    let events = stream.append(count).await?;
    let options = rheo_core::GroupOptions::new().with_start(Start::End);
    let options = options.with_max_attempts(MaxAttempts::new(2)?);
    let group = stream.group_with("billing", options).await?;
    replay_events(&group, events.iter().map(|event| event.id)).await?;
    Ok(group)
}

/// Demands that just these sequences are dead, where the group lists them.
async fn expect_dead(group: &Group, sequences: &[u64]) -> Outcome {
    if !group
        .backend
        .capabilities()
        .offers(OptionalOperation::DeadLetters)
    {
        return Ok(());
    }
    let dead = group.first_dead_letters().await?;
    let seen = dead.iter().map(|dead| dead.event.sequence.get()).collect();
    expect_eq("the dead letters' sequences", seen, sequences.to_vec())
}

/// Demands a frontier, where it is exact.
async fn expect_frontier(group: &Group, frontier: u64) -> Outcome {
    let declared = group.backend.capabilities();
    if !declared.guarantees(Guarantee::ContiguousFrontier) {
        return Ok(());
    }
    expect_eq("the frontier", group.frontier(P0).await?, frontier)
}

/// Once it was delivered, an event is an event, wherever the group began.
pub(super) async fn chosen_events_below_the_start_are_settled_as_any_other(t: Fixture) -> Outcome {
    let group = all_chosen(&t, 5).await?;
    group.stream.append(1).await?;
    let mut leases = group.expect_claimable("a", &[1, 2, 3, 4, 5, 6]).await?;
    for lease in &leases {
        group.expect_current(lease).await?;
    }
    group.ack(&leases[..1]).await?;
    Step::Retry.on(&t.backend, &leases[1]).await?;
    group.retry_in_an_hour(&leases[2]).await?;
    let due = t.now().saturating_add(Duration::from_secs(3_600));
    group.reject(&leases[3], "broken").await?;

    for settled in &leases[..4] {
        group.expect_stale(settled).await?;
    }
    expect_dead(&group, &[4]).await?;
    expect_frontier(&group, 1).await?;
    let again = group.expect_claimable("b", &[2]).await?;
    expect_eq("the attempt", again[0].attempt, 2)?;
    leases.extend(again);
    group.ack(&leases[4..]).await?;
    expect_frontier(&group, 2).await?;
    group.expect_nothing("b").await?;
    if t.jump_to(due) {
        let waited = group.expect_claimable("b", &[3]).await?;
        expect_eq("the attempt", waited[0].attempt, 2)?;
        group.ack(&waited).await?;
        expect_frontier(&group, 6).await?;
    }
    group.expect_nothing("b").await
}

/// A consumer that dies with an old event must not keep it, nor die of it for ever.
pub(super) async fn chosen_events_below_the_start_expire_as_any_other(t: Fixture) -> Outcome {
    let group = all_chosen(&t, 3).await?;
    let leases = group.fetch_exactly_briefly("a", 3).await?;
    expect_first_attempts(&leases)?;
    group.expect_current(&leases[0]).await?;
    t.let_lease_expire(&leases[2]).await;

    group.ack(&leases[1..2]).await?;
    let again = group.fetch_briefly("b", 3).await?;
    let seen = again.iter().map(|l| (l.event.sequence.get(), l.attempt));
    expect_eq(
        "sequence and attempt of what has expired",
        seen.collect(),
        vec![(3, 2)],
    )?;
    group.expect_stale(&leases[2]).await?;
    t.let_lease_expire(&again[0]).await;
    group.expect_nothing("c").await?;
    group.expect_stale(&again[0]).await?;
    expect_dead(&group, &[3]).await?;
    expect_frontier(&group, 0).await?;
    group.ack(&leases[..1]).await?;
    expect_frontier(&group, 3).await
}

/// Whoever chooses an old event twice wants it twice, whatever became of it the first time.
pub(super) async fn chosen_events_below_the_start_can_be_chosen_again(t: Fixture) -> Outcome {
    let group = all_chosen(&t, 5).await?;
    let leases = group.fetch_exactly("a", 4).await?;
    group.ack(&leases[..1]).await?;
    group.retry_in_an_hour(&leases[2]).await?;
    group.reject(&leases[3], "broken").await?;
    let log = group.stream.read(P0).await?;
    replay_events(&group, log.iter().map(|event| event.id)).await?;

    group.expect_stale(&leases[1]).await?;
    expect_dead(&group, &[]).await?;
    expect_frontier(&group, 0).await?;
    let again = group.expect_claimable("b", &[1, 2, 3, 4, 5]).await?;
    expect_first_attempts(&again)?;
    group.ack(&again).await?;
    group.expect_nothing("b").await
}
