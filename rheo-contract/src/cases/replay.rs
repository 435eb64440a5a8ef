//! Replay: going back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rheo_core::{
    Backend, ErrorKind, EventId, Gate, GroupName, Guarantee, Lease, MaxAttempts, OptionalOperation,
    Partition, Partitions, Replay, RetryOptions, RetryOutcome, Sequence, Start, StreamName,
};
use tokio::task::JoinSet;

use crate::case::{Case, case};
use crate::expect::{Outcome, expect_empty, expect_eq, expect_error, expect_invalid};
use crate::fixture::Fixture;
use crate::scene::{Group, P0, P1, expect_first_attempts, finished, sequences_of};

const REPLAY: Gate = Gate::Guarantee(Guarantee::Replay);
const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);
const DEAD_LETTERS: Gate = Gate::Operation(OptionalOperation::DeadLetters);

pub(crate) const CASES: &[Case] = &[
    case!(
        "RPL-1" => replay_after_a_sequence_is_exclusive,
        "the events are reopened with >= where it must be >"
    ),
    case!(
        "RPL-1" => replay_reopens_what_was_acked_and_what_is_dead,
        "only one of the two kinds of finished deliveries is deleted"
    ),
    case!(
        "RPL-1" => replay_ends_the_wait_of_a_retry,
        "the time at which the retry becomes due is kept"
    ),
    case!(
        "RPL-1" => a_replayed_lease_settles_nothing,
        "the delivery is reopened with its old lease id, or settling does not look at the state"
    ),
    case!(
        "RPL-1" => an_expired_lease_is_replayed_too,
        "expired leases are counted neither among the leased nor among the finished deliveries"
    ),
    case!(
        "RPL-1" => a_replayed_lease_is_stale_after_the_event_was_claimed_again,
        "lease ids are made of event and attempt, which are the same again after a replay"
    ),
    case!(
        "RPL-1" => attempts_begin_again_after_a_replay,
        "the attempt counter is kept, so that replayed events soon are dead letters"
    ),
    case!(
        "RPL-1" => what_is_at_or_below_the_sequence_stays_as_it_is,
        "the leases of the whole partition are dropped, not just those above the sequence"
    ),
    case!(
        "RPL-1" => replay_below_the_start_moves_the_start_back,
        "the sequence is bounded by the group's start"
    ),
    case!(
        "RPL-1" => a_group_that_started_at_the_end_can_go_back,
        "events from before the group was created have no delivery state that could be reopened"
    ),
    case!(
        "RPL-1" => replay_of_one_partition_leaves_the_others,
        "the selection of partitions is ignored"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-1" => each_partition_is_replayed_after_its_own_sequence,
        "one sequence is used for all partitions, or those that are not named are replayed as well"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-1" => replay_of_no_partition_changes_nothing,
        "an empty list of partitions becomes a query without a filter"
    ),
    case!(
        "RPL-1" => dead_letters_above_are_gone_and_those_below_stay,
        "dead letters are kept in a table of their own that replay does not touch"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "RPL-1" => a_replayed_dead_letter_that_dies_again_is_one_dead_letter,
        "the second dead letter is ignored because the first one's row is still there"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "RPL-1" => a_replay_can_be_repeated,
        "replay marks events as replayed, and a mark is set only once"
    ),
    case!(
        "RPL-2" => the_frontier_falls_to_the_sequence,
        "the frontier is stored and only ever raised"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-2" => a_lower_frontier_stays_where_it_is,
        "replay sets the frontier to the sequence, also upwards over a hole"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-2" => below_the_start_the_frontier_falls_to_the_sequence,
        "the frontier is bounded by the group's start"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-2" => replays_at_random_follow_the_rules,
        "replay, reset and settling each keep their own idea of what is done"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-3" => replay_beyond_what_was_claimed_skips_nothing,
        "replay sets the group's position, also forward"
    ),
    case!(
        "RPL-3" => replay_before_anything_was_claimed_changes_nothing,
        "replay sets the group's position, although nothing was delivered yet"
    ),
    case!(
        "RPL-3" => replay_on_an_empty_stream_skips_no_later_event,
        "the position is set beyond the high watermark, so that what is appended later is skipped"
    ),
    case!(
        "RPL-3" => replay_ahead_of_the_start_skips_nothing,
        "the sequence is compared with 0 instead of the group's start where nothing was claimed"
    ),
    case!(
        "RPL-3" => replay_never_raises_the_frontier,
        "replay sets the frontier to the sequence that was given"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-4" => chosen_events_are_reopened_in_every_state,
        "only acked events are looked for, not leased, waiting and dead ones"
    ),
    case!(
        "RPL-4" => events_that_were_not_chosen_stay_as_they_are,
        "everything above the lowest chosen event is replayed"
    ),
    case!(
        "RPL-4" => a_chosen_event_that_was_never_claimed_stays_as_it_is,
        "the group's position jumps to the chosen event, or the event is delivered twice"
    ),
    case!(
        "RPL-4" => a_chosen_event_below_the_start_is_delivered,
        "events below the group's start are ignored"
    ),
    case!(
        "RPL-4" => an_unknown_id_reopens_nothing,
        "ids are looked up one by one while events are reopened, without a transaction"
    ),
    case!(
        "RPL-4" => an_id_from_another_stream_is_unknown,
        "ids are looked up without the stream"
    ),
    case!(
        "RPL-4" => an_id_given_twice_counts_once,
        "the number of ids is compared with the number of rows found, or an insert collides"
    ),
    case!(
        "RPL-4" => no_ids_change_nothing,
        "an empty list of ids becomes a query without a filter"
    ),
    case!(
        "RPL-4" => the_frontier_falls_to_below_the_lowest_chosen_event,
        "the frontier is taken from the first id that is given, or is off by one"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-4" => below_the_start_the_frontier_falls_to_below_the_chosen_event,
        "the frontier is bounded by the group's start"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-4" => chosen_events_are_reopened_in_their_own_partitions,
        "events are reopened by their sequence, whatever the partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DLV-4" => reopened_events_come_before_later_ones_in_their_order,
        "reopened events are queued behind the rest, or in the order in which they were given"
    )
    .needs(&[REPLAY]),
    case!(
        "RPL-6" => replay_leaves_other_groups_alone,
        "delivery state is found by stream and sequence, without the group"
    ),
    case!(
        "RPL-6" => replay_leaves_the_log_alone,
        "replay appends the events again"
    ),
    case!(
        "RPL-7" => acks_that_race_a_replay_lose_no_event,
        "finished and leased deliveries are reopened in two steps, and an ack comes in between"
    ),
    case!(
        "RPL-7" => fetches_that_race_a_replay_lose_no_event,
        "the position is read, changed and written back while a fetch moves it"
    ),
    case!(
        "RPL-7" => no_batch_of_leases_from_before_settles_after,
        "settling a batch checks the deliveries' state but not their lease ids"
    ),
    case!(
        "ERR-6" => replay_looks_for_the_stream_before_the_group,
        "a missing group or stream is no row to update, which is taken for success"
    )
    .needs(&[REPLAY]),
    case!(
        "ERR-8" => replay_of_a_partition_out_of_range_reopens_nothing,
        "partitions are checked one by one while they are replayed"
    )
    .needs(&[REPLAY]),
];

fn sequence(number: u64) -> Outcome<Sequence> {
    Ok(Sequence::new(number)?)
}

/// A group that acked sequences 1 to `count`, which are all there are.
async fn all_acked(t: &Fixture, count: usize) -> Outcome<Group> {
    let group = t.group_with_events(count).await?;
    group.ack(&group.fetch_exactly("a", count).await?).await?;
    Ok(group)
}

/// Replays these events.
async fn replay_events(group: &Group, ids: impl IntoIterator<Item = EventId>) -> Outcome {
    group
        .replay(&Replay::Events(ids.into_iter().collect()))
        .await
}

/// Whoever processed up to 2 safely asks for what comes after 2, and wants neither 2 nor to miss 3.
async fn replay_after_a_sequence_is_exclusive(t: Fixture) -> Outcome {
    let group = all_acked(&t, 4).await?;

    group.replay_after(2).await?;

    group.expect_claimable("a", &[3, 4]).await?;
    Ok(())
}

/// A replay after a bug fix must bring back what went wrong as well as what seemed to go well.
async fn replay_reopens_what_was_acked_and_what_is_dead(t: Fixture) -> Outcome {
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
async fn replay_ends_the_wait_of_a_retry(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    for lease in group.fetch_exactly("a", 2).await? {
        group.retry_in_an_hour(&lease).await?;
    }
    group.expect_nothing("a").await?;

    group.replay_after(1).await?;

    expect_first_attempts(&group.expect_claimable("a", &[2]).await?)
}

/// A consumer that was at work during the replay must not finish an event that starts anew.
async fn a_replayed_lease_settles_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;

    group.replay_after(0).await?;

    group.expect_stale(&leases[0]).await?;
    group.expect_stale(&leases[1]).await?;
    expect_first_attempts(&group.expect_claimable("b", &[1, 2]).await?)
}

/// An expired lease that nobody reclaimed is still current; a replay takes that away.
async fn an_expired_lease_is_replayed_too(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;

    group.replay_after(0).await?;

    group.expect_stale(&lease).await?;
    expect_first_attempts(&group.expect_claimable("b", &[1]).await?)
}

/// The new claim has the event and the attempt of the old one: only the lease id tells them apart.
async fn a_replayed_lease_is_stale_after_the_event_was_claimed_again(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let old = group.fetch_one("a").await?;
    group.replay_after(0).await?;
    let current = group.fetch_one("a").await?;

    group.expect_stale(&old).await?;
    group.expect_current(&current).await?;
    group.ack(&[current]).await?;
    group.expect_nothing("a").await
}

/// The replay follows a fix: the event has all its attempts again.
async fn attempts_begin_again_after_a_replay(t: Fixture) -> Outcome {
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
async fn what_is_at_or_below_the_sequence_stays_as_it_is(t: Fixture) -> Outcome {
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
async fn replay_below_the_start_moves_the_start_back(t: Fixture) -> Outcome {
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
async fn a_group_that_started_at_the_end_can_go_back(t: Fixture) -> Outcome {
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
async fn replay_of_one_partition_leaves_the_others(t: Fixture) -> Outcome {
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
async fn each_partition_is_replayed_after_its_own_sequence(t: Fixture) -> Outcome {
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
async fn replay_of_no_partition_changes_nothing(t: Fixture) -> Outcome {
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
async fn dead_letters_above_are_gone_and_those_below_stay(t: Fixture) -> Outcome {
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
async fn a_replayed_dead_letter_that_dies_again_is_one_dead_letter(t: Fixture) -> Outcome {
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
async fn a_replay_can_be_repeated(t: Fixture) -> Outcome {
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

/// Progress says what is left to do: after a replay that is everything above the sequence.
async fn the_frontier_falls_to_the_sequence(t: Fixture) -> Outcome {
    let group = all_acked(&t, 5).await?;

    group.replay_after(2).await?;
    group.expect_frontier(2).await?;

    let leases = group.expect_claimable("a", &[3, 4, 5]).await?;
    group.ack(&leases[2..]).await?;
    group.expect_frontier(2).await?;
    group.ack(&leases[..1]).await?;
    group.expect_frontier(3).await?;
    group.ack(&leases[1..2]).await?;
    group.expect_frontier(5).await
}

/// A replay above a hole leaves the hole where it is.
async fn a_lower_frontier_stays_where_it_is(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    let leases = group.fetch_exactly("a", 5).await?;
    group.ack(&leases[1..]).await?;

    group.replay_after(3).await?;
    group.expect_frontier(0).await?;

    group.ack(&leases[..1]).await?;
    group.expect_frontier(3).await
}

/// What is now to be delivered counts as work to do, also where it never was before.
async fn below_the_start_the_frontier_falls_to_the_sequence(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(5).await?;
    let group = stream.group_from("billing", Start::End).await?;

    group.replay_after(1).await?;
    group.expect_frontier(1).await?;

    let leases = group.fetch_exactly("a", 4).await?;
    group.ack(&leases[..2]).await?;
    group.expect_frontier(3).await?;
    group.ack(&leases[2..]).await?;
    group.expect_frontier(5).await
}

/// What a delivery is to a group whose leases do not expire: all that the random case needs to know.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Claimable, after that many attempts.
    Open(u32),
    Leased,
    Done,
}

/// Everything at once, compared step by step with a plain list of states.
async fn replays_at_random_follow_the_rules(t: Fixture) -> Outcome {
    let group = t.stream(1).await?.group_of_attempts("billing", 3).await?;
    let mut events: Vec<EventId> = Vec::new();
    let mut states: Vec<State> = Vec::new();
    let mut leases: Vec<Lease> = Vec::new();
    for _ in 0..150 {
        let any = t.random(states.len() as u64 + 1) as usize;
        match t.random(10) {
            0 | 1 => {
                events.extend(group.stream.append(1).await?.iter().map(|event| event.id));
                states.push(State::Open(0));
            }
            2..=4 => {
                let is_open = |state: &State| matches!(state, State::Open(_));
                let expected = states.iter().position(is_open);
                let fetched = group.fetch("a", 1).await?;
                let seen: Vec<(u64, u32)> = fetched
                    .iter()
                    .map(|lease| (lease.event.sequence.get(), lease.attempt))
                    .collect();
                let expected = match expected.map(|at| (at, states[at])) {
                    Some((at, State::Open(attempts))) => {
                        states[at] = State::Leased;
                        vec![(at as u64 + 1, attempts + 1)]
                    }
                    _ => vec![],
                };
                expect_eq(
                    "sequence and attempt of what is claimed next",
                    seen,
                    expected,
                )?;
                leases.extend(fetched);
            }
            5..=7 if !leases.is_empty() => {
                let lease = leases.swap_remove(t.random(leases.len() as u64) as usize);
                let at = lease.event.sequence.get() as usize - 1;
                states[at] = match t.random(3) {
                    0 => {
                        let outcome = t.backend.retry(&lease, &RetryOptions::new()).await?;
                        match outcome {
                            RetryOutcome::Retrying => State::Open(lease.attempt),
                            RetryOutcome::DeadLettered => State::Done,
                        }
                    }
                    1 => {
                        group.reject(&lease, "broken").await?;
                        State::Done
                    }
                    _ => {
                        t.backend.ack(&lease).await?;
                        State::Done
                    }
                };
            }
            8 => {
                group.replay_after(any as u64).await?;
                states[any..].fill(State::Open(0));
                leases.retain(|lease| lease.event.sequence.get() as usize <= any);
            }
            9 if any < states.len() => {
                replay_events(&group, [events[any]]).await?;
                states[any] = State::Open(0);
                leases.retain(|lease| lease.event.id != events[any]);
            }
            _ => {}
        }
        let done = states.iter().take_while(|state| **state == State::Done);
        group.expect_frontier(done.count() as u64).await?;
    }
    group.ack(&leases).await
}

/// A replay that was meant for a later state, or a group that lags behind: nothing may be lost.
async fn replay_beyond_what_was_claimed_skips_nothing(t: Fixture) -> Outcome {
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
async fn replay_before_anything_was_claimed_changes_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;

    for after in [0, 2, 3, Sequence::MAX.get()] {
        group.replay_after(after).await?;
    }

    expect_first_attempts(&group.expect_claimable("a", &[1, 2, 3]).await?)
}

/// The first events of a stream must reach a group that was replayed too early.
async fn replay_on_an_empty_stream_skips_no_later_event(t: Fixture) -> Outcome {
    let group = t.group().await?;

    group.replay_after(0).await?;
    group.replay_after(2).await?;
    group.stream.append(3).await?;

    group.expect_claimable("a", &[1, 2, 3]).await?;
    Ok(())
}

/// Neither at the start nor above it is there anything to reopen.
async fn replay_ahead_of_the_start_skips_nothing(t: Fixture) -> Outcome {
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
async fn replay_never_raises_the_frontier(t: Fixture) -> Outcome {
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

/// Whoever picks an event wants it delivered, whatever became of it.
async fn chosen_events_are_reopened_in_every_state(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let leases = group.bring_into_every_state().await?;

    replay_events(&group, leases.iter().rev().map(|lease| lease.event.id)).await?;

    group.expect_stale(&leases[1]).await?;
    expect_first_attempts(&group.expect_claimable("b", &[1, 2, 3, 4, 5]).await?)
}

/// Whoever picks events wants no others.
async fn events_that_were_not_chosen_stay_as_they_are(t: Fixture) -> Outcome {
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
async fn a_chosen_event_that_was_never_claimed_stays_as_it_is(t: Fixture) -> Outcome {
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
async fn a_chosen_event_below_the_start_is_delivered(t: Fixture) -> Outcome {
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
async fn an_unknown_id_reopens_nothing(t: Fixture) -> Outcome {
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
async fn an_id_from_another_stream_is_unknown(t: Fixture) -> Outcome {
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
async fn an_id_given_twice_counts_once(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let events = group.stream.append(3).await?;
    group.ack(&group.fetch_exactly("a", 3).await?).await?;

    replay_events(&group, [events[1].id, events[2].id, events[1].id]).await?;

    let leases = group.expect_claimable("a", &[2, 3]).await?;
    group.ack(&leases).await?;
    group.expect_nothing("a").await
}

/// A search that found nothing replays nothing.
async fn no_ids_change_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.ack(&leases[..1]).await?;

    replay_events(&group, []).await?;

    group.expect_nothing("b").await?;
    group.expect_current(&leases[1]).await
}

/// The chosen events are holes in what was done.
async fn the_frontier_falls_to_below_the_lowest_chosen_event(t: Fixture) -> Outcome {
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
async fn below_the_start_the_frontier_falls_to_below_the_chosen_event(t: Fixture) -> Outcome {
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
async fn chosen_events_are_reopened_in_their_own_partitions(t: Fixture) -> Outcome {
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
async fn reopened_events_come_before_later_ones_in_their_order(t: Fixture) -> Outcome {
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

/// The replay of one group is nobody else's business.
async fn replay_leaves_other_groups_alone(t: Fixture) -> Outcome {
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
async fn replay_leaves_the_log_alone(t: Fixture) -> Outcome {
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

/// Each ack comes before the replay, and its event is reopened, or after, and is refused.
async fn acks_that_race_a_replay_lose_no_event(t: Fixture) -> Outcome {
    let group = t.group_with_events(16).await?;
    let leases = group.fetch_exactly("a", 16).await?;
    let has_begun = Arc::new(AtomicBool::new(false));

    let mut tasks = JoinSet::new();
    for (number, lease) in leases.iter().take(15).cloned().enumerate() {
        let (backend, has_begun) = (t.backend.clone(), Arc::clone(&has_begun));
        tasks.spawn(async move {
            // The first half goes ahead, so that there is something acked already.
            while number >= 8 && !has_begun.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
            let result = backend.ack(&lease).await;
            if result.is_err() {
                expect_error(result, ErrorKind::StaleLease)?;
            }
            Ok(())
        });
    }
    let replayed = group.clone();
    tasks.spawn(async move {
        has_begun.store(true, Ordering::SeqCst);
        replayed.replay_after(0).await
    });
    finished(tasks).await?;

    let all: Vec<u64> = (1..=16).collect();
    group.expect_claimable("b", &all).await?;
    for lease in &leases {
        group.expect_stale(lease).await?;
    }
    Ok(())
}

/// Consumers claim and give back while the replay runs; none of their claims falls in between.
async fn fetches_that_race_a_replay_lose_no_event(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream
        .group_of_attempts("billing", MaxAttempts::MAX)
        .await?;
    stream.append(12).await?;
    let held = group.fetch_exactly("a", 8).await?;
    let is_over = Arc::new(AtomicBool::new(false));

    let mut tasks = JoinSet::new();
    for number in 0..4 {
        let (group, is_over) = (group.clone(), Arc::clone(&is_over));
        tasks.spawn(async move {
            while !is_over.load(Ordering::SeqCst) {
                for lease in group.fetch(&format!("consumer-{number}"), 1).await? {
                    let result = group.backend.retry(&lease, &RetryOptions::new()).await;
                    if result.is_err() {
                        expect_error(result, ErrorKind::StaleLease)?;
                    }
                }
                tokio::task::yield_now().await;
            }
            Ok(())
        });
    }
    let replayed = group.clone();
    tasks.spawn(async move {
        let outcome = replayed.replay_after(0).await;
        is_over.store(true, Ordering::SeqCst);
        outcome
    });
    finished(tasks).await?;

    let all: Vec<u64> = (1..=12).collect();
    group.expect_claimable("b", &all).await?;
    for lease in &held {
        group.expect_stale(lease).await?;
    }
    Ok(())
}

/// Batches take another way through most backends.
async fn no_batch_of_leases_from_before_settles_after(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;

    group.replay_after(0).await?;

    for result in t.backend.ack_batch(&leases).await {
        expect_error(result, ErrorKind::StaleLease)?;
    }
    let current = group.expect_claimable("b", &[1, 2, 3]).await?;
    for result in t.backend.ack_batch(&leases).await {
        expect_error(result, ErrorKind::StaleLease)?;
    }
    group.ack(&current).await
}

/// A replay of what does not exist is a mistake that must not look like success.
async fn replay_looks_for_the_stream_before_the_group(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?.name;
    let missing = StreamName::new("missing")?;
    let group = GroupName::new("missing")?;

    for replay in [Replay::after(Sequence::ZERO), Replay::Events(vec![])] {
        let result = t.backend.replay(&missing, &group, &replay).await;
        expect_error(result, ErrorKind::StreamNotFound)?;
        let result = t.backend.replay(&stream, &group, &replay).await;
        expect_error(result, ErrorKind::GroupNotFound)?;
    }
    Ok(())
}

/// A mistake in one partition's number must not replay the others half way.
async fn replay_of_a_partition_out_of_range_reopens_nothing(t: Fixture) -> Outcome {
    let group = all_acked(&t, 2).await?;
    let after = Replay::After {
        sequence: Sequence::ZERO,
        partitions: Partitions::only([P0, P1]),
    };
    let each = BTreeMap::from([(P0, Sequence::ZERO), (P1, Sequence::ZERO)]);

    for replay in [after, Replay::AfterEach(each)] {
        let result = t.backend.replay(&group.stream.name, &group.name, &replay);
        expect_invalid(result.await, "partitions")?;
    }

    expect_empty("reopened event", &group.fetch_all("a").await?)
}
