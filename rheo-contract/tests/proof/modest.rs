//! A backend that lacks something and refuses whatever needs it: right, and a base to spoil.

use std::time::Duration;

use rheo_core::{
    Capabilities, DeadLetter, DeadLetterOptions, Error, Event, Gate, GroupInfo, GroupName,
    Guarantee, Lag, ListOptions, Mechanism, NewEvent, Operation, OptionalOperation, Page, Query,
    Replay, ResetOptions, Result, StreamInfo, StreamName, StreamOptions, Wakeup, async_trait,
};

use crate::defect::{Defect, Real, of_a_server};

/// The declaration of a server without some guarantees and operations.
pub(crate) fn lacking(real: &Real, missing: &[Gate]) -> Capabilities {
    let declared = of_a_server(&real.backend.capabilities());
    let guarantees = Guarantee::ALL.iter().copied().filter(|guarantee| {
        declared.guarantees(*guarantee) && !missing.contains(&Gate::Guarantee(*guarantee))
    });
    let operations = OptionalOperation::ALL
        .iter()
        .copied()
        .filter(|operation| !missing.contains(&Gate::Operation(*operation)));
    Capabilities::builder()
        .guarantees(guarantees)
        .mechanisms(Mechanism::ALL.iter().copied().filter(|m| declared.uses(*m)))
        .operations(operations)
        .limits(*declared.limits())
        .build()
        .expect("secondary_indexes is left out with ordered_range_scan")
}

/// Lacks these.
pub(crate) struct Modest(pub(crate) &'static [Gate]);

impl Modest {
    /// Refuses what needs something that is lacking, once it is known that the store is there.
    async fn need(&self, real: &Real, operation: Operation, gate: Gate) -> Result<()> {
        real.backend.ping().await?;
        if self.0.contains(&gate) {
            return Err(unsupported(operation, gate));
        }
        Ok(())
    }

    async fn offer(&self, real: &Real, optional: OptionalOperation) -> Result<()> {
        let gate = Gate::Operation(optional);
        self.need(real, optional.operation(), gate).await
    }
}

pub(crate) fn unsupported(operation: Operation, gate: Gate) -> Error {
    Error::Unsupported {
        operation,
        missing: gate.as_str().into(),
    }
}

#[async_trait]
impl Defect for Modest {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, self.0)
    }

    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        if options.partition_count.get() > 1 {
            let gate = Gate::Guarantee(Guarantee::Partitions);
            self.need(real, Operation::CreateStream, gate).await?;
        }
        real.backend.create_stream(stream, options).await
    }

    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        if events.len() > 1 {
            let gate = Gate::Guarantee(Guarantee::BatchWrites);
            self.need(real, Operation::AppendBatch, gate).await?;
        }
        real.backend.append_batch(stream, events).await
    }

    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let gate = Gate::Guarantee(Guarantee::OrderedRangeScan);
        self.need(real, Operation::Query, gate).await?;
        if query.needs_secondary_indexes() {
            let gate = Gate::Guarantee(Guarantee::SecondaryIndexes);
            self.need(real, Operation::Query, gate).await?;
        }
        real.backend.query(stream, query).await
    }

    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let gate = Gate::Guarantee(Guarantee::Replay);
        self.need(real, Operation::Replay, gate).await?;
        real.backend.replay(stream, group, replay).await
    }

    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let gate = Gate::Guarantee(Guarantee::Replay);
        self.need(real, Operation::ResetGroup, gate).await?;
        real.backend.reset_group(stream, group, options).await
    }

    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let gate = Gate::Guarantee(Guarantee::ContiguousFrontier);
        self.need(real, Operation::Lag, gate).await?;
        real.backend.lag(stream, group).await
    }

    async fn list_streams(
        &self,
        real: &Real,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        self.offer(real, OptionalOperation::ListStreams).await?;
        real.backend.list_streams(options).await
    }

    async fn list_groups(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        self.offer(real, OptionalOperation::ListGroups).await?;
        real.backend.list_groups(stream, options).await
    }

    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        self.offer(real, OptionalOperation::DeadLetters).await?;
        real.backend.dead_letters(stream, group, options).await
    }

    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        self.offer(real, OptionalOperation::GroupInfo).await?;
        let mut info = real.backend.group_info(stream, group).await?;
        if self
            .0
            .contains(&Gate::Guarantee(Guarantee::ContiguousFrontier))
        {
            info.lag = Lag::default();
        }
        Ok(info)
    }

    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        self.offer(real, OptionalOperation::WaitForWork).await?;
        real.backend.wait_for_work(stream, group, timeout).await
    }
}
