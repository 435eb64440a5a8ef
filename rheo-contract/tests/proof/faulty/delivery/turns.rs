//! Partitions that starve.

use std::sync::Mutex;

use rheo_core::{
    FetchOptions, GroupName, Lease, Partition, Partitions, Result, RetryOptions, StreamName,
    async_trait,
};

use super::logs;
use super::{fetch_each, partitions};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::lock;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        LowestPartitionFirst: "a fetch begins with the lowest partition each time",
        says: "the partitions served by",
        kills: [
            "delivery::DLV-5::every_partition_is_served",
            "delivery::DLV-5::a_busy_partition_starves_no_other",
            "delivery::DLV-5::a_retried_event_starves_no_other_partition",
            "delivery::DLV-5::every_selected_partition_is_served",
        ],
    },
    faulty! {
        FullestPartitionFirst: "a fetch begins with the partition that has the most events",
        says: "the partitions served by",
        kills: ["delivery::DLV-5::a_busy_partition_starves_no_other"],
    },
    faulty! {
        RetriesComeFirst: "a fetch begins with the partition that has retried events",
        says: "the partitions served by",
        kills: ["delivery::DLV-5::a_retried_event_starves_no_other_partition"],
    },
    faulty! {
        LowestSelectedPartitionFirst: "a fetch from some partitions begins with the lowest of them",
        says: "the partitions served by",
        kills: ["delivery::DLV-5::every_selected_partition_is_served"],
    },
];

#[derive(Default)]
struct LowestPartitionFirst;

#[async_trait]
impl Defect for LowestPartitionFirst {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let order = partitions(real, stream).await;
        fetch_each(real, (stream, group), options, order, false).await
    }
}

#[derive(Default)]
struct FullestPartitionFirst;

#[async_trait]
impl Defect for FullestPartitionFirst {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut logs: Vec<_> = logs(real, stream).await.into_iter().collect();
        let (most, least) = (
            logs.iter().map(|(_, events)| events.len()).max(),
            logs.iter().map(|(_, events)| events.len()).min(),
        );
        if most == least {
            return real.backend.fetch(stream, group, options).await;
        }
        logs.sort_by_key(|(_, events)| std::cmp::Reverse(events.len()));
        let order = logs.into_iter().map(|(partition, _)| partition);
        fetch_each(
            real,
            (stream, group),
            options,
            order.collect::<Vec<_>>(),
            false,
        )
        .await
    }
}

#[derive(Default)]
struct RetriesComeFirst(Mutex<Vec<Partition>>);

#[async_trait]
impl Defect for RetriesComeFirst {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<rheo_core::RetryOutcome> {
        lock(&self.0).push(lease.event.partition);
        real.backend.retry(lease, options).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let retried = lock(&self.0).first().copied();
        let Some(retried) = retried else {
            return real.backend.fetch(stream, group, options).await;
        };
        let mut order = partitions(real, stream).await;
        order.sort_by_key(|partition| *partition != retried);
        fetch_each(real, (stream, group), options, order, false).await
    }
}

#[derive(Default)]
struct LowestSelectedPartitionFirst;

#[async_trait]
impl Defect for LowestSelectedPartitionFirst {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        if options.partitions == Partitions::All {
            return real.backend.fetch(stream, group, options).await;
        }
        let order = partitions(real, stream).await;
        fetch_each(real, (stream, group), options, order, false).await
    }
}
