//! Attempts that are counted otherwise, and reasons that are lost.

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{
    Cause, Error, GroupName, GroupOptions, Lag, Lease, MaxAttempts, Reason, Replay, Result,
    RetryDelay, RetryOptions, RetryOutcome, StreamName, Timestamp, async_trait,
};

use super::{Maxima, attempts, hold_frontiers};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Place, Step, Tweak, lock, place_of};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        OneAttemptTooMany: "attempts are compared with > where it has to be >=",
        says: "the outcomes",
        kills: [
            "settling::DLQ-2::at_the_last_attempt_a_retry_gives_up",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_retries_gives_up_on_the_used_up_ones_alone",
            "batches::LSE-8::a_batch_of_retries_moves_the_frontier_where_it_gives_up",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "distribution::DST-1::max_attempts_hold_on_every_handle",
            "durability::DUR-1::max_attempts_survives",
            "inspect::OPS-3::group_info_counts_a_lease_at_any_attempt",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_gives_max_attempts_after_going_back",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
            "leases::LSE-2::the_attempt_of_a_lease_decides_nothing",
            "leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored",
            "log::LOG-4::a_dead_letter_stays_in_the_log",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "reset::RPL-5::max_attempts_stay_after_a_reset",
            "reset::RPL-5::max_attempts_stay_where_one_partition_was_reset",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
            "settling::DLQ-2::a_given_up_event_is_settled",
            "settling::DLQ-2::a_given_up_event_lets_the_frontier_pass",
            "settling::DLQ-2::a_last_retry_without_a_reason_says_so_itself",
            "settling::DLQ-2::at_the_last_attempt_a_delayed_retry_gives_up_too",
            "settling::DLQ-2::five_attempts_are_the_default",
            "settling::DLQ-2::hundreds_of_attempts_are_counted",
            "settling::DLQ-2::lost_leases_count_towards_the_last_attempt",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "settling::DLQ-2::one_attempt_means_no_second_chance",
            "settling::DLQ-2::the_reason_of_the_last_retry_is_kept",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
            "settling::DLQ-3::used_up_events_are_never_handed_out_whatever_the_limit",
            "settling::DLQ-3::used_up_events_do_not_fill_a_fetch",
        ],
    },
    faulty! {
        DelayedRetryNeverGivesUp: "a retry with a delay does not look at the attempts",
        says: "the outcome to be DeadLettered",
        kills: [
            "settling::DLQ-2::at_the_last_attempt_a_delayed_retry_gives_up_too",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "inspect::OPS-3::group_info_counts_dead_letters",
        ],
    },
    faulty! {
        TenAttemptsAreTheDefault: "five attempts count as nothing said, and become ten",
        says: "the outcome to be DeadLettered",
        kills: [
            "settling::DLQ-2::five_attempts_are_the_default",
            "inspect::OPS-3::group_info_counts_a_lease_at_any_attempt",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
        ],
    },
    faulty! {
        OneAttemptBecomesTwo: "an event is always tried twice",
        says: "the outcome to be DeadLettered",
        kills: [
            "settling::DLQ-2::one_attempt_means_no_second_chance",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-3::a_partition_without_work_holds_no_other",
            "distribution::DST-1::max_attempts_hold_on_every_handle",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
            "log::LOG-4::a_dead_letter_stays_in_the_log",
            "reset::RPL-5::max_attempts_stay_after_a_reset",
            "reset::RPL-5::max_attempts_stay_where_one_partition_was_reset",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
            "settling::DLQ-2::a_given_up_event_is_settled",
            "settling::DLQ-2::a_given_up_event_lets_the_frontier_pass",
            "settling::DLQ-2::at_the_last_attempt_a_delayed_retry_gives_up_too",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
            "settling::DLQ-3::used_up_events_do_not_fill_a_fetch",
        ],
    },
    faulty! {
        AttemptsAreAtMostTen: "max_attempts is cut to ten",
        says: "the outcome to be Retrying",
        kills: [
            "settling::DLQ-2::very_many_attempts_are_allowed",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
            "settling::DLQ-2::hundreds_of_attempts_are_counted",
        ],
    },
    faulty! {
        LostLeasesDoNotCount: "only retries count towards the last attempt",
        says: "the outcome to be DeadLettered",
        kills: [
            "settling::DLQ-2::lost_leases_count_towards_the_last_attempt",
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
            "leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "reset::RPL-5::attempts_begin_again_after_a_reset",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "settling::DLQ-3::used_up_events_are_never_handed_out_whatever_the_limit",
            "settling::DLQ-3::used_up_events_do_not_fill_a_fetch",
        ],
    },
    faulty! {
        MaxAttemptsIsOfTheStream: "the first group of a stream decides on max_attempts for all",
        says: "the patient group's outcome",
        kills: [
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
        ],
    },
    faulty! {
        GivenUpLeaseStillAcks: "the lease of an event that a retry gave up on can be acked",
        says: "Err(StaleLease)",
        kills: ["settling::DLQ-2::a_given_up_event_is_settled"],
    },
    faulty! {
        FirstReasonIsKept: "the reason of the first retry is kept",
        says: "attempts and reasons",
        kills: ["settling::DLQ-2::the_reason_of_the_last_retry_is_kept"],
    },
    faulty! {
        EarlierReasonStandsIn: "where the last retry has no reason, an earlier one is taken",
        says: "the reasons",
        kills: ["settling::DLQ-2::a_last_retry_without_a_reason_says_so_itself"],
    },
    faulty! {
        LongReasonFails: "a reason of more than 255 characters does not fit its column",
        says: "the last operation to succeed",
        kills: [
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
        ],
    },
    faulty! {
        OnlyAcksMoveTheFrontier: "the frontier stops at dead letters",
        says: "the frontier to be 2",
        kills: [
            "settling::DLQ-2::a_given_up_event_lets_the_frontier_pass",
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "batches::LSE-8::a_batch_of_retries_moves_the_frontier_where_it_gives_up",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::a_late_settle_fills_its_hole",
            "progress::FRN-1::the_frontier_follows_random_work",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
        ],
    },
];

#[derive(Default)]
struct OneAttemptTooMany;

impl Tweak for OneAttemptTooMany {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        attempts(options, |attempts| attempts + 1);
    }
}

#[derive(Default)]
struct DelayedRetryNeverGivesUp;

#[async_trait]
impl Defect for DelayedRetryNeverGivesUp {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let outcome = real.backend.retry(lease, options).await?;
        if options.delay != RetryDelay::NONE && outcome == RetryOutcome::DeadLettered {
            let again = Replay::Events(vec![lease.event.id]);
            let (stream, group) = (&lease.event.stream, &lease.group);
            real.backend.replay(stream, group, &again).await?;
            return Ok(RetryOutcome::Retrying);
        }
        Ok(outcome)
    }
}

#[derive(Default)]
struct TenAttemptsAreTheDefault;

impl Tweak for TenAttemptsAreTheDefault {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        attempts(
            options,
            |attempts| if attempts == 5 { 10 } else { attempts },
        );
    }
}

#[derive(Default)]
struct OneAttemptBecomesTwo;

impl Tweak for OneAttemptBecomesTwo {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        attempts(options, |attempts| attempts.max(2));
    }
}

#[derive(Default)]
struct AttemptsAreAtMostTen;

impl Tweak for AttemptsAreAtMostTen {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        attempts(options, |attempts| attempts.min(10));
    }
}

#[derive(Default)]
struct LostLeasesDoNotCount {
    maxima: Maxima,
    retries: Mutex<HashMap<Place, u32>>,
}

#[async_trait]
impl Defect for LostLeasesDoNotCount {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.maxima.note(stream, group, options);
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
        let retries = lock(&self.retries).get(&place_of(lease)).copied();
        let retried = Lease {
            attempt: retries.unwrap_or_default() + 1,
            ..lease.clone()
        };
        if self.maxima.is_used_up(&retried) {
            let reason = options.reason.clone().unwrap_or_else(Reason::max_attempts);
            real.backend.reject(lease, &reason).await?;
            return Ok(RetryOutcome::DeadLettered);
        }
        let outcome = real.backend.retry(lease, options).await?;
        lock(&self.retries).insert(place_of(lease), retried.attempt);
        Ok(outcome)
    }
}

#[derive(Default)]
struct MaxAttemptsIsOfTheStream(Mutex<HashMap<StreamName, MaxAttempts>>);

impl Tweak for MaxAttemptsIsOfTheStream {
    fn creating(&self, stream: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        let first = options.max_attempts;
        options.max_attempts = *lock(&self.0).entry(stream.clone()).or_insert(first);
    }
}

#[derive(Default)]
struct GivenUpLeaseStillAcks(Mutex<Vec<Lease>>, Maxima);

impl Tweak for GivenUpLeaseStillAcks {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        self.1.note(stream, group, options);
    }
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Retry && self.1.is_used_up(lease) {
            lock(&self.0).push(lease.clone());
        }
    }
    fn forgives(&self, _: Timestamp, step: Step, lease: &Lease) -> bool {
        let is_it = |given_up: &Lease| given_up.lease_id == lease.lease_id;
        step == Step::Ack && lock(&self.0).iter().any(is_it)
    }
}

#[derive(Default)]
struct FirstReasonIsKept(Mutex<HashMap<Place, Reason>>);

impl Tweak for FirstReasonIsKept {
    fn retrying(&self, _: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        if let Some(reason) = options.reason.take() {
            let mut reasons = lock(&self.0);
            let first = reasons.entry(place_of(lease)).or_insert(reason);
            options.reason = Some(first.clone());
        }
    }
}

#[derive(Default)]
struct EarlierReasonStandsIn(Mutex<HashMap<Place, Reason>>);

impl Tweak for EarlierReasonStandsIn {
    fn retrying(&self, _: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        let place = place_of(lease);
        match options.reason.clone() {
            Some(reason) => drop(lock(&self.0).insert(place, reason)),
            None => options.reason = lock(&self.0).get(&place).cloned(),
        }
    }
}

#[derive(Default)]
struct LongReasonFails;

#[async_trait]
impl Defect for LongReasonFails {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let length = |reason: &Reason| reason.as_str().chars().count();
        if options.reason.as_ref().map_or(0, length) > 255 {
            return Err(Error::Failed(Cause::new(
                "value too long for type varchar(255)",
            )));
        }
        real.backend.retry(lease, options).await
    }
}

#[derive(Default)]
struct OnlyAcksMoveTheFrontier;

#[async_trait]
impl Defect for OnlyAcksMoveTheFrontier {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        hold_frontiers(real, stream, group, |_| true).await
    }
}
