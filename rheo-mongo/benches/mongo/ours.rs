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
    Contender {
        name: name.to_owned(),
        prepare: nothing(),
        step: Arc::new(move |_| {
            let (backend, stream) = (Arc::clone(&backend), stream.clone());
            Box::pin(async move {
                let partition = match target {
                    Target::Spread => Some(any_partition()),
                    Target::Hot => Some(Partition::ZERO),
                    Target::Keyed => None,
                };
                let event = |_| {
                    let mut event = new_event();
                    event.partition = partition;
                    event
                };
                let events = (0..batch).map(event).collect();
                let appended = backend.append_batch(&stream, events).await;
                appended.expect("appended");
                batch as u64
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
                leases.len() as u64
            })
        }),
    }
}
