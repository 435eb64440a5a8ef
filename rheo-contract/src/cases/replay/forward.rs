//! A replay never moves forward.

use rheo_core::{Sequence, Start};

use super::sequence;
use crate::expect::Outcome;
use crate::fixture::Fixture;
use crate::scene::expect_first_attempts;

/// A replay that was meant for a later state, or a group that lags behind: nothing may be lost.
pub(super) async fn replay_beyond_what_was_claimed_skips_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(6).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    group.ack(&leases[..2]).await?;

    for beyond in [3, 4, 6, 7, 1_000, Sequence::MAX.get()] {
        group.replay_after(beyond).await?;
    }

    group.expect_current(&leases[2]).await?;
    group.expect_claimable("b", &[4, 5, 6]).await?;
    Ok(())
}

/// Where nothing was delivered there is nothing to deliver again, and nothing to skip.
pub(super) async fn replay_before_anything_was_claimed_changes_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;

    for after in [0, 2, 3, Sequence::MAX.get()] {
        group.replay_after(after).await?;
    }

    expect_first_attempts(&group.expect_claimable("a", &[1, 2, 3]).await?)
}

/// The first events of a stream must reach a group that was replayed too early.
pub(super) async fn replay_on_an_empty_stream_skips_no_later_event(t: Fixture) -> Outcome {
    let group = t.group().await?;

    group.replay_after(0).await?;
    group.replay_after(2).await?;
    group.stream.append(3).await?;

    group.expect_claimable("a", &[1, 2, 3]).await?;
    Ok(())
}

/// Neither at the start nor above it is there anything to reopen.
pub(super) async fn replay_ahead_of_the_start_skips_nothing(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(5).await?;
    let group = stream
        .group_from("billing", Start::AfterSequence(sequence(2)?))
        .await?;

    group.replay_after(2).await?;
    group.replay_after(4).await?;

    expect_first_attempts(&group.expect_claimable("a", &[3, 4, 5]).await?)
}

/// A frontier that jumps forward would report work as done that nobody did.
pub(super) async fn replay_never_raises_the_frontier(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.ack(&leases[..1]).await?;

    for beyond in [2, 3, 5, 6, Sequence::MAX.get()] {
        group.replay_after(beyond).await?;
        group.expect_frontier(1).await?;
    }
    group.ack(&leases[1..]).await?;
    group.expect_frontier(2).await
}
