//! Streams and groups that are not there.

use rheo_core::{
    Error, ErrorKind, Event, FetchOptions, GroupInfo, GroupName, GroupOptions, Lag, Lease,
    MaxAttempts, Partition, Partitions, ReadOptions, Result, StreamName, async_trait,
};

use super::is;
use crate::defect::{Defect, Real};

fn missing_group(stream: &StreamName, group: &GroupName) -> Error {
    Error::GroupNotFound {
        stream: stream.clone(),
        group: group.clone(),
    }
}

#[derive(Default)]
pub(super) struct MissingStreamIsMissingGroup;

#[async_trait]
impl Defect for MissingStreamIsMissingGroup {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        match real.backend.fetch(stream, group, options).await {
            Err(Error::StreamNotFound { .. }) => Err(missing_group(stream, group)),
            fetched => fetched,
        }
    }
}

#[derive(Default)]
pub(super) struct MissingGroupIsMade;

#[async_trait]
impl Defect for MissingGroupIsMade {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let fetched = real.backend.fetch(stream, group, options).await;
        if !is(&fetched, ErrorKind::GroupNotFound) {
            return fetched;
        }
        let made = GroupOptions::new();
        real.backend.create_group(stream, group, &made).await?;
        real.backend.fetch(stream, group, options).await
    }
}

#[derive(Default)]
pub(super) struct MissingStreamHasOnePartition;

#[async_trait]
impl Defect for MissingStreamHasOnePartition {
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let read = real.backend.read(stream, options).await;
        if is(&read, ErrorKind::StreamNotFound) && options.partition != Partition::ZERO {
            return Err(Error::invalid("partition", options.partition, "0"));
        }
        read
    }
}

#[derive(Default)]
pub(super) struct PartitionsBeforeTheGroup;

#[async_trait]
impl Defect for PartitionsBeforeTheGroup {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let fetched = real.backend.fetch(stream, group, options).await;
        if let (Partitions::Only(selected), Err(Error::GroupNotFound { .. })) =
            (&options.partitions, &fetched)
        {
            for partition in selected {
                let read = ReadOptions::new().with_partition(*partition);
                if is(&real.backend.read(stream, &read).await, ErrorKind::Invalid) {
                    return Err(Error::invalid("partitions", partition, "fewer"));
                }
            }
        }
        fetched
    }
}

#[derive(Default)]
pub(super) struct MissingStreamReadsEmpty;

#[async_trait]
impl Defect for MissingStreamReadsEmpty {
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        match real.backend.read(stream, options).await {
            Err(Error::StreamNotFound { .. }) => Ok(Vec::new()),
            read => read,
        }
    }
}

#[derive(Default)]
pub(super) struct MissingGroupHasNoLag;

#[async_trait]
impl Defect for MissingGroupHasNoLag {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        match real.backend.lag(stream, group).await {
            Err(Error::GroupNotFound { .. }) => Ok(Lag::default()),
            lag => lag,
        }
    }
}

#[derive(Default)]
pub(super) struct MissingGroupHasZeros;

#[async_trait]
impl Defect for MissingGroupHasZeros {
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        match real.backend.group_info(stream, group).await {
            Err(Error::GroupNotFound { .. }) => Ok(GroupInfo {
                stream: stream.clone(),
                group: group.clone(),
                max_attempts: MaxAttempts::default(),
                leased: 0,
                dead_letters: 0,
                lag: Lag::default(),
            }),
            info => info,
        }
    }
}
