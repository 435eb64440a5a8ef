//! What a lease holds.

use std::time::Duration;

use rheo_core::{Backend, EventKey, JsonObject, LeaseDuration, Timestamp};
use serde_json::json;

use super::options;
use crate::expect::{Outcome, expect, expect_eq};
use crate::fixture::{Fixture, new_event};
use crate::step::{Step, expect_stale};

/// Everything a worker needs, and everything settling needs.
pub(super) async fn a_lease_is_whole(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let mut event = new_event(
        "order.placed",
        json!({ "total": 12.5, "tags": ["a", null] }),
    );
    event.metadata = JsonObject::metadata(json!({ "trace": "4bf9" }))?;
    let event = event.with_key(EventKey::new("customer-7")?);
    let appended = group.stream.append_event(event).await?;
    let consumer = "worker 1/ü %";
    let lease = group.fetch_one(consumer).await?;

    expect_eq("the event", &lease.event, &appended)?;
    expect_eq("the group", &lease.group, &group.name)?;
    expect_eq("the consumer", lease.consumer.as_str(), consumer)?;
    expect_eq("the attempt", lease.attempt, 1)?;
    t.expect_now("leased_at", lease.leased_at)
}

/// From a microsecond to a year.
pub(super) async fn a_lease_lasts_as_long_as_was_asked_for(t: Fixture) -> Outcome {
    let group = t.group_with_events(6).await?;
    let lease = group.fetch_with(&options("a")?).await?.remove(0);
    let lasts = lease.expires_at.saturating_since(lease.leased_at);
    expect_eq("the default duration", lasts, Duration::from_secs(30))?;

    for micros in [
        1,
        999,
        1_000_001,
        90_000_000,
        365 * 24 * 60 * 60 * 1_000_000,
    ] {
        let duration = Duration::from_micros(micros);
        let lease = group
            .fetch_one_for("a", LeaseDuration::new(duration)?)
            .await?;
        let lasts = lease.expires_at.saturating_since(lease.leased_at);
        expect_eq("the duration", lasts, duration)?;
    }
    Ok(())
}

/// At the end of time there is work to do as well.
pub(super) async fn no_lease_outlasts_the_highest_timestamp(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    t.jump_to(Timestamp::MAX.saturating_sub(Duration::from_secs(10)));
    let year = LeaseDuration::new(Duration::from_secs(365 * 24 * 60 * 60))?;
    let lease = group.fetch_one_for("a", year).await?;
    let renewed = t.backend.renew(&lease, year).await?;

    expect_eq("expires_at", lease.expires_at, Timestamp::MAX)?;
    expect_eq("the renewed expires_at", renewed.expires_at, Timestamp::MAX)?;
    group.expect_nothing("b").await?;
    t.backend.ack(&lease).await?;
    Ok(())
}

/// Who has it since when, not who had it.
pub(super) async fn each_claim_has_its_own_time_and_consumer(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lost = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lost).await;
    let second = group.fetch_one("b").await?;
    expect_eq("the consumer", second.consumer.as_str(), "b")?;
    t.expect_now("leased_at", second.leased_at)?;
    expect(
        second.leased_at >= lost.expires_at,
        format!("leased_at to be {} or later", lost.expires_at),
        second.leased_at,
    )?;
    Step::Retry.on(&t.backend, &second).await?;
    t.pass(Duration::from_millis(20)).await;
    let third = group.fetch_one("c").await?;

    expect_eq("the consumer", third.consumer.as_str(), "c")?;
    expect(
        third.leased_at > second.leased_at,
        format!("leased_at to be after {}", second.leased_at),
        third.leased_at,
    )?;
    expect_stale(&t.backend, &second).await
}

/// Now is now, also when it was later before.
pub(super) async fn a_claim_follows_the_clock_back(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    group.ack(&[group.fetch_one("a").await?]).await?;
    t.turn_back(Duration::from_secs(3_600));
    let lease = group.fetch_one_briefly("a").await?;

    expect_eq("leased_at", lease.leased_at, t.now())?;
    let ends = t.now().saturating_add(t.brief());
    expect_eq("expires_at", lease.expires_at, ends)?;
    group.expect_claimable_from(ends, 2).await
}
