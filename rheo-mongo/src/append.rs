//! Appending to the log; making the streams that it is in.
//!
//! # Why no crash point loses, repeats or reorders anything
//!
//! The events that an append has for a partition are one document, and its key is (stream, partition,
//! first sequence). So the insert is atomic, and it is the compare-and-set on the head: of all who
//! read that the log ends at 100, one inserts the document that begins with 101, and the others are
//! told that its key is there. There is no counter that is moved apart from the events, so a process
//! that dies between two commands leaves nothing but what it inserted.
//!
//! Sequences have no gap, since a document's first sequence is the one after the last of a document
//! that was confirmed by a majority. They become visible in order, since nobody can insert the one
//! that begins with 151 before somebody confirmed the one that ends with 150.
//!
//! Ids that callers give are unique by a unique index. Generated ones are not in it, since they cannot
//! meet by chance, which saves an entry for every event. That a given id is none that was generated is
//! looked up before: it must have been seen to be given, so it is in the log by then.
//!
//! A write that hits either key is looked at: if the document with its key is its own, it had been
//! written and only the answer was lost; if it is another's, the head has moved, and the append goes on
//! behind it; if there is none, an id is taken.
//!
//! A batch for several partitions is a document for each, inserted in the order of the partitions. Of
//! two such batches with the same ids, the second is refused at its first document. When one is
//! refused at a later document, the outcome is `Ambiguous`, as LOG-7 has it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use mongodb::bson::{RawDocumentBuf, doc};
use rheo_core::{
    Error, Event, EventId, Existing, Limits, NewEvent, Partition, Result, Sequence, StreamName,
    StreamOptions, Timestamp,
};
use tokio::time::Instant;
use uuid::Uuid;

use crate::batch::{self, MOST_BYTES, MOST_EVENTS, key};
use crate::coalesce::{Coalescer, MOST_WEIGHT, Weigh};
use crate::error::{Fault, Stage, ambiguous, failed};
use crate::store::{Store, Stream, new_id, pause};

/// Appends, sent together where they wait together for one stream.
#[derive(Debug)]
pub(crate) struct Appends {
    queues: Coalescer<Arc<str>, Pending, Vec<Event>>,
}

/// The limits of a batch: it must fit one document (see [`batch`]).
pub(crate) fn limits() -> Limits {
    Limits::new()
        .with_batch_events(MOST_EVENTS)
        .with_batch_bytes(MOST_BYTES)
}

/// The events of one caller: checked and routed.
#[derive(Debug)]
pub(crate) struct Pending {
    events: Vec<(Partition, NewEvent)>,
    /// Ids that the caller gave.
    given: BTreeSet<EventId>,
    bytes: usize,
}

impl Weigh for Pending {
    fn weight(&self) -> usize {
        let by_count = self.events.len() * (MOST_WEIGHT / MOST_EVENTS);
        by_count.max(self.bytes.saturating_mul(MOST_WEIGHT) / MOST_BYTES)
    }
}

impl Appends {
    pub(crate) fn new() -> Self {
        Self {
            queues: Coalescer::new(),
        }
    }

    /// Appends events (LOG-1 to LOG-8).
    pub(crate) async fn append(
        &self,
        store: &Arc<Store>,
        name: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let deadline = store.deadline();
        let stream = store.stream(deadline, name).await?;
        let pending = prepare(&stream, events)?;
        if pending.events.is_empty() {
            // Nothing to do; but whether the store is reached comes first (ERR-6).
            return store.ping(deadline).await.map(|()| Vec::new());
        }
        let (store, stream_id) = (Arc::clone(store), stream.id.clone());
        let send = move |pending, deadline| {
            let (store, stream) = (Arc::clone(&store), stream.clone());
            async move { store.append_each(&stream, pending, deadline).await }
        };
        self.queues.ask(stream_id, pending, deadline, send).await
    }
}

fn prepare(stream: &Stream, events: Vec<NewEvent>) -> Result<Pending> {
    let lengths = events
        .iter()
        .map(|event| event.payload.byte_len() + event.metadata.byte_len());
    let bytes = lengths.sum();
    if events.len() > MOST_EVENTS || bytes > MOST_BYTES {
        limits().check(&events)?;
    }
    let mut given = BTreeSet::new();
    let partitions = events.iter().map(|event| event.route(stream.count));
    let partitions = partitions.collect::<Result<Vec<_>>>()?;
    for id in events.iter().filter_map(|event| event.id) {
        if !given.insert(id) {
            return Err(Error::AlreadyExists(Existing::Event(id)));
        }
    }
    Ok(Pending {
        events: partitions.into_iter().zip(events).collect(),
        given,
        bytes,
    })
}

/// One caller, and how far it got.
struct Caller {
    /// Those that are in the log have a sequence.
    events: Vec<Event>,
    given: BTreeSet<EventId>,
    refusal: Option<Error>,
}

impl Caller {
    fn new(stream: &Stream, pending: Pending, now: Timestamp) -> Self {
        let events = pending.events.into_iter().map(|(partition, event)| Event {
            id: event.id.unwrap_or_else(|| EventId::generate(now)),
            stream: stream.name.clone(),
            partition,
            sequence: Sequence::ZERO,
            event_type: event.event_type,
            key: event.key,
            payload: event.payload,
            metadata: event.metadata,
            timestamp: now,
        });
        Self {
            events: events.collect(),
            given: pending.given,
            refusal: None,
        }
    }

    /// Whether it is for several partitions.
    fn is_spread(&self) -> bool {
        let partitions = self.events.windows(2);
        partitions
            .into_iter()
            .any(|pair| pair[0].partition != pair[1].partition)
    }

    /// What the caller is told, when nothing of it will be written any more.
    fn result(self, rest: Option<&Error>) -> Result<Vec<Event>> {
        let is_written = |event: &Event| event.sequence > Sequence::ZERO;
        if self.events.iter().all(is_written) {
            return Ok(self.events);
        }
        match self.refusal.as_ref().or(rest) {
            Some(_) if self.events.iter().any(is_written) => Err(ambiguous(
                "the batch was written in some of its partitions, but not in all",
            )),
            Some(error) => Err(error.clone()),
            None => Err(failed("the events were not written")),
        }
    }
}

/// What is to be inserted in a partition: whose events, by caller and index.
struct Insert {
    partition: Partition,
    events: Vec<(usize, usize)>,
    write: Uuid,
    /// The sequence that its first event was last sent with.
    first: Sequence,
    /// Whether it may have been written there. Until that is known it is sent again with the same
    /// events, or not at all.
    is_lost: bool,
}

/// What became of the first of several inserts that were not all confirmed.
enum Outcome {
    Written,
    /// Another document has its key.
    HeadMoved,
    IdTaken,
    /// It may still be written, or was not but may be sent again.
    Unknown,
}

impl Store {
    /// Appends the events of different callers, each with a result of its own.
    async fn append_each(
        &self,
        stream: &Stream,
        pending: Vec<Pending>,
        deadline: Instant,
    ) -> Vec<Result<Vec<Event>>> {
        let mut results: BTreeMap<usize, Result<Vec<Event>>> = BTreeMap::new();
        let count = pending.len();
        let mut waiting: Vec<(usize, Pending)> = pending.into_iter().enumerate().collect();
        while !waiting.is_empty() {
            // The index of ids does not see an id twice in one document: such callers take turns.
            let mut ids: HashSet<EventId> = HashSet::new();
            let (together, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(_, p)| {
                let is_new = p.given.iter().all(|id| !ids.contains(id));
                if is_new {
                    ids.extend(&p.given);
                }
                is_new
            });
            waiting = later;
            let now = self.now();
            let (indexes, mut callers): (Vec<_>, Vec<_>) = together
                .into_iter()
                .map(|(index, pending)| (index, Caller::new(stream, pending, now)))
                .unzip();
            let rest = self.insert_all(stream, &mut callers, deadline).await.err();
            let answers = callers
                .into_iter()
                .map(|caller| caller.result(rest.as_ref()));
            results.extend(indexes.into_iter().zip(answers));
        }
        let lost = || Err(failed("a result is missing"));
        (0..count)
            .map(|index| results.remove(&index).unwrap_or_else(lost))
            .collect()
    }

    /// Inserts what the callers have, until all is written or refused. An error is for all that is
    /// not written then.
    async fn insert_all(
        &self,
        stream: &Stream,
        callers: &mut [Caller],
        deadline: Instant,
    ) -> Result<()> {
        self.check_open()?;
        self.check_given(stream, callers, deadline).await?;
        let mut inserts = inserts(callers);
        self.find_heads(stream, &inserts, deadline).await?;
        let mut conflicts = 0;
        loop {
            for insert in inserts.iter_mut().filter(|insert| !insert.is_lost) {
                let is_refused = |(caller, _): &(usize, usize)| callers[*caller].refusal.is_some();
                insert.events.retain(|event| !is_refused(event));
            }
            inserts.retain(|insert| !insert.events.is_empty());
            if inserts.is_empty() {
                return Ok(());
            }
            let mut documents = Vec::with_capacity(inserts.len());
            for insert in &mut inserts {
                documents.push(self.document(stream, insert, callers)?);
            }
            let (written, outcome) = self
                .insert(stream, &mut inserts, &documents, deadline)
                .await;
            for insert in inserts.drain(..written) {
                self.note_written(stream, &insert, callers);
            }
            let Some(insert) = inserts.first() else {
                continue;
            };
            match outcome {
                Ok(Outcome::Written) => {
                    self.note_written(stream, insert, callers);
                    inserts.remove(0);
                }
                Ok(Outcome::HeadMoved) => {
                    if Instant::now() >= deadline {
                        return Err(failed("too many conflicts with other appends"));
                    }
                    let partition = insert.partition;
                    give_up_places(&mut inserts);
                    pause(conflicts).await;
                    conflicts += 1;
                    self.high_watermarks(deadline, stream, &[partition]).await?;
                }
                Ok(Outcome::IdTaken) => {
                    let is_lost = insert.is_lost;
                    let refused = self.refuse_taken(stream, insert, callers, deadline).await;
                    refused.map_err(|error| if is_lost { lost() } else { error })?;
                    give_up_places(&mut inserts);
                }
                Ok(Outcome::Unknown) => pause(3).await,
                Err(_) if inserts.iter().any(|insert| insert.is_lost) => {
                    return Err(lost());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks up ids that the unique index may notice too late or not at all: those of batches for
    /// several partitions, before anything is written, and those that may have been generated.
    async fn check_given(
        &self,
        stream: &Stream,
        callers: &mut [Caller],
        deadline: Instant,
    ) -> Result<()> {
        for caller in callers.iter_mut().filter(|caller| !caller.given.is_empty()) {
            let given: Vec<EventId> = caller.given.iter().copied().collect();
            let taken = match caller.is_spread() {
                true => self.places(deadline, stream, &given).await?,
                false => self.generated_places(deadline, stream, &given).await?,
            };
            if let Some(id) = taken.into_keys().next() {
                caller.refusal = Some(Error::AlreadyExists(Existing::Event(id)));
            }
        }
        Ok(())
    }

    /// Looks where the log ends in partitions that this handle knows nothing of. What it knows may be
    /// old: then the insert is told.
    async fn find_heads(
        &self,
        stream: &Stream,
        inserts: &[Insert],
        deadline: Instant,
    ) -> Result<()> {
        let partitions = inserts.iter().map(|insert| insert.partition);
        let unknown: Vec<Partition> = partitions
            .filter(|partition| self.known_head(stream, *partition) == Sequence::ZERO)
            .collect();
        if !unknown.is_empty() {
            self.high_watermarks(deadline, stream, &unknown).await?;
        }
        Ok(())
    }

    fn document(
        &self,
        stream: &Stream,
        insert: &mut Insert,
        callers: &[Caller],
    ) -> Result<RawDocumentBuf> {
        let events = insert.events.iter();
        let events: Vec<&Event> = events.map(|(c, e)| &callers[*c].events[*e]).collect();
        let partition = insert.partition;
        if !insert.is_lost {
            insert.first = self.known_head(stream, partition).next();
        }
        let given = insert.events.iter().filter_map(|(caller, event)| {
            let caller = &callers[*caller];
            let id = caller.events[*event].id;
            caller.given.contains(&id).then_some(id)
        });
        let given: Vec<EventId> = given.collect();
        let (first, write) = (insert.first, insert.write);
        batch::document(&stream.id, partition, first, write, &events, &given)
    }

    /// Inserts documents in order: how many were written, and what became of the next one.
    async fn insert(
        &self,
        stream: &Stream,
        inserts: &mut [Insert],
        documents: &[RawDocumentBuf],
        deadline: Instant,
    ) -> (usize, Result<Outcome>) {
        let sent = match documents {
            [one] => self
                .write(deadline, self.log.insert_one(one))
                .await
                .map(drop),
            all => {
                let insert = self.log.insert_many(all).ordered(true);
                self.write(deadline, insert).await.map(drop)
            }
        };
        let Err(fault) = sent else {
            return (documents.len(), Ok(Outcome::Written));
        };
        // Whatever became of those that nothing is said of: they are sent again, and found then if
        // they are there.
        let written = fault.refused_at().filter(|at| *at < inserts.len());
        let written = written.unwrap_or_default();
        if fault.is_unknown() {
            for insert in &mut inserts[written..] {
                insert.is_lost = true;
            }
        }
        let outcome = self.outcome(stream, &inserts[written], &fault, deadline);
        (written, outcome.await)
    }

    /// What became of a document that met its key, or an id of its, or whose answer was lost.
    async fn outcome(
        &self,
        stream: &Stream,
        insert: &Insert,
        fault: &Fault,
        deadline: Instant,
    ) -> Result<Outcome> {
        if fault.is_not_primary() && Instant::now() < deadline {
            return Ok(Outcome::Unknown);
        }
        if !fault.is_unknown() && !fault.is_duplicate() {
            return Err(fault.portable(Stage::Write));
        }
        let id = key(&stream.id, insert.partition, insert.first);
        let find = self.log.find_one(doc! { "_id": id });
        let find = find.projection(doc! { "write": 1 });
        let found = match self.read(deadline, find).await {
            Ok(found) => found,
            Err(_) => return Err(ambiguous("what became of the write could not be looked up")),
        };
        let Some(found) = found else {
            return match fault.is_unknown() {
                false => Ok(Outcome::IdTaken),
                // Sent again with the same key, it gets there once.
                true if Instant::now() < deadline => Ok(Outcome::Unknown),
                true => Err(fault.portable(Stage::Write)),
            };
        };
        let write = found.get_binary("write").map(|write| write.bytes);
        match write.is_ok_and(|write| write == insert.write.as_bytes()) {
            true => Ok(Outcome::Written),
            false => Ok(Outcome::HeadMoved),
        }
    }

    fn note_written(&self, stream: &Stream, insert: &Insert, callers: &mut [Caller]) {
        let mut sequence = insert.first.previous();
        for (caller, event) in &insert.events {
            sequence = sequence.next();
            callers[*caller].events[*event].sequence = sequence;
        }
        self.note_head(stream, insert.partition, sequence);
    }

    /// Refuses the callers whose ids are taken.
    async fn refuse_taken(
        &self,
        stream: &Stream,
        insert: &Insert,
        callers: &mut [Caller],
        deadline: Instant,
    ) -> Result<()> {
        let ids: Vec<EventId> = insert
            .events
            .iter()
            .map(|(caller, event)| callers[*caller].events[*event].id)
            .collect();
        let taken = self.places(deadline, stream, &ids).await?;
        if taken.is_empty() {
            return Err(failed("a key is there already, but not that of an event"));
        }
        for (caller, event) in &insert.events {
            let caller = &mut callers[*caller];
            let id = caller.events[*event].id;
            if taken.contains_key(&id) {
                let taken = Error::AlreadyExists(Existing::Event(id));
                caller.refusal.get_or_insert(taken);
            }
        }
        Ok(())
    }

    pub(crate) async fn create_stream(
        &self,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let deadline = self.deadline();
        // No stream without the index that keeps its ids unique.
        self.need_indexes(deadline).await?;
        let document = doc! {
            "_id": stream.as_str(),
            "stream": new_id(),
            "partitions": options.partition_count.get().cast_signed(),
        };
        match self
            .insert_first(deadline, &self.streams, &document, "stream")
            .await?
        {
            true => Ok(()),
            false => Err(Error::AlreadyExists(Existing::Stream(stream.clone()))),
        }
    }
}

/// What the callers have for each partition, in the order of the partitions.
fn inserts(callers: &[Caller]) -> Vec<Insert> {
    let mut of_partitions: BTreeMap<Partition, Vec<(usize, usize)>> = BTreeMap::new();
    for (caller, Caller { events, .. }) in callers.iter().enumerate() {
        for (index, event) in events.iter().enumerate() {
            let events = of_partitions.entry(event.partition).or_default();
            events.push((caller, index));
        }
    }
    of_partitions
        .into_iter()
        .map(|(partition, events)| Insert {
            partition,
            events,
            write: Uuid::new_v4(),
            first: Sequence::ZERO,
            is_lost: false,
        })
        .collect()
}

fn lost() -> Error {
    ambiguous("the answer to a write was lost")
}

/// The first of them was not written and never will be where it was sent to. So neither was what is
/// behind it, whatever became of earlier attempts: the server goes in order.
fn give_up_places(inserts: &mut [Insert]) {
    for insert in inserts {
        insert.is_lost = false;
    }
}
