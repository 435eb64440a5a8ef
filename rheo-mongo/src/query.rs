//! One page of a query: the events that match, in the query's total order.
//!
//! The server leaves out batches in which no event can match, by their marks, and what is left is
//! filtered exactly by [`Query::matches`]. So values are compared as JSON, and nothing that a filter
//! holds is ever seen by the server but as a number.
//!
//! By sequence, all partitions are read side by side in windows of sequences, which grow as long as
//! too little is found. By time, batches are read in the order of their times.

use futures_util::{StreamExt, TryStreamExt, stream};
use mongodb::bson::{Bson, Document, doc};
use rheo_core::{
    Cursor, Direction, Event, Order, OrderBy, Page, Partition, Position, Query, Result, Sequence,
    StreamName, Timestamp,
};
use tokio::time::Instant;

use crate::batch::{Batch, MOST_EVENTS, UNMARKED, marks_of};
use crate::log::{AT_ONCE, next};
use crate::store::{Store, Stream};

/// Sequences in the first window, in all partitions together, beside those that fill a page.
const FIRST_WINDOW: u64 = 256;

impl Store {
    pub(crate) async fn query(&self, name: &StreamName, query: &Query) -> Result<Page> {
        let deadline = self.deadline();
        let stream = self.stream(deadline, name).await?;
        if let Some(partition) = query.partition {
            stream.count.check("partition", partition)?;
        }
        let ended = query.cursor.as_ref();
        let ended = ended
            .map(|cursor| cursor.position(query.order))
            .transpose()?;
        let limit = query.limit() as usize;
        if limit == 0 {
            // Nothing to do; but whether the store is reached comes first (ERR-6).
            return self.ping(deadline).await.map(|()| Page::default());
        }
        let mut found = Matching {
            query,
            ended,
            limit,
            events: Vec::new(),
        };
        match query.order.by {
            OrderBy::Sequence => self.by_sequence(deadline, &stream, &mut found).await?,
            OrderBy::Timestamp => self.by_time(deadline, &stream, &mut found).await?,
        }
        found.select();
        let next = match found.events.last() {
            Some(last) if found.events.len() == limit => Some(Cursor::after(last, query.order)),
            _ => None,
        };
        Ok(Page {
            events: found.events,
            next,
        })
    }

    async fn by_sequence(
        &self,
        deadline: Instant,
        stream: &Stream,
        found: &mut Matching<'_>,
    ) -> Result<()> {
        let partitions: Vec<Partition> = match found.query.partition {
            Some(only) => vec![only],
            None => stream.count.partitions().collect(),
        };
        let heads = self.high_watermarks(deadline, stream, &partitions).await?;
        let head = heads.values().max().copied().unwrap_or_default();
        let (after, until) = bounds(found.query, found.ended);
        let (mut low, mut high) = (after.get(), until.min(head).get());
        let share = (found.limit as u64 + FIRST_WINDOW) / partitions.len() as u64;
        let mut width = share.max(16);
        while low < high && found.events.len() < found.limit {
            let (from, to) = match found.query.order.direction {
                Direction::Ascending => (low, low.saturating_add(width).min(high)),
                Direction::Descending => (high.saturating_sub(width).max(low), high),
            };
            let windows = stream::iter(partitions.iter().copied())
                .map(|partition| self.window(deadline, stream, partition, from, to, found.query))
                .buffer_unordered(AT_ONCE)
                .try_collect::<Vec<_>>();
            for batch in windows.await?.into_iter().flatten() {
                found.add(stream, &batch, |sequence| {
                    (from + 1..=to).contains(&sequence.get())
                })?;
            }
            match found.query.order.direction {
                Direction::Ascending => low = to,
                Direction::Descending => high = from,
            }
            width = width.saturating_mul(2);
        }
        Ok(())
    }

    /// The batches of a partition that have sequences above `from` up to `to`.
    async fn window(
        &self,
        deadline: Instant,
        stream: &Stream,
        partition: Partition,
        from: u64,
        to: u64,
        query: &Query,
    ) -> Result<Vec<Batch>> {
        let (from, to) = (from.cast_signed(), to.cast_signed());
        let most = i64::try_from(MOST_EVENTS).unwrap_or(i64::MAX);
        let mut filter = doc! {
            "stream": &*stream.id,
            "partition": partition.number().cast_signed(),
            "first": { "$gt": from - most, "$lte": to },
            "last": { "$gt": from },
        };
        add_filters(&mut filter, query, None);
        let documents = self.all(deadline, self.log.find(filter)).await?;
        documents.into_iter().map(Batch::new).collect()
    }

    async fn by_time(
        &self,
        deadline: Instant,
        stream: &Stream,
        found: &mut Matching<'_>,
    ) -> Result<()> {
        let (query, ended) = (found.query, found.ended);
        let (after, until) = bounds(query, None);
        let mut filter = doc! {
            "stream": &*stream.id,
            "first": { "$lte": until.as_i64() },
            "last": { "$gt": after.as_i64() },
        };
        if let Some(partition) = query.partition {
            filter.insert("partition", partition.number().cast_signed());
        }
        add_filters(&mut filter, query, ended);
        let way = match query.order.direction {
            Direction::Ascending => 1,
            Direction::Descending => -1,
        };
        let find = self.log.find(filter).sort(doc! { "time": way });
        let mut cursor = self.read(deadline, find).await?;
        while let Some(document) = next(deadline, &mut cursor).await? {
            let batch = Batch::new(document)?;
            // What follows has another time, and so comes behind all that was found.
            let is_full = found.events.len() >= found.limit;
            if is_full && found.latest() != Some(batch.timestamp) {
                break;
            }
            found.add(stream, &batch, |_| true)?;
        }
        Ok(())
    }
}

/// What is left of a filter for the server: bounds of time, and marks.
fn add_filters(filter: &mut Document, query: &Query, ended: Option<Position>) {
    let (mut from, mut until) = (query.from, query.until);
    match (ended, query.order.direction) {
        (Some(ended), Direction::Ascending) => from = from.max(Some(ended.timestamp)),
        (Some(ended), Direction::Descending) => {
            until = Some(until.map_or(ended.timestamp, |until| until.min(ended.timestamp)));
        }
        (None, _) => {}
    }
    filter.insert(
        "time",
        doc! {
            "$gte": from.unwrap_or(Timestamp::MIN).as_micros(),
            "$lte": until.unwrap_or(Timestamp::MAX).as_micros(),
        },
    );
    let marks: Vec<Bson> = marks_of(query);
    if !marks.is_empty() {
        filter.insert(
            "$or",
            vec![
                doc! { "marks": { "$all": marks } },
                doc! { "marks": UNMARKED },
            ],
        );
    }
}

/// The best matching events so far.
struct Matching<'a> {
    query: &'a Query,
    ended: Option<Position>,
    limit: usize,
    events: Vec<Event>,
}

impl Matching<'_> {
    fn add(
        &mut self,
        stream: &Stream,
        batch: &Batch,
        is_wanted: impl Fn(Sequence) -> bool,
    ) -> Result<()> {
        let (query, order, ended) = (self.query, self.query.order, self.ended);
        let events = batch.events(&stream.name, is_wanted)?.into_iter();
        let is_behind = |event: &Event| {
            ended.is_none_or(|ended| order.compare(&Position::from(event), &ended).is_gt())
        };
        self.events
            .extend(events.filter(|event| is_behind(event) && query.matches(event)));
        if self.events.len() >= self.limit.saturating_mul(2).saturating_add(1_000) {
            self.select();
        }
        Ok(())
    }

    /// Keeps the first of them, in order.
    fn select(&mut self) {
        let order: Order = self.query.order;
        self.events
            .sort_unstable_by(|l, r| order.compare(&Position::from(l), &Position::from(r)));
        self.events.truncate(self.limit);
    }

    /// The time of the event that was found last, and so the last one in the order of time.
    fn latest(&self) -> Option<Timestamp> {
        let times = self.events.iter().map(|event| event.timestamp);
        match self.query.order.direction {
            Direction::Ascending => times.max(),
            Direction::Descending => times.min(),
        }
    }
}

/// The sequences that can matter: exclusive below, inclusive above.
fn bounds(query: &Query, ended: Option<Position>) -> (Sequence, Sequence) {
    let after = query.after_sequence.unwrap_or(Sequence::ZERO);
    let until = query.until_sequence.unwrap_or(Sequence::MAX);
    match (ended, query.order.by, query.order.direction) {
        (Some(ended), OrderBy::Sequence, Direction::Ascending) => {
            (after.max(ended.sequence.previous()), until)
        }
        (Some(ended), OrderBy::Sequence, Direction::Descending) => {
            (after, until.min(ended.sequence))
        }
        _ => (after, until),
    }
}
