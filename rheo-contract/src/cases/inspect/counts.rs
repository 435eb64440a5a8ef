//! What a group's description counts, however much there is and however it came to be.

use rheo_core::{EventId, Guarantee, Partition, Replay, ResetOptions, Sequence, Start};
use serde_json::json;

use super::{expect_counts, info};
use crate::expect::{Outcome, expect_eq};
use crate::fixture::{Fixture, new_event};
use crate::scene::Group;
use crate::step::Step;

/// More than some page holds.
const COUNTS: [usize; 3] = [12, 300, 1_001];

/// A number that ends at the hundredth says that all is well.
pub(super) async fn group_info_counts_any_number_of_leases_and_dead_letters(t: Fixture) -> Outcome {
    for count in COUNTS {
        let group = t.group().await?;
        let batch = vec![new_event("order.placed", json!({})); count * 2];
        group.stream.append_all(batch).await?;
        let leases = group.fetch_exactly("a", count * 2).await?;
        expect_counts(&group, leases.len() as u64, 0).await?;

        for (step, leased) in [(Step::Reject, count), (Step::Ack, 0)] {
            let settled = &leases[leased..][..count];
            for result in step.on_all(&t.backend, settled).await {
                result?;
            }
            expect_counts(&group, leased as u64, count as u64).await?;
        }
    }
    Ok(())
}

/// Each partition counts, also the last.
pub(super) async fn group_info_counts_over_twelve_partitions(t: Fixture) -> Outcome {
    let group = t.stream(12).await?.group("billing").await?;
    for partition in (0..12).map(Partition::new) {
        group.stream.append_to(partition, 2).await?;
    }
    let leases = group.fetch_exactly("a", 24).await?;
    expect_counts(&group, 24, 0).await?;

    for (done, lease) in (1..).zip(leases.iter().take(23)) {
        group.reject(lease, "broken").await?;
        expect_counts(&group, 24 - done, done).await?;
    }
    Ok(())
}

/// An event that is tried for the fourth time is what one looks for.
pub(super) async fn group_info_counts_a_lease_at_any_attempt(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    for attempt in 1..=5 {
        let lease = group.fetch_one("a").await?;
        expect_eq("the attempt", lease.attempt, attempt)?;
        expect_counts(&group, 1, 0).await?;
        for _ in 0..2 {
            group.expect_current(&lease).await?;
            expect_counts(&group, 1, 0).await?;
        }
        Step::Retry.on(&t.backend, &lease).await?;
        expect_counts(&group, 0, u64::from(attempt == 5)).await?;
    }
    Ok(())
}

async fn replay_chosen(group: &Group, ids: &[EventId]) -> Outcome {
    group.replay(&Replay::Events(ids.to_vec())).await
}

/// What was not replayed is still leased or dead.
pub(super) async fn group_info_counts_what_a_replay_left(t: Fixture) -> Outcome {
    let group = t.group().await?;
    // 1 and 5 are acked, 2 and 6 leased, 3 and 7 waiting, 4 and 8 dead.
    let leases = group.bring_into_every_state().await?;
    group.bring_into_every_state().await?;
    expect_counts(&group, 2, 2).await?;

    group.replay_after(4).await?;
    expect_counts(&group, 1, 1).await?;
    group.fetch_exactly("b", 3).await?;
    expect_counts(&group, 4, 1).await?;
    let ids: Vec<EventId> = leases.iter().map(|lease| lease.event.id).collect();
    for (chosen, leased, dead) in [(0, 4, 1), (3, 4, 0), (2, 4, 0), (1, 3, 0)] {
        replay_chosen(&group, &ids[chosen..=chosen]).await?;
        expect_counts(&group, leased, dead).await?;
    }
    Ok(())
}

/// Old events that somebody chose are work as any other.
pub(super) async fn group_info_counts_chosen_events_below_the_start(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let events = stream.append(4).await?;
    let group = stream.group_from("billing", Start::End).await?;
    let ids: Vec<EventId> = events.iter().map(|event| event.id).collect();
    replay_chosen(&group, &ids[..3]).await?;
    expect_counts(&group, 0, 0).await?;

    let leases = group.fetch_exactly("a", 3).await?;
    expect_counts(&group, 3, 0).await?;
    group.reject(&leases[1], "broken").await?;
    expect_counts(&group, 2, 1).await?;
    group.ack(&leases[..1]).await?;
    expect_counts(&group, 1, 1).await
}

/// What the group is stays, whatever part of what it did goes.
pub(super) async fn group_info_gives_max_attempts_after_going_back(t: Fixture) -> Outcome {
    let partitions = match t.capabilities().guarantees(Guarantee::Partitions) {
        true => 3,
        false => 1,
    };
    let stream = t.stream(partitions).await?;
    let last = Partition::new(partitions - 1);
    let events = stream.append_to(last, 2).await?;
    let group = stream.group_of_attempts("billing", 7).await?;
    group.ack(&group.fetch_exactly("a", 2).await?).await?;
    let one = || ResetOptions::new().with_partitions(last);
    for reset in [one(), one().with_start(Start::End), ResetOptions::new()] {
        group.reset(&reset).await?;
        expect_eq("max_attempts", info(&group).await?.max_attempts.get(), 7)?;
    }
    for replay in [
        Replay::Events(vec![events[0].id]),
        Replay::after(Sequence::ZERO),
    ] {
        group.replay(&replay).await?;
        expect_eq("max_attempts", info(&group).await?.max_attempts.get(), 7)?;
    }
    Ok(())
}
