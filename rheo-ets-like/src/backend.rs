//! The [`Backend`]: whether the store is there, a lock, the time, and a call of the state machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rheo_core::{
    Backend, Capabilities, Cause, Clock, DeadLetter, DeadLetterOptions, Error, Event, FetchOptions,
    GroupInfo, GroupName, GroupOptions, Guarantee, Lag, Lease, LeaseDuration, ListOptions,
    Mechanism, NewEvent, OptionalOperation, Page, Query, ReadOptions, Reason, Replay, ResetOptions,
    Result, RetryOptions, RetryOutcome, StreamInfo, StreamName, StreamOptions, Timestamp, Wakeup,
    async_trait,
};

use crate::MemoryStore;
use crate::delivery::Delivery;
use crate::group::Group;
use crate::log::Log;
use crate::store::Shelf;
use crate::stream::Stream;

/// A handle on a [`MemoryStore`]; many tasks can use it at once.
///
/// Not `Clone`, since closing is per handle: share one in an `Arc`, or open another on the store.
#[derive(Debug)]
pub struct MemoryBackend {
    store: MemoryStore,
    clock: Arc<dyn Clock>,
    is_closed: AtomicBool,
}

impl MemoryBackend {
    /// A handle on a new store of its own.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        MemoryStore::new().open(clock)
    }

    pub(crate) fn on(store: MemoryStore, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            is_closed: AtomicBool::new(false),
        }
    }

    fn check_available(&self) -> Result<()> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(Error::BackendUnavailable(Cause::new(
                "the handle is closed",
            )));
        }
        self.store.check_up()
    }

    fn shelf(&self, stream: &StreamName) -> Result<Arc<Shelf>> {
        self.check_available()?;
        let missing = || Error::StreamNotFound {
            stream: stream.clone(),
        };
        self.store.find(stream).ok_or_else(missing)
    }

    fn on_stream<T>(
        &self,
        stream: &StreamName,
        step: impl FnOnce(&mut Stream, Timestamp) -> Result<T>,
    ) -> Result<T> {
        let shelf = self.shelf(stream)?;
        let mut stream = shelf.lock();
        step(&mut stream, self.clock.now())
    }

    fn on_group<T>(
        &self,
        stream: &StreamName,
        group: &GroupName,
        step: impl FnOnce(&mut Group, &Log, Timestamp) -> Result<T>,
    ) -> Result<T> {
        self.on_stream(stream, |stream, now| {
            let (group, log) = stream.group(group)?;
            step(group, log, now)
        })
    }

    fn on_lease<T>(
        &self,
        lease: &Lease,
        step: impl FnOnce(&mut Delivery, Timestamp) -> Result<T>,
    ) -> Result<T> {
        self.check_available()?;
        let shelf = self.store.find(&lease.event.stream);
        let shelf = shelf.ok_or(Error::StaleLease)?;
        let mut stream = shelf.lock();
        step(stream.delivery_of(lease)?, self.clock.now())
    }

    /// As [`on_lease`](Self::on_lease) for each, with one lock for neighbours on one stream.
    fn on_leases<T>(
        &self,
        leases: &[Lease],
        step: impl Fn(&mut Delivery, &Lease, Timestamp) -> Result<T>,
    ) -> Vec<Result<T>> {
        let mut results = Vec::with_capacity(leases.len());
        for run in leases.chunk_by(|left, right| left.event.stream == right.event.stream) {
            if let Err(error) = self.check_available() {
                results.extend(run.iter().map(|_| Err(error.clone())));
                continue;
            }
            let Some(shelf) = self.store.find(&run[0].event.stream) else {
                results.extend(run.iter().map(|_| Err(Error::StaleLease)));
                continue;
            };
            let mut stream = shelf.lock();
            let now = self.clock.now();
            results.extend(
                run.iter()
                    .map(|lease| step(stream.delivery_of(lease)?, lease, now)),
            );
        }
        results
    }

    /// Tells those who wait that something may have become claimable.
    fn wake(&self, stream: &StreamName) {
        if let Some(shelf) = self.store.find(stream) {
            shelf.work.notify_waiters();
        }
    }
}

/// What this backend declares: everything but to be durable and distributed.
static CAPABILITIES: LazyLock<Capabilities> = LazyLock::new(|| {
    let declared = Capabilities::builder()
        .guarantees([
            Guarantee::Partitions,
            Guarantee::ContiguousFrontier,
            Guarantee::Replay,
            Guarantee::OrderedRangeScan,
            Guarantee::SecondaryIndexes,
            Guarantee::BatchWrites,
        ])
        .without(Guarantee::Durable)
        .without(Guarantee::Distributed)
        .mechanisms([Mechanism::AtomicCompareAndSet, Mechanism::Notifications])
        .operations(OptionalOperation::ALL.iter().copied())
        .build();
    match declared {
        Ok(capabilities) => capabilities,
        Err(error) => unreachable!("the declaration is fixed and valid: {error}"),
    }
});

#[async_trait]
impl Backend for MemoryBackend {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES.clone()
    }

    async fn close(&self) -> Result<()> {
        self.is_closed.store(true, Ordering::SeqCst);
        self.store.wake_all();
        Ok(())
    }

    async fn ensure_indexes(&self) -> Result<()> {
        self.check_available()
    }

    async fn ping(&self) -> Result<()> {
        self.check_available()
    }

    async fn create_stream(&self, stream: &StreamName, options: &StreamOptions) -> Result<()> {
        self.check_available()?;
        self.store.create(stream, options.partition_count)
    }

    async fn create_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.on_stream(stream, |stream, _| stream.create_group(group, options))
    }

    async fn append(&self, stream: &StreamName, event: NewEvent) -> Result<Event> {
        let event = self.on_stream(stream, |stream, now| stream.append_one(event, now))?;
        self.wake(stream);
        Ok(event)
    }

    async fn append_batch(&self, stream: &StreamName, events: Vec<NewEvent>) -> Result<Vec<Event>> {
        let events = self.on_stream(stream, |stream, now| stream.append(events, now))?;
        self.wake(stream);
        Ok(events)
    }

    async fn read(&self, stream: &StreamName, options: &ReadOptions) -> Result<Vec<Event>> {
        self.on_stream(stream, |stream, _| stream.read(options))
    }

    async fn query(&self, stream: &StreamName, query: &Query) -> Result<Page> {
        self.on_stream(stream, |stream, _| stream.query(query))
    }

    async fn fetch(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.on_group(stream, group, |group, log, now| {
            group.fetch(log, options, now)
        })
    }

    async fn renew(&self, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        self.on_lease(lease, |delivery, now| delivery.renew(lease, duration, now))
    }

    async fn ack(&self, lease: &Lease) -> Result<()> {
        self.on_lease(lease, |delivery, _| delivery.ack(lease))
    }

    async fn retry(&self, lease: &Lease, options: &RetryOptions) -> Result<RetryOutcome> {
        let outcome = self.on_lease(lease, |delivery, now| delivery.retry(lease, options, now))?;
        self.wake(&lease.event.stream);
        Ok(outcome)
    }

    async fn reject(&self, lease: &Lease, reason: &Reason) -> Result<()> {
        self.on_lease(lease, |delivery, now| delivery.reject(lease, reason, now))
    }

    async fn renew_batch(&self, leases: &[Lease], duration: LeaseDuration) -> Vec<Result<Lease>> {
        self.on_leases(leases, |delivery, lease, now| {
            delivery.renew(lease, duration, now)
        })
    }

    async fn ack_batch(&self, leases: &[Lease]) -> Vec<Result<()>> {
        self.on_leases(leases, |delivery, lease, _| delivery.ack(lease))
    }

    async fn replay(&self, stream: &StreamName, group: &GroupName, replay: &Replay) -> Result<()> {
        self.on_group(stream, group, |group, log, _| group.replay(log, replay))?;
        self.wake(stream);
        Ok(())
    }

    async fn reset_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        self.on_group(stream, group, |group, log, _| group.reset(log, options))?;
        self.wake(stream);
        Ok(())
    }

    async fn lag(&self, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        self.on_group(stream, group, |group, log, _| Ok(group.lag(log)))
    }

    async fn list_streams(&self, options: &ListOptions<StreamName>) -> Result<Vec<StreamInfo>> {
        self.check_available()?;
        Ok(self.store.list(options))
    }

    async fn list_groups(
        &self,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        self.on_stream(stream, |stream, _| Ok(stream.list_groups(options)))
    }

    async fn dead_letters(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        self.on_group(stream, group, |group, log, _| {
            group.dead_letters(log, options)
        })
    }

    async fn group_info(&self, stream: &StreamName, group: &GroupName) -> Result<GroupInfo> {
        self.on_group(stream, group, |group, log, _| Ok(group.info(stream, log)))
    }

    async fn wait_for_work(
        &self,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let shelf = self.shelf(stream)?;
        // Hears every notification from here on, so none is lost between looking and waiting.
        let woken = shelf.work.notified();
        let due = self.on_group(stream, group, |group, log, now| {
            Ok(group.next_due(log).map(|due| due.saturating_since(now)))
        })?;
        if due == Some(Duration::ZERO) {
            return Ok(Wakeup::MaybeWork);
        }
        let patience = due.map_or(timeout, |due| due.min(timeout));
        let is_woken = tokio::time::timeout(patience, woken).await.is_ok();
        self.check_available()?;
        if is_woken || patience < timeout {
            Ok(Wakeup::MaybeWork)
        } else {
            Ok(Wakeup::TimedOut)
        }
    }
}
