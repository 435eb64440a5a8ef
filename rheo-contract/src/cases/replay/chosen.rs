//! Replay of chosen events.

use rheo_core::{Backend, Partition, Replay, Start};

use super::{all_acked, replay_events, sequence};
use crate::expect::{Outcome, expect_eq, expect_invalid};
use crate::fixture::Fixture;
use crate::scene::{expect_first_attempts, sequences_of};
use crate::states::expect_none_dead;
use crate::step::Step;

/// Whoever picks an event wants it delivered, whatever became of it.
pub(super) async fn chosen_events_are_reopened_in_every_state(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let leases = group.bring_into_every_state().await?;

    replay_events(&group, leases.iter().rev().map(|lease| lease.event.id)).await?;

    group.expect_stale(&leases[1]).await?;
    expect_first_attempts(&group.expect_claimable("b", &[1, 2, 3, 4, 5]).await?)
}

/// What was tried again and again is what one picks, once the cause is repaired.
pub(super) async fn chosen_events_at_any_attempt_are_reopened(t: Fixture) -> Outcome {
    let group = t.stream(1).await?.group_of_attempts("billing", 3).await?;
    let events = group.stream.append(6).await?;
    let mut leases = group.fetch_exactly("a", 6).await?;
    for done in 0..2 {
        // At attempt 1 the first is acked and the second waits; at attempt 2 the third and the fourth.
        Step::Ack.on(&t.backend, &leases[0]).await?;
        group.retry_in_an_hour(&leases[1]).await?;
        for lease in &leases[2..] {
            Step::Retry.on(&t.backend, lease).await?;
        }
        leases = group.fetch_exactly("a", 4 - 2 * done).await?;
    }
    // 5 and 6 are at their last attempt: one is used up, the other leased.
    Step::Retry.on(&t.backend, &leases[0]).await?;
    replay_events(&group, events.iter().map(|event| event.id)).await?;

    group.expect_stale(&leases[1]).await?;
    expect_none_dead(&group).await?;
    let again = group.expect_claimable("b", &[1, 2, 3, 4, 5, 6]).await?;
    expect_first_attempts(&again)
}

/// Whoever picks events wants no others.
pub(super) async fn events_that_were_not_chosen_stay_as_they_are(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let extra = group.stream.append(2).await?;
    group.ack(&group.fetch_exactly("a", 2).await?).await?;
    let leases = group.bring_into_every_state().await?;

    replay_events(&group, [extra[1].id]).await?;

    group.expect_current(&leases[1]).await?;
    group.expect_claimable("b", &[2, 7]).await?;
    Ok(())
}

/// It will be delivered in its turn, once, with all that is before it.
pub(super) async fn a_chosen_event_that_was_never_claimed_stays_as_it_is(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let events = group.stream.append(5).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.ack(&leases[..1]).await?;

    replay_events(&group, [events[3].id]).await?;

    group.expect_current(&leases[1]).await?;
    let rest = group.expect_claimable("b", &[3, 4, 5]).await?;
    expect_first_attempts(&rest)?;
    group.ack(&rest).await?;
    group.expect_nothing("b").await
}

/// One event from before the group was begun, without all the others.
pub(super) async fn a_chosen_event_below_the_start_is_delivered(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let events = stream.append(4).await?;
    let group = stream
        .group_from("billing", Start::AfterSequence(sequence(3)?))
        .await?;

    replay_events(&group, [events[1].id]).await?;

    let leases = group.expect_claimable("a", &[2, 4]).await?;
    expect_first_attempts(&leases)?;
    group.ack(&leases).await?;
    group.expect_nothing("a").await
}

/// A list with a mistake in it is refused as a whole, so that it can be corrected and given again.
pub(super) async fn an_unknown_id_reopens_nothing(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let events = group.stream.append(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.ack(&leases[..1]).await?;
    let ids = vec![events[0].id, events[1].id, t.unknown_id()];

    for replay in [Replay::Events(ids), Replay::Events(vec![t.unknown_id()])] {
        let result = t.backend.replay(&group.stream.name, &group.name, &replay);
        expect_invalid(result.await, "events")?;
    }

    group.expect_nothing("b").await?;
    group.expect_current(&leases[1]).await
}

/// An event of another stream is none of this one.
pub(super) async fn an_id_from_another_stream_is_unknown(t: Fixture) -> Outcome {
    let group = all_acked(&t, 1).await?;
    let elsewhere = t.group().await?;
    let lease = elsewhere.append_and_fetch_one("a").await?;
    elsewhere.ack(std::slice::from_ref(&lease)).await?;
    let foreign = lease.event.id;

    let replay = Replay::Events(vec![foreign]);
    let result = t.backend.replay(&group.stream.name, &group.name, &replay);

    expect_invalid(result.await, "events")?;
    group.expect_nothing("a").await?;
    elsewhere.expect_nothing("a").await
}

/// Lists of ids from logs and tickets hold the same id twice.
pub(super) async fn an_id_given_twice_counts_once(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let events = group.stream.append(3).await?;
    group.ack(&group.fetch_exactly("a", 3).await?).await?;

    replay_events(&group, [events[1].id, events[2].id, events[1].id]).await?;

    let leases = group.expect_claimable("a", &[2, 3]).await?;
    group.ack(&leases).await?;
    group.expect_nothing("a").await
}

/// A search that found nothing replays nothing.
pub(super) async fn no_ids_change_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.ack(&leases[..1]).await?;

    replay_events(&group, []).await?;

    group.expect_nothing("b").await?;
    group.expect_current(&leases[1]).await
}

/// The chosen events are holes in what was done.
pub(super) async fn the_frontier_falls_to_below_the_lowest_chosen_event(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let events = group.stream.append(5).await?;
    group.ack(&group.fetch_exactly("a", 5).await?).await?;

    replay_events(&group, [events[3].id, events[1].id]).await?;
    group.expect_frontier(1).await?;

    let leases = group.expect_claimable("a", &[2, 4]).await?;
    group.ack(&leases[..1]).await?;
    group.expect_frontier(3).await?;
    group.ack(&leases[1..]).await?;
    group.expect_frontier(5).await
}

/// What is above the chosen event and below the start is still not to be done.
pub(super) async fn below_the_start_the_frontier_falls_to_below_the_chosen_event(
    t: Fixture,
) -> Outcome {
    let stream = t.stream(1).await?;
    let events = stream.append(4).await?;
    let start = Start::AfterSequence(sequence(3)?);
    let group = stream.group_from("billing", start).await?;

    replay_events(&group, [events[1].id]).await?;
    group.expect_frontier(1).await?;

    group.ack(&[group.fetch_one("a").await?]).await?;
    group.expect_frontier(3).await
}

/// Sequences are the same in every partition; ids are not.
pub(super) async fn chosen_events_are_reopened_in_their_own_partitions(t: Fixture) -> Outcome {
    let group = t.stream(3).await?.group("billing").await?;
    let mut events = Vec::new();
    for partition in 0..3 {
        events.push(group.stream.append_to(Partition::new(partition), 2).await?);
    }
    group.ack(&group.fetch_exactly("a", 6).await?).await?;

    replay_events(&group, [events[2][0].id, events[0][1].id]).await?;

    group.expect_claimable_at("a", &[(0, 2), (2, 1)]).await?;
    Ok(())
}

/// Order within a partition is by sequence, however an event came to be claimable.
pub(super) async fn reopened_events_come_before_later_ones_in_their_order(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let events = group.stream.append(6).await?;
    group.ack(&group.fetch_exactly("a", 5).await?).await?;

    replay_events(&group, [events[3].id, events[1].id]).await?;

    let mut order = Vec::new();
    for _ in 0..3 {
        order.extend(sequences_of(&[group.fetch_one("a").await?]));
    }
    expect_eq("the order of delivery", order, vec![2, 4, 6])
}
