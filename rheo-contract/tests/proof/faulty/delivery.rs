//! Defects that the cases of `delivery` are there for.

mod claims;
mod exclusion;
mod groups;
mod limits;
mod missing;
mod order;
mod starts;
mod turns;

use std::collections::BTreeMap;

use rheo_core::{
    Event, FetchOptions, GroupName, Lease, Partition, ReadOptions, Result, Sequence, StreamName,
};

use super::Faulty;
use crate::defect::Real;

pub(super) const FAULTY: &[&[Faulty]] = &[
    groups::FAULTY,
    starts::FAULTY,
    limits::FAULTY,
    order::FAULTY,
    turns::FAULTY,
    missing::FAULTY,
    exclusion::FAULTY,
    claims::FAULTY,
];

/// An event of a stream, whoever is given it.
type Spot = (StreamName, Partition, Sequence);

fn spot(event: &Event) -> Spot {
    (event.stream.clone(), event.partition, event.sequence)
}

/// One fetch for each selected partition, in that order, with that limit.
async fn fetch_each(
    real: &Real,
    (stream, group): (&StreamName, &GroupName),
    options: &FetchOptions,
    order: impl IntoIterator<Item = Partition>,
    limit_is_of_each: bool,
) -> Result<Vec<Lease>> {
    // Whatever is wrong with the request is found out here.
    let none = options.clone().with_limit(0);
    let mut leases = real.backend.fetch(stream, group, &none).await?;
    for partition in order {
        let mut options = options.clone();
        if !options.partitions.contains(partition) {
            continue;
        }
        if !limit_is_of_each {
            let so_far = u32::try_from(leases.len()).unwrap_or(u32::MAX);
            options.limit = options.limit.saturating_sub(so_far);
        }
        let options = options.with_partitions(partition);
        leases.extend(real.backend.fetch(stream, group, &options).await?);
    }
    Ok(leases)
}

/// The partitions of a stream, ascending.
async fn partitions(real: &Real, stream: &StreamName) -> Vec<Partition> {
    logs(real, stream).await.into_keys().collect()
}

/// All events of a stream, by partition.
async fn logs(real: &Real, stream: &StreamName) -> BTreeMap<Partition, Vec<Event>> {
    let mut logs = BTreeMap::new();
    for partition in (0..1_024).map(Partition::new) {
        let options = ReadOptions::new()
            .with_partition(partition)
            .with_limit(u32::MAX);
        match real.backend.read(stream, &options).await {
            Ok(events) => logs.insert(partition, events),
            Err(_) => break,
        };
    }
    logs
}
