//! Claiming events for a consumer: which partitions, in which order.
//!
//! A fetch takes partitions from a queue that all fetches of a handle share for a group. When the queue
//! is empty, a *survey* fills it with those partitions that have something claimable, so that each is
//! served once before any is served twice (DLV-5). A survey is two commands, however many partitions
//! there are: one reads all states, one asks for the batch after each cursor by its key.
//!
//! What is done in a partition is in [`change`](crate::change): the batches after the cursor are read,
//! and one write moves the cursor and records the claims.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mongodb::bson::doc;
use rheo_core::{FetchOptions, GroupName, Lease, Partition, Result, Sequence, StreamName};
use tokio::time::Instant;

use crate::apply::Op;
use crate::batch::key;
use crate::change::{Changes, Done, Place};
use crate::store::{Group, Store, Stream};

/// A fetch gives no more than this, whatever its limit: what it gives has to arrive in time.
const MOST: u64 = 10_000;

/// When others took what a survey found, another is made; but no more than this, while others take all.
const MOST_SURVEYS: u32 = 10;

/// The queues are forgotten when there are more than this.
const MOST_QUEUES: usize = 1_000;

/// Partitions to be served, by group and selection.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<Selection, VecDeque<Partition>>>);

type Selection = (Arc<str>, Vec<Partition>);

impl Turns {
    fn next(&self, selection: &Selection) -> Option<Partition> {
        self.lock().get_mut(selection)?.pop_front()
    }

    /// In any order, so that the handles do not all go for the same partition.
    fn fill(&self, selection: &Selection, mut partitions: Vec<Partition>) {
        fastrand::shuffle(&mut partitions);
        let mut queues = self.lock();
        if queues.len() >= MOST_QUEUES {
            queues.clear();
        }
        let queue = queues.entry(selection.clone()).or_default();
        if queue.is_empty() {
            queue.extend(partitions);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Selection, VecDeque<Partition>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Changes {
    /// Claims events (DLV-3 to DLV-8).
    pub(crate) async fn fetch(
        &self,
        store: &Arc<Store>,
        turns: &Turns,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = self.claim(store, turns, stream, group, options).await?;
        // Others take turns as well, so that a partition may come twice, and between that a lower event may
        // have become claimable (DLV-4).
        leases.sort_by_key(|lease| (lease.event.partition, lease.event.sequence));
        Ok(leases)
    }

    async fn claim(
        &self,
        store: &Arc<Store>,
        turns: &Turns,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let deadline = store.deadline();
        let (stream, group) = store.group(deadline, stream, group).await?;
        let selected = options.partitions.resolve(stream.count)?;
        let limit = u64::from(options.limit).min(MOST);
        let mut leases = Vec::new();
        if limit == 0 || selected.is_empty() {
            // Nothing to do; but whether the store is reached comes first (ERR-6).
            return store.ping(deadline).await.map(|()| leases);
        }
        let selection = (group.id.clone(), selected);
        // Of the last survey, those that were not asked since.
        let mut found = VecDeque::new();
        let mut surveys = 0;
        loop {
            let turn = turns.next(&selection);
            if turn.is_none() && !leases.is_empty() {
                return Ok(leases);
            }
            // Others may have taken the turns of a survey before the one who made it.
            let Some(partition) = turn.or_else(|| found.pop_front()) else {
                // What others leave of a partition shows when it is asked; that of several, in a survey.
                let most_surveys = if selection.1.len() == 1 {
                    1
                } else {
                    MOST_SURVEYS
                };
                if surveys == most_surveys {
                    return Ok(leases);
                }
                surveys += 1;
                let work = match selection.1.as_slice() {
                    // With one partition, looking is as good as asking first.
                    [only] => vec![*only],
                    all => store.with_work(deadline, &stream, &group, all).await?,
                };
                if work.is_empty() {
                    return Ok(leases);
                }
                found = work.iter().copied().collect();
                turns.fill(&selection, work);
                continue;
            };
            found.retain(|other| *other != partition);
            let place = Place {
                stream: stream.clone(),
                group: group.clone(),
                partition,
            };
            let op = Op::Fetch {
                consumer: options.consumer.clone(),
                limit: limit - leases.len() as u64,
                duration: options.lease_duration,
            };
            match self.ask(store, place, op, deadline).await {
                Ok(Done::Fetched(claimed)) => leases.extend(claimed),
                Ok(_) => {}
                // What was claimed before stands, and is the caller's.
                Err(_) if !leases.is_empty() => return Ok(leases),
                Err(error) => return Err(error),
            }
            if leases.len() as u64 >= limit {
                return Ok(leases);
            }
        }
    }
}

impl Store {
    /// Those of the partitions in which something is claimable now.
    pub(crate) async fn with_work(
        &self,
        deadline: Instant,
        stream: &Stream,
        group: &Group,
        partitions: &[Partition],
    ) -> Result<Vec<Partition>> {
        let records = self.records(deadline, group, partitions).await?;
        let now = self.now();
        let mut has_work: BTreeMap<Partition, bool> = BTreeMap::new();
        let (mut by_key, mut by_head) = (HashMap::new(), Vec::new());
        for (partition, record) in &records {
            let state = &record.state;
            let is_due = state.next_due().is_some_and(|due| due <= now);
            let is_behind = self.known_head(stream, *partition) > state.cursor;
            let is_new = match state.resume {
                _ if is_due || !state.has_room() => is_due,
                _ if is_behind => true,
                Some(resume) if resume <= state.cursor => true,
                Some(resume) => {
                    by_key.insert(key(&stream.id, *partition, resume), *partition);
                    false
                }
                None => {
                    by_head.push(*partition);
                    false
                }
            };
            has_work.insert(*partition, is_new);
        }
        if !by_key.is_empty() {
            let keys: Vec<_> = by_key.keys().cloned().collect();
            let find = self.log.find(doc! { "_id": { "$in": keys } });
            let found = self.all(deadline, find.projection(doc! { "_id": 1 }));
            for document in found.await? {
                let partition = document.get_str("_id").ok().and_then(|id| by_key.get(id));
                if let Some(partition) = partition {
                    has_work.insert(*partition, true);
                }
            }
        }
        if !by_head.is_empty() {
            let heads = self.high_watermarks(deadline, stream, &by_head).await?;
            for (partition, head) in heads {
                let cursor = records.get(&partition).map(|record| record.state.cursor);
                has_work.insert(partition, head > cursor.unwrap_or(Sequence::MAX));
            }
        }
        let work = has_work.into_iter().filter(|(_, has_work)| *has_work);
        Ok(work.map(|(partition, _)| partition).collect())
    }
}
