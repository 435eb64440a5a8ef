//! What is in the server: native streams, and what the adapter keeps beside them.
//!
//! | here | as keys of a Redis |
//! |---|---|
//! | [`PartitionLog::native`] | a stream per partition |
//! | [`PartitionLog::by_sequence`] | a list per partition: sequence → native id |
//! | [`Stream::ids`] | a hash per stream: event id → native id |
//! | [`Group`] | a hash per group |
//! | [`Deliveries`] | per group and partition, a hash of claims and a sorted set of due times |
//! | [`Group::dead`] | a sorted list per group |

use std::collections::{BTreeMap, HashMap};

use rheo_core::{
    DeadLetter, Error, Event, EventId, GroupName, MaxAttempts, Partition, PartitionCount, Result,
    Sequence, StreamName,
};

use crate::deliveries::Deliveries;
use crate::error::portable;
use crate::group_partition::GroupPartition;
use crate::server::{EntryId, NativeStream, ServerError};

/// All keys of the server.
#[derive(Debug, Default)]
pub(crate) struct Keyspace {
    pub(crate) streams: BTreeMap<StreamName, Stream>,
}

impl Keyspace {
    pub(crate) fn stream(&mut self, name: &StreamName) -> Result<&mut Stream> {
        self.streams
            .get_mut(name)
            .ok_or_else(|| Error::StreamNotFound {
                stream: name.clone(),
            })
    }
}

/// A stream of Rheo: a native stream per partition.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) name: StreamName,
    pub(crate) partition_count: PartitionCount,
    pub(crate) partitions: Vec<PartitionLog>,
    /// Where each event is; also what keeps event ids unique (LOG-7).
    pub(crate) ids: HashMap<EventId, (Partition, EntryId)>,
    pub(crate) groups: BTreeMap<GroupName, Group>,
}

impl Stream {
    pub(crate) fn new(name: StreamName, partition_count: PartitionCount) -> Self {
        Self {
            name,
            partition_count,
            partitions: partition_count
                .partitions()
                .map(|_| PartitionLog::default())
                .collect(),
            ids: HashMap::new(),
            groups: BTreeMap::new(),
        }
    }

    /// One partition, which an `argument` of the call named.
    pub(crate) fn log(
        &mut self,
        argument: &str,
        partition: Partition,
    ) -> Result<&mut PartitionLog> {
        self.partition_count.check(argument, partition)?;
        Ok(&mut self.partitions[partition.number() as usize])
    }

    pub(crate) fn group(&mut self, name: &GroupName) -> Result<&mut Group> {
        self.groups
            .get_mut(name)
            .ok_or_else(|| portable(ServerError::NoGroup, &self.name, name))
    }

    /// A group in one partition: the native group with all that is kept beside it.
    pub(crate) fn group_partition<'a>(
        &'a mut self,
        name: &'a GroupName,
        partition: Partition,
    ) -> Result<GroupPartition<'a>> {
        let refused = |error| portable(error, &self.name, name);
        let group = self.groups.get_mut(name);
        let group = group.ok_or_else(|| refused(ServerError::NoGroup))?;
        self.partition_count.check("partitions", partition)?;
        let number = partition.number() as usize;
        let log = &mut self.partitions[number];
        Ok(GroupPartition {
            name,
            partition,
            max_attempts: group.max_attempts,
            by_sequence: &log.by_sequence,
            native: log.native.group(name.as_str()).map_err(refused)?,
            deliveries: &mut group.partitions[number],
            dead: &mut group.dead,
        })
    }
}

/// One partition: the native stream and the sequence of each of its entries.
#[derive(Debug, Default)]
pub(crate) struct PartitionLog {
    pub(crate) native: NativeStream<Event>,
    /// The native ids of sequences 1, 2, 3 …
    pub(crate) by_sequence: Vec<EntryId>,
}

impl PartitionLog {
    pub(crate) fn high_watermark(&self) -> Sequence {
        Sequence::try_from(self.by_sequence.len() as u64).unwrap_or(Sequence::MAX)
    }

    /// The native id of a sequence; `0-0` for 0, the last one above the high watermark.
    pub(crate) fn id_at(&self, sequence: Sequence) -> EntryId {
        let index = usize::try_from(sequence.get()).unwrap_or(usize::MAX);
        match index.min(self.by_sequence.len()) {
            0 => EntryId::ZERO,
            number => self.by_sequence[number - 1],
        }
    }

    /// The events above `after` up to and including `until`, ascending.
    pub(crate) fn events(
        &self,
        after: Sequence,
        until: Sequence,
    ) -> impl DoubleEndedIterator<Item = &Event> {
        self.native.range(self.id_at(after), self.id_at(until))
    }
}

/// A group of a stream.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) max_attempts: MaxAttempts,
    pub(crate) partitions: Vec<Deliveries>,
    /// In the order of DLQ-5.
    pub(crate) dead: BTreeMap<(Partition, EntryId), DeadLetter>,
    /// How many fetches there were.
    pub(crate) turns: u64,
}
