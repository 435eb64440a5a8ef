//! How claims are counted.

use std::time::Duration;

use rheo_core::{Backend, Lease};

use super::replaced;
use crate::expect::{Outcome, expect, expect_eq};
use crate::fixture::Fixture;
use crate::step::{Step, expect_stale};

/// The reclaim is a claim like any other, of its own consumer and with its own times.
pub(super) async fn reclaiming_gives_a_new_lease_and_the_next_attempt(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let (old, new) = replaced(&group).await?;

    expect(
        new.lease_id != old.lease_id,
        "a new lease id",
        format!("{} again", old.lease_id),
    )?;
    expect_eq("the attempt", new.attempt, old.attempt + 1)?;
    expect_eq("the consumer", new.consumer.as_str(), "b")?;
    t.expect_now("leased_at", new.leased_at)?;
    expect_eq(
        "expires_at",
        new.expires_at,
        new.leased_at.saturating_add(Duration::from_secs(30)),
    )
}

/// A consumer that restarts under its old name is fenced off from its former self.
pub(super) async fn the_same_consumer_reclaims_like_any_other(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let old = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&old).await;
    let new = group.fetch_one("a").await?;

    expect_eq("the attempt", new.attempt, 2)?;
    expect_stale(&t.backend, &old).await?;
    t.backend.ack(&new).await?;
    Ok(())
}

/// Given back or lost, each claim brings the event nearer to being given up on.
pub(super) async fn every_claim_counts_as_an_attempt(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let mut attempts = Vec::new();
    for is_lost in [false, true, false, false] {
        let lease = group.fetch_one_briefly("a").await?;
        attempts.push(lease.attempt);
        if is_lost {
            t.let_lease_expire(&lease).await;
        } else {
            Step::Retry.on(&t.backend, &lease).await?;
        }
    }
    attempts.push(group.fetch_one("a").await?.attempt);

    expect_eq("the attempts", attempts, vec![1, 2, 3, 4, 5])
}

/// One event that fails again and again costs no other its attempts.
pub(super) async fn attempts_are_counted_per_event_and_group(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group("billing").await?;
    let other = stream.group("shipping").await?;
    stream.append(2).await?;
    for _ in 0..3 {
        let lease = group.fetch_one("a").await?;
        expect_eq("the sequence", lease.event.sequence.get(), 1)?;
        Step::Retry.on(&t.backend, &lease).await?;
    }

    let attempts = |leases: Vec<Lease>| -> Vec<u32> {
        leases.into_iter().map(|lease| lease.attempt).collect()
    };
    let here = group.fetch_exactly("a", 2).await?;
    expect_eq("the attempts", attempts(here), vec![4, 1])?;
    let there = other.fetch_exactly("a", 2).await?;
    expect_eq("the other group's attempts", attempts(there), vec![1, 1])
}
