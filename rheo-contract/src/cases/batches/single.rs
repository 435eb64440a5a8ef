//! A batch does to each lease what its single form does.

use std::time::Duration;

use rheo_core::{
    Backend, Lease, LeaseDuration, Reason, Result, RetryDelay, RetryOptions, RetryOutcome,
};

use crate::cases::dead_letters::expect_letters;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::{Group, sequences_of};
use crate::step::{Step, retry_after};

/// Reasons that some column, or some care for tidiness, changes.
fn reasons() -> [Reason; 5] {
    [
        Reason::new(""),
        Reason::new("  blanks at both ends  "),
        Reason::new("x".repeat(300)),
        Reason::new("ü".repeat(2_000)),
        Reason::new("nul \0 within\r\n"),
    ]
}

/// A group that hands an event out that often, and leases of its three events, each at its own attempt.
async fn at_attempts(t: &Fixture, most: u32, wanted: [u32; 3]) -> Outcome<(Group, Vec<Lease>)> {
    let stream = t.stream(1).await?;
    let group = stream.group_of_attempts("billing", most).await?;
    stream.append(3).await?;
    let mut held = Vec::new();
    for attempt in 1..=3 {
        for lease in group.fetch("a", 3).await? {
            let at = lease.event.sequence.previous().get() as usize;
            if wanted.get(at) == Some(&attempt) {
                held.push(lease);
            } else {
                Step::Retry.on(&t.backend, &lease).await?;
            }
        }
    }
    held.sort_by_key(|lease| lease.event.sequence);
    let attempts: Vec<u32> = held.iter().map(|lease| lease.attempt).collect();
    expect_eq("the attempts", attempts, wanted.to_vec())?;
    Ok((group, held))
}

/// A heartbeat for all tells for each how long it lasts now, be that longer or shorter.
pub(super) async fn a_batch_of_renewals_answers_with_its_expiry(t: Fixture) -> Outcome {
    let (group, leases) = at_attempts(&t, 5, [1, 2, 3]).await?;
    let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
    let mut last = t.now();
    for lasts in [hour, t.brief_lease()] {
        t.pass(Duration::from_micros(1_501)).await;
        let results = t.backend.renew_batch(&leases, lasts).await;
        let renewed = results.into_iter().collect::<Result<Vec<Lease>>>()?;
        expect_eq("the sequences", sequences_of(&renewed), vec![1, 2, 3])?;
        for lease in &renewed {
            let counted_from = lease.expires_at.saturating_sub(lasts.as_duration());
            t.expect_now("expires_at less the duration", counted_from)?;
            last = lease.expires_at;
        }
        group.expect_nothing("b").await?;
    }

    t.until(last).await;
    group.expect_claimable("b", &[1, 2, 3]).await?;
    Ok(())
}

/// Each has its own attempt, and all have the reason to the letter and the time at which they died.
pub(super) async fn a_batch_of_rejects_makes_whole_dead_letters(t: Fixture) -> Outcome {
    for reason in reasons() {
        let (group, leases) = at_attempts(&t, 5, [1, 2, 3]).await?;
        t.pass(Duration::from_micros(1_501)).await;
        let results = t.backend.reject_batch(&leases, &reason).await;

        expect_eq("the results", results, vec![Ok(()); 3])?;
        let died: Vec<_> = leases.iter().map(|lease| (lease, &reason)).collect();
        expect_letters(&group, &died).await?;
    }
    Ok(())
}

/// With a reason or without one; what has attempts left is no dead letter.
pub(super) async fn a_batch_of_last_retries_makes_whole_dead_letters(t: Fixture) -> Outcome {
    let hour = RetryDelay::new(Duration::from_secs(3_600))?;
    let mut cases = vec![(None, RetryDelay::NONE), (None, hour)];
    cases.extend(reasons().map(|reason| (Some(reason), RetryDelay::NONE)));
    for (given, delay) in cases {
        let (group, leases) = at_attempts(&t, 2, [2, 1, 2]).await?;
        t.pass(Duration::from_micros(1_501)).await;
        let mut options = RetryOptions::new().with_delay(delay);
        options.reason = given.clone();
        let backwards: Vec<Lease> = leases.iter().rev().cloned().collect();
        let results = t.backend.retry_batch(&backwards, &options).await;

        let (retrying, given_up) = (RetryOutcome::Retrying, RetryOutcome::DeadLettered);
        let expected = vec![Ok(given_up), Ok(retrying), Ok(given_up)];
        expect_eq("the results", results, expected)?;
        let reason = given.unwrap_or_else(Reason::max_attempts);
        expect_letters(&group, &[(&leases[0], &reason), (&leases[2], &reason)]).await?;
        let claimable: &[u64] = if delay == hour { &[] } else { &[2] };
        group.expect_claimable("b", claimable).await?;
    }
    Ok(())
}

/// Given up on is over, given back is not, in one batch.
pub(super) async fn a_batch_of_retries_moves_the_frontier_where_it_gives_up(t: Fixture) -> Outcome {
    for (wanted, frontier) in [
        ([2, 2, 1], 2),
        ([2, 1, 2], 1),
        ([1, 2, 2], 0),
        ([2, 2, 2], 3),
    ] {
        let (group, leases) = at_attempts(&t, 2, wanted).await?;
        for result in t.backend.retry_batch(&leases, &RetryOptions::new()).await {
            result?;
        }

        group.expect_frontier(frontier).await?;
    }
    Ok(())
}

/// Given back together at several attempts, there together whatever the clock does.
pub(super) async fn a_batch_of_retries_at_once_needs_no_clock(t: Fixture) -> Outcome {
    let (group, leases) = at_attempts(&t, 5, [1, 2, 3]).await?;
    for result in t.backend.retry_batch(&leases, &RetryOptions::new()).await {
        result?;
    }
    t.turn_back(Duration::from_secs(3_600));

    let again = group.expect_claimable("b", &[1, 2, 3]).await?;
    let attempts: Vec<u32> = again.iter().map(|lease| lease.attempt).collect();
    expect_eq("the attempts", attempts, vec![2, 3, 4])
}

/// Now is now, for renewals and delays in a batch too.
pub(super) async fn a_batch_counts_from_a_clock_that_went_back(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    t.turn_back(Duration::from_secs(3_600));
    let ends = t.now().saturating_add(t.brief());
    for result in t.backend.renew_batch(&leases[..1], t.brief_lease()).await {
        expect_eq("expires_at", result?.expires_at, ends)?;
    }
    let delay = retry_after(t.brief())?;
    for result in t.backend.retry_batch(&leases[1..], &delay).await {
        result?;
    }

    group.expect_claimable_from(ends, 2).await?;
    group.expect_claimable("c", &[2]).await?;
    Ok(())
}
