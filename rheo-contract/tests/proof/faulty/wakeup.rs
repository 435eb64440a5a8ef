//! Defects that the cases of `wakeup` are there for.

use std::time::Duration;

use rheo_core::{
    ConsumerId, FetchOptions, GroupName, ReadOptions, Result, StreamName, Timestamp, Wakeup,
    async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        WaitsOutItsTimeout: "waiting always takes the whole timeout and finds nothing",
        says: "the hint",
        kills: [
            "wakeup::OPS-4::work_that_is_there_is_told",
            "wakeup::OPS-4::a_replay_is_told",
            "wakeup::OPS-4::work_that_was_given_back_is_told",
        ],
    },
    faulty! {
        WaitSeesNewEventsOnly: "waiting compares the last sequence that it saw with the log's",
        says: "the hint",
        kills: [
            "wakeup::OPS-4::work_that_was_given_back_is_told",
            "wakeup::OPS-4::a_replay_is_told",
        ],
    },
    faulty! {
        WaitLooksOnce: "waiting looks whether there is an event, and then sleeps",
        says: "the hint",
        kills: [
            "wakeup::OPS-4::an_append_ends_the_wait",
            "wakeup::OPS-4::an_append_by_another_handle_ends_the_wait",
        ],
    },
    faulty! {
        WaitClaims: "waiting fetches and drops the lease",
        says: "the claimable sequences",
        kills: [
            "wakeup::OPS-4::waiting_claims_nothing",
            "wakeup::OPS-4::waiting_leaves_leases_alone",
        ],
    },
    faulty! {
        WaitReclaimsTheExpired: "waiting takes expired leases away",
        says: "the last operation to succeed",
        kills: ["wakeup::OPS-4::waiting_leaves_leases_alone"],
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
            "input::ERR-6::a_missing_group_is_named",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
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
