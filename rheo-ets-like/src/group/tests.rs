//! What a group does over several partitions.

use std::collections::{BTreeMap, BTreeSet};

use rheo_core::{ConsumerId, Event, EventType, JsonObject, LeaseDuration, PartitionCount, Reason};

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// A log with the same number of events in every partition.
fn log(partitions: u32, events: u64) -> Log {
    let count = PartitionCount::new(partitions).expect("allowed");
    let mut log = Log::new(count);
    for partition in count.partitions() {
        for number in 1..=events {
            log.push(Event {
                id: EventId::generate(NOW),
                stream: StreamName::new("s").expect("allowed"),
                partition,
                sequence: seq(number),
                event_type: EventType::new("t").expect("allowed"),
                key: None,
                payload: JsonObject::default(),
                metadata: JsonObject::default(),
                timestamp: at(number),
            });
        }
    }
    log
}

fn group(log: &Log, start: Start) -> Result<Group> {
    let name = GroupName::new("g").expect("allowed");
    Group::new(&name, &GroupOptions::new().with_start(start), log)
}

fn from_the_beginning(log: &Log) -> Group {
    group(log, Start::Beginning).expect("a start that is there")
}

fn fetch(group: &mut Group, log: &Log, limit: u32, partitions: Partitions) -> Vec<Lease> {
    let options = FetchOptions::new(ConsumerId::new("c").expect("allowed"))
        .with_limit(limit)
        .with_lease_duration(LeaseDuration::default())
        .with_partitions(partitions);
    group
        .fetch(log, &options, NOW)
        .expect("partitions in range")
}

fn reject(group: &mut Group, lease: &Lease) {
    let delivery = group.delivery(lease.event.partition).expect("in range");
    delivery
        .reject(lease, &Reason::new("bad"), NOW)
        .expect("current");
}

fn ack(group: &mut Group, lease: &Lease) -> Result<()> {
    group
        .delivery(lease.event.partition)
        .expect("in range")
        .ack(lease)
}

fn frontiers(group: &Group, log: &Log) -> Vec<u64> {
    let lag = group.lag(log);
    lag.partitions
        .iter()
        .map(|lag| lag.frontier.get())
        .collect()
}

fn seq(number: u64) -> Sequence {
    Sequence::new(number).expect("in range")
}

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros.cast_signed()).expect("in range")
}

fn p(number: u32) -> Partition {
    Partition::new(number)
}

#[test]
fn every_partition_is_served_in_turn() {
    let log = log(5, 10);
    let mut group = from_the_beginning(&log);
    let mut served = || {
        fetch(&mut group, &log, 1, Partitions::All)[0]
            .event
            .partition
    };
    let first: BTreeSet<Partition> = (0..5).map(|_| served()).collect();
    let second: BTreeSet<Partition> = (0..5).map(|_| served()).collect();
    assert_eq!((first.len(), second.len()), (5, 5));
}

#[test]
fn consumers_with_partitions_of_their_own_starve_none_of_them() {
    let log = log(4, 10);
    let mut group = from_the_beginning(&log);
    let mut served = BTreeSet::new();
    for _ in 0..2 {
        for mine in [[p(0), p(1)], [p(2), p(3)]] {
            let leases = fetch(&mut group, &log, 1, Partitions::only(mine));
            assert!(mine.contains(&leases[0].event.partition));
            served.insert(leases[0].event.partition);
        }
    }
    assert_eq!(served.len(), 4);
}

#[test]
fn one_fetch_goes_over_partitions_until_the_limit() {
    let log = log(3, 2);
    let mut group = from_the_beginning(&log);
    assert_eq!(fetch(&mut group, &log, 0, Partitions::All).len(), 0);
    assert_eq!(fetch(&mut group, &log, 5, Partitions::All).len(), 5);
    assert_eq!(fetch(&mut group, &log, u32::MAX, Partitions::All).len(), 1);
    assert_eq!(fetch(&mut group, &log, u32::MAX, Partitions::All).len(), 0);
}

#[test]
fn a_start_counts_in_each_partition() {
    let log = log(2, 3);
    let started = |start| frontiers(&group(&log, start).expect("a start that is there"), &log);
    let each = BTreeMap::from([(p(1), seq(2))]);
    assert_eq!(started(Start::AfterSequences(each)), [0, 2]);
    assert_eq!(started(Start::AtTime(at(2))), [1, 1]);
    assert_eq!(started(Start::AtTime(at(4))), [3, 3]);
    assert_eq!(started(Start::End), [3, 3]);
    assert!(group(&log, Start::AfterSequence(seq(4))).is_err());
}

#[test]
fn reset_starts_again_in_the_selected_partitions_only() {
    let log = log(2, 3);
    let mut group = from_the_beginning(&log);
    let leases = fetch(&mut group, &log, u32::MAX, Partitions::All);
    for lease in leases.iter().filter(|lease| lease.event.sequence == seq(1)) {
        reject(&mut group, lease);
    }
    let options = ResetOptions::new()
        .with_start(Start::End)
        .with_partitions(p(1));
    group.reset(&log, &options).expect("allowed");

    assert_eq!(frontiers(&group, &log), [1, 3]);
    for lease in leases.iter().filter(|lease| lease.event.sequence > seq(1)) {
        assert_eq!(
            ack(&mut group, lease).is_ok(),
            lease.event.partition == p(0)
        );
    }
    let dead = group
        .dead_letters(&log, &DeadLetterOptions::new())
        .expect("no cursor");
    let places: Vec<Partition> = dead.iter().map(|dead| dead.event.partition).collect();
    assert_eq!(places, [p(0)]);
    assert!(fetch(&mut group, &log, 1, Partitions::All).is_empty());
}

#[test]
fn a_refused_reset_or_replay_changes_nothing() {
    let log = log(2, 3);
    let mut group = from_the_beginning(&log);
    let leases = fetch(&mut group, &log, u32::MAX, Partitions::All);
    let known = leases[0].event.id;

    let beyond = BTreeMap::from([(p(0), seq(0)), (p(1), seq(4))]);
    let reset = ResetOptions::new().with_start(Start::AfterSequences(beyond));
    assert!(group.reset(&log, &reset).is_err());
    for (replay, argument) in [
        (
            Replay::Events(vec![known, EventId::generate(NOW)]),
            "events",
        ),
        (
            Replay::AfterEach(BTreeMap::from([(p(0), seq(0)), (p(2), seq(0))])),
            "partitions",
        ),
        (
            Replay::After {
                sequence: seq(0),
                partitions: Partitions::only([p(0), p(2)]),
            },
            "partitions",
        ),
    ] {
        let Err(Error::Invalid(invalid)) = group.replay(&log, &replay) else {
            panic!("{replay:?} was accepted");
        };
        assert_eq!(invalid.argument, argument);
    }
    for lease in &leases {
        assert_eq!(ack(&mut group, lease), Ok(()));
    }
}

#[test]
fn replay_is_per_partition() {
    let log = log(3, 3);
    let mut group = from_the_beginning(&log);
    for lease in fetch(&mut group, &log, u32::MAX, Partitions::All) {
        ack(&mut group, &lease).expect("current");
    }
    let each = Replay::AfterEach(BTreeMap::from([(p(1), seq(2))]));
    group.replay(&log, &each).expect("in range");
    assert_eq!(frontiers(&group, &log), [3, 2, 3]);

    let selected = Replay::After {
        sequence: seq(1),
        partitions: Partitions::from(p(2)),
    };
    group.replay(&log, &selected).expect("in range");
    assert_eq!(frontiers(&group, &log), [3, 2, 1]);
}

#[test]
fn dead_letters_are_paged_by_partition_then_sequence() {
    let log = log(2, 3);
    let mut group = from_the_beginning(&log);
    for lease in fetch(&mut group, &log, u32::MAX, Partitions::All) {
        reject(&mut group, &lease);
    }
    let mut options = DeadLetterOptions::new().with_limit(2);
    let mut places = Vec::new();
    loop {
        let page = group
            .dead_letters(&log, &options)
            .expect("the cursor is dead");
        let Some(last) = page.last() else { break };
        options = options.with_after(last.event.id);
        places.extend(
            page.iter()
                .map(|dead| (dead.event.partition.number(), dead.event.sequence.get())),
        );
    }
    assert_eq!(places, [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]);
}

#[test]
fn a_page_behind_what_is_no_longer_dead_is_not_found() {
    let log = log(1, 3);
    let mut group = from_the_beginning(&log);
    let lease = fetch(&mut group, &log, 1, Partitions::All).remove(0);
    reject(&mut group, &lease);
    let after = lease.event.id;
    let options = DeadLetterOptions::new().with_after(after).with_limit(0);
    assert!(group.dead_letters(&log, &options).is_ok());
    group
        .replay(&log, &Replay::after(seq(0)))
        .expect("in range");
    assert_eq!(
        group.dead_letters(&log, &options),
        Err(Error::CursorNotFound { after })
    );
}

#[test]
fn info_counts_what_is_leased_and_dead() {
    let log = log(2, 3);
    let mut group = from_the_beginning(&log);
    let leases = fetch(&mut group, &log, 5, Partitions::All);
    reject(&mut group, &leases[0]);
    ack(&mut group, &leases[1]).expect("current");
    let info = group.info(&StreamName::new("s").expect("allowed"), &log);
    assert_eq!((info.leased, info.dead_letters), (3, 1));
    assert_eq!(info.lag.total(), 4);
}
