//! Calls that have nothing to do and check nothing.

use rheo_core::{
    ErrorKind, Event, FetchOptions, GroupName, Lease, Page, Partitions, Query, ReadOptions,
    ResetOptions, Result, StreamName, async_trait,
};

use super::is;
use crate::defect::{Defect, Real};

#[derive(Default)]
pub(super) struct NoPartitionsReturnEarly;

#[async_trait]
impl Defect for NoPartitionsReturnEarly {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        real.backend.ping().await?;
        if options.partitions == Partitions::only([]) {
            return Ok(Vec::new());
        }
        real.backend.fetch(stream, group, options).await
    }
}

#[derive(Default)]
pub(super) struct DeadLettersOfNoneCheckNoCursor;

#[async_trait]
impl Defect for DeadLettersOfNoneCheckNoCursor {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &rheo_core::DeadLetterOptions,
    ) -> Result<Vec<rheo_core::DeadLetter>> {
        let dead = real.backend.dead_letters(stream, group, options).await;
        if options.limit == 0 && is(&dead, ErrorKind::CursorNotFound) {
            return Ok(Vec::new());
        }
        dead
    }
}

#[derive(Default)]
pub(super) struct ResetOfNoneReturnsEarly;

#[async_trait]
impl Defect for ResetOfNoneReturnsEarly {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.ping().await?;
        if options.partitions == Partitions::only([]) {
            return Ok(());
        }
        real.backend.reset_group(stream, group, options).await
    }
}

#[derive(Default)]
pub(super) struct ReadOfNoneChecksNoPartition;

#[async_trait]
impl Defect for ReadOfNoneChecksNoPartition {
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let read = real.backend.read(stream, options).await;
        if options.limit == 0 && is(&read, ErrorKind::Invalid) {
            return Ok(Vec::new());
        }
        read
    }
}

#[derive(Default)]
pub(super) struct QueryOfNoneChecksNothing;

#[async_trait]
impl Defect for QueryOfNoneChecksNothing {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let queried = real.backend.query(stream, query).await;
        if query.limit() == 0 && is(&queried, ErrorKind::Invalid) {
            return Ok(Page::default());
        }
        queried
    }
}
