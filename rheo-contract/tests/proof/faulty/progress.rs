//! Defects that the cases of `progress` are there for.

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{
    Error, FetchOptions, GroupName, GroupOptions, Lag, Lease, ListOptions, Partition, Result,
    RetryOptions, Sequence, StreamName, async_trait,
};

use super::Faulty;
use crate::book::{Book, held};
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        HolesBeyond1000AreForgotten: "beyond a thousand, what is leased does not hold the frontier",
        says: "the frontier to be 1001",
        kills: ["progress::FRN-1::holes_hold_the_frontier_however_far_up"],
    },
    faulty! {
        LagIsOfTenPartitions: "the lag is that of the first ten partitions",
        says: "the sum",
        kills: [
            "progress::FRN-4::each_of_twelve_partitions_has_its_progress",
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
        ],
    },
    faulty! {
        TheFrontierIsTheHighestAck: "the frontier is the highest acked sequence",
        says: "the frontier to be 0",
        kills: [
            "progress::FRN-1::a_hole_holds_the_frontier_until_it_is_filled",
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "durability::DUR-1::frontiers_survive",
            "partitions::FRN-1::each_partition_has_its_own_frontier",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::a_hole_below_a_thousand_acks_holds_the_frontier",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "progress::FRN-1::a_late_settle_fills_its_hole",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "progress::FRN-1::holes_hold_the_frontier_however_far_up",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "progress::FRN-1::what_waits_for_a_retry_holds_the_frontier",
            "progress::FRN-2::from_its_start_the_frontier_moves_on",
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "reset::RPL-5::the_frontier_is_the_new_start",
            "settling::DLQ-2::a_given_up_event_lets_the_frontier_pass",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
        ],
    },
    faulty! {
        TheFrontierCountsAcks: "the frontier is the number of acks",
        says: "the frontier to be 0",
        kills: [
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "durability::DUR-1::frontiers_survive",
            "partitions::FRN-1::each_partition_has_its_own_frontier",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::a_hole_below_a_thousand_acks_holds_the_frontier",
            "progress::FRN-1::a_hole_holds_the_frontier_until_it_is_filled",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "progress::FRN-1::a_late_settle_fills_its_hole",
            "progress::FRN-1::holes_hold_the_frontier_however_far_up",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "progress::FRN-1::what_waits_for_a_retry_holds_the_frontier",
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "reset::RPL-5::the_frontier_is_the_new_start",
            "settling::DLQ-2::a_given_up_event_lets_the_frontier_pass",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
        ],
    },
    faulty! {
        OnlyLeasesHoldTheFrontier: "what waits for a retry does not hold the frontier",
        says: "the frontier to be 1",
        kills: [
            "progress::FRN-1::what_waits_for_a_retry_holds_the_frontier",
            "batches::LSE-8::a_batch_of_retries_moves_the_frontier_where_it_gives_up",
            "inspect::OPS-3::group_info_gives_the_progress_that_lag_gives",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-3::the_frontier_never_moves_back_by_itself",
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "reset::RPL-5::the_frontier_is_the_new_start",
        ],
    },
    faulty! {
        ExpiredLeasesHoldNoFrontier: "an expired lease does not hold the frontier",
        says: "the frontier to be 0",
        kills: [
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "progress::FRN-1::a_late_settle_fills_its_hole",
            "progress::FRN-3::the_frontier_never_moves_back_by_itself",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
        ],
    },
    faulty! {
        NothingOpenIsAllDone: "without open leases the frontier is the high watermark",
        says: "the frontier to be 2",
        kills: [
            "progress::FRN-1::what_was_never_claimed_holds_the_frontier",
            "batches::LSE-8::a_batch_of_retries_moves_the_frontier_where_it_gives_up",
            "inspect::OPS-3::group_info_gives_the_progress_that_lag_gives",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-1::what_waits_for_a_retry_holds_the_frontier",
            "progress::FRN-3::the_frontier_never_moves_back_by_itself",
            "progress::FRN-4::each_of_twelve_partitions_has_its_progress",
            "progress::FRN-4::lag_grows_with_appends_and_shrinks_with_acks",
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-3::replay_never_raises_the_frontier",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "reset::RPL-5::the_frontier_is_the_new_start",
        ],
    },
    faulty! {
        OnlyFirstAttemptsMoveTheFrontier: "an ack at a later attempt leaves its hole",
        says: "the frontier to be 3",
        kills: [
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
        ],
    },
    faulty! {
        ProgressIsOfTheStream: "the frontier is that of the group that is furthest",
        says: "the frontier to be 1",
        kills: [
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "progress::FRN-2::the_frontier_begins_at_the_start",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        TheFrontierBeginsAtZero: "until its first ack a group's frontier is 0, whatever its start",
        says: "the frontier to be 3",
        kills: [
            "progress::FRN-2::the_frontier_begins_at_the_start",
            "batches::LSE-8::a_batch_of_retries_moves_the_frontier_where_it_gives_up",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "distribution::DST-1::progress_is_the_same_on_both",
            "durability::DUR-1::frontiers_survive",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-2::a_group_that_starts_at_the_end_has_no_lag",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
        ],
    },
    faulty! {
        WhatIsBelowTheStartIsAHole: "the frontier does not move on from a start that is not the beginning",
        says: "the frontier to be 4",
        kills: [
            "progress::FRN-2::from_its_start_the_frontier_moves_on",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
        ],
    },
    faulty! {
        LaterAttemptsPutTheFrontierBack: "a second attempt puts the frontier to 0 until it is acked",
        says: "the frontier to be 3",
        kills: [
            "progress::FRN-3::the_frontier_never_moves_back_by_itself",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::the_frontier_follows_random_work",
            "replay::RPL-2::replays_at_random_follow_the_rules",
        ],
    },
    faulty! {
        TheHighWatermarkIsCached: "the high watermark is the one of the first look",
        says: "the lag to be 2",
        kills: [
            "progress::FRN-4::lag_grows_with_appends_and_shrinks_with_acks",
            "inspect::OPS-3::group_info_gives_the_progress_that_lag_gives",
            "log::LOG-10::an_appended_event_counts_in_the_lag_at_once",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-2::a_group_that_starts_at_the_end_has_no_lag",
            "distribution::DST-1::progress_is_the_same_on_both",
        ],
    },
    faulty! {
        ClaimsAreProgress: "the frontier is the highest claimed sequence",
        says: "the lag to be 3",
        kills: [
            "progress::FRN-4::claims_alone_are_no_progress",
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "batches::LSE-8::a_batch_of_retries_moves_the_frontier_where_it_gives_up",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "distribution::DST-1::progress_is_the_same_on_both",
            "durability::DUR-1::frontiers_survive",
            "inspect::OPS-3::group_info_gives_the_progress_that_lag_gives",
            "partitions::FRN-1::each_partition_has_its_own_frontier",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::a_hole_below_a_thousand_acks_holds_the_frontier",
            "progress::FRN-1::a_hole_holds_the_frontier_until_it_is_filled",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "progress::FRN-1::a_late_settle_fills_its_hole",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "progress::FRN-1::holes_hold_the_frontier_however_far_up",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "progress::FRN-1::what_waits_for_a_retry_holds_the_frontier",
            "progress::FRN-2::from_its_start_the_frontier_moves_on",
            "progress::FRN-3::the_frontier_never_moves_back_by_itself",
            "progress::FRN-4::lag_is_never_ahead_of_racing_acks",
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-3::replay_never_raises_the_frontier",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "reset::RPL-5::the_frontier_is_the_new_start",
            "settling::DLQ-2::a_given_up_event_lets_the_frontier_pass",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
        ],
    },
    faulty! {
        LagSweeps: "expired leases are given back before lag is computed",
        says: "the lease is stale",
        kills: [
            "progress::FRN-4::lag_changes_nothing",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "progress::FRN-1::a_late_settle_fills_its_hole",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
        ],
    },
    faulty! {
        WhatIsMissingHasNoLag: "a missing group or stream has no lag",
        says: "Err(StreamNotFound)",
        kills: [
            "progress::ERR-6::lag_looks_for_the_stream_before_the_group",
            "input::ERR-10::a_missing_group_is_named_with_its_stream",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::a_missing_group_is_named",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
            "input::FRN-4::a_missing_group_has_no_lag",
        ],
    },
];

#[derive(Default)]
struct TheFrontierIsTheHighestAck {
    acked: Marks,
}

#[async_trait]
impl Defect for TheFrontierIsTheHighestAck {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        mark(&self.acked, lease);
        Ok(())
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for progress in &mut lag.partitions {
            let acked = mark_of(&self.acked, stream, group, progress.partition);
            progress.frontier = acked.unwrap_or_default().max(progress.frontier);
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct TheFrontierCountsAcks {
    acked: Marks,
}

#[async_trait]
impl Defect for TheFrontierCountsAcks {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        let event = &lease.event;
        let key = (event.stream.clone(), lease.group.clone(), event.partition);
        let mut acked = held(&self.acked);
        let count = acked.entry(key).or_default();
        *count = count.next();
        Ok(())
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for progress in &mut lag.partitions {
            let acked = mark_of(&self.acked, stream, group, progress.partition);
            progress.frontier = acked.unwrap_or_default().max(progress.frontier);
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct OnlyLeasesHoldTheFrontier {
    book: Book,
}

#[async_trait]
impl Defect for OnlyLeasesHoldTheFrontier {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let current = self.book.current(real, stream, group).await;
        let mut lag = real.backend.lag(stream, group).await?;
        for progress in &mut lag.partitions {
            let open = current
                .iter()
                .filter(|lease| lease.event.partition == progress.partition);
            let lowest = open.map(|lease| lease.event.sequence.previous()).min();
            let all = self.book.all(stream, group);
            let own = all
                .iter()
                .filter(|lease| lease.event.partition == progress.partition);
            let claimed = own
                .map(|lease| lease.event.sequence)
                .max()
                .unwrap_or_default();
            progress.frontier = lowest.unwrap_or(claimed).max(progress.frontier);
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct ExpiredLeasesHoldNoFrontier {
    book: Book,
}

#[async_trait]
impl Defect for ExpiredLeasesHoldNoFrontier {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut current = self.book.current(real, stream, group).await;
        let is_expired = |lease: &Lease| lease.expires_at <= real.now();
        let expired = current.iter().any(is_expired);
        current.retain(|lease| !is_expired(lease));
        let mut lag = real.backend.lag(stream, group).await?;
        if expired && current.is_empty() {
            let all = self.book.all(stream, group);
            let claimed = all
                .iter()
                .map(|lease| lease.event.sequence)
                .max()
                .unwrap_or_default();
            lag.partitions[0].frontier = claimed;
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct NothingOpenIsAllDone {
    book: Book,
}

#[async_trait]
impl Defect for NothingOpenIsAllDone {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let is_idle = self.book.current(real, stream, group).await.is_empty();
        let any = !self.book.all(stream, group).is_empty();
        let mut lag = real.backend.lag(stream, group).await?;
        if is_idle && any {
            lag.partitions
                .iter_mut()
                .for_each(|progress| progress.frontier = progress.high_watermark);
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct OnlyFirstAttemptsMoveTheFrontier {
    late: Marks,
}

#[async_trait]
impl Defect for OnlyFirstAttemptsMoveTheFrontier {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        if lease.attempt > 1 {
            mark(&self.late, lease);
        }
        Ok(())
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for progress in &mut lag.partitions {
            if let Some(late) = mark_of(&self.late, stream, group, progress.partition) {
                progress.frontier = progress.frontier.min(late.previous());
            }
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct ProgressIsOfTheStream;

#[async_trait]
impl Defect for ProgressIsOfTheStream {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for other in real
            .backend
            .list_groups(stream, &ListOptions::new())
            .await?
        {
            let other = real.backend.lag(stream, &other).await?;
            for (progress, other) in lag.partitions.iter_mut().zip(other.partitions) {
                progress.frontier = progress.frontier.max(other.frontier);
            }
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct TheFrontierBeginsAtZero {
    acked: Marks,
}

#[async_trait]
impl Defect for TheFrontierBeginsAtZero {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        mark(&self.acked, lease);
        Ok(())
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for progress in &mut lag.partitions {
            if mark_of(&self.acked, stream, group, progress.partition).is_none() {
                progress.frontier = Sequence::ZERO;
            }
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct WhatIsBelowTheStartIsAHole {
    starts: Marks,
}

#[async_trait]
impl Defect for WhatIsBelowTheStartIsAHole {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        for progress in real.backend.lag(stream, group).await?.partitions {
            let key = (stream.clone(), group.clone(), progress.partition);
            held(&self.starts).insert(key, progress.frontier);
        }
        Ok(())
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for progress in &mut lag.partitions {
            let start = mark_of(&self.starts, stream, group, progress.partition);
            if let Some(start) = start.filter(|start| *start > Sequence::ZERO) {
                progress.frontier = progress.frontier.min(start);
            }
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct LaterAttemptsPutTheFrontierBack {
    book: Book,
}

#[async_trait]
impl Defect for LaterAttemptsPutTheFrontierBack {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let current = self.book.current(real, stream, group).await;
        let mut lag = real.backend.lag(stream, group).await?;
        for lease in current.iter().filter(|lease| lease.attempt > 1) {
            lag.partitions[lease.event.partition.number() as usize].frontier = Sequence::ZERO;
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct TheHighWatermarkIsCached {
    first: Marks,
}

#[async_trait]
impl Defect for TheHighWatermarkIsCached {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for progress in &mut lag.partitions {
            let key = (stream.clone(), group.clone(), progress.partition);
            let mut first = held(&self.first);
            progress.high_watermark = *first.entry(key).or_insert(progress.high_watermark);
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct ClaimsAreProgress {
    claimed: Marks,
}

#[async_trait]
impl Defect for ClaimsAreProgress {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        leases.iter().for_each(|lease| mark(&self.claimed, lease));
        Ok(leases)
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for progress in &mut lag.partitions {
            let claimed = mark_of(&self.claimed, stream, group, progress.partition);
            progress.frontier = claimed.unwrap_or_default().max(progress.frontier);
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct LagSweeps {
    book: Book,
}

#[async_trait]
impl Defect for LagSweeps {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        for lease in self.book.current(real, stream, group).await {
            if lease.expires_at <= real.now() {
                real.backend.retry(&lease, &RetryOptions::new()).await?;
            }
        }
        real.backend.lag(stream, group).await
    }
}

#[derive(Default)]
struct WhatIsMissingHasNoLag;

#[async_trait]
impl Defect for WhatIsMissingHasNoLag {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        match real.backend.lag(stream, group).await {
            Err(Error::GroupNotFound { .. } | Error::StreamNotFound { .. }) => Ok(Lag::default()),
            result => result,
        }
    }
}

/// A sequence for each partition of a group.
type Marks = Mutex<HashMap<(StreamName, GroupName, Partition), Sequence>>;

fn mark_of(
    marks: &Marks,
    stream: &StreamName,
    group: &GroupName,
    partition: Partition,
) -> Option<Sequence> {
    held(marks)
        .get(&(stream.clone(), group.clone(), partition))
        .copied()
}

/// Raises the mark of the lease's partition to its sequence.
fn mark(marks: &Marks, lease: &Lease) {
    let event = &lease.event;
    let key = (event.stream.clone(), lease.group.clone(), event.partition);
    let mut marks = held(marks);
    let mark = marks.entry(key).or_default();
    *mark = event.sequence.max(*mark);
}

#[derive(Default)]
struct HolesBeyond1000AreForgotten;

#[async_trait]
impl Defect for HolesBeyond1000AreForgotten {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for progress in &mut lag.partitions {
            if progress.frontier.get() > 1_000 {
                progress.frontier = progress.high_watermark;
            }
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct LagIsOfTenPartitions;

#[async_trait]
impl Defect for LagIsOfTenPartitions {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        lag.partitions.truncate(10);
        Ok(lag)
    }
}
