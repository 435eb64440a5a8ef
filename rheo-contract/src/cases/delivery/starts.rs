//! Where a group starts.

use std::collections::BTreeMap;
use std::time::Duration;

use rheo_core::{
    Backend, ErrorKind, Event, GroupName, GroupOptions, MaxAttempts, Partition, Sequence, Start,
    Timestamp,
};

use serde_json::json;

use super::{claimable, filled, options};
use crate::expect::{Outcome, expect_eq, expect_error, expect_invalid};
use crate::fixture::{Fixture, new_event};
use crate::scene::{P0, P1, Stream, at_once};
use crate::states::{expect_again, twelve_done};
use crate::step::Step;

/// Nobody who says nothing wants to lose the beginning.
pub(super) async fn a_group_starts_at_the_beginning_by_default(t: Fixture) -> Outcome {
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
pub(super) async fn a_start_after_a_sequence_is_exclusive(t: Fixture) -> Outcome {
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
pub(super) async fn a_start_after_a_sequence_is_for_every_partition(t: Fixture) -> Outcome {
    let stream = filled(&t, 3, 2).await?;
    let start = Start::AfterSequence(Sequence::new(1)?);
    let group = stream.group_from("billing", start).await?;

    let places = claimable(&group, "a").await?;
    expect_eq("the claimable events", places, vec![(0, 2), (1, 2), (2, 2)])
}

/// A number for each partition, and the beginning for those without.
pub(super) async fn a_start_may_name_a_sequence_per_partition(t: Fixture) -> Outcome {
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

/// Nothing was processed anywhere yet.
pub(super) async fn a_start_that_names_no_sequence_is_the_beginning(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(3).await?;
    let nowhere = Start::AfterSequences(BTreeMap::new());
    let group = stream.group_from("billing", nowhere).await?;

    group.expect_claimable("a", &[1, 2, 3]).await?;
    Ok(())
}

/// What is not there yet cannot have been processed; the group would skip it when it comes.
pub(super) async fn a_start_beyond_the_high_watermark_is_invalid(t: Fixture) -> Outcome {
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
pub(super) async fn a_start_beyond_one_partitions_high_watermark_is_invalid(t: Fixture) -> Outcome {
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
pub(super) async fn a_start_at_a_time_is_before_the_first_event_of_that_time(
    t: Fixture,
) -> Outcome {
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
pub(super) async fn a_start_at_a_time_goes_by_the_lowest_sequence(t: Fixture) -> Outcome {
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

/// "Since yesterday", on a stream where yesterday is far from both ends.
pub(super) async fn a_start_at_a_time_may_be_a_thousand_events_back(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let many = || vec![new_event("order.placed", json!({})); 1_001];
    let mut events = stream.append_all(many()).await?;
    for _ in 0..2 {
        t.pass(Duration::from_millis(1)).await;
        events.extend(stream.append(1).await?);
    }
    t.pass(Duration::from_millis(1)).await;
    events.extend(stream.append_all(many()).await?);

    for index in [0, 1_001, 1_002, 1_003] {
        let time = events[index].timestamp;
        let first = events.iter().find(|event| event.timestamp >= time);
        let name = format!("at-{index}");
        let group = stream.group_from(&name, Start::AtTime(time)).await?;
        let lease = group.fetch_one("a").await?;
        expect_eq("the first event", Some(&lease.event), first)?;
    }
    Ok(())
}

/// Time is one; the places where it is found are as many as partitions.
pub(super) async fn a_start_at_a_time_is_found_per_partition(t: Fixture) -> Outcome {
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
pub(super) async fn a_start_is_fixed_when_the_group_is_made(t: Fixture) -> Outcome {
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
pub(super) async fn a_start_at_the_end_gets_all_that_comes_later(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(2).await?;
    let group = stream.group_from("billing", Start::End).await?;
    stream.append(2).await?;

    group.expect_claimable("a", &[3, 4]).await?;
    group.expect_nothing("a").await
}

/// Consumers come up before producers; wherever they start, they get the first event.
pub(super) async fn a_group_can_start_on_an_empty_stream(t: Fixture) -> Outcome {
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
pub(super) async fn a_duplicate_group_changes_nothing(t: Fixture) -> Outcome {
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

/// A service that scales out: every process makes the group, and one has made it.
pub(super) async fn of_concurrent_creators_of_a_group_one_wins(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(8).await?;
    for round in 0..3 {
        let name = format!("billing-{round}");
        let created = at_once(8, |number| {
            let (stream, name) = (stream.clone(), name.clone());
            async move {
                let after = Sequence::new(number as u64)?;
                let options = GroupOptions::new().with_start(Start::AfterSequence(after));
                let (backend, name) = (&stream.backend, GroupName::new(name)?);
                let made = backend.create_group(&stream.name, &name, &options);
                made.await.map(|()| after.get())
            }
        });
        let mut winners = Vec::new();
        for result in created.await? {
            match result {
                Ok(after) => winners.push(after),
                lost => drop(expect_error(lost.map(drop), ErrorKind::AlreadyExists)?),
            }
        }

        expect_eq("the number of creators that won", winners.len(), 1)?;
        let group = stream.existing_group(GroupName::new(name)?);
        let expected: Vec<u64> = (winners[0] + 1..=8).collect();
        group.expect_claimable("a", &expected).await?;
    }
    Ok(())
}

/// A group is one, over however many partitions: it starts in all of them.
pub(super) async fn a_group_starts_in_each_of_twelve_partitions(t: Fixture) -> Outcome {
    let (done, mut events) = twelve_done(&t).await?;
    let stream = &done.stream;
    let (before, time) = (events.clone(), t.now());
    let is_new = |partition: u32, sequence: u64| {
        let is_such = |event: &Event| event.partition.number() == partition;
        sequence > before.iter().filter(|event| is_such(event)).count() as u64
    };
    let each = (0..12).map(|number| (Partition::new(number), Sequence::ZERO.next()));
    let mut groups = Vec::new();
    for (name, start) in [
        ("end", Start::End),
        (
            "time",
            Start::AtTime(time.saturating_add(Duration::from_secs(60))),
        ),
        ("one", Start::AfterSequence(Sequence::ZERO.next())),
        ("each", Start::AfterSequences(each.collect())),
    ] {
        groups.push(stream.group_from(name, start).await?);
    }
    for partition in (0..12).map(Partition::new) {
        events.extend(stream.append_to(partition, 1).await?);
    }
    events.sort_by_key(|event| (event.partition, event.sequence));

    for (number, group) in groups.iter().enumerate() {
        expect_again(group, &events, |partition, sequence| match number {
            0 | 1 => is_new(partition, sequence),
            _ => sequence > 1,
        })
        .await?;
    }
    Ok(())
}
