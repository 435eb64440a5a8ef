//! Claims that are counted otherwise.

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{GroupName, Lease, StreamName, Timestamp};

use crate::faulty::Faulty;
use crate::tweak::{Aliases, Claims, Step, Tweak, lock};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        ReclaimKeepsTheLeaseId: "a reclaimed event keeps its lease id",
        says: "a new lease id",
        kills: [
            "leases::LSE-5::reclaiming_gives_a_new_lease_and_the_next_attempt",
            "delivery::DLV-3::ten_thousand_events_may_be_open",
            "durability::DUR-1::a_stale_lease_stays_stale",
            "leases::LSE-2::a_replaced_lease_moves_no_expiry",
            "leases::LSE-2::a_replaced_lease_settles_nothing",
            "leases::LSE-4::an_expired_lease_holds_until_it_is_reclaimed_itself",
            "leases::LSE-5::the_same_consumer_reclaims_like_any_other",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
        ],
    },
    faulty! {
        ReclaimIsNoAttempt: "a reclaim does not raise the attempt",
        says: "the attempt to be 2",
        kills: [
            "leases::LSE-5::reclaiming_gives_a_new_lease_and_the_next_attempt",
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
            "batches::LSE-8::renewals_in_a_batch_end_exactly_then_however_long",
            "delivery::DLV-3::ten_thousand_events_may_be_open",
            "delivery::DLV-6::a_lease_that_nobody_heard_of_comes_again",
            "delivery::DLV-8::a_claim_follows_the_clock_back",
            "leases::LSE-2::a_replaced_lease_moves_no_expiry",
            "leases::LSE-4::a_clock_that_goes_back_ends_no_lease",
            "leases::LSE-4::a_lease_ends_exactly_then_however_long_it_lasts",
            "leases::LSE-4::an_expired_lease_still_settles",
            "leases::LSE-4::at_the_highest_timestamp_every_lease_has_ended",
            "leases::LSE-4::what_was_found_expired_is_leased_when_the_clock_goes_back",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "leases::LSE-5::every_claim_counts_as_an_attempt",
            "leases::LSE-5::the_same_consumer_reclaims_like_any_other",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "leases::LSE-6::a_renewed_lease_ends_exactly_then_however_long_it_lasts",
            "leases::LSE-6::a_renewed_lease_holds_until_its_new_expiry",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
            "settling::DLQ-1::a_delay_outlasts_the_lease",
            "settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay",
            "settling::DLQ-1::no_delay_goes_beyond_the_highest_timestamp",
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
            "wakeup::OPS-4::an_expired_lease_is_told",
            "wakeup::OPS-4::work_at_any_attempt_is_told",
        ],
    },
    faulty! {
        ConsumerGetsItsLeaseBack: "a consumer that reclaims its own event has the old lease id",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-5::the_same_consumer_reclaims_like_any_other",
            "delivery::DLV-3::ten_thousand_events_may_be_open",
        ],
    },
    faulty! {
        RetryIsNoAttempt: "only expired leases raise the attempt",
        says: "the attempts to be [1, 2, 3, 4, 5]",
        kills: [
            "leases::LSE-5::every_claim_counts_as_an_attempt",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "batches::LSE-8::a_batch_of_retries_at_once_needs_no_clock",
            "batches::LSE-8::a_batch_of_retries_moves_the_frontier_where_it_gives_up",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::renewals_in_a_batch_end_exactly_then_however_long",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "delivery::DLV-3::ten_thousand_events_may_be_open",
            "distribution::DST-1::a_retry_elsewhere_counts_as_an_attempt",
            "inspect::OPS-3::group_info_counts_a_lease_at_any_attempt",
            "leases::LSE-2::a_lease_whose_event_waits_is_stale",
            "leases::LSE-2::a_retried_lease_is_stale",
            "leases::LSE-2::the_attempt_of_a_lease_decides_nothing",
            "leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored",
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "leases::LSE-6::a_renewal_counts_from_a_clock_that_went_back",
            "leases::LSE-6::a_renewal_is_no_attempt",
            "leases::LSE-6::a_renewal_may_shorten",
            "leases::LSE-6::a_renewed_lease_ends_exactly_then_however_long_it_lasts",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "replay::RPL-1::leases_from_before_a_replay_hold_up_nothing",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "settling::DLQ-1::a_clock_that_goes_back_ends_no_delay",
            "settling::DLQ-1::a_delay_counts_from_a_clock_that_went_back",
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
            "settling::DLQ-1::a_retry_at_once_needs_no_clock",
            "settling::DLQ-1::no_retry_at_once_needs_a_clock",
            "settling::DLQ-1::the_attempt_goes_up_at_the_next_claim",
            "settling::DLQ-1::the_delay_of_the_last_retry_counts",
            "settling::DLQ-1::what_was_found_due_waits_when_the_clock_goes_back",
            "settling::DLQ-2::five_attempts_are_the_default",
            "settling::DLQ-2::hundreds_of_attempts_are_counted",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "settling::DLQ-2::very_many_attempts_are_allowed",
            "wakeup::OPS-4::an_ended_delay_is_told",
            "wakeup::OPS-4::work_at_any_attempt_is_told",
        ],
    },
    faulty! {
        AttemptsAreOfTheGroup: "one counter of attempts serves the whole group",
        says: "the attempts to be [4, 1]",
        kills: [
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "batches::LSE-8::a_batch_of_retries_at_once_needs_no_clock",
            "delivery::DLV-6::a_lease_that_nobody_heard_of_comes_again",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "reset::RPL-5::attempts_begin_again_after_a_reset",
        ],
    },
    faulty! {
        AttemptsAreOfTheEvent: "attempts are counted with the event, for all groups",
        says: "the other group's attempts",
        kills: [
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "delivery::DLV-3::ten_thousand_events_may_be_open",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "streams::STR-2::group_names_never_collide",
        ],
    },
];

#[derive(Default)]
struct ReclaimKeepsTheLeaseId(Claims, Aliases);

impl Tweak for ReclaimKeepsTheLeaseId {
    fn claimed(&self, now: Timestamp, lease: &mut Lease) {
        if let Some(former) = self
            .0
            .last_of(lease)
            .filter(|former| former.expires_at <= now)
        {
            self.1.rename(lease, former.lease_id);
        }
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.1.restore(lease);
    }
}

#[derive(Default)]
struct ReclaimIsNoAttempt(Claims);

impl Tweak for ReclaimIsNoAttempt {
    fn claimed(&self, now: Timestamp, lease: &mut Lease) {
        if let Some(former) = self
            .0
            .last_of(lease)
            .filter(|former| former.expires_at <= now)
        {
            lease.attempt = former.attempt;
        }
        self.0.note(lease);
    }
}

#[derive(Default)]
struct ConsumerGetsItsLeaseBack(Claims, Aliases);

impl Tweak for ConsumerGetsItsLeaseBack {
    fn claimed(&self, now: Timestamp, lease: &mut Lease) {
        let is_back =
            |former: &Lease| former.expires_at <= now && former.consumer == lease.consumer;
        if let Some(former) = self.0.last_of(lease).filter(is_back) {
            self.1.rename(lease, former.lease_id);
        }
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.1.restore(lease);
    }
}

#[derive(Default)]
struct RetryIsNoAttempt(Claims);

impl Tweak for RetryIsNoAttempt {
    fn claimed(&self, now: Timestamp, lease: &mut Lease) {
        if let Some(former) = self.0.last_of(lease).filter(|_| lease.attempt > 1) {
            let is_lost = former.expires_at <= now;
            lease.attempt = former.attempt + u32::from(is_lost);
        }
        self.0.note(lease);
    }
}

#[derive(Default)]
struct AttemptsAreOfTheGroup(Mutex<HashMap<(StreamName, GroupName), u32>>);

impl Tweak for AttemptsAreOfTheGroup {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        let group = (lease.event.stream.clone(), lease.group.clone());
        let mut highest = lock(&self.0);
        let highest = highest.entry(group).or_default();
        *highest = lease.attempt.max(*highest);
        lease.attempt = *highest;
    }
}

#[derive(Default)]
struct AttemptsAreOfTheEvent(Claims);

impl Tweak for AttemptsAreOfTheEvent {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
        let mut claims = self.0.all();
        claims.retain(|claim| claim.event == lease.event && claim.group != lease.group);
        lease.attempt += u32::try_from(claims.len()).unwrap_or_default();
    }
}
