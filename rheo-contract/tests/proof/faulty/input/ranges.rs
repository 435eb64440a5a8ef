//! Partitions out of range that are taken, or noticed too late.

use std::collections::BTreeMap;

use rheo_core::{
    Error, ErrorKind, Event, FetchOptions, GroupName, GroupOptions, Lease, NewEvent, Page,
    Partition, Partitions, Query, ReadOptions, Replay, ResetOptions, Result, Sequence, Start,
    StreamName, async_trait,
};

use super::is;
use crate::defect::{Defect, Real};

#[derive(Default)]
pub(super) struct PartitionModuloCount;

#[async_trait]
impl Defect for PartitionModuloCount {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let appended = real.backend.append_batch(stream, events.clone()).await;
        if !is(&appended, ErrorKind::Invalid) {
            return appended;
        }
        for event in &mut events {
            event.partition = Some(Partition::ZERO);
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
pub(super) struct BatchIsWrittenUntilTheBadOne;

#[async_trait]
impl Defect for BatchIsWrittenUntilTheBadOne {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let appended = real.backend.append_batch(stream, events.clone()).await;
        if is(&appended, ErrorKind::Invalid) {
            for event in events {
                real.backend.append(stream, event).await?;
            }
        }
        appended
    }
}

#[derive(Default)]
pub(super) struct ReadOutOfRangeIsEmpty;

#[async_trait]
impl Defect for ReadOutOfRangeIsEmpty {
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        match real.backend.read(stream, options).await {
            Err(Error::Invalid(_)) => Ok(Vec::new()),
            read => read,
        }
    }
}

#[derive(Default)]
pub(super) struct QueryOutOfRangeIsEmpty;

#[async_trait]
impl Defect for QueryOutOfRangeIsEmpty {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        match real.backend.query(stream, query).await {
            Err(Error::Invalid(invalid)) if invalid.argument == "partition" => Ok(Page::default()),
            queried => queried,
        }
    }
}

#[derive(Default)]
pub(super) struct FetchLeavesUnknownPartitionsOut;

#[async_trait]
impl Defect for FetchLeavesUnknownPartitionsOut {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        match real.backend.fetch(stream, group, options).await {
            Err(Error::Invalid(_)) => Ok(Vec::new()),
            fetched => fetched,
        }
    }
}

#[derive(Default)]
pub(super) struct FetchClaimsBeforeItChecks;

#[async_trait]
impl Defect for FetchClaimsBeforeItChecks {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let fetched = real.backend.fetch(stream, group, options).await;
        if is(&fetched, ErrorKind::Invalid) && options.partitions.contains(Partition::ZERO) {
            let first = options.clone().with_partitions(Partition::ZERO);
            real.backend.fetch(stream, group, &first).await?;
        }
        fetched
    }
}

#[derive(Default)]
pub(super) struct GroupStartLeavesUnknownPartitionsOut;

#[async_trait]
impl Defect for GroupStartLeavesUnknownPartitionsOut {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let mut options = options.clone();
        if let Start::AfterSequences(sequences) = &mut options.start {
            let mut known = BTreeMap::new();
            for (partition, sequence) in &*sequences {
                let read = ReadOptions::new().with_partition(*partition);
                if real.backend.read(stream, &read).await.is_ok() {
                    known.insert(*partition, *sequence);
                }
            }
            *sequences = known;
        }
        real.backend.create_group(stream, group, &options).await
    }
}

#[derive(Default)]
pub(super) struct InvalidNamesAnotherArgument;

#[async_trait]
impl Defect for InvalidNamesAnotherArgument {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let mut made = real.backend.create_group(stream, group, options).await;
        if let Err(Error::Invalid(invalid)) = &mut made {
            invalid.argument = "partition".to_owned();
        }
        made
    }
}

#[derive(Default)]
pub(super) struct ReplaysUntilTheBadPartition;

#[async_trait]
impl Defect for ReplaysUntilTheBadPartition {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let replayed = real.backend.replay(stream, group, replay).await;
        if is(&replayed, ErrorKind::Invalid) && !matches!(replay, Replay::Events(_)) {
            let first = Replay::After {
                sequence: Sequence::ZERO,
                partitions: Partition::ZERO.into(),
            };
            real.backend.replay(stream, group, &first).await?;
        }
        replayed
    }
}

#[derive(Default)]
pub(super) struct ResetsUntilTheBadPartition;

#[async_trait]
impl Defect for ResetsUntilTheBadPartition {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let reset = real.backend.reset_group(stream, group, options).await;
        if is(&reset, ErrorKind::Invalid) && options.partitions != Partitions::All {
            let first = ResetOptions::new().with_partitions(Partition::ZERO);
            real.backend.reset_group(stream, group, &first).await?;
        }
        reset
    }
}
