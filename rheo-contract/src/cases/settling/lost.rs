//! Many leases that were lost at their last attempt.

use rheo_core::{Backend, ConsumerId, FetchOptions, Lease};

use super::group_of_attempts;
use crate::expect::{Outcome, broken, expect, expect_eq};
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
