//! This crate's backend as a contender.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rheo_core::{
    Backend, ConsumerId, FetchOptions, GroupName, LeaseDuration, Partition, Replay, Sequence,
    StreamName,
};
use rheo_mongo::MongoBackend;

use crate::bed::{any_partition, new_event};
use crate::measure::{Contender, nothing};

/// Where batches go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// Each to a partition of its own.
    Spread,
    /// All to one.
    Hot,
    /// Each event to the partition of its key.
    Keyed,
}

pub(crate) fn append(
    name: &str,
    backend: &Arc<MongoBackend>,
    stream: &StreamName,
    batch: usize,
    target: Target,
) -> Contender {
    let (backend, stream) = (Arc::clone(backend), stream.clone());
    // What an application puts into an event costs the same everywhere, and is not measured.
    let events: Arc<Vec<_>> = Arc::new((0..batch).map(|_| new_event()).collect());
    Contender {
        name: name.to_owned(),
        prepare: nothing(),
        step: Arc::new(move |_| {
            let (backend, stream) = (Arc::clone(&backend), stream.clone());
            let partition = match target {
                Target::Spread => Some(any_partition()),
                Target::Hot => Some(Partition::ZERO),
                Target::Keyed => None,
            };
            let events = events.iter().cloned().map(move |mut event| {
                event.partition = partition;
                event
            });
            let events = events.collect();
            Box::pin(async move {
                let appended = backend.append_batch(&stream, events).await;
                appended.expect("appended");
                Some(batch as u64)
            })
        }),
    }
}

/// Fetches and acks the events of a stream above `history` in each partition.
pub(crate) fn consume(
    name: &str,
    backend: &Arc<MongoBackend>,
    (stream, group): &(StreamName, GroupName),
    history: u64,
    limit: u32,
) -> Contender {
    let (backend, stream, group) = (Arc::clone(backend), stream.clone(), group.clone());
    let prepare = {
        let (backend, stream, group) = (Arc::clone(&backend), stream.clone(), group.clone());
        Box::new(move || -> BoxFuture<'static, ()> {
            let (backend, stream, group) = (Arc::clone(&backend), stream.clone(), group.clone());
            Box::pin(async move {
                let after = Replay::after(Sequence::new(history).expect("in range"));
                let replayed = backend.replay(&stream, &group, &after).await;
                replayed.expect("replayed");
            })
        })
    };
    let minutes = LeaseDuration::new(Duration::from_secs(600)).expect("allowed");
    let options = FetchOptions::new(ConsumerId::new("bench").expect("allowed"))
        .with_limit(limit)
        .with_lease_duration(minutes);
    Contender {
        name: name.to_owned(),
        prepare,
        step: Arc::new(move |_| {
            let (backend, stream, group) = (Arc::clone(&backend), stream.clone(), group.clone());
            let options = options.clone();
            Box::pin(async move {
                let leases = backend.fetch(&stream, &group, &options).await;
                let leases = leases.expect("fetched");
                for result in backend.ack_batch(&leases).await {
                    result.expect("acked");
                }
                (!leases.is_empty()).then_some(leases.len() as u64)
            })
        }),
    }
}
