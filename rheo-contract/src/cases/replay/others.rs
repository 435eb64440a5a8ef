//! What a replay leaves alone.

use std::collections::BTreeMap;

use rheo_core::{Partitions, Replay, Sequence};

use super::replay_events;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::{P0, P1};
use crate::states::{every_state, expect_untouched};

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

/// Every state that an event can be in, in the partitions and groups that were not meant.
pub(super) async fn replay_of_one_partition_touches_no_state_elsewhere(t: Fixture) -> Outcome {
    for replay in [
        Replay::After {
            sequence: Sequence::ZERO,
            partitions: Partitions::from(P1),
        },
        Replay::AfterEach(BTreeMap::from([(P1, Sequence::new(1)?)])),
    ] {
        let stream = t.stream(3).await?;
        let (billing, audit) = (stream.group("billing").await?, stream.group("audit").await?);
        let states = every_state(&[&billing, &audit], 3).await?;
        billing.replay(&replay).await?;

        expect_untouched(&states, Some(P1)).await?;
    }
    Ok(())
}

/// One partition's events were chosen: those of the others have the same sequences.
pub(super) async fn replay_of_chosen_events_touches_no_state_elsewhere(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    let (billing, audit) = (stream.group("billing").await?, stream.group("audit").await?);
    let states = every_state(&[&billing, &audit], 3).await?;
    let chosen = stream.read(P1).await?;
    replay_events(&billing, chosen.iter().map(|event| event.id)).await?;

    expect_untouched(&states, Some(P1)).await
}

/// One replays all it has; the group beside it and its namesake on another stream are where they were.
pub(super) async fn replay_touches_no_state_of_other_groups(t: Fixture) -> Outcome {
    let billing = t.group().await?;
    let audit = billing.stream.group("audit").await?;
    let namesake = t.group().await?;
    let states = every_state(&[&billing, &audit, &namesake], 1).await?;
    billing.replay_after(0).await?;
    let all = billing.fetch_exactly("b", 6).await?;
    replay_events(&billing, all.iter().map(|lease| lease.event.id)).await?;

    billing.expect_claimable("c", &[1, 2, 3, 4, 5, 6]).await?;
    expect_untouched(&states[1..], None).await
}
