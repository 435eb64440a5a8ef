//! A small backend for Rheo on a `BTreeMap`: what somebody outside the project writes.
//!
//! It keeps everything in memory and forgets it when it is closed. It declares one optional
//! guarantee, `contiguous_frontier`, so that `lag` works, and refuses what needs another.
//!
//! | file | what it is |
//! |---|---|
//! | `lib.rs` | the [`Backend`]: finds the stream, group or lease, and asks the clock |
//! | `stream.rs` | the events of a stream, and its groups |
//! | `group.rs` | the deliveries of one group: fetch, renew, ack, retry, reject, lag |

mod group;
mod stream;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use rheo_core::{
    Backend, Capabilities, Cause, Clock, Error, Event, Existing, FetchOptions, GroupName,
    GroupOptions, Guarantee, Lag, Lease, LeaseDuration, NewEvent, Operation, Page, Partition,
    Query, ReadOptions, Reason, Replay, ResetOptions, Result, RetryOptions, RetryOutcome,
    StreamName, StreamOptions, Timestamp, async_trait,
};

use crate::group::Group;
use crate::stream::{Log, Stream};

/// The streams of one process, in one `BTreeMap`.
#[derive(Debug)]
pub struct BTreeBackend {
    clock: Arc<dyn Clock>,
    capabilities: Capabilities,
    /// `None` once the handle is closed.
    streams: Mutex<Option<BTreeMap<StreamName, Stream>>>,
}

impl BTreeBackend {
    /// An empty backend that takes all time from `clock`.
    ///
    /// # Errors
    ///
    /// `Invalid` if its own declaration contradicted itself.
    pub fn new(clock: Arc<dyn Clock>) -> Result<Self> {
        Ok(Self {
            clock,
            capabilities: Capabilities::builder()
                .guarantees([Guarantee::ContiguousFrontier])
                .build()?,
            streams: Mutex::new(Some(BTreeMap::new())),
        })
    }

    /// One step on all the data, under the lock and at one time; every operation is such a step.
    fn step<T>(
        &self,
        step: impl FnOnce(&mut BTreeMap<StreamName, Stream>, Timestamp) -> Result<T>,
    ) -> Result<T> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        match streams.as_mut() {
            Some(streams) => step(streams, self.clock.now()),
            None => Err(Error::BackendUnavailable(Cause::new(
                "the handle is closed",
            ))),
        }
    }

    fn on_stream<T>(
        &self,
        name: &StreamName,
        step: impl FnOnce(&mut Stream, Timestamp) -> Result<T>,
    ) -> Result<T> {
        self.step(|streams, now| match streams.get_mut(name) {
            Some(stream) => step(stream, now),
            None => Err(Error::StreamNotFound {
                stream: name.clone(),
            }),
        })
    }

    fn on_group<T>(
        &self,
        stream: &StreamName,
        name: &GroupName,
        step: impl FnOnce(&mut Group, &Log, Timestamp) -> Result<T>,
    ) -> Result<T> {
        self.on_stream(stream, |found, now| match found.groups.get_mut(name) {
            Some(group) => step(group, &found.log, now),
            None => Err(Error::GroupNotFound {
                stream: stream.clone(),
                group: name.clone(),
            }),
        })
    }

    /// As [`on_group`](Self::on_group), but a lease from nowhere is stale, whatever is missing.
    fn on_lease<T>(
        &self,
        lease: &Lease,
        step: impl FnOnce(&mut Group, Timestamp) -> Result<T>,
    ) -> Result<T> {
        self.step(|streams, now| {
            let stream = streams.get_mut(&lease.event.stream);
            let group = stream.and_then(|stream| stream.groups.get_mut(&lease.group));
            match group.filter(|_| lease.event.partition == Partition::ZERO) {
                Some(group) => step(group, now),
                None => Err(Error::StaleLease),
            }
        })
    }

    /// Refuses what needs a guarantee that is not declared; a closed handle comes first (ERR-6).
    fn refuse<T>(&self, operation: Operation, missing: Guarantee) -> Result<T> {
        self.step(|_, _| {
            Err(Error::Unsupported {
                operation,
                missing: missing.as_str().into(),
            })
        })
    }
}

/// The operations that this backend never declares (`list_streams`, `dead_letters` …) and the batch
/// forms of delivery are left to the defaults of the trait.
#[async_trait]
impl Backend for BTreeBackend {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    async fn close(&self) -> Result<()> {
        *self.streams.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    async fn ensure_indexes(&self) -> Result<()> {
        self.step(|_, _| Ok(()))
    }

    async fn ping(&self) -> Result<()> {
        self.step(|_, _| Ok(()))
    }

    async fn create_stream(&self, stream: &StreamName, options: &StreamOptions) -> Result<()> {
        if options.partition_count.get() > 1 {
            return self.refuse(Operation::CreateStream, Guarantee::Partitions);
        }
        self.step(|streams, _| match streams.entry(stream.clone()) {
            Entry::Vacant(free) => {
                free.insert(Stream::default());
                Ok(())
            }
            Entry::Occupied(_) => Err(Error::AlreadyExists(Existing::Stream(stream.clone()))),
        })
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
        self.on_stream(stream, |found, now| found.append(stream, event, now))
    }

    async fn append_batch(&self, stream: &StreamName, events: Vec<NewEvent>) -> Result<Vec<Event>> {
        if events.len() > 1 {
            return self.refuse(Operation::AppendBatch, Guarantee::BatchWrites);
        }
        self.on_stream(stream, |found, now| {
            let append = |event| found.append(stream, event, now);
            events.into_iter().map(append).collect()
        })
    }

    async fn read(&self, stream: &StreamName, options: &ReadOptions) -> Result<Vec<Event>> {
        self.on_stream(stream, |stream, _| stream.read(options))
    }

    async fn query(&self, _: &StreamName, _: &Query) -> Result<Page> {
        self.refuse(Operation::Query, Guarantee::OrderedRangeScan)
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
        self.on_lease(lease, |group, now| group.renew(lease, duration, now))
    }

    async fn ack(&self, lease: &Lease) -> Result<()> {
        self.on_lease(lease, |group, _| group.ack(lease))
    }

    async fn retry(&self, lease: &Lease, options: &RetryOptions) -> Result<RetryOutcome> {
        self.on_lease(lease, |group, now| group.retry(lease, options, now))
    }

    async fn reject(&self, lease: &Lease, _reason: &Reason) -> Result<()> {
        self.on_lease(lease, |group, _| group.reject(lease))
    }

    async fn replay(&self, _: &StreamName, _: &GroupName, _: &Replay) -> Result<()> {
        self.refuse(Operation::Replay, Guarantee::Replay)
    }

    async fn reset_group(&self, _: &StreamName, _: &GroupName, _: &ResetOptions) -> Result<()> {
        self.refuse(Operation::ResetGroup, Guarantee::Replay)
    }

    async fn lag(&self, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        self.on_group(stream, group, |group, log, _| Ok(group.lag(log)))
    }
}
