//! Replays that let older leases through.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rheo_core::{
    EventId, FetchOptions, GroupName, Lease, LeaseId, Replay, Result, StreamName, async_trait,
};

use crate::book::{Book, held};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        ReplayInTwoSteps: "acks that come in between the two steps of a replay stay acked",
        says: "the claimable sequences to be [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]",
        kills: ["replay::RPL-7::acks_that_race_a_replay_lose_no_event"],
    },
    faulty! {
        ReplayLosesRacingClaims: "what is claimed while a replay is under way is lost",
        says: "the claimable sequences to be [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]",
        kills: ["replay::RPL-7::fetches_that_race_a_replay_lose_no_event"],
    },
    faulty! {
        ABatchOfAcksIgnoresReplays: "a batch of acks lets leases from before a replay through",
        says: "Err(StaleLease)",
        kills: ["replay::RPL-7::no_batch_of_leases_from_before_settles_after"],
    },
];

#[derive(Default)]
struct ReplayInTwoSteps {
    is_half_way: AtomicBool,
    lost: Mutex<HashSet<(EventId, GroupName)>>,
}

#[async_trait]
impl Defect for ReplayInTwoSteps {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        if self.is_half_way.load(Ordering::SeqCst) {
            held(&self.lost).insert((lease.event.id, lease.group.clone()));
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
        let mut leases = real.backend.fetch(stream, group, options).await?;
        leases.retain(|lease| !held(&self.lost).contains(&(lease.event.id, lease.group.clone())));
        Ok(leases)
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        self.is_half_way.store(true, Ordering::SeqCst);
        for _ in 0..10_000 {
            if held(&self.lost).is_empty() {
                tokio::task::yield_now().await;
            }
        }
        self.is_half_way.store(false, Ordering::SeqCst);
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct ReplayLosesRacingClaims {
    is_half_way: AtomicBool,
    lost: Mutex<HashSet<(EventId, GroupName)>>,
}

#[async_trait]
impl Defect for ReplayLosesRacingClaims {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        leases.retain(|lease| !held(&self.lost).contains(&(lease.event.id, lease.group.clone())));
        if self.is_half_way.load(Ordering::SeqCst) {
            let claimed = leases
                .iter()
                .map(|lease| (lease.event.id, lease.group.clone()));
            held(&self.lost).extend(claimed);
        }
        Ok(leases)
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        self.is_half_way.store(true, Ordering::SeqCst);
        for _ in 0..10_000 {
            if held(&self.lost).is_empty() {
                tokio::task::yield_now().await;
            }
        }
        self.is_half_way.store(false, Ordering::SeqCst);
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct ABatchOfAcksIgnoresReplays {
    book: Book,
    pardoned: Mutex<HashSet<LeaseId>>,
}

#[async_trait]
impl Defect for ABatchOfAcksIgnoresReplays {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let current = self.book.current(real, stream, group).await;
        let pardoned = current.into_iter().map(|lease| lease.lease_id);
        held(&self.pardoned).extend(pardoned);
        real.backend.replay(stream, group, replay).await
    }
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            let is_pardoned = held(&self.pardoned).contains(&lease.lease_id);
            let result = real.backend.ack(lease).await;
            results.push(if is_pardoned { Ok(()) } else { result });
        }
        results
    }
}
