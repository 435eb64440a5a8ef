//! What comes first.

use std::time::Duration;

use rheo_core::{Backend, LeaseDuration, Partition, Replay};

use super::options;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::sequences_of;
use crate::step::{Step, retry_after};

/// In a fetch and from fetch to fetch.
pub(super) async fn the_lowest_sequences_come_first(t: Fixture) -> Outcome {
    let group = t.group_with_events(12).await?;
    let mut seen = Vec::new();
    for limit in [1, 5, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4] {
        let leases = group.fetch_with(&options("a")?.with_limit(limit)).await?;
        seen.extend(sequences_of(&leases));
    }

    expect_eq("the sequences", seen, (1..=12).collect())
}

/// Appended by turns, so that no order but that of each partition explains it.
pub(super) async fn each_partition_comes_in_order(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    for round in 0..4 {
        for partition in 0..3 {
            let partition = Partition::new((partition + round) % 3);
            stream.append_to(partition, 1).await?;
        }
    }
    let group = stream.group("billing").await?;
    let leases = group.fetch_exactly("a", 12).await?;

    for partition in (0..3).map(Partition::new) {
        let here = leases
            .iter()
            .filter(|lease| lease.event.partition == partition);
        let seen: Vec<u64> = here.map(|lease| lease.event.sequence.get()).collect();
        let what = format!("the sequences of partition {partition}");
        expect_eq(&what, seen, vec![1, 2, 3, 4])?;
    }
    Ok(())
}

/// Or what failed once would wait for as long as there is anything new.
pub(super) async fn what_comes_again_goes_before_what_is_new(t: Fixture) -> Outcome {
    let group = t.group_with_events(8).await?;
    let lost = group.fetch_exactly_briefly("a", 3).await?;
    let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
    let held = options("a")?.with_lease_duration(hour);
    let held = group.gather(held, 3).await?;
    Step::Retry.on(&t.backend, &held[1]).await?;
    t.backend.ack(&lost[1]).await?;
    t.let_lease_expire(&lost[2]).await;
    let first = group.fetch_one("b").await?;

    expect_eq("the sequence", first.event.sequence.get(), 1)?;
    group.expect_claimable("b", &[3, 5, 7, 8]).await?;
    Ok(())
}

/// Given back in another order than claimed.
pub(super) async fn retried_events_come_by_sequence_and_not_by_turn(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    let leases = group.fetch_exactly("a", 4).await?;
    for at in [2, 0, 3, 1] {
        Step::Retry.on(&t.backend, &leases[at]).await?;
    }

    let first = group.fetch_one("b").await?;
    expect_eq("the sequence", first.event.sequence.get(), 1)?;
    group.expect_claimable("b", &[2, 3, 4, 5]).await?;
    Ok(())
}

/// The lower one was due later; both are due now.
pub(super) async fn delayed_events_come_by_sequence_and_not_by_due_time(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    for (lease, parts) in leases.iter().zip([4, 2, 1]) {
        let delay = retry_after(t.brief() / 4 * parts)?;
        t.backend.retry(lease, &delay).await?;
    }
    t.pass(t.brief()).await;

    let first = group.fetch_one("b").await?;
    expect_eq("the sequence", first.event.sequence.get(), 1)?;
    group.expect_claimable("b", &[2, 3]).await?;
    Ok(())
}

/// What is done again is done before what is new.
pub(super) async fn replayed_events_go_before_what_is_new(t: Fixture) -> Outcome {
    let group = t.group_with_events(6).await?;
    let leases = group.fetch_exactly("a", 4).await?;
    group.ack(&leases).await?;
    let chosen = Replay::Events(vec![leases[2].event.id, leases[0].event.id]);
    group.replay(&chosen).await?;

    let first = group.fetch_one("b").await?;
    expect_eq("the sequence", first.event.sequence.get(), 1)?;
    group.expect_claimable("b", &[3, 5, 6]).await?;
    Ok(())
}
