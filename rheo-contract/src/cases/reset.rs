//! Reset: starting again.

mod starts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rheo_core::{
    Backend, ErrorKind, Gate, GroupName, Guarantee, Lease, OptionalOperation, Partition,
    Partitions, Replay, ResetOptions, RetryOptions, RetryOutcome, Sequence, Start, StreamName,
};
use tokio::task::JoinSet;

use self::starts::*;
use crate::case::{Case, case};
use crate::expect::{Outcome, expect_empty, expect_eq, expect_error, expect_invalid};
use crate::fixture::Fixture;
use crate::scene::{Group, P0, P1, expect_first_attempts, finished};
use crate::states::{OldDeadlines, all_settled_somehow, expect_none_dead};

const REPLAY: Gate = Gate::Guarantee(Guarantee::Replay);
const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);
const DEAD_LETTERS: Gate = Gate::Operation(OptionalOperation::DeadLetters);

pub(crate) const CASES: &[Case] = &[
    case!(
        "RPL-5" => reset_starts_again_from_the_beginning,
        "only the position is put back, while single deliveries keep their state"
    ),
    case!(
        "RPL-5" => attempts_begin_again_after_a_reset,
        "attempts are counted apart from the deliveries and survive them"
    ),
    case!(
        "RPL-5" => a_lease_from_before_a_reset_settles_nothing,
        "the leases are kept, or lease ids come again"
    ),
    case!(
        "RPL-5" => reset_drops_any_number_of_deliveries,
        "deliveries are dropped in parts, and the parts after the first are left out"
    ),
    case!(
        "RPL-5" => old_deadlines_mean_nothing_after_a_reset,
        "when a lease or a delay ends is noted beside the delivery, and stays there"
    ),
    case!(
        "RPL-5" => reset_may_go_forward,
        "the new start is bounded by what was claimed, as a replay's sequence is"
    ),
    case!(
        "RPL-5" => reset_to_the_end_waits_for_new_events,
        "the end is taken to be the last event that was claimed"
    ),
    case!(
        "RPL-5" => reset_to_a_sequence_drops_what_is_below_too,
        "only deliveries above the new start are dropped"
    ),
    case!(
        "RPL-5" => reset_to_a_time_starts_with_the_first_event_at_or_after_it,
        "the time is compared with > or rounded to milliseconds"
    ),
    case!(
        "RPL-5" => reset_beyond_the_high_watermark_drops_nothing,
        "the state is dropped before the start is checked"
    ),
    case!(
        "RPL-5" => max_attempts_stay_after_a_reset,
        "the group is deleted and made again with the default options"
    ),
    case!(
        "RPL-5" => max_attempts_stay_where_one_partition_was_reset,
        "the partition's state is made anew with the default options, or the group's options go with it"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-5" => reset_takes_the_dead_letters_away,
        "dead letters are kept in a table of their own that reset does not touch"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "RPL-5" => the_frontier_is_the_new_start,
        "the frontier is stored and only ever raised, or put to 0 whatever the start"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-5" => a_group_that_was_reset_forward_can_be_replayed,
        "what the reset skipped has no state that a replay could reopen"
    ),
    case!(
        "RPL-5" => reset_of_one_partition_leaves_the_others,
        "the selection of partitions is ignored"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-5" => a_partition_that_the_start_does_not_name_starts_at_its_beginning,
        "only the partitions that the start names are reset"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-5" => a_start_for_a_partition_that_is_not_selected_is_invalid,
        "the start's other partitions are silently ignored, or reset as well"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-5" => a_start_beyond_one_partition_drops_nothing_in_any,
        "partitions are checked and reset one after the other"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-5" => a_start_is_checked_in_the_selected_partitions_alone,
        "the start is compared with the high watermark of every partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-5" => reset_reaches_each_of_twelve_partitions,
        "partitions are reset up to the ninth, or one that is reset alone always starts at its beginning"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-5" => reset_of_no_partition_changes_nothing,
        "an empty list of partitions becomes a statement without a filter"
    ),
    case!(
        "RPL-6" => reset_leaves_other_groups_alone,
        "delivery state is deleted by stream, without the group"
    ),
    case!(
        "RPL-6" => reset_leaves_the_log_alone,
        "reset trims the log, or appends the events again"
    ),
    case!(
        "RPL-7" => acks_that_race_a_reset_lose_no_event,
        "an ack that was under way writes its result into the state after the reset"
    ),
    case!(
        "ERR-6" => reset_looks_for_the_stream_before_the_group,
        "a missing group or stream is nothing to delete, which is taken for success"
    )
    .needs(&[REPLAY]),
    case!(
        "ERR-8" => reset_of_a_partition_out_of_range_drops_nothing,
        "partitions are checked one by one while they are reset"
    )
    .needs(&[REPLAY]),
    case!(
        "RPL-5" => reset_to_a_time_goes_by_the_lowest_sequence,
        "timestamps are taken to ascend: the start is found by bisection, or the last earlier event is taken"
    )
    .sets_the_clock(),
    case!(
        "RPL-5" => reset_to_a_time_is_found_per_partition,
        "the place that was found in one partition is used for all"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-5" => reset_to_the_end_is_each_partitions_own,
        "the end of one partition, or the highest of all, is used for all"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-5" => each_partition_is_reset_after_its_own_sequence,
        "the sequences are taken in the order of the partitions that are selected, or one is used for all"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-5" => reset_to_no_sequences_starts_at_the_beginning,
        "the partitions that the start names are reset, and no others"
    ),
    case!(
        "RPL-6" => reset_of_one_partition_touches_no_state_elsewhere,
        "dead letters, delays or leases are dropped without looking at the partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-6" => reset_touches_no_state_of_other_groups,
        "dead letters, delays or leases are dropped by stream, without the group, or by group, without the stream"
    ),
];

fn after(sequence: u64) -> Outcome<Start> {
    Ok(Start::AfterSequence(Sequence::new(sequence)?))
}

fn from(start: Start) -> ResetOptions {
    ResetOptions::new().with_start(start)
}

/// Demands that the reset is refused for that argument.
async fn expect_refused(group: &Group, options: &ResetOptions, argument: &str) -> Outcome {
    let result = group
        .backend
        .reset_group(&group.stream.name, &group.name, options);
    expect_invalid(result.await, argument)
}

/// The consumer's own data was lost: everything is to be done again, whatever became of it.
async fn reset_starts_again_from_the_beginning(t: Fixture) -> Outcome {
    let group = t.group().await?;
    group.bring_into_every_state().await?;

    group.reset(&ResetOptions::new()).await?;

    let leases = group.expect_claimable("b", &[1, 2, 3, 4, 5]).await?;
    group.ack(&leases).await?;
    group.expect_nothing("b").await
}

/// Otherwise a group that is reset twice gives up on everything.
async fn attempts_begin_again_after_a_reset(t: Fixture) -> Outcome {
    let group = t.stream(1).await?.group_of_attempts("billing", 2).await?;
    group.stream.append(2).await?;
    for lease in group.fetch_exactly("a", 2).await? {
        t.backend.retry(&lease, &RetryOptions::new()).await?;
    }
    group.ack(&[group.fetch_one("a").await?]).await?;

    group.reset(&ResetOptions::new()).await?;

    let leases = group.expect_claimable("a", &[1, 2]).await?;
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

/// A consumer from before the reset comes back, first to an event that is open, then to one that
/// somebody else has claimed at the same attempt.
async fn a_lease_from_before_a_reset_settles_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let old = group.fetch_exactly("a", 2).await?;
    group.reset(&ResetOptions::new()).await?;
    group.expect_stale(&old[0]).await?;
    let current = group.expect_claimable("a", &[1, 2]).await?;

    group.expect_stale(&old[0]).await?;
    group.expect_stale(&old[1]).await?;
    group.ack(&current).await?;
    group.expect_nothing("a").await
}

/// However much there was to do, it is to be done again.
async fn reset_drops_any_number_of_deliveries(t: Fixture) -> Outcome {
    for count in [11, 101, 1_001] {
        let (group, held) = all_settled_somehow(&t, count).await?;
        group.reset(&ResetOptions::new()).await?;

        let expected: Vec<u64> = (1..=count as u64).collect();
        expect_none_dead(&group).await?;
        let leases = group.expect_claimable("b", &expected).await?;
        expect_first_attempts(&leases)?;
        for lease in [&held[0], &held[held.len() - 1]] {
            group.expect_stale(lease).await?;
        }
    }
    Ok(())
}

/// As after a replay.
async fn old_deadlines_mean_nothing_after_a_reset(t: Fixture) -> Outcome {
    let reset = OldDeadlines::of(&t, async |group| group.reset(&ResetOptions::new()).await);

    reset.await?.expect_nothing_of_them().await
}

/// The backlog is worthless: skip it. That is what sets a reset apart from a replay.
async fn reset_may_go_forward(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    let lease = group.fetch_one("a").await?;

    group.reset(&from(after(3)?)).await?;

    group.expect_stale(&lease).await?;
    group.expect_claimable("a", &[4, 5]).await?;
    Ok(())
}

/// From now on only what is new.
async fn reset_to_the_end_waits_for_new_events(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let lease = group.fetch_one("a").await?;

    group.reset(&from(Start::End)).await?;

    group.expect_stale(&lease).await?;
    group.expect_nothing("a").await?;
    group.stream.append(1).await?;
    group.expect_claimable("a", &[4]).await?;
    Ok(())
}

/// Whatever was open below the new start is not to be done any more.
async fn reset_to_a_sequence_drops_what_is_below_too(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    let leases = group.fetch_exactly("a", 5).await?;
    t.backend.retry(&leases[1], &RetryOptions::new()).await?;
    group.ack(&leases[3..]).await?;

    group.reset(&from(after(3)?)).await?;

    group.expect_stale(&leases[0]).await?;
    group.expect_stale(&leases[2]).await?;
    group.expect_claimable("b", &[4, 5]).await?;
    Ok(())
}

/// "Everything since noon": an event at that very microsecond is included.
async fn reset_to_a_time_starts_with_the_first_event_at_or_after_it(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let mut events = Vec::new();
    for _ in 0..4 {
        events.extend(group.stream.append(1).await?);
        t.pass(Duration::from_micros(100)).await;
    }
    group.ack(&group.fetch_exactly("a", 4).await?).await?;

    group
        .reset(&from(Start::AtTime(events[2].timestamp)))
        .await?;
    group.expect_claimable("a", &[3, 4]).await?;

    let just_behind = events[2].timestamp.saturating_add(Duration::from_micros(1));
    group.reset(&from(Start::AtTime(just_behind))).await?;
    group.expect_claimable("a", &[4]).await?;

    let behind_all = events[3]
        .timestamp
        .saturating_add(Duration::from_secs(3_600));
    group.reset(&from(Start::AtTime(behind_all))).await?;
    group.expect_nothing("a").await
}

/// A number that was mistyped must not cost the group its state; the last event's is none.
async fn reset_beyond_the_high_watermark_drops_nothing(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let leases = group.bring_into_every_state().await?;

    for beyond in [6, 1_000, Sequence::MAX.get()] {
        expect_refused(&group, &from(after(beyond)?), "start").await?;
    }

    group.expect_current(&leases[1]).await?;
    group.expect_claimable("b", &[5]).await?;
    group.reset(&from(after(5)?)).await?;
    group.expect_nothing("b").await
}

/// What the group is stays; what it did goes.
async fn max_attempts_stay_after_a_reset(t: Fixture) -> Outcome {
    let group = t.stream(1).await?.group_of_attempts("billing", 1).await?;
    group.stream.append(1).await?;

    group.reset(&ResetOptions::new()).await?;

    let lease = group.fetch_one("a").await?;
    let outcome = t.backend.retry(&lease, &RetryOptions::new()).await?;
    expect_eq(
        "the outcome of a retry at the only attempt",
        outcome,
        RetryOutcome::DeadLettered,
    )
}

/// In the partition that was reset as in the others.
async fn max_attempts_stay_where_one_partition_was_reset(t: Fixture) -> Outcome {
    let group = t.stream(3).await?.group_of_attempts("billing", 1).await?;
    for partition in (0..3).map(Partition::new) {
        group.stream.append_to(partition, 1).await?;
    }
    group.ack(&group.fetch_exactly("a", 3).await?).await?;
    group
        .reset(&ResetOptions::new().with_partitions(P1))
        .await?;
    for partition in (0..3).map(Partition::new) {
        group.stream.append_to(partition, 1).await?;
    }

    let places = [(0, 2), (1, 1), (1, 2), (2, 2)];
    for lease in group.expect_claimable_at("a", &places).await? {
        let outcome = t.backend.retry(&lease, &RetryOptions::new()).await?;
        expect_eq(
            "the outcome of a retry at the only attempt",
            outcome,
            RetryOutcome::DeadLettered,
        )?;
    }
    Ok(())
}

/// Also where the events are not delivered again.
async fn reset_takes_the_dead_letters_away(t: Fixture) -> Outcome {
    for start in [Start::Beginning, after(2)?, Start::End] {
        let group = t.group_with_events(3).await?;
        for lease in group.fetch_exactly("a", 3).await? {
            group.reject(&lease, "broken").await?;
        }

        group.reset(&from(start)).await?;

        expect_empty("dead letter", &group.first_dead_letters().await?)?;
    }
    Ok(())
}

/// Back and forth: progress is counted from the new start.
async fn the_frontier_is_the_new_start(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    group.ack(&group.fetch_exactly("a", 3).await?).await?;

    for (start, frontier) in [
        (Start::Beginning, 0),
        (after(4)?, 4),
        (after(2)?, 2),
        (Start::End, 5),
    ] {
        group.reset(&from(start)).await?;
        group.expect_frontier(frontier).await?;
    }
    Ok(())
}

/// Skipping was a mistake: what was never delivered can still be had.
async fn a_group_that_was_reset_forward_can_be_replayed(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    group.reset(&from(Start::End)).await?;

    group.replay(&Replay::after(Sequence::new(1)?)).await?;

    group.expect_claimable("a", &[2, 3, 4]).await?;
    Ok(())
}

/// A group on two partitions with two events each: the first acked, the second leased.
async fn on_two_partitions(t: &Fixture) -> Outcome<(Group, Vec<Lease>)> {
    let group = t.stream(2).await?.group("billing").await?;
    group.stream.append_to(P0, 2).await?;
    group.stream.append_to(P1, 2).await?;
    let mut leases = group.fetch_exactly("a", 4).await?;
    leases.sort_by_key(|lease| (lease.event.sequence, lease.event.partition));
    group.ack(&leases[..2]).await?;
    Ok((group, leases.split_off(2)))
}

/// One partition's state was lost; the work on the others goes on.
async fn reset_of_one_partition_leaves_the_others(t: Fixture) -> Outcome {
    let (group, open) = on_two_partitions(&t).await?;

    group
        .reset(&ResetOptions::new().with_partitions(P1))
        .await?;

    group.expect_current(&open[0]).await?;
    group.expect_stale(&open[1]).await?;
    group.expect_claimable_at("b", &[(1, 1), (1, 2)]).await?;
    Ok(())
}

/// As for a new group: what is not named starts at its beginning, and is reset all the same.
async fn a_partition_that_the_start_does_not_name_starts_at_its_beginning(t: Fixture) -> Outcome {
    let (group, open) = on_two_partitions(&t).await?;

    let start = Start::AfterSequences(BTreeMap::from([(P1, Sequence::new(1)?)]));
    group.reset(&from(start)).await?;

    group.expect_stale(&open[0]).await?;
    group
        .expect_claimable_at("b", &[(0, 1), (0, 2), (1, 2)])
        .await?;
    Ok(())
}

/// Start and selection contradict each other: somebody has to say what was meant.
async fn a_start_for_a_partition_that_is_not_selected_is_invalid(t: Fixture) -> Outcome {
    let (group, open) = on_two_partitions(&t).await?;

    let start = Start::AfterSequences(BTreeMap::from([(P0, Sequence::ZERO), (P1, Sequence::ZERO)]));
    let options = from(start).with_partitions(P1);
    expect_refused(&group, &options, "start").await?;

    group.expect_current(&open[0]).await?;
    group.expect_current(&open[1]).await?;
    group.expect_nothing("b").await
}

/// All or nothing, over partitions too.
async fn a_start_beyond_one_partition_drops_nothing_in_any(t: Fixture) -> Outcome {
    let (group, open) = on_two_partitions(&t).await?;
    group.stream.append_to(P0, 1).await?;

    let sequences = BTreeMap::from([(P0, Sequence::new(1)?), (P1, Sequence::new(3)?)]);
    for start in [Start::AfterSequences(sequences), after(3)?] {
        expect_refused(&group, &from(start), "start").await?;
    }

    group.expect_current(&open[0]).await?;
    group.expect_current(&open[1]).await?;
    group.expect_claimable_at("b", &[(0, 3)]).await?;
    Ok(())
}

/// How long the other partitions are does not matter to the one that is reset.
async fn a_start_is_checked_in_the_selected_partitions_alone(t: Fixture) -> Outcome {
    let group = t.stream(2).await?.group("billing").await?;
    group.stream.append_to(P0, 3).await?;
    group.stream.append_to(P1, 1).await?;

    let options = from(after(2)?).with_partitions(P0);
    group.reset(&options).await?;

    group.expect_claimable_at("a", &[(0, 3), (1, 1)]).await?;
    Ok(())
}

/// A selection that came out empty selects nothing, not everything.
async fn reset_of_no_partition_changes_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.ack(&leases[..1]).await?;

    let options = ResetOptions::new().with_partitions(Partitions::only([]));
    group.reset(&options).await?;

    group.expect_nothing("b").await?;
    group.expect_current(&leases[1]).await
}

/// Neither the other groups of the stream nor a namesake elsewhere may notice.
async fn reset_leaves_other_groups_alone(t: Fixture) -> Outcome {
    let billing = t.group().await?;
    let audit = billing.stream.group("audit").await?;
    let namesake = t.group().await?;
    let leases = audit.bring_into_every_state().await?;
    let elsewhere = namesake.bring_into_every_state().await?;

    billing.reset(&ResetOptions::new()).await?;
    billing.reset(&from(Start::End)).await?;

    audit.expect_current(&leases[1]).await?;
    audit.expect_claimable("b", &[5]).await?;
    namesake.expect_current(&elsewhere[1]).await?;
    namesake.expect_claimable("b", &[5]).await?;
    billing.expect_nothing("b").await
}

/// What one group skips is still there for all others.
async fn reset_leaves_the_log_alone(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let before = group.stream.read(P0).await?;

    for start in [Start::End, after(2)?, Start::Beginning] {
        group.reset(&from(start)).await?;
        expect_eq("the log", group.stream.read(P0).await?, before.clone())?;
    }
    let delivered = group.fetch_exactly("a", 3).await?;
    let delivered: Vec<_> = delivered.into_iter().map(|lease| lease.event).collect();
    expect_eq("the events that are delivered again", delivered, before)
}

/// Each ack comes before the reset, and its event is open again, or after, and is refused.
async fn acks_that_race_a_reset_lose_no_event(t: Fixture) -> Outcome {
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
    let reset = group.clone();
    tasks.spawn(async move {
        has_begun.store(true, Ordering::SeqCst);
        reset.reset(&ResetOptions::new()).await
    });
    finished(tasks).await?;

    let all: Vec<u64> = (1..=16).collect();
    group.expect_claimable("b", &all).await?;
    for lease in &leases {
        group.expect_stale(lease).await?;
    }
    Ok(())
}

/// A reset of what does not exist is a mistake that must not look like success.
async fn reset_looks_for_the_stream_before_the_group(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?.name;
    let missing = StreamName::new("missing")?;
    let group = GroupName::new("missing")?;

    for options in [
        ResetOptions::new(),
        ResetOptions::new().with_partitions(Partitions::only([])),
    ] {
        let result = t.backend.reset_group(&missing, &group, &options).await;
        expect_error(result, ErrorKind::StreamNotFound)?;
        let result = t.backend.reset_group(&stream, &group, &options).await;
        expect_error(result, ErrorKind::GroupNotFound)?;
    }
    Ok(())
}

/// A mistake in one partition's number must not reset the others half way.
async fn reset_of_a_partition_out_of_range_drops_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.ack(&leases[..1]).await?;

    let selected = ResetOptions::new().with_partitions(Partitions::only([P0, P1]));
    expect_refused(&group, &selected, "partitions").await?;
    let named = BTreeMap::from([(P0, Sequence::ZERO), (Partition::new(1), Sequence::ZERO)]);
    let options = from(Start::AfterSequences(named));
    expect_refused(&group, &options, "start").await?;

    group.expect_current(&leases[1]).await?;
    group.expect_nothing("b").await
}
