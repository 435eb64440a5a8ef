//! Frontier and lag: how far a group is.

mod holes;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rheo_core::{
    Backend, ErrorKind, Gate, GroupName, Guarantee, Lag, Lease, LeaseDuration, Partition,
    PartitionLag, RetryOptions, RetryOutcome, Sequence, Start, StreamName,
};
use serde_json::json;
use tokio::task::JoinSet;

use self::holes::*;
use crate::case::{Case, case};
use crate::expect::{Outcome, expect, expect_eq, expect_error};
use crate::fixture::{Fixture, new_event};
use crate::scene::{P0, finished};
use crate::states::twelve_done;
use crate::step::Step;

const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);

pub(crate) const CASES: &[Case] = &[
    case!(
        "FRN-1" => a_hole_holds_the_frontier_until_it_is_filled,
        "the frontier is the highest acked sequence"
    ),
    case!(
        "FRN-1" => every_shape_of_holes_gives_its_frontier,
        "the frontier counts what is done, or looks at the ends only"
    ),
    case!(
        "FRN-1" => holes_hold_the_frontier_however_far_up,
        "what is done is kept in a set or a page that is bounded"
    ),
    case!(
        "FRN-4" => each_of_twelve_partitions_has_its_progress,
        "the partitions are given up to the ninth, or sorted as text"
    )
    .needs(&[Gate::Guarantee(Guarantee::Partitions)]),
    case!(
        "FRN-1" => a_hole_below_a_thousand_acks_holds_the_frontier,
        "only so many acks above a hole are remembered, or looked through when it is filled"
    ),
    case!(
        "FRN-1" => what_waits_for_a_retry_holds_the_frontier,
        "only leased deliveries count as open"
    ),
    case!(
        "FRN-1" => what_has_expired_holds_the_frontier,
        "only unexpired leases count as open"
    ),
    case!(
        "FRN-1" => what_was_never_claimed_holds_the_frontier,
        "without open deliveries the frontier is taken to be the high watermark"
    ),
    case!(
        "FRN-1" => a_hole_may_be_filled_by_a_later_attempt,
        "the frontier is moved by acks in order only, or by first attempts only"
    ),
    case!(
        "FRN-1" => the_frontier_follows_random_work,
        "acks out of order are remembered wrongly"
    ),
    case!(
        "FRN-1" => a_late_settle_fills_its_hole,
        "what a settle does to the frontier is left out for a lease that has expired"
    ),
    case!(
        "FRN-1" => a_frontier_is_its_groups_own,
        "progress is kept by stream, without the group"
    ),
    case!(
        "FRN-2" => the_frontier_begins_at_the_start,
        "a new group's frontier is 0 until it acks something"
    ),
    case!(
        "FRN-2" => a_group_that_starts_at_the_end_has_no_lag,
        "lag counts all events of the log that the group has not acked"
    ),
    case!(
        "FRN-2" => from_its_start_the_frontier_moves_on,
        "what is below the start counts as a hole"
    ),
    case!(
        "FRN-3" => the_frontier_never_moves_back_by_itself,
        "expiry or retry put the group's position back"
    ),
    case!(
        "FRN-4" => the_lag_of_an_empty_stream_is_nothing,
        "a partition without events has no row, or a sequence of -1"
    ),
    case!(
        "FRN-4" => lag_grows_with_appends_and_shrinks_with_acks,
        "the high watermark is cached"
    ),
    case!(
        "FRN-4" => claims_alone_are_no_progress,
        "lag counts what was never claimed, as native groups do"
    ),
    case!(
        "FRN-4" => lag_is_never_ahead_of_racing_acks,
        "the frontier is computed from several reads between which acks come in"
    ),
    case!(
        "FRN-4" => lag_changes_nothing,
        "expired leases are swept before lag is computed"
    ),
    case!(
        "ERR-6" => lag_looks_for_the_stream_before_the_group,
        "no rows are taken for no lag"
    )
    .needs(&[FRONTIER]),
];

/// Acks come in any order; what is behind a hole is not yet "done up to there".
async fn a_hole_holds_the_frontier_until_it_is_filled(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    let leases = group.fetch_exactly("a", 5).await?;
    group.expect_frontier(0).await?;

    for (at, frontier) in [(1, 0), (3, 0), (0, 2), (4, 2), (2, 5)] {
        group.ack(&leases[at..=at]).await?;
        group.expect_frontier(frontier).await?;
    }
    Ok(())
}

/// All sixteen ways in which four events may be done or not.
async fn every_shape_of_holes_gives_its_frontier(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(4).await?;
    for shape in 0..16_u32 {
        let group = stream.group(&format!("shape-{shape:04b}")).await?;
        let leases = group.fetch_exactly("a", 4).await?;
        for (bit, lease) in leases.iter().enumerate().rev() {
            if shape >> bit & 1 == 1 {
                t.backend.ack(lease).await?;
            }
        }

        group.expect_frontier(shape.trailing_ones().into()).await?;
    }
    Ok(())
}

/// Everything was acked but for the odd one, over a long day.
async fn holes_hold_the_frontier_however_far_up(t: Fixture) -> Outcome {
    const COUNT: usize = 1_203;
    let holes = [60, 301, 1_002, COUNT as u64];
    let group = t.group().await?;
    let batch = vec![new_event("order.placed", json!({})); COUNT];
    group.stream.append_all(batch).await?;
    let leases = group.fetch_exactly("a", COUNT).await?;
    let is_hole = |lease: &&Lease| holes.contains(&lease.event.sequence.get());
    let others: Vec<Lease> = leases.iter().filter(|l| !is_hole(l)).cloned().collect();
    for acked in Step::Ack.on_all(&t.backend, &others).await {
        acked?;
    }

    for (hole, lease) in holes.iter().zip(leases.iter().filter(is_hole)) {
        group.expect_frontier(hole - 1).await?;
        t.backend.ack(lease).await?;
    }
    group.expect_frontier(COUNT as u64).await
}

/// Each of them counts, also the last.
async fn each_of_twelve_partitions_has_its_progress(t: Fixture) -> Outcome {
    let (group, events) = twelve_done(&t).await?;
    let mut expected = Vec::new();
    for partition in (0..12).map(Partition::new) {
        let more = 1 + partition.number() as usize % 2;
        group.stream.append_to(partition, more).await?;
        let done = events
            .iter()
            .filter(|event| event.partition == partition)
            .count() as u64;
        expected.push(PartitionLag {
            partition,
            frontier: Sequence::new(done)?,
            high_watermark: Sequence::new(done + more as u64)?,
        });
    }

    let lag = group.lag().await?;
    expect_eq("the sum", lag.total(), 18)?;
    expect_eq("the progress of each partition", lag.partitions, expected)
}

/// It is not done, although nobody holds it.
async fn what_waits_for_a_retry_holds_the_frontier(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    let leases = group.fetch_exactly("a", 4).await?;
    group.ack(&leases[2..]).await?;
    group.retry_in_an_hour(&leases[1]).await?;
    group.expect_frontier(0).await?;
    group.ack(&leases[..1]).await?;
    group.expect_frontier(1).await?;

    let lease = group.append_and_fetch_one("a").await?;
    t.backend.retry(&lease, &RetryOptions::new()).await?;
    group.expect_frontier(1).await
}

/// It is not done, although its time is up: before it is reclaimed and after.
async fn what_has_expired_holds_the_frontier(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let expiring = group.fetch_one_briefly("a").await?;
    group.ack(&[group.fetch_one("a").await?]).await?;
    t.let_lease_expire(&expiring).await;
    group.expect_frontier(0).await?;

    let lease = group.fetch_one("b").await?;
    group.expect_frontier(0).await?;
    group.ack(&[lease]).await?;
    group.expect_frontier(2).await
}

/// Everything that was claimed is done, and yet there is more to do.
async fn what_was_never_claimed_holds_the_frontier(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    group.ack(&group.fetch_exactly("a", 2).await?).await?;

    group.expect_frontier(2).await
}

/// Given back, expired, and done at last.
async fn a_hole_may_be_filled_by_a_later_attempt(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    group.ack(&leases[1..]).await?;
    t.backend.retry(&leases[0], &RetryOptions::new()).await?;
    let expiring = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&expiring).await;
    let third = group.fetch_one("b").await?;
    expect_eq("the attempt", third.attempt, 3)?;
    group.expect_frontier(0).await?;

    group.ack(&[third]).await?;

    group.expect_frontier(3).await
}

/// Random work, compared after each step with plain sets of what is done.
async fn the_frontier_follows_random_work(t: Fixture) -> Outcome {
    random_work(&t, 1).await
}

/// What a group did on a stream, as simply as it can be kept.
struct Model {
    /// The sequences that are acked or dead, by partition.
    done: Vec<BTreeSet<u64>>,
    /// The last sequences, by partition.
    last: Vec<u64>,
}

impl Model {
    fn lag(&self) -> Outcome<Lag> {
        let mut partitions = Vec::new();
        for ((number, done), last) in (0..).zip(&self.done).zip(&self.last) {
            let frontier = (1..).take_while(|sequence| done.contains(sequence)).count();
            partitions.push(PartitionLag {
                partition: Partition::new(number),
                frontier: Sequence::new(frontier as u64)?,
                high_watermark: Sequence::new(*last)?,
            });
        }
        Ok(Lag { partitions })
    }

    fn finish(&mut self, lease: &Lease) {
        let event = &lease.event;
        self.done[event.partition.number() as usize].insert(event.sequence.get());
    }
}

/// Appends, claims and settles at random, and compares lag with a model after each step.
pub(super) async fn random_work(t: &Fixture, partitions: u32) -> Outcome {
    let stream = t.stream(partitions).await?;
    let group = stream.group_of_attempts("billing", 2).await?;
    let mut model = Model {
        done: vec![BTreeSet::new(); partitions as usize],
        last: vec![0; partitions as usize],
    };
    let mut leases: Vec<Lease> = Vec::new();
    for _ in 0..150 {
        match t.random(8) {
            0 | 1 => {
                let number = t.random(partitions.into()) as u32;
                stream.append_to(Partition::new(number), 1).await?;
                model.last[number as usize] += 1;
            }
            2..=4 => leases.extend(group.fetch("a", 1).await?),
            _ if leases.is_empty() => continue,
            choice => {
                let lease = leases.swap_remove(t.random(leases.len() as u64) as usize);
                if choice == 5 {
                    let outcome = t.backend.retry(&lease, &RetryOptions::new()).await?;
                    if outcome == RetryOutcome::DeadLettered {
                        model.finish(&lease);
                    }
                } else if t.random(4) == 0 {
                    group.reject(&lease, "broken").await?;
                    model.finish(&lease);
                } else {
                    t.backend.ack(&lease).await?;
                    model.finish(&lease);
                }
            }
        }
        expect_eq("the lag", group.lag().await?, model.lag()?)?;
    }
    Ok(())
}

/// One group's progress is not another's, nor that of a namesake on another stream.
async fn a_frontier_is_its_groups_own(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let audit = group.stream.group("audit").await?;
    let namesake = t.group_with_events(3).await?;

    group.ack(&group.fetch_exactly("a", 2).await?).await?;
    audit.ack(&audit.fetch_exactly("b", 1).await?).await?;

    group.expect_frontier(2).await?;
    audit.expect_frontier(1).await?;
    namesake.expect_frontier(0).await
}

/// What a group does not want to have, it does not have to do.
async fn the_frontier_begins_at_the_start(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let before = stream.append(2).await?;
    t.pass(Duration::from_micros(1_000)).await;
    stream.append(2).await?;
    let just_behind = before[1].timestamp.saturating_add(Duration::from_micros(1));

    for (name, start, frontier) in [
        ("beginning", Start::Beginning, 0),
        ("zero", Start::AfterSequence(Sequence::ZERO), 0),
        ("three", Start::AfterSequence(Sequence::new(3)?), 3),
        ("time", Start::AtTime(just_behind), 2),
        ("last", Start::AfterSequence(Sequence::new(4)?), 4),
        ("end", Start::End, 4),
    ] {
        let group = stream.group_from(name, start).await?;
        group.expect_frontier(frontier).await?;
    }
    Ok(())
}

/// There is nothing to catch up with, until something new comes.
async fn a_group_that_starts_at_the_end_has_no_lag(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(3).await?;
    let group = stream.group_from("billing", Start::End).await?;
    expect_eq("the lag", group.lag().await?.total(), 0)?;

    stream.append(2).await?;

    expect_eq("the lag", group.lag().await?.total(), 2)?;
    group.expect_frontier(3).await
}

/// What is below the start needs no ack.
async fn from_its_start_the_frontier_moves_on(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(5).await?;
    let start = Start::AfterSequence(Sequence::new(2)?);
    let group = stream.group_from("billing", start).await?;
    let leases = group.fetch_exactly("a", 3).await?;

    group.ack(&leases[1..2]).await?;
    group.expect_frontier(2).await?;
    group.ack(&leases[..1]).await?;
    group.expect_frontier(4).await
}

/// Whatever goes wrong with what comes next, what is done stays done.
async fn the_frontier_never_moves_back_by_itself(t: Fixture) -> Outcome {
    let group = t.stream(1).await?.group_of_attempts("billing", 4).await?;
    group.stream.append(5).await?;
    group.ack(&group.fetch_exactly("a", 3).await?).await?;
    group.expect_frontier(3).await?;

    let expiring = group.fetch_one_briefly("a").await?;
    group.expect_frontier(3).await?;
    t.let_lease_expire(&expiring).await;
    group.expect_frontier(3).await?;
    let second = group.fetch_one("b").await?;
    group.expect_frontier(3).await?;
    t.backend.renew(&second, LeaseDuration::default()).await?;
    group.expect_frontier(3).await?;
    t.backend.retry(&second, &RetryOptions::new()).await?;
    group.expect_frontier(3).await?;
    let third = group.fetch_one("a").await?;
    group.retry_in_an_hour(&third).await?;
    group.expect_frontier(3).await?;
    group.stream.append(1).await?;
    group.stream.group("late").await?;
    group.expect_frontier(3).await
}

/// One row, all zeros.
async fn the_lag_of_an_empty_stream_is_nothing(t: Fixture) -> Outcome {
    for start in [Start::Beginning, Start::End] {
        let group = t.stream(1).await?.group_from("billing", start).await?;
        let expected = Lag {
            partitions: vec![PartitionLag {
                partition: P0,
                frontier: Sequence::ZERO,
                high_watermark: Sequence::ZERO,
            }],
        };
        expect_eq("the lag", group.lag().await?, expected)?;
    }
    Ok(())
}

/// The number that alarms are set on.
async fn lag_grows_with_appends_and_shrinks_with_acks(t: Fixture) -> Outcome {
    let group = t.group().await?;
    for count in 1..=3 {
        group.stream.append(1).await?;
        expect_eq("the lag", group.lag().await?.total(), count)?;
    }

    for left in (0..3).rev() {
        group.ack(&[group.fetch_one("a").await?]).await?;
        expect_eq("the lag", group.lag().await?.total(), left)?;
    }
    let watermarks: Vec<u64> = group
        .lag()
        .await?
        .partitions
        .iter()
        .map(|progress| progress.high_watermark.get())
        .collect();
    expect_eq("the high watermark of each partition", watermarks, vec![3])
}

/// A consumer that claims everything and does nothing is behind by everything.
async fn claims_alone_are_no_progress(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;

    group.fetch_exactly("a", 3).await?;

    expect_eq("the lag", group.lag().await?.total(), 3)
}

/// While acks come in from all sides, progress is told late rather than early, and never backwards.
async fn lag_is_never_ahead_of_racing_acks(t: Fixture) -> Outcome {
    let group = t.group_with_events(24).await?;
    let mut leases = group.fetch_exactly("a", 24).await?;
    leases.truncate(23);
    let begun = Arc::new(AtomicU64::new(0));

    let mut tasks = JoinSet::new();
    let (backend, counter) = (t.backend.clone(), Arc::clone(&begun));
    tasks.spawn(async move {
        for lease in &leases {
            counter.fetch_add(1, Ordering::SeqCst);
            backend.ack(lease).await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    });
    let watched = group.clone();
    tasks.spawn(async move {
        let mut before = 0;
        while begun.load(Ordering::SeqCst) < 23 {
            let frontier = watched.frontier(P0).await?;
            let most = begun.load(Ordering::SeqCst);
            expect(
                (before..=most).contains(&frontier),
                format!("a frontier from {before} to {most}"),
                frontier,
            )?;
            before = frontier;
            tokio::task::yield_now().await;
        }
        Ok(())
    });
    finished(tasks).await?;

    group.expect_frontier(23).await
}

/// Monitoring asks all the time: an expired lease is still its holder's, and nothing is claimed.
async fn lag_changes_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;

    let first = group.lag().await?;
    let second = group.lag().await?;

    expect_eq("the same again", second, first)?;
    group.expect_current(&lease).await?;
    group.expect_claimable("b", &[2, 3]).await?;
    Ok(())
}

/// No lag would say that all is well with a group that does not exist.
async fn lag_looks_for_the_stream_before_the_group(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?.name;
    let missing = StreamName::new("missing")?;
    let group = GroupName::new("missing")?;

    let result = t.backend.lag(&missing, &group).await;
    expect_error(result, ErrorKind::StreamNotFound)?;
    let result = t.backend.lag(&stream, &group).await;
    expect_error(result, ErrorKind::GroupNotFound)?;
    Ok(())
}
