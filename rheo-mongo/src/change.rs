//! Changing a delivery state: read, compute, compare and set.
//!
//! Operations that wait at the same time on one handle for one state go out as one write, each with
//! its own answer. An answer is given only if the state that it was computed from is known to have
//! been the store's: by the write that succeeded, or by a read that came after the operation began.
//!
//! A write whose answer was lost is sent again: it is conditional on the version, so it happens once.
//! Whether it had happened the first time is told by the `writes` that the document remembers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mongodb::bson::{Document, doc};
use rheo_core::{Error, Event, Lease, Partition, Result, Sequence};
use tokio::time::Instant;

use crate::apply::{Applying, Claimable, Found, Op};
use crate::batch::Batch;
use crate::coalesce::{Coalescer, MOST_WEIGHT, Weigh};
use crate::delivery::{Claimed, Delivery, Settled, Term};
use crate::error::{Stage, ambiguous, failed};
use crate::record::{REMEMBERED_WRITES, Record};
use crate::store::{Group, Store, Stream, pause};

/// What was done.
#[derive(Debug)]
pub(crate) enum Done {
    Fetched(Vec<Lease>),
    /// One for each lease.
    Settled(Vec<Result<Settled>>),
    WentBack,
}

/// Which state it is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) stream: Stream,
    pub(crate) group: Group,
    pub(crate) partition: Partition,
}

/// Changes of states, sent together where they wait together.
#[derive(Debug)]
pub(crate) struct Changes {
    queues: Coalescer<String, Op, Done>,
}

/// With more facts than this, they are written down before the state is written again.
const MOST_FACTS: usize = 16;

impl Weigh for Op {
    fn weight(&self) -> usize {
        let each = MOST_WEIGHT / 10_000;
        let count = match self {
            Self::Fetch { limit, .. } => usize::try_from(*limit).unwrap_or(usize::MAX),
            Self::Settle { leases, .. } => leases.len(),
            Self::ReplayEvents(sequences) => sequences.len(),
            Self::ReplayAfter(_) | Self::Reset(_) => 1,
        };
        count.saturating_mul(each)
    }
}

impl Changes {
    pub(crate) fn new() -> Self {
        Self {
            queues: Coalescer::new(),
        }
    }

    /// Does something with a state, whoever else does.
    pub(crate) async fn ask(
        &self,
        store: &Arc<Store>,
        place: Place,
        op: Op,
        deadline: Instant,
    ) -> Result<Done> {
        store.check_open()?;
        let key = place.group.state_key(place.partition);
        let (store, place) = (Arc::clone(store), Arc::new(place));
        let send = move |ops, deadline| {
            let (store, place) = (Arc::clone(&store), Arc::clone(&place));
            async move { store.change(&place, ops, deadline).await }
        };
        self.queues.ask(key, op, deadline, send).await
    }
}

impl Store {
    async fn change(&self, place: &Place, ops: Vec<Op>, deadline: Instant) -> Vec<Result<Done>> {
        let key = place.group.state_key(place.partition);
        match self.change_all(&key, place, &ops, deadline).await {
            Ok((found, batches)) => with_events(place, found, &batches),
            Err(error) => {
                self.records.forget(&key);
                ops.iter().map(|_| Err(error.clone())).collect()
            }
        }
    }

    async fn change_all(
        &self,
        key: &str,
        place: &Place,
        ops: &[Op],
        deadline: Instant,
    ) -> Result<(Vec<Found>, Vec<Batch>)> {
        let remembered = self.records.get(&key.to_owned());
        let mut at_hand = remembered.map(|record| (record, false));
        for conflicts in 0.. {
            if conflicts > 0 && Instant::now() >= deadline {
                return Err(failed("too many conflicts with other operations"));
            }
            let (before, is_fresh) = match at_hand.take() {
                Some(at_hand) => at_hand,
                None => (self.record(deadline, place).await?, true),
            };
            let state = &before.state;
            let now = self.now();
            let mut next = state.successor();
            if next.facts.len() > MOST_FACTS {
                let facts = &next.facts;
                let write = self.write_facts(deadline, &place.group, place.partition, facts);
                let written = write.await?;
                next.facts.drain(..written);
            }
            let mut applying = Applying::to(next, place.group.max_attempts, now);
            let mut batches = Vec::new();
            let mut wanted = Some(applying.claimable(ops));
            while let Some(claimable) = wanted {
                note_resume(&mut applying.next, state, &batches);
                let read = self.batches_for(deadline, place, &applying.next, &claimable);
                merge(&mut batches, read.await?);
                wanted = applying.go_on(ops, |sequence| are_at_hand(&batches, sequence));
            }
            let Applying {
                mut next, found, ..
            } = applying;
            if !next.differs_from(state) {
                let now = match is_fresh {
                    true => Arc::clone(&before),
                    false => self.record(deadline, place).await?,
                };
                if *now == *before {
                    self.records.put(key.to_owned(), before);
                    return Ok((found, batches));
                }
                // It was computed from a state that is not the store's any more.
                at_hand = Some((now, true));
                continue;
            }
            note_resume(&mut next, state, &batches);
            let write = fastrand::i64(..);
            let after = before.followed_by(next, write);
            if self.swap(deadline, key, &before, &after, write).await? {
                self.records.put(key.to_owned(), Arc::new(after));
                return Ok((found, batches));
            }
            pause(conflicts).await;
        }
        Err(failed("too many conflicts with other operations"))
    }

    /// The batches of what fetches can claim, ascending: of what is due again, and what was never claimed. They are read before the claim: an event that cannot be read in time is not claimed, so
    /// that it does not use up its attempts unseen.
    async fn batches_for(
        &self,
        deadline: Instant,
        place: &Place,
        state: &Delivery,
        claimable: &Claimable,
    ) -> Result<Vec<Batch>> {
        let (stream, partition) = (&place.stream, place.partition);
        let due = self.batches_with(deadline, stream, partition, &claimable.due);
        let (mut batches, are_all) = due.await?;
        if !are_all || claimable.unclaimed == 0 {
            return Ok(batches);
        }
        let unclaimed = self.batches_after(
            deadline,
            stream,
            partition,
            state.cursor,
            state.resume,
            claimable.unclaimed,
        );
        let unclaimed = unclaimed.await?;
        if let Some(last) = unclaimed.last() {
            self.note_head(stream, partition, last.last);
        }
        merge(&mut batches, unclaimed);
        Ok(batches)
    }

    // The document

    /// The state as it is now.
    pub(crate) async fn record(&self, deadline: Instant, place: &Place) -> Result<Arc<Record>> {
        let key = place.group.state_key(place.partition);
        let find = self.deliveries.find_one(doc! { "_id": key });
        match self.read(deadline, find).await? {
            Some(document) => Ok(Arc::new(Record::from_document(&document)?)),
            None => Ok(Arc::new(unwritten(&place.group, place.partition))),
        }
    }

    /// The states of a group in these partitions as they are now.
    pub(crate) async fn records(
        &self,
        deadline: Instant,
        group: &Group,
        partitions: &[Partition],
    ) -> Result<BTreeMap<Partition, Arc<Record>>> {
        let keys: Vec<String> = partitions.iter().map(|p| group.state_key(*p)).collect();
        let find = self
            .deliveries
            .find(doc! { "_id": { "$in": keys.clone() } });
        let mut written: BTreeMap<String, Document> = self
            .all(deadline, find)
            .await?
            .into_iter()
            .filter_map(|found| Some((found.get_str("_id").ok()?.to_owned(), found)))
            .collect();
        let mut records = BTreeMap::new();
        for (partition, key) in partitions.iter().zip(keys) {
            let record = match written.remove(&key) {
                Some(document) => Record::from_document(&document)?,
                None => unwritten(group, *partition),
            };
            records.insert(*partition, Arc::new(record));
        }
        Ok(records)
    }

    /// Writes a state if the store still has the one before; whether it did.
    async fn swap(
        &self,
        deadline: Instant,
        key: &str,
        before: &Record,
        after: &Record,
        write: i64,
    ) -> Result<bool> {
        let document = after.to_document(key);
        let version = before.state.version;
        let mut lost = None;
        for sent in 1.. {
            let outcome = match version {
                0 => {
                    let insert = self.deliveries.insert_one(&document);
                    self.write(deadline, insert).await.map(|_| true)
                }
                _ => {
                    let same = doc! { "_id": key, "version": version };
                    let replace = self.deliveries.replace_one(same, &document);
                    let replaced = self.write(deadline, replace).await;
                    replaced.map(|result| result.matched_count == 1)
                }
            };
            match outcome {
                Ok(true) => return Ok(true),
                Ok(false) if lost.is_none() => return Ok(false),
                Err(fault) if fault.is_duplicate() && lost.is_none() => return Ok(false),
                Ok(false) => {}
                Err(fault) if fault.is_duplicate() => {}
                Err(fault) if fault.is_unknown() && Instant::now() < deadline => {
                    lost = Some(fault);
                    pause(sent + 2).await;
                    continue;
                }
                Err(fault) if fault.is_not_primary() && Instant::now() < deadline => {
                    pause(sent + 2).await;
                    continue;
                }
                Err(fault) => {
                    // What was sent before may have happened, whatever became of this.
                    return Err(match lost {
                        Some(lost) => lost.portable(Stage::Write),
                        None => fault.portable(Stage::Write),
                    });
                }
            }
            return self.is_written(deadline, key, version, write).await;
        }
        Ok(false)
    }

    /// Whether a write whose answer was lost happened, now that the state has another version.
    async fn is_written(
        &self,
        deadline: Instant,
        key: &str,
        version: i64,
        write: i64,
    ) -> Result<bool> {
        let unknown = |_| ambiguous("the state could not be looked at");
        let find = self.deliveries.find_one(doc! { "_id": key });
        let found = self.read(deadline, find).await.map_err(unknown)?;
        let found = found.ok_or_else(|| ambiguous("the state is gone"))?;
        let record = Record::from_document(&found).map_err(unknown)?;
        let newer = record.state.version - version;
        match record.writes.contains(&write) {
            true => Ok(true),
            false if newer <= i64::try_from(REMEMBERED_WRITES).unwrap_or(i64::MAX) => Ok(false),
            false => Err(ambiguous("others have written too much since")),
        }
    }
}

/// Adds batches, each once, in order.
fn merge(batches: &mut Vec<Batch>, more: Vec<Batch>) {
    batches.extend(more);
    batches.sort_by_key(|batch| batch.first);
    batches.dedup_by_key(|batch| batch.first);
}

fn are_at_hand(batches: &[Batch], sequence: Sequence) -> bool {
    let at = batches.partition_point(|batch| batch.last < sequence);
    batches
        .get(at)
        .is_some_and(|batch| batch.contains(sequence))
}

/// Gives what was claimed its events. The claims stand whether this succeeds or not.
fn with_events(place: &Place, found: Vec<Found>, batches: &[Batch]) -> Vec<Result<Done>> {
    let claimed = found.iter().flat_map(|found| match found {
        Found::Claimed(claimed, _) => claimed.as_slice(),
        Found::Other(_) => &[],
    });
    let sequences: BTreeSet<Sequence> = claimed.map(|claim| claim.sequence).collect();
    let mut events = BTreeMap::new();
    for batch in batches {
        let wanted = batch.events(&place.stream.name, |sequence| sequences.contains(&sequence));
        // Those of a batch that is damaged are missing.
        let wanted = wanted.unwrap_or_default().into_iter();
        events.extend(wanted.map(|event| (event.sequence, event)));
    }
    let each = found.into_iter().map(|found| match found {
        Found::Other(done) => Ok(done),
        Found::Claimed(claimed, term) => leases(place, claimed, &term, &events).map(Done::Fetched),
    });
    each.collect()
}

fn unwritten(group: &Group, partition: Partition) -> Record {
    Record {
        state: Delivery::new(group.start(partition)),
        writes: Vec::new(),
    }
}

/// Notes where to read on, which the operations do not know.
fn note_resume(next: &mut Delivery, before: &Delivery, batches: &[Batch]) {
    let holder = batches.iter().find(|batch| batch.contains(next.cursor));
    next.resume = match holder {
        _ if next.cursor == before.cursor => before.resume,
        _ if next.cursor == Sequence::ZERO => Some(next.cursor.next()),
        Some(holder) if holder.last == next.cursor => Some(next.cursor.next()),
        Some(holder) => Some(holder.first),
        None => None,
    };
}

fn leases(
    place: &Place,
    claimed: Vec<Claimed>,
    term: &Term,
    events: &BTreeMap<Sequence, Event>,
) -> Result<Vec<Lease>> {
    let lease = |claim: Claimed| {
        let event = events.get(&claim.sequence).cloned();
        Ok::<_, Error>(Lease {
            event: event.ok_or_else(|| ambiguous("what was claimed could not be read"))?,
            group: place.group.name.clone(),
            consumer: term.holder.consumer.clone(),
            lease_id: claim.lease_id,
            receipt: None,
            attempt: claim.attempt,
            leased_at: term.now,
            expires_at: term.expires_at,
        })
    };
    claimed.into_iter().map(lease).collect()
}
