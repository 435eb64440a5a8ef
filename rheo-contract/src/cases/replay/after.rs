//! Replay after a sequence.

use std::collections::BTreeMap;

use rheo_core::{
    Backend, Lease, Partition, Partitions, Replay, RetryOptions, RetryOutcome, Sequence, Start,
};

use super::{all_acked, replay_events, sequence};
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::{Group, P0, P1, expect_first_attempts};
use crate::states::{OldDeadlines, expect_again, twelve_done};

/// Whoever processed up to 2 safely asks for what comes after 2, and wants neither 2 nor to miss 3.
pub(super) async fn replay_after_a_sequence_is_exclusive(t: Fixture) -> Outcome {
    let group = all_acked(&t, 4).await?;

    group.replay_after(2).await?;

    group.expect_claimable("a", &[3, 4]).await?;
    Ok(())
}

/// A replay after a bug fix must bring back what went wrong as well as what seemed to go well.
pub(super) async fn replay_reopens_what_was_acked_and_what_is_dead(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    let leases = group.fetch_exactly("a", 4).await?;
    group.ack(&leases[..2]).await?;
    group.reject(&leases[2], "broken").await?;
    group.reject(&leases[3], "broken").await?;

    group.replay_after(0).await?;

    group.expect_claimable("a", &[1, 2, 3, 4]).await?;
    Ok(())
}

/// "Claimable at once" goes for what waits for a retry too: its wait belongs to the past.
pub(super) async fn replay_ends_the_wait_of_a_retry(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    for lease in group.fetch_exactly("a", 2).await? {
        group.retry_in_an_hour(&lease).await?;
    }
    group.expect_nothing("a").await?;

    group.replay_after(1).await?;

    expect_first_attempts(&group.expect_claimable("a", &[2]).await?)
}

/// A consumer that was at work during the replay must not finish an event that starts anew.
pub(super) async fn a_replayed_lease_settles_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;

    group.replay_after(0).await?;

    group.expect_stale(&leases[0]).await?;
    group.expect_stale(&leases[1]).await?;
    expect_first_attempts(&group.expect_claimable("b", &[1, 2]).await?)
}

/// An expired lease that nobody reclaimed is still current; a replay takes that away.
pub(super) async fn an_expired_lease_is_replayed_too(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;

    group.replay_after(0).await?;

    group.expect_stale(&lease).await?;
    expect_first_attempts(&group.expect_claimable("b", &[1]).await?)
}

/// The new claim has the event and the attempt of the old one: only the lease id tells them apart.
pub(super) async fn a_replayed_lease_is_stale_after_the_event_was_claimed_again(
    t: Fixture,
) -> Outcome {
    let group = t.group_with_events(1).await?;
    let old = group.fetch_one("a").await?;
    group.replay_after(0).await?;
    let current = group.fetch_one("a").await?;

    group.expect_stale(&old).await?;
    group.expect_current(&current).await?;
    group.ack(&[current]).await?;
    group.expect_nothing("a").await
}

/// What was leased before ends when it would have; by then it is of no concern to anybody.
pub(super) async fn leases_from_before_a_replay_hold_up_nothing(t: Fixture) -> Outcome {
    let mut groups = Vec::new();
    let mut last = t.now();
    for are_chosen in [false, true] {
        let group = t.group_with_events(3).await?;
        let old = group.fetch_briefly("a", 3).await?;
        let ids = old.iter().map(|lease| lease.event.id).collect();
        let replay = match are_chosen {
            false => Replay::after(Sequence::ZERO),
            true => Replay::Events(ids),
        };
        group.replay(&replay).await?;
        let current = group.fetch_exactly("b", 3).await?;
        group.ack(&current[..1]).await?;
        last = old[2].expires_at;
        groups.push((group, current));
    }
    t.until(last).await;

    for (group, current) in groups {
        group.expect_nothing("c").await?;
        t.backend.retry(&current[1], &RetryOptions::new()).await?;
        let again = group.expect_claimable("c", &[2]).await?;
        expect_eq("the attempt", again[0].attempt, 2)?;
    }
    Ok(())
}

/// The replay follows a fix: the event has all its attempts again.
pub(super) async fn attempts_begin_again_after_a_replay(t: Fixture) -> Outcome {
    let group = t.stream(1).await?.group_of_attempts("billing", 2).await?;
    group.stream.append(3).await?;
    for lease in group.fetch_exactly("a", 3).await? {
        t.backend.retry(&lease, &RetryOptions::new()).await?;
    }
    let second = group.fetch_exactly("a", 3).await?;
    group.ack(&second[..1]).await?;
    group.reject(&second[1], "broken").await?;

    group.replay_after(0).await?;

    let leases = group.expect_claimable("a", &[1, 2, 3]).await?;
    expect_first_attempts(&leases)?;
    for lease in &leases {
        let outcome = t.backend.retry(lease, &RetryOptions::new()).await?;
        expect_eq(
            "the outcome of a retry at attempt 1 of 2",
            outcome,
            RetryOutcome::Retrying,
        )?;
    }
    Ok(())
}

/// Work on events at or below the sequence goes on as if nothing had happened.
pub(super) async fn what_is_at_or_below_the_sequence_stays_as_it_is(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    let leases = group.fetch_exactly("a", 5).await?;
    group.ack(&leases[..1]).await?;
    group.retry_in_an_hour(&leases[1]).await?;
    group.reject(&leases[2], "broken").await?;

    group.replay_after(4).await?;

    group.expect_current(&leases[3]).await?;
    group.expect_stale(&leases[4]).await?;
    group.expect_claimable("b", &[5]).await?;
    group.ack(&leases[3..4]).await
}

/// A group that was begun too late can be sent back before its start.
pub(super) async fn replay_below_the_start_moves_the_start_back(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(5).await?;
    let group = stream
        .group_from("billing", Start::AfterSequence(sequence(3)?))
        .await?;
    group.ack(&[group.fetch_one("a").await?]).await?;

    group.replay_after(1).await?;

    let leases = group.expect_claimable("a", &[2, 3, 4, 5]).await?;
    expect_first_attempts(&leases)
}

/// The same for a group that has seen nothing at all.
pub(super) async fn a_group_that_started_at_the_end_can_go_back(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(3).await?;
    let group = stream.group_from("billing", Start::End).await?;
    group.expect_nothing("a").await?;

    group.replay_after(0).await?;

    group.expect_claimable("a", &[1, 2, 3]).await?;
    Ok(())
}

/// Two partitions with two events each: the first acked, the second leased.
async fn two_partitions(t: &Fixture) -> Outcome<(Group, Vec<Lease>)> {
    let group = t.stream(2).await?.group("billing").await?;
    group.stream.append_to(P0, 2).await?;
    group.stream.append_to(P1, 2).await?;
    let mut leases = group.fetch_exactly("a", 4).await?;
    leases.sort_by_key(|lease| (lease.event.sequence, lease.event.partition));
    let open = leases.split_off(2);
    group.ack(&leases).await?;
    Ok((group, open))
}

/// A replay for the sake of one partition must not repeat the work of all others.
pub(super) async fn replay_of_one_partition_leaves_the_others(t: Fixture) -> Outcome {
    let (group, open) = two_partitions(&t).await?;

    let replay = Replay::After {
        sequence: Sequence::ZERO,
        partitions: Partitions::from(P1),
    };
    group.replay(&replay).await?;

    group.expect_current(&open[0]).await?;
    group.expect_stale(&open[1]).await?;
    group.expect_claimable_at("b", &[(1, 1), (1, 2)]).await?;
    Ok(())
}

/// The positions of an external snapshot are one per partition.
pub(super) async fn each_partition_is_replayed_after_its_own_sequence(t: Fixture) -> Outcome {
    let group = t.stream(3).await?.group("billing").await?;
    for partition in 0..3 {
        group.stream.append_to(Partition::new(partition), 3).await?;
    }
    group.ack(&group.fetch_exactly("a", 9).await?).await?;

    let sequences = BTreeMap::from([(P0, sequence(2)?), (Partition::new(2), sequence(1)?)]);
    group.replay(&Replay::AfterEach(sequences)).await?;

    group
        .expect_claimable_at("a", &[(0, 3), (2, 2), (2, 3)])
        .await?;
    Ok(())
}

/// A selection that came out empty selects nothing, not everything.
pub(super) async fn replay_of_no_partition_changes_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.ack(&leases[..1]).await?;

    let replay = Replay::After {
        sequence: Sequence::ZERO,
        partitions: Partitions::only([]),
    };
    group.replay(&replay).await?;
    group.replay(&Replay::AfterEach(BTreeMap::new())).await?;

    group.expect_nothing("b").await?;
    group.expect_current(&leases[1]).await
}

/// A dead letter that is delivered again is none any more.
pub(super) async fn dead_letters_above_are_gone_and_those_below_stay(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    for lease in group.fetch_exactly("a", 3).await? {
        group.reject(&lease, "broken").await?;
    }
    let mut before = group.first_dead_letters().await?;
    expect_eq("the number of dead letters", before.len(), 3)?;

    group.replay_after(1).await?;

    before.truncate(1);
    expect_eq(
        "the dead letters",
        group.first_dead_letters().await?,
        before,
    )
}

/// What dies again has died once, this time, for this reason.
pub(super) async fn a_replayed_dead_letter_that_dies_again_is_one_dead_letter(
    t: Fixture,
) -> Outcome {
    let group = t.group_with_events(1).await?;
    let first = group.fetch_one("a").await?;
    t.backend.retry(&first, &RetryOptions::new()).await?;
    group.reject(&group.fetch_one("a").await?, "first").await?;
    group.replay_after(0).await?;
    group.reject(&group.fetch_one("a").await?, "second").await?;

    let dead = group.dead_letters().await?;
    let seen: Vec<(u32, &str)> = dead
        .iter()
        .map(|d| (d.attempt, d.reason.as_str()))
        .collect();
    expect_eq(
        "attempt and reason of the dead letters",
        seen,
        vec![(1, "second")],
    )
}

/// The first replay did not help: there is another, also while the first is being worked off.
pub(super) async fn a_replay_can_be_repeated(t: Fixture) -> Outcome {
    let group = all_acked(&t, 3).await?;
    group.replay_after(1).await?;
    group.replay_after(1).await?;
    let again = group.expect_claimable("a", &[2, 3]).await?;
    group.ack(&again[..1]).await?;

    group.replay_after(1).await?;

    group.expect_stale(&again[1]).await?;
    let leases = group.expect_claimable("a", &[2, 3]).await?;
    group.ack(&leases).await?;
    group.expect_nothing("a").await
}

/// A lease or a delay from before must neither reopen what is done since nor hide what is to be done.
pub(super) async fn old_deadlines_mean_nothing_after_a_replay(t: Fixture) -> Outcome {
    let after = OldDeadlines::of(&t, async |group| group.replay_after(0).await).await?;
    let chosen = OldDeadlines::of(&t, async |group| {
        let log = group.stream.read(P0).await?;
        replay_events(group, log.iter().map(|event| event.id)).await
    })
    .await?;

    after.expect_nothing_of_them().await?;
    chosen.expect_nothing_of_them().await
}

/// A group is one, over however many partitions; some have nothing to be delivered again.
pub(super) async fn replay_reaches_each_of_twelve_partitions(t: Fixture) -> Outcome {
    let (group, events) = twelve_done(&t).await?;
    group.replay_after(1).await?;
    expect_again(&group, &events, |_, sequence| sequence > 1).await?;

    let selected = [0, 1, 4, 8, 11];
    let replay = Replay::After {
        sequence: sequence(0)?,
        partitions: Partitions::only(selected.map(Partition::new)),
    };
    group.replay(&replay).await?;
    expect_again(&group, &events, |partition, _| {
        selected.contains(&partition)
    })
    .await?;

    let named = [(0, 1), (2, 0), (3, 0), (5, 2), (7, 3), (10, 1), (11, 0)];
    let mut each = BTreeMap::new();
    for (partition, after) in named {
        each.insert(Partition::new(partition), sequence(after)?);
    }
    group.replay(&Replay::AfterEach(each)).await?;
    let is_named = |partition, sequence| {
        let is_above = |(of, after): &(u32, u64)| *of == partition && sequence > *after;
        named.iter().any(is_above)
    };
    expect_again(&group, &events, is_named).await?;

    let firsts = events.iter().filter(|event| event.sequence.get() == 1);
    replay_events(&group, firsts.map(|event| event.id)).await?;
    expect_again(&group, &events, |_, sequence| sequence == 1).await
}
