//! Rejects that reach further.

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{Lease, Partition, Sequence, StreamName, Timestamp};

use crate::faulty::Faulty;
use crate::tweak::{Step, Tweak, lock, place_of};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[faulty! {
    RejectReachesAllGroups: "a rejected event is dead for every group",
    says: "the claimable sequences to be [1, 2]",
    kills: [
        "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
        "dead_letters::DLQ-4::one_event_can_be_dead_in_two_groups",
        "dead_letters::DLQ-4::reject_is_for_that_group_alone",
        "delivery::DLV-1::what_one_group_does_concerns_no_other",
        "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
        "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
        "replay::RPL-1::attempts_begin_again_after_a_replay",
        "replay::RPL-1::replay_reopens_what_was_acked_and_what_is_dead",
        "replay::RPL-2::replays_at_random_follow_the_rules",
        "replay::RPL-4::chosen_events_are_reopened_in_every_state",
        "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
        "replay::RPL-6::replay_leaves_other_groups_alone",
        "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
        "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
        "replay::RPL-6::replay_touches_no_state_of_other_groups",
        "reset::RPL-5::reset_drops_any_number_of_deliveries",
        "reset::RPL-5::reset_starts_again_from_the_beginning",
        "reset::RPL-5::reset_to_no_sequences_starts_at_the_beginning",
        "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        "reset::RPL-6::reset_touches_no_state_of_other_groups",
    ],
}];

#[derive(Default)]
struct RejectReachesAllGroups(Mutex<HashSet<(StreamName, Partition, Sequence)>>);

impl Tweak for RejectReachesAllGroups {
    fn keeps(&self, lease: &Lease) -> bool {
        let (stream, _, partition, sequence) = place_of(lease);
        lease.attempt > 1 || !lock(&self.0).contains(&(stream, partition, sequence))
    }
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Reject {
            let (stream, _, partition, sequence) = place_of(lease);
            lock(&self.0).insert((stream, partition, sequence));
        }
    }
}
