//! What a replay leaves alone.

use super::replay_events;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::P0;

/// The replay of one group is nobody else's business.
pub(super) async fn replay_leaves_other_groups_alone(t: Fixture) -> Outcome {
    let billing = t.group().await?;
    let audit = billing.stream.group("audit").await?;
    let namesake = t.group().await?;
    let leases = audit.bring_into_every_state().await?;
    let elsewhere = namesake.bring_into_every_state().await?;
    let mine = billing.fetch_exactly("a", 5).await?;
    billing.ack(&mine).await?;

    billing.replay_after(0).await?;
    replay_events(&billing, mine.iter().map(|lease| lease.event.id)).await?;

    audit.expect_current(&leases[1]).await?;
    audit.expect_claimable("b", &[5]).await?;
    namesake.expect_current(&elsewhere[1]).await?;
    namesake.expect_claimable("b", &[5]).await?;
    billing.expect_claimable("b", &[1, 2, 3, 4, 5]).await?;
    Ok(())
}

/// Replay delivers what is in the log; it does not write to it.
pub(super) async fn replay_leaves_the_log_alone(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let before = group.stream.append(3).await?;
    group.ack(&group.fetch_exactly("a", 3).await?).await?;

    group.replay_after(1).await?;
    replay_events(&group, [before[0].id]).await?;

    expect_eq("the log", group.stream.read(P0).await?, before.clone())?;
    let delivered = group.fetch_exactly("a", 3).await?;
    let delivered: Vec<_> = delivered.into_iter().map(|lease| lease.event).collect();
    expect_eq("the events that are delivered again", delivered, before)
}
