//! When a lease ends, and what that means.

use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, ErrorKind, FetchOptions, LeaseDuration, Partitions, Timestamp,
};

use crate::durations::DURATIONS;
use crate::expect::{Outcome, expect_empty, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::scene::{P0, P1};
use crate::step::Step;

/// The holder has every microsecond that it was promised.
pub(super) async fn a_lease_is_not_reclaimable_before_its_expiry(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.until_just_before(lease.expires_at).await;

    group.expect_nothing("a").await?;
    group.expect_nothing("b").await?;
    t.backend.ack(&lease).await?;
    Ok(())
}

/// And not one more, or a dead consumer's events would wait for nobody.
pub(super) async fn a_lease_is_reclaimable_at_its_expiry(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.until(lease.expires_at).await;

    let reclaimed = group.fetch_one("b").await?;
    expect_eq("the event", reclaimed.event, lease.event)
}

/// Work that took too long but that nobody else has begun need not be done again.
pub(super) async fn an_expired_lease_still_settles(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly_briefly("a", 3).await?;
    t.let_lease_expire(&leases[2]).await;
    for (step, lease) in Step::SETTLES.iter().zip(&leases) {
        step.on(&t.backend, lease).await?;
    }

    let retried = group.expect_claimable("b", &[2]).await?;
    expect_eq("the attempt", retried[0].attempt, 2)
}

/// A heartbeat that comes late, but before anybody else, keeps the event.
pub(super) async fn an_expired_lease_can_be_renewed(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;
    let renewed = t.backend.renew(&lease, LeaseDuration::default()).await?;

    group.expect_nothing("b").await?;
    expect_eq("the lease id", &renewed.lease_id, &lease.lease_id)?;
    t.backend.ack(&lease).await?;
    Ok(())
}

/// Three leases expired, one is reclaimed: the other two are as good as before.
pub(super) async fn an_expired_lease_holds_until_it_is_reclaimed_itself(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly_briefly("a", 3).await?;
    t.let_lease_expire(&leases[2]).await;
    let reclaimed = group.fetch_one("b").await?;

    expect_eq("the sequence", reclaimed.event.sequence.get(), 1)?;
    expect_error(t.backend.ack(&leases[0]).await, ErrorKind::StaleLease)?;
    group.ack(&leases[1..]).await?;
    group.expect_nothing("c").await
}

/// A fetch that hands the event to nobody takes it from nobody.
pub(super) async fn a_fetch_that_claims_nothing_takes_no_lease_away(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group("billing").await?;
    let other = stream.group("shipping").await?;
    stream.append(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;
    let none = FetchOptions::new(ConsumerId::new("b")?).with_limit(0);
    expect_empty("lease", &group.fetch_with(&none).await?)?;
    let nowhere = FetchOptions::new(ConsumerId::new("b")?).with_partitions(Partitions::only([]));
    expect_empty("lease", &group.fetch_with(&nowhere).await?)?;
    other.fetch_one("b").await?;

    t.backend.ack(&lease).await?;
    group.expect_nothing("b").await
}

/// A worker that serves other partitions leaves this one's leases alone.
pub(super) async fn a_fetch_from_elsewhere_takes_no_lease_away(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    let group = stream.group("billing").await?;
    stream.append_to(P0, 1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;
    stream.append_to(P1, 1).await?;
    let from_p1 = FetchOptions::new(ConsumerId::new("b")?).with_partitions(P1);
    let fetched = group.gather(from_p1, 2).await?;

    expect_eq("the number of leases", fetched.len(), 1)?;
    t.backend.ack(&lease).await?;
    Ok(())
}

/// Clocks are set back; the holder still has its event, and only until the expiry.
pub(super) async fn a_clock_that_goes_back_ends_no_lease(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.turn_back(Duration::from_secs(3_600));

    group.expect_nothing("b").await?;
    t.until(lease.expires_at).await;
    let reclaimed = group.fetch_one("b").await?;
    expect_eq("the attempt", reclaimed.attempt, 2)
}

/// What the lease says is what the others see, from a microsecond to a year.
pub(super) async fn a_lease_ends_exactly_then_however_long_it_lasts(t: Fixture) -> Outcome {
    let group = t.group().await?;
    for duration in DURATIONS {
        group.stream.append(1).await?;
        let lasts = LeaseDuration::new(duration)?;
        let lease = group.fetch_one_for("a", lasts).await?;

        group.expect_claimable_from(lease.expires_at, 2).await?;
    }
    Ok(())
}

/// At the end of time a lease ends too.
pub(super) async fn at_the_highest_timestamp_every_lease_has_ended(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    t.jump_to(Timestamp::MAX.saturating_sub(Duration::from_secs(10)));
    let year = LeaseDuration::new(DURATIONS[DURATIONS.len() - 1])?;
    let lease = group.fetch_one_for("a", year).await?;
    let renewed = t.backend.renew(&lease, year).await?;

    group.expect_claimable_from(renewed.expires_at, 2).await
}

/// Four leases expired, a fetch took the first; then the holder of the second comes late. What is behind
/// goes on whatever it did.
pub(super) async fn what_was_settled_late_holds_up_nothing(t: Fixture) -> Outcome {
    let mut groups = Vec::new();
    let mut last = t.now();
    for step in Step::ALL {
        for in_a_batch in [false, true] {
            let group = t.group_with_events(4).await?;
            let leases = group.fetch_exactly_briefly("a", 4).await?;
            last = leases[3].expires_at;
            groups.push((step, in_a_batch, group, leases));
        }
    }
    t.until(last).await;

    for (step, in_a_batch, group, leases) in groups {
        let reclaimed = group.fetch_one("b").await?;
        expect_eq("the sequence", reclaimed.event.sequence.get(), 1)?;
        let late = &leases[1..=1];
        let results = match in_a_batch {
            false => vec![step.on(&t.backend, &late[0]).await],
            true => step.on_all(&t.backend, late).await,
        };
        expect_eq("the results", results, vec![Ok(())])?;
        Step::Retry.on(&t.backend, &leases[2]).await?;
        let claimable: &[u64] = match step {
            Step::Retry => &[2, 3, 4],
            Step::Renew | Step::Ack | Step::Reject => &[3, 4],
        };
        for lease in group.expect_claimable("c", claimable).await? {
            expect_eq("the attempt", lease.attempt, 2)?;
        }
        group.stream.append(1).await?;
        group.expect_claimable("c", &[5]).await?;
    }
    Ok(())
}

/// A fetch found three leases expired and took one; then the clock is put right, and they are not expired.
pub(super) async fn what_was_found_expired_is_leased_when_the_clock_goes_back(
    t: Fixture,
) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly_briefly("a", 3).await?;
    t.let_lease_expire(&leases[2]).await;
    let reclaimed = group.fetch_one("b").await?;
    expect_eq("the sequence", reclaimed.event.sequence.get(), 1)?;
    t.turn_back(t.brief() / 2);

    group.expect_nothing("c").await?;
    t.until(leases[2].expires_at).await;
    for lease in group.expect_claimable("c", &[2, 3]).await? {
        expect_eq("the attempt", lease.attempt, 2)?;
    }
    Ok(())
}

/// Claimed in one go, renewed one by one: each ends when it was said to, and takes no other along.
pub(super) async fn leases_of_one_fetch_end_each_on_its_own(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    let leases = group.fetch_exactly_briefly("a", 4).await?;
    expect_eq("the number of leases", leases.len(), 4)?;
    let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
    t.backend.renew(&leases[1], hour).await?;
    t.backend.renew(&leases[2], hour).await?;
    t.until_just_before(leases[3].expires_at).await;

    group.expect_nothing("b").await?;
    t.until(leases[3].expires_at).await;
    group.expect_claimable("b", &[1, 4]).await?;
    let shorter = t.backend.renew(&leases[1], t.brief_lease()).await?;
    t.until(shorter.expires_at).await;
    group.expect_claimable("b", &[2]).await?;
    t.backend.ack(&leases[2]).await?;
    Ok(())
}
