//! Starts beyond the end.

use rheo_core::{
    Error, ErrorKind, GroupName, GroupOptions, ReadOptions, ResetOptions, Result, Start,
    StreamName, async_trait,
};

use super::is;
use crate::defect::{Defect, Real};

#[derive(Default)]
pub(super) struct StartBeyondIsTheEnd;

#[async_trait]
impl Defect for StartBeyondIsTheEnd {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let made = real.backend.create_group(stream, group, options).await;
        if is(&made, ErrorKind::Invalid) && matches!(options.start, Start::AfterSequence(_)) {
            let end = options.clone().with_start(Start::End);
            return real.backend.create_group(stream, group, &end).await;
        }
        made
    }
}

#[derive(Default)]
pub(super) struct StartIsComparedWithPartitionZero;

#[async_trait]
impl Defect for StartIsComparedWithPartitionZero {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let made = real.backend.create_group(stream, group, options).await;
        if let (Start::AfterSequence(start), Err(Error::Invalid(_))) = (&options.start, &made) {
            let last = ReadOptions::new().with_after(start.previous());
            if !real.backend.read(stream, &last).await?.is_empty() {
                let end = options.clone().with_start(Start::End);
                return real.backend.create_group(stream, group, &end).await;
            }
        }
        made
    }
}

#[derive(Default)]
pub(super) struct ResetDropsBeforeItLooksAtTheStart;

#[async_trait]
impl Defect for ResetDropsBeforeItLooksAtTheStart {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let reset = real.backend.reset_group(stream, group, options).await;
        if is(&reset, ErrorKind::Invalid) && matches!(options.start, Start::AfterSequence(_)) {
            let dropped = ResetOptions::new();
            real.backend.reset_group(stream, group, &dropped).await?;
        }
        reset
    }
}
