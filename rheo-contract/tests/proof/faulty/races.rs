//! Defects that show only when calls race: what is read in one step is written in another.

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{
    Error, Event, EventId, FetchOptions, GroupName, GroupOptions, Lease, LeaseDuration, LeaseId,
    NewEvent, Partition, ReadOptions, Reason, Result, RetryOptions, RetryOutcome, StreamName,
    async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real};
use crate::meeting::Meeting;
use crate::tweak::lock;

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        ReclaimReadsThenWrites: "concurrent fetches that find the same expired event all take it over",
        says: "sequence and attempt of what was reclaimed",
        kills: [
            "delivery::DLV-7::concurrent_fetches_reclaim_each_event_once",
        ],
    },
    faulty! {
        SingleFetchReadsThenWrites: "concurrent fetches of one event each choose the same new one",
        says: "the sequences that were handed out",
        kills: [
            "delivery::DLV-7::concurrent_fetches_give_one_event_once",
        ],
    },
    faulty! {
        GroupIsLookedUpThenMade: "of concurrent creators of a group all find it missing and win",
        says: "the number of creators that won",
        kills: [
            "delivery::DLV-2::of_concurrent_creators_of_a_group_one_wins",
        ],
    },
    faulty! {
        IdIsLookedUpThenWritten: "of concurrent appends with one id all find it free",
        says: "the number of appends that won",
        kills: [
            "log::LOG-7::of_concurrent_appends_with_one_id_one_wins",
        ],
    },
    faulty! {
        IdIsLockedInItsPartition: "of concurrent appends with one id one wins in each partition",
        says: "the number of appends that won",
        kills: [
            "log::LOG-7::of_concurrent_appends_of_one_id_to_many_partitions_one_wins",
        ],
    },
    faulty! {
        RetryReadsThenWrites: "concurrent retries of one lease all succeed",
        says: "the winners of Retry to be 1",
        kills: [
            "leases::LSE-7::of_concurrent_settles_of_one_kind_one_wins",
        ],
    },
    faulty! {
        RejectReadsThenWrites: "concurrent rejects of one lease all succeed",
        says: "the winners of Reject to be 1",
        kills: [
            "leases::LSE-7::of_concurrent_settles_of_one_kind_one_wins",
        ],
    },
    faulty! {
        BatchReadsThenWrites: "concurrent batches of acks all succeed",
        says: "the batches of Ack that settled each lease",
        kills: [
            "leases::LSE-7::of_concurrent_batches_of_settles_one_wins",
        ],
    },
    faulty! {
        RenewalWritesTheClaimBack: "a renewal that races an ack writes the claim back",
        says: "Err(StaleLease)",
        kills: [
            "leases::LSE-6::concurrent_renewals_undo_no_settle",
        ],
    },
];

/// What is handed out to each of the fetches that run at once.
#[derive(Default)]
struct Shared {
    fetches: Meeting<(StreamName, GroupName)>,
    chosen: Mutex<HashMap<(StreamName, GroupName), Lease>>,
}

impl Shared {
    /// Fetches; where others do too, gives one of their leases as well if that is such a one.
    async fn fetch(
        &self,
        real: &Real,
        (stream, group): (&StreamName, &GroupName),
        options: &FetchOptions,
        is_such: impl Fn(&Lease) -> bool,
    ) -> Result<Vec<Lease>> {
        let key = (stream.clone(), group.clone());
        let has_met = self.fetches.enter(&key).await;
        let fetched = real.backend.fetch(stream, group, options).await;
        tokio::task::yield_now().await;
        let fetched = fetched.map(|mut leases| {
            let mut chosen = lock(&self.chosen);
            let of_another = chosen.get(&key).filter(|_| has_met).cloned();
            if let Some(last) = leases.last().filter(|lease| is_such(lease)) {
                chosen.insert(key.clone(), last.clone());
            }
            if let Some(other) = of_another
                && options.limit > 0
            {
                leases.truncate(options.limit as usize - 1);
                leases.push(other);
            }
            leases
        });
        if self.fetches.leave(&key) {
            lock(&self.chosen).remove(&key);
        }
        fetched
    }
}

#[derive(Default)]
struct ReclaimReadsThenWrites(Shared);

#[async_trait]
impl Defect for ReclaimReadsThenWrites {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let is_reclaimed = |lease: &Lease| lease.attempt > 1;
        let of = (stream, group);
        self.0.fetch(real, of, options, is_reclaimed).await
    }
}

#[derive(Default)]
struct SingleFetchReadsThenWrites(Shared);

#[async_trait]
impl Defect for SingleFetchReadsThenWrites {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        if options.limit != 1 {
            return real.backend.fetch(stream, group, options).await;
        }
        let is_new = |lease: &Lease| lease.attempt == 1;
        self.0.fetch(real, (stream, group), options, is_new).await
    }
}

#[derive(Default)]
struct GroupIsLookedUpThenMade(Meeting<(StreamName, GroupName)>);

#[async_trait]
impl Defect for GroupIsLookedUpThenMade {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let key = (stream.clone(), group.clone());
        let has_met = self.0.enter(&key).await;
        let made = real.backend.create_group(stream, group, options).await;
        tokio::task::yield_now().await;
        self.0.leave(&key);
        match made {
            Err(Error::AlreadyExists(_)) if has_met => Ok(()),
            made => made,
        }
    }
}

/// Appends one event; where others append with its id too, that one exists already is no error.
async fn append_racing(
    ids: &Meeting<(StreamName, EventId)>,
    real: &Real,
    stream: &StreamName,
    events: Vec<NewEvent>,
    is_such: impl Fn(&Event, &NewEvent) -> bool,
) -> Result<Vec<Event>> {
    let (id, event) = match &*events {
        [event] if event.id.is_some() => (event.id, event.clone()),
        _ => return real.backend.append_batch(stream, events).await,
    };
    let key = (
        stream.clone(),
        id.unwrap_or_else(|| EventId::generate(real.now())),
    );
    let has_met = ids.enter(&key).await;
    let appended = real.backend.append_batch(stream, events).await;
    tokio::task::yield_now().await;
    ids.leave(&key);
    if !has_met || !matches!(appended, Err(Error::AlreadyExists(_))) {
        return appended;
    }
    for partition in (0..).map(Partition::new) {
        let all = ReadOptions::new().with_partition(partition);
        let Ok(log) = real.backend.read(stream, &all.with_limit(u32::MAX)).await else {
            break;
        };
        let there = log.into_iter().find(|there| there.id == key.1);
        if let Some(there) = there.filter(|there| is_such(there, &event)) {
            return Ok(vec![there]);
        }
    }
    appended
}

#[derive(Default)]
struct IdIsLookedUpThenWritten(Meeting<(StreamName, EventId)>);

#[async_trait]
impl Defect for IdIsLookedUpThenWritten {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        append_racing(&self.0, real, stream, events, |_, _| true).await
    }
}

#[derive(Default)]
struct IdIsLockedInItsPartition(Meeting<(StreamName, EventId)>);

#[async_trait]
impl Defect for IdIsLockedInItsPartition {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let is_elsewhere =
            |there: &Event, event: &NewEvent| Some(there.partition) != event.partition;
        append_racing(&self.0, real, stream, events, is_elsewhere).await
    }
}

#[derive(Default)]
struct RetryReadsThenWrites(Meeting<LeaseId>);

#[async_trait]
impl Defect for RetryReadsThenWrites {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let has_met = self.0.enter(&lease.lease_id).await;
        let retried = real.backend.retry(lease, options).await;
        tokio::task::yield_now().await;
        self.0.leave(&lease.lease_id);
        match retried {
            Err(Error::StaleLease) if has_met => Ok(RetryOutcome::Retrying),
            retried => retried,
        }
    }
}

#[derive(Default)]
struct RejectReadsThenWrites(Meeting<LeaseId>);

#[async_trait]
impl Defect for RejectReadsThenWrites {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        let has_met = self.0.enter(&lease.lease_id).await;
        let rejected = real.backend.reject(lease, reason).await;
        tokio::task::yield_now().await;
        self.0.leave(&lease.lease_id);
        match rejected {
            Err(Error::StaleLease) if has_met => Ok(()),
            rejected => rejected,
        }
    }
}

/// Batches that have their first lease in common meet.
#[derive(Default)]
struct BatchReadsThenWrites(Meeting<Option<LeaseId>>);

#[async_trait]
impl Defect for BatchReadsThenWrites {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let key = leases.first().map(|lease| lease.lease_id.clone());
        let has_met = self.0.enter(&key).await;
        let mut results = real.backend.ack_batch(leases).await;
        tokio::task::yield_now().await;
        self.0.leave(&key);
        for result in &mut results {
            if has_met && *result == Err(Error::StaleLease) {
                *result = Ok(());
            }
        }
        results
    }
}

/// A renewal waits for a settle that is under way, and then there is the claim again.
#[derive(Default)]
struct RenewalWritesTheClaimBack(Meeting<LeaseId>, Mutex<HashMap<LeaseId, Lease>>);

#[async_trait]
impl Defect for RenewalWritesTheClaimBack {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let has_met = self.0.enter(&lease.lease_id).await;
        let acked = real.backend.ack(lease).await;
        if has_met && acked.is_ok() {
            lock(&self.1).insert(lease.lease_id.clone(), lease.clone());
        }
        self.0.leave(&lease.lease_id);
        acked
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        self.0.enter(&lease.lease_id).await;
        let renewed = real.backend.renew(lease, duration).await;
        self.0.leave(&lease.lease_id);
        let back = lock(&self.1).get(&lease.lease_id).cloned();
        match (renewed, back) {
            (Err(Error::StaleLease), Some(back)) => Ok(back),
            (renewed, _) => renewed,
        }
    }
}
