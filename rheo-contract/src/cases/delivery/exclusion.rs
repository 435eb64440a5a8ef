//! No event is held twice.

use tokio::task::JoinSet;

use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::{at_once, sequences_of};

/// By turns, and with room for more than there is.
pub(super) async fn two_consumers_never_hold_the_same_event(t: Fixture) -> Outcome {
    let group = t.group_with_events(10).await?;
    let mut seen = Vec::new();
    for count in [1, 2, 3] {
        for consumer in ["a", "b"] {
            seen.extend(sequences_of(&group.fetch(consumer, count).await?));
        }
    }

    expect_eq("the sequences", seen, (1..=10).collect())
}

/// A consumer that fetches while it works gets new work.
pub(super) async fn a_holder_does_not_get_its_own_event_again(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.expect_claimable("a", &[3]).await?;
    group.expect_nothing("a").await?;

    group.ack(&leases).await?;
    group.expect_nothing("a").await
}

/// Not even when its lease would have expired.
pub(super) async fn an_acked_event_never_comes_again(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly_briefly("a", 3).await?;
    group.ack(&leases).await?;
    t.let_lease_expire(&leases[2]).await;

    group.expect_nothing("a").await?;
    group.stream.append(1).await?;
    group.expect_claimable("b", &[4]).await?;
    Ok(())
}

/// Eight workers of one process at once.
pub(super) async fn concurrent_fetches_share_no_event(t: Fixture) -> Outcome {
    let group = t.group_with_events(40).await?;
    let mut fetching = JoinSet::new();
    for number in 0..8 {
        let group = group.clone();
        fetching.spawn(async move { group.fetch(&format!("worker-{number}"), 5).await });
    }
    let mut seen = Vec::new();
    for leases in fetching.join_all().await {
        seen.extend(sequences_of(&leases?));
    }
    seen.extend(sequences_of(&group.fetch_all("a").await?));
    seen.sort_unstable();

    expect_eq("the sequences", seen, (1..=40).collect())
}

/// One event comes, and everybody is waiting for it; then again, and again.
pub(super) async fn concurrent_fetches_give_one_event_once(t: Fixture) -> Outcome {
    let group = t.group().await?;
    for number in 1..=10 {
        group.stream.append(1).await?;
        let fetched = at_once(8, |worker| {
            let group = group.clone();
            async move { group.fetch(&format!("worker-{worker}"), 1).await }
        });
        let mut seen = Vec::new();
        for leases in fetched.await? {
            seen.extend(sequences_of(&leases?));
        }

        expect_eq("the sequences that were handed out", seen, vec![number])?;
    }
    Ok(())
}

/// A consumer died with its hands full, and all the others find its events at the same moment.
pub(super) async fn concurrent_fetches_reclaim_each_event_once(t: Fixture) -> Outcome {
    let group = t.group_with_events(12).await?;
    let lost = group.fetch_briefly("a", 12).await?;
    for lease in &lost {
        t.let_lease_expire(lease).await;
    }
    let fetched = at_once(8, |worker| {
        let group = group.clone();
        async move { group.fetch(&format!("worker-{worker}"), 3).await }
    });
    let mut leases = Vec::new();
    for reclaimed in fetched.await? {
        leases.extend(reclaimed?);
    }
    leases.extend(group.fetch_all("b").await?);

    leases.sort_by_key(|lease| lease.event.sequence);
    let seen: Vec<(u64, u32)> = leases
        .iter()
        .map(|lease| (lease.event.sequence.get(), lease.attempt))
        .collect();
    let expected = (1..=12).map(|sequence| (sequence, 2)).collect();
    expect_eq("sequence and attempt of what was reclaimed", seen, expected)?;
    group.ack(&leases).await
}
