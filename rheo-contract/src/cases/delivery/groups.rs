//! Groups are independent of each other.

use std::time::Duration;

use rheo_core::{Backend, Event};

use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::step::{Step, retry_after};

/// The point of consumer groups: each department reads the whole log.
pub(super) async fn each_group_gets_every_event(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let billing = stream.group("billing").await?;
    let shipping = stream.group("shipping").await?;
    let events = stream.append(3).await?;

    for group in [&billing, &shipping] {
        let leases = group.fetch_exactly("a", 3).await?;
        let seen: Vec<Event> = leases.into_iter().map(|lease| lease.event).collect();
        expect_eq("the events", &seen, &events)?;
    }
    Ok(())
}

/// One group acks, rejects, retries, delays and holds; the other begins with a clean slate.
pub(super) async fn what_one_group_does_concerns_no_other(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let billing = stream.group("billing").await?;
    let shipping = stream.group("shipping").await?;
    stream.append(5).await?;
    let leases = billing.fetch_exactly("a", 5).await?;
    for (step, lease) in Step::SETTLES.iter().zip(&leases) {
        step.on(&t.backend, lease).await?;
    }
    let hour = Duration::from_secs(3_600);
    t.backend.retry(&leases[3], &retry_after(hour)?).await?;

    let there = shipping.expect_claimable("a", &[1, 2, 3, 4, 5]).await?;
    let attempts: Vec<u32> = there.iter().map(|lease| lease.attempt).collect();
    expect_eq("the attempts", attempts, vec![1; 5])?;
    shipping.ack(&there).await?;
    billing.expect_claimable("a", &[2]).await?;
    t.backend.ack(&leases[4]).await?;
    Ok(())
}

/// A group that is made later, or sleeps, reads what the others have long done.
pub(super) async fn groups_are_ready_at_different_times(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let early = stream.group("early").await?;
    stream.append(2).await?;
    early.ack(&early.fetch_exactly("a", 2).await?).await?;
    let late = stream.group("late").await?;
    stream.append(1).await?;

    early.expect_claimable("a", &[3]).await?;
    late.expect_claimable("a", &[1, 2, 3]).await?;
    Ok(())
}
