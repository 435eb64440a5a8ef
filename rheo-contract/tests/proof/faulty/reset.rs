//! Defects that the cases of `reset` are there for.

pub(super) mod attempts;
pub(super) mod starts;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, Event, EventId, FetchOptions, GroupName, Lag, Lease,
    LeaseDuration, LeaseId, ListOptions, Partition, Partitions, ReadOptions, Replay, ResetOptions,
    Result, RetryOptions, RetryOutcome, Sequence, Start, StreamName, Timestamp, async_trait,
};

use super::Faulty;
use crate::book::{Book, all_dead, held};
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        ResetIsAReplay: "a reset is a replay after the start, so that it goes back only",
        says: "Err(StaleLease)",
        kills: [
            "reset::RPL-5::reset_may_go_forward",
            "distribution::DST-1::a_reset_elsewhere_is_seen",
            "durability::DUR-1::a_reset_survives",
            "input::RPL-5::a_reset_beyond_the_end_is_invalid",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "reset::RPL-5::a_group_that_was_reset_forward_can_be_replayed",
            "reset::RPL-5::a_start_beyond_one_partition_drops_nothing_in_any",
            "reset::RPL-5::a_start_is_checked_in_the_selected_partitions_alone",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-5::reset_takes_the_dead_letters_away",
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "reset::RPL-5::the_frontier_is_the_new_start",
            "reset::RPL-6::reset_leaves_other_groups_alone",
        ],
    },
    faulty! {
        ResetSkipsTheLastEvents: "a reset to the end is one to what was claimed",
        says: "no claimable event",
        kills: [
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "distribution::DST-1::a_reset_elsewhere_is_seen",
            "reset::RPL-5::a_group_that_was_reset_forward_can_be_replayed",
            "reset::RPL-5::reset_to_the_end_is_each_partitions_own",
            "reset::RPL-5::the_frontier_is_the_new_start",
            "reset::RPL-6::reset_leaves_other_groups_alone",
        ],
    },
    faulty! {
        ResetDropsOnlyWhatIsAbove: "leases at or below the new start can still be renewed",
        says: "Err(StaleLease)",
        kills: [
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "reset::RPL-5::reset_may_go_forward",
        ],
    },
    faulty! {
        ResetToATimeIsExclusive: "a reset to a time starts behind it",
        says: "the claimable sequences to be [3, 4]",
        kills: [
            "reset::RPL-5::reset_to_a_time_starts_with_the_first_event_at_or_after_it",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-5::reset_to_a_time_goes_by_the_lowest_sequence",
            "reset::RPL-5::reset_to_a_time_is_found_per_partition",
        ],
    },
    faulty! {
        ResetToATimeInMilliseconds: "a reset to a time cuts it to milliseconds",
        says: "the claimable sequences to be [3, 4]",
        kills: [
            "reset::RPL-5::reset_to_a_time_starts_with_the_first_event_at_or_after_it",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-5::reset_to_a_time_goes_by_the_lowest_sequence",
            "reset::RPL-5::reset_to_a_time_is_found_per_partition",
        ],
    },
    faulty! {
        ResetDropsAndThenChecks: "a reset that is refused has dropped the state already",
        says: "the lease is stale",
        kills: [
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "input::ERR-8::a_reset_out_of_range_is_invalid",
            "input::RPL-5::a_reset_beyond_the_end_is_invalid",
            "reset::ERR-8::reset_of_a_partition_out_of_range_drops_nothing",
            "reset::RPL-5::a_start_beyond_one_partition_drops_nothing_in_any",
            "reset::RPL-5::a_start_for_a_partition_that_is_not_selected_is_invalid",
        ],
    },
    faulty! {
        ResetToTheLastIsBeyond: "a reset to the last sequence is refused",
        says: "invalid start: got 5, allowed is below the high watermark",
        kills: [
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
        ],
    },
    faulty! {
        ResetForgetsMaxAttempts: "a group has the default number of attempts after a reset",
        says: "the outcome of a retry at the only attempt to be DeadLettered",
        kills: [
            "reset::RPL-5::max_attempts_stay_after_a_reset",
            "reset::RPL-5::max_attempts_stay_where_one_partition_was_reset",
        ],
    },
    faulty! {
        ResetKeepsTheListOfTheDead: "dead letters are still listed after a reset",
        says: "no dead letter",
        kills: [
            "reset::RPL-5::reset_takes_the_dead_letters_away",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
        ],
    },
    faulty! {
        ResetPutsTheFrontierToZero: "the frontier is 0 after a reset, whatever the start",
        says: "the frontier to be 4",
        kills: [
            "reset::RPL-5::the_frontier_is_the_new_start",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ResetIgnoresThePartitions: "a reset is of all partitions",
        says: "the lease is stale",
        kills: [
            "reset::RPL-5::reset_of_one_partition_leaves_the_others",
            "input::ERR-8::a_reset_out_of_range_is_invalid",
            "reset::ERR-8::reset_of_a_partition_out_of_range_drops_nothing",
            "reset::RPL-5::a_start_for_a_partition_that_is_not_selected_is_invalid",
            "reset::RPL-5::a_start_is_checked_in_the_selected_partitions_alone",
            "reset::RPL-5::each_partition_is_reset_after_its_own_sequence",
            "reset::RPL-5::max_attempts_stay_where_one_partition_was_reset",
            "reset::RPL-5::reset_of_no_partition_changes_nothing",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ResetIsOfNamedPartitionsOnly: "only the partitions that the start names are reset",
        says: "Err(StaleLease)",
        kills: [
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
            "input::ERR-8::a_reset_out_of_range_is_invalid",
            "reset::ERR-8::reset_of_a_partition_out_of_range_drops_nothing",
            "reset::RPL-5::a_start_for_a_partition_that_is_not_selected_is_invalid",
            "reset::RPL-5::each_partition_is_reset_after_its_own_sequence",
            "reset::RPL-5::reset_to_no_sequences_starts_at_the_beginning",
        ],
    },
    faulty! {
        ResetIgnoresOtherStarts: "starts of partitions that are not selected are ignored",
        says: "Err(Invalid)",
        kills: ["reset::RPL-5::a_start_for_a_partition_that_is_not_selected_is_invalid"],
    },
    faulty! {
        ResetChecksAsItGoes: "partitions are reset one by one until one is refused",
        says: "the lease is stale",
        kills: [
            "reset::RPL-5::a_start_beyond_one_partition_drops_nothing_in_any",
            "input::ERR-8::a_reset_out_of_range_is_invalid",
            "reset::ERR-8::reset_of_a_partition_out_of_range_drops_nothing",
            "reset::RPL-5::a_start_for_a_partition_that_is_not_selected_is_invalid",
        ],
    },
    faulty! {
        ResetChecksAllPartitions: "the start must be within every partition, selected or not",
        says: "invalid start: got 2, allowed is at most 1",
        kills: [
            "reset::RPL-5::a_start_is_checked_in_the_selected_partitions_alone",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
        ],
    },
    faulty! {
        ResetOfNoPartitionIsOfAll: "an empty selection of partitions resets all",
        says: "no claimable event",
        kills: ["reset::RPL-5::reset_of_no_partition_changes_nothing"],
    },
    faulty! {
        ResetIsForAllGroups: "a reset is done for every group of the stream",
        says: "the lease is stale",
        kills: [
            "reset::RPL-6::reset_leaves_other_groups_alone",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
        ],
    },
    faulty! {
        ResetTrimsTheLog: "a reset to the end removes the events from the log",
        says: "the log to be equal",
        kills: [
            "reset::RPL-6::reset_leaves_the_log_alone",
            "log::LOG-4::replay_and_reset_change_no_event",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
        ],
    },
    faulty! {
        ResetLosesRacingAcks: "acks that come in while a reset is under way stay acked",
        says: "the claimable sequences to be [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]",
        kills: ["reset::RPL-7::acks_that_race_a_reset_lose_no_event"],
    },
    faulty! {
        WhatIsMissingIsReset: "a reset of a missing group or stream is Ok",
        says: "Err(StreamNotFound)",
        kills: [
            "reset::ERR-6::reset_looks_for_the_stream_before_the_group",
            "input::ERR-10::a_missing_group_is_named_with_its_stream",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::a_missing_group_comes_before_bad_input",
            "input::ERR-6::a_missing_group_is_named",
            "input::ERR-6::nothing_to_replay_excuses_no_missing_group",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
        ],
    },
    faulty! {
        ResetSkipsPartitionsThatAreMissing: "partitions out of range are left out of a reset",
        says: "Err(Invalid)",
        kills: [
            "reset::ERR-8::reset_of_a_partition_out_of_range_drops_nothing",
            "input::ERR-8::a_reset_out_of_range_is_invalid",
        ],
    },
];

#[derive(Default)]
struct ResetIsAReplay;

#[async_trait]
impl Defect for ResetIsAReplay {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let lag = real.backend.lag(stream, group).await?;
        let sequence = match options.start {
            Start::Beginning => Sequence::ZERO,
            Start::AfterSequence(sequence) => sequence,
            Start::End => lag.partitions[0].high_watermark,
            _ => return real.backend.reset_group(stream, group, options).await,
        };
        let partitions = options.partitions.clone();
        real.backend
            .replay(
                stream,
                group,
                &Replay::After {
                    sequence,
                    partitions,
                },
            )
            .await
    }
}

#[derive(Default)]
struct ResetSkipsTheLastEvents {
    book: Book,
}

#[async_trait]
impl Defect for ResetSkipsTheLastEvents {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let all = self.book.all(stream, group);
        let claimed = all
            .iter()
            .map(|lease| lease.event.sequence)
            .max()
            .unwrap_or_default();
        match options.start {
            Start::End => {
                let options = starting(options, Start::AfterSequence(claimed));
                real.backend.reset_group(stream, group, &options).await
            }
            _ => real.backend.reset_group(stream, group, options).await,
        }
    }
}

#[derive(Default)]
struct ResetDropsOnlyWhatIsAbove {
    book: Book,
    pardoned: Mutex<HashSet<LeaseId>>,
}

#[async_trait]
impl Defect for ResetDropsOnlyWhatIsAbove {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        match real.backend.renew(lease, duration).await {
            Err(Error::StaleLease) if held(&self.pardoned).contains(&lease.lease_id) => {
                Ok(lease.clone())
            }
            result => result,
        }
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        if let Start::AfterSequence(start) = options.start {
            let mut below = self.book.current(real, stream, group).await;
            below.retain(|lease| lease.event.sequence <= start);
            held(&self.pardoned).extend(below.into_iter().map(|lease| lease.lease_id));
        }
        real.backend.reset_group(stream, group, options).await
    }
}

#[derive(Default)]
struct ResetToATimeIsExclusive;

#[async_trait]
impl Defect for ResetToATimeIsExclusive {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        match options.start {
            Start::AtTime(time) => {
                let behind = Start::AtTime(time.saturating_add(Duration::from_micros(1)));
                real.backend
                    .reset_group(stream, group, &starting(options, behind))
                    .await
            }
            _ => real.backend.reset_group(stream, group, options).await,
        }
    }
}

#[derive(Default)]
struct ResetToATimeInMilliseconds;

#[async_trait]
impl Defect for ResetToATimeInMilliseconds {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        match options.start {
            Start::AtTime(time) => {
                let millis = Timestamp::from_micros(time.as_micros() / 1_000 * 1_000)?;
                real.backend
                    .reset_group(stream, group, &starting(options, Start::AtTime(millis)))
                    .await
            }
            _ => real.backend.reset_group(stream, group, options).await,
        }
    }
}

#[derive(Default)]
struct ResetDropsAndThenChecks;

#[async_trait]
impl Defect for ResetDropsAndThenChecks {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let result = real.backend.reset_group(stream, group, options).await;
        if result.is_err() {
            let _ = real
                .backend
                .reset_group(stream, group, &ResetOptions::new())
                .await;
        }
        result
    }
}

#[derive(Default)]
struct ResetToTheLastIsBeyond;

#[async_trait]
impl Defect for ResetToTheLastIsBeyond {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let lag = real.backend.lag(stream, group).await?;
        match options.start {
            Start::AfterSequence(start) if start >= lag.partitions[0].high_watermark => {
                Err(Error::invalid("start", start, "below the high watermark"))
            }
            _ => real.backend.reset_group(stream, group, options).await,
        }
    }
}

#[derive(Default)]
struct ResetForgetsMaxAttempts {
    was_reset: Mutex<HashSet<(StreamName, GroupName)>>,
}

#[async_trait]
impl Defect for ResetForgetsMaxAttempts {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        held(&self.was_reset).insert((stream.clone(), group.clone()));
        real.backend.reset_group(stream, group, options).await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let (stream, group) = (&lease.event.stream, &lease.group);
        let outcome = real.backend.retry(lease, options).await?;
        let was_reset = held(&self.was_reset).contains(&(stream.clone(), group.clone()));
        if was_reset && outcome == RetryOutcome::DeadLettered && lease.attempt < 5 {
            real.backend
                .replay(stream, group, &Replay::Events(vec![lease.event.id]))
                .await?;
            return Ok(RetryOutcome::Retrying);
        }
        Ok(outcome)
    }
}

#[derive(Default)]
struct ResetKeepsTheListOfTheDead {
    kept: Mutex<Vec<DeadLetter>>,
}

#[async_trait]
impl Defect for ResetKeepsTheListOfTheDead {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        if options.after.is_none() {
            dead.extend(held(&self.kept).iter().cloned());
        }
        Ok(dead)
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let dead = all_dead(real, stream, group).await?;
        held(&self.kept).extend(dead);
        real.backend.reset_group(stream, group, options).await
    }
}

#[derive(Default)]
struct ResetPutsTheFrontierToZero {
    was_reset: Mutex<HashSet<(StreamName, GroupName)>>,
}

#[async_trait]
impl Defect for ResetPutsTheFrontierToZero {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        held(&self.was_reset).insert((stream.clone(), group.clone()));
        real.backend.reset_group(stream, group, options).await
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        if held(&self.was_reset).contains(&(stream.clone(), group.clone())) {
            lag.partitions
                .iter_mut()
                .for_each(|progress| progress.frontier = Sequence::ZERO);
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct ResetIgnoresThePartitions;

#[async_trait]
impl Defect for ResetIgnoresThePartitions {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let options = ResetOptions::new().with_start(options.start.clone());
        real.backend.reset_group(stream, group, &options).await
    }
}

#[derive(Default)]
struct ResetIsOfNamedPartitionsOnly;

#[async_trait]
impl Defect for ResetIsOfNamedPartitionsOnly {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        match &options.start {
            Start::AfterSequences(sequences) => {
                let named = Partitions::only(sequences.keys().copied());
                let options = options.clone().with_partitions(named);
                real.backend.reset_group(stream, group, &options).await
            }
            _ => real.backend.reset_group(stream, group, options).await,
        }
    }
}

#[derive(Default)]
struct ResetIgnoresOtherStarts;

#[async_trait]
impl Defect for ResetIgnoresOtherStarts {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        match &options.start {
            Start::AfterSequences(sequences) if options.partitions != Partitions::All => {
                let mut selected = sequences.clone();
                selected.retain(|partition, _| options.partitions.contains(*partition));
                let options = starting(options, Start::AfterSequences(selected));
                real.backend.reset_group(stream, group, &options).await
            }
            _ => real.backend.reset_group(stream, group, options).await,
        }
    }
}

#[derive(Default)]
struct ResetChecksAsItGoes;

#[async_trait]
impl Defect for ResetChecksAsItGoes {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let lag = real.backend.lag(stream, group).await?;
        let mut selected: BTreeSet<Partition> =
            lag.partitions.iter().map(|p| p.partition).collect();
        if let Partitions::Only(partitions) = &options.partitions {
            selected = partitions.clone();
        }
        for partition in selected {
            let start = match &options.start {
                Start::AfterSequences(sequences) => {
                    Start::AfterSequence(sequences.get(&partition).copied().unwrap_or_default())
                }
                start => start.clone(),
            };
            let options = ResetOptions::new()
                .with_start(start)
                .with_partitions(partition);
            real.backend.reset_group(stream, group, &options).await?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct ResetChecksAllPartitions;

#[async_trait]
impl Defect for ResetChecksAllPartitions {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let lag = real.backend.lag(stream, group).await?;
        let shortest = lag
            .partitions
            .iter()
            .map(|p| p.high_watermark)
            .min()
            .unwrap_or_default();
        match options.start {
            Start::AfterSequence(start) if start > shortest => Err(Error::invalid(
                "start",
                start,
                format!("at most {shortest}"),
            )),
            _ => real.backend.reset_group(stream, group, options).await,
        }
    }
}

#[derive(Default)]
struct ResetOfNoPartitionIsOfAll;

#[async_trait]
impl Defect for ResetOfNoPartitionIsOfAll {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let mut options = options.clone();
        if options.partitions == Partitions::only([]) {
            options.partitions = Partitions::All;
        }
        real.backend.reset_group(stream, group, &options).await
    }
}

#[derive(Default)]
struct ResetIsForAllGroups;

#[async_trait]
impl Defect for ResetIsForAllGroups {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.reset_group(stream, group, options).await?;
        for other in real
            .backend
            .list_groups(stream, &ListOptions::new())
            .await?
        {
            real.backend.reset_group(stream, &other, options).await?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct ResetTrimsTheLog {
    trimmed: Mutex<HashMap<StreamName, Sequence>>,
}

#[async_trait]
impl Defect for ResetTrimsTheLog {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let lag = real.backend.lag(stream, group).await?;
        if options.start == Start::End {
            held(&self.trimmed).insert(stream.clone(), lag.partitions[0].high_watermark);
        }
        real.backend.reset_group(stream, group, options).await
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        let trimmed = held(&self.trimmed).get(stream).copied().unwrap_or_default();
        events.retain(|event| event.sequence > trimmed);
        Ok(events)
    }
}

#[derive(Default)]
struct ResetLosesRacingAcks {
    is_half_way: AtomicBool,
    lost: Mutex<HashSet<(EventId, GroupName)>>,
}

#[async_trait]
impl Defect for ResetLosesRacingAcks {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        if self.is_half_way.load(Ordering::SeqCst) {
            held(&self.lost).insert((lease.event.id, lease.group.clone()));
        }
        Ok(())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        leases.retain(|lease| !held(&self.lost).contains(&(lease.event.id, lease.group.clone())));
        Ok(leases)
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        self.is_half_way.store(true, Ordering::SeqCst);
        for _ in 0..10_000 {
            if held(&self.lost).is_empty() {
                tokio::task::yield_now().await;
            }
        }
        self.is_half_way.store(false, Ordering::SeqCst);
        real.backend.reset_group(stream, group, options).await
    }
}

#[derive(Default)]
struct WhatIsMissingIsReset;

#[async_trait]
impl Defect for WhatIsMissingIsReset {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        match real.backend.reset_group(stream, group, options).await {
            Err(Error::GroupNotFound { .. } | Error::StreamNotFound { .. }) => Ok(()),
            result => result,
        }
    }
}

#[derive(Default)]
struct ResetSkipsPartitionsThatAreMissing;

#[async_trait]
impl Defect for ResetSkipsPartitionsThatAreMissing {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let lag = real.backend.lag(stream, group).await?;
        let exists = |partition: &Partition| lag.partition(*partition).is_some();
        let mut options = options.clone();
        if let Partitions::Only(partitions) = &mut options.partitions {
            partitions.retain(exists);
        }
        real.backend.reset_group(stream, group, &options).await
    }
}

fn starting(options: &ResetOptions, start: Start) -> ResetOptions {
    let mut options = options.clone();
    options.start = start;
    options
}
