//! How long a delay lasts.

use std::time::Duration;

use rheo_core::{Backend, RetryOutcome, Timestamp};

use crate::durations::DURATIONS;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::step::retry_after;

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
