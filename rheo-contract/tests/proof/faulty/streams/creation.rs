//! Streams that are made otherwise than they were asked for.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rheo_core::{
    Error, Event, PartitionCount, ReadOptions, Result, StreamName, StreamOptions, async_trait,
};

use crate::defect::{Defect, Real};

fn of(count: u32) -> StreamOptions {
    let count = count.min(PartitionCount::MAX);
    StreamOptions::new().with_partition_count(PartitionCount::new(count).expect("allowed"))
}

#[derive(Default)]
pub(super) struct OnePartitionMore;

#[async_trait]
impl Defect for OnePartitionMore {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let options = of(options.partition_count.get() + 1);
        real.backend.create_stream(stream, &options).await
    }
}

#[derive(Default)]
pub(super) struct DefaultIsFourPartitions;

#[async_trait]
impl Defect for DefaultIsFourPartitions {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let count = options.partition_count.get();
        let options = of(if count == 1 { 4 } else { count });
        real.backend.create_stream(stream, &options).await
    }
}

#[derive(Default)]
pub(super) struct PartitionsFitAByte;

#[async_trait]
impl Defect for PartitionsFitAByte {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let options = of(options.partition_count.get().min(256));
        real.backend.create_stream(stream, &options).await
    }
}

#[derive(Default)]
pub(super) struct StreamsAreUpserted;

#[async_trait]
impl Defect for StreamsAreUpserted {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        match real.backend.create_stream(stream, options).await {
            Err(Error::AlreadyExists(_)) => Ok(()),
            created => created,
        }
    }
}

#[derive(Default)]
pub(super) struct DuplicateStreamEmptiesTheLog(AtomicBool);

#[async_trait]
impl Defect for DuplicateStreamEmptiesTheLog {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let created = real.backend.create_stream(stream, options).await;
        if let Err(Error::AlreadyExists(_)) = created {
            self.0.store(true, Ordering::SeqCst);
        }
        created
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        if self.0.load(Ordering::SeqCst) {
            events.clear();
        }
        Ok(events)
    }
}

#[derive(Default)]
pub(super) struct DuplicateStreamChangesPartitions(Mutex<HashMap<StreamName, u32>>);

#[async_trait]
impl Defect for DuplicateStreamChangesPartitions {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let created = real.backend.create_stream(stream, options).await;
        if let Err(Error::AlreadyExists(_)) = created {
            let mut counts = self.0.lock().expect("not poisoned");
            counts.insert(stream.clone(), options.partition_count.get());
        }
        created
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let count = self.0.lock().expect("not poisoned").get(stream).copied();
        match real.backend.read(stream, options).await {
            Err(Error::Invalid(_)) if count > Some(options.partition.number()) => Ok(Vec::new()),
            read => read,
        }
    }
}
