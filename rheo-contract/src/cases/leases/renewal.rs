//! Renewals.

use std::time::Duration;

use rheo_core::{Backend, Lease, LeaseDuration};

use crate::durations::DURATIONS;
use crate::expect::{Outcome, expect, expect_eq};
use crate::fixture::Fixture;
use crate::step::{Step, expect_stale};

/// A heartbeat buys time from now on, and changes nothing else.
pub(super) async fn a_renewal_counts_from_now(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    t.pass(Duration::from_millis(20)).await;
    let hour = Duration::from_secs(3_600);
    let renewed = t.backend.renew(&lease, LeaseDuration::new(hour)?).await?;

    t.expect_now(
        "expires_at less the duration",
        renewed.expires_at.saturating_sub(hour),
    )?;
    let expected = Lease {
        expires_at: renewed.expires_at,
        ..lease.clone()
    };
    expect_eq("the renewed lease", &renewed, &expected)?;
    let longest = Duration::from_secs(365 * 24 * 60 * 60);
    let renewed = t
        .backend
        .renew(&lease, LeaseDuration::new(longest)?)
        .await?;
    t.expect_now(
        "expires_at less the duration",
        renewed.expires_at.saturating_sub(longest),
    )
}

/// What the answer says is what the others see.
pub(super) async fn a_renewed_lease_holds_until_its_new_expiry(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.until_just_before(lease.expires_at).await;
    let renewed = t.backend.renew(&lease, t.brief_lease()).await?;
    t.until_just_before(renewed.expires_at).await;

    expect(
        renewed.expires_at > lease.expires_at,
        format!("an expiry after {}", lease.expires_at),
        renewed.expires_at,
    )?;
    group.expect_nothing("b").await?;
    t.until(renewed.expires_at).await;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 2)
}

/// A holder that knows it is nearly done may say so.
pub(super) async fn a_renewal_may_shorten(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
    let lease = group.fetch_one_for("a", hour).await?;
    let renewed = t.backend.renew(&lease, t.brief_lease()).await?;

    let counted_from = renewed.expires_at.saturating_sub(t.brief());
    t.expect_now("expires_at less the duration", counted_from)?;
    group.expect_nothing("b").await?;
    t.until(renewed.expires_at).await;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 2)
}

/// The worker that settles need not be the thread that renews.
pub(super) async fn a_copy_from_before_a_renewal_still_settles(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    for (step, copy) in Step::ALL.iter().zip(group.fetch_exactly("a", 4).await?) {
        let minute = LeaseDuration::new(Duration::from_secs(60))?;
        let renewed = t.backend.renew(&copy, minute).await?;

        step.on(&t.backend, &copy).await?;
        if *step != Step::Renew {
            expect_stale(&t.backend, &renewed).await?;
        }
    }
    Ok(())
}

/// Long work with many heartbeats is one attempt.
pub(super) async fn a_renewal_is_no_attempt(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group_of_attempts("billing", 2).await?;
    stream.append(1).await?;
    let lease = group.fetch_one("a").await?;
    for _ in 0..3 {
        let renewed = t.backend.renew(&lease, LeaseDuration::default()).await?;
        expect_eq("the attempt", renewed.attempt, 1)?;
    }
    Step::Retry.on(&t.backend, &lease).await?;

    expect_eq("the attempt", group.fetch_one("a").await?.attempt, 2)
}

/// As for the lease itself: from a microsecond to a year.
pub(super) async fn a_renewed_lease_ends_exactly_then_however_long_it_lasts(t: Fixture) -> Outcome {
    let group = t.group().await?;
    for duration in DURATIONS {
        let lease = group.append_and_fetch_one("a").await?;
        let now = t.now();
        let lasts = LeaseDuration::new(duration)?;
        t.backend.renew(&lease, lasts).await?;

        let ends = now.saturating_add(duration);
        group.expect_claimable_from(ends, 2).await?;
    }
    Ok(())
}

/// The second holder has heartbeats as well: for longer, for shorter, and after a reclaim.
pub(super) async fn a_later_attempt_is_renewed_like_the_first(t: Fixture) -> Outcome {
    let (group, leases) = t.second_attempts(5, 2, t.brief_lease()).await?;
    let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
    let longer = t.backend.renew(&leases[0], hour).await?;
    expect_eq("the attempt", longer.attempt, 2)?;
    let counted_from = longer.expires_at.saturating_sub(hour.as_duration());
    t.expect_now("expires_at less the duration", counted_from)?;
    t.let_lease_expire(&leases[1]).await;
    let reclaimed = group.expect_claimable("b", &[2]).await?;
    expect_eq("the attempt", reclaimed[0].attempt, 3)?;

    for lease in [&longer, &reclaimed[0]] {
        let shorter = t.backend.renew(lease, t.brief_lease()).await?;
        expect_eq("the attempt", shorter.attempt, lease.attempt)?;
        let counted_from = shorter.expires_at.saturating_sub(t.brief());
        t.expect_now("expires_at less the duration", counted_from)?;
    }
    let ends = t.now().saturating_add(t.brief());
    group.expect_nothing("c").await?;
    t.until(ends).await;
    let attempts: Vec<u32> = group
        .expect_claimable("c", &[1, 2])
        .await?
        .iter()
        .map(|lease| lease.attempt)
        .collect();
    expect_eq("the attempts", attempts, vec![3, 4])
}

/// Now is now, also when it was later before.
pub(super) async fn a_renewal_counts_from_a_clock_that_went_back(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    t.turn_back(Duration::from_secs(3_600));
    let ends = t.now().saturating_add(t.brief());
    let renewed = t.backend.renew(&lease, t.brief_lease()).await?;

    expect_eq("expires_at", renewed.expires_at, ends)?;
    group.expect_claimable_from(ends, 2).await
}
