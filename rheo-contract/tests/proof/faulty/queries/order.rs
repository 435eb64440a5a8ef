//! Other orders, and pages that end in the wrong place.

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{
    ConsumerId, Cursor, Direction, Event, FetchOptions, GroupName, GroupOptions, OrderBy, Page,
    Position, Query, Result, StreamName, async_trait,
};

use crate::defect::{Defect, Real};

/// All that matches, in the right order.
async fn everything(real: &Real, stream: &StreamName, query: &Query) -> Result<Vec<Event>> {
    let mut all = query.clone().with_limit(u32::MAX);
    all.cursor = None;
    Ok(real.backend.query(stream, &all).await?.events)
}

/// The page of `events` after the event that the cursor names.
fn page(mut events: Vec<Event>, query: &Query) -> Result<Page> {
    if let Some(cursor) = &query.cursor {
        let ended = cursor.position(query.order)?;
        let last = events
            .iter()
            .position(|event| Position::from(event) == ended);
        events.drain(..last.map_or(0, |at| at + 1));
    }
    let limit = query.limit() as usize;
    events.truncate(limit);
    let next = events
        .last()
        .filter(|_| events.len() == limit)
        .map(|last| Cursor::after(last, query.order));
    Ok(Page { events, next })
}

/// Orders by `$key`, and the other way round where the query descends.
macro_rules! orders {
    ($type:ident, $by:ident, |$event:ident| $key:expr) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
                if query.order.by != OrderBy::$by {
                    return real.backend.query(stream, query).await;
                }
                // Cursors and limits are as they should be.
                real.backend.query(stream, query).await?;
                let mut events = everything(real, stream, query).await?;
                events.sort_by_key(|$event| $key);
                if query.order.direction == Direction::Descending {
                    events.reverse();
                }
                page(events, query)
            }
        }
    };
}

orders!(TiesOfSequencesComeBackwards, Sequence, |event| {
    (event.sequence, std::cmp::Reverse(event.partition))
});

orders!(OrderBySequenceIsByPartition, Sequence, |event| (
    event.partition,
    event.sequence
));

orders!(OrderByTimestampIsThenByPartition, Timestamp, |event| {
    (event.timestamp, event.partition, event.sequence)
});

orders!(OrderByTimestampIsThatOfTheLog, Timestamp, |event| (
    event.sequence,
    event.partition
));

orders!(SequenceTiesComeByPartitionAsText, Sequence, |event| (
    event.sequence,
    event.partition.to_string()
));

orders!(TimeTiesComeByPartitionAsText, Timestamp, |event| (
    event.timestamp,
    event.sequence,
    event.partition.to_string()
));

/// Descending turns the first key round and leaves the others.
#[derive(Default)]
pub(super) struct TiesNeverDescend;

#[async_trait]
impl Defect for TiesNeverDescend {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        real.backend.query(stream, query).await?;
        let mut events = everything(real, stream, query).await?;
        if query.order.direction == Direction::Descending {
            events.reverse();
            match query.order.by {
                OrderBy::Sequence => events.sort_by_key(|event| std::cmp::Reverse(event.sequence)),
                OrderBy::Timestamp => {
                    events.sort_by_key(|event| std::cmp::Reverse(event.timestamp))
                }
            }
        }
        page(events, query)
    }
}

/// Goes on where `$follows` says, of an event and the position of the last one.
macro_rules! goes_on {
    ($type:ident, $by:pat, |$event:ident, $ended:ident| $follows:expr) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
                let real_page = real.backend.query(stream, query).await?;
                let Some(cursor) = query
                    .cursor
                    .as_ref()
                    .filter(|_| matches!(query.order.by, $by))
                else {
                    return Ok(real_page);
                };
                let $ended = cursor.position(query.order)?;
                let mut events = everything(real, stream, query).await?;
                let last = events
                    .iter()
                    .position(|event| Position::from(event) == $ended);
                let last = last.unwrap_or_default();
                let mut at = 0;
                events.retain(|$event| {
                    at += 1;
                    at > last && $follows
                });
                let mut rest = query.clone();
                rest.cursor = None;
                page(events, &rest)
            }
        }
    };
}

goes_on!(
    CursorIsTheSequenceAlone,
    OrderBy::Sequence,
    |event, ended| event.sequence != ended.sequence
);

goes_on!(
    CursorIsTheTimestampAlone,
    OrderBy::Timestamp,
    |event, ended| event.timestamp != ended.timestamp
);

goes_on!(CursorHoldsThePartitionAsText, _, |event, ended| {
    let as_text = event.partition.to_string() > ended.partition.to_string();
    let is_same = event.sequence == ended.sequence && event.partition == ended.partition;
    let is_above = event.partition > ended.partition;
    !is_same && (event.sequence != ended.sequence || as_text == is_above)
});

goes_on!(CursorIsInclusive, _, |_event, _ended| true);

/// Queries for rare events give up after some that do not match.
#[derive(Default)]
pub(super) struct PageEndsAfterTenThatDoNotMatch;

#[async_trait]
impl Defect for PageEndsAfterTenThatDoNotMatch {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut unfiltered = Query::new().with_limit(10);
        (unfiltered.order, unfiltered.cursor) = (query.order, query.cursor.clone());
        if query.payload.is_empty() || query.limit() > 10 {
            return real.backend.query(stream, query).await;
        }
        let looked_at = real.backend.query(stream, &unfiltered).await?;
        let mut events = looked_at.events;
        events.retain(|event| query.matches(event));
        if events.len() < query.limit() as usize {
            return Ok(Page {
                events,
                next: looked_at.next,
            });
        }
        real.backend.query(stream, query).await
    }
}

/// A query and a group share what is claimed.
#[derive(Default)]
pub(super) struct QueriesClaimEvents {
    groups: Mutex<HashSet<(StreamName, GroupName)>>,
}

#[async_trait]
impl Defect for QueriesClaimEvents {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        self.groups
            .lock()
            .expect("not poisoned")
            .insert((stream.clone(), group.clone()));
        Ok(())
    }
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let groups = self.groups.lock().expect("not poisoned").clone();
        for (_, group) in groups.iter().filter(|(of, _)| of == stream) {
            let options = FetchOptions::new(ConsumerId::new("query")?);
            real.backend.fetch(stream, group, &options).await?;
        }
        real.backend.query(stream, query).await
    }
}

/// A page is cut where it becomes too long, and says that more follows.
macro_rules! cuts {
    ($type:ident, |$events:ident| $most:expr) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
                let mut page = real.backend.query(stream, query).await?;
                let $events = &page.events;
                let most: usize = $most;
                if most < page.events.len() {
                    page.events.truncate(most.max(1));
                    let last = page.events.last();
                    page.next = last.map(|last| Cursor::after(last, query.order));
                }
                Ok(page)
            }
        }
    };
}

cuts!(PagesAreCutAt1000, |_events| 1_000);

cuts!(PagesAreCutAtAMegabyte, |events| {
    let mut bytes = 0;
    let fits = events.iter().take_while(|event| {
        let text = event.payload.get("text").and_then(|text| text.as_str());
        bytes += text.map_or(0, str::len);
        bytes <= 1 << 20
    });
    fits.count()
});
