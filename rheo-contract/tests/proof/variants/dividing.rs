//! Variants that do in several calls, partition by partition, what others do in one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;

use rheo_core::{
    Cause, Error, Event, FetchOptions, GroupName, Lease, LeaseDuration, ListOptions, NewEvent,
    Partition, PartitionCount, Partitions, Reason, Result, RetryOptions, RetryOutcome, StreamName,
    async_trait,
};

use super::{Differing, Variant};
use crate::book::log_of;
use crate::defect::{Defect, Real};

pub(super) const ALL: &[&dyn Variant] = &[
    &Differing("AppendsByPartition", || AppendsByPartition),
    &Differing("OnePartitionAtATime", OnePartitionAtATime::default),
    &Differing("SettlesByPartition", || SettlesByPartition),
];

/// How many partitions a stream has, as the store itself knows.
async fn count_of(real: &Real, stream: &StreamName) -> Option<PartitionCount> {
    let all = ListOptions::new().with_limit(u32::MAX);
    let streams = real.store.list_streams(&all).await.ok()?;
    let info = streams.into_iter().find(|info| info.stream == *stream)?;
    Some(info.partition_count)
}

/// Once something was done, nobody may say that nothing was (ERR-1).
fn after_a_part(error: Error) -> Error {
    Error::Ambiguous(Cause::new(format!("a part was done, then: {error}")))
}

/// Writes a batch partition by partition, the last one first.
struct AppendsByPartition;

/// One at a time, so that ids are looked up once for all partitions.
#[derive(Default)]
struct Appending(tokio::sync::Mutex<()>);

#[async_trait]
impl Defect for AppendsByPartition {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let appending = real.beside.of::<Appending>();
        let _alone = appending.0.lock().await;
        let routed = match count_of(real, stream).await {
            Some(count) => events.iter().map(|event| event.route(count)).collect(),
            None => Ok(Vec::new()),
        };
        let Ok(routed) = routed else {
            return real.backend.append_batch(stream, events).await;
        };
        let several = routed.iter().collect::<BTreeSet<_>>().len() > 1;
        let mut taken: BTreeSet<_> = log_of(real, stream).await.iter().map(|e| e.id).collect();
        let clash = events
            .iter()
            .filter_map(|event| event.id)
            .any(|id| !taken.insert(id));
        if !several || clash {
            return real.backend.append_batch(stream, events).await;
        }
        let mut parts: BTreeMap<Partition, Vec<(usize, NewEvent)>> = BTreeMap::new();
        for ((at, event), partition) in events.into_iter().enumerate().zip(routed) {
            parts.entry(partition).or_default().push((at, event));
        }
        let mut appended: BTreeMap<usize, Event> = BTreeMap::new();
        for part in parts.into_values().rev() {
            let (places, part): (Vec<usize>, Vec<NewEvent>) = part.into_iter().unzip();
            match real.backend.append_batch(stream, part).await {
                Ok(part) => appended.extend(places.into_iter().zip(part)),
                Err(error) if appended.is_empty() => return Err(error),
                Err(error) => return Err(after_a_part(error)),
            }
        }
        Ok(appended.into_values().collect())
    }
}

/// Each fetch gives from one partition alone, and the next one begins with the next partition.
#[derive(Default)]
struct OnePartitionAtATime(Mutex<HashMap<(StreamName, GroupName), usize>>);

#[async_trait]
impl Defect for OnePartitionAtATime {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let count = count_of(real, stream).await;
        let partitions = count.into_iter().flat_map(|count| count.partitions());
        let selected: Vec<Partition> = partitions
            .filter(|partition| options.partitions.contains(*partition))
            .collect();
        if selected.len() < 2 {
            return real.backend.fetch(stream, group, options).await;
        }
        let first = {
            let mut turns = self.0.lock().expect("not poisoned");
            let turn = turns.entry((stream.clone(), group.clone())).or_default();
            *turn += 1;
            *turn
        };
        let mut is_first = true;
        for turn in 0..selected.len() {
            let partition = selected[(first + turn) % selected.len()];
            let one = options
                .clone()
                .with_partitions(Partitions::only([partition]));
            match real.backend.fetch(stream, group, &one).await {
                Ok(leases) if leases.is_empty() => is_first = false,
                Err(error) if !is_first => return Err(after_a_part(error)),
                fetched => return fetched,
            }
        }
        Ok(Vec::new())
    }
}

/// The leases of a batch are settled partition by partition, the last one first.
struct SettlesByPartition;

/// The leases of each partition with their places in the batch, the last partition first.
fn by_partition(leases: &[Lease]) -> Vec<(Vec<usize>, Vec<Lease>)> {
    let mut parts: BTreeMap<Partition, (Vec<usize>, Vec<Lease>)> = BTreeMap::new();
    for (at, lease) in leases.iter().enumerate() {
        let (places, part) = parts.entry(lease.event.partition).or_default();
        places.push(at);
        part.push(lease.clone());
    }
    parts.into_values().rev().collect()
}

/// Results in the order of the batch.
fn in_order<T>(mut results: Vec<(usize, Result<T>)>) -> Vec<Result<T>> {
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[async_trait]
impl Defect for SettlesByPartition {
    async fn renew_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        duration: LeaseDuration,
    ) -> Vec<Result<Lease>> {
        let mut results = Vec::new();
        for (places, part) in by_partition(leases) {
            let renewed = real.backend.renew_batch(&part, duration).await;
            results.extend(places.into_iter().zip(renewed));
        }
        in_order(results)
    }
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let mut results = Vec::new();
        for (places, part) in by_partition(leases) {
            results.extend(places.into_iter().zip(real.backend.ack_batch(&part).await));
        }
        in_order(results)
    }
    async fn retry_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        let mut results = Vec::new();
        for (places, part) in by_partition(leases) {
            let retried = real.backend.retry_batch(&part, options).await;
            results.extend(places.into_iter().zip(retried));
        }
        in_order(results)
    }
    async fn reject_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        reason: &Reason,
    ) -> Vec<Result<()>> {
        let mut results = Vec::new();
        for (places, part) in by_partition(leases) {
            let rejected = real.backend.reject_batch(&part, reason).await;
            results.extend(places.into_iter().zip(rejected));
        }
        in_order(results)
    }
}
