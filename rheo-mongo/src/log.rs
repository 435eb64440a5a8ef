//! Reading the log: batches by place, events by place, places by id, and where the log ends.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use mongodb::bson::{Binary, Document, RawDocumentBuf, doc};
use rheo_core::{Event, EventId, Partition, ReadOptions, Result, Sequence, StreamName, Timestamp};
use tokio::time::{Instant, timeout_at};

use crate::batch::{Batch, MOST_EVENTS, key, uuid};
use crate::error::{Fault, Stage, failed};
use crate::store::{Store, Stream};

/// How many commands of one operation are under way at once.
pub(crate) const AT_ONCE: usize = 8;

/// No more than this is read at once, so that it arrives in time and fits in memory.
const MOST_READ: usize = 32 * 1024 * 1024;

impl Store {
    /// The events of a partition above a sequence (LOG-9).
    pub(crate) async fn read_log(
        &self,
        name: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let deadline = self.deadline();
        let stream = self.stream(deadline, name).await?;
        stream.count.check("partition", options.partition)?;
        if options.limit == 0 {
            // Nothing to do; but whether the store is reached comes first (ERR-6).
            return self.ping(deadline).await.map(|()| Vec::new());
        }
        let mut events = Vec::new();
        let mut after = options.after;
        while events.len() < options.limit as usize {
            let left = u64::from(options.limit) - events.len() as u64;
            let batches = self
                .batches_after(deadline, &stream, options.partition, after, None, left)
                .await?;
            let Some(last) = batches.last() else {
                break;
            };
            let until = last.last;
            for batch in &batches {
                events.extend(batch.events(name, |sequence| sequence > after)?);
            }
            after = until;
        }
        events.truncate(options.limit as usize);
        Ok(events)
    }

    /// The batches that hold the next events after a sequence, without a gap: as many as hold `wanted`
    /// events, or fewer, but none only if there is none.
    ///
    /// `resume` is the first sequence of the first of them, if that is known.
    pub(crate) async fn batches_after(
        &self,
        deadline: Instant,
        stream: &Stream,
        partition: Partition,
        after: Sequence,
        resume: Option<Sequence>,
        wanted: u64,
    ) -> Result<Vec<Batch>> {
        let from = resume.unwrap_or(after.next());
        let until = after.as_i64().saturating_add_unsigned(wanted);
        let range = doc! { "$gte": from.as_i64(), "$lte": until };
        let mut batches = self.range(deadline, stream, partition, range).await?;
        if resume.is_none()
            && batches
                .first()
                .is_none_or(|first| first.first > after.next())
        {
            // The next event is not the first one of its batch.
            match self
                .batch_of(deadline, stream, partition, after.next())
                .await?
            {
                Some(holder) => batches.insert(0, holder),
                None => batches.clear(),
            }
        }
        // Each batch follows the one before. Should one be missing, nothing behind it is shown.
        let mut next = None;
        let is_next = |batch: &Batch| {
            let follows = match next {
                Some(next) => batch.first == next,
                None => batch.first <= after.next(),
            };
            next = Some(batch.last.next());
            follows
        };
        let whole = batches
            .iter()
            .map(is_next)
            .take_while(|follows| *follows)
            .count();
        batches.truncate(whole);
        batches.retain(|batch| batch.last > after);
        Ok(batches)
    }

    /// The batches of a partition whose first sequences are in a range, ascending.
    async fn range(
        &self,
        deadline: Instant,
        stream: &Stream,
        partition: Partition,
        first: Document,
    ) -> Result<Vec<Batch>> {
        let filter = doc! {
            "stream": &*stream.id,
            "partition": partition.number().cast_signed(),
            "first": first,
        };
        let find = self.log.find(filter).sort(doc! { "first": 1 });
        let cursor = self.read(deadline, find).await?;
        self.some_batches(deadline, cursor).await
    }

    async fn some_batches(
        &self,
        deadline: Instant,
        mut cursor: mongodb::Cursor<RawDocumentBuf>,
    ) -> Result<Vec<Batch>> {
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while let Some(document) = next(deadline, &mut cursor).await? {
            let batch = Batch::new(document)?;
            bytes += batch.byte_len();
            batches.push(batch);
            if bytes > MOST_READ {
                break;
            }
        }
        Ok(batches)
    }

    /// The batch that holds an event, if it is there.
    pub(crate) async fn batch_of(
        &self,
        deadline: Instant,
        stream: &Stream,
        partition: Partition,
        sequence: Sequence,
    ) -> Result<Option<Batch>> {
        let most = i64::try_from(MOST_EVENTS).unwrap_or(i64::MAX);
        let filter = doc! {
            "stream": &*stream.id,
            "partition": partition.number().cast_signed(),
            "first": { "$gt": sequence.as_i64() - most, "$lte": sequence.as_i64() },
        };
        let find = self.log.find(filter).sort(doc! { "first": -1 }).limit(1);
        let found = self.all(deadline, find).await?;
        let batch = found.into_iter().next().map(Batch::new).transpose()?;
        Ok(batch.filter(|batch| batch.contains(sequence)))
    }

    /// The batches that hold these events, which ascend, and whether those are all: they are the first
    /// ones if more would not be read in time, or not fit in memory.
    pub(crate) async fn batches_with(
        &self,
        deadline: Instant,
        stream: &Stream,
        partition: Partition,
        sequences: &[Sequence],
    ) -> Result<(Vec<Batch>, bool)> {
        /// In one command.
        const TOGETHER: usize = 1_000;
        /// Commands for one batch each.
        const MOST_ALONE: usize = 200;
        let (mut batches, mut bytes, mut alone) = (Vec::<Batch>::new(), 0, 0);
        for sequences in sequences.chunks(TOGETHER) {
            // Most batches begin with an event that is wanted, for most hold one event.
            let firsts: Vec<i64> = sequences.iter().map(|sequence| sequence.as_i64()).collect();
            let begin = self.range(deadline, stream, partition, doc! { "$in": firsts });
            let mut begin = begin.await?.into_iter().peekable();
            for sequence in sequences {
                if batches.last().is_some_and(|last| last.contains(*sequence)) {
                    continue;
                }
                if bytes > MOST_READ || alone == MOST_ALONE {
                    return Ok((batches, false));
                }
                let batch = match begin.next_if(|batch| batch.contains(*sequence)) {
                    Some(batch) => batch,
                    None => {
                        alone += 1;
                        let found = self.batch_of(deadline, stream, partition, *sequence);
                        let missing = || failed("an event of the log is missing");
                        found.await?.ok_or_else(missing)?
                    }
                };
                bytes += batch.byte_len();
                batches.push(batch);
            }
        }
        Ok((batches, true))
    }

    /// The events at these places.
    pub(crate) async fn events_at(
        &self,
        deadline: Instant,
        stream: &Stream,
        partition: Partition,
        sequences: &BTreeSet<Sequence>,
    ) -> Result<BTreeMap<Sequence, Event>> {
        let mut events = BTreeMap::new();
        let mut rest: Vec<Sequence> = sequences.iter().copied().collect();
        while !rest.is_empty() {
            let read = self.batches_with(deadline, stream, partition, &rest);
            let (batches, _) = read.await?;
            for batch in &batches {
                let wanted =
                    batch.events(&stream.name, |sequence| sequences.contains(&sequence))?;
                events.extend(wanted.into_iter().map(|event| (event.sequence, event)));
            }
            let last = batches.last().map_or(Sequence::MAX, |batch| batch.last);
            rest.retain(|sequence| *sequence > last);
        }
        Ok(events)
    }

    /// Where the events with these ids are; those that are not in the stream are left out.
    ///
    /// Ids that callers gave have an index. One that was generated needs none: it holds the
    /// millisecond of its batch, and batches are found by time.
    pub(crate) async fn places(
        &self,
        deadline: Instant,
        stream: &Stream,
        ids: &[EventId],
    ) -> Result<Places> {
        let mut places = Places::new();
        for ids in ids.chunks(1_000) {
            let filter = doc! { "stream": &*stream.id, "given": { "$in": binaries(ids) } };
            places.extend(self.places_in(deadline, filter, ids).await?);
        }
        let rest: Vec<EventId> = ids
            .iter()
            .filter(|id| !places.contains_key(id))
            .copied()
            .collect();
        places.extend(self.generated_places(deadline, stream, &rest).await?);
        Ok(places)
    }

    /// As [`places`](Self::places), for ids that were generated.
    pub(crate) async fn generated_places(
        &self,
        deadline: Instant,
        stream: &Stream,
        ids: &[EventId],
    ) -> Result<Places> {
        let each = stream::iter(windows(ids)).map(|(time, ids)| {
            let filter = doc! {
                "stream": &*stream.id,
                "time": time,
                "ids": { "$in": binaries(&ids) },
            };
            async move { self.places_in(deadline, filter, &ids).await }
        });
        let each: Vec<Places> = each.buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(each.into_iter().flatten().collect())
    }

    async fn places_in(
        &self,
        deadline: Instant,
        filter: Document,
        ids: &[EventId],
    ) -> Result<Places> {
        let mut places = Places::new();
        let mut seen = ends();
        seen.insert("ids", 1);
        let find = self.log.find(filter).projection(seen);
        for document in self.all(deadline, find).await? {
            let batch = Batch::new(document)?;
            for id in ids {
                if let Some(sequence) = batch.place_of(*id)? {
                    places.insert(*id, (batch.partition, sequence));
                }
            }
        }
        Ok(places)
    }

    /// The lowest sequence with a timestamp at or after a time (DLV-2).
    pub(crate) async fn first_at(
        &self,
        deadline: Instant,
        stream: &Stream,
        partition: Partition,
        time: Timestamp,
    ) -> Result<Option<Sequence>> {
        let filter = doc! {
            "stream": &*stream.id,
            "partition": partition.number().cast_signed(),
            "time": { "$gte": time.as_micros() },
        };
        let find = self.log.find(filter).sort(doc! { "first": 1 }).limit(1);
        let found = self.all(deadline, find.projection(ends())).await?;
        let batch = found.into_iter().next().map(Batch::new).transpose()?;
        Ok(batch.map(|batch| batch.first))
    }

    // Where the log ends

    /// The high watermarks of partitions as they are now.
    ///
    /// A batch begins where the one before ends, so whether a partition went on since it was last
    /// looked at is one look at one key; that of all partitions is one command.
    pub(crate) async fn high_watermarks(
        &self,
        deadline: Instant,
        stream: &Stream,
        partitions: &[Partition],
    ) -> Result<BTreeMap<Partition, Sequence>> {
        let mut heads: BTreeMap<Partition, Sequence> = partitions
            .iter()
            .map(|partition| (*partition, self.known_head(stream, *partition)))
            .collect();
        let next = heads
            .iter()
            .map(|(p, head)| key(&stream.id, *p, head.next()));
        let filter = doc! { "_id": { "$in": next.collect::<Vec<_>>() } };
        let find = self.log.find(filter).projection(ends());
        let found = self.all(deadline, find).await?.into_iter();
        let moved: Vec<Batch> = found.map(Batch::new).collect::<Result<_>>()?;
        let ends = stream::iter(moved)
            .map(|batch| self.end_after(deadline, stream, batch))
            .buffer_unordered(AT_ONCE);
        heads.extend(ends.try_collect::<Vec<_>>().await?);
        Ok(heads)
    }

    /// The last sequence from a batch on.
    async fn end_after(
        &self,
        deadline: Instant,
        stream: &Stream,
        batch: Batch,
    ) -> Result<(Partition, Sequence)> {
        let filter = doc! {
            "stream": &*stream.id,
            "partition": batch.partition.number().cast_signed(),
            "first": { "$gt": batch.last.as_i64() },
        };
        let find = self.log.find(filter).sort(doc! { "first": -1 }).limit(1);
        let found = self.all(deadline, find.projection(ends())).await?;
        let last = match found.into_iter().next() {
            Some(last) => Batch::new(last)?.last,
            None => batch.last,
        };
        self.note_head(stream, batch.partition, last);
        Ok((batch.partition, last))
    }

    /// The last sequence of a partition that this handle saw, 0 if none.
    pub(crate) fn known_head(&self, stream: &Stream, partition: Partition) -> Sequence {
        let key = (stream.id.clone(), partition);
        self.heads.get(&key).unwrap_or_default()
    }

    pub(crate) fn note_head(&self, stream: &Stream, partition: Partition, head: Sequence) {
        let key = (stream.id.clone(), partition);
        if self.known_head(stream, partition) < head {
            self.heads.put(key, head);
        }
    }
}

/// Partition and sequence of events, by id.
pub(crate) type Places = BTreeMap<EventId, (Partition, Sequence)>;

fn binaries(ids: &[EventId]) -> Vec<Binary> {
    ids.iter().map(|id| uuid(id.as_uuid())).collect()
}

/// The times of the batches that hold ids, if those were generated; neighbours together.
fn windows(ids: &[EventId]) -> Vec<(Document, Vec<EventId>)> {
    /// Ids that are no further apart are looked for together, but no more than so many.
    const NEAR_MILLIS: i64 = 10;
    const MOST_TOGETHER: usize = 1_000;
    let mut generated: Vec<(i64, EventId)> = ids
        .iter()
        .filter(|id| id.as_uuid().get_version_num() == 7)
        .filter_map(|id| Some((i64::try_from(id.as_uuid().as_u128() >> 80).ok()?, *id)))
        .collect();
    generated.sort_unstable();
    let mut windows: Vec<(i64, i64, Vec<EventId>)> = Vec::new();
    for (millis, id) in generated {
        match windows.last_mut() {
            Some((_, last, ids)) if millis - *last <= NEAR_MILLIS && ids.len() < MOST_TOGETHER => {
                *last = millis;
                ids.push(id);
            }
            _ => windows.push((millis, millis, vec![id])),
        }
    }
    let time = |(first, last, ids): (i64, i64, Vec<EventId>)| {
        // What is before 1970 is 1970 in an id.
        let from = match first {
            0 => Timestamp::MIN.as_micros(),
            _ => first.saturating_mul(1_000),
        };
        let until = last.saturating_mul(1_000).saturating_add(999);
        (doc! { "$gte": from, "$lte": until }, ids)
    };
    windows.into_iter().map(time).collect()
}

fn ends() -> Document {
    doc! { "partition": 1, "first": 1, "last": 1, "time": 1 }
}

/// The next document of a cursor.
pub(crate) async fn next(
    deadline: Instant,
    cursor: &mut mongodb::Cursor<RawDocumentBuf>,
) -> Result<Option<RawDocumentBuf>> {
    let fault = match timeout_at(deadline, cursor.try_next()).await {
        Ok(Ok(document)) => return Ok(document),
        Ok(Err(error)) => Fault::Said(error),
        Err(_) => Fault::TimedOut,
    };
    Err(fault.portable(Stage::Read))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn generated(micros: i64) -> EventId {
        EventId::generate(Timestamp::from_micros(micros).expect("in range"))
    }

    fn bounds(window: &(Document, Vec<EventId>)) -> (i64, i64) {
        let bound = |name| window.0.get_i64(name).expect("a number");
        (bound("$gte"), bound("$lte"))
    }

    #[test]
    fn a_generated_id_is_in_the_window_of_its_time() {
        for micros in [
            0,
            999,
            1_000,
            1_764_433_526_123_456,
            -5,
            Timestamp::MIN.as_micros(),
            Timestamp::MAX.as_micros(),
        ] {
            let windows = windows(&[generated(micros)]);
            let (from, until) = bounds(&windows[0]);
            assert!((from..=until).contains(&micros), "{micros}");
        }
    }

    #[test]
    fn neighbours_share_a_window_and_other_ids_have_none() {
        let at = |millis: i64| generated(1_764_433_526_000_000 + millis * 1_000);
        let (a, b, c) = (at(0), at(9), at(100));
        let windows = windows(&[
            c,
            a,
            EventId::new(Uuid::max()),
            b,
            EventId::new(Uuid::nil()),
        ]);
        let ids: Vec<_> = windows.iter().map(|(_, ids)| ids.clone()).collect();
        assert_eq!(ids, [vec![a, b], vec![c]]);
    }
}
