//! Groups and delivery: who gets which event, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, ErrorKind, Event, EventKey, FetchOptions, Gate, GroupName, GroupOptions,
    Guarantee, JsonObject, Lease, LeaseDuration, MaxAttempts, Partition, Partitions, Replay,
    Sequence, Start, StreamName, Timestamp,
};
use serde_json::json;
use tokio::task::JoinSet;

use crate::case::{Case, case};
use crate::expect::{Outcome, expect, expect_empty, expect_eq, expect_error, expect_invalid};
use crate::fixture::{Fixture, new_event};
use crate::scene::{Group, P0, P1, Stream, sequences_of};
use crate::step::{Step, expect_stale, retry_after};

const PARTITIONS: &[Gate] = &[Gate::Guarantee(Guarantee::Partitions)];

pub(crate) const CASES: &[Case] = &[
    case!(
        "DLV-1" => each_group_gets_every_event,
        "the groups share one position, or a claim hides the event from all"
    ),
    case!(
        "DLV-1" => what_one_group_does_concerns_no_other,
        "delivery state is kept with the event instead of with the group"
    ),
    case!(
        "DLV-1" => groups_are_ready_at_different_times,
        "a group is told of new events only, or an event is removed once every group of its time has it"
    ),
    case!(
        "DLV-2" => a_group_starts_at_the_beginning_by_default,
        "the default start is the end, as in some native consumer groups"
    ),
    case!(
        "DLV-2" => a_start_after_a_sequence_is_exclusive,
        "the start is taken for the first event to deliver, or for a count from 0"
    ),
    case!(
        "DLV-2" => a_start_after_a_sequence_is_for_every_partition,
        "the start is applied to partition 0 alone"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-2" => a_start_may_name_a_sequence_per_partition,
        "a partition that the start does not name begins at its end, or where another one does"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-2" => a_start_beyond_the_high_watermark_is_invalid,
        "the start is stored unchecked, and the group misses what is appended up to it"
    ),
    case!(
        "DLV-2" => a_start_beyond_one_partitions_high_watermark_is_invalid,
        "the start is compared with the largest partition's high watermark"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-2" => a_start_at_a_time_is_before_the_first_event_of_that_time,
        "the time is compared with > where it has to be >=, or loses its microseconds"
    ),
    case!(
        "DLV-2" => a_start_at_a_time_goes_by_the_lowest_sequence,
        "timestamps are taken to ascend: the start is found by bisection, or the last earlier event is taken"
    ),
    case!(
        "DLV-2" => a_start_at_a_time_is_found_per_partition,
        "the place that was found in one partition is used for all"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-2" => a_start_is_fixed_when_the_group_is_made,
        "the time is kept and compared at every fetch instead of once"
    ),
    case!(
        "DLV-2" => a_start_at_the_end_gets_all_that_comes_later,
        "the end is looked up at the first fetch instead of when the group is made"
    ),
    case!(
        "DLV-2" => a_group_can_start_on_an_empty_stream,
        "without any event there is no position to store"
    ),
    case!(
        "DLV-2" => a_duplicate_group_changes_nothing,
        "the group is written with an upsert"
    ),
    case!(
        "DLV-3" => a_fetch_gives_no_more_than_its_limit,
        "the limit applies to each partition, or is off by one"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-3" => a_limit_of_0_gives_and_claims_nothing,
        "0 means no limit in the store"
    ),
    case!(
        "DLV-3" => the_largest_limit_is_a_limit_too,
        "the limit overflows when it is added to or turned into a signed number"
    ),
    case!(
        "DLV-3" => one_lease_is_the_default,
        "a batch size of the backend's own is the default"
    ),
    case!(
        "DLV-3" => nothing_claimable_gives_nothing,
        "events that are acked, leased or dead are handed out again when nothing else is there"
    ),
    case!(
        "DLV-3" => a_fetch_finds_the_only_claimable_event,
        "the limit is applied to what is looked at, and what is leased or done is sorted out afterwards"
    ),
    case!(
        "DLV-3" => a_fetch_stays_in_its_partitions,
        "the selection of partitions is ignored"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-3" => a_selection_is_looked_through_and_no_other,
        "the limit is applied before the selection of partitions"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-3" => no_partitions_give_and_claim_nothing,
        "an empty selection means all partitions"
    ),
    case!(
        "DLV-4" => the_lowest_sequences_come_first,
        "the rows are claimed in no order, or returned in the order of the update"
    ),
    case!(
        "DLV-4" => each_partition_comes_in_order,
        "the events are ordered by time or id over all partitions, or in no order"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-4" => what_comes_again_goes_before_what_is_new,
        "new events are fetched first, and expired or retried ones only when there are none"
    ),
    case!(
        "DLV-4" => retried_events_come_by_sequence_and_not_by_turn,
        "retried events queue up in the order of their retries"
    ),
    case!(
        "DLV-4" => delayed_events_come_by_sequence_and_not_by_due_time,
        "what is due is ordered by when it became due"
    ),
    case!(
        "DLV-4" => replayed_events_go_before_what_is_new,
        "replayed events are put behind the new ones"
    )
    .needs(&[Gate::Guarantee(Guarantee::Replay)]),
    case!(
        "DLV-5" => every_partition_is_served,
        "the first partition that has something is always taken"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-5" => a_busy_partition_starves_no_other,
        "the partition with the oldest or the newest event is always taken"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-5" => a_retried_event_starves_no_other_partition,
        "retried events go before those of all other partitions"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-5" => every_selected_partition_is_served,
        "the turn passes over partitions that are not selected, or stands still with them"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-6" => events_that_come_while_others_are_leased_are_delivered,
        "the position was put to the end when the group had caught up"
    ),
    case!(
        "DLV-6" => an_ack_settles_no_lower_event,
        "an ack moves the position, as in a log without acks of single events"
    ),
    case!(
        "DLV-6" => nothing_is_missed_whatever_happens_to_it,
        "some way through losing, retrying and delaying leaves an event in no state"
    ),
    case!(
        "DLV-6" => a_lease_that_nobody_heard_of_comes_again,
        "what was handed out counts as done"
    ),
    case!(
        "DLV-6" => events_of_a_lower_partition_are_not_passed_over,
        "one position over all partitions is kept, by time or id"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-6" => events_with_earlier_times_are_not_passed_over,
        "the position is a timestamp or a time-ordered id"
    ),
    case!(
        "DLV-7" => two_consumers_never_hold_the_same_event,
        "each consumer has its own position, or the claim is made without a condition"
    ),
    case!(
        "DLV-7" => a_holder_does_not_get_its_own_event_again,
        "a fetch begins with what the consumer already holds"
    ),
    case!(
        "DLV-7" => an_acked_event_never_comes_again,
        "the ack leaves the claim, which then expires"
    ),
    case!(
        "DLV-7" => concurrent_fetches_share_no_event,
        "the events are chosen in one step and claimed in another"
    ),
    case!(
        "DLV-8" => a_lease_is_whole,
        "the lease is made of the request, or the event without its key, metadata or time"
    ),
    case!(
        "DLV-8" => a_lease_lasts_as_long_as_was_asked_for,
        "the duration is ignored, rounded to seconds or milliseconds, or capped"
    ),
    case!(
        "DLV-8" => no_lease_outlasts_the_highest_timestamp,
        "the sum of now and the duration overflows, or does not fit the column"
    ),
    case!(
        "DLV-8" => each_claim_has_its_own_time_and_consumer,
        "a reclaim keeps the consumer or the times of the first claim"
    ),
    case!(
        "ERR-6" => a_missing_stream_is_noticed_before_its_group,
        "only the group is looked up, by stream and name"
    ),
];

fn options(consumer: &str) -> Outcome<FetchOptions> {
    Ok(FetchOptions::new(ConsumerId::new(consumer)?))
}

/// Everything claimable, as (partition, sequence), sorted.
async fn claimable(group: &Group, consumer: &str) -> Outcome<Vec<(u32, u64)>> {
    let place = |lease: &Lease| (lease.event.partition.number(), lease.event.sequence.get());
    let mut places: Vec<_> = group.fetch_all(consumer).await?.iter().map(place).collect();
    places.sort_unstable();
    Ok(places)
}

/// A stream with that many events in each partition.
async fn filled(t: &Fixture, partitions: u32, events: usize) -> Outcome<Stream> {
    let stream = t.stream(partitions).await?;
    for partition in 0..partitions {
        stream.append_to(Partition::new(partition), events).await?;
    }
    Ok(stream)
}

/// The point of consumer groups: each department reads the whole log.
async fn each_group_gets_every_event(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let billing = stream.group("billing").await?;
    let shipping = stream.group("shipping").await?;
    let events = stream.append(3).await?;

    for group in [&billing, &shipping] {
        let leases = group.fetch_exactly("a", 3).await?;
        let seen: Vec<Event> = leases.into_iter().map(|lease| lease.event).collect();
        expect_eq("the events", &seen, &events)?;
    }
    Ok(())
}

/// One group acks, rejects, retries, delays and holds; the other begins with a clean slate.
async fn what_one_group_does_concerns_no_other(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let billing = stream.group("billing").await?;
    let shipping = stream.group("shipping").await?;
    stream.append(5).await?;
    let leases = billing.fetch_exactly("a", 5).await?;
    for (step, lease) in Step::SETTLES.iter().zip(&leases) {
        step.on(&t.backend, lease).await?;
    }
    let hour = Duration::from_secs(3_600);
    t.backend.retry(&leases[3], &retry_after(hour)?).await?;

    let there = shipping.expect_claimable("a", &[1, 2, 3, 4, 5]).await?;
    let attempts: Vec<u32> = there.iter().map(|lease| lease.attempt).collect();
    expect_eq("the attempts", attempts, vec![1; 5])?;
    shipping.ack(&there).await?;
    billing.expect_claimable("a", &[2]).await?;
    t.backend.ack(&leases[4]).await?;
    Ok(())
}

/// A group that is made later, or sleeps, reads what the others have long done.
async fn groups_are_ready_at_different_times(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let early = stream.group("early").await?;
    stream.append(2).await?;
    early.ack(&early.fetch_exactly("a", 2).await?).await?;
    let late = stream.group("late").await?;
    stream.append(1).await?;

    early.expect_claimable("a", &[3]).await?;
    late.expect_claimable("a", &[1, 2, 3]).await?;
    Ok(())
}

/// Nobody who says nothing wants to lose the beginning.
async fn a_group_starts_at_the_beginning_by_default(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(2).await?;
    let silent = stream.group("silent").await?;
    let explicit = stream.group_from("explicit", Start::Beginning).await?;
    stream.append(1).await?;

    silent.expect_claimable("a", &[1, 2, 3]).await?;
    explicit.expect_claimable("a", &[1, 2, 3]).await?;
    Ok(())
}

/// After what was processed elsewhere, not with it again.
async fn a_start_after_a_sequence_is_exclusive(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(3).await?;
    for (after, expected) in [(0, &[1, 2, 3][..]), (1, &[2, 3]), (2, &[3]), (3, &[])] {
        let start = Start::AfterSequence(Sequence::new(after)?);
        let group = stream.group_from(&format!("after-{after}"), start).await?;
        group.expect_claimable("a", expected).await?;
    }
    let start = Start::AfterSequence(Sequence::new(3)?);
    let group = stream.group_from("at-the-end", start).await?;
    stream.append(1).await?;
    group.expect_claimable("a", &[4]).await?;
    Ok(())
}

/// One number, for all partitions.
async fn a_start_after_a_sequence_is_for_every_partition(t: Fixture) -> Outcome {
    let stream = filled(&t, 3, 2).await?;
    let start = Start::AfterSequence(Sequence::new(1)?);
    let group = stream.group_from("billing", start).await?;

    let places = claimable(&group, "a").await?;
    expect_eq("the claimable events", places, vec![(0, 2), (1, 2), (2, 2)])
}

/// A number for each partition, and the beginning for those without.
async fn a_start_may_name_a_sequence_per_partition(t: Fixture) -> Outcome {
    let stream = filled(&t, 3, 2).await?;
    let named = [
        (P0, Sequence::new(2)?),
        (Partition::new(2), Sequence::new(1)?),
    ];
    let start = Start::AfterSequences(BTreeMap::from(named));
    let group = stream.group_from("billing", start).await?;
    stream.append(1).await?;

    let places = claimable(&group, "a").await?;
    let expected = vec![(0, 3), (1, 1), (1, 2), (2, 2)];
    expect_eq("the claimable events", places, expected)
}

/// What is not there yet cannot have been processed; the group would skip it when it comes.
async fn a_start_beyond_the_high_watermark_is_invalid(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(2).await?;
    let billing = GroupName::new("billing")?;
    for beyond in [Sequence::new(3)?, Sequence::MAX] {
        let each = BTreeMap::from([(P0, beyond)]);
        for start in [Start::AfterSequence(beyond), Start::AfterSequences(each)] {
            let options = GroupOptions::new().with_start(start);
            let made = t
                .backend
                .create_group(&stream.name, &billing, &options)
                .await;
            expect_invalid(made, "start")?;
        }
    }

    let fetched = t
        .backend
        .fetch(&stream.name, &billing, &options("a")?)
        .await;
    expect_error(fetched, ErrorKind::GroupNotFound)?;
    let group = stream.group("billing").await?;
    group.expect_claimable("a", &[1, 2]).await?;
    Ok(())
}

/// One number for all partitions must be there in all of them.
async fn a_start_beyond_one_partitions_high_watermark_is_invalid(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    stream.append_to(P0, 3).await?;
    stream.append_to(P1, 1).await?;
    let billing = GroupName::new("billing")?;
    let each = BTreeMap::from([(P0, Sequence::new(3)?), (P1, Sequence::new(2)?)]);
    for start in [
        Start::AfterSequence(Sequence::new(1)?),
        Start::AfterSequences(each),
    ] {
        let options = GroupOptions::new().with_start(start);
        let made = t
            .backend
            .create_group(&stream.name, &billing, &options)
            .await;
        expect_invalid(made, "start")?;
    }

    let group = stream.group("billing").await?;
    let places = claimable(&group, "a").await?;
    let expected = vec![(0, 1), (0, 2), (0, 3), (1, 1)];
    expect_eq("the claimable events", places, expected)
}

/// Demands that groups which start at these times get what they should of partition 0.
async fn expect_starts(stream: &Stream, events: &[Event], times: &[Timestamp]) -> Outcome {
    for (number, time) in times.iter().enumerate() {
        let is_first = |event: &&Event| event.timestamp >= *time;
        let first = events.iter().find(is_first).map(|event| event.sequence);
        let expected = events
            .iter()
            .filter(|event| first.is_some_and(|f| event.sequence >= f));
        let expected: Vec<u64> = expected.map(|event| event.sequence.get()).collect();
        let name = format!("at-{number}");
        let group = stream.group_from(&name, Start::AtTime(*time)).await?;
        group.expect_claimable("a", &expected).await?;
    }
    Ok(())
}

/// Events at the same time, and around it: to the microsecond.
async fn a_start_at_a_time_is_before_the_first_event_of_that_time(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut events = Vec::new();
    for _ in 0..3 {
        t.pass(Duration::from_micros(1)).await;
        events.extend(stream.append(2).await?);
    }
    let mut times = vec![Timestamp::MIN, Timestamp::MAX];
    let microsecond = Duration::from_micros(1);
    for event in &events {
        times.push(event.timestamp.saturating_sub(microsecond));
        times.push(event.timestamp);
        times.push(event.timestamp.saturating_add(microsecond));
    }

    expect_starts(&stream, &events, &times).await
}

/// A clock that was set back in between: the log has a later time before an earlier one.
async fn a_start_at_a_time_goes_by_the_lowest_sequence(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut events = stream.append(1).await?;
    t.pass(Duration::from_millis(20)).await;
    events.extend(stream.append(1).await?);
    t.turn_back(Duration::from_secs(60));
    events.extend(stream.append(2).await?);
    t.pass(Duration::from_millis(20)).await;
    events.extend(stream.append(1).await?);
    let times: Vec<Timestamp> = events.iter().map(|event| event.timestamp).collect();

    expect_starts(&stream, &events, &times).await
}

/// Time is one; the places where it is found are as many as partitions.
async fn a_start_at_a_time_is_found_per_partition(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    stream.append_to(P0, 3).await?;
    stream.append_to(P1, 1).await?;
    t.pass(Duration::from_millis(1)).await;
    let time = stream.append_to(P1, 1).await?[0].timestamp;
    stream.append_to(P0, 1).await?;
    let group = stream.group_from("billing", Start::AtTime(time)).await?;
    stream.append_to(Partition::new(2), 1).await?;

    let places = claimable(&group, "a").await?;
    expect_eq("the claimable events", places, vec![(0, 4), (1, 2), (2, 1)])
}

/// A start is a place in the log; a time only says where.
async fn a_start_is_fixed_when_the_group_is_made(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(1).await?;
    let tomorrow = t.now().saturating_add(Duration::from_secs(86_400));
    let group = stream
        .group_from("billing", Start::AtTime(tomorrow))
        .await?;
    stream.append(2).await?;

    group.expect_claimable("a", &[2, 3]).await?;
    Ok(())
}

/// From now on means from when it was said.
async fn a_start_at_the_end_gets_all_that_comes_later(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(2).await?;
    let group = stream.group_from("billing", Start::End).await?;
    stream.append(2).await?;

    group.expect_claimable("a", &[3, 4]).await?;
    group.expect_nothing("a").await
}

/// Consumers come up before producers; wherever they start, they get the first event.
async fn a_group_can_start_on_an_empty_stream(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut groups = Vec::new();
    for (name, start) in [
        ("beginning", Start::Beginning),
        ("after-0", Start::AfterSequence(Sequence::ZERO)),
        ("after-none", Start::AfterSequences(BTreeMap::new())),
        ("now", Start::AtTime(t.now())),
        ("end", Start::End),
    ] {
        let group = stream.group_from(name, start).await?;
        group.expect_nothing("a").await?;
        groups.push(group);
    }
    stream.append(2).await?;

    for group in &groups {
        group.expect_claimable("a", &[1, 2]).await?;
    }
    Ok(())
}

/// Every worker makes its group when it starts; the second must not spoil the first's.
async fn a_duplicate_group_changes_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    t.backend.ack(&leases[0]).await?;
    let stream = &group.stream;
    for start in [Start::Beginning, Start::End] {
        let options = GroupOptions::new().with_start(start);
        let options = options.with_max_attempts(MaxAttempts::new(1)?);
        let again = t
            .backend
            .create_group(&stream.name, &group.name, &options)
            .await;
        expect_error(again, ErrorKind::AlreadyExists)?;
    }

    Step::Retry.on(&t.backend, &leases[1]).await?;
    let claimable = group.expect_claimable("a", &[2, 3]).await?;
    expect_eq("the attempt", claimable[0].attempt, 2)
}

/// A worker has room for so many, whatever the number of partitions.
async fn a_fetch_gives_no_more_than_its_limit(t: Fixture) -> Outcome {
    let stream = filled(&t, 3, 4).await?;
    let group = stream.group("billing").await?;
    let mut seen = 0;
    for limit in [1, 2, 3, 5] {
        let leases = group.fetch_with(&options("a")?.with_limit(limit)).await?;
        seen += leases.len();
        expect(
            (1..=limit as usize).contains(&leases.len()),
            format!("1 to {limit} leases"),
            format!("{} leases", leases.len()),
        )?;
    }

    let rest = group.fetch_all("a").await?;
    expect_eq("the number of all leases", seen + rest.len(), 12)
}

/// A worker without room that asks all the same is given nothing, and takes nothing.
async fn a_limit_of_0_gives_and_claims_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let none = options("a")?.with_limit(0);
    expect_empty("lease", &group.fetch_with(&none).await?)?;
    let leases = group.expect_claimable("b", &[1, 2, 3]).await?;

    let attempts: Vec<u32> = leases.iter().map(|lease| lease.attempt).collect();
    expect_eq("the attempts", attempts, vec![1; 3])
}

/// As many as there are.
async fn the_largest_limit_is_a_limit_too(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let all = options("a")?.with_limit(u32::MAX);
    let mut fetched = Vec::new();
    for _ in 0..3 {
        fetched.extend(group.fetch_with(&all).await?);
    }

    expect_eq("the sequences", sequences_of(&fetched), vec![1, 2, 3])
}

/// Who says nothing gets one event at a time.
async fn one_lease_is_the_default(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;

    let leases = group.fetch_with(&options("a")?).await?;
    expect_eq("the sequences", sequences_of(&leases), vec![1])
}

/// Empty, all leased, all waiting, all done: four kinds of nothing.
async fn nothing_claimable_gives_nothing(t: Fixture) -> Outcome {
    let group = t.group().await?;
    group.expect_nothing("a").await?;
    group.stream.append(4).await?;
    let leases = group.fetch_exactly("a", 4).await?;
    group.expect_nothing("b").await?;
    let hour = Duration::from_secs(3_600);
    t.backend.retry(&leases[0], &retry_after(hour)?).await?;
    group.expect_nothing("b").await?;
    t.backend.ack(&leases[1]).await?;
    group.reject(&leases[2], "no good").await?;
    t.backend.ack(&leases[3]).await?;

    group.expect_nothing("a").await?;
    group.expect_nothing("b").await
}

/// A hundred in progress, one free: one fetch finds it.
async fn a_fetch_finds_the_only_claimable_event(t: Fixture) -> Outcome {
    let group = t.group_with_events(120).await?;
    let leases = group.fetch_exactly("a", 120).await?;
    group.ack(&leases[..30]).await?;
    let one = options("b")?.with_limit(1);
    for at in [119, 70, 30] {
        Step::Retry.on(&t.backend, &leases[at]).await?;
        let fetched = group.fetch_with(&one).await?;

        let expected = vec![leases[at].event.sequence.get()];
        expect_eq(
            "the sequences of a single fetch",
            sequences_of(&fetched),
            expected,
        )?;
    }
    group.stream.append(1).await?;
    let fetched = group.fetch_with(&one).await?;
    expect_eq(
        "the sequences of a single fetch",
        sequences_of(&fetched),
        vec![121],
    )
}

/// Workers that share the partitions among themselves rely on it.
async fn a_fetch_stays_in_its_partitions(t: Fixture) -> Outcome {
    let stream = filled(&t, 3, 2).await?;
    let group = stream.group("billing").await?;
    let selection = Partitions::only([P0, Partition::new(2)]);
    let selected = options("a")?.with_partitions(selection);
    let leases = group.gather(selected.clone(), 100).await?;
    expect_empty("lease", &group.fetch_with(&selected).await?)?;

    let place = |lease: &Lease| (lease.event.partition.number(), lease.event.sequence.get());
    let mut places: Vec<_> = leases.iter().map(place).collect();
    places.sort_unstable();
    let expected = vec![(0, 1), (0, 2), (2, 1), (2, 2)];
    expect_eq("the leased events", places, expected)?;
    let rest = claimable(&group, "b").await?;
    expect_eq("the claimable events", rest, vec![(1, 1), (1, 2)])
}

/// However much there is elsewhere, and however little here.
async fn a_selection_is_looked_through_and_no_other(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    stream.append_to(P0, 50).await?;
    stream.append_to(Partition::new(2), 50).await?;
    stream.append_to(P1, 1).await?;
    let group = stream.group("billing").await?;
    let one = options("a")?.with_limit(1).with_partitions(P1);

    let leases = group.fetch_with(&one).await?;
    expect_eq(
        "the sequences of a single fetch",
        sequences_of(&leases),
        vec![1],
    )?;
    expect_eq("the partition", leases[0].event.partition, P1)?;
    expect_empty("lease", &group.fetch_with(&one).await?)
}

/// A worker whose partitions all went to others.
async fn no_partitions_give_and_claim_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let nowhere = options("a")?
        .with_limit(10)
        .with_partitions(Partitions::only([]));
    expect_empty("lease", &group.fetch_with(&nowhere).await?)?;
    let leases = group.expect_claimable("a", &[1, 2]).await?;

    expect_eq("the attempt", leases[0].attempt, 1)
}

/// In a fetch and from fetch to fetch.
async fn the_lowest_sequences_come_first(t: Fixture) -> Outcome {
    let group = t.group_with_events(12).await?;
    let mut seen = Vec::new();
    for limit in [1, 5, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4] {
        let leases = group.fetch_with(&options("a")?.with_limit(limit)).await?;
        seen.extend(sequences_of(&leases));
    }

    expect_eq("the sequences", seen, (1..=12).collect())
}

/// Appended by turns, so that no order but that of each partition explains it.
async fn each_partition_comes_in_order(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    for round in 0..4 {
        for partition in 0..3 {
            let partition = Partition::new((partition + round) % 3);
            stream.append_to(partition, 1).await?;
        }
    }
    let group = stream.group("billing").await?;
    let leases = group.fetch_exactly("a", 12).await?;

    for partition in (0..3).map(Partition::new) {
        let here = leases
            .iter()
            .filter(|lease| lease.event.partition == partition);
        let seen: Vec<u64> = here.map(|lease| lease.event.sequence.get()).collect();
        let what = format!("the sequences of partition {partition}");
        expect_eq(&what, seen, vec![1, 2, 3, 4])?;
    }
    Ok(())
}

/// Or what failed once would wait for as long as there is anything new.
async fn what_comes_again_goes_before_what_is_new(t: Fixture) -> Outcome {
    let group = t.group_with_events(8).await?;
    let lost = group.fetch_briefly("a", 3).await?;
    let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
    let held = options("a")?.with_lease_duration(hour);
    let held = group.gather(held, 3).await?;
    Step::Retry.on(&t.backend, &held[1]).await?;
    t.backend.ack(&lost[1]).await?;
    t.let_lease_expire(&lost[2]).await;
    let first = group.fetch_one("b").await?;

    expect_eq("the sequence", first.event.sequence.get(), 1)?;
    group.expect_claimable("b", &[3, 5, 7, 8]).await?;
    Ok(())
}

/// Given back in another order than claimed.
async fn retried_events_come_by_sequence_and_not_by_turn(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    let leases = group.fetch_exactly("a", 4).await?;
    for at in [2, 0, 3, 1] {
        Step::Retry.on(&t.backend, &leases[at]).await?;
    }

    let first = group.fetch_one("b").await?;
    expect_eq("the sequence", first.event.sequence.get(), 1)?;
    group.expect_claimable("b", &[2, 3, 4, 5]).await?;
    Ok(())
}

/// The lower one was due later; both are due now.
async fn delayed_events_come_by_sequence_and_not_by_due_time(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    for (lease, parts) in leases.iter().zip([4, 2, 1]) {
        let delay = retry_after(t.brief() / 4 * parts)?;
        t.backend.retry(lease, &delay).await?;
    }
    t.pass(t.brief()).await;

    let first = group.fetch_one("b").await?;
    expect_eq("the sequence", first.event.sequence.get(), 1)?;
    group.expect_claimable("b", &[2, 3]).await?;
    Ok(())
}

/// What is done again is done before what is new.
async fn replayed_events_go_before_what_is_new(t: Fixture) -> Outcome {
    let group = t.group_with_events(6).await?;
    let leases = group.fetch_exactly("a", 4).await?;
    group.ack(&leases).await?;
    let chosen = Replay::Events(vec![leases[2].event.id, leases[0].event.id]);
    group.replay(&chosen).await?;

    let first = group.fetch_one("b").await?;
    expect_eq("the sequence", first.event.sequence.get(), 1)?;
    group.expect_claimable("b", &[3, 5, 6]).await?;
    Ok(())
}

/// The partitions that fetches served, and whether they are all.
#[derive(Default)]
struct Served(BTreeSet<u32>);

impl Served {
    fn note(&mut self, leases: &[Lease]) {
        let partitions = leases.iter().map(|lease| lease.event.partition.number());
        self.0.extend(partitions);
    }

    fn expect(self, partitions: &[u32]) -> Outcome {
        let fetches = 2 * partitions.len();
        let what = format!("the partitions served by {fetches} fetches");
        expect_eq(&what, self.0, partitions.iter().copied().collect())
    }
}

/// Many events everywhere; one at a time, and several.
async fn every_partition_is_served(t: Fixture) -> Outcome {
    let stream = filled(&t, 3, 25).await?;
    for limit in [1, 4] {
        let group = stream.group(&format!("of-{limit}")).await?;
        let mut served = Served::default();
        for _ in 0..6 {
            let leases = group.fetch_with(&options("a")?.with_limit(limit)).await?;
            served.note(&leases);
        }

        served.expect(&[0, 1, 2])?;
    }
    Ok(())
}

/// One customer's partition never runs dry, and the others still get their turn.
async fn a_busy_partition_starves_no_other(t: Fixture) -> Outcome {
    for busy in (0..3).map(Partition::new) {
        let stream = filled(&t, 3, 8).await?;
        stream.append_to(busy, 20).await?;
        let group = stream.group("billing").await?;
        let mut served = Served::default();
        for _ in 0..6 {
            let leases = group.fetch_with(&options("a")?).await?;
            served.note(&leases);
            group.ack(&leases).await?;
            stream.append_to(busy, 2).await?;
        }

        served.expect(&[0, 1, 2])?;
    }
    Ok(())
}

/// An event that fails at once, each time, is claimable all the time.
async fn a_retried_event_starves_no_other_partition(t: Fixture) -> Outcome {
    let stream = filled(&t, 3, 8).await?;
    let group = stream.group_of_attempts("billing", 100).await?;
    let mut served = Served::default();
    for _ in 0..6 {
        let leases = group.fetch_with(&options("a")?).await?;
        served.note(&leases);
        for lease in &leases {
            Step::Retry.on(&t.backend, lease).await?;
        }
    }

    served.expect(&[0, 1, 2])
}

/// A worker that serves two of four partitions.
async fn every_selected_partition_is_served(t: Fixture) -> Outcome {
    let stream = filled(&t, 4, 20).await?;
    for selected in [[0, 1], [1, 3], [2, 3]] {
        let group = stream.group(&format!("of-{selected:?}")).await?;
        let selection = Partitions::only(selected.map(Partition::new));
        let fetch = options("a")?.with_partitions(selection);
        let mut served = Served::default();
        for _ in 0..4 {
            served.note(&group.fetch_with(&fetch).await?);
        }

        served.expect(&selected)?;
    }
    Ok(())
}

/// The group is at the end of the log, with work in hand, when more comes.
async fn events_that_come_while_others_are_leased_are_delivered(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let first = group.fetch_exactly("a", 2).await?;
    group.expect_nothing("a").await?;
    group.stream.append(1).await?;
    group.expect_claimable("b", &[3]).await?;
    t.backend.ack(&first[1]).await?;
    group.stream.append(1).await?;
    group.expect_claimable("b", &[4]).await?;
    Step::Retry.on(&t.backend, &first[0]).await?;
    group.stream.append(1).await?;

    group.expect_claimable("b", &[1, 5]).await?;
    Ok(())
}

/// Done out of order: what is below a done event is as open as before.
async fn an_ack_settles_no_lower_event(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    let lost = group.fetch_briefly("a", 2).await?;
    let held = group.fetch_exactly("b", 2).await?;
    t.backend.ack(&held[1]).await?;
    Step::Retry.on(&t.backend, &held[0]).await?;
    t.let_lease_expire(&lost[1]).await;

    group.expect_claimable("c", &[1, 2, 3]).await?;
    Ok(())
}

/// Forty events: acked, retried, delayed, renewed or lost by chance, and in the end all are done.
async fn nothing_is_missed_whatever_happens_to_it(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group_of_attempts("billing", 100).await?;
    stream.append(20).await?;
    let mut done: BTreeSet<u64> = BTreeSet::new();
    for _ in 0..2 {
        for lease in group.fetch_briefly("a", 15).await? {
            match t.random(5) {
                0 => {
                    t.backend.ack(&lease).await?;
                    done.insert(lease.event.sequence.get());
                }
                1 => Step::Retry.on(&t.backend, &lease).await?,
                2 => {
                    let delay = retry_after(t.brief())?;
                    t.backend.retry(&lease, &delay).await?;
                }
                3 => {
                    t.backend.renew(&lease, t.brief_lease()).await?;
                }
                _ => {}
            }
        }
        stream.append(10).await?;
        t.pass(t.brief()).await;
    }
    let rest = group.fetch_all("b").await?;
    group.ack(&rest).await?;
    done.extend(sequences_of(&rest));

    let missed: Vec<u64> = (1..=40)
        .filter(|sequence| !done.contains(sequence))
        .collect();
    expect_empty("event missed", &missed)
}

/// The answer to a fetch got lost on its way.
async fn a_lease_that_nobody_heard_of_comes_again(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let unheard = group.fetch_briefly("a", 2).await?;
    t.let_lease_expire(&unheard[1]).await;

    let leases = group.expect_claimable("a", &[1, 2, 3]).await?;
    let attempts: Vec<u32> = leases.iter().map(|lease| lease.attempt).collect();
    expect_eq("the attempts", attempts, vec![2, 2, 1])
}

/// The newer events of one partition were done before the older ones of another came.
async fn events_of_a_lower_partition_are_not_passed_over(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    let group = stream.group("billing").await?;
    stream.append_to(P1, 3).await?;
    group.ack(&group.fetch_exactly("a", 3).await?).await?;
    stream.append_to(P0, 2).await?;
    stream.append_to(P1, 1).await?;

    let places = claimable(&group, "a").await?;
    expect_eq("the claimable events", places, vec![(0, 1), (0, 2), (1, 4)])
}

/// A producer's clock is behind; its events are new all the same.
async fn events_with_earlier_times_are_not_passed_over(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    group.ack(&group.fetch_exactly("a", 2).await?).await?;
    t.turn_back(Duration::from_secs(3_600));
    group.stream.append(2).await?;

    group.expect_claimable("a", &[3, 4]).await?;
    Ok(())
}

/// By turns, and with room for more than there is.
async fn two_consumers_never_hold_the_same_event(t: Fixture) -> Outcome {
    let group = t.group_with_events(10).await?;
    let mut seen = Vec::new();
    for count in [1, 2, 3] {
        for consumer in ["a", "b"] {
            seen.extend(sequences_of(&group.fetch(consumer, count).await?));
        }
    }

    expect_eq("the sequences", seen, (1..=10).collect())
}

/// A consumer that fetches while it works gets new work.
async fn a_holder_does_not_get_its_own_event_again(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.expect_claimable("a", &[3]).await?;
    group.expect_nothing("a").await?;

    group.ack(&leases).await?;
    group.expect_nothing("a").await
}

/// Not even when its lease would have expired.
async fn an_acked_event_never_comes_again(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_briefly("a", 3).await?;
    group.ack(&leases).await?;
    t.let_lease_expire(&leases[2]).await;

    group.expect_nothing("a").await?;
    group.stream.append(1).await?;
    group.expect_claimable("b", &[4]).await?;
    Ok(())
}

/// Eight workers of one process at once.
async fn concurrent_fetches_share_no_event(t: Fixture) -> Outcome {
    let group = t.group_with_events(40).await?;
    let mut fetching = JoinSet::new();
    for number in 0..8 {
        let group = group.clone();
        fetching.spawn(async move { group.fetch(&format!("worker-{number}"), 5).await });
    }
    let mut seen = Vec::new();
    for leases in fetching.join_all().await {
        seen.extend(sequences_of(&leases?));
    }
    seen.extend(sequences_of(&group.fetch_all("a").await?));
    seen.sort_unstable();

    expect_eq("the sequences", seen, (1..=40).collect())
}

/// Everything a worker needs, and everything settling needs.
async fn a_lease_is_whole(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let mut event = new_event(
        "order.placed",
        json!({ "total": 12.5, "tags": ["a", null] }),
    );
    event.metadata = JsonObject::metadata(json!({ "trace": "4bf9" }))?;
    let event = event.with_key(EventKey::new("customer-7")?);
    let appended = group.stream.append_event(event).await?;
    let consumer = "worker 1/ü %";
    let lease = group.fetch_one(consumer).await?;

    expect_eq("the event", &lease.event, &appended)?;
    expect_eq("the group", &lease.group, &group.name)?;
    expect_eq("the consumer", lease.consumer.as_str(), consumer)?;
    expect_eq("the attempt", lease.attempt, 1)?;
    t.expect_now("leased_at", lease.leased_at)
}

/// From a microsecond to a year.
async fn a_lease_lasts_as_long_as_was_asked_for(t: Fixture) -> Outcome {
    let group = t.group_with_events(6).await?;
    let lease = group.fetch_with(&options("a")?).await?.remove(0);
    let lasts = lease.expires_at.saturating_since(lease.leased_at);
    expect_eq("the default duration", lasts, Duration::from_secs(30))?;

    for micros in [
        1,
        999,
        1_000_001,
        90_000_000,
        365 * 24 * 60 * 60 * 1_000_000,
    ] {
        let duration = Duration::from_micros(micros);
        let lease = group
            .fetch_one_for("a", LeaseDuration::new(duration)?)
            .await?;
        let lasts = lease.expires_at.saturating_since(lease.leased_at);
        expect_eq("the duration", lasts, duration)?;
    }
    Ok(())
}

/// At the end of time there is work to do as well.
async fn no_lease_outlasts_the_highest_timestamp(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let is_late = t.jump_to(Timestamp::MAX.saturating_sub(Duration::from_secs(10)));
    let year = LeaseDuration::new(Duration::from_secs(365 * 24 * 60 * 60))?;
    let lease = group.fetch_one_for("a", year).await?;
    let renewed = t.backend.renew(&lease, year).await?;

    if is_late {
        expect_eq("expires_at", lease.expires_at, Timestamp::MAX)?;
        expect_eq("the renewed expires_at", renewed.expires_at, Timestamp::MAX)?;
    }
    group.expect_nothing("b").await?;
    t.backend.ack(&lease).await?;
    Ok(())
}

/// Who has it since when, not who had it.
async fn each_claim_has_its_own_time_and_consumer(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lost = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lost).await;
    let second = group.fetch_one("b").await?;
    expect_eq("the consumer", second.consumer.as_str(), "b")?;
    t.expect_now("leased_at", second.leased_at)?;
    expect(
        second.leased_at >= lost.expires_at,
        format!("leased_at to be {} or later", lost.expires_at),
        second.leased_at,
    )?;
    Step::Retry.on(&t.backend, &second).await?;
    t.pass(Duration::from_millis(20)).await;
    let third = group.fetch_one("c").await?;

    expect_eq("the consumer", third.consumer.as_str(), "c")?;
    expect(
        third.leased_at > second.leased_at,
        format!("leased_at to be after {}", second.leased_at),
        third.leased_at,
    )?;
    expect_stale(&t.backend, &second).await
}

/// What is missing decides what an operator does about it.
async fn a_missing_stream_is_noticed_before_its_group(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let missing = (StreamName::new("missing")?, GroupName::new("missing")?);
    let fetch = options("a")?;

    let no_stream = t.backend.fetch(&missing.0, &missing.1, &fetch).await;
    expect_error(no_stream, ErrorKind::StreamNotFound)?;
    let no_stream = t.backend.fetch(&missing.0, &group.name, &fetch).await;
    expect_error(no_stream, ErrorKind::StreamNotFound)?;
    let no_group = t
        .backend
        .fetch(&group.stream.name, &missing.1, &fetch)
        .await;
    expect_error(no_group, ErrorKind::GroupNotFound)?;
    let none = fetch.with_limit(0).with_partitions(Partitions::only([]));
    let no_group = t.backend.fetch(&group.stream.name, &missing.1, &none).await;
    expect_error(no_group, ErrorKind::GroupNotFound)?;
    Ok(())
}
