//! Waits that overlook some of the work that is there, or some of what comes.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rheo_core::{
    Event, FetchOptions, GroupName, Lease, LeaseDuration, LeaseId, NewEvent, ReadOptions, Replay,
    Result, StreamName, Wakeup, async_trait,
};

use crate::book::{Book, held};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        WaitLooksAtPartition0: "waiting looks for work in partition 0 alone",
        says: "the hint",
        kills: ["wakeup::OPS-4::work_in_any_partition_is_told"],
    },
    faulty! {
        WaitIgnoresChosenEvents: "after a replay of chosen events waiting times out",
        says: "the hint",
        kills: ["wakeup::OPS-4::chosen_events_are_told"],
    },
    faulty! {
        WaitIgnoresExpiredRenewals: "while an expired renewal is there, waiting times out",
        says: "the hint",
        kills: ["wakeup::OPS-4::an_expired_renewal_is_told"],
    },
    faulty! {
        WaitIgnoresLateAttempts: "expired leases of attempt 3 or later are not work",
        says: "the hint",
        kills: ["wakeup::OPS-4::work_at_any_attempt_is_told"],
    },
    faulty! {
        WaitIgnoresWhatAFetchSaw: "expired leases that a fetch has seen and left are not work",
        says: "the hint",
        kills: [
            "wakeup::OPS-4::what_a_fetch_left_is_told",
            "wakeup::OPS-4::work_in_any_partition_is_told",
        ],
    },
    faulty! {
        WaitOfNoTimeLooksForNothing: "a wait of no time does not look for work",
        says: "the hint",
        kills: ["wakeup::OPS-4::a_wait_of_no_time_tells_what_is_there"],
    },
    faulty! {
        BatchesEndNoWait: "a batch of more than one event ends no wait",
        says: "the hint",
        kills: ["wakeup::OPS-4::any_kind_of_append_ends_the_wait"],
    },
    faulty! {
        OnlyTheFirstEventEndsAWait: "an append ends a wait while the stream is empty",
        says: "the hint",
        kills: ["wakeup::OPS-4::every_append_ends_the_wait_that_follows_the_last"],
    },
];

/// No wait at all, so that the proof does not wait either.
async fn timed_out(real: &Real, stream: &StreamName, group: &GroupName) -> Result<Wakeup> {
    let none = Duration::ZERO;
    real.backend.wait_for_work(stream, group, none).await?;
    Ok(Wakeup::TimedOut)
}

#[derive(Default)]
struct WaitLooksAtPartition0;

#[async_trait]
impl Defect for WaitLooksAtPartition0 {
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let lag = real.backend.lag(stream, group).await?;
        let is_done = lag.partitions[0].frontier == lag.partitions[0].high_watermark;
        if is_done && lag.total() > 0 {
            return timed_out(real, stream, group).await;
        }
        real.backend.wait_for_work(stream, group, timeout).await
    }
}

#[derive(Default)]
struct WaitIgnoresChosenEvents(Mutex<HashSet<(StreamName, GroupName)>>);

#[async_trait]
impl Defect for WaitIgnoresChosenEvents {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        if matches!(replay, Replay::Events(_)) {
            held(&self.0).insert((stream.clone(), group.clone()));
        }
        Ok(())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        held(&self.0).remove(&(stream.clone(), group.clone()));
        real.backend.fetch(stream, group, options).await
    }
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        if held(&self.0).contains(&(stream.clone(), group.clone())) {
            return timed_out(real, stream, group).await;
        }
        real.backend.wait_for_work(stream, group, timeout).await
    }
}

#[derive(Default)]
struct WaitIgnoresExpiredRenewals(Mutex<Vec<Lease>>);

#[async_trait]
impl Defect for WaitIgnoresExpiredRenewals {
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = real.backend.renew(lease, duration).await?;
        held(&self.0).push(renewed.clone());
        Ok(renewed)
    }
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let (now, renewed) = (real.now(), held(&self.0).clone());
        if renewed.iter().any(|lease| lease.expires_at <= now) {
            return timed_out(real, stream, group).await;
        }
        real.backend.wait_for_work(stream, group, timeout).await
    }
}

#[derive(Default)]
struct WaitIgnoresLateAttempts(Book);

#[async_trait]
impl Defect for WaitIgnoresLateAttempts {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.0.fetch(real, stream, group, options).await
    }
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let current = self.0.current(real, stream, group).await;
        if current.iter().any(|lease| lease.attempt > 2) {
            return timed_out(real, stream, group).await;
        }
        real.backend.wait_for_work(stream, group, timeout).await
    }
}

#[derive(Default)]
struct WaitIgnoresWhatAFetchSaw {
    book: Book,
    seen: Mutex<HashSet<LeaseId>>,
}

#[async_trait]
impl Defect for WaitIgnoresWhatAFetchSaw {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let now = real.now();
        let mut current = self.book.current(real, stream, group).await;
        current.retain(|lease| lease.expires_at <= now);
        held(&self.seen).extend(current.into_iter().map(|lease| lease.lease_id));
        self.book.fetch(real, stream, group, options).await
    }
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let current = self.book.current(real, stream, group).await;
        let seen = held(&self.seen).clone();
        if current.iter().any(|lease| seen.contains(&lease.lease_id)) {
            return timed_out(real, stream, group).await;
        }
        real.backend.wait_for_work(stream, group, timeout).await
    }
}

#[derive(Default)]
struct WaitOfNoTimeLooksForNothing;

#[async_trait]
impl Defect for WaitOfNoTimeLooksForNothing {
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let hint = real.backend.wait_for_work(stream, group, timeout).await?;
        match timeout {
            Duration::ZERO => Ok(Wakeup::TimedOut),
            _ => Ok(hint),
        }
    }
}

/// Whether what was appended last is told.
#[derive(Default)]
struct Silence(AtomicBool);

impl Silence {
    async fn wait(
        &self,
        real: &Real,
        (stream, group): (&StreamName, &GroupName),
        timeout: Duration,
    ) -> Result<Wakeup> {
        let none = Duration::ZERO;
        let there = real.backend.wait_for_work(stream, group, none).await?;
        if there == Wakeup::MaybeWork {
            return Ok(there);
        }
        let hint = real.backend.wait_for_work(stream, group, timeout).await?;
        match self.0.load(Ordering::SeqCst) {
            true => Ok(Wakeup::TimedOut),
            false => Ok(hint),
        }
    }
}

#[derive(Default)]
struct BatchesEndNoWait(Silence);

#[async_trait]
impl Defect for BatchesEndNoWait {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        self.0.0.store(events.len() > 1, Ordering::SeqCst);
        real.backend.append_batch(stream, events).await
    }
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        self.0.wait(real, (stream, group), timeout).await
    }
}

#[derive(Default)]
struct OnlyTheFirstEventEndsAWait(Silence);

#[async_trait]
impl Defect for OnlyTheFirstEventEndsAWait {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let read = real.backend.read(stream, &ReadOptions::new()).await?;
        self.0.0.store(!read.is_empty(), Ordering::SeqCst);
        real.backend.append_batch(stream, events).await
    }
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        self.0.wait(real, (stream, group), timeout).await
    }
}
