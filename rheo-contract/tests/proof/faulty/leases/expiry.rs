//! Leases that end at another time or in another way.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use rheo_core::{
    FetchOptions, GroupName, Lease, LeaseDuration, LeaseId, Partitions, Result, RetryOptions,
    StreamName, Timestamp, async_trait,
};

use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Claims, Place, Step, Tweak, lock, place_of, void};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        LeaseEndsAMicrosecondEarly: "a lease can be reclaimed a microsecond before its expiry",
        says: "no claimable event",
        kills: [
            "leases::LSE-4::a_lease_is_not_reclaimable_before_its_expiry",
            "delivery::DLV-8::a_claim_follows_the_clock_back",
            "leases::LSE-4::a_lease_ends_exactly_then_however_long_it_lasts",
            "leases::LSE-4::leases_of_one_fetch_end_each_on_its_own",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
        ],
    },
    faulty! {
        ExpiryIsKeptInMilliseconds: "the expiry loses its microseconds",
        says: "no claimable event",
        kills: [
            "leases::LSE-4::a_lease_is_not_reclaimable_before_its_expiry",
            "delivery::DLV-8::a_claim_follows_the_clock_back",
            "leases::LSE-4::a_lease_ends_exactly_then_however_long_it_lasts",
            "leases::LSE-4::leases_of_one_fetch_end_each_on_its_own",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
        ],
    },
    faulty! {
        LeaseEndsAMicrosecondLate: "a lease cannot be reclaimed at its expiry, but after it",
        says: "one lease, since an event is claimable",
        kills: [
            "leases::LSE-4::a_lease_is_reclaimable_at_its_expiry",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::a_lease_that_nobody_heard_of_comes_again",
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "delivery::DLV-8::a_claim_follows_the_clock_back",
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
            "delivery::DLV-8::no_lease_outlasts_the_highest_timestamp",
            "distribution::DST-1::a_lease_replaced_elsewhere_is_stale",
            "durability::DUR-1::a_stale_lease_stays_stale",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_counts_expired_leases_that_nobody_reclaimed",
            "leases::LSE-2::a_replaced_lease_moves_no_expiry",
            "leases::LSE-2::a_replaced_lease_settles_nothing",
            "leases::LSE-4::a_clock_that_goes_back_ends_no_lease",
            "leases::LSE-4::a_lease_ends_exactly_then_however_long_it_lasts",
            "leases::LSE-4::an_expired_lease_holds_until_it_is_reclaimed_itself",
            "leases::LSE-4::leases_of_one_fetch_end_each_on_its_own",
            "leases::LSE-4::what_was_found_expired_is_leased_when_the_clock_goes_back",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "leases::LSE-5::every_claim_counts_as_an_attempt",
            "leases::LSE-5::reclaiming_gives_a_new_lease_and_the_next_attempt",
            "leases::LSE-5::the_same_consumer_reclaims_like_any_other",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "log::LOG-4::an_expired_lease_changes_no_event",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
            "settling::DLQ-2::lost_leases_count_towards_the_last_attempt",
            "settling::DLQ-3::a_clock_that_goes_back_keeps_the_last_lease",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "settling::DLQ-3::used_up_events_are_never_handed_out_whatever_the_limit",
            "wakeup::OPS-4::a_wait_of_no_time_tells_what_is_there",
            "wakeup::OPS-4::an_expired_lease_is_told",
            "wakeup::OPS-4::what_a_fetch_left_is_told",
            "wakeup::OPS-4::work_at_any_attempt_is_told",
            "wakeup::OPS-4::work_in_any_partition_is_told",
        ],
    },
    faulty! {
        ExpiredLeaseIsVoid: "an expired lease settles nothing",
        says: "StaleLease",
        kills: [
            "leases::LSE-4::an_expired_lease_still_settles",
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "distribution::DST-1::a_lease_renewed_elsewhere_is_not_reclaimed",
            "leases::LSE-4::a_fetch_from_elsewhere_takes_no_lease_away",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
            "leases::LSE-4::an_expired_lease_holds_until_it_is_reclaimed_itself",
            "leases::LSE-4::at_the_highest_timestamp_every_lease_has_ended",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "progress::FRN-1::a_late_settle_fills_its_hole",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "settling::DLQ-1::an_expired_lease_may_be_retried_with_a_delay",
            "settling::DLQ-1::no_delay_goes_beyond_the_highest_timestamp",
            "settling::DLQ-1::no_retry_at_once_needs_a_clock",
            "settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing",
            "settling::DLQ-3::a_last_lease_that_was_acked_late_is_no_dead_letter",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
            "wakeup::OPS-4::waiting_leaves_leases_alone",
        ],
    },
    faulty! {
        ExpiredLeaseCannotBeRenewed: "an expired lease cannot be renewed",
        says: "StaleLease",
        kills: [
            "leases::LSE-4::an_expired_lease_can_be_renewed",
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "inspect::OPS-3::group_info_changes_nothing",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "progress::FRN-4::lag_changes_nothing",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
        ],
    },
    faulty! {
        LateRenewalIsNotKept: "a renewal after the expiry is answered and not stored",
        says: "no claimable event",
        kills: [
            "leases::LSE-4::an_expired_lease_can_be_renewed",
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "inspect::OPS-3::group_info_changes_nothing",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "progress::FRN-4::lag_changes_nothing",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
        ],
    },
    faulty! {
        FetchTakesBackAllThatExpired: "a fetch ends all expired leases of the group",
        says: "StaleLease",
        kills: [
            "leases::LSE-4::an_expired_lease_holds_until_it_is_reclaimed_itself",
            "batches::LSE-8::a_batch_of_renewals_gives_the_renewed_leases_in_order",
            "distribution::DST-1::a_lease_renewed_elsewhere_is_not_reclaimed",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
            "leases::LSE-4::an_expired_lease_can_be_renewed",
            "leases::LSE-4::leases_of_one_fetch_end_each_on_its_own",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-3::a_clock_that_goes_back_keeps_the_last_lease",
            "settling::DLQ-3::a_renewed_last_lease_is_not_given_up_on",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
        ],
    },
    faulty! {
        EmptyFetchTakesBack: "a fetch that may give nothing ends the expired leases first",
        says: "StaleLease",
        kills: [
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
        ],
    },
    faulty! {
        FetchTakesBackElsewhere: "a fetch from some partitions ends the expired leases of all",
        says: "StaleLease",
        kills: [
            "leases::LSE-4::a_fetch_from_elsewhere_takes_no_lease_away",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing",
        ],
    },
    faulty! {
        RenewalIsForTheWholeFetch: "a renewal is one of all leases that were claimed with it",
        says: "the claimable sequences to be [1, 4]",
        kills: [
            "leases::LSE-4::leases_of_one_fetch_end_each_on_its_own",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "wakeup::OPS-4::an_expired_renewal_is_told",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        LateSettleLeavesAGap: "what was found expired and then settled hides what comes again above it",
        says: "the claimable sequences",
        kills: ["leases::LSE-4::what_was_settled_late_holds_up_nothing"],
    },
    faulty! {
        LeaseFromTheFutureIsOver: "a lease that was claimed later than now counts as expired",
        says: "no claimable event",
        kills: [
            "leases::LSE-4::a_clock_that_goes_back_ends_no_lease",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
            "leases::LSE-4::what_was_found_expired_is_leased_when_the_clock_goes_back",
            "leases::LSE-6::a_renewal_counts_from_a_clock_that_went_back",
            "settling::DLQ-1::what_was_found_due_waits_when_the_clock_goes_back",
            "settling::DLQ-3::a_clock_that_goes_back_keeps_the_last_lease",
        ],
    },
];

/// Leases in the store last that much longer or shorter than what is said.
fn stretch(options: &mut FetchOptions, by: impl FnOnce(Duration) -> Duration) {
    let duration = by(options.lease_duration.as_duration());
    options.lease_duration = LeaseDuration::new(duration).unwrap_or(options.lease_duration);
}

const MICROSECOND: Duration = Duration::from_micros(1);

#[derive(Default)]
struct LeaseEndsAMicrosecondEarly;

impl Tweak for LeaseEndsAMicrosecondEarly {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        stretch(options, |duration| duration.saturating_sub(MICROSECOND));
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        if lease.expires_at.saturating_since(lease.leased_at) > MICROSECOND {
            lease.expires_at = lease.expires_at.saturating_add(MICROSECOND);
        }
    }
}

#[derive(Default)]
struct LeaseEndsAMicrosecondLate;

impl Tweak for LeaseEndsAMicrosecondLate {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        if options.lease_duration.as_duration() < Duration::from_secs(86_400) {
            stretch(options, |duration| duration + MICROSECOND);
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        if lease.expires_at.saturating_since(lease.leased_at) < Duration::from_secs(86_401) {
            lease.expires_at = lease.expires_at.saturating_sub(MICROSECOND);
        }
    }
}

/// How far a time is from the last whole millisecond.
fn beyond_the_millisecond(time: Timestamp) -> Duration {
    Duration::from_micros(time.as_micros().rem_euclid(1_000).unsigned_abs())
}

#[derive(Default)]
struct ExpiryIsKeptInMilliseconds(Mutex<Duration>);

impl Tweak for ExpiryIsKeptInMilliseconds {
    fn asked(&self, now: Timestamp, options: &mut FetchOptions) {
        let until = now.saturating_add(options.lease_duration.as_duration());
        let rest = beyond_the_millisecond(until);
        *lock(&self.0) = Duration::ZERO;
        if options.lease_duration.as_duration() > rest {
            stretch(options, |duration| duration - rest);
            *lock(&self.0) = rest;
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        lease.expires_at = lease.expires_at.saturating_add(*lock(&self.0));
    }
}

#[derive(Default)]
struct ExpiredLeaseIsVoid(Claims);

impl Tweak for ExpiredLeaseIsVoid {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, now: Timestamp, step: Step, lease: &mut Lease) {
        let claim = self.0.by_id(&lease.lease_id);
        if step != Step::Renew && claim.is_some_and(|claim| claim.expires_at <= now) {
            void(lease);
        }
    }
}

#[derive(Default)]
struct ExpiredLeaseCannotBeRenewed(Claims);

impl Tweak for ExpiredLeaseCannotBeRenewed {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, now: Timestamp, step: Step, lease: &mut Lease) {
        let claim = self.0.by_id(&lease.lease_id);
        if step == Step::Renew && claim.is_some_and(|claim| claim.expires_at <= now) {
            void(lease);
        }
    }
}

#[derive(Default)]
struct LateRenewalIsNotKept;

#[async_trait]
impl Defect for LateRenewalIsNotKept {
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        if lease.expires_at > real.now() {
            return real.backend.renew(lease, duration).await;
        }
        let back = LeaseDuration::new(MICROSECOND)?;
        let mut renewed = real.backend.renew(lease, back).await?;
        // There is no lease that ends at once, so the event is given back instead.
        let _ = real.backend.retry(lease, &RetryOptions::new()).await;
        renewed.expires_at = real.now().saturating_add(duration.as_duration());
        Ok(renewed)
    }
}

/// Leases that are void since a fetch.
#[derive(Default)]
struct TakenBack {
    claims: Claims,
    void: Mutex<HashSet<LeaseId>>,
}

impl TakenBack {
    fn take(&self, now: Timestamp) {
        let mut claims = self.claims.all();
        claims.retain(|claim| claim.expires_at <= now);
        lock(&self.void).extend(claims.into_iter().map(|claim| claim.lease_id));
    }
    fn spoil(&self, lease: &mut Lease) {
        if lock(&self.void).contains(&lease.lease_id) {
            void(lease);
        }
    }
}

#[derive(Default)]
struct FetchTakesBackAllThatExpired(TakenBack);

impl Tweak for FetchTakesBackAllThatExpired {
    fn asked(&self, now: Timestamp, options: &mut FetchOptions) {
        if options.limit > 0 && options.partitions == Partitions::All {
            self.0.take(now);
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.claims.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.0.spoil(lease);
    }
}

#[derive(Default)]
struct EmptyFetchTakesBack(TakenBack);

impl Tweak for EmptyFetchTakesBack {
    fn asked(&self, now: Timestamp, options: &mut FetchOptions) {
        if options.limit == 0 {
            self.0.take(now);
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.claims.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.0.spoil(lease);
    }
}

#[derive(Default)]
struct FetchTakesBackElsewhere(TakenBack);

impl Tweak for FetchTakesBackElsewhere {
    fn asked(&self, now: Timestamp, options: &mut FetchOptions) {
        if matches!(&options.partitions, Partitions::Only(some) if !some.is_empty()) {
            self.0.take(now);
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.claims.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.0.spoil(lease);
    }
}

#[derive(Default)]
struct LeaseFromTheFutureIsOver(Claims);

#[async_trait]
impl Tweak for LeaseFromTheFutureIsOver {
    async fn before_fetch(&self, real: &Real, _: &StreamName, _: &GroupName, _: &mut FetchOptions) {
        for claim in self.0.all() {
            if claim.leased_at > real.now() {
                let _ = real.backend.retry(&claim, &RetryOptions::new()).await;
            }
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
}

/// Claims that a fetch found expired, and what was settled of them afterwards.
#[derive(Default)]
struct LateSettleLeavesAGap {
    claims: Claims,
    found: Mutex<HashSet<LeaseId>>,
    gaps: Mutex<Vec<Place>>,
}

#[async_trait]
impl Tweak for LateSettleLeavesAGap {
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        let mut expired = self.claims.expired(stream, group, real.now());
        expired.retain(|claim| options.partitions.contains(claim.event.partition));
        if options.limit > 0 {
            lock(&self.found).extend(expired.into_iter().map(|claim| claim.lease_id));
        }
    }
    fn keeps(&self, lease: &Lease) -> bool {
        let (stream, group, partition, sequence) = place_of(lease);
        let is_below = |gap: &Place| {
            (&gap.0, &gap.1, gap.2) == (&stream, &group, partition) && gap.3 < sequence
        };
        lease.attempt == 1 || !lock(&self.gaps).iter().any(is_below)
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.claims.note(lease);
    }
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        let was_found = lock(&self.found).remove(&lease.lease_id);
        if was_found && matches!(step, Step::Ack | Step::Reject) {
            lock(&self.gaps).push(place_of(lease));
        }
    }
}

#[derive(Default)]
struct RenewalIsForTheWholeFetch(Claims);

#[async_trait]
impl Defect for RenewalIsForTheWholeFetch {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        leases.iter().for_each(|lease| self.0.note(lease));
        Ok(leases)
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = real.backend.renew(lease, duration).await?;
        for other in self.0.all() {
            if other.leased_at == lease.leased_at && other.consumer == lease.consumer {
                let _ = real.backend.renew(&other, duration).await;
            }
        }
        Ok(renewed)
    }
}
