//! Capabilities: what is declared stays so, and what is not declared is refused.

use rheo_core::{
    Backend, EventKey, EventType, Gate, Guarantee, Operation, OptionalOperation, PartitionCount,
    Query, ReadOptions, Replay, ResetOptions, Sequence, Start, StreamName, StreamOptions,
};
use serde_json::json;

use crate::case::{Case, case};
use crate::expect::{Outcome, expect_empty, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::operations::{Target, expect_unsupported};
use crate::scene::{P0, sequences};

const DISTRIBUTED: Gate = Gate::Guarantee(Guarantee::Distributed);
const DURABLE: Gate = Gate::Guarantee(Guarantee::Durable);
const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);
const REPLAY: Gate = Gate::Guarantee(Guarantee::Replay);
const RANGE_SCAN: Gate = Gate::Guarantee(Guarantee::OrderedRangeScan);
const INDEXES: Gate = Gate::Guarantee(Guarantee::SecondaryIndexes);
const BATCHES: Gate = Gate::Guarantee(Guarantee::BatchWrites);
const LIST_STREAMS: Gate = Gate::Operation(OptionalOperation::ListStreams);
const LIST_GROUPS: Gate = Gate::Operation(OptionalOperation::ListGroups);
const DEAD_LETTERS: Gate = Gate::Operation(OptionalOperation::DeadLetters);
const GROUP_INFO: Gate = Gate::Operation(OptionalOperation::GroupInfo);
const WAIT_FOR_WORK: Gate = Gate::Operation(OptionalOperation::WaitForWork);

pub(crate) const CASES: &[Case] = &[
    case!(
        "CAP-2" => the_declaration_stays_whatever_is_done,
        "the declaration is made from what the handle has seen of the store so far"
    ),
    case!(
        "CAP-2" => the_declaration_stays_after_close,
        "the declaration is asked of a connection that close has dropped"
    ),
    case!(
        "CAP-2" => every_handle_declares_the_same,
        "the declaration is made from what the handle finds when it is opened"
    )
    .needs(&[DISTRIBUTED]),
    case!(
        "CAP-2" => a_reopened_handle_declares_the_same,
        "the declaration depends on whether the handle made the tables, or found them"
    )
    .needs(&[DURABLE]),
    case!(
        "CAP-6" => more_partitions_are_refused,
        "create_stream takes the number of partitions and uses only one of them"
    )
    .lacks(PARTITIONS),
    case!(
        "CAP-6" => a_batch_is_refused,
        "append_batch loops over append although the batch cannot be written whole"
    )
    .lacks(BATCHES),
    case!(
        "CAP-6" => lag_is_refused,
        "lag gives an estimate where the exact frontier is not known"
    )
    .lacks(FRONTIER),
    case!(
        "CAP-6" => replay_is_refused,
        "replay or reset_group drops delivery state before it finds out that it cannot do its work"
    )
    .lacks(REPLAY),
    case!(
        "CAP-6" => a_query_is_refused,
        "query gives an empty page where there is nothing to scan by"
    )
    .lacks(RANGE_SCAN),
    case!(
        "CAP-6" => a_filtered_query_is_refused,
        "filters that cannot be evaluated are left out, so that the query gives too much"
    )
    .needs(&[RANGE_SCAN])
    .lacks(INDEXES),
    case!(
        "CAP-6" => list_streams_is_refused,
        "list_streams is not declared and gives an empty list"
    )
    .lacks(LIST_STREAMS),
    case!(
        "CAP-6" => list_groups_is_refused,
        "list_groups is not declared and gives an empty list"
    )
    .lacks(LIST_GROUPS),
    case!(
        "CAP-6" => dead_letters_is_refused,
        "dead_letters is not declared and gives an empty list, which looks like good news"
    )
    .lacks(DEAD_LETTERS),
    case!(
        "CAP-6" => group_info_is_refused,
        "group_info is not declared and gives zeros"
    )
    .lacks(GROUP_INFO),
    case!(
        "CAP-6" => wait_for_work_is_refused,
        "wait_for_work is not declared and returns at once, so that its callers spin"
    )
    .lacks(WAIT_FOR_WORK),
];

/// Callers look once and decide what to call: an answer that changes is worth nothing.
async fn the_declaration_stays_whatever_is_done(t: Fixture) -> Outcome {
    let declared = t.capabilities();
    t.backend.ensure_indexes().await?;
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    t.backend.ack(&leases[0]).await?;
    group.reject(&leases[1], "bad").await?;
    t.backend.ping().await?;

    expect_eq("the declaration", t.capabilities(), declared)
}

/// Whoever holds a closed handle still formats reports with what it declared.
async fn the_declaration_stays_after_close(t: Fixture) -> Outcome {
    let declared = t.capabilities();
    t.backend.close().await?;

    expect_eq("the declaration", t.capabilities(), declared)
}

/// A service decides in one process what it does in all of them.
async fn every_handle_declares_the_same(t: Fixture) -> Outcome {
    let declared = t.capabilities();
    let second = t.second_handle().await?;
    let third = t.second_handle().await?;

    expect_eq(
        "the second declaration",
        second.capabilities(),
        declared.clone(),
    )?;
    expect_eq("the third declaration", third.capabilities(), declared)
}

/// What was built on a declaration must still stand after the next deployment.
async fn a_reopened_handle_declares_the_same(t: Fixture) -> Outcome {
    let declared = t.capabilities();
    t.group_with_events(1).await?;
    let reopened = t.reopen().await?;

    expect_eq("the declaration", reopened.capabilities(), declared)
}

/// A stream with fewer partitions than asked for would break the order that keys were to have.
async fn more_partitions_are_refused(t: Fixture) -> Outcome {
    let name = StreamName::new("orders")?;
    let two = StreamOptions::new().with_partition_count(PartitionCount::new(2)?);
    let refused = t.backend.create_stream(&name, &two).await;

    expect_unsupported(refused, Operation::CreateStream, PARTITIONS)?;
    let read = t.backend.read(&name, &ReadOptions::new()).await;
    expect_error(read, rheo_core::ErrorKind::StreamNotFound)?;
    t.stream_named("orders", 1).await?;
    let refused = t.backend.create_stream(&name, &two).await;
    expect_unsupported(refused, Operation::CreateStream, PARTITIONS)
}

/// Half a batch is worse than none: the caller cannot know which half. One event is no batch.
async fn a_batch_is_refused(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let batch = vec![t.new_event(), t.new_event()];
    let refused = t.backend.append_batch(&stream.name, batch.clone()).await;

    expect_unsupported(refused, Operation::AppendBatch, BATCHES)?;
    expect_empty("event", &stream.read(P0).await?)?;
    let missing = StreamName::new("missing")?;
    let refused = t.backend.append_batch(&missing, batch).await;
    expect_unsupported(refused, Operation::AppendBatch, BATCHES)?;

    let none = t.backend.append_batch(&stream.name, Vec::new()).await?;
    expect_empty("event of an empty batch", &none)?;
    let one = vec![t.new_event()];
    let one = t.backend.append_batch(&stream.name, one).await?;
    expect_eq("the sequences", sequences(&one), vec![1])
}

/// A number that is nearly right makes an operator believe that all is done.
async fn lag_is_refused(t: Fixture) -> Outcome {
    refuses(&t, Operation::Lag, FRONTIER).await
}

/// Neither may take a lease away or give an event again on the way to its refusal.
async fn replay_is_refused(t: Fixture) -> Outcome {
    refuses(&t, Operation::Replay, REPLAY).await?;
    refuses(&t, Operation::ResetGroup, REPLAY).await?;

    let group = t.group_with_events(2).await?;
    let [acked, held] = &group.fetch_exactly("a", 2).await?[..] else {
        return Ok(());
    };
    t.backend.ack(acked).await?;
    let (stream, name) = (&group.stream.name, &group.name);
    for replay in [
        Replay::after(Sequence::ZERO),
        Replay::AfterEach([(P0, Sequence::ZERO)].into()),
        Replay::Events(vec![acked.event.id]),
        Replay::Events(Vec::new()),
    ] {
        let refused = t.backend.replay(stream, name, &replay).await;
        expect_unsupported(refused, Operation::Replay, REPLAY)?;
    }
    for start in [Start::Beginning, Start::End] {
        let options = ResetOptions::new().with_start(start);
        let refused = t.backend.reset_group(stream, name, &options).await;
        expect_unsupported(refused, Operation::ResetGroup, REPLAY)?;
    }
    group.stream.append(1).await?;
    group.expect_claimable("b", &[3]).await?;
    Ok(t.backend.ack(held).await?)
}

/// An empty page would say that there are no events.
async fn a_query_is_refused(t: Fixture) -> Outcome {
    refuses(&t, Operation::Query, RANGE_SCAN).await
}

/// A filter that is left out gives other customers' events. Without filters the query works.
async fn a_filtered_query_is_refused(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(2).await?;
    let missing = StreamName::new("missing")?;

    for filtered in [
        Query::new().with_event_type(EventType::new("order.placed")?),
        Query::new().with_key(EventKey::new("customer-7")?),
        Query::new().with_payload_field("number", json!(1))?,
        Query::new().with_metadata_field("trace", json!(1))?,
    ] {
        for stream in [&stream.name, &missing] {
            let refused = t.backend.query(stream, &filtered).await;
            expect_unsupported(refused, Operation::Query, INDEXES)?;
        }
    }
    let all = stream.query_all(Query::new().with_partition(P0)).await?;
    expect_eq("the sequences", sequences(&all), vec![1, 2])
}

/// Looking whether it is there by calling it must be safe and clear.
async fn list_streams_is_refused(t: Fixture) -> Outcome {
    refuses(&t, Operation::ListStreams, LIST_STREAMS).await
}

/// Looking whether it is there by calling it must be safe and clear.
async fn list_groups_is_refused(t: Fixture) -> Outcome {
    refuses(&t, Operation::ListGroups, LIST_GROUPS).await
}

/// "No dead letters" must not be said by a backend that cannot know.
async fn dead_letters_is_refused(t: Fixture) -> Outcome {
    refuses(&t, Operation::DeadLetters, DEAD_LETTERS).await
}

/// Looking whether it is there by calling it must be safe and clear.
async fn group_info_is_refused(t: Fixture) -> Outcome {
    refuses(&t, Operation::GroupInfo, GROUP_INFO).await
}

/// A consumer that gets `Unsupported` polls at its own pace; one that gets Ok at once spins.
async fn wait_for_work_is_refused(t: Fixture) -> Outcome {
    refuses(&t, Operation::WaitForWork, WAIT_FOR_WORK).await
}

/// The operation is refused, on what is there and on what is not, and changes nothing.
async fn refuses(t: &Fixture, operation: Operation, gate: Gate) -> Outcome {
    let group = t.group().await?;
    let target = Target::of(&group).await?;
    let missing = target.on_stream(StreamName::new("missing")?);

    for target in [&target, &missing] {
        for refused in target.call(&t.backend, operation).await {
            expect_unsupported(refused, operation, gate)?;
        }
    }
    group.expect_nothing("b").await?;
    group.ack(&target.leases).await?;
    expect_eq(
        "the log",
        sequences(&group.stream.read(P0).await?),
        vec![1, 2],
    )
}
