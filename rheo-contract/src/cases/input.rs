//! Bad input: what is refused, in which order, and that it leaves nothing behind.

mod fields;

use std::collections::BTreeMap;

use rheo_core::{
    Backend, ConsumerId, DeadLetterOptions, ErrorKind, FetchOptions, Gate, GroupName, GroupOptions,
    Guarantee, JsonObject, Limits, ListOptions, NewEvent, Operation, OptionalOperation, Partition,
    Partitions, Query, ReadOptions, Replay, ResetOptions, Sequence, Start, StreamName,
};
use serde_json::json;

use self::fields::*;
use crate::bulk::{byte_len, of_bytes as of_total};
use crate::case::{Case, case};
use crate::expect::{Outcome, expect, expect_empty, expect_eq, expect_error, expect_invalid};
use crate::fixture::{Fixture, new_event};
use crate::operations::Target;
use crate::scene::{Group, P0, P1, sequences};

const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const REPLAY: Gate = Gate::Guarantee(Guarantee::Replay);
const RANGE_SCAN: Gate = Gate::Guarantee(Guarantee::OrderedRangeScan);
const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);
const BATCHES: Gate = Gate::Guarantee(Guarantee::BatchWrites);
const LIST_GROUPS: Gate = Gate::Operation(OptionalOperation::ListGroups);
const DEAD_LETTERS: Gate = Gate::Operation(OptionalOperation::DeadLetters);
const GROUP_INFO: Gate = Gate::Operation(OptionalOperation::GroupInfo);

pub(crate) const CASES: &[Case] = &[
    case!(
        "ERR-8" => an_append_out_of_range_is_invalid,
        "an explicit partition is taken modulo the count, or makes a new partition"
    ),
    case!(
        "ERR-8" => a_batch_with_one_out_of_range_is_invalid,
        "events before the bad one in a batch are written already when it is found"
    )
    .needs(&[BATCHES]),
    case!(
        "ERR-8" => a_read_out_of_range_is_invalid,
        "a partition that is not there reads like an empty one"
    ),
    case!(
        "ERR-8" => a_query_out_of_range_is_invalid,
        "a partition that is not there matches nothing, which looks like an empty one"
    )
    .needs(&[RANGE_SCAN]),
    case!(
        "ERR-8" => a_fetch_out_of_range_is_invalid,
        "partitions that are not there are left out of the selection"
    ),
    case!(
        "ERR-8" => a_group_start_out_of_range_is_invalid,
        "a start for a partition that is not there is ignored"
    ),
    case!(
        "ERR-8" => a_replay_out_of_range_is_invalid,
        "partitions are replayed one by one, and the bad one is found after some were"
    )
    .needs(&[REPLAY]),
    case!(
        "ERR-8" => a_reset_out_of_range_is_invalid,
        "partitions are reset one by one, and the bad one is found after some were"
    )
    .needs(&[REPLAY]),
    case!(
        "DLV-2" => a_start_beyond_the_end_is_invalid,
        "a start is taken as it is, so that the group skips what is appended next"
    ),
    case!(
        "DLV-2" => a_start_beyond_the_end_of_one_partition_is_invalid,
        "one start for all partitions is compared with the longest of them"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-5" => a_reset_beyond_the_end_is_invalid,
        "the delivery state is dropped before the new start is checked"
    )
    .needs(&[REPLAY]),
    case!(
        "ERR-6" => the_stream_is_looked_up_before_the_group,
        "group state is found by stream and group at once, and its absence is GroupNotFound"
    ),
    case!(
        "ERR-6" => a_missing_group_is_named,
        "a group that is not there is made on the way, or answers like an empty one"
    ),
    case!(
        "ERR-6" => a_missing_stream_comes_before_bad_input,
        "a partition is checked against a count of 0 or 1 when the stream is not there"
    ),
    case!(
        "ERR-6" => a_missing_group_comes_before_bad_input,
        "the partitions are checked before the group is looked up"
    ),
    case!(
        "ERR-6" => nothing_to_do_excuses_no_missing_stream,
        "a limit of 0, an empty batch or an empty selection returns early, before the look-up"
    ),
    case!(
        "ERR-6" => listing_nothing_excuses_no_missing_group,
        "a limit of 0 returns early, before the look-up"
    )
    .needs(&[LIST_GROUPS, DEAD_LETTERS]),
    case!(
        "ERR-6" => nothing_to_replay_excuses_no_missing_group,
        "a replay or reset of nothing returns early, before the look-up"
    )
    .needs(&[REPLAY]),
    case!(
        "ERR-6" => nothing_to_do_excuses_no_bad_input,
        "a limit of 0 returns early, before the input is checked"
    ),
    case!(
        "ERR-6" => querying_nothing_excuses_no_bad_input,
        "a limit of 0 returns early, before partition and cursor are checked"
    )
    .needs(&[RANGE_SCAN]),
    case!(
        "ERR-10" => a_missing_stream_is_named_as_it_was_given,
        "the name is taken from the store's message, escaped, folded or shortened"
    ),
    case!(
        "ERR-10" => a_missing_group_is_named_with_its_stream,
        "stream and group are swapped, or the stream is one that has such a group"
    ),
    case!(
        "ERR-10" => a_taken_name_is_named_as_it_was_given,
        "the error names the kind of what exists wrongly, or the stream of a group"
    ),
    case!(
        "ERR-10" => a_taken_id_is_named,
        "the error names an id of its own, or the event that is there by another of its fields"
    ),
    case!(
        "ERR-10" => the_taken_id_of_a_batch_is_named,
        "the first id of the batch is named, whichever is taken"
    )
    .needs(&[BATCHES]),
    case!(
        "ERR-10" => a_cursor_that_is_not_found_is_named,
        "the error names the group's last dead letter, or no id at all"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "LOG-8" => the_longest_payload_is_taken_and_no_longer_one,
        "the declared limit of JSON is not the one that the store has, or nobody checks it"
    ),
    case!(
        "LOG-8" => a_batch_up_to_the_limits_is_taken_and_no_longer_one,
        "the declared limits of a batch are not those that the store has, or nobody checks them"
    )
    .needs(&[BATCHES]),
    case!(
        "LOG-8" => a_batch_of_as_many_bytes_as_allowed_is_taken_and_no_larger_one,
        "the store or its driver has a bound for a request or a transaction that is not declared"
    )
    .needs(&[BATCHES]),
    case!(
        "LOG-8" => a_batch_with_one_payload_too_long_is_refused_whole,
        "events are checked while they are written, so that those before a bad one stay"
    )
    .needs(&[BATCHES]),
    case!(
        "LOG-9" => a_missing_stream_is_not_an_empty_one,
        "no rows is all that the store says of a stream that is not there"
    ),
    case!(
        "FRN-4" => a_missing_group_has_no_lag,
        "the lag of a group that is not there is that of one that did nothing"
    )
    .needs(&[FRONTIER]),
    case!(
        "OPS-3" => a_missing_group_has_no_info,
        "the numbers of a group that is not there are zeros"
    )
    .needs(&[GROUP_INFO]),
];

const FAR: [Partition; 2] = [Partition::new(1), Partition::new(u32::MAX)];

/// The event would be where no consumer looks.
async fn an_append_out_of_range_is_invalid(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;

    for partition in FAR {
        let event = t.new_event().with_partition(partition);
        let one = t.backend.append(&stream.name, event.clone()).await;
        expect_invalid(one, "partition")?;
        let batch = t.backend.append_batch(&stream.name, vec![event]).await;
        expect_invalid(batch, "partition")?;
    }
    expect_empty("event", &stream.read(P0).await?)?;
    let next = stream.append(1).await?;
    expect_eq("the sequences", sequences(&next), vec![1])
}

/// Events of that many bytes of payload and metadata together, as few as the limits allow; of fewer
/// bytes, where the number of events is what bounds a batch.
fn batch_of_bytes(limits: &Limits, bytes: usize) -> Outcome<Vec<NewEvent>> {
    let most = limits.batch_events.unwrap_or(usize::MAX);
    let count = bytes.div_ceil(limits.json_bytes).min(most);
    let each = (bytes / count).min(limits.json_bytes);
    let longer = match each == limits.json_bytes {
        true => 0,
        false => bytes % count,
    };
    let mut batch = vec![of_total(each + 1)?; longer];
    batch.resize(count, of_total(each)?);
    Ok(batch)
}

/// A producer that collects for a while flushes megabytes at once.
async fn a_batch_of_as_many_bytes_as_allowed_is_taken_and_no_larger_one(t: Fixture) -> Outcome {
    const WITHOUT_A_LIMIT: usize = 20 << 20;
    let stream = t.stream(1).await?;
    let limits = *t.capabilities().limits();
    let most = limits.batch_bytes.unwrap_or(WITHOUT_A_LIMIT);

    let beyond = batch_of_bytes(&limits, most.min(WITHOUT_A_LIMIT) + 1)?;
    if most < WITHOUT_A_LIMIT && beyond.iter().map(byte_len).sum::<usize>() > most {
        let refused = t.backend.append_batch(&stream.name, beyond).await;
        expect_invalid(refused, "events")?;
        expect_empty("event", &stream.read(P0).await?)?;
    }
    let fits = batch_of_bytes(&limits, most.min(WITHOUT_A_LIMIT))?;
    let count = fits.len();
    let appended = t.backend.append_batch(&stream.name, fits).await?;
    expect_eq("the number of events", appended.len(), count)?;
    let read = stream.read(P0).await?;
    expect(
        read == appended,
        format!("{count} events in the log, as appended"),
        format!("others, {} of them", read.len()),
    )
}

/// The producer repairs the batch and sends it again: nothing of it may be there twice.
async fn a_batch_with_one_out_of_range_is_invalid(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for at in 0..3 {
        let mut batch = vec![t.new_event(), t.new_event(), t.new_event()];
        batch[at].partition = Some(P1);
        let refused = t.backend.append_batch(&stream.name, batch).await;
        expect_invalid(refused, "partition")?;
    }

    expect_empty("event", &stream.read(P0).await?)?;
    let next = stream.append(1).await?;
    expect_eq("the sequences", sequences(&next), vec![1])
}

/// Reading a partition that is not there for ever looks like waiting.
async fn a_read_out_of_range_is_invalid(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(1).await?;

    for partition in FAR {
        let options = ReadOptions::new().with_partition(partition);
        let read = t.backend.read(&stream.name, &options).await;
        expect_invalid(read, "partition")?;
    }
    Ok(())
}

/// An empty page would say that the partition is empty.
async fn a_query_out_of_range_is_invalid(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(1).await?;

    for partition in FAR {
        let query = Query::new().with_partition(partition);
        let queried = t.backend.query(&stream.name, &query).await;
        expect_invalid(queried, "partition")?;
    }
    Ok(())
}

/// A consumer that is bound to a partition which is not there would idle for ever.
async fn a_fetch_out_of_range_is_invalid(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;

    for partition in FAR {
        for selected in [
            Partitions::from(partition),
            Partitions::only([P0, partition]),
        ] {
            let options = FetchOptions::new(ConsumerId::new("a")?).with_partitions(selected);
            let fetched = t
                .backend
                .fetch(&group.stream.name, &group.name, &options)
                .await;
            expect_invalid(fetched, "partitions")?;
        }
    }
    let lease = group.fetch_one("a").await?;
    expect_eq("the attempt", lease.attempt, 1)
}

fn start_at(partition: Partition) -> Start {
    Start::AfterSequences(BTreeMap::from([(partition, Sequence::ZERO)]))
}

/// Whoever names a partition that is not there has another stream in mind.
async fn a_group_start_out_of_range_is_invalid(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(1).await?;
    let name = GroupName::new("billing")?;

    for partition in FAR {
        let options = GroupOptions::new().with_start(start_at(partition));
        let made = t.backend.create_group(&stream.name, &name, &options).await;
        expect_invalid(made, "start")?;
    }
    stream
        .group("billing")
        .await?
        .expect_claimable("a", &[1])
        .await?;
    Ok(())
}

/// Event 1 is acked and event 2 leased; none of it may be given again.
async fn group_with_progress(t: &Fixture) -> Outcome<(Group, rheo_core::Lease)> {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    t.backend.ack(&leases[0]).await?;
    Ok((group, leases[1].clone()))
}

async fn expect_progress(group: &Group, lease: &rheo_core::Lease) -> Outcome {
    group.expect_nothing("b").await?;
    Ok(group.backend.ack(lease).await?)
}

/// A replay that fails half-way is the worst of both.
async fn a_replay_out_of_range_is_invalid(t: Fixture) -> Outcome {
    let (group, lease) = group_with_progress(&t).await?;
    let (stream, name) = (&group.stream.name, &group.name);

    for partition in FAR {
        for partitions in [
            Partitions::from(partition),
            Partitions::only([P0, partition]),
        ] {
            let replay = Replay::After {
                sequence: Sequence::ZERO,
                partitions,
            };
            let replayed = t.backend.replay(stream, name, &replay).await;
            expect_invalid(replayed, "partitions")?;
        }
        let each = [(P0, Sequence::ZERO), (partition, Sequence::ZERO)];
        let each = Replay::AfterEach(BTreeMap::from(each));
        let replayed = t.backend.replay(stream, name, &each).await;
        expect_invalid(replayed, "partitions")?;
    }
    expect_progress(&group, &lease).await
}

/// A reset that fails half-way is the worst of both.
async fn a_reset_out_of_range_is_invalid(t: Fixture) -> Outcome {
    let (group, lease) = group_with_progress(&t).await?;
    let (stream, name) = (&group.stream.name, &group.name);

    for partition in FAR {
        let options = ResetOptions::new().with_partitions(Partitions::only([P0, partition]));
        let reset = t.backend.reset_group(stream, name, &options).await;
        expect_invalid(reset, "partitions")?;
        let options = ResetOptions::new().with_start(start_at(partition));
        let reset = t.backend.reset_group(stream, name, &options).await;
        expect_invalid(reset, "start")?;
    }
    expect_progress(&group, &lease).await
}

/// A group that starts after what is not there yet would miss it.
async fn a_start_beyond_the_end_is_invalid(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(2).await?;
    let name = GroupName::new("billing")?;

    for beyond in [3, 4, i64::MAX.unsigned_abs()] {
        let beyond = Sequence::new(beyond)?;
        for start in [
            Start::AfterSequence(beyond),
            Start::AfterSequences(BTreeMap::from([(P0, beyond)])),
        ] {
            let options = GroupOptions::new().with_start(start);
            let made = t.backend.create_group(&stream.name, &name, &options).await;
            expect_invalid(made, "start")?;
        }
    }
    let last = Start::AfterSequence(Sequence::new(2)?);
    let group = stream.group_from("billing", last).await?;
    stream.append(1).await?;
    group.expect_claimable("a", &[3]).await?;
    Ok(())
}

/// Partitions are seldom equally long.
async fn a_start_beyond_the_end_of_one_partition_is_invalid(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    stream.append_to(P0, 2).await?;
    stream.append_to(P1, 1).await?;
    let name = GroupName::new("billing")?;
    let two = Sequence::new(2)?;

    for start in [
        Start::AfterSequence(two),
        Start::AfterSequences(BTreeMap::from([(P0, two), (P1, two)])),
        Start::AfterSequences(BTreeMap::from([(P1, two)])),
    ] {
        let options = GroupOptions::new().with_start(start);
        let made = t.backend.create_group(&stream.name, &name, &options).await;
        expect_invalid(made, "start")?;
    }
    let fits = Start::AfterSequences(BTreeMap::from([(P0, two)]));
    let group = stream.group_from("billing", fits).await?;
    let leases = group.fetch_all("a").await?;
    let places: Vec<_> = leases.iter().map(|l| l.event.partition).collect();
    expect_eq("the partitions with something claimable", places, vec![P1])
}

/// The reset did not happen, so everything is as it was.
async fn a_reset_beyond_the_end_is_invalid(t: Fixture) -> Outcome {
    let (group, lease) = group_with_progress(&t).await?;
    let three = Sequence::new(3)?;

    for start in [
        Start::AfterSequence(three),
        Start::AfterSequences(BTreeMap::from([(P0, three)])),
        Start::AfterSequence(Sequence::MAX),
    ] {
        let options = ResetOptions::new().with_start(start);
        let reset = t
            .backend
            .reset_group(&group.stream.name, &group.name, &options);
        expect_invalid(reset.await, "start")?;
    }
    expect_progress(&group, &lease).await
}

/// What names a stream and what names a group.
const OF_GROUPS: &[Operation] = &[
    Operation::Fetch,
    Operation::Replay,
    Operation::ResetGroup,
    Operation::Lag,
    Operation::DeadLetters,
    Operation::GroupInfo,
    Operation::WaitForWork,
];
const OF_STREAMS: &[Operation] = &[
    Operation::CreateGroup,
    Operation::Append,
    Operation::AppendBatch,
    Operation::Read,
    Operation::Query,
    Operation::ListGroups,
];

/// The caller makes what is said to be missing, and a group needs its stream first.
async fn the_stream_is_looked_up_before_the_group(t: Fixture) -> Outcome {
    let target = Target::of(&t.group().await?).await?;
    let missing = target.on_stream(StreamName::new("missing")?);
    let not_found = ErrorKind::StreamNotFound;

    missing
        .expect_each_refused(&t.backend, OF_STREAMS, not_found)
        .await?;
    missing
        .expect_each_refused(&t.backend, OF_GROUPS, not_found)
        .await?;
    let nobody = missing.with_group(GroupName::new("nobody")?);
    nobody
        .expect_each_refused(&t.backend, OF_GROUPS, not_found)
        .await?;
    t.stream_named("missing", 1).await?;
    Ok(())
}

/// A typing error in a group's name must not look like a quiet day.
async fn a_missing_group_is_named(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let target = Target::of(&group).await?;
    let nobody = target.with_group(GroupName::new("nobody")?);

    nobody
        .expect_each_refused(&t.backend, OF_GROUPS, ErrorKind::GroupNotFound)
        .await?;
    let made = group.stream.group("nobody").await?;
    made.expect_claimable("b", &[1, 2]).await?;
    Ok(())
}

/// Without the stream, nobody knows which partitions there are.
async fn a_missing_stream_comes_before_bad_input(t: Fixture) -> Outcome {
    let (missing, nobody) = (StreamName::new("missing")?, GroupName::new("nobody")?);
    let not_found = ErrorKind::StreamNotFound;
    let far = Partition::new(7);

    let event = t.new_event().with_partition(far);
    expect_error(t.backend.append(&missing, event).await, not_found)?;
    let read = ReadOptions::new().with_partition(far);
    expect_error(t.backend.read(&missing, &read).await, not_found)?;
    let fetch = FetchOptions::new(ConsumerId::new("a")?).with_partitions(far);
    let fetched = t.backend.fetch(&missing, &nobody, &fetch).await;
    expect_error(fetched, not_found)?;
    let start = Start::AfterSequence(Sequence::MAX);
    let options = GroupOptions::new().with_start(start);
    let made = t.backend.create_group(&missing, &nobody, &options).await;
    expect_error(made, not_found)?;
    Ok(())
}

/// The group is what the caller has to repair first.
async fn a_missing_group_comes_before_bad_input(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let nobody = GroupName::new("nobody")?;
    let far = Partition::new(7);

    let fetch = FetchOptions::new(ConsumerId::new("a")?).with_partitions(far);
    let fetched = t.backend.fetch(&stream.name, &nobody, &fetch).await;
    expect_error(fetched, ErrorKind::GroupNotFound)?;
    if !t.capabilities().guarantees(Guarantee::Replay) {
        return Ok(());
    }
    for replay in [
        Replay::AfterEach(BTreeMap::from([(far, Sequence::ZERO)])),
        Replay::Events(vec![t.unknown_id()]),
    ] {
        let replayed = t.backend.replay(&stream.name, &nobody, &replay).await;
        expect_error(replayed, ErrorKind::GroupNotFound)?;
    }
    let reset = ResetOptions::new().with_start(Start::AfterSequence(Sequence::MAX));
    let reset = t.backend.reset_group(&stream.name, &nobody, &reset).await;
    expect_error(reset, ErrorKind::GroupNotFound)?;
    Ok(())
}

/// An Ok would say that stream and group are there.
async fn nothing_to_do_excuses_no_missing_stream(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let (missing, nobody) = (StreamName::new("missing")?, GroupName::new("nobody")?);

    let batch = t.backend.append_batch(&missing, Vec::new()).await;
    expect_error(batch, ErrorKind::StreamNotFound)?;
    let read = ReadOptions::new().with_limit(0);
    expect_error(
        t.backend.read(&missing, &read).await,
        ErrorKind::StreamNotFound,
    )?;
    let none = FetchOptions::new(ConsumerId::new("a")?);
    for fetch in [
        none.clone().with_limit(0),
        none.with_partitions(Partitions::only([])),
    ] {
        let fetched = t.backend.fetch(&missing, &nobody, &fetch).await;
        expect_error(fetched, ErrorKind::StreamNotFound)?;
        let fetched = t.backend.fetch(&stream.name, &nobody, &fetch).await;
        expect_error(fetched, ErrorKind::GroupNotFound)?;
    }
    Ok(())
}

/// An empty list would say that the group is there and well; so would one without the cursor.
async fn listing_nothing_excuses_no_missing_group(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let stream = &group.stream.name;
    let (missing, nobody) = (StreamName::new("missing")?, GroupName::new("nobody")?);

    let none = ListOptions::new().with_limit(0);
    let listed = t.backend.list_groups(&missing, &none).await;
    expect_error(listed, ErrorKind::StreamNotFound)?;
    let none = DeadLetterOptions::new().with_limit(0);
    let dead = t.backend.dead_letters(&missing, &nobody, &none).await;
    expect_error(dead, ErrorKind::StreamNotFound)?;
    let dead = t.backend.dead_letters(stream, &nobody, &none).await;
    expect_error(dead, ErrorKind::GroupNotFound)?;
    let after = none.with_after(t.unknown_id());
    let dead = t.backend.dead_letters(stream, &group.name, &after).await;
    expect_error(dead, ErrorKind::CursorNotFound)?;
    Ok(())
}

/// An Ok would say that the group went back.
async fn nothing_to_replay_excuses_no_missing_group(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let nobody = GroupName::new("nobody")?;

    for replay in [
        Replay::Events(Vec::new()),
        Replay::AfterEach(BTreeMap::new()),
        Replay::After {
            sequence: Sequence::ZERO,
            partitions: Partitions::only([]),
        },
    ] {
        let replayed = t.backend.replay(&stream.name, &nobody, &replay).await;
        expect_error(replayed, ErrorKind::GroupNotFound)?;
    }
    let none = ResetOptions::new().with_partitions(Partitions::only([]));
    let reset = t.backend.reset_group(&stream.name, &nobody, &none).await;
    expect_error(reset, ErrorKind::GroupNotFound)?;
    Ok(())
}

/// What is refused with a limit of 1 is refused with 0.
async fn nothing_to_do_excuses_no_bad_input(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let (stream, name) = (&group.stream.name, &group.name);

    let read = ReadOptions::new().with_limit(0).with_partition(P1);
    expect_invalid(t.backend.read(stream, &read).await, "partition")?;
    let fetch = FetchOptions::new(ConsumerId::new("a")?)
        .with_limit(0)
        .with_partitions(P1);
    expect_invalid(t.backend.fetch(stream, name, &fetch).await, "partitions")
}

/// What is refused with a limit of 1 is refused with 0.
async fn querying_nothing_excuses_no_bad_input(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let none = Query::new().with_limit(0);

    let missing = StreamName::new("missing")?;
    expect_error(
        t.backend.query(&missing, &none).await,
        ErrorKind::StreamNotFound,
    )?;
    let far = none.clone().with_partition(P1);
    expect_invalid(t.backend.query(&stream.name, &far).await, "partition")?;
    let damaged = none.with_cursor(rheo_core::Cursor::from_text("damaged"));
    expect_invalid(t.backend.query(&stream.name, &damaged).await, "cursor")
}

/// A JSON object of that many bytes.
fn of_bytes(bytes: usize) -> serde_json::Value {
    const AROUND: usize = r#"{"f":""}"#.len();
    json!({ "f": "x".repeat(bytes.saturating_sub(AROUND)) })
}

async fn append_payload(t: &Fixture, to: &StreamName, bytes: usize) -> rheo_core::Result<()> {
    let event = NewEvent::new("t", of_bytes(bytes))?;
    t.backend.append(to, event).await.map(drop)
}

async fn append_metadata(t: &Fixture, to: &StreamName, bytes: usize) -> rheo_core::Result<()> {
    let metadata = JsonObject::metadata(of_bytes(bytes))?;
    let event = t.new_event().with_metadata(metadata);
    t.backend.append(to, event).await.map(drop)
}

/// The declared limit is what producers cut their events to.
async fn the_longest_payload_is_taken_and_no_longer_one(t: Fixture) -> Outcome {
    const EMPTY: usize = "{}".len();
    let stream = t.stream(1).await?;
    let declared = *t.capabilities().limits();
    let room = declared.batch_bytes.unwrap_or(usize::MAX) - EMPTY;
    for beyond in [
        append_payload(&t, &stream.name, declared.json_bytes + 1).await,
        append_metadata(&t, &stream.name, declared.json_bytes + 1).await,
    ] {
        expect_error(beyond, ErrorKind::Invalid)?;
    }
    expect_empty("event", &stream.read(P0).await?)?;

    let longest = of_bytes(declared.json_bytes.min(room));
    let metadata = JsonObject::metadata(longest.clone())?;
    let event = NewEvent::new("t", longest)?;
    let appended = stream.append_event(event.clone()).await?;
    expect(
        appended.payload == event.payload,
        "the payload as given",
        "another",
    )?;
    let event = new_event("t", json!({})).with_metadata(metadata.clone());
    let other = stream.append_event(event).await?;
    expect(
        other.metadata == metadata,
        "the metadata as given",
        "another",
    )?;
    let read = stream.read(P0).await?;
    expect(
        read == [appended, other],
        "the events as appended",
        "others",
    )
}

/// The declared limits are what producers cut their batches to; without one, 1,000 events fit.
async fn a_batch_up_to_the_limits_is_taken_and_no_longer_one(t: Fixture) -> Outcome {
    const EMPTY: usize = "{}{}".len();
    let stream = t.stream(1).await?;
    let declared = *t.capabilities().limits();
    let by_bytes = declared
        .batch_bytes
        .map_or(usize::MAX, |bytes| bytes / EMPTY);
    let most = declared.batch_events.unwrap_or(usize::MAX).min(by_bytes);
    let batch = |events: usize| vec![new_event("t", json!({})); events];

    if most < 100_000 {
        let beyond = t.backend.append_batch(&stream.name, batch(most + 1)).await;
        expect_invalid(beyond, "events")?;
        expect_empty("event", &stream.read(P0).await?)?;
    }
    let fits = most.min(1_000);
    let appended = t.backend.append_batch(&stream.name, batch(fits)).await?;
    expect_eq("the number of events", appended.len(), fits)?;
    expect_eq("the number of events", stream.read(P0).await?.len(), fits)
}

/// The producer repairs the batch and sends it again: nothing of it may be there twice.
async fn a_batch_with_one_payload_too_long_is_refused_whole(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let beyond = t.capabilities().limits().json_bytes + 1;
    let refused = match NewEvent::new("t", of_bytes(beyond)) {
        Ok(long) => {
            let batch = vec![t.new_event(), long, t.new_event()];
            t.backend.append_batch(&stream.name, batch).await
        }
        Err(refused) => Err(refused),
    };

    expect_invalid(refused, "payload")?;
    expect_empty("event", &stream.read(P0).await?)
}

/// Reading a stream that is not there for ever looks like waiting.
async fn a_missing_stream_is_not_an_empty_one(t: Fixture) -> Outcome {
    t.stream(1).await?;
    let missing = StreamName::new("missing")?;

    let read = t.backend.read(&missing, &ReadOptions::new()).await;
    let error = expect_error(read, ErrorKind::StreamNotFound)?;
    let named = rheo_core::Error::StreamNotFound { stream: missing };
    expect_eq("the error", error, named)
}

/// A dashboard for a group that is not there must not be green.
async fn a_missing_group_has_no_lag(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let nobody = GroupName::new("nobody")?;

    let lag = t.backend.lag(&stream.name, &nobody).await;
    let error = expect_error(lag, ErrorKind::GroupNotFound)?;
    let named = rheo_core::Error::GroupNotFound {
        stream: stream.name.clone(),
        group: nobody,
    };
    expect_eq("the error", error, named)
}

/// A dashboard for a group that is not there must not be green.
async fn a_missing_group_has_no_info(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let nobody = GroupName::new("nobody")?;

    let info = t.backend.group_info(&stream.name, &nobody).await;
    expect_error(info, ErrorKind::GroupNotFound)?;
    Ok(())
}
