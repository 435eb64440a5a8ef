//! How long a delay lasts.

use std::time::Duration;

use rheo_core::{Backend, LeaseDuration, RetryOutcome, Timestamp};

use crate::durations::DURATIONS;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::step::{Step, retry_after};

const HOUR: Duration = Duration::from_secs(3_600);

/// A backoff is what was asked for, from a microsecond to a year.
pub(super) async fn a_delay_ends_exactly_then_however_long_it_is(t: Fixture) -> Outcome {
    let group = t.group().await?;
    for delay in DURATIONS {
        let lease = group.append_and_fetch_one("a").await?;
        let due = t.now().saturating_add(delay);
        t.backend.retry(&lease, &retry_after(delay)?).await?;

        group.expect_claimable_from(due, 2).await?;
    }
    Ok(())
}

/// The sum of now and the delay is a point in time, or the last one there is.
pub(super) async fn no_delay_goes_beyond_the_highest_timestamp(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    t.jump_to(Timestamp::MAX.saturating_sub(Duration::from_secs(10)));
    let lease = group.fetch_one("a").await?;
    let year = DURATIONS[DURATIONS.len() - 1];
    let due = t.now().saturating_add(year);
    let outcome = t.backend.retry(&lease, &retry_after(year)?).await?;

    expect_eq("the outcome", outcome, RetryOutcome::Retrying)?;
    group.expect_claimable_from(due, 2).await
}

/// Whatever happened to the event before: without a delay it waits for no point in time.
pub(super) async fn no_retry_at_once_needs_a_clock(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    for attempt in 1..=4 {
        let lease = group.fetch_one_briefly("a").await?;
        expect_eq("the attempt", lease.attempt, attempt)?;
        match attempt {
            3 => t.let_lease_expire(&lease).await,
            4 => drop(t.backend.renew(&lease, LeaseDuration::default()).await?),
            _ => {}
        }
        Step::Retry.on(&t.backend, &lease).await?;
        t.turn_back(HOUR);
    }

    expect_eq("the attempt", group.fetch_one("a").await?.attempt, 5)
}

/// A fetch found three events due and took one; then the clock is put right, and they are not due.
pub(super) async fn what_was_found_due_waits_when_the_clock_goes_back(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    for lease in group.fetch_exactly("a", 3).await? {
        t.backend.retry(&lease, &retry_after(t.brief())?).await?;
    }
    let due = t.now().saturating_add(t.brief());
    t.until(due).await;
    let first = group.fetch_one("b").await?;
    expect_eq("the sequence", first.event.sequence.get(), 1)?;
    t.turn_back(t.brief() / 2);

    group.expect_nothing("c").await?;
    t.until(due).await;
    for lease in group.expect_claimable("c", &[2, 3]).await? {
        expect_eq("the attempt", lease.attempt, 2)?;
    }
    Ok(())
}

/// Now is now, also when it was later before.
pub(super) async fn a_delay_counts_from_a_clock_that_went_back(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    t.turn_back(HOUR);
    let due = t.now().saturating_add(t.brief());
    t.backend.retry(&lease, &retry_after(t.brief())?).await?;

    group.expect_claimable_from(due, 2).await
}

/// A worker may back off for shorter than before.
pub(super) async fn the_delay_of_the_last_retry_counts(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let brief = t.brief();
    for (attempt, delay) in [(1, brief * 3 / 2), (2, brief)] {
        let lease = group.fetch_one("a").await?;
        expect_eq("the attempt", lease.attempt, attempt)?;
        t.backend.retry(&lease, &retry_after(delay)?).await?;
        let due = t.now().saturating_add(delay);
        t.until_just_before(due).await;
        group.expect_nothing("b").await?;
        t.until(due).await;
    }

    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 3)
}
