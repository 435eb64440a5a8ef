//! Defects that the cases of `wakeup` are there for.

pub(super) mod told;

use std::time::Duration;

use rheo_core::{
    Cause, ConsumerId, Error, FetchOptions, GroupName, ReadOptions, ResetOptions, Result,
    RetryDelay, RetryOptions, RetryOutcome, StreamName, Timestamp, Wakeup, async_trait,
};

use super::Faulty;
use crate::book::{Book, held};
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        WaitsOutItsTimeout: "waiting always takes the whole timeout and finds nothing",
        says: "the hint",
        kills: [
            "wakeup::OPS-4::work_that_is_there_is_told",
            "wakeup::OPS-4::a_replay_is_told",
            "wakeup::OPS-4::a_reset_is_told",
            "wakeup::OPS-4::a_wait_of_no_time_tells_what_is_there",
            "wakeup::OPS-4::an_ended_delay_is_told",
            "wakeup::OPS-4::an_expired_lease_is_told",
            "wakeup::OPS-4::an_expired_renewal_is_told",
            "wakeup::OPS-4::any_timeout_may_be_given",
            "wakeup::OPS-4::chosen_events_are_told",
            "wakeup::OPS-4::what_a_fetch_left_is_told",
            "wakeup::OPS-4::work_at_any_attempt_is_told",
            "wakeup::OPS-4::work_in_any_partition_is_told",
            "wakeup::OPS-4::work_that_was_given_back_is_told",
        ],
    },
    faulty! {
        WaitSeesNewEventsOnly: "waiting compares the last sequence that it saw with the log's",
        says: "the hint",
        kills: [
            "wakeup::OPS-4::work_that_was_given_back_is_told",
            "wakeup::OPS-4::a_replay_is_told",
            "wakeup::OPS-4::a_reset_is_told",
            "wakeup::OPS-4::a_wait_of_no_time_tells_what_is_there",
            "wakeup::OPS-4::an_ended_delay_is_told",
            "wakeup::OPS-4::an_expired_lease_is_told",
            "wakeup::OPS-4::an_expired_renewal_is_told",
            "wakeup::OPS-4::chosen_events_are_told",
            "wakeup::OPS-4::what_a_fetch_left_is_told",
            "wakeup::OPS-4::work_at_any_attempt_is_told",
            "wakeup::OPS-4::work_in_any_partition_is_told",
        ],
    },
    faulty! {
        WaitLooksOnce: "waiting looks whether there is an event, and then sleeps",
        says: "the hint",
        kills: [
            "wakeup::OPS-4::an_append_ends_the_wait",
            "wakeup::OPS-4::an_append_by_another_handle_ends_the_wait",
            "wakeup::OPS-4::any_kind_of_append_ends_the_wait",
            "wakeup::OPS-4::any_timeout_may_be_given",
            "wakeup::OPS-4::every_append_ends_the_wait_that_follows_the_last",
        ],
    },
    faulty! {
        WaitClaims: "waiting fetches and drops the lease",
        says: "the claimable sequences",
        kills: [
            "wakeup::OPS-4::waiting_claims_nothing",
            "wakeup::OPS-4::a_wait_of_no_time_tells_what_is_there",
            "wakeup::OPS-4::an_ended_delay_is_told",
            "wakeup::OPS-4::an_expired_lease_is_told",
            "wakeup::OPS-4::an_expired_renewal_is_told",
            "wakeup::OPS-4::chosen_events_are_told",
            "wakeup::OPS-4::every_append_ends_the_wait_that_follows_the_last",
            "wakeup::OPS-4::waiting_leaves_leases_alone",
            "wakeup::OPS-4::what_a_fetch_left_is_told",
            "wakeup::OPS-4::work_at_any_attempt_is_told",
            "wakeup::OPS-4::work_in_any_partition_is_told",
        ],
    },
    faulty! {
        WaitReclaimsTheExpired: "waiting takes expired leases away",
        says: "the last operation to succeed",
        kills: [
            "wakeup::OPS-4::waiting_leaves_leases_alone",
            "wakeup::OPS-4::a_wait_of_no_time_tells_what_is_there",
            "wakeup::OPS-4::an_expired_lease_is_told",
            "wakeup::OPS-4::what_a_fetch_left_is_told",
            "wakeup::OPS-4::work_at_any_attempt_is_told",
            "wakeup::OPS-4::work_in_any_partition_is_told",
        ],
    },
    faulty! {
        WaitHasNoEnd: "waiting does not end before there is work",
        says: "the wait to end after",
        kills: ["wakeup::OPS-4::a_wait_ends_with_its_timeout"],
    },
    faulty! {
        WaitLooksNothingUp: "waiting for a group that is not there times out",
        says: "Err(StreamNotFound)",
        kills: [
            "wakeup::OPS-4::waiting_for_nothing_names_what_is_missing",
            "input::ERR-10::a_missing_group_is_named_with_its_stream",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::a_missing_group_is_named",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
        ],
    },
    faulty! {
        WaitIgnoresExpiredLeases: "while an expired lease is all there is, waiting times out",
        says: "the hint",
        kills: [
            "wakeup::OPS-4::an_expired_lease_is_told",
            "wakeup::OPS-4::a_wait_of_no_time_tells_what_is_there",
            "wakeup::OPS-4::what_a_fetch_left_is_told",
            "wakeup::OPS-4::work_at_any_attempt_is_told",
            "wakeup::OPS-4::work_in_any_partition_is_told",
        ],
    },
    faulty! {
        WaitIgnoresEndedDelays: "while an ended delay is all there is, waiting times out",
        says: "the hint",
        kills: [
            "wakeup::OPS-4::an_ended_delay_is_told",
        ],
    },
    faulty! {
        WaitIgnoresResets: "after a reset waiting times out until something is appended",
        says: "the hint",
        kills: [
            "wakeup::OPS-4::a_reset_is_told",
        ],
    },
    faulty! {
        WaitOf31BitsEndsAtOnce: "a timeout of more milliseconds than 31 bits hold is over at once",
        says: "the hint within",
        kills: [
            "wakeup::OPS-4::any_timeout_may_be_given",
        ],
    },
    faulty! {
        WaitOfTooLongFails: "a timeout of more milliseconds than 64 bits hold fails",
        says: "the last operation to succeed",
        kills: [
            "wakeup::OPS-4::any_timeout_may_be_given",
        ],
    },
];

#[derive(Default)]
struct WaitsOutItsTimeout;

#[async_trait]
impl Defect for WaitsOutItsTimeout {
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        _: Duration,
    ) -> Result<Wakeup> {
        // No sleep, so that the proof does not wait either.
        let none = Duration::ZERO;
        real.backend.wait_for_work(stream, group, none).await?;
        Ok(Wakeup::TimedOut)
    }
}

#[derive(Default)]
struct WaitSeesNewEventsOnly(std::sync::atomic::AtomicU64);

impl WaitSeesNewEventsOnly {
    async fn last(&self, real: &Real, stream: &StreamName) -> Result<u64> {
        let all = ReadOptions::new().with_limit(u32::MAX);
        let events = real.backend.read(stream, &all).await?;
        Ok(events.last().map_or(0, |event| event.sequence.get()))
    }
}

#[async_trait]
impl Defect for WaitSeesNewEventsOnly {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<rheo_core::Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        if let Some(lease) = leases.last() {
            let sequence = lease.event.sequence.get();
            self.0
                .fetch_max(sequence, std::sync::atomic::Ordering::SeqCst);
        }
        Ok(leases)
    }
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let none = Duration::ZERO;
        real.backend.wait_for_work(stream, group, none).await?;
        let claimed = self.0.load(std::sync::atomic::Ordering::SeqCst);
        if claimed > 0 && self.last(real, stream).await? <= claimed {
            return Ok(Wakeup::TimedOut);
        }
        real.backend.wait_for_work(stream, group, timeout).await
    }
}

#[derive(Default)]
struct WaitLooksOnce;

#[async_trait]
impl Defect for WaitLooksOnce {
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let none = Duration::ZERO;
        let found = real.backend.wait_for_work(stream, group, none).await?;
        if found == Wakeup::TimedOut {
            tokio::time::sleep(timeout).await;
        }
        Ok(found)
    }
}

#[derive(Default)]
struct WaitClaims;

#[async_trait]
impl Defect for WaitClaims {
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let hint = real.backend.wait_for_work(stream, group, timeout).await?;
        let fetch = FetchOptions::new(ConsumerId::new("waiting")?);
        real.backend.fetch(stream, group, &fetch).await?;
        Ok(hint)
    }
}

/// Only claims that had been claimed before are taken.
#[derive(Default)]
struct WaitReclaimsTheExpired(std::sync::Mutex<Option<Timestamp>>);

#[async_trait]
impl Defect for WaitReclaimsTheExpired {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<rheo_core::Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        if let Some(lease) = leases.first() {
            *self.0.lock().expect("not poisoned") = Some(lease.expires_at);
        }
        Ok(leases)
    }
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let expires_at = *self.0.lock().expect("not poisoned");
        if expires_at.is_some_and(|expires_at| expires_at <= real.now()) {
            let fetch = FetchOptions::new(ConsumerId::new("reaper")?);
            real.backend.fetch(stream, group, &fetch).await?;
        }
        real.backend.wait_for_work(stream, group, timeout).await
    }
}

#[derive(Default)]
struct WaitHasNoEnd;

#[async_trait]
impl Defect for WaitHasNoEnd {
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        // Just long enough for the suite to notice.
        let patience = timeout.max(Duration::from_secs(3));
        real.backend.wait_for_work(stream, group, patience).await
    }
}

#[derive(Default)]
struct WaitLooksNothingUp;

#[async_trait]
impl Defect for WaitLooksNothingUp {
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        real.backend.ping().await?;
        let hint = real.backend.wait_for_work(stream, group, timeout).await;
        Ok(hint.unwrap_or(Wakeup::TimedOut))
    }
}

/// What is waiting to be found: the claims, and the ends of delays.
#[derive(Default)]
struct Found {
    book: Book,
    due: std::sync::Mutex<Vec<(StreamName, Timestamp)>>,
}

#[derive(Default)]
struct WaitIgnoresExpiredLeases(Found);

#[async_trait]
impl Defect for WaitIgnoresExpiredLeases {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<rheo_core::Lease>> {
        self.0.book.fetch(real, stream, group, options).await
    }
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let current = self.0.book.current(real, stream, group).await;
        if current.iter().any(|lease| lease.expires_at <= real.now()) {
            return Ok(Wakeup::TimedOut);
        }
        real.backend.wait_for_work(stream, group, timeout).await
    }
}

#[derive(Default)]
struct WaitIgnoresEndedDelays(Found);

#[async_trait]
impl Defect for WaitIgnoresEndedDelays {
    async fn retry(
        &self,
        real: &Real,
        lease: &rheo_core::Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        if options.delay != RetryDelay::NONE {
            let due = real.now().saturating_add(options.delay.as_duration());
            held(&self.0.due).push((lease.event.stream.clone(), due));
        }
        real.backend.retry(lease, options).await
    }
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let now = real.now();
        if held(&self.0.due)
            .iter()
            .any(|(of, due)| of == stream && *due <= now)
        {
            return Ok(Wakeup::TimedOut);
        }
        real.backend.wait_for_work(stream, group, timeout).await
    }
}

#[derive(Default)]
struct WaitIgnoresResets(std::sync::Mutex<Vec<StreamName>>);

#[async_trait]
impl Defect for WaitIgnoresResets {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.reset_group(stream, group, options).await?;
        held(&self.0).push(stream.clone());
        Ok(())
    }
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        if held(&self.0).contains(stream) {
            return Ok(Wakeup::TimedOut);
        }
        real.backend.wait_for_work(stream, group, timeout).await
    }
}

#[derive(Default)]
struct WaitOf31BitsEndsAtOnce;

#[async_trait]
impl Defect for WaitOf31BitsEndsAtOnce {
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let timeout = match i32::try_from(timeout.as_millis()) {
            Ok(_) => timeout,
            Err(_) => Duration::ZERO,
        };
        real.backend.wait_for_work(stream, group, timeout).await
    }
}

#[derive(Default)]
struct WaitOfTooLongFails;

#[async_trait]
impl Defect for WaitOfTooLongFails {
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        if u64::try_from(timeout.as_millis()).is_err() {
            return Err(Error::Failed(Cause::new(
                "overflow when adding duration to instant",
            )));
        }
        real.backend.wait_for_work(stream, group, timeout).await
    }
}
