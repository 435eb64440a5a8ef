//! Groups that start elsewhere.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;

use rheo_core::{
    Error, Event, FetchOptions, GroupName, GroupOptions, Lease, Partition, Partitions,
    ResetOptions, Result, Sequence, Start, StreamName, Timestamp, async_trait,
};

use super::logs;
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Tweak, lock};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        DefaultStartIsTheEnd: "a group starts at the end by default",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: [
            "delivery::DLV-2::a_group_starts_at_the_beginning_by_default",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "dead_letters::DLQ-4::one_event_can_be_dead_in_two_groups",
            "dead_letters::DLQ-4::reject_is_for_that_group_alone",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
            "delivery::DLV-1::groups_are_ready_at_different_times",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "delivery::DLV-3::a_fetch_gives_no_more_than_its_limit",
            "delivery::DLV-3::a_fetch_stays_in_its_partitions",
            "delivery::DLV-3::a_selection_is_looked_through_and_no_other",
            "delivery::DLV-3::ten_thousand_events_may_be_open",
            "delivery::DLV-4::each_partition_comes_in_order",
            "delivery::DLV-5::a_busy_partition_starves_no_other",
            "delivery::DLV-5::a_retried_event_starves_no_other_partition",
            "delivery::DLV-5::every_partition_is_served",
            "delivery::DLV-5::every_selected_partition_is_served",
            "distribution::DST-1::a_group_made_elsewhere_is_there",
            "input::ERR-6::a_missing_group_is_named",
            "input::ERR-8::a_group_start_out_of_range_is_invalid",
            "inspect::OPS-3::group_info_gives_max_attempts_after_going_back",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "progress::FRN-2::the_frontier_begins_at_the_start",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "streams::STR-1::a_stream_has_up_to_1024_partitions",
            "streams::STR-2::group_names_never_collide",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
            "wakeup::OPS-4::chosen_events_are_told",
        ],
    },
    faulty! {
        NoSequencesAreTheEnd: "a start without sequences is the end",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: ["delivery::DLV-2::a_start_that_names_no_sequence_is_the_beginning"],
    },
    faulty! {
        TheEndIsFoundInTenPartitions: "a group that starts at the end does so in the first ten partitions",
        says: "the claimable places",
        kills: ["delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions"],
    },
    faulty! {
        TimesAreLookedForInTheLastThousand: "a start at a time is looked for in the last thousand events",
        says: "the first event",
        kills: ["delivery::DLV-2::a_start_at_a_time_may_be_a_thousand_events_back"],
    },
    faulty! {
        StartIsInclusive: "a start after a sequence is taken for a start at it",
        says: "the claimable sequences to be [2, 3]",
        kills: [
            "delivery::DLV-2::a_start_after_a_sequence_is_exclusive",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "delivery::DLV-2::a_start_after_a_sequence_is_for_every_partition",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
            "progress::FRN-2::from_its_start_the_frontier_moves_on",
            "progress::FRN-2::the_frontier_begins_at_the_start",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-4::a_chosen_event_below_the_start_is_delivered",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
        ],
    },
    faulty! {
        StartIsOfPartition0: "a start after a sequence is applied to partition 0",
        says: "the claimable events",
        kills: [
            "delivery::DLV-2::a_start_after_a_sequence_is_for_every_partition",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
        ],
    },
    faulty! {
        UnnamedPartitionsStartAtTheEnd: "a partition that a start does not name starts at its end",
        says: "the claimable events",
        kills: [
            "delivery::DLV-2::a_start_may_name_a_sequence_per_partition",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_that_names_no_sequence_is_the_beginning",
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
            "input::ERR-8::a_group_start_out_of_range_is_invalid",
            "partitions::DLV-2::each_partition_has_its_own_start",
        ],
    },
    faulty! {
        StartIsCutToTheEnd: "a start beyond the high watermark is taken for the end",
        says: "Err(Invalid)",
        kills: [
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
        ],
    },
    faulty! {
        StartIsComparedWithTheLargestPartition: "a start is checked against the highest high watermark",
        says: "Err(Invalid)",
        kills: [
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
        ],
    },
    faulty! {
        StartTimeIsExclusive: "a start at a time is behind the events of that time",
        says: "the claimable sequences",
        kills: [
            "delivery::DLV-2::a_start_at_a_time_is_before_the_first_event_of_that_time",
            "delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence",
            "delivery::DLV-2::a_start_at_a_time_is_found_per_partition",
            "delivery::DLV-2::a_start_at_a_time_may_be_a_thousand_events_back",
        ],
    },
    faulty! {
        StartTimeIsInMilliseconds: "a start at a time loses its microseconds",
        says: "the claimable sequences",
        kills: [
            "delivery::DLV-2::a_start_at_a_time_is_before_the_first_event_of_that_time",
            "progress::FRN-2::the_frontier_begins_at_the_start",
        ],
    },
    faulty! {
        StartTimeIsAfterTheLastEarlierEvent: "a start at a time is behind the last event from before",
        says: "the claimable sequences",
        kills: ["delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence"],
    },
    faulty! {
        StartTimeIsFoundByBisection: "a start at a time is found as if timestamps ascended",
        says: "the claimable sequences",
        kills: ["delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence"],
    },
    faulty! {
        StartTimeIsOfPartition0: "a start at a time is the same sequence everywhere",
        says: "the claimable events",
        kills: [
            "delivery::DLV-2::a_start_at_a_time_is_found_per_partition",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
        ],
    },
    faulty! {
        StartTimeIsComparedAtEachFetch: "a start at a time hides all earlier events",
        says: "the claimable sequences to be [2, 3]",
        kills: [
            "delivery::DLV-2::a_start_is_fixed_when_the_group_is_made",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence",
            "delivery::DLV-2::a_start_at_a_time_may_be_a_thousand_events_back",
            "progress::FRN-2::the_frontier_begins_at_the_start",
        ],
    },
    faulty! {
        EndIsFoundAtTheFirstFetch: "a start at the end is where that is at the first fetch",
        says: "the claimable sequences to be [3, 4]",
        kills: [
            "delivery::DLV-2::a_start_at_the_end_gets_all_that_comes_later",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "inspect::OPS-3::group_info_counts_chosen_events_below_the_start",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "wakeup::OPS-4::chosen_events_are_told",
        ],
    },
    faulty! {
        EndOfNothingIsTheFirst: "a start at the end of an empty stream is behind its first event",
        says: "the claimable sequences to be [1, 2]",
        kills: ["delivery::DLV-2::a_group_can_start_on_an_empty_stream"],
    },
    faulty! {
        DuplicateGroupStartsAgain: "a duplicate group errs, and starts again",
        says: "StaleLease",
        kills: [
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "distribution::DST-1::a_name_taken_elsewhere_is_taken",
            "durability::DUR-1::names_stay_taken",
        ],
    },
];

#[derive(Default)]
struct DefaultStartIsTheEnd;

impl Tweak for DefaultStartIsTheEnd {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        if options.start == Start::Beginning {
            options.start = Start::End;
        }
    }
}

#[derive(Default)]
struct StartIsInclusive;

impl Tweak for StartIsInclusive {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        if let Start::AfterSequence(sequence) = &mut options.start {
            *sequence = sequence.previous();
        }
    }
}

#[derive(Default)]
struct StartIsOfPartition0;

impl Tweak for StartIsOfPartition0 {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        if let Start::AfterSequence(sequence) = options.start {
            let only = BTreeMap::from([(Partition::ZERO, sequence)]);
            options.start = Start::AfterSequences(only);
        }
    }
}

/// Makes a group that starts where `start` says for the events of a partition.
async fn create_from(
    real: &Real,
    (stream, group): (&StreamName, &GroupName),
    options: &GroupOptions,
    start: impl Fn(Partition, &[Event]) -> Sequence,
) -> Result<()> {
    let logs = logs(real, stream).await;
    let starts = logs.iter().map(|(partition, events)| {
        let high_watermark = events.last().map_or(Sequence::ZERO, |event| event.sequence);
        (*partition, start(*partition, events).min(high_watermark))
    });
    let start = Start::AfterSequences(starts.collect());
    let options = options.clone().with_start(start);
    real.backend.create_group(stream, group, &options).await
}

/// `create_start!(Type, pattern => |partition, events| sequence)`: a defect in one kind of start.
macro_rules! create_start {
    ($type:ident, $pattern:pat => $start:expr) => {
        #[derive(Default)]
        struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn create_group(
                &self,
                real: &Real,
                stream: &StreamName,
                group: &GroupName,
                options: &GroupOptions,
            ) -> Result<()> {
                match &options.start {
                    $pattern => create_from(real, (stream, group), options, $start).await,
                    _ => real.backend.create_group(stream, group, options).await,
                }
            }
        }
    };
}

create_start!(UnnamedPartitionsStartAtTheEnd, Start::AfterSequences(named) => |partition, _: &[Event]| {
    named.get(&partition).copied().unwrap_or(Sequence::MAX)
});

create_start!(StartIsCutToTheEnd, Start::AfterSequence(sequence) => |_, _: &[Event]| *sequence);

#[derive(Default)]
struct StartIsComparedWithTheLargestPartition;

#[async_trait]
impl Defect for StartIsComparedWithTheLargestPartition {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let Start::AfterSequence(sequence) = options.start else {
            return real.backend.create_group(stream, group, options).await;
        };
        let logs = logs(real, stream).await;
        let highest = logs
            .values()
            .filter_map(|events| events.last())
            .map(|event| event.sequence);
        if highest.max().unwrap_or(Sequence::ZERO) < sequence {
            return real.backend.create_group(stream, group, options).await;
        }
        create_from(real, (stream, group), options, |_, _| sequence).await
    }
}

/// The sequence before the one at `index`.
fn before(index: usize) -> Sequence {
    Sequence::new(index as u64).unwrap_or(Sequence::MAX)
}

create_start!(StartTimeIsExclusive, Start::AtTime(time) => |_, events: &[Event]| {
    before(events.iter().position(|event| event.timestamp > *time).unwrap_or(events.len()))
});

create_start!(StartTimeIsInMilliseconds, Start::AtTime(time) => |_, events: &[Event]| {
    let millis = |time: Timestamp| time.as_micros().div_euclid(1_000);
    let is_it = |event: &Event| millis(event.timestamp) >= millis(*time);
    before(events.iter().position(is_it).unwrap_or(events.len()))
});

create_start!(StartTimeIsAfterTheLastEarlierEvent, Start::AtTime(time) => |_, events: &[Event]| {
    let earlier = events.iter().rposition(|event| event.timestamp < *time);
    before(earlier.map_or(0, |at| at + 1))
});

create_start!(StartTimeIsFoundByBisection, Start::AtTime(time) => |_, events: &[Event]| {
    before(events.partition_point(|event| event.timestamp < *time))
});

#[derive(Default)]
struct StartTimeIsOfPartition0;

#[async_trait]
impl Defect for StartTimeIsOfPartition0 {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let Start::AtTime(time) = options.start else {
            return real.backend.create_group(stream, group, options).await;
        };
        let logs = logs(real, stream).await;
        let events = logs.get(&Partition::ZERO).map_or(&[][..], Vec::as_slice);
        let first = events.iter().position(|event| event.timestamp >= time);
        let start = before(first.unwrap_or(events.len()));
        create_from(real, (stream, group), options, |_, _| start).await
    }
}

#[derive(Default)]
struct StartTimeIsComparedAtEachFetch(Mutex<HashMap<(StreamName, GroupName), Timestamp>>);

impl Tweak for StartTimeIsComparedAtEachFetch {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        if let Start::AtTime(time) = options.start {
            options.start = Start::Beginning;
            lock(&self.0).insert((stream.clone(), group.clone()), time);
        }
    }
    fn keeps(&self, lease: &Lease) -> bool {
        let group = (lease.event.stream.clone(), lease.group.clone());
        let start = lock(&self.0).get(&group).copied();
        start.is_none_or(|start| lease.event.timestamp >= start)
    }
}

#[derive(Default)]
struct EndIsFoundAtTheFirstFetch(Mutex<HashSet<(StreamName, GroupName)>>);

#[async_trait]
impl Tweak for EndIsFoundAtTheFirstFetch {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        if options.start == Start::End {
            lock(&self.0).insert((stream.clone(), group.clone()));
        }
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        _: &mut FetchOptions,
    ) {
        let is_first = lock(&self.0).remove(&(stream.clone(), group.clone()));
        if is_first {
            let end = ResetOptions::new().with_start(Start::End);
            let _ = real.backend.reset_group(stream, group, &end).await;
        }
    }
}

#[derive(Default)]
struct EndOfNothingIsTheFirst(Mutex<HashSet<(StreamName, GroupName)>>);

#[async_trait]
impl Defect for EndOfNothingIsTheFirst {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let is_empty = logs(real, stream).await.values().all(Vec::is_empty);
        if options.start == Start::End && is_empty {
            lock(&self.0).insert((stream.clone(), group.clone()));
        }
        real.backend.create_group(stream, group, options).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        let key = (stream.clone(), group.clone());
        if !leases.is_empty() && lock(&self.0).remove(&key) {
            real.backend.ack(&leases.remove(0)).await?;
        }
        Ok(leases)
    }
}

#[derive(Default)]
struct DuplicateGroupStartsAgain;

#[async_trait]
impl Defect for DuplicateGroupStartsAgain {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let created = real.backend.create_group(stream, group, options).await;
        if let Err(Error::AlreadyExists(_)) = created {
            let start = ResetOptions::new().with_start(options.start.clone());
            let _ = real.backend.reset_group(stream, group, &start).await;
        }
        created
    }
}

#[derive(Default)]
struct NoSequencesAreTheEnd;

impl Tweak for NoSequencesAreTheEnd {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        if let Start::AfterSequences(sequences) = &options.start
            && sequences.is_empty()
        {
            options.start = Start::End;
        }
    }
}

#[derive(Default)]
struct TimesAreLookedForInTheLastThousand;

#[async_trait]
impl Defect for TimesAreLookedForInTheLastThousand {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        let longest = logs(real, stream).await.values().map(Vec::len).max();
        let Some(before) = longest.unwrap_or_default().checked_sub(1_000) else {
            return Ok(());
        };
        let lag = real.backend.lag(stream, group).await?;
        let is_at_a_time = matches!(options.start, Start::AtTime(_));
        if is_at_a_time && lag.partitions[0].frontier.get() < before as u64 {
            let start = Start::AfterSequence(Sequence::new(before as u64)?);
            let reset = ResetOptions::new().with_start(start);
            real.backend.reset_group(stream, group, &reset).await?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct TheEndIsFoundInTenPartitions;

#[async_trait]
impl Defect for TheEndIsFoundInTenPartitions {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        let beyond: Vec<Partition> = logs(real, stream).await.into_keys().skip(10).collect();
        if options.start == Start::End && !beyond.is_empty() {
            let beginning = ResetOptions::new().with_partitions(Partitions::only(beyond));
            real.backend.reset_group(stream, group, &beginning).await?;
        }
        Ok(())
    }
}
