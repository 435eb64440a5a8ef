//! Work that was there before the wait, wherever it is.

use std::time::Duration;

use rheo_core::{Backend, FetchOptions, Partition, Replay, Start};

use super::{PATIENCE, expect_work};
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::P1;
use crate::step::Step;

/// The keys decide where the work is.
pub(super) async fn work_in_any_partition_is_told(t: Fixture) -> Outcome {
    let group = t.stream(4).await?.group("billing").await?;
    // Somebody works on the first event of partition 1 all the time.
    group.stream.append_to(P1, 1).await?;
    group.fetch_one("holder").await?;
    for number in [2, 0, 3, 1] {
        let partition = Partition::new(number);
        group.stream.append_to(partition, 1).await?;
        expect_work(&group, PATIENCE).await?;
        let lease = group.fetch_one("a").await?;
        Step::Retry.on(&t.backend, &lease).await?;
        expect_work(&group, PATIENCE).await?;
        let again = group.fetch_one("a").await?;
        expect_eq("the partition", again.event.partition, partition)?;
        group.ack(&[again]).await?;
    }
    let fetch = FetchOptions::new("a".try_into()?).with_lease_duration(t.brief_lease());
    for partition in [1, 3].map(Partition::new) {
        group.stream.append_to(partition, 1).await?;
    }
    let leases = group.gather_exactly(fetch, 2).await?;
    t.let_lease_expire(&leases[1]).await;
    expect_work(&group, PATIENCE).await?;
    group.ack(&[group.fetch_one("b").await?]).await?;
    expect_work(&group, PATIENCE).await?;
    group.fetch_one("b").await?;
    Ok(())
}

/// One event of many, also from before the group was begun.
pub(super) async fn chosen_events_are_told(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let events = stream.append(4).await?;
    let billing = stream.group("billing").await?;
    billing.ack(&billing.fetch_exactly("a", 4).await?).await?;
    let late = stream.group_from("late", Start::End).await?;

    for group in [billing, late] {
        for event in [&events[1], &events[3]] {
            group.replay(&Replay::Events(vec![event.id])).await?;
            expect_work(&group, PATIENCE).await?;
            let lease = group.fetch_one("b").await?;
            expect_eq("the event", lease.event.id, event.id)?;
            Step::Retry.on(&t.backend, &lease).await?;
            expect_work(&group, PATIENCE).await?;
            group.ack(&[group.fetch_one("b").await?]).await?;
        }
    }
    Ok(())
}

/// It worked for longer than it thought, said so, and died.
pub(super) async fn an_expired_renewal_is_told(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    t.backend.renew(&leases[1], t.brief_lease()).await?;
    let ends = t.now().saturating_add(t.brief());
    t.until(ends).await;

    expect_work(&group, PATIENCE).await?;
    let again = group.fetch_one("b").await?;
    expect_eq("the event that was renewed", again.event.sequence.get(), 2)
}

/// What was tried again and again is work as the rest is.
pub(super) async fn work_at_any_attempt_is_told(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    for _ in 0..3 {
        let lease = group.fetch_one("a").await?;
        Step::Retry.on(&t.backend, &lease).await?;
        expect_work(&group, PATIENCE).await?;
    }
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;

    expect_work(&group, PATIENCE).await?;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 5)
}

/// A consumer takes one at a time of what another one left behind.
pub(super) async fn what_a_fetch_left_is_told(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly_briefly("a", 3).await?;
    Step::Retry.on(&t.backend, &leases[0]).await?;
    t.let_lease_expire(&leases[2]).await;

    for sequence in [1, 2, 3] {
        expect_work(&group, PATIENCE).await?;
        let lease = group.fetch_one("b").await?;
        expect_eq("the next event", lease.event.sequence.get(), sequence)?;
    }
    Ok(())
}

/// Whoever has other things to do looks and goes on.
pub(super) async fn a_wait_of_no_time_tells_what_is_there(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    expect_work(&group, Duration::ZERO).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;

    expect_work(&group, Duration::ZERO).await
}
