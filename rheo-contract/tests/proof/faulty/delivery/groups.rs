//! Groups that are not independent of each other.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use rheo_core::{GroupName, GroupOptions, Lease, StreamName, Timestamp};

use super::{Spot, spot};
use crate::faulty::Faulty;
use crate::tweak::{Step, Tweak, lock};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        OneGroupTakesFromTheOthers: "what one group was given no other gets",
        says: "3 leases, since that many events are claimable",
        kills: [
            "delivery::DLV-1::each_group_gets_every_event",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "dead_letters::DLQ-4::one_event_can_be_dead_in_two_groups",
            "dead_letters::DLQ-4::reject_is_for_that_group_alone",
            "delivery::DLV-1::groups_are_ready_at_different_times",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "delivery::DLV-2::a_group_can_start_on_an_empty_stream",
            "delivery::DLV-2::a_group_starts_at_the_beginning_by_default",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "delivery::DLV-2::a_start_after_a_sequence_is_exclusive",
            "delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence",
            "delivery::DLV-2::a_start_at_a_time_is_before_the_first_event_of_that_time",
            "delivery::DLV-5::every_selected_partition_is_served",
            "durability::DUR-1::starts_survive",
            "input::ERR-6::a_missing_group_is_named",
            "inspect::OPS-1::a_stream_is_listed_once_whatever_is_in_it",
            "inspect::OPS-3::group_info_counts_nothing_of_other_groups",
            "leases::LSE-1::every_claim_has_a_lease_id_of_its_own",
            "leases::LSE-2::a_lease_is_of_its_group_alone",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
            "streams::STR-2::group_names_never_collide",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
            "wakeup::OPS-4::chosen_events_are_told",
        ],
    },
    faulty! {
        AckIsForAllGroups: "an acked event is done for every group",
        says: "the claimable sequences to be [1, 2, 3, 4, 5]",
        kills: [
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "delivery::DLV-1::groups_are_ready_at_different_times",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "streams::STR-2::group_names_never_collide",
            "wakeup::OPS-4::chosen_events_are_told",
        ],
    },
    faulty! {
        DoneEventsAreGone: "a later group does not get what all earlier ones have done",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: [
            "delivery::DLV-1::groups_are_ready_at_different_times",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "wakeup::OPS-4::chosen_events_are_told",
        ],
    },
];

#[derive(Default)]
struct OneGroupTakesFromTheOthers(Mutex<HashMap<Spot, GroupName>>);

impl Tweak for OneGroupTakesFromTheOthers {
    fn keeps(&self, lease: &Lease) -> bool {
        let mut taken = lock(&self.0);
        let by = taken
            .entry(spot(&lease.event))
            .or_insert(lease.group.clone());
        *by == lease.group
    }
}

#[derive(Default)]
struct AckIsForAllGroups(Mutex<HashMap<Spot, GroupName>>);

impl Tweak for AckIsForAllGroups {
    fn keeps(&self, lease: &Lease) -> bool {
        let acked = lock(&self.0);
        acked
            .get(&spot(&lease.event))
            .is_none_or(|group| *group == lease.group)
    }
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Ack {
            lock(&self.0).insert(spot(&lease.event), lease.group.clone());
        }
    }
}

/// What was acked before each group was made.
#[derive(Default)]
struct DoneEventsAreGone {
    acked: Mutex<HashSet<Spot>>,
    gone: Mutex<HashMap<(StreamName, GroupName), HashSet<Spot>>>,
}

impl Tweak for DoneEventsAreGone {
    fn creating(&self, stream: &StreamName, group: &GroupName, _: &mut GroupOptions) {
        let group = (stream.clone(), group.clone());
        lock(&self.gone)
            .entry(group)
            .or_insert_with(|| lock(&self.acked).clone());
    }
    fn keeps(&self, lease: &Lease) -> bool {
        let group = (lease.event.stream.clone(), lease.group.clone());
        let gone = lock(&self.gone);
        gone.get(&group)
            .is_none_or(|gone| !gone.contains(&spot(&lease.event)))
    }
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Ack {
            lock(&self.acked).insert(spot(&lease.event));
        }
    }
}
