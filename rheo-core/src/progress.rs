//! A group's progress: frontier and lag, and how to go back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{EventId, Partition, Partitions, Sequence, Start};

/// A group's progress in every partition of its stream, ascending by partition (FRN-4).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lag {
    /// One entry per partition.
    pub partitions: Vec<PartitionLag>,
}

impl Lag {
    /// The lag of all partitions together.
    pub fn total(&self) -> u64 {
        self.partitions.iter().map(PartitionLag::lag).sum()
    }

    /// The progress in one partition.
    pub fn partition(&self, partition: Partition) -> Option<&PartitionLag> {
        self.partitions.iter().find(|p| p.partition == partition)
    }
}

/// A group's progress in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionLag {
    /// Which partition.
    pub partition: Partition,
    /// The highest sequence such that every one from 1 through it is acked, dead, or at or below the
    /// group's start and not reopened by a replay.
    pub frontier: Sequence,
    /// The partition's last sequence.
    pub high_watermark: Sequence,
}

impl PartitionLag {
    /// How far the frontier is behind the high watermark.
    pub fn lag(&self) -> u64 {
        self.high_watermark
            .get()
            .saturating_sub(self.frontier.get())
    }
}

/// What `replay` shall reopen (RPL-1, RPL-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// Everything after this sequence in the selected partitions.
    After {
        /// Exclusive.
        sequence: Sequence,
        /// In which partitions.
        partitions: Partitions,
    },
    /// Everything after these sequences; partitions that are not named stay as they are.
    AfterEach(BTreeMap<Partition, Sequence>),
    /// Just these events.
    Events(Vec<EventId>),
}

impl Replay {
    /// Everything after `sequence` in all partitions.
    pub fn after(sequence: Sequence) -> Self {
        Self::After {
            sequence,
            partitions: Partitions::All,
        }
    }
}

/// What `reset_group` shall do (RPL-5).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ResetOptions {
    /// Where the group starts again; default the beginning.
    pub start: Start,
    /// In which partitions; default all.
    pub partitions: Partitions,
}

impl ResetOptions {
    /// Everything, from the beginning.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starting there.
    #[must_use]
    pub fn with_start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Just in these partitions.
    #[must_use]
    pub fn with_partitions(mut self, partitions: impl Into<Partitions>) -> Self {
        self.partitions = partitions.into();
        self
    }
}

/// Whether the caller of `reset_group` means it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirm {
    /// Drop the group's delivery state.
    Yes,
    /// Do nothing: [`Error::ConfirmRequired`](crate::Error::ConfirmRequired).
    No,
}

/// Why `wait_for_work` returned; a hint, never needed for correctness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wakeup {
    /// Something might be claimable.
    MaybeWork,
    /// The time was up.
    TimedOut,
}
