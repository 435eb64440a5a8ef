//! A handle on the server: every operation is one script.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rheo_core::{
    Backend, Capabilities, Cause, Clock, DeadLetter, DeadLetterOptions, Error, Event, FetchOptions,
    GroupInfo, GroupName, GroupOptions, Lag, Lease, LeaseDuration, ListOptions, NewEvent,
    Operation, Page, Query, ReadOptions, Reason, Replay, ResetOptions, Result, RetryOptions,
    RetryOutcome, StreamInfo, StreamName, StreamOptions, Timestamp, Wakeup, async_trait,
};
use tokio::time::{sleep, timeout as within};

use crate::config::{CAPABILITIES, DoubleServer};
use crate::error::{closed, stopped};
use crate::faults::{Fault, Faults};
use crate::keyspace::Keyspace;
use crate::{append, fetch, progress, query, settle};

/// A handle on a [`DoubleServer`].
#[derive(Debug)]
pub struct DoubleBackend {
    server: DoubleServer,
    clock: Arc<dyn Clock>,
    faults: Faults,
    closed: AtomicBool,
}

impl DoubleBackend {
    pub(crate) fn new(server: DoubleServer, clock: Arc<dyn Clock>) -> Self {
        Self {
            server,
            clock,
            faults: Faults::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// The faults that the calls of this handle meet.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Runs an operation as one script, unless a fault is scripted for it. There is no await point
    /// between the first effect and the last, so a dropped future leaves all of it or nothing (CAN-1).
    async fn call<T>(
        &self,
        operation: Operation,
        script: impl FnOnce(&mut Keyspace, Timestamp) -> Result<T> + Send,
    ) -> Result<T> {
        self.check_open()?;
        let own = self.faults.take(operation);
        match own.or_else(|| self.server.faults().take(operation)) {
            None => self.run(operation, script)?,
            Some(Fault::Unavailable) => Err(Error::BackendUnavailable(scripted())),
            Some(Fault::AmbiguousBefore) => Err(Error::Ambiguous(scripted())),
            Some(Fault::AmbiguousAfter) => {
                let _lost = self.run(operation, script)?;
                Err(Error::Ambiguous(scripted()))
            }
            Some(Fault::Slow(delay)) => {
                sleep(delay).await;
                self.check_open()?;
                self.run(operation, script)?
            }
            Some(Fault::Hang) => pending().await,
        }
    }

    /// The outer error: the script was not run.
    fn run<T>(
        &self,
        operation: Operation,
        script: impl FnOnce(&mut Keyspace, Timestamp) -> Result<T>,
    ) -> Result<Result<T>> {
        let native = &self.server.native;
        let answer = native
            .script(|keys| script(keys, self.clock.now()))
            .map_err(stopped)?;
        if operation.writes() {
            native.announce();
        }
        Ok(answer)
    }

    /// Settles or renews many leases in one script.
    async fn call_for_each<T: Send>(
        &self,
        operation: Operation,
        leases: &[Lease],
        script: impl Fn(&mut Keyspace, &Lease, Timestamp) -> Result<T> + Sync,
    ) -> Vec<Result<T>> {
        let all = self.call(operation, |keys, now| {
            let each = leases.iter().map(|lease| script(keys, lease, now));
            Ok(each.collect())
        });
        match all.await {
            Ok(results) => results,
            Err(error) => leases.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// A blocking read: looks, and looks again whenever something was written or became due.
    async fn claimable(&self, stream: &StreamName, group: &GroupName) -> Result<()> {
        loop {
            // Before looking, so that no change in between is missed.
            let mut changes = self.server.native.changes();
            self.check_open()?;
            let look = |keys: &mut Keyspace, now| {
                Ok(progress::next_claimable(keys, stream, group)?
                    .map(|at| at.saturating_since(now)))
            };
            match self.run(Operation::WaitForWork, look)?? {
                Some(Duration::ZERO) => return Ok(()),
                Some(until_due) => {
                    if within(until_due, changes.changed()).await.is_err() {
                        return Ok(());
                    }
                }
                None => {
                    let _ = changes.changed().await;
                }
            }
        }
    }

    fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::SeqCst) {
            true => Err(closed()),
            false => Ok(()),
        }
    }
}

fn scripted() -> Cause {
    Cause::new("a scripted fault")
}

#[async_trait]
impl Backend for DoubleBackend {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES.clone()
    }

    async fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::SeqCst);
        self.server.native.announce();
        Ok(())
    }

    async fn ensure_indexes(&self) -> Result<()> {
        self.call(Operation::EnsureIndexes, |_, _| Ok(())).await
    }

    async fn ping(&self) -> Result<()> {
        self.call(Operation::Ping, |_, _| Ok(())).await
    }

    async fn create_stream(&self, stream: &StreamName, options: &StreamOptions) -> Result<()> {
        self.call(Operation::CreateStream, |keys, _| {
            append::create_stream(keys, stream, options)
        })
        .await
    }

    async fn create_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.call(Operation::CreateGroup, |keys, _| {
            progress::create_group(keys, stream, group, options)
        })
        .await
    }

    async fn append(&self, stream: &StreamName, event: NewEvent) -> Result<Event> {
        self.call(Operation::Append, |keys, now| {
            append::append(keys, stream, event, now)
        })
        .await
    }

    async fn append_batch(&self, stream: &StreamName, events: Vec<NewEvent>) -> Result<Vec<Event>> {
        self.call(Operation::AppendBatch, |keys, now| {
            append::append_batch(keys, stream, events, now)
        })
        .await
    }

    async fn read(&self, stream: &StreamName, options: &ReadOptions) -> Result<Vec<Event>> {
        self.call(Operation::Read, |keys, _| {
            query::read(keys, stream, options)
        })
        .await
    }

    async fn query(&self, stream: &StreamName, query: &Query) -> Result<Page> {
        self.call(Operation::Query, |keys, _| {
            query::query(keys, stream, query)
        })
        .await
    }

    async fn fetch(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.call(Operation::Fetch, |keys, now| {
            fetch::fetch(keys, stream, group, options, now)
        })
        .await
    }

    async fn renew(&self, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        self.call(Operation::Renew, |keys, now| {
            settle::renew(keys, lease, duration, now)
        })
        .await
    }

    async fn ack(&self, lease: &Lease) -> Result<()> {
        self.call(Operation::Ack, |keys, _| settle::ack(keys, lease))
            .await
    }

    async fn retry(&self, lease: &Lease, options: &RetryOptions) -> Result<RetryOutcome> {
        self.call(Operation::Retry, |keys, now| {
            settle::retry(keys, lease, options, now)
        })
        .await
    }

    async fn reject(&self, lease: &Lease, reason: &Reason) -> Result<()> {
        self.call(Operation::Reject, |keys, now| {
            settle::reject(keys, lease, reason, now)
        })
        .await
    }

    async fn renew_batch(&self, leases: &[Lease], duration: LeaseDuration) -> Vec<Result<Lease>> {
        self.call_for_each(Operation::RenewBatch, leases, |keys, lease, now| {
            settle::renew(keys, lease, duration, now)
        })
        .await
    }

    async fn ack_batch(&self, leases: &[Lease]) -> Vec<Result<()>> {
        self.call_for_each(Operation::AckBatch, leases, |keys, lease, _| {
            settle::ack(keys, lease)
        })
        .await
    }

    async fn retry_batch(
        &self,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        self.call_for_each(Operation::RetryBatch, leases, |keys, lease, now| {
            settle::retry(keys, lease, options, now)
        })
        .await
    }

    async fn reject_batch(&self, leases: &[Lease], reason: &Reason) -> Vec<Result<()>> {
        self.call_for_each(Operation::RejectBatch, leases, |keys, lease, now| {
            settle::reject(keys, lease, reason, now)
        })
        .await
    }

    async fn replay(&self, stream: &StreamName, group: &GroupName, replay: &Replay) -> Result<()> {
        self.call(Operation::Replay, |keys, now| {
            progress::replay(keys, stream, group, replay, now)
        })
        .await
    }

    async fn reset_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        self.call(Operation::ResetGroup, |keys, _| {
            progress::reset_group(keys, stream, group, options)
        })
        .await
    }

    async fn lag(&self, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        self.call(Operation::Lag, |keys, _| progress::lag(keys, stream, group))
            .await
    }

    async fn list_streams(&self, options: &ListOptions<StreamName>) -> Result<Vec<StreamInfo>> {
        self.call(Operation::ListStreams, |keys, _| {
            query::list_streams(keys, options)
        })
        .await
    }

    async fn list_groups(
        &self,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        self.call(Operation::ListGroups, |keys, _| {
            query::list_groups(keys, stream, options)
        })
        .await
    }

    async fn dead_letters(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        self.call(Operation::DeadLetters, |keys, _| {
            query::dead_letters(keys, stream, group, options)
        })
        .await
    }

    async fn group_info(&self, stream: &StreamName, group: &GroupName) -> Result<GroupInfo> {
        self.call(Operation::GroupInfo, |keys, _| {
            query::group_info(keys, stream, group)
        })
        .await
    }

    async fn wait_for_work(
        &self,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        self.call(Operation::WaitForWork, |keys, _| {
            keys.stream(stream)?.group(group).map(|_| ())
        })
        .await?;
        match within(timeout, self.claimable(stream, group)).await {
            Ok(found) => found.map(|()| Wakeup::MaybeWork),
            Err(_) => Ok(Wakeup::TimedOut),
        }
    }
}
