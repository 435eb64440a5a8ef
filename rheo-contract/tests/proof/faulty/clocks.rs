//! Defects that show when the clock goes back.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use rheo_core::{
    DeadLetter, DeadLetterOptions, Event, EventId, FetchOptions, GroupName, Lease, LeaseDuration,
    LeaseId, NewEvent, Replay, Result, RetryDelay, RetryOptions, RetryOutcome, StreamName,
    Timestamp, async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real};
use crate::tweak::{Claims, Step, Tweak, lock};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        FoundExpiredStaysExpired: "what a fetch found expired can be reclaimed from then on",
        says: "no claimable event",
        kills: [
            "leases::LSE-4::what_was_found_expired_is_leased_when_the_clock_goes_back",
            "settling::DLQ-3::a_clock_that_goes_back_keeps_the_last_lease",
        ],
    },
    faulty! {
        FoundDueStaysDue: "what a fetch found due can be claimed from then on",
        says: "no claimable event",
        kills: ["settling::DLQ-1::what_was_found_due_waits_when_the_clock_goes_back"],
    },
    faulty! {
        RenewalCountsFromTheLatestTime: "a renewal counts from the latest time that the handle saw",
        says: "expires_at",
        kills: [
            "leases::LSE-6::a_renewal_counts_from_a_clock_that_went_back",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
        ],
    },
    faulty! {
        DelayCountsFromTheLatestTime: "a delay counts from the latest time that the handle saw",
        says: "the attempts that are claimable at",
        kills: [
            "settling::DLQ-1::a_delay_counts_from_a_clock_that_went_back",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
        ],
    },
    faulty! {
        ClaimCountsFromTheLatestTime: "a claim has the latest time that the handle saw",
        says: "leased_at",
        kills: ["delivery::DLV-8::a_claim_follows_the_clock_back"],
    },
    faulty! {
        NothingDiesBeforeItsClaim: "a dead letter is never from before its last claim",
        says: "dead_at",
        kills: ["dead_letters::DLQ-5::a_death_follows_the_clock_back"],
    },
    faulty! {
        AppendTellsTheLatestTime: "an append answers with the latest time that the handle saw",
        says: "the timestamp",
        kills: [
            "fidelity::LOG-5::a_timestamp_follows_the_clock_back",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-2::timestamps_that_go_back_are_ordered_too",
            "queries::QRY-3::timestamps_that_go_back_disturb_no_page",
        ],
    },
    faulty! {
        LaterRetryWritesTheTime: "a retry at once after the first attempt writes the time of the retry",
        says: "one lease, since an event is claimable",
        kills: [
            "settling::DLQ-1::no_retry_at_once_needs_a_clock",
            "batches::LSE-8::a_batch_of_retries_at_once_needs_no_clock",
        ],
    },
    faulty! {
        BatchOfRetriesWritesTheTime: "a batch of retries at once writes the time of the retry",
        says: "the claimable sequences",
        kills: ["batches::LSE-8::a_batch_of_retries_at_once_needs_no_clock"],
    },
    faulty! {
        BatchCountsFromTheLatestTime: "a batch of renewals counts from the latest time that the handle saw",
        says: "expires_at",
        kills: ["batches::LSE-8::a_batch_counts_from_a_clock_that_went_back"],
    },
];

/// The latest time that was seen.
#[derive(Default)]
struct Latest(Mutex<Option<Timestamp>>);

impl Latest {
    fn see(&self, now: Timestamp) -> Timestamp {
        let mut latest = lock(&self.0);
        let later = latest.map_or(now, |before| before.max(now));
        *latest.insert(later)
    }
    /// How far the clock is behind it.
    fn ahead_of(&self, now: Timestamp) -> Duration {
        self.see(now).saturating_since(now)
    }
}

#[derive(Default)]
struct FoundExpiredStaysExpired(Claims, Mutex<HashSet<LeaseId>>);

#[async_trait]
impl Tweak for FoundExpiredStaysExpired {
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
        let is_found = |claim: &Lease| lock(&self.1).contains(&claim.lease_id);
        let found: Vec<Lease> = self.0.all().into_iter().filter(is_found).collect();
        for claim in found {
            if claim.expires_at > real.now() {
                let _ = real.backend.retry(&claim, &RetryOptions::new()).await;
            }
        }
        let mut expired = self.0.expired(stream, group, real.now());
        expired.retain(|claim| options.partitions.contains(claim.event.partition));
        if options.limit > 0 {
            lock(&self.1).extend(expired.into_iter().map(|claim| claim.lease_id));
        }
    }
    fn done(&self, _: Timestamp, _: Step, lease: &Lease) {
        lock(&self.1).remove(&lease.lease_id);
    }
}

/// A delay, and whether a fetch found that it has ended.
struct Wait {
    due: Timestamp,
    is_found: bool,
}

#[derive(Default)]
struct FoundDueStaysDue(Mutex<HashMap<EventId, Wait>>);

#[async_trait]
impl Tweak for FoundDueStaysDue {
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        let mut ids = Vec::new();
        for (id, wait) in lock(&self.0).iter_mut() {
            if wait.is_found && wait.due > real.now() {
                ids.push(*id);
            }
            wait.is_found |= wait.due <= real.now() && options.limit > 0;
        }
        let again = Replay::Events(ids);
        let _ = real.backend.replay(stream, group, &again).await;
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        lock(&self.0).remove(&lease.event.id);
    }
    fn retrying(&self, now: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        if options.delay != RetryDelay::NONE {
            let due = now.saturating_add(options.delay.as_duration());
            let is_found = false;
            lock(&self.0).insert(lease.event.id, Wait { due, is_found });
        }
    }
}

#[derive(Default)]
struct RenewalCountsFromTheLatestTime(Latest);

impl Tweak for RenewalCountsFromTheLatestTime {
    fn asked(&self, now: Timestamp, _: &mut FetchOptions) {
        self.0.see(now);
    }
    fn renewing(&self, now: Timestamp, _: &Lease, duration: &mut Duration) {
        *duration += self.0.ahead_of(now);
    }
}

#[derive(Default)]
struct DelayCountsFromTheLatestTime(Latest);

impl Tweak for DelayCountsFromTheLatestTime {
    fn asked(&self, now: Timestamp, _: &mut FetchOptions) {
        self.0.see(now);
    }
    fn retrying(&self, now: Timestamp, _: &Lease, options: &mut RetryOptions) {
        if options.delay != RetryDelay::NONE {
            let longer = options.delay.as_duration() + self.0.ahead_of(now);
            options.delay = RetryDelay::new(longer).unwrap_or(options.delay);
        }
    }
}

#[derive(Default)]
struct ClaimCountsFromTheLatestTime(Latest);

impl Tweak for ClaimCountsFromTheLatestTime {
    fn claimed(&self, now: Timestamp, lease: &mut Lease) {
        let ahead = self.0.ahead_of(now);
        lease.leased_at = lease.leased_at.saturating_add(ahead);
        lease.expires_at = lease.expires_at.saturating_add(ahead);
    }
}

#[derive(Default)]
struct NothingDiesBeforeItsClaim(Claims);

#[async_trait]
impl Defect for NothingDiesBeforeItsClaim {
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
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        let claims = self.0.all();
        for letter in &mut dead {
            let is_its =
                |claim: &&Lease| claim.event.id == letter.event.id && claim.group == letter.group;
            if let Some(claim) = claims.iter().rfind(is_its) {
                letter.dead_at = letter.dead_at.max(claim.leased_at);
            }
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct AppendTellsTheLatestTime(Latest);

#[async_trait]
impl Defect for AppendTellsTheLatestTime {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.append_batch(stream, events).await?;
        for event in &mut events {
            event.timestamp = self.0.see(event.timestamp);
        }
        Ok(events)
    }
}

/// The latest time at which something was given back.
#[derive(Default)]
struct Written(Mutex<Option<Timestamp>>);

impl Written {
    fn hold(&self, real: &Real, options: &mut FetchOptions) {
        if lock(&self.0).is_some_and(|written| written > real.now()) {
            options.limit = 0;
        }
    }
}

#[derive(Default)]
struct LaterRetryWritesTheTime(Written);

#[async_trait]
impl Tweak for LaterRetryWritesTheTime {
    async fn before_fetch(
        &self,
        real: &Real,
        _: &StreamName,
        _: &GroupName,
        options: &mut FetchOptions,
    ) {
        self.0.hold(real, options);
    }
    fn done(&self, now: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Retry && lease.attempt > 1 {
            *lock(&self.0.0) = Some(now);
        }
    }
}

#[derive(Default)]
struct BatchOfRetriesWritesTheTime(Written);

#[async_trait]
impl Defect for BatchOfRetriesWritesTheTime {
    async fn retry_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        *lock(&self.0.0) = Some(real.now());
        real.backend.retry_batch(leases, options).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut options = options.clone();
        self.0.hold(real, &mut options);
        real.backend.fetch(stream, group, &options).await
    }
}

#[derive(Default)]
struct BatchCountsFromTheLatestTime(Latest);

#[async_trait]
impl Defect for BatchCountsFromTheLatestTime {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.0.see(real.now());
        real.backend.fetch(stream, group, options).await
    }
    async fn renew_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        duration: LeaseDuration,
    ) -> Vec<Result<Lease>> {
        let longer = duration.as_duration() + self.0.ahead_of(real.now());
        let longer = LeaseDuration::new(longer).unwrap_or(duration);
        real.backend.renew_batch(leases, longer).await
    }
}
