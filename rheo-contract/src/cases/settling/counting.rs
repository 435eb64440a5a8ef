//! How far attempts are counted.

use rheo_core::{MaxAttempts, RetryOutcome};

use super::{fetch_and_retry, group_of_attempts};
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::step::Step;

/// Patient groups count beyond what a byte holds, and give up exactly where they were told to.
pub(super) async fn hundreds_of_attempts_are_counted(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 300, 1).await?;
    for attempt in 1..300 {
        let lease = group.fetch_one("a").await?;
        expect_eq("the attempt", lease.attempt, attempt)?;
        Step::Retry.on(&t.backend, &lease).await?;
    }

    let outcome = fetch_and_retry(&group).await?;
    expect_eq("the outcome", outcome, RetryOutcome::DeadLettered)?;
    group.expect_nothing("a").await
}

/// A number of attempts is taken as it is, whatever integers the store has.
pub(super) async fn no_number_of_attempts_is_too_large(t: Fixture) -> Outcome {
    for attempts in [
        100,
        128,
        255,
        256,
        257,
        1_000,
        32_768,
        65_535,
        65_536,
        65_537,
        16_777_217,
        MaxAttempts::MAX,
    ] {
        let group = group_of_attempts(&t, attempts, 1).await?;
        for _ in 0..2 {
            let outcome = fetch_and_retry(&group).await?;
            let what = format!("the outcome of a retry with {attempts} attempts");
            expect_eq(&what, outcome, RetryOutcome::Retrying)?;
        }
    }
    Ok(())
}
