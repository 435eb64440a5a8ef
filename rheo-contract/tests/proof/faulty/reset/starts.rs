//! Resets that start elsewhere.

use std::collections::BTreeMap;

use rheo_core::{
    Event, GroupName, Partition, ResetOptions, Result, Sequence, Start, StreamName, Timestamp,
    async_trait,
};

use crate::book::log_of;
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        ResetTimeIsFoundByBisection: "the start of a reset at a time is found by bisection",
        says: "the claimable places",
        kills: [
            "reset::RPL-5::reset_to_a_time_goes_by_the_lowest_sequence",
        ],
    },
    faulty! {
        ResetTimeIsBehindTheLastEarlierEvent: "a reset at a time starts after the last event that is earlier",
        says: "the claimable places",
        kills: [
            "reset::RPL-5::reset_to_a_time_goes_by_the_lowest_sequence",
        ],
    },
    faulty! {
        ResetTimeIsOfPartition0: "the start that was found for partition 0 is used for all",
        says: "the claimable places",
        kills: [
            "reset::RPL-5::reset_to_a_time_is_found_per_partition",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
        ],
    },
    faulty! {
        ResetEndIsTheLowest: "a reset to the end starts at the lowest end of all partitions",
        says: "no claimable event",
        kills: [
            "reset::RPL-5::reset_to_the_end_is_each_partitions_own",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
        ],
    },
    faulty! {
        ResetEndIsOfPartition1: "the end of partition 1 is the end of all",
        says: "no claimable event",
        kills: [
            "reset::RPL-5::reset_to_the_end_is_each_partitions_own",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
        ],
    },
    faulty! {
        ResetSequencesAreTakenByTurn: "the sequences of a reset are taken by the partitions in turn",
        says: "the claimable places",
        kills: [
            "reset::RPL-5::each_partition_is_reset_after_its_own_sequence",
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
        ],
    },
    faulty! {
        ResetSequencesAreTheLowest: "the lowest of the sequences of a reset is used for all",
        says: "the claimable places",
        kills: [
            "reset::RPL-5::each_partition_is_reset_after_its_own_sequence",
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
        ],
    },
];

type Logs = BTreeMap<Partition, Vec<Event>>;

/// Starts after the sequences that `start` gives for the selected partitions, as far as they are there.
async fn reset_from(
    real: &Real,
    (stream, group): (&StreamName, &GroupName),
    options: &ResetOptions,
    start: impl Fn(&Logs, Partition) -> u64,
) -> Result<()> {
    // Whatever is wrong with the request is found out here.
    real.backend.reset_group(stream, group, options).await?;
    let mut logs = Logs::new();
    for info in real.backend.lag(stream, group).await?.partitions {
        logs.insert(info.partition, Vec::new());
    }
    for event in log_of(real, stream).await {
        logs.entry(event.partition).or_default().push(event);
    }
    let mut each = BTreeMap::new();
    for (partition, events) in &logs {
        if options.partitions.contains(*partition) {
            let after = start(&logs, *partition).min(events.len() as u64);
            each.insert(*partition, Sequence::new(after)?);
        }
    }
    let options = options.clone().with_start(Start::AfterSequences(each));
    real.backend.reset_group(stream, group, &options).await
}

/// `reset_start!(Type, pattern => |logs, partition| sequence)`: a defect in one kind of start.
macro_rules! reset_start {
    ($type:ident, $pattern:pat => $start:expr) => {
        #[derive(Default)]
        struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn reset_group(
                &self,
                real: &Real,
                stream: &StreamName,
                group: &GroupName,
                options: &ResetOptions,
            ) -> Result<()> {
                match &options.start {
                    $pattern => reset_from(real, (stream, group), options, $start).await,
                    _ => real.backend.reset_group(stream, group, options).await,
                }
            }
        }
    };
}

/// Just before the first event of that time or a later one.
fn before(events: &[Event], time: Timestamp) -> u64 {
    let first = events.iter().position(|event| event.timestamp >= time);
    first.unwrap_or(events.len()) as u64
}

fn shortest(logs: &Logs) -> u64 {
    let lengths = logs.values().map(Vec::len);
    lengths.min().unwrap_or_default() as u64
}

reset_start!(ResetTimeIsFoundByBisection, Start::AtTime(time) => |logs: &Logs, partition| {
    logs[&partition].partition_point(|event| event.timestamp < *time) as u64
});

reset_start!(ResetTimeIsBehindTheLastEarlierEvent, Start::AtTime(time) => |logs: &Logs, partition| {
    let earlier = logs[&partition].iter().rposition(|event| event.timestamp < *time);
    earlier.map_or(0, |index| index as u64 + 1)
});

reset_start!(ResetTimeIsOfPartition0, Start::AtTime(time) => |logs: &Logs, _| {
    before(&logs[&Partition::ZERO], *time)
});

reset_start!(ResetEndIsTheLowest, Start::End => |logs: &Logs, _| shortest(logs));

reset_start!(ResetEndIsOfPartition1, Start::End => |logs: &Logs, _| {
    logs.get(&Partition::new(1)).map_or(u64::MAX, |events| events.len() as u64)
});

reset_start!(ResetSequencesAreTakenByTurn, Start::AfterSequences(each) => |_: &Logs, partition| {
    let next = each.range(partition..).nth(1).or_else(|| each.iter().next());
    next.map_or(0, |(_, sequence)| sequence.get())
});

reset_start!(ResetSequencesAreTheLowest, Start::AfterSequences(each) => |_: &Logs, _| {
    each.values().min().map_or(0, |sequence| sequence.get())
});
