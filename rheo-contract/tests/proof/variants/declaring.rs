//! Variants that declare less, or smaller limits.

use rheo_core::{
    Capabilities, Event, Gate, Guarantee, Limits, Mechanism, NewEvent, OptionalOperation, Result,
    StreamName, async_trait,
};

use super::{Differing, Variant};
use crate::defect::{Defect, Real, of_a_server};
use crate::modest::Modest;

macro_rules! without {
    ($($name:ident: $missing:expr;)+) => {
        &[$(&Differing(stringify!($name), || Modest($missing)),)+ &Differing("SmallLimits", || SmallLimits)]
    };
}

pub(super) const ALL: &[&dyn Variant] = without! {
    DeclaresNothing: EVERYTHING;
    WithoutDurable: &[Gate::Guarantee(Guarantee::Durable)];
    WithoutDistributed: &[Gate::Guarantee(Guarantee::Distributed)];
    WithoutPartitions: &[Gate::Guarantee(Guarantee::Partitions)];
    WithoutContiguousFrontier: &[Gate::Guarantee(Guarantee::ContiguousFrontier)];
    WithoutReplay: &[Gate::Guarantee(Guarantee::Replay)];
    WithoutQueries: QUERIES;
    WithoutSecondaryIndexes: &[Gate::Guarantee(Guarantee::SecondaryIndexes)];
    WithoutBatchWrites: &[Gate::Guarantee(Guarantee::BatchWrites)];
    WithoutListStreams: &[Gate::Operation(OptionalOperation::ListStreams)];
    WithoutListGroups: &[Gate::Operation(OptionalOperation::ListGroups)];
    WithoutDeadLetters: &[Gate::Operation(OptionalOperation::DeadLetters)];
    WithoutGroupInfo: &[Gate::Operation(OptionalOperation::GroupInfo)];
    WithoutWaitForWork: &[Gate::Operation(OptionalOperation::WaitForWork)];
};

const QUERIES: &[Gate] = &[
    Gate::Guarantee(Guarantee::OrderedRangeScan),
    Gate::Guarantee(Guarantee::SecondaryIndexes),
];

const EVERYTHING: &[Gate] = &[
    Gate::Guarantee(Guarantee::Durable),
    Gate::Guarantee(Guarantee::Distributed),
    Gate::Guarantee(Guarantee::Partitions),
    Gate::Guarantee(Guarantee::ContiguousFrontier),
    Gate::Guarantee(Guarantee::Replay),
    Gate::Guarantee(Guarantee::OrderedRangeScan),
    Gate::Guarantee(Guarantee::SecondaryIndexes),
    Gate::Guarantee(Guarantee::BatchWrites),
    Gate::Operation(OptionalOperation::ListStreams),
    Gate::Operation(OptionalOperation::ListGroups),
    Gate::Operation(OptionalOperation::DeadLetters),
    Gate::Operation(OptionalOperation::GroupInfo),
    Gate::Operation(OptionalOperation::WaitForWork),
];

/// Its store takes documents of 16 KiB, and batches of 50 events or 64 KiB.
struct SmallLimits;

#[async_trait]
impl Defect for SmallLimits {
    fn capabilities(&self, real: &Real) -> Capabilities {
        let declared = of_a_server(&real.backend.capabilities());
        let limits = Limits::new()
            .with_json_bytes(16_384)
            .with_batch_events(50)
            .with_batch_bytes(65_536);
        Capabilities::builder()
            .guarantees(
                Guarantee::ALL
                    .iter()
                    .copied()
                    .filter(|g| declared.guarantees(*g)),
            )
            .mechanisms(Mechanism::ALL.iter().copied().filter(|m| declared.uses(*m)))
            .operations(OptionalOperation::ALL.iter().copied())
            .limits(limits)
            .build()
            .expect("a valid declaration")
    }
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        self.capabilities(real).limits().check(&events)?;
        real.backend.append_batch(stream, events).await
    }
}
