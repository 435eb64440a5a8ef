//! Many leases that were lost at their last attempt.

use rheo_core::{Backend, ConsumerId, FetchOptions, Lease, Partition};

use super::group_of_attempts;
use crate::expect::{Outcome, broken, expect, expect_empty, expect_eq};
use crate::fixture::Fixture;
use crate::scene::{Group, sequences_of};

/// Healthy events that come again are between the used-up ones, new ones behind them; a worker fetches
/// two at a time, and comes to the end.
async fn work_off(t: &Fixture) -> Outcome<(Group, Vec<u64>)> {
    let group = group_of_attempts(t, 2, 12).await?;
    let first = group.fetch_briefly("a", 12).await?;
    let (healthy, used_up): (Vec<Lease>, Vec<Lease>) = first
        .into_iter()
        .partition(|lease| lease.event.sequence.get() % 6 == 0);
    for lease in &used_up {
        t.backend
            .retry(lease, &rheo_core::RetryOptions::new())
            .await?;
    }
    let last = group.fetch_briefly("a", used_up.len()).await?;
    expect_eq("the number of last leases", last.len(), used_up.len())?;
    for lease in healthy.iter().chain(&last) {
        t.let_lease_expire(lease).await;
    }
    group.stream.append(3).await?;

    let fetch = FetchOptions::new(ConsumerId::new("b")?).with_limit(2);
    let mut given = Vec::new();
    for _ in 0..50 {
        let leases = group.fetch_with(&fetch).await?;
        if leases.is_empty() {
            given.sort_unstable();
            return Ok((group, given));
        }
        expect(
            leases.len() <= 2,
            "at most 2 leases",
            format!("{} leases", leases.len()),
        )?;
        given.extend(sequences_of(&leases));
        group.ack(&leases).await?;
    }
    Err(broken(
        "the events to come to an end",
        "50 fetches with events",
    ))
}

/// Nobody is given an event for the third time, and nobody misses one because of those.
pub(super) async fn used_up_events_are_never_handed_out_whatever_the_limit(t: Fixture) -> Outcome {
    let (group, given) = work_off(&t).await?;

    expect_eq(
        "the sequences that were handed out",
        given,
        vec![6, 12, 13, 14, 15],
    )?;
    group.expect_nothing("c").await
}

/// They are not dropped either: each is there to be looked at.
pub(super) async fn all_used_up_events_become_dead_letters_whatever_the_limit(
    t: Fixture,
) -> Outcome {
    let (group, _) = work_off(&t).await?;

    let dead = group.dead_letters().await?;
    let seen: Vec<(u64, u32)> = dead
        .iter()
        .map(|letter| (letter.event.sequence.get(), letter.attempt))
        .collect();
    let expected: Vec<(u64, u32)> = (1..=11).filter(|n| n % 6 != 0).map(|n| (n, 2)).collect();
    expect_eq("sequence and attempt of the dead letters", seen, expected)
}

/// A worker that serves all partitions leaves nothing half given up on in any of them.
pub(super) async fn an_empty_fetch_leaves_nothing_used_up_in_any_partition(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    let group = stream.group_of_attempts("billing", 1).await?;
    for partition in (0..3).map(Partition::new) {
        stream.append_to(partition, 4).await?;
    }
    let lost = group.fetch_briefly("a", 12).await?;
    expect_eq("the number of leases", lost.len(), 12)?;
    t.let_lease_expire(&lost[11]).await;
    let one = FetchOptions::new(ConsumerId::new("b")?).with_limit(1);
    expect_empty("claimable event", &group.fetch_with(&one).await?)?;

    let dead = group.dead_letters().await?;
    expect_eq("the number of dead letters", dead.len(), 12)
}

/// A fetch had room for one event and found a last lease behind it that had expired. If it left that
/// alone, it is a lease like any other once the clock is put right.
pub(super) async fn a_clock_that_goes_back_keeps_the_last_lease(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 2, 2).await?;
    let leases = group.fetch_exactly_briefly("a", 2).await?;
    expect_eq("the number of leases", leases.len(), 2)?;
    let options = rheo_core::RetryOptions::new();
    t.backend.retry(&leases[1], &options).await?;
    let last = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&last).await;
    let first = group.fetch_one("b").await?;
    expect_eq("the sequence", first.event.sequence.get(), 1)?;
    if !group.dead_letters().await?.is_empty() {
        return Ok(());
    }
    t.turn_back(t.brief() / 2);

    group.expect_nothing("c").await?;
    expect_empty("dead letter", &group.dead_letters().await?)?;
    t.backend.ack(&last).await?;
    Ok(())
}
