//! Holes with much above them.

use rheo_core::{Backend, ConsumerId, FetchOptions};

use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::Group;

/// More than a page of anything.
const MANY: usize = 1_102;

async fn expect_progress(group: &Group, frontier: u64, lag: u64) -> Outcome {
    group.expect_frontier(frontier).await?;
    expect_eq("the lag", group.lag().await?.total(), lag)
}

/// One slow event, and another one, while a thousand behind them are done.
pub(super) async fn a_hole_below_a_thousand_acks_holds_the_frontier(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let events = (0..MANY).map(|_| t.new_event()).collect();
    group.stream.append_all(events).await?;
    let fetch = FetchOptions::new(ConsumerId::new("a")?);
    let mut leases = group.gather_exactly(fetch, MANY).await?;
    let second_hole = leases.remove(549);
    let first_hole = leases.remove(0);
    for result in t.backend.ack_batch(&leases).await {
        result?;
    }
    expect_progress(&group, 0, 1_102).await?;

    t.backend.ack(&first_hole).await?;
    expect_progress(&group, 549, 553).await?;
    t.backend.ack(&second_hole).await?;
    expect_progress(&group, 1_102, 0).await
}

/// Done late is done: the frontier passes at once, and not with the next fetch.
pub(super) async fn a_late_settle_fills_its_hole(t: Fixture) -> Outcome {
    let group = t.group_with_events(6).await?;
    let leases = group.fetch_exactly_briefly("a", 6).await?;
    expect_eq("the number of leases", leases.len(), 6)?;
    group.ack(&[leases[2].clone(), leases[4].clone()]).await?;
    t.let_lease_expire(&leases[5]).await;
    expect_progress(&group, 0, 6).await?;

    t.backend.ack(&leases[0]).await?;
    expect_progress(&group, 1, 5).await?;
    group.reject(&leases[1], "too late").await?;
    expect_progress(&group, 3, 3).await?;
    for result in t
        .backend
        .ack_batch(&[leases[5].clone(), leases[3].clone()])
        .await
    {
        result?;
    }
    expect_progress(&group, 6, 0).await
}
