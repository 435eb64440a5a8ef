//! No event is missed.

use std::collections::BTreeSet;
use std::time::Duration;

use rheo_core::Backend;

use super::claimable;
use crate::expect::{Outcome, expect_empty, expect_eq};
use crate::fixture::Fixture;
use crate::scene::{P0, P1, sequences_of};
use crate::step::{Step, retry_after};

/// The group is at the end of the log, with work in hand, when more comes.
pub(super) async fn events_that_come_while_others_are_leased_are_delivered(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let first = group.fetch_exactly("a", 2).await?;
    group.expect_nothing("a").await?;
    group.stream.append(1).await?;
    group.expect_claimable("b", &[3]).await?;
    t.backend.ack(&first[1]).await?;
    group.stream.append(1).await?;
    group.expect_claimable("b", &[4]).await?;
    Step::Retry.on(&t.backend, &first[0]).await?;
    group.stream.append(1).await?;

    group.expect_claimable("b", &[1, 5]).await?;
    Ok(())
}

/// Done out of order: what is below a done event is as open as before.
pub(super) async fn an_ack_settles_no_lower_event(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    let lost = group.fetch_exactly_briefly("a", 2).await?;
    let held = group.fetch_exactly("b", 2).await?;
    t.backend.ack(&held[1]).await?;
    Step::Retry.on(&t.backend, &held[0]).await?;
    t.let_lease_expire(&lost[1]).await;

    group.expect_claimable("c", &[1, 2, 3]).await?;
    Ok(())
}

/// Forty events: acked, retried, delayed, renewed or lost by chance, and in the end all are done.
pub(super) async fn nothing_is_missed_whatever_happens_to_it(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group_of_attempts("billing", 100).await?;
    stream.append(20).await?;
    let mut done: BTreeSet<u64> = BTreeSet::new();
    for _ in 0..2 {
        for lease in group.fetch_briefly("a", 15).await? {
            match t.random(5) {
                0 => {
                    t.backend.ack(&lease).await?;
                    done.insert(lease.event.sequence.get());
                }
                1 => Step::Retry.on(&t.backend, &lease).await?,
                2 => {
                    let delay = retry_after(t.brief())?;
                    t.backend.retry(&lease, &delay).await?;
                }
                3 => {
                    t.backend.renew(&lease, t.brief_lease()).await?;
                }
                _ => {}
            }
        }
        stream.append(10).await?;
        t.pass(t.brief()).await;
    }
    let rest = group.fetch_all("b").await?;
    group.ack(&rest).await?;
    done.extend(sequences_of(&rest));

    let missed: Vec<u64> = (1..=40)
        .filter(|sequence| !done.contains(sequence))
        .collect();
    expect_empty("event missed", &missed)
}

/// The answer to a fetch got lost on its way.
pub(super) async fn a_lease_that_nobody_heard_of_comes_again(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let unheard = group.fetch_exactly_briefly("a", 2).await?;
    t.let_lease_expire(&unheard[1]).await;

    let leases = group.expect_claimable("a", &[1, 2, 3]).await?;
    let attempts: Vec<u32> = leases.iter().map(|lease| lease.attempt).collect();
    expect_eq("the attempts", attempts, vec![2, 2, 1])
}

/// The newer events of one partition were done before the older ones of another came.
pub(super) async fn events_of_a_lower_partition_are_not_passed_over(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    let group = stream.group("billing").await?;
    stream.append_to(P1, 3).await?;
    group.ack(&group.fetch_exactly("a", 3).await?).await?;
    stream.append_to(P0, 2).await?;
    stream.append_to(P1, 1).await?;

    let places = claimable(&group, "a").await?;
    expect_eq("the claimable events", places, vec![(0, 1), (0, 2), (1, 4)])
}

/// A producer's clock is behind; its events are new all the same.
pub(super) async fn events_with_earlier_times_are_not_passed_over(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    group.ack(&group.fetch_exactly("a", 2).await?).await?;
    t.turn_back(Duration::from_secs(3_600));
    group.stream.append(2).await?;

    group.expect_claimable("a", &[3, 4]).await?;
    Ok(())
}
