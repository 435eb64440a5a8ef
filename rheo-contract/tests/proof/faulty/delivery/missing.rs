//! Events that are missed.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use rheo_core::{
    FetchOptions, GroupName, Lease, Partition, Result, RetryDelay, RetryOptions, Sequence,
    StreamName, Timestamp, async_trait,
};

use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Back, Claims, Place, Step, Tweak, lock, place_of};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        CaughtUpGroupSkipsOne: "after an empty fetch the next new event is missed",
        says: "the claimable sequences to be [3]",
        kills: [
            "delivery::DLV-6::events_that_come_while_others_are_leased_are_delivered",
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
            "batches::LSE-8::renewals_in_a_batch_end_exactly_then_however_long",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-7::an_acked_event_never_comes_again",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "distribution::DST-1::a_reset_elsewhere_is_seen",
            "distribution::DST-1::an_append_elsewhere_is_fetched",
            "leases::LSE-4::a_lease_ends_exactly_then_however_long_it_lasts",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "leases::LSE-6::a_renewed_lease_ends_exactly_then_however_long_it_lasts",
            "log::LOG-2::a_group_passes_no_event",
            "partitions::DLV-2::the_end_is_each_partitions_own",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::the_frontier_follows_random_work",
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-5::reset_to_a_time_goes_by_the_lowest_sequence",
            "reset::RPL-5::reset_to_a_time_is_found_per_partition",
            "reset::RPL-5::reset_to_a_time_starts_with_the_first_event_at_or_after_it",
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
            "settling::DLQ-1::a_delay_holds_back_nothing_else",
        ],
    },
    faulty! {
        AckSettlesAllBelow: "an ack settles all lower events of its partition",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: [
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::events_that_come_while_others_are_leased_are_delivered",
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-1::each_delay_is_its_own",
        ],
    },
    faulty! {
        FetchAcksTheLast: "a fetch acks what its consumer fetched before and let expire",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: [
            "delivery::DLV-6::a_lease_that_nobody_heard_of_comes_again",
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "leases::LSE-5::the_same_consumer_reclaims_like_any_other",
            "settling::DLQ-2::lost_leases_count_towards_the_last_attempt",
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
        ],
    },
    faulty! {
        DelayedEventsGetLost: "a delayed event that is due is not found again after another fetch",
        says: "no event missed",
        kills: [
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
        ],
    },
    faulty! {
        PositionIsOverAllPartitions: "an acked event of one partition passes older ones of the others by",
        says: "the claimable events",
        kills: [
            "delivery::DLV-6::events_of_a_lower_partition_are_not_passed_over",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "partitions::DLV-1::a_group_gets_the_events_of_all_partitions",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "replay::RPL-1::each_partition_is_replayed_after_its_own_sequence",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "replay::RPL-4::chosen_events_are_reopened_in_their_own_partitions",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
            "reset::RPL-5::a_start_beyond_one_partition_drops_nothing_in_any",
            "reset::RPL-5::each_partition_is_reset_after_its_own_sequence",
            "reset::RPL-5::max_attempts_stay_where_one_partition_was_reset",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-5::reset_to_the_end_is_each_partitions_own",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "wakeup::OPS-4::work_in_any_partition_is_told",
        ],
    },
    faulty! {
        PositionIsATime: "events with an earlier timestamp than an acked one are passed by",
        says: "the claimable sequences to be [3, 4]",
        kills: [
            "delivery::DLV-6::events_with_earlier_times_are_not_passed_over",
            "reset::RPL-5::reset_to_a_time_starts_with_the_first_event_at_or_after_it",
        ],
    },
];

#[derive(Default)]
struct CaughtUpGroupSkipsOne(Mutex<HashSet<(StreamName, GroupName)>>);

#[async_trait]
impl Defect for CaughtUpGroupSkipsOne {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let key = (stream.clone(), group.clone());
        let mut leases = real.backend.fetch(stream, group, options).await?;
        if leases.is_empty() && options.limit > 0 {
            lock(&self.0).insert(key);
        } else if leases
            .first()
            .is_some_and(|lease| lease.attempt == 1 && lease.event.sequence > Sequence::ZERO.next())
            && lock(&self.0).remove(&key)
        {
            real.backend.ack(&leases.remove(0)).await?;
        }
        Ok(leases)
    }
}

#[derive(Default)]
struct AckSettlesAllBelow(Mutex<HashMap<(StreamName, GroupName, Partition), Sequence>>);

impl Tweak for AckSettlesAllBelow {
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Ack {
            let (stream, group, partition, sequence) = place_of(lease);
            let mut positions = lock(&self.0);
            let position = positions.entry((stream, group, partition)).or_default();
            *position = sequence.max(*position);
        }
    }
    fn keeps(&self, lease: &Lease) -> bool {
        let (stream, group, partition, sequence) = place_of(lease);
        let positions = lock(&self.0);
        let position = positions.get(&(stream, group, partition)).copied();
        position.is_none_or(|position| sequence > position)
    }
    fn went_back(&self, _: Back<'_>) {
        lock(&self.0).clear();
    }
}

#[derive(Default)]
struct FetchAcksTheLast(Claims);

#[async_trait]
impl Tweak for FetchAcksTheLast {
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        for claim in self.0.expired(stream, group, real.now()) {
            let is_its_own = claim.consumer == options.consumer && claim.attempt == 1;
            if is_its_own && self.0.by_id(&claim.lease_id).as_ref() == Some(&claim) {
                let _ = real.backend.ack(&claim).await;
            }
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
}

/// Of the delayed events that are due only the first three come again.
#[derive(Default)]
struct DelayedEventsGetLost(Mutex<HashMap<Place, usize>>);

impl Tweak for DelayedEventsGetLost {
    fn retrying(&self, _: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        let mut delayed = lock(&self.0);
        if options.delay != RetryDelay::NONE {
            let count = delayed.len();
            delayed.entry(place_of(lease)).or_insert(count);
        }
    }
    fn keeps(&self, lease: &Lease) -> bool {
        let delayed = lock(&self.0);
        delayed.get(&place_of(lease)).is_none_or(|turn| *turn < 3)
    }
}

/// The highest partition of which a group has acked something.
#[derive(Default)]
struct PositionIsOverAllPartitions(Mutex<HashMap<(StreamName, GroupName), Partition>>);

#[async_trait]
impl Defect for PositionIsOverAllPartitions {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        let group = (lease.event.stream.clone(), lease.group.clone());
        let mut acked = lock(&self.0);
        let highest = acked.entry(group).or_default();
        *highest = lease.event.partition.max(*highest);
        Ok(())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut kept = Vec::new();
        let position = lock(&self.0).get(&(stream.clone(), group.clone())).copied();
        for lease in real.backend.fetch(stream, group, options).await? {
            let is_new = lease.attempt == 1;
            if is_new && position.is_some_and(|position| lease.event.partition < position) {
                real.backend.ack(&lease).await?;
            } else {
                kept.push(lease);
            }
        }
        Ok(kept)
    }
}

#[derive(Default)]
struct PositionIsATime(Mutex<HashMap<(StreamName, GroupName), Timestamp>>);

impl Tweak for PositionIsATime {
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Ack {
            let group = (lease.event.stream.clone(), lease.group.clone());
            let mut acked = lock(&self.0);
            let latest = acked.entry(group).or_insert(Timestamp::MIN);
            *latest = lease.event.timestamp.max(*latest);
        }
    }
    fn keeps(&self, lease: &Lease) -> bool {
        let group = (lease.event.stream.clone(), lease.group.clone());
        let latest = lock(&self.0).get(&group).copied();
        latest.is_none_or(|latest| lease.event.timestamp >= latest)
    }
}
