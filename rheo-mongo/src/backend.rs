//! The [`Backend`]: each operation is a few commands of the [`Store`].

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rheo_core::{
    Backend, Capabilities, Clock, DeadLetter, DeadLetterOptions, Error, Event, FetchOptions,
    GroupInfo, GroupName, GroupOptions, Guarantee, Lag, Lease, LeaseDuration, ListOptions,
    Mechanism, NewEvent, OptionalOperation, Page, Query, ReadOptions, Reason, Replay, ResetOptions,
    Result, RetryOptions, RetryOutcome, StreamInfo, StreamName, StreamOptions, Wakeup, async_trait,
};

use crate::append::{Appends, limits};
use crate::change::Changes;
use crate::config::Config;
use crate::delivery::{Settle, Settled};
use crate::error::failed;
use crate::fetch::Turns;
use crate::store::Store;

/// A handle on a database of a MongoDB deployment; many tasks can use it at once.
///
/// Not `Clone`, since closing is per handle: share one in an `Arc`.
pub struct MongoBackend {
    store: Arc<Store>,
    appends: Appends,
    changes: Arc<Changes>,
    turns: Turns,
}

impl MongoBackend {
    /// A handle with connections of its own. It connects when it is first used, so it is there
    /// while the server is not; [`ping`](Backend::ping) tells.
    ///
    /// # Errors
    ///
    /// `Invalid` that names the setting; `BackendUnavailable` when the URL is to be looked up in the
    /// DNS (`mongodb+srv`) and cannot be.
    pub async fn connect(config: Config, clock: Arc<dyn Clock>) -> Result<Self> {
        Ok(Self {
            store: Arc::new(Store::connect(config, clock).await?),
            appends: Appends::new(),
            changes: Arc::new(Changes::new()),
            turns: Turns::default(),
        })
    }

    async fn settle_one(&self, lease: &Lease, settle: Settle) -> Result<Settled> {
        let results = self.settle(std::slice::from_ref(lease), settle).await;
        let lost = || Err(failed("a result is missing"));
        results.into_iter().next().unwrap_or_else(lost)
    }

    async fn settle(&self, leases: &[Lease], settle: Settle) -> Vec<Result<Settled>> {
        self.changes.settle(&self.store, leases, &settle).await
    }

    /// Tells those who wait on this handle.
    fn tell(&self) {
        self.store.work.notify_waiters();
    }
}

impl fmt::Debug for MongoBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MongoBackend")
            .field("config", &self.store.config)
            .finish_non_exhaustive()
    }
}

fn retry_outcome(settled: Settled) -> RetryOutcome {
    match settled {
        Settled::DeadLettered => RetryOutcome::DeadLettered,
        _ => RetryOutcome::Retrying,
    }
}

fn renewed(lease: &Lease, settled: Settled) -> Lease {
    let mut lease = lease.clone();
    if let Settled::Until(expires_at) = settled {
        lease.expires_at = expires_at;
    }
    lease
}

static CAPABILITIES: LazyLock<Capabilities> =
    LazyLock::new(|| declared(&[Mechanism::AtomicCompareAndSet]));
static WITH_CHANGE_STREAMS: LazyLock<Capabilities> =
    LazyLock::new(|| declared(&[Mechanism::AtomicCompareAndSet, Mechanism::ChangeFeed]));

/// All guarantees, and all optional operations.
fn declared(mechanisms: &[Mechanism]) -> Capabilities {
    let declared = Capabilities::builder()
        .guarantees(Guarantee::ALL.iter().copied())
        .mechanisms(mechanisms.iter().copied())
        .operations(OptionalOperation::ALL.iter().copied())
        .limits(limits())
        .build();
    match declared {
        Ok(capabilities) => capabilities,
        Err(error) => unreachable!("the declaration is fixed and valid: {error}"),
    }
}

#[async_trait]
impl Backend for MongoBackend {
    fn capabilities(&self) -> Capabilities {
        match self.store.config.change_streams {
            true => WITH_CHANGE_STREAMS.clone(),
            false => CAPABILITIES.clone(),
        }
    }

    async fn close(&self) -> Result<()> {
        self.store.close().await;
        Ok(())
    }

    async fn ensure_indexes(&self) -> Result<()> {
        self.store.ensure_indexes(self.store.deadline()).await
    }

    async fn ping(&self) -> Result<()> {
        self.store.ping(self.store.deadline()).await
    }

    async fn create_stream(&self, stream: &StreamName, options: &StreamOptions) -> Result<()> {
        self.store.create_stream(stream, options).await
    }

    async fn create_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.store.create_group(stream, group, options).await
    }

    async fn append(&self, stream: &StreamName, event: NewEvent) -> Result<Event> {
        let events = self.append_batch(stream, vec![event]).await?;
        let lost = || failed("the store gave no event back");
        events.into_iter().next().ok_or_else(lost)
    }

    async fn append_batch(&self, stream: &StreamName, events: Vec<NewEvent>) -> Result<Vec<Event>> {
        let events = self.appends.append(&self.store, stream, events).await?;
        self.tell();
        Ok(events)
    }

    async fn read(&self, stream: &StreamName, options: &ReadOptions) -> Result<Vec<Event>> {
        self.store.read_log(stream, options).await
    }

    async fn query(&self, stream: &StreamName, query: &Query) -> Result<Page> {
        self.store.query(stream, query).await
    }

    async fn fetch(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.changes
            .fetch(&self.store, &self.turns, stream, group, options)
            .await
    }

    async fn renew(&self, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let settled = self.settle_one(lease, Settle::Renew(duration)).await?;
        Ok(renewed(lease, settled))
    }

    async fn ack(&self, lease: &Lease) -> Result<()> {
        self.settle_one(lease, Settle::Ack).await.map(drop)
    }

    async fn retry(&self, lease: &Lease, options: &RetryOptions) -> Result<RetryOutcome> {
        let settled = self
            .settle_one(lease, Settle::Retry(options.clone()))
            .await?;
        self.tell();
        Ok(retry_outcome(settled))
    }

    async fn reject(&self, lease: &Lease, reason: &Reason) -> Result<()> {
        let settled = self.settle_one(lease, Settle::Reject(reason.clone())).await;
        settled.map(drop)
    }

    async fn renew_batch(&self, leases: &[Lease], duration: LeaseDuration) -> Vec<Result<Lease>> {
        let results = self.settle(leases, Settle::Renew(duration)).await;
        let with_leases = leases.iter().zip(results);
        with_leases
            .map(|(lease, settled)| Ok(renewed(lease, settled?)))
            .collect()
    }

    async fn ack_batch(&self, leases: &[Lease]) -> Vec<Result<()>> {
        let results = self.settle(leases, Settle::Ack).await;
        results
            .into_iter()
            .map(|settled| settled.map(drop))
            .collect()
    }

    async fn retry_batch(
        &self,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        let results = self.settle(leases, Settle::Retry(options.clone())).await;
        self.tell();
        results
            .into_iter()
            .map(|settled: Result<Settled, Error>| settled.map(retry_outcome))
            .collect()
    }

    async fn reject_batch(&self, leases: &[Lease], reason: &Reason) -> Vec<Result<()>> {
        let results = self.settle(leases, Settle::Reject(reason.clone())).await;
        results
            .into_iter()
            .map(|settled| settled.map(drop))
            .collect()
    }

    async fn replay(&self, stream: &StreamName, group: &GroupName, replay: &Replay) -> Result<()> {
        self.changes
            .replay(&self.store, stream, group, replay)
            .await?;
        self.tell();
        Ok(())
    }

    async fn reset_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        self.changes
            .reset(&self.store, stream, group, options)
            .await?;
        self.tell();
        Ok(())
    }

    async fn lag(&self, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        self.store.lag(stream, group).await
    }

    async fn list_streams(&self, options: &ListOptions<StreamName>) -> Result<Vec<StreamInfo>> {
        self.store.list_streams(options).await
    }

    async fn list_groups(
        &self,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        self.store.list_groups(stream, options).await
    }

    async fn dead_letters(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        self.store.dead_letters(stream, group, options).await
    }

    async fn group_info(&self, stream: &StreamName, group: &GroupName) -> Result<GroupInfo> {
        self.store.group_info(stream, group).await
    }

    async fn wait_for_work(
        &self,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        self.store.wait_for_work(stream, group, timeout).await
    }
}
