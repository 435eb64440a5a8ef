//! The [`Backend`]: each operation is one call of the [`Store`].

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use rheo_core::{
    Backend, Capabilities, Clock, DeadLetter, DeadLetterOptions, Error, Event, FetchOptions,
    GroupInfo, GroupName, GroupOptions, Guarantee, Lag, Lease, LeaseDuration, Limits, ListOptions,
    Mechanism, NewEvent, Operation, OptionalOperation, Page, Partition, Query, ReadOptions, Reason,
    Replay, ResetOptions, Result, RetryOptions, RetryOutcome, StreamInfo, StreamName,
    StreamOptions, Wakeup, async_trait,
};
use sqlx::PgPool;
use tokio::time::Instant;

use crate::append::{MAX_BATCH_BYTES, StreamRow, only};
use crate::coalesce::{Asked, Coalescer};
use crate::config::{Config, Settings};
use crate::error::{Stage, unavailable};
use crate::migrations;
use crate::settle::{Settle, Settled};
use crate::store::Store;
use crate::wakeup::Wakeups;

/// A handle on a schema of a PostgreSQL database; many tasks can use it at once.
///
/// Not `Clone`, since closing is per handle: share one in an `Arc`.
#[derive(Debug)]
pub struct PostgresBackend {
    store: Arc<Store>,
    wakeups: Wakeups,
    /// Streams that were found before: they are there for ever, and do not change.
    streams: Mutex<HashMap<StreamName, StreamRow>>,
    /// Single appends, by stream.
    appends: Coalescer<StreamName, NewEvent, Result<Event>>,
    /// Single acks, by stream.
    acks: Coalescer<StreamName, Lease, Result<Settled>>,
    /// Where the next fetch of a group begins, so that no partition starves (DLV-5).
    turns: Mutex<HashMap<(StreamName, GroupName), Partition>>,
}

/// What is remembered of streams and groups is forgotten when it is more than this.
const MOST_REMEMBERED: usize = 10_000;

impl PostgresBackend {
    /// A handle with connections of its own. It connects when it is first used, so it is there
    /// while the server is not; [`ping`](Backend::ping) tells.
    ///
    /// # Errors
    ///
    /// `Invalid` that names the setting.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn connect(config: Config, clock: Arc<dyn Clock>) -> Result<Self> {
        Store::connect(config, clock).map(Self::on)
    }

    /// A handle on a pool of the host's, which [`close`](Backend::close) leaves open.
    ///
    /// The pool's sessions are used as they are. What would break a rule is seen to in every
    /// statement: one that is not in `read committed` is refused, and `synchronous_commit = off` is
    /// not obeyed. The rest is for the host to set: `statement_timeout` and `lock_timeout`, so that
    /// the server does not go on with what nobody waits for any more, and `test_before_acquire`.
    ///
    /// # Errors
    ///
    /// `Invalid` that names the setting.
    pub fn on_pool(pool: PgPool, settings: Settings, clock: Arc<dyn Clock>) -> Result<Self> {
        Store::on_pool(pool, settings, clock).map(Self::on)
    }

    fn on(store: Store) -> Self {
        let store = Arc::new(store);
        Self {
            wakeups: Wakeups::new(Arc::clone(&store)),
            store,
            streams: Mutex::default(),
            appends: Coalescer::new(),
            acks: Coalescer::new(),
            turns: Mutex::default(),
        }
    }

    async fn stream(&self, deadline: Instant, stream: &StreamName) -> Result<StreamRow> {
        self.store.check_open()?;
        if let Some(found) = lock(&self.streams).get(stream) {
            return Ok(*found);
        }
        let found = self.store.find_stream(deadline, stream).await?;
        remember(&self.streams, stream.clone(), found);
        Ok(found)
    }

    async fn settle_one(&self, lease: &Lease, settle: Settle<'_>) -> Result<Settled> {
        let results = self.settle(std::slice::from_ref(lease), settle).await;
        results.into_iter().next().unwrap_or(Err(Error::StaleLease))
    }

    async fn settle(&self, leases: &[Lease], settle: Settle<'_>) -> Vec<Result<Settled>> {
        let deadline = self.store.deadline();
        self.store.settle(leases, settle, deadline).await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remember<K: std::hash::Hash + Eq, V>(memory: &Mutex<HashMap<K, V>>, key: K, value: V) {
    let mut memory = lock(memory);
    if memory.len() >= MOST_REMEMBERED {
        memory.clear();
    }
    memory.insert(key, value);
}

/// The result of what was sent together with others.
fn answer<T>(asked: Asked<Result<T>>) -> Result<T> {
    match asked {
        Asked::Answered(result) => result,
        Asked::NotSent => Err(unavailable("it was not sent within the operation timeout")),
        Asked::Lost => Err(Stage::SentWrite.lost("no answer within the operation timeout")),
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

/// All guarantees, and all optional operations.
static CAPABILITIES: LazyLock<Capabilities> = LazyLock::new(|| {
    let declared = Capabilities::builder()
        .guarantees(Guarantee::ALL.iter().copied())
        .mechanisms([Mechanism::AtomicCompareAndSet, Mechanism::Notifications])
        .operations(OptionalOperation::ALL.iter().copied())
        .limits(Limits::new().with_batch_bytes(MAX_BATCH_BYTES))
        .build();
    match declared {
        Ok(capabilities) => capabilities,
        Err(error) => unreachable!("the declaration is fixed and valid: {error}"),
    }
});

#[async_trait]
impl Backend for PostgresBackend {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES.clone()
    }

    async fn close(&self) -> Result<()> {
        self.wakeups.stop();
        self.store.close().await;
        Ok(())
    }

    async fn ensure_indexes(&self) -> Result<()> {
        let script = migrations::script(&self.store.settings.schema);
        let deadline = self.store.deadline();
        self.store
            .script(deadline, Operation::EnsureIndexes, script)
            .await
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
        if !self.store.settings.coalescing {
            return self.append_batch(stream, vec![event]).await.and_then(only);
        }
        let deadline = self.store.deadline();
        let count = self.stream(deadline, stream).await?.partition_count;
        event.route(count)?;
        let (store, name) = (Arc::clone(&self.store), stream.clone());
        let send = move |events, deadline| {
            let (store, name) = (Arc::clone(&store), name.clone());
            async move { store.append_each(&name, count, events, deadline).await }
        };
        let asked = self
            .appends
            .ask(stream.clone(), event, deadline, send)
            .await;
        let event = answer(asked)?;
        self.wakeups.tell(stream);
        Ok(event)
    }

    async fn append_batch(&self, stream: &StreamName, events: Vec<NewEvent>) -> Result<Vec<Event>> {
        let deadline = self.store.deadline();
        let count = self.stream(deadline, stream).await?.partition_count;
        let events = self.store.append(stream, count, events, deadline).await?;
        self.wakeups.tell(stream);
        Ok(events)
    }

    async fn read(&self, stream: &StreamName, options: &ReadOptions) -> Result<Vec<Event>> {
        self.store.read(stream, options).await
    }

    async fn query(&self, stream: &StreamName, query: &Query) -> Result<Page> {
        let deadline = self.store.deadline();
        let found = self.stream(deadline, stream).await?;
        self.store.query(deadline, stream, found, query).await
    }

    async fn fetch(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let key = (stream.clone(), group.clone());
        let from = lock(&self.turns).get(&key).copied().unwrap_or_default();
        let leases = self.store.fetch(stream, group, options, from).await?;
        if let Some(last) = leases.last() {
            let next = Partition::new(last.event.partition.number() + 1);
            remember(&self.turns, key, next);
        }
        Ok(leases)
    }

    async fn renew(&self, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let settled = self.settle_one(lease, Settle::Renew(duration)).await?;
        Ok(renewed(lease, settled))
    }

    async fn ack(&self, lease: &Lease) -> Result<()> {
        if !self.store.settings.coalescing || lease.receipt.is_some() {
            return self.settle_one(lease, Settle::Ack).await.map(drop);
        }
        self.store.check_open()?;
        let store = Arc::clone(&self.store);
        let send = move |leases: Vec<Lease>, deadline| {
            let store = Arc::clone(&store);
            async move { store.settle(&leases, Settle::Ack, deadline).await }
        };
        let deadline = self.store.deadline();
        let key = lease.event.stream.clone();
        let asked = self.acks.ask(key, lease.clone(), deadline, send).await;
        answer(asked).map(drop)
    }

    async fn retry(&self, lease: &Lease, options: &RetryOptions) -> Result<RetryOutcome> {
        let settled = self.settle_one(lease, Settle::Retry(options)).await?;
        self.wakeups.tell(&lease.event.stream);
        Ok(retry_outcome(settled))
    }

    async fn reject(&self, lease: &Lease, reason: &Reason) -> Result<()> {
        let settled = self.settle_one(lease, Settle::Reject(reason)).await;
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
        let results = self.settle(leases, Settle::Retry(options)).await;
        let streams: std::collections::BTreeSet<_> =
            leases.iter().map(|lease| &lease.event.stream).collect();
        for stream in streams {
            self.wakeups.tell(stream);
        }
        results
            .into_iter()
            .map(|settled| settled.map(retry_outcome))
            .collect()
    }

    async fn reject_batch(&self, leases: &[Lease], reason: &Reason) -> Vec<Result<()>> {
        let results = self.settle(leases, Settle::Reject(reason)).await;
        results
            .into_iter()
            .map(|settled| settled.map(drop))
            .collect()
    }

    async fn replay(&self, stream: &StreamName, group: &GroupName, replay: &Replay) -> Result<()> {
        self.store.replay(stream, group, replay).await?;
        self.wakeups.tell(stream);
        Ok(())
    }

    async fn reset_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        self.store.reset_group(stream, group, options).await?;
        self.wakeups.tell(stream);
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
        self.wakeups.wait_for_work(stream, group, timeout).await
    }
}
