//! A group's progress: making a group, lag, and going back.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use mongodb::bson::doc;
use rheo_core::{
    Error, EventId, Existing, GroupName, GroupOptions, Lag, Partition, PartitionLag, Partitions,
    Replay, ResetOptions, Result, Sequence, Start, StreamName,
};
use tokio::time::Instant;

use crate::apply::Op;
use crate::change::{Changes, Place};
use crate::error::ambiguous;
use crate::log::AT_ONCE;
use crate::store::{Group, Store, Stream, group_key, new_id};

impl Store {
    /// Makes a group: one document, which says where it starts. Its states are written when they are
    /// first changed.
    pub(crate) async fn create_group(
        &self,
        stream: &StreamName,
        name: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let deadline = self.deadline();
        let stream = self.stream(deadline, stream).await?;
        let starts = self
            .starts(deadline, &stream, &options.start, &Partitions::All)
            .await?;
        let group = doc! {
            "_id": group_key(&stream, name.as_str()),
            "stream": &*stream.id,
            "name": name.as_str(),
            "group": new_id(),
            "max_attempts": i64::from(options.max_attempts.get()),
            "starts": starts.values().map(|start| start.as_i64()).collect::<Vec<_>>(),
        };
        match self
            .insert_first(deadline, &self.groups, &group, "group")
            .await?
        {
            true => Ok(()),
            false => Err(Error::AlreadyExists(Existing::Group(name.clone()))),
        }
    }

    /// Where a start is in each of the selected partitions.
    async fn starts(
        &self,
        deadline: Instant,
        stream: &Stream,
        start: &Start,
        partitions: &Partitions,
    ) -> Result<BTreeMap<Partition, Sequence>> {
        let selected = partitions.resolve(stream.count)?;
        start.check(stream.count, partitions)?;
        let heads = match start {
            Start::Beginning => BTreeMap::new(),
            _ => self.high_watermarks(deadline, stream, &selected).await?,
        };
        let firsts: BTreeMap<Partition, Option<Sequence>> = match start {
            Start::AtTime(time) => {
                let each = stream::iter(selected.iter().copied()).map(|partition| async move {
                    let first = self.first_at(deadline, stream, partition, *time).await?;
                    Ok::<_, Error>((partition, first))
                });
                each.buffer_unordered(AT_ONCE).try_collect().await?
            }
            _ => BTreeMap::new(),
        };
        let resolve = |partition: Partition| {
            let head = heads.get(&partition).copied().unwrap_or_default();
            let first = firsts.get(&partition).copied().flatten();
            // What was appended after the heads were read is behind the end.
            let first = first.filter(|first| *first <= head);
            Ok((partition, start.resolve(partition, head, |_| first)?))
        };
        selected.into_iter().map(resolve).collect()
    }

    /// Frontier and high watermark in every partition (FRN-4).
    pub(crate) async fn lag(&self, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let deadline = self.deadline();
        let (stream, group) = self.group(deadline, stream, group).await?;
        let all: Vec<Partition> = stream.count.partitions().collect();
        let records = self.records(deadline, &group, &all).await?;
        let frontiers = records
            .iter()
            .map(|(partition, record)| (*partition, record.state.frontier()));
        self.lag_of(deadline, &stream, frontiers.collect()).await
    }

    /// The high watermarks are read after the frontiers, so that no frontier is beyond.
    pub(crate) async fn lag_of(
        &self,
        deadline: Instant,
        stream: &Stream,
        frontiers: BTreeMap<Partition, Sequence>,
    ) -> Result<Lag> {
        let all: Vec<Partition> = frontiers.keys().copied().collect();
        let heads = self.high_watermarks(deadline, stream, &all).await?;
        let of = |(partition, frontier): (Partition, Sequence)| PartitionLag {
            partition,
            frontier,
            high_watermark: heads.get(&partition).copied().unwrap_or_default(),
        };
        Ok(Lag {
            partitions: frontiers.into_iter().map(of).collect(),
        })
    }
}

impl Changes {
    /// Makes delivered events claimable again; all is checked before anything is done.
    pub(crate) async fn replay(
        self: &Arc<Self>,
        store: &Arc<Store>,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let deadline = store.deadline();
        let (stream, group) = store.group(deadline, stream, group).await?;
        let ops = match replay {
            Replay::After {
                sequence,
                partitions,
            } => {
                let selected = partitions.resolve(stream.count)?.into_iter();
                selected.map(|p| (p, Op::ReplayAfter(*sequence))).collect()
            }
            Replay::AfterEach(each) => {
                let named = Partitions::only(each.keys().copied());
                named.resolve(stream.count)?;
                let each = each.iter();
                each.map(|(p, sequence)| (*p, Op::ReplayAfter(*sequence)))
                    .collect()
            }
            Replay::Events(ids) => events(store, deadline, &stream, ids).await?,
        };
        self.go_back(store, deadline, stream, group, ops).await
    }

    /// Starts again in the selected partitions (RPL-5).
    pub(crate) async fn reset(
        self: &Arc<Self>,
        store: &Arc<Store>,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let deadline = store.deadline();
        let (stream, group) = store.group(deadline, stream, group).await?;
        let starts = store
            .starts(deadline, &stream, &options.start, &options.partitions)
            .await?;
        let ops = starts.into_iter().map(|(p, start)| (p, Op::Reset(start)));
        let ops = ops.collect();
        self.go_back(store, deadline, stream, group, ops).await
    }

    /// Changes each state by itself: that no lease from before settles anything after holds for each,
    /// and so for all once this is over. It goes on when the caller goes away (CAN-1).
    async fn go_back(
        self: &Arc<Self>,
        store: &Arc<Store>,
        deadline: Instant,
        stream: Stream,
        group: Group,
        ops: Vec<(Partition, Op)>,
    ) -> Result<()> {
        if ops.is_empty() {
            // Nothing to do; but whether the store is reached comes first (ERR-6).
            return store.ping(deadline).await;
        }
        let (changes, store) = (Arc::clone(self), Arc::clone(store));
        let all = async move {
            let each = stream::iter(ops).map(|(partition, op)| {
                let place = Place {
                    stream: stream.clone(),
                    group: group.clone(),
                    partition,
                };
                changes.ask(&store, place, op, deadline)
            });
            each.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await
        };
        let results = tokio::spawn(all).await;
        let results = results.map_err(|_| ambiguous("the task that went back was stopped"))?;
        let total = results.len();
        let mut errors: Vec<Error> = results.into_iter().filter_map(Result::err).collect();
        match errors.pop() {
            None => Ok(()),
            Some(error) if errors.len() + 1 == total && errors.iter().all(is_definite) => {
                Err(error)
            }
            Some(_) => Err(ambiguous("some partitions went back, others may not have")),
        }
    }
}

fn is_definite(error: &Error) -> bool {
    !matches!(error, Error::Ambiguous(_))
}

/// More chosen events of a partition than this are reopened by several writes.
const MOST_AT_ONCE: usize = 10_000;

/// The replay of events that must be in the stream, by partition.
async fn events(
    store: &Store,
    deadline: Instant,
    stream: &Stream,
    ids: &[EventId],
) -> Result<Vec<(Partition, Op)>> {
    let places = store.places(deadline, stream, ids).await?;
    let mut of_partitions: BTreeMap<Partition, Vec<Sequence>> = BTreeMap::new();
    for id in ids {
        let Some((partition, sequence)) = places.get(id) else {
            return Err(Error::invalid(
                "events",
                id,
                "ids of events that are in the stream",
            ));
        };
        of_partitions.entry(*partition).or_default().push(*sequence);
    }
    let mut ops = Vec::new();
    for (partition, mut sequences) in of_partitions {
        sequences.sort_unstable();
        sequences.dedup();
        let parts = sequences.chunks(MOST_AT_ONCE);
        ops.extend(parts.map(|part| (partition, Op::ReplayEvents(part.to_vec()))));
    }
    Ok(ops)
}
