//! Defects that the cases of `lifecycle` are there for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rheo_core::{
    Cause, Error, Event, FetchOptions, GroupName, GroupOptions, Lease, ReadOptions, ResetOptions,
    Result, StreamName, StreamOptions, async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        IndexesAreMadeOnce: "making indexes that are there fails",
        says: "the last operation to succeed",
        kills: [
            "lifecycle::STR-5::indexes_may_be_made_again_and_again",
            "lifecycle::STR-5::indexes_may_be_made_by_several_at_once",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
        ],
    },
    faulty! {
        IndexesAnewEmptyTheLog: "making indexes makes the table of events anew",
        says: "the log",
        kills: [
            "lifecycle::STR-5::making_indexes_again_keeps_the_log",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "lifecycle::STR-5::indexes_may_be_made_by_several_at_once",
        ],
    },
    faulty! {
        IndexesAnewForgetDeliveries: "making indexes makes the tables of deliveries anew",
        says: "the claimable sequences",
        kills: [
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
        ],
    },
    faulty! {
        IndexesAtOnceCollide: "making indexes fails while somebody else does it",
        says: "the last operation to succeed",
        kills: ["lifecycle::STR-5::indexes_may_be_made_by_several_at_once"],
    },
    faulty! {
        PingWantsAStream: "ping reads a table that is made with the first stream",
        says: "the last operation to succeed",
        kills: [
            "lifecycle::ERR-9::ping_answers_while_the_store_is_there",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
        ],
    },
    faulty! {
        SecondCloseFails: "closing a closed handle is an error",
        says: "the last operation to succeed",
        kills: ["lifecycle::ERR-7::closing_again_is_fine"],
    },
    faulty! {
        CloseIsForgotten: "close does nothing",
        says: "to give Err(BackendUnavailable)",
        kills: [
            "lifecycle::ERR-7::a_closed_handle_makes_and_appends_nothing",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "lifecycle::ERR-7::a_closed_handle_answers_nothing_about_itself",
            "lifecycle::ERR-7::a_closed_handle_fetches_nothing",
            "lifecycle::ERR-7::a_closed_handle_goes_back_nowhere",
            "lifecycle::ERR-7::a_closed_handle_inspects_nothing",
            "lifecycle::ERR-7::a_closed_handle_reads_nothing",
            "lifecycle::ERR-7::a_closed_handle_settles_no_batch",
            "lifecycle::ERR-7::a_closed_handle_settles_nothing",
        ],
    },
    faulty! {
        CloseShutsThePool: "close shuts the pool that all handles share",
        says: "the last operation to succeed",
        kills: [
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "durability::DUR-1::a_lease_survives",
            "durability::DUR-1::a_replay_survives",
            "durability::DUR-1::a_reset_survives",
            "durability::DUR-1::a_stale_lease_stays_stale",
            "durability::DUR-1::attempts_survive",
            "durability::DUR-1::frontiers_survive",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "durability::DUR-1::max_attempts_survives",
            "durability::DUR-1::names_stay_taken",
            "durability::DUR-1::starts_survive",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "durability::DUR-1::what_is_settled_stays_settled",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "durability::DUR-1::renewals_survive",
        ],
    },
];

#[derive(Default)]
struct IndexesAreMadeOnce(AtomicBool);

#[async_trait]
impl Defect for IndexesAreMadeOnce {
    async fn ensure_indexes(&self, real: &Real) -> Result<()> {
        real.backend.ensure_indexes().await?;
        if self.0.swap(true, Ordering::SeqCst) {
            return Err(Error::Failed(Cause::new(
                "relation \"events\" already exists",
            )));
        }
        Ok(())
    }
}

#[derive(Default)]
struct IndexesAnewEmptyTheLog(AtomicBool);

#[async_trait]
impl Defect for IndexesAnewEmptyTheLog {
    async fn ensure_indexes(&self, real: &Real) -> Result<()> {
        self.0.store(true, Ordering::SeqCst);
        real.backend.ensure_indexes().await
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        if self.0.load(Ordering::SeqCst) {
            events.clear();
        }
        Ok(events)
    }
}

#[derive(Default)]
struct IndexesAnewForgetDeliveries(Mutex<Vec<(StreamName, GroupName)>>);

#[async_trait]
impl Defect for IndexesAnewForgetDeliveries {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        let mut groups = self.0.lock().expect("not poisoned");
        groups.push((stream.clone(), group.clone()));
        Ok(())
    }
    async fn ensure_indexes(&self, real: &Real) -> Result<()> {
        let groups = self.0.lock().expect("not poisoned").clone();
        for (stream, group) in groups {
            let options = ResetOptions::new();
            real.backend.reset_group(&stream, &group, &options).await?;
        }
        real.backend.ensure_indexes().await
    }
}

#[derive(Default)]
struct IndexesAtOnceCollide(AtomicU32);

#[async_trait]
impl Defect for IndexesAtOnceCollide {
    async fn ensure_indexes(&self, real: &Real) -> Result<()> {
        let others = self.0.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        self.0.fetch_sub(1, Ordering::SeqCst);
        if others > 0 {
            return Err(Error::Failed(Cause::new("duplicate key in pg_type")));
        }
        real.backend.ensure_indexes().await
    }
}

#[derive(Default)]
struct PingWantsAStream(AtomicBool);

#[async_trait]
impl Defect for PingWantsAStream {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        self.0.store(true, Ordering::SeqCst);
        real.backend.create_stream(stream, options).await
    }
    async fn ping(&self, real: &Real) -> Result<()> {
        real.backend.ping().await?;
        if self.0.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(Error::Failed(Cause::new("no table \"streams\"")))
    }
}

#[derive(Default)]
struct SecondCloseFails(AtomicBool);

#[async_trait]
impl Defect for SecondCloseFails {
    async fn close(&self, real: &Real) -> Result<()> {
        if self.0.swap(true, Ordering::SeqCst) {
            return Err(Error::BackendUnavailable(Cause::new("the pool is closed")));
        }
        real.backend.close().await
    }
}

#[derive(Default)]
struct CloseIsForgotten;

#[async_trait]
impl Defect for CloseIsForgotten {
    async fn close(&self, _: &Real) -> Result<()> {
        Ok(())
    }
}

/// A stream stands for what all handles share.
#[derive(Default)]
struct CloseShutsThePool;

impl CloseShutsThePool {
    async fn check(&self, real: &Real) -> Result<()> {
        match real.backend.read(&closed(), &ReadOptions::new()).await {
            Ok(_) => Err(Error::BackendUnavailable(Cause::new("the pool is closed"))),
            Err(_) => Ok(()),
        }
    }
}

fn closed() -> StreamName {
    StreamName::new("the pool is closed").expect("allowed")
}

#[async_trait]
impl Defect for CloseShutsThePool {
    async fn close(&self, real: &Real) -> Result<()> {
        let options = StreamOptions::new();
        let _ = real.backend.create_stream(&closed(), &options).await;
        real.backend.close().await
    }
    async fn ping(&self, real: &Real) -> Result<()> {
        self.check(real).await?;
        real.backend.ping().await
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        self.check(real).await?;
        real.backend.ack(lease).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.check(real).await?;
        real.backend.fetch(stream, group, options).await
    }
}
