//! Wakeup: a hint that work might be there, which changes nothing.

mod appends;
mod places;

use std::pin::pin;
use std::time::Duration;

use rheo_core::{Backend, ErrorKind, Gate, GroupName, Guarantee, ResetOptions, StreamName, Wakeup};

use self::appends::*;
use self::places::*;
use crate::case::{Case, case};
use crate::expect::{Outcome, broken, expect, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::recorder::Recorder;
use crate::scene::Group;
use crate::step::retry_after;

pub(crate) const CASES: &[Case] = &[
    case!(
        "OPS-4" => work_that_is_there_is_told,
        "waiting begins without a look whether something is claimable already"
    ),
    case!(
        "OPS-4" => work_that_was_given_back_is_told,
        "only events that were never claimed count as work"
    ),
    case!(
        "OPS-4" => a_replay_is_told,
        "a replayed event does not count as work, since it is below the last claimed one"
    )
    .needs(&[Gate::Guarantee(Guarantee::Replay)]),
    case!(
        "OPS-4" => a_reset_is_told,
        "what a reset opens does not count as work"
    )
    .needs(&[Gate::Guarantee(Guarantee::Replay)]),
    case!(
        "OPS-4" => an_expired_lease_is_told,
        "only events without a lease count as work, whether it has expired or not"
    ),
    case!(
        "OPS-4" => an_ended_delay_is_told,
        "what waits for its retry does not count as work, whether its delay has ended or not"
    ),
    case!(
        "OPS-4" => work_in_any_partition_is_told,
        "only the first partition, or the one that was served last, is looked at"
    )
    .needs(&[Gate::Guarantee(Guarantee::Partitions)]),
    case!(
        "OPS-4" => chosen_events_are_told,
        "only what is above the last claimed event, or above the group's start, counts as work"
    )
    .needs(&[Gate::Guarantee(Guarantee::Replay)]),
    case!(
        "OPS-4" => an_expired_renewal_is_told,
        "the time at which a lease ends is noted when it is claimed, and a renewal is not"
    ),
    case!(
        "OPS-4" => work_at_any_attempt_is_told,
        "an event that was tried more than once is looked for elsewhere"
    ),
    case!(
        "OPS-4" => what_a_fetch_left_is_told,
        "expired leases are moved elsewhere by the first fetch that sees them, and are not looked for there"
    ),
    case!(
        "OPS-4" => a_wait_of_no_time_tells_what_is_there,
        "a timeout of 0 returns early, before anything is looked for"
    ),
    case!(
        "OPS-4" => any_timeout_may_be_given,
        "the timeout is turned into a number of milliseconds that is too small, or a deadline that overflows"
    ),
    case!(
        "OPS-4" => an_append_ends_the_wait,
        "what is appended while somebody waits is not told, so that every event waits for a timeout"
    ),
    case!(
        "OPS-4" => any_kind_of_append_ends_the_wait,
        "the notification is sent by one of the statements that append, or for one partition"
    ),
    case!(
        "OPS-4" => every_append_ends_the_wait_that_follows_the_last,
        "the notification is used up, or is sent only while the stream was empty"
    ),
    case!(
        "OPS-4" => an_append_by_another_handle_ends_the_wait,
        "the notification stays within the process that appended"
    )
    .needs(&[Gate::Guarantee(Guarantee::Distributed)]),
    case!(
        "OPS-4" => waiting_claims_nothing,
        "waiting is a fetch whose leases are dropped"
    ),
    case!(
        "OPS-4" => waiting_leaves_leases_alone,
        "waiting reclaims expired leases, or renews what it finds"
    ),
    case!(
        "OPS-4" => a_wait_ends_with_its_timeout,
        "the timeout is not passed on, or counted by a clock that stands still"
    ),
    case!(
        "OPS-4" => waiting_for_nothing_names_what_is_missing,
        "waiting does not look whether stream and group are there, and always times out"
    ),
];

/// Longer than any hint should take; a lost one costs just this.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a wait is given to begin.
const BEGIN: Duration = Duration::from_millis(50);

/// More milliseconds than 31, 32 and 64 bits hold, and more than any clock does.
const TIMEOUTS: [Duration; 4] = [
    Duration::from_millis(i32::MAX as u64 + 1),
    Duration::from_millis(u32::MAX as u64 + 1),
    Duration::from_secs(i64::MAX as u64),
    Duration::MAX,
];

async fn wait(group: &Group, timeout: Duration) -> Outcome<Wakeup> {
    let (stream, name) = (&group.stream.name, &group.name);
    Ok(group.backend.wait_for_work(stream, name, timeout).await?)
}

async fn expect_work(group: &Group, timeout: Duration) -> Outcome {
    expect_eq("the hint", wait(group, timeout).await?, Wakeup::MaybeWork)
}

/// A consumer waits before its first fetch: it must not sleep beside a full queue.
async fn work_that_is_there_is_told(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;

    expect_work(&group, PATIENCE).await?;
    group.fetch_one("a").await?;
    expect_work(&group, PATIENCE).await
}

/// What somebody gave back is work like any other.
async fn work_that_was_given_back_is_told(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    t.backend
        .retry(&lease, &rheo_core::RetryOptions::new())
        .await?;

    expect_work(&group, PATIENCE).await
}

/// Consumers that sleep at the end of the log must take part in a replay.
async fn a_replay_is_told(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    group.ack(&group.fetch_exactly("a", 2).await?).await?;
    group.replay_after(0).await?;

    expect_work(&group, PATIENCE).await
}

/// And in a reset.
async fn a_reset_is_told(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    group.ack(&group.fetch_exactly("a", 2).await?).await?;
    group.reset(&ResetOptions::new()).await?;

    expect_work(&group, PATIENCE).await
}

/// The holder died: whoever sleeps now has to take over.
async fn an_expired_lease_is_told(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;

    expect_work(&group, PATIENCE).await?;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 2)
}

/// The backoff is over, and nothing else tells.
async fn an_ended_delay_is_told(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    t.backend.retry(&lease, &retry_after(t.brief())?).await?;
    let due = t.now().saturating_add(t.brief());
    t.until(due).await;

    expect_work(&group, PATIENCE).await?;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 2)
}

/// "For ever" is a timeout too: with work it ends at once, and without work not before some comes.
async fn any_timeout_may_be_given(t: Fixture) -> Outcome {
    for timeout in TIMEOUTS {
        let group = t.group().await?;
        let mut waiting = pin!(wait(&group, timeout));
        if let Ok(hint) = tokio::time::timeout(BEGIN, &mut waiting).await {
            // It may come for nothing, but the time is not up.
            expect_eq(
                &format!("the hint within {timeout:?}"),
                hint?,
                Wakeup::MaybeWork,
            )?;
        } else {
            group.stream.append(1).await?;
            let Ok(hint) = tokio::time::timeout(PATIENCE, waiting).await else {
                return Err(broken(
                    format!("a wait of {timeout:?} to end with an append"),
                    format!("no answer within {PATIENCE:?}"),
                ));
            };
            expect_eq("the hint after an append", hint?, Wakeup::MaybeWork)?;
        }
        group.stream.append(1).await?;
        expect_work(&group, timeout).await?;
    }
    Ok(())
}

/// This is what the operation is for.
async fn an_append_ends_the_wait(t: Fixture) -> Outcome {
    let group = t.group().await?;

    appending_ends_the_wait(&group, &t.backend).await
}

/// Producers and consumers are seldom the same process.
async fn an_append_by_another_handle_ends_the_wait(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let other = t.second_handle().await?;

    appending_ends_the_wait(&group, &other).await
}

async fn appending_ends_the_wait(group: &Group, producer: &Recorder) -> Outcome {
    let stream = group.stream.via(producer);

    ends_the_wait(group, async { stream.append(1).await.map(drop) }).await
}

/// Demands that what is done ends a wait that has begun before.
pub(super) async fn ends_the_wait(group: &Group, done: impl Future<Output = Outcome>) -> Outcome {
    let mut waiting = pin!(wait(group, PATIENCE));
    // Lets the wait begin. It may come for nothing, and then there is nothing more to see.
    let has_ended = tokio::time::timeout(BEGIN, &mut waiting).await.is_ok();
    done.await?;
    if has_ended {
        return Ok(());
    }
    expect_eq("the hint", waiting.await?, Wakeup::MaybeWork)
}

/// A claim that nobody knows of would hold the event until it expires, and count as an attempt.
async fn waiting_claims_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    for _ in 0..3 {
        wait(&group, Duration::ZERO).await?;
    }

    let leases = group.expect_claimable("a", &[1, 2]).await?;
    for lease in &leases {
        expect_eq("the attempt", lease.attempt, 1)?;
    }
    group.ack(&leases).await
}

/// An expired lease is still its holder's until somebody fetches the event.
async fn waiting_leaves_leases_alone(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    wait(&group, Duration::ZERO).await?;
    t.let_lease_expire(&lease).await;
    wait(&group, Duration::ZERO).await?;

    t.backend.ack(&lease).await?;
    group.expect_nothing("b").await
}

/// With nothing to do, a consumer must come back to see whether it shall stop.
async fn a_wait_ends_with_its_timeout(t: Fixture) -> Outcome {
    let group = t.group().await?;

    for timeout in [Duration::ZERO, Duration::from_millis(50)] {
        let ended = tokio::time::timeout(PATIENCE, wait(&group, timeout)).await;
        let Ok(hint) = ended else {
            return Err(broken(
                format!("the wait to end after {timeout:?}"),
                format!("no answer within {PATIENCE:?}"),
            ));
        };
        hint?;
    }
    Ok(())
}

/// A typing error must not look like a quiet day.
async fn waiting_for_nothing_names_what_is_missing(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let (missing, nobody) = (StreamName::new("missing")?, GroupName::new("nobody")?);

    let waited = t.backend.wait_for_work(&missing, &nobody, PATIENCE).await;
    expect_error(waited, ErrorKind::StreamNotFound)?;
    let waited = t
        .backend
        .wait_for_work(&stream.name, &nobody, PATIENCE)
        .await;
    let error = expect_error(waited, ErrorKind::GroupNotFound)?;
    expect(
        error.to_string().contains("nobody"),
        "the error to name the group",
        error,
    )
}
