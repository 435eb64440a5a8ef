//! Leases lost at the last attempt.

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{
    DeadLetter, DeadLetterOptions, FetchOptions, GroupName, GroupOptions, Lag, Lease, MaxAttempts,
    Partitions, Reason, Result, RetryOptions, RetryOutcome, StreamName, Timestamp, async_trait,
};

use super::{Maxima, attempts, hold_frontiers};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Claims, Place, Step, Tweak, lock, place_of, void};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        UsedUpEventsEndTheFetch: "a fetch that finds used-up events looks into no other partition",
        says: "what a single fetch gives beside partitions that are UsedUp",
        kills: [
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
        ],
    },
    faulty! {
        FoundUsedUpStaysUsedUp: "a last lease that a fetch found expired is given up on by the next one",
        says: "no dead letter",
        kills: ["settling::DLQ-3::a_clock_that_goes_back_keeps_the_last_lease"],
    },
    faulty! {
        FetchGivesUpInOnePartition: "an empty fetch gives up on the used-up events of one partition",
        says: "the number of dead letters to be 12",
        kills: ["settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition"],
    },
    faulty! {
        LostLeasesAreReclaimedForEver: "only a retry looks at the attempts",
        says: "no claimable event",
        kills: [
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "distribution::DST-1::max_attempts_hold_on_every_handle",
            "durability::DUR-1::max_attempts_survives",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_gives_max_attempts_after_going_back",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
            "leases::LSE-2::the_attempt_of_a_lease_decides_nothing",
            "leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "settling::DLQ-3::used_up_events_are_never_handed_out_whatever_the_limit",
            "settling::DLQ-3::used_up_events_do_not_fill_a_fetch",
        ],
    },
    faulty! {
        LostLastLeaseIsAcked: "an event that was lost at its last attempt counts as done",
        says: "the number of dead letters to be 1",
        kills: [
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "settling::DLQ-3::a_clock_that_goes_back_keeps_the_last_lease",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
        ],
    },
    faulty! {
        LostLastLeaseHasAnotherReason: "an event that was lost at its last attempt has the reason of a retry",
        says: "the reason",
        kills: [
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
        ],
    },
    faulty! {
        LastLeaseIsVoidOnceExpired: "the lease of the last attempt is void when it expires",
        says: "StaleLease",
        kills: [
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing",
            "settling::DLQ-3::a_last_lease_that_was_acked_late_is_no_dead_letter",
        ],
    },
    faulty! {
        ExpiredIsListedAsDead: "listing the dead letters gives up on what expired at its last attempt",
        says: "no dead letters",
        kills: ["settling::DLQ-3::a_last_lease_that_was_acked_late_is_no_dead_letter"],
    },
    faulty! {
        LastLeaseEndsAtItsFirstExpiry: "an event at its last attempt is given up on at the expiry of its claim, whatever the renewals",
        says: "StaleLease",
        kills: [
            "settling::DLQ-3::a_renewed_last_lease_is_not_given_up_on",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
        ],
    },
    faulty! {
        LostLastLeaseStillAcks: "the lease of an event that a fetch gave up on can be acked",
        says: "Err(StaleLease)",
        kills: [
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
        ],
    },
    faulty! {
        UsedUpEventsFillTheFetch: "a fetch gives up on as many events as its limit, and gives that many less",
        says: "the sequences of a single fetch to be [21]",
        kills: [
            "settling::DLQ-3::used_up_events_do_not_fill_a_fetch",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored",
            "settling::DLQ-3::a_clock_that_goes_back_keeps_the_last_lease",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
            "settling::DLQ-3::used_up_events_are_never_handed_out_whatever_the_limit",
        ],
    },
    faulty! {
        EmptyFetchGivesUpOnOne: "a fetch that finds nothing gives up on one used-up event alone",
        says: "the number of dead letters to be 20",
        kills: [
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
        ],
    },
    faulty! {
        FetchGivesUpEverywhere: "a fetch from some partitions gives up on used-up events of all",
        says: "StaleLease",
        kills: [
            "settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing",
            "leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored",
        ],
    },
    faulty! {
        LostLastLeaseHoldsTheFrontier: "the frontier stops at what was lost at its last attempt",
        says: "the frontier to be 2",
        kills: [
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
        ],
    },
];

#[derive(Default)]
struct LostLeasesAreReclaimedForEver(Maxima);

#[async_trait]
impl Defect for LostLeasesAreReclaimedForEver {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.0.note(stream, group, options);
        let mut options = options.clone();
        attempts(&mut options, |_| MaxAttempts::MAX);
        real.backend.create_group(stream, group, &options).await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        if self.0.is_used_up(lease) {
            let reason = options.reason.clone().unwrap_or_else(Reason::max_attempts);
            real.backend.reject(lease, &reason).await?;
            return Ok(RetryOutcome::DeadLettered);
        }
        real.backend.retry(lease, options).await
    }
}

/// What was claimed at its last attempt.
#[derive(Default)]
struct LastAttempts {
    maxima: Maxima,
    claims: Claims,
}

impl LastAttempts {
    fn note(&self, lease: &Lease) {
        if self.maxima.is_used_up(lease) {
            self.claims.note(lease);
        }
    }
    /// The leases of a group that have ended by now, as far as their claims said.
    fn expired(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Vec<Lease> {
        let mut expired = self.claims.expired(stream, group, real.now());
        // Of a lease that was renewed the last expiry counts.
        let is_last = |lease: &Lease| self.claims.by_id(&lease.lease_id).as_ref() == Some(lease);
        expired.retain(is_last);
        expired
    }
}

#[derive(Default)]
struct LostLastLeaseIsAcked(LastAttempts);

#[async_trait]
impl Tweak for LostLastLeaseIsAcked {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        for lease in self.0.expired(real, stream, group) {
            if options.partitions.contains(lease.event.partition) {
                let _ = real.backend.ack(&lease).await;
            }
        }
    }
}

#[derive(Default)]
struct LostLastLeaseHasAnotherReason;

#[async_trait]
impl Defect for LostLastLeaseHasAnotherReason {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        for letter in &mut dead {
            if letter.reason == Reason::lease_expired() {
                letter.reason = Reason::max_attempts();
            }
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct LastLeaseIsVoidOnceExpired(LastAttempts);

impl Tweak for LastLeaseIsVoidOnceExpired {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, now: Timestamp, _: Step, lease: &mut Lease) {
        let claim = self.0.claims.by_id(&lease.lease_id);
        if claim.is_some_and(|claim| claim.expires_at <= now) {
            void(lease);
        }
    }
}

#[derive(Default)]
struct ExpiredIsListedAsDead(LastAttempts);

#[async_trait]
impl Defect for ExpiredIsListedAsDead {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.0.maxima.note(stream, group, options);
        real.backend.create_group(stream, group, options).await
    }
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
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        for lease in self.0.expired(real, stream, group) {
            let _ = real.backend.reject(&lease, &Reason::lease_expired()).await;
        }
        real.backend.dead_letters(stream, group, options).await
    }
}

#[derive(Default)]
struct LastLeaseEndsAtItsFirstExpiry(LastAttempts);

#[async_trait]
impl Tweak for LastLeaseEndsAtItsFirstExpiry {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        for lease in self.0.expired(real, stream, group) {
            if options.partitions.contains(lease.event.partition) && options.limit > 0 {
                let _ = real.backend.reject(&lease, &Reason::lease_expired()).await;
            }
        }
    }
}

#[derive(Default)]
struct LostLastLeaseStillAcks(LastAttempts, Mutex<HashSet<Place>>);

impl Tweak for LostLastLeaseStillAcks {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step != Step::Renew {
            lock(&self.1).insert(place_of(lease));
        }
    }
    fn forgives(&self, now: Timestamp, step: Step, lease: &Lease) -> bool {
        let claim = self.0.claims.by_id(&lease.lease_id);
        let is_lost = claim.is_some_and(|claim| claim.expires_at <= now);
        step == Step::Ack && is_lost && !lock(&self.1).contains(&place_of(lease))
    }
}

#[derive(Default)]
struct UsedUpEventsFillTheFetch(LastAttempts);

#[async_trait]
impl Tweak for UsedUpEventsFillTheFetch {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        for lease in self.0.expired(real, stream, group) {
            if options.limit > 0 && options.partitions.contains(lease.event.partition) {
                let rejected = real.backend.reject(&lease, &Reason::lease_expired()).await;
                options.limit -= u32::from(rejected.is_ok());
            }
        }
    }
}

#[derive(Default)]
struct EmptyFetchGivesUpOnOne(LastAttempts);

#[async_trait]
impl Tweak for EmptyFetchGivesUpOnOne {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        let lost = self.0.expired(real, stream, group);
        let is_selected = |lease: &Lease| options.partitions.contains(lease.event.partition);
        if options.limit == 0 || lost.iter().filter(|lease| is_selected(lease)).count() < 2 {
            return;
        }
        for lease in &lost {
            if real
                .backend
                .reject(lease, &Reason::lease_expired())
                .await
                .is_ok()
            {
                // The others wait for the next fetch, as if they were leased a little longer.
                for other in &lost {
                    let _ = real.backend.renew(other, Default::default()).await;
                }
                return;
            }
        }
    }
}

#[derive(Default)]
struct FetchGivesUpEverywhere(LastAttempts);

#[async_trait]
impl Tweak for FetchGivesUpEverywhere {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        if options.limit > 0 && options.partitions != Partitions::only([]) {
            for lease in self.0.expired(real, stream, group) {
                let _ = real.backend.reject(&lease, &Reason::lease_expired()).await;
            }
        }
    }
}

#[derive(Default)]
struct LostLastLeaseHoldsTheFrontier;

#[async_trait]
impl Defect for LostLastLeaseHoldsTheFrontier {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let is_lost = |letter: &DeadLetter| letter.reason == Reason::lease_expired();
        hold_frontiers(real, stream, group, is_lost).await
    }
}

#[derive(Default)]
struct UsedUpEventsEndTheFetch(LastAttempts);

#[async_trait]
impl Tweak for UsedUpEventsEndTheFetch {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        for lease in self.0.expired(real, stream, group) {
            let partition = lease.event.partition;
            let is_selected = options.limit > 0 && options.partitions.contains(partition);
            let reason = Reason::lease_expired();
            if is_selected && real.backend.reject(&lease, &reason).await.is_ok() {
                options.partitions = partition.into();
            }
        }
    }
}

#[derive(Default)]
struct FetchGivesUpInOnePartition(LastAttempts);

#[async_trait]
impl Tweak for FetchGivesUpInOnePartition {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        let lost = self.0.expired(real, stream, group);
        let first = lost.first().map(|lease| lease.event.partition);
        for lease in lost
            .iter()
            .filter(|lease| Some(lease.event.partition) != first)
        {
            if options.limit > 0 {
                // They wait for the next fetch, as if they were leased a little longer.
                let _ = real.backend.renew(lease, Default::default()).await;
            }
        }
    }
}

#[derive(Default)]
struct FoundUsedUpStaysUsedUp(LastAttempts, Mutex<Vec<Lease>>);

#[async_trait]
impl Tweak for FoundUsedUpStaysUsedUp {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.0.maxima.note(stream, group, options);
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
        lock(&self.1).retain(|found| found.lease_id != lease.lease_id);
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        let found = std::mem::take(&mut *lock(&self.1));
        for lease in &found {
            let _ = real.backend.reject(lease, &Reason::lease_expired()).await;
        }
        if options.limit > 0 && options.partitions == Partitions::All {
            *lock(&self.1) = self.0.expired(real, stream, group);
        }
    }
}
