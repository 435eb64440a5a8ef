//! Renewals that do something else.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use rheo_core::{Lease, LeaseDuration, LeaseId, Result, Timestamp, async_trait};

use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Aliases, Claims, Step, Tweak, lock, void};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        ExpiryIsCompared: "a lease settles with the expiry alone that it has now",
        says: "StaleLease",
        kills: [
            "leases::LSE-6::a_copy_from_before_a_renewal_still_settles",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "leases::LSE-2::the_other_fields_of_a_lease_are_not_compared",
            "leases::LSE-4::an_expired_lease_can_be_renewed",
            "leases::LSE-4::leases_of_one_fetch_end_each_on_its_own",
            "leases::LSE-6::a_renewal_counts_from_now",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-1::no_retry_at_once_needs_a_clock",
            "settling::DLQ-3::a_renewed_last_lease_is_not_given_up_on",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
        ],
    },
    faulty! {
        RenewalAddsToTheExpiry: "a renewal counts from the old expiry",
        says: "expires_at less the duration",
        kills: [
            "leases::LSE-6::a_renewal_counts_from_now",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "batches::LSE-8::renewals_in_a_batch_end_exactly_then_however_long",
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "leases::LSE-6::a_renewal_counts_from_a_clock_that_went_back",
            "leases::LSE-6::a_renewal_may_shorten",
            "leases::LSE-6::a_renewed_lease_ends_exactly_then_however_long_it_lasts",
            "wakeup::OPS-4::an_expired_renewal_is_told",
        ],
    },
    faulty! {
        RenewalIsNotKept: "a renewal is answered and not stored",
        says: "no claimable event",
        kills: [
            "leases::LSE-6::a_renewed_lease_holds_until_its_new_expiry",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "batches::LSE-8::a_batch_of_renewals_gives_the_renewed_leases_in_order",
            "batches::LSE-8::hundreds_of_leases_are_renewed_in_one_batch",
            "batches::LSE-8::renewals_in_a_batch_end_exactly_then_however_long",
            "distribution::DST-1::a_lease_renewed_elsewhere_is_not_reclaimed",
            "fidelity::LOG-5::a_renewed_and_a_redelivered_lease_hold_the_same_event",
            "leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored",
            "leases::LSE-4::leases_of_one_fetch_end_each_on_its_own",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "leases::LSE-6::a_renewal_counts_from_a_clock_that_went_back",
            "leases::LSE-6::a_renewal_may_shorten",
            "leases::LSE-6::a_renewed_lease_ends_exactly_then_however_long_it_lasts",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "settling::DLQ-3::a_renewed_last_lease_is_not_given_up_on",
            "wakeup::OPS-4::an_expired_renewal_is_told",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        LaterAttemptsAreNotRenewed: "a renewal after the first attempt leaves the expiry as it is",
        says: "expires_at less the duration",
        kills: [
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
        ],
    },
    faulty! {
        RenewalNeverShortens: "a renewal keeps the later expiry",
        says: "expires_at less the duration",
        kills: [
            "leases::LSE-6::a_renewal_may_shorten",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "batches::LSE-8::renewals_in_a_batch_end_exactly_then_however_long",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "leases::LSE-6::a_renewal_counts_from_a_clock_that_went_back",
            "leases::LSE-6::a_renewed_lease_ends_exactly_then_however_long_it_lasts",
            "wakeup::OPS-4::an_expired_renewal_is_told",
        ],
    },
    faulty! {
        RenewalGivesANewLeaseId: "a renewal gives a new lease id, and the old one is void",
        says: "StaleLease",
        kills: [
            "leases::LSE-6::a_copy_from_before_a_renewal_still_settles",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "batches::LSE-8::a_batch_of_renewals_gives_the_renewed_leases_in_order",
            "batches::LSE-8::a_lease_may_be_renewed_twice_in_a_batch",
            "batches::LSE-8::hundreds_of_leases_settle_in_one_batch",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "delivery::DLV-8::no_lease_outlasts_the_highest_timestamp",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "durability::DUR-1::a_lease_survives",
            "inspect::OPS-3::group_info_counts_a_lease_at_any_attempt",
            "leases::LSE-4::an_expired_lease_can_be_renewed",
            "leases::LSE-4::leases_of_one_fetch_end_each_on_its_own",
            "leases::LSE-6::a_renewal_counts_from_now",
            "leases::LSE-6::a_renewal_is_no_attempt",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "partitions::LSE-2::one_sequence_in_two_partitions_is_two_deliveries",
            "progress::FRN-3::the_frontier_never_moves_back_by_itself",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-1::no_retry_at_once_needs_a_clock",
            "settling::DLQ-3::a_renewed_last_lease_is_not_given_up_on",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
        ],
    },
    faulty! {
        RenewalIsANewClaim: "a renewed lease says that it was claimed now",
        says: "the renewed lease to be equal",
        kills: [
            "leases::LSE-6::a_renewal_counts_from_now",
        ],
    },
    faulty! {
        RenewalIsAnAttempt: "a renewal raises the attempt",
        says: "the attempt to be 1",
        kills: [
            "leases::LSE-6::a_renewal_is_no_attempt",
            "batches::LSE-8::a_batch_of_renewals_gives_the_renewed_leases_in_order",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "leases::LSE-6::a_renewal_counts_from_now",
        ],
    },
];

#[derive(Default)]
struct ExpiryIsCompared(Claims);

impl Tweak for ExpiryIsCompared {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        let claim = self.0.by_id(&lease.lease_id);
        if claim.is_some_and(|claim| claim.expires_at != lease.expires_at) {
            void(lease);
        }
    }
}

#[derive(Default)]
struct RenewalAddsToTheExpiry;

impl Tweak for RenewalAddsToTheExpiry {
    fn renewing(&self, now: Timestamp, lease: &Lease, duration: &mut Duration) {
        let sum = *duration + lease.expires_at.saturating_since(now);
        *duration = sum.min(Duration::from_secs(365 * 24 * 60 * 60));
    }
}

#[derive(Default)]
struct RenewalIsNotKept;

#[async_trait]
impl Defect for RenewalIsNotKept {
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let left = lease.expires_at.saturating_since(real.now());
        let as_before = LeaseDuration::new(left).unwrap_or(duration);
        let mut renewed = real.backend.renew(lease, as_before).await?;
        renewed.expires_at = real.now().saturating_add(duration.as_duration());
        Ok(renewed)
    }
}

#[derive(Default)]
struct RenewalNeverShortens;

impl Tweak for RenewalNeverShortens {
    fn renewing(&self, now: Timestamp, lease: &Lease, duration: &mut Duration) {
        *duration = lease.expires_at.saturating_since(now).max(*duration);
    }
}

#[derive(Default)]
struct RenewalGivesANewLeaseId(Aliases, Mutex<HashSet<LeaseId>>);

impl Tweak for RenewalGivesANewLeaseId {
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        lock(&self.1).insert(lease.lease_id.clone());
        self.0.restore(lease);
        self.0.rename(lease, LeaseId::generate());
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        if lock(&self.1).contains(&lease.lease_id) {
            void(lease);
        }
        self.0.restore(lease);
    }
}

#[derive(Default)]
struct RenewalIsANewClaim;

impl Tweak for RenewalIsANewClaim {
    fn renewed(&self, now: Timestamp, lease: &mut Lease) {
        lease.leased_at = now;
    }
}

#[derive(Default)]
struct RenewalIsAnAttempt;

impl Tweak for RenewalIsAnAttempt {
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        lease.attempt += 1;
    }
}

#[derive(Default)]
struct LaterAttemptsAreNotRenewed;

impl Tweak for LaterAttemptsAreNotRenewed {
    fn renewing(&self, now: Timestamp, lease: &Lease, duration: &mut Duration) {
        if lease.attempt > 1 {
            *duration = lease.expires_at.saturating_since(now);
        }
    }
}
