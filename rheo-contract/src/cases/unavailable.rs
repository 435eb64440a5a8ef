//! A store that cannot be reached: every operation ends, and says so.

use std::time::Duration;

use rheo_core::{
    Backend, Capabilities, DeadLetterOptions, ErrorKind, FetchOptions, GroupName, Guarantee,
    LeaseId, ListOptions, Operation, OptionalOperation, Partition, Partitions, Query, ReadOptions,
    Replay, ResetOptions, Result, StreamName,
};

use crate::case::{Case, case};
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::operations::Target;

pub(crate) const CASES: &[Case] = &[
    case!(
        "ERR-9" => ping_says_that_the_store_is_gone,
        "ping looks at the pool, or at nothing, and does not ask the store"
    ),
    case!(
        "ERR-4" => without_a_store_nothing_is_made,
        "a refused connection is mapped to Failed, or retried without end"
    ),
    case!(
        "ERR-4" => without_a_store_nothing_is_appended,
        "a connection that was never made is mapped to Ambiguous, although nothing was sent"
    ),
    case!(
        "ERR-4" => without_a_store_nothing_is_read,
        "an error of the driver is taken for the end of the rows, and the answer is an empty Ok"
    ),
    case!(
        "ERR-4" => without_a_store_nothing_is_fetched,
        "fetch takes every error for `nothing to do`, so that consumers idle and nobody notices"
    ),
    case!(
        "ERR-4" => without_a_store_no_lease_is_stale,
        "a settle that updated no row is StaleLease, also when it reached no store"
    ),
    case!(
        "ERR-4" => without_a_store_each_lease_of_a_batch_has_its_error,
        "a batch form gives one error, or none, in place of one for each lease"
    ),
    case!(
        "ERR-4" => without_a_store_no_group_goes_back,
        "the error of replay or reset_group is logged and dropped"
    ),
    case!(
        "ERR-4" => without_a_store_nothing_is_inspected,
        "an error of the driver is taken for the end of the rows, and the answer is an empty Ok"
    ),
    case!(
        "ERR-6" => no_store_comes_before_what_is_missing,
        "a store that does not answer is taken for one that does not have the stream"
    ),
    case!(
        "ERR-6" => no_store_comes_before_nothing_to_do,
        "a limit of 0 or an empty batch returns early, before the store is looked for"
    ),
    case!(
        "ERR-11" => no_error_shows_a_secret,
        "the text of the driver's error is passed on as it is, or the settings are put into it"
    )
    .needs_optional_part(),
];

/// This is what a load balancer goes by.
async fn ping_says_that_the_store_is_gone(t: Fixture) -> Outcome {
    refuses_without_a_store(&t, &[Operation::Ping]).await
}

/// A service that cannot set itself up must know that waiting may help.
async fn without_a_store_nothing_is_made(t: Fixture) -> Outcome {
    let makes = [
        Operation::EnsureIndexes,
        Operation::CreateStream,
        Operation::CreateGroup,
    ];
    refuses_without_a_store(&t, &makes).await
}

/// The producer may send the same again, since it is told that nothing happened.
async fn without_a_store_nothing_is_appended(t: Fixture) -> Outcome {
    refuses_without_a_store(&t, &[Operation::Append, Operation::AppendBatch]).await
}

/// An empty Ok would be a lie about the log.
async fn without_a_store_nothing_is_read(t: Fixture) -> Outcome {
    refuses_without_a_store(&t, &[Operation::Read, Operation::Query, Operation::Lag]).await
}

/// An empty Ok would look like a quiet day.
async fn without_a_store_nothing_is_fetched(t: Fixture) -> Outcome {
    refuses_without_a_store(&t, &[Operation::Fetch]).await
}

/// `StaleLease` makes the holder drop work that is still its own.
async fn without_a_store_no_lease_is_stale(t: Fixture) -> Outcome {
    let settles = [
        Operation::Renew,
        Operation::Ack,
        Operation::Retry,
        Operation::Reject,
    ];
    refuses_without_a_store(&t, &settles).await
}

/// Results are matched with leases by their place, so there must be one for each.
async fn without_a_store_each_lease_of_a_batch_has_its_error(t: Fixture) -> Outcome {
    let batches = [
        Operation::RenewBatch,
        Operation::AckBatch,
        Operation::RetryBatch,
        Operation::RejectBatch,
    ];
    refuses_without_a_store(&t, &batches).await
}

/// Whoever goes back must know whether it happened.
async fn without_a_store_no_group_goes_back(t: Fixture) -> Outcome {
    refuses_without_a_store(&t, &[Operation::Replay, Operation::ResetGroup]).await
}

/// A dashboard that shows zeros during an outage is worse than none.
async fn without_a_store_nothing_is_inspected(t: Fixture) -> Outcome {
    let inspects = [
        Operation::ListStreams,
        Operation::ListGroups,
        Operation::DeadLetters,
        Operation::GroupInfo,
        Operation::WaitForWork,
    ];
    refuses_without_a_store(&t, &inspects).await
}

async fn refuses_without_a_store(t: &Fixture, operations: &[Operation]) -> Outcome {
    let group = t.group().await?;
    let target = Target::of(&group).await?;
    let unreachable = t.unreachable().await?;

    target
        .expect_each_refused(&unreachable, operations, ErrorKind::BackendUnavailable)
        .await
}

/// Nobody can know what a store holds that does not answer: a caller that is told "not found" would
/// go and make it.
async fn no_store_comes_before_what_is_missing(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let mut target = Target::of(&group).await?;
    for lease in &mut target.leases {
        lease.lease_id = LeaseId::generate();
    }
    let unreachable = t.unreachable().await?;
    let missing = target
        .on_stream(StreamName::new("missing")?)
        .with_group(GroupName::new("missing")?);

    let lookups = [
        Operation::CreateGroup,
        Operation::Append,
        Operation::Read,
        Operation::Query,
        Operation::Fetch,
        Operation::Ack,
        Operation::RetryBatch,
        Operation::Replay,
        Operation::Lag,
        Operation::ListGroups,
        Operation::DeadLetters,
        Operation::GroupInfo,
        Operation::WaitForWork,
    ];
    missing
        .expect_each_refused(&unreachable, &lookups, ErrorKind::BackendUnavailable)
        .await
}

/// A call for nothing is still a call: its Ok would say that stream and group are there.
async fn no_store_comes_before_nothing_to_do(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let target = Target::of(&group).await?;
    let declared = t.capabilities();
    let b = t.unreachable().await?;
    for (call, answer) in calls_for_nothing(&b, &target, &declared).await {
        expect_refused(call, answer)?;
    }
    let out_of_range =
        FetchOptions::new(target.leases[0].consumer.clone()).with_partitions(Partition::new(7));
    let fetched = b.fetch(&target.stream, &target.group, &out_of_range).await;
    expect_refused("a fetch from a partition out of range", fetched.map(drop))
}

/// That a call found no store.
pub(super) fn expect_refused(call: &str, answer: Result<()>) -> Outcome {
    let kind = answer.map_err(|error| error.kind());
    expect_eq(call, kind, Err(ErrorKind::BackendUnavailable))
}

/// Calls that have nothing to do, and what they give.
pub(super) async fn calls_for_nothing(
    b: &dyn Backend,
    target: &Target,
    declared: &Capabilities,
) -> Vec<(&'static str, Result<()>)> {
    let (stream, group) = (&target.stream, &target.group);
    let none = FetchOptions::new(target.leases[0].consumer.clone());
    let nowhere = none.clone().with_partitions(Partitions::only([]));
    let none = none.with_limit(0);
    let mut answers = vec![
        (
            "an empty batch",
            b.append_batch(stream, Vec::new()).await.map(drop),
        ),
        (
            "a read of nothing",
            b.read(stream, &ReadOptions::new().with_limit(0))
                .await
                .map(drop),
        ),
        (
            "a fetch of nothing",
            b.fetch(stream, group, &none).await.map(drop),
        ),
        (
            "a fetch from no partition",
            b.fetch(stream, group, &nowhere).await.map(drop),
        ),
    ];
    if declared.guarantees(Guarantee::OrderedRangeScan) {
        let none = Query::new().with_limit(0);
        answers.push((
            "a query for nothing",
            b.query(stream, &none).await.map(drop),
        ));
    }
    if declared.guarantees(Guarantee::Replay) {
        let none = Replay::Events(Vec::new());
        answers.push(("a replay of nothing", b.replay(stream, group, &none).await));
        let nowhere = ResetOptions::new().with_partitions(Partitions::only([]));
        answers.push((
            "a reset of no partition",
            b.reset_group(stream, group, &nowhere).await,
        ));
    }
    if declared.offers(OptionalOperation::ListStreams) {
        let none = ListOptions::new().with_limit(0);
        answers.push((
            "a list of no streams",
            b.list_streams(&none).await.map(drop),
        ));
    }
    if declared.offers(OptionalOperation::ListGroups) {
        let none = ListOptions::new().with_limit(0);
        answers.push((
            "a list of no groups",
            b.list_groups(stream, &none).await.map(drop),
        ));
    }
    if declared.offers(OptionalOperation::DeadLetters) {
        let none = DeadLetterOptions::new().with_limit(0);
        let listed = b.dead_letters(stream, group, &none).await;
        answers.push(("a page of no dead letters", listed.map(drop)));
    }
    if declared.offers(OptionalOperation::WaitForWork) {
        let waited = b.wait_for_work(stream, group, Duration::ZERO).await;
        answers.push(("a wait of no time", waited.map(drop)));
    }
    answers
}

/// Errors end in logs, tickets and chats: nobody who reads them may get into the store with them. Each
/// call on record is looked at, so this only has to make errors of many kinds.
async fn no_error_shows_a_secret(t: Fixture) -> Outcome {
    t.expect_secrets()?;
    let group = t.group().await?;
    let target = Target::of(&group).await?;
    let (missing, nobody) = (StreamName::new("missing")?, GroupName::new("nobody")?);
    for target in [
        &target.on_stream(missing),
        &target.with_group(nobody),
        &target,
    ] {
        for operation in Operation::ALL {
            if *operation != Operation::Close && *operation != Operation::CreateStream {
                target.call(&t.backend, *operation).await;
            }
        }
    }
    target.call(&t.backend, Operation::CreateStream).await;
    let out_of_range = ReadOptions::new().with_partition(Partition::new(7));
    let _ = t.backend.read(&target.stream, &out_of_range).await;

    let unreachable = t.unreachable().await?;
    target.call_all(&unreachable).await?;
    t.backend.close().await?;
    target.call_all(&t.backend).await
}
