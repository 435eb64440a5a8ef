//! Defects that the cases of `partitions` are there for.

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{
    ConsumerId, Event, FetchOptions, GroupName, GroupOptions, Lag, Lease, NewEvent, Partition,
    Partitions, Replay, ResetOptions, Result, Sequence, Start, StreamName, async_trait,
};

use super::Faulty;
use crate::book::{Book, held};
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        SequencesRunThroughTheStream: "append gives sequences that count through all partitions",
        says: "the sequences that append gave to be [1, 2]",
        kills: [
            "partitions::LOG-1::each_partition_counts_from_1",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "distribution::DST-1::concurrent_appends_of_two_handles_leave_no_gap",
            "distribution::DST-1::keys_go_to_the_same_partition_on_both",
            "distribution::DST-1::two_handles_append_to_one_log",
            "durability::DUR-1::sequences_go_on",
            "fidelity::LOG-5::every_append_has_its_own_time",
            "log::LOG-3::a_batch_is_in_input_order_in_each_partition",
            "log::LOG-6::a_batch_finds_partitions_above_9",
            "log::LOG-7::every_id_of_a_batch_is_taken_in_every_partition",
            "log::LOG-9::a_read_is_of_one_partition",
            "queries::QRY-1::a_query_by_partition_gives_that_partition_alone",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::order_by_sequence_is_then_by_partition",
            "queries::QRY-2::order_by_timestamp_is_then_by_sequence_and_partition",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::paging_by_sequence_gives_every_event_once",
            "queries::QRY-3::paging_by_timestamp_gives_every_event_once",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "streams::STR-1::a_stream_has_the_partitions_it_was_made_with",
        ],
    },
    faulty! {
        PartitionsAreBytes: "the number of a partition is kept in a byte",
        says: "the number of events in a partition to be 1",
        kills: [
            "partitions::STR-1::a_stream_of_1_024_partitions_works",
            "log::LOG-6::a_partition_out_of_range_is_refused",
            "streams::STR-1::a_stream_has_up_to_1024_partitions",
        ],
    },
    faulty! {
        ConsumersStickToAPartition: "a consumer is bound to the partition that it found work in first",
        says: "the claimable places (partition, sequence) to be [(1, 1)]",
        kills: [
            "partitions::DLV-1::a_group_gets_the_events_of_all_partitions",
            "delivery::DLV-3::a_fetch_gives_no_more_than_its_limit",
            "delivery::DLV-5::a_busy_partition_starves_no_other",
            "delivery::DLV-5::a_retried_event_starves_no_other_partition",
            "delivery::DLV-5::every_partition_is_served",
            "delivery::DLV-5::every_selected_partition_is_served",
            "delivery::DLV-6::events_of_a_lower_partition_are_not_passed_over",
            "partitions::DLV-3::a_fetch_is_restricted_to_the_selected_partitions",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "replay::RPL-1::each_partition_is_replayed_after_its_own_sequence",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "replay::RPL-4::chosen_events_are_reopened_in_their_own_partitions",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-5::each_partition_is_reset_after_its_own_sequence",
            "reset::RPL-5::max_attempts_stay_where_one_partition_was_reset",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-5::reset_to_a_time_is_found_per_partition",
            "reset::RPL-5::reset_to_the_end_is_each_partitions_own",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "wakeup::OPS-4::work_in_any_partition_is_told",
        ],
    },
    faulty! {
        TheLastPartitionIsDeliveredBackwards: "from all partitions but the first, leases come in reverse",
        says: "a partition's order of delivery to be [1, 2, 3]",
        kills: [
            "partitions::DLV-4::each_partition_is_delivered_in_its_own_order",
            "delivery::DLV-4::each_partition_comes_in_order",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        OnlyTheFirstSelectedPartitionCounts: "of several selected partitions only the first is looked at",
        says: "what partitions 1 and 3 give to be [(1, 1), (1, 2), (3, 1), (3, 2)]",
        kills: [
            "partitions::DLV-3::a_fetch_is_restricted_to_the_selected_partitions",
            "delivery::DLV-3::a_fetch_stays_in_its_partitions",
            "delivery::DLV-5::every_selected_partition_is_served",
            "input::ERR-8::a_fetch_out_of_range_is_invalid",
        ],
    },
    faulty! {
        NoSelectedPartitionIsAll: "an empty selection of partitions is one of all",
        says: "no lease",
        kills: [
            "partitions::DLV-3::a_fetch_is_restricted_to_the_selected_partitions",
            "delivery::DLV-3::no_partitions_give_and_claim_nothing",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
        ],
    },
    faulty! {
        TheLongestBacklogIsServedAlone: "only the partition with the greatest lag is looked at",
        says: "one lease, since an event is claimable",
        kills: [
            "partitions::DLV-3::a_blocked_partition_holds_no_other",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "dead_letters::DLQ-5::an_after_that_is_not_dead_is_found_in_no_partition",
            "dead_letters::DLQ-5::dead_letters_are_in_order_of_partition_first",
            "dead_letters::DLQ-5::dead_letters_of_twelve_partitions_are_in_order",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
            "dead_letters::DLQ-5::pages_of_dead_letters_join_up_across_partitions",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "delivery::DLV-2::a_start_after_a_sequence_is_for_every_partition",
            "delivery::DLV-2::a_start_at_a_time_is_found_per_partition",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_may_name_a_sequence_per_partition",
            "delivery::DLV-3::a_fetch_gives_no_more_than_its_limit",
            "delivery::DLV-3::a_fetch_stays_in_its_partitions",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "delivery::DLV-4::each_partition_comes_in_order",
            "delivery::DLV-5::a_busy_partition_starves_no_other",
            "delivery::DLV-5::a_retried_event_starves_no_other_partition",
            "delivery::DLV-5::every_partition_is_served",
            "delivery::DLV-6::events_of_a_lower_partition_are_not_passed_over",
            "inspect::OPS-3::group_info_counts_over_all_partitions",
            "inspect::OPS-3::group_info_counts_over_twelve_partitions",
            "leases::LSE-2::a_lease_is_of_its_partition_alone",
            "partitions::DLV-1::a_group_gets_the_events_of_all_partitions",
            "partitions::DLV-2::each_partition_has_its_own_start",
            "partitions::DLV-2::the_end_is_each_partitions_own",
            "partitions::DLV-4::each_partition_is_delivered_in_its_own_order",
            "partitions::FRN-1::each_partition_has_its_own_frontier",
            "partitions::LSE-2::one_sequence_in_two_partitions_is_two_deliveries",
            "partitions::STR-1::a_stream_of_1_024_partitions_works",
            "progress::FRN-4::each_of_twelve_partitions_has_its_progress",
            "replay::RPL-1::each_partition_is_replayed_after_its_own_sequence",
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "replay::RPL-4::chosen_events_are_reopened_in_their_own_partitions",
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
            "reset::RPL-5::a_start_beyond_one_partition_drops_nothing_in_any",
            "reset::RPL-5::a_start_for_a_partition_that_is_not_selected_is_invalid",
            "reset::RPL-5::a_start_is_checked_in_the_selected_partitions_alone",
            "reset::RPL-5::each_partition_is_reset_after_its_own_sequence",
            "reset::RPL-5::max_attempts_stay_where_one_partition_was_reset",
            "reset::RPL-5::reset_of_one_partition_leaves_the_others",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-5::reset_to_a_time_is_found_per_partition",
            "reset::RPL-5::reset_to_the_end_is_each_partitions_own",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
            "wakeup::OPS-4::work_in_any_partition_is_told",
        ],
    },
    faulty! {
        SettlingIgnoresThePartition: "an ack settles the event's namesakes in other partitions too",
        says: "the lease is stale",
        kills: [
            "partitions::LSE-2::one_sequence_in_two_partitions_is_two_deliveries",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "dead_letters::DLQ-5::an_after_that_is_not_dead_is_found_in_no_partition",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "leases::LSE-2::a_lease_is_of_its_partition_alone",
            "partitions::DLV-1::a_group_gets_the_events_of_all_partitions",
            "partitions::FRN-1::each_partition_has_its_own_frontier",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "partitions::STR-1::a_stream_of_1_024_partitions_works",
            "progress::FRN-4::each_of_twelve_partitions_has_its_progress",
            "replay::RPL-1::each_partition_is_replayed_after_its_own_sequence",
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "replay::RPL-4::chosen_events_are_reopened_in_their_own_partitions",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
            "reset::RPL-5::a_start_beyond_one_partition_drops_nothing_in_any",
            "reset::RPL-5::a_start_for_a_partition_that_is_not_selected_is_invalid",
            "reset::RPL-5::each_partition_is_reset_after_its_own_sequence",
            "reset::RPL-5::max_attempts_stay_where_one_partition_was_reset",
            "reset::RPL-5::reset_of_one_partition_leaves_the_others",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-5::reset_to_the_end_is_each_partitions_own",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        AttemptsIgnoreThePartition: "attempts are counted by sequence, over all partitions",
        says: "the attempt in partition 1 to be [1]",
        kills: [
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "distribution::DST-1::a_lease_replaced_elsewhere_is_stale",
            "distribution::DST-1::a_retry_elsewhere_counts_as_an_attempt",
            "durability::DUR-1::attempts_survive",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "replay::RPL-1::leases_from_before_a_replay_hold_up_nothing",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        OneStartIsForAllPartitions: "of a start for each partition, the lowest is used for all",
        says: "the claimable places (partition, sequence) to be [(0, 3), (1, 2), (2, 1)]",
        kills: [
            "partitions::DLV-2::each_partition_has_its_own_start",
            "delivery::DLV-2::a_start_may_name_a_sequence_per_partition",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
            "input::ERR-8::a_group_start_out_of_range_is_invalid",
        ],
    },
    faulty! {
        TheEndIsThatOfTheLongest: "a start at the end skips as much in each partition as in the longest",
        says: "the claimable places (partition, sequence) to be [(0, 4), (1, 2), (2, 1)]",
        kills: [
            "partitions::DLV-2::the_end_is_each_partitions_own",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
        ],
    },
    faulty! {
        OneFrontierIsForAllPartitions: "the lowest frontier is given for all partitions",
        says: "the frontiers to be [1, 2, 1]",
        kills: [
            "partitions::FRN-1::each_partition_has_its_own_frontier",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "progress::FRN-4::each_of_twelve_partitions_has_its_progress",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        EmptyPartitionsHaveNoLag: "partitions without events are left out of lag",
        says: "partition, frontier and high watermark to be equal",
        kills: [
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "inspect::OPS-3::group_info_gives_the_progress_that_lag_gives",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-4::the_lag_of_an_empty_stream_is_nothing",
        ],
    },
    faulty! {
        PartitionsAreOrderedAsText: "lag gives partitions in the order of their numbers as text",
        says: "partition, frontier and high watermark to be equal",
        kills: [
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "progress::FRN-4::each_of_twelve_partitions_has_its_progress",
        ],
    },
];

#[derive(Default)]
struct SequencesRunThroughTheStream {
    counters: Mutex<HashMap<StreamName, Sequence>>,
}

#[async_trait]
impl Defect for SequencesRunThroughTheStream {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let mut appended = real.backend.append_batch(stream, events).await?;
        for event in &mut appended {
            let mut counters = held(&self.counters);
            let counter = counters.entry(stream.clone()).or_default();
            *counter = counter.next();
            event.sequence = *counter;
        }
        Ok(appended)
    }
}

#[derive(Default)]
struct PartitionsAreBytes;

#[async_trait]
impl Defect for PartitionsAreBytes {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let mut events = events;
        for event in &mut events {
            event.partition = event
                .partition
                .map(|partition| Partition::new(partition.number() & 0xff));
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
struct ConsumersStickToAPartition {
    bound: Mutex<HashMap<(StreamName, GroupName, ConsumerId), Partition>>,
}

#[async_trait]
impl Defect for ConsumersStickToAPartition {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let key = (stream.clone(), group.clone(), options.consumer.clone());
        let mut options = options.clone();
        if let Some(partition) = held(&self.bound).get(&key) {
            options = options.with_partitions(*partition);
        }
        let leases = real.backend.fetch(stream, group, &options).await?;
        if let Some(lease) = leases.first() {
            held(&self.bound).insert(key, lease.event.partition);
        }
        Ok(leases)
    }
}

#[derive(Default)]
struct TheLastPartitionIsDeliveredBackwards;

#[async_trait]
impl Defect for TheLastPartitionIsDeliveredBackwards {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        let is_first = |lease: &Lease| lease.event.partition == Partition::ZERO;
        let (mut first, rest): (Vec<Lease>, Vec<Lease>) = leases.into_iter().partition(is_first);
        first.extend(rest.into_iter().rev());
        Ok(first)
    }
}

#[derive(Default)]
struct OnlyTheFirstSelectedPartitionCounts;

#[async_trait]
impl Defect for OnlyTheFirstSelectedPartitionCounts {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut options = options.clone();
        if let Partitions::Only(partitions) = &mut options.partitions {
            *partitions = partitions.iter().take(1).copied().collect();
        }
        real.backend.fetch(stream, group, &options).await
    }
}

#[derive(Default)]
struct NoSelectedPartitionIsAll;

#[async_trait]
impl Defect for NoSelectedPartitionIsAll {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut options = options.clone();
        if options.partitions == Partitions::only([]) {
            options.partitions = Partitions::All;
        }
        real.backend.fetch(stream, group, &options).await
    }
}

#[derive(Default)]
struct TheLongestBacklogIsServedAlone;

#[async_trait]
impl Defect for TheLongestBacklogIsServedAlone {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let lag = real.backend.lag(stream, group).await?;
        let longest = lag
            .partitions
            .iter()
            .rev()
            .max_by_key(|progress| progress.lag());
        match (longest, &options.partitions) {
            (Some(progress), Partitions::All) => {
                let options = options.clone().with_partitions(progress.partition);
                real.backend.fetch(stream, group, &options).await
            }
            _ => real.backend.fetch(stream, group, options).await,
        }
    }
}

#[derive(Default)]
struct SettlingIgnoresThePartition {
    book: Book,
}

#[async_trait]
impl Defect for SettlingIgnoresThePartition {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        for other in self
            .book
            .current(real, &lease.event.stream, &lease.group)
            .await
        {
            if other.event.sequence == lease.event.sequence {
                real.backend.ack(&other).await?;
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct AttemptsIgnoreThePartition {
    attempts: Mutex<HashMap<(StreamName, GroupName, Sequence), u32>>,
}

#[async_trait]
impl Defect for AttemptsIgnoreThePartition {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for lease in &mut leases {
            let key = (stream.clone(), group.clone(), lease.event.sequence);
            let mut attempts = held(&self.attempts);
            let attempt = attempts.entry(key).or_default();
            *attempt += 1;
            lease.attempt = *attempt;
        }
        Ok(leases)
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        held(&self.attempts).clear();
        real.backend.replay(stream, group, replay).await
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        held(&self.attempts).clear();
        real.backend.reset_group(stream, group, options).await
    }
}

#[derive(Default)]
struct OneStartIsForAllPartitions;

#[async_trait]
impl Defect for OneStartIsForAllPartitions {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        match &options.start {
            Start::AfterSequences(sequences) if !sequences.is_empty() => {
                let lowest = sequences.values().min().copied().unwrap_or_default();
                let options = options.clone().with_start(Start::AfterSequence(lowest));
                real.backend.create_group(stream, group, &options).await
            }
            _ => real.backend.create_group(stream, group, options).await,
        }
    }
}

#[derive(Default)]
struct TheEndIsThatOfTheLongest {
    ends: Mutex<HashMap<(StreamName, GroupName), Sequence>>,
}

#[async_trait]
impl Defect for TheEndIsThatOfTheLongest {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        if options.start == Start::End {
            let lag = real.backend.lag(stream, group).await?;
            let longest = lag
                .partitions
                .iter()
                .map(|p| p.high_watermark)
                .max()
                .unwrap_or_default();
            held(&self.ends).insert((stream.clone(), group.clone()), longest);
        }
        Ok(())
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        held(&self.ends).clear();
        real.backend.replay(stream, group, replay).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        let end = held(&self.ends)
            .get(&(stream.clone(), group.clone()))
            .copied()
            .unwrap_or_default();
        leases.retain(|lease| lease.event.sequence > end);
        Ok(leases)
    }
}

#[derive(Default)]
struct OneFrontierIsForAllPartitions;

#[async_trait]
impl Defect for OneFrontierIsForAllPartitions {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        let lowest = lag
            .partitions
            .iter()
            .map(|p| p.frontier)
            .min()
            .unwrap_or_default();
        lag.partitions
            .iter_mut()
            .for_each(|progress| progress.frontier = lowest);
        Ok(lag)
    }
}

#[derive(Default)]
struct EmptyPartitionsHaveNoLag;

#[async_trait]
impl Defect for EmptyPartitionsHaveNoLag {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        lag.partitions
            .retain(|progress| progress.high_watermark > Sequence::ZERO);
        Ok(lag)
    }
}

#[derive(Default)]
struct PartitionsAreOrderedAsText;

#[async_trait]
impl Defect for PartitionsAreOrderedAsText {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        lag.partitions
            .sort_by_key(|progress| progress.partition.to_string());
        Ok(lag)
    }
}
