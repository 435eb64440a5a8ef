//! Defects in how much there may be: leases in hand, leases in a batch, attempts.

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, EventId, FetchOptions, GroupName, GroupOptions, Lease,
    LeaseDuration, MaxAttempts, Reason, Result, RetryOptions, RetryOutcome, StreamName, Timestamp,
    async_trait,
};

use super::Faulty;
use crate::book::all_dead;
use crate::defect::{Defect, Real};
use crate::tweak::{Tweak, lock};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        AtMost256LeasesAreOpen: "a group has at most 256 leases in hand",
        says: "the number of open leases to be 10000",
        kills: [
            "delivery::DLV-3::ten_thousand_events_may_be_open",
            "batches::LSE-8::hundreds_of_leases_are_over_after_one_batch",
            "batches::LSE-8::hundreds_of_leases_are_renewed_in_one_batch",
            "batches::LSE-8::hundreds_of_leases_are_retried_in_one_batch",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
            "inspect::OPS-3::group_info_counts_any_number_of_leases_and_dead_letters",
            "progress::FRN-1::a_hole_below_a_thousand_acks_holds_the_frontier",
            "progress::FRN-1::holes_hold_the_frontier_however_far_up",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
        ],
    },
    faulty! {
        AtMost1000LeasesAreOpen: "a group has at most 1,000 leases in hand",
        says: "the number of open leases to be 10000",
        kills: [
            "delivery::DLV-3::ten_thousand_events_may_be_open",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
            "inspect::OPS-3::group_info_counts_any_number_of_leases_and_dead_letters",
            "progress::FRN-1::a_hole_below_a_thousand_acks_holds_the_frontier",
            "progress::FRN-1::holes_hold_the_frontier_however_far_up",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
        ],
    },
    faulty! {
        BatchOfRenewalsIsCutAt100: "of a batch of renewals 100 are stored, and all answered",
        says: "no claimable event",
        kills: [
            "batches::LSE-8::hundreds_of_leases_are_renewed_in_one_batch",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
        ],
    },
    faulty! {
        BatchOfRetriesIsCutAt100: "of a batch of retries 100 are stored, and all answered",
        says: "300 leases",
        kills: [
            "batches::LSE-8::hundreds_of_leases_are_retried_in_one_batch",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
        ],
    },
    faulty! {
        BatchOfRejectsIsCutAt100: "of a batch of rejects 100 are stored, and all answered",
        says: "Err(StaleLease)",
        kills: [
            "batches::LSE-8::hundreds_of_leases_are_over_after_one_batch",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
            "inspect::OPS-3::group_info_counts_any_number_of_leases_and_dead_letters",
        ],
    },
    faulty! {
        BatchOfRejectsForgetsTheRest: "what is beyond 100 in a batch of rejects is stale",
        says: "the results of Reject",
        kills: [
            "batches::LSE-8::hundreds_of_leases_are_over_after_one_batch",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
            "inspect::OPS-3::group_info_counts_any_number_of_leases_and_dead_letters",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
        ],
    },
    faulty! {
        AttemptsAreAByte: "attempts are shown modulo 256",
        says: "the attempt to be 256",
        kills: [
            "settling::DLQ-2::hundreds_of_attempts_are_counted",
        ],
    },
    faulty! {
        AttemptsStopAt255: "after 255 attempts every retry gives up",
        says: "the attempt",
        kills: [
            "settling::DLQ-2::hundreds_of_attempts_are_counted",
        ],
    },
    faulty! {
        MaxAttemptsIsAByte: "of max_attempts the lowest eight bits are kept",
        says: "the outcome of a retry with 256 attempts",
        kills: [
            "settling::DLQ-2::no_number_of_attempts_is_too_large",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
            "settling::DLQ-2::hundreds_of_attempts_are_counted",
        ],
    },
    faulty! {
        MaxAttemptsIs16Bits: "of max_attempts the lowest sixteen bits are kept",
        says: "the outcome of a retry with 65536 attempts",
        kills: [
            "settling::DLQ-2::no_number_of_attempts_is_too_large",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
        ],
    },
    faulty! {
        MaxAttemptsIsSigned16Bits: "a max_attempts above 32,767 is negative",
        says: "the outcome of a retry with 32768 attempts",
        kills: [
            "settling::DLQ-2::no_number_of_attempts_is_too_large",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
            "settling::DLQ-2::very_many_attempts_are_allowed",
        ],
    },
    faulty! {
        UsedUpEventsBeyondTheLimitAreGiven: "a fetch takes out as many used-up events as its limit says, and hands the next one out",
        says: "the sequences that were handed out",
        kills: [
            "settling::DLQ-3::used_up_events_are_never_handed_out_whatever_the_limit",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "settling::DLQ-3::used_up_events_do_not_fill_a_fetch",
        ],
    },
    faulty! {
        UsedUpEventsBeyondTheLimitAreDropped: "a fetch writes as many dead letters as its limit says, and drops the others",
        says: "sequence and attempt of the dead letters",
        kills: [
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
        ],
    },
];

/// Hands out no more than so many leases that are not settled.
#[derive(Default)]
struct AtMost<const OPEN: u32>(Mutex<HashMap<(StreamName, GroupName), u32>>);

type AtMost256LeasesAreOpen = AtMost<256>;
type AtMost1000LeasesAreOpen = AtMost<1_000>;

impl<const OPEN: u32> AtMost<OPEN> {
    fn settled(&self, lease: &Lease) {
        let key = (lease.event.stream.clone(), lease.group.clone());
        let mut open = lock(&self.0);
        let count = open.entry(key).or_default();
        *count = count.saturating_sub(1);
    }
}

#[async_trait]
impl<const OPEN: u32> Defect for AtMost<OPEN> {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let key = (stream.clone(), group.clone());
        let open = lock(&self.0).get(&key).copied().unwrap_or_default();
        let mut options = options.clone();
        options.limit = options.limit.min(OPEN.saturating_sub(open));
        let leases = real.backend.fetch(stream, group, &options).await?;
        // What comes again was counted before.
        let new = leases.iter().filter(|lease| lease.attempt == 1).count();
        *lock(&self.0).entry(key).or_default() += u32::try_from(new).unwrap_or(u32::MAX);
        Ok(leases)
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let acked = real.backend.ack(lease).await;
        if acked.is_ok() {
            self.settled(lease);
        }
        acked
    }
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        let rejected = real.backend.reject(lease, reason).await;
        if rejected.is_ok() {
            self.settled(lease);
        }
        rejected
    }
}

/// The first hundred, and the others.
fn cut(leases: &[Lease]) -> (&[Lease], &[Lease]) {
    leases.split_at(leases.len().min(100))
}

#[derive(Default)]
struct BatchOfRenewalsIsCutAt100;

#[async_trait]
impl Defect for BatchOfRenewalsIsCutAt100 {
    async fn renew_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        duration: LeaseDuration,
    ) -> Vec<Result<Lease>> {
        let (stored, rest) = cut(leases);
        let mut results = real.backend.renew_batch(stored, duration).await;
        results.extend(rest.iter().cloned().map(Ok));
        results
    }
}

#[derive(Default)]
struct BatchOfRetriesIsCutAt100;

#[async_trait]
impl Defect for BatchOfRetriesIsCutAt100 {
    async fn retry_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        let (stored, rest) = cut(leases);
        let mut results = real.backend.retry_batch(stored, options).await;
        results.extend(rest.iter().map(|_| Ok(RetryOutcome::Retrying)));
        results
    }
}

#[derive(Default)]
struct BatchOfRejectsIsCutAt100;

#[async_trait]
impl Defect for BatchOfRejectsIsCutAt100 {
    async fn reject_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        reason: &Reason,
    ) -> Vec<Result<()>> {
        let (stored, rest) = cut(leases);
        let mut results = real.backend.reject_batch(stored, reason).await;
        results.extend(rest.iter().map(|_| Ok(())));
        results
    }
}

#[derive(Default)]
struct BatchOfRejectsForgetsTheRest;

#[async_trait]
impl Defect for BatchOfRejectsForgetsTheRest {
    async fn reject_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        reason: &Reason,
    ) -> Vec<Result<()>> {
        let (stored, rest) = cut(leases);
        let mut results = real.backend.reject_batch(stored, reason).await;
        results.extend(rest.iter().map(|_| Err(Error::StaleLease)));
        results
    }
}

#[derive(Default)]
struct AttemptsAreAByte;

impl Tweak for AttemptsAreAByte {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        lease.attempt %= 256;
    }
}

#[derive(Default)]
struct AttemptsStopAt255;

#[async_trait]
impl Defect for AttemptsStopAt255 {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        if lease.attempt < 255 {
            return real.backend.retry(lease, options).await;
        }
        let reason = options.reason.clone().unwrap_or_else(Reason::max_attempts);
        real.backend.reject(lease, &reason).await?;
        Ok(RetryOutcome::DeadLettered)
    }
}

/// Another number of attempts, at least one.
fn attempts(options: &mut GroupOptions, change: impl FnOnce(u32) -> u32) {
    let changed = MaxAttempts::new(change(options.max_attempts.get()).max(1));
    options.max_attempts = changed.unwrap_or(options.max_attempts);
}

#[derive(Default)]
struct MaxAttemptsIsAByte;

impl Tweak for MaxAttemptsIsAByte {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        attempts(options, |attempts| attempts & 0xff);
    }
}

#[derive(Default)]
struct MaxAttemptsIs16Bits;

impl Tweak for MaxAttemptsIs16Bits {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        attempts(options, |attempts| attempts & 0xffff);
    }
}

#[derive(Default)]
struct MaxAttemptsIsSigned16Bits;

impl Tweak for MaxAttemptsIsSigned16Bits {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        attempts(
            options,
            |attempts| if attempts > 32_767 { 0 } else { attempts },
        );
    }
}

/// Fetches, and gives what died of it beyond the limit of the fetch.
async fn fetch_and_bury(
    real: &Real,
    (stream, group): (&StreamName, &GroupName),
    options: &FetchOptions,
) -> Result<(Vec<Lease>, Vec<DeadLetter>)> {
    let before: Vec<EventId> = match all_dead(real, stream, group).await {
        Ok(dead) => dead.iter().map(|dead| dead.event.id).collect(),
        Err(_) => Vec::new(),
    };
    let leases = real.backend.fetch(stream, group, options).await?;
    let mut dead = all_dead(real, stream, group).await?;
    dead.retain(|dead| !before.contains(&dead.event.id));
    let beyond = dead.split_off(dead.len().min(options.limit as usize));
    Ok((leases, beyond))
}

#[derive(Default)]
struct UsedUpEventsBeyondTheLimitAreGiven;

#[async_trait]
impl Defect for UsedUpEventsBeyondTheLimitAreGiven {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let (mut leases, beyond) = fetch_and_bury(real, (stream, group), options).await?;
        if let Some(last) = leases.last_mut()
            && let Some(given) = beyond.into_iter().next()
        {
            last.attempt = given.attempt + 1;
            last.event = given.event;
        }
        Ok(leases)
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        match real.backend.ack(lease).await {
            Err(Error::StaleLease) if lease.attempt == 3 => Ok(()),
            acked => acked,
        }
    }
}

#[derive(Default)]
struct UsedUpEventsBeyondTheLimitAreDropped(Mutex<Vec<DeadLetter>>);

#[async_trait]
impl Defect for UsedUpEventsBeyondTheLimitAreDropped {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let (leases, beyond) = fetch_and_bury(real, (stream, group), options).await?;
        lock(&self.0).extend(beyond);
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
        let dropped = lock(&self.0);
        dead.retain(|dead| !dropped.contains(dead));
        Ok(dead)
    }
}
