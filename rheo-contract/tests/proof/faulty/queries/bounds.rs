//! Queries of another range, limit or stream.

use std::time::Duration;

use rheo_core::{
    Cursor, Error, Event, Page, Partition, Query, Result, Sequence, StreamName, Timestamp,
    async_trait,
};

use crate::defect::{Defect, Real};

/// Asks the real backend something else.
macro_rules! asks {
    ($type:ident, |$query:ident| $change:block) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
                let mut changed = query.clone();
                let $query = &mut changed;
                $change;
                real.backend.query(stream, &changed).await
            }
        }
    };
}

asks!(PartitionOf0IsNone, |query| {
    query.partition = query
        .partition
        .filter(|partition| *partition != Partition::ZERO);
});

asks!(UntilIsExclusive, |query| {
    query.until = query
        .until
        .map(|until| until.saturating_sub(Duration::from_micros(1)));
});

asks!(FromIsExclusive, |query| {
    query.from = query
        .from
        .map(|from| from.saturating_add(Duration::from_micros(1)));
});

asks!(TimeRangeIsOfMilliseconds, |query| {
    let whole = |time: Timestamp, rest: i64| {
        let micros = time.as_micros() + rest;
        Timestamp::from_micros(micros - micros.rem_euclid(1_000)).unwrap_or(time)
    };
    query.from = query.from.map(|from| whole(from, 0));
    query.until = query.until.map(|until| whole(until, 999));
});

asks!(AfterSequenceIsInclusive, |query| {
    query.after_sequence = query.after_sequence.map(Sequence::previous);
});

asks!(UntilSequenceIsExclusive, |query| {
    query.until_sequence = query.until_sequence.map(Sequence::previous);
});

asks!(TimesAreSwappedIntoOrder, |query| {
    if let (Some(from), Some(until)) = (query.from, query.until) {
        (query.from, query.until) = (Some(from.min(until)), Some(from.max(until)));
    }
});

asks!(QueryLimitOf0MeansAll, |query| {
    query.limit = query
        .limit
        .map(|limit| if limit == 0 { u32::MAX } else { limit });
});

asks!(QueryLimitIsSigned, |query| {
    query.limit = query
        .limit
        .map(|limit| if limit > u32::MAX / 2 { 0 } else { limit });
});

asks!(QueryGives50ByDefault, |query| {
    query.limit = query.limit.or(Some(50));
});

asks!(PagesLeaveRoom, |query| {
    query.limit = query.limit.map(|limit| if limit == 4 { 3 } else { limit });
});

asks!(LimitOf0AsksForNoCursor, |query| {
    query.cursor = query.cursor.take().filter(|_| query.limit != Some(0));
});

/// Does something else with the answer.
macro_rules! answers {
    ($type:ident, |$real:ident, $stream:ident, $query:ident| $answer:block) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn query(
                &self,
                $real: &Real,
                $stream: &StreamName,
                $query: &Query,
            ) -> Result<Page> {
                $answer
            }
        }
    };
}

answers!(ContradictionIsInvalid, |real, stream, query| {
    let time = query
        .from
        .zip(query.until)
        .is_some_and(|(from, until)| from > until);
    let sequence = query
        .after_sequence
        .zip(query.until_sequence)
        .is_some_and(|(after, until)| after > until);
    if time || sequence {
        return Err(Error::invalid(
            "until",
            "an end before the beginning",
            "a range",
        ));
    }
    real.backend.query(stream, query).await
});

answers!(LimitOf0HasANextPage, |real, stream, query| {
    let mut page = real.backend.query(stream, query).await?;
    if query.limit == Some(0) {
        let first = real
            .backend
            .query(stream, &query.clone().with_limit(1))
            .await?;
        page.next = first
            .events
            .first()
            .map(|event: &Event| Cursor::after(event, query.order));
    }
    Ok(page)
});

answers!(LimitComesBeforeTheFilters, |real, stream, query| {
    let mut all = Query::new().with_limit(query.limit());
    (all.order, all.cursor, all.partition) = (query.order, query.cursor.clone(), query.partition);
    let mut page = real.backend.query(stream, &all).await?;
    page.events.retain(|event| query.matches(event));
    Ok(page)
});

answers!(MissingStreamIsEmptyToQueries, |real, stream, query| {
    match real.backend.query(stream, query).await {
        Err(Error::StreamNotFound { .. }) => Ok(Page::default()),
        page => page,
    }
});

answers!(QueryOf0AsksForNoStream, |real, stream, query| {
    if query.limit == Some(0) && query.cursor.is_none() {
        return Ok(Page::default());
    }
    real.backend.query(stream, query).await
});

asks!(SequencesAreBoundIn32Bits, |query| {
    let low = |bound: Sequence| {
        let low = bound.get() & u64::from(u32::MAX);
        Sequence::new(low).unwrap_or(bound)
    };
    query.after_sequence = query.after_sequence.filter(|after| *after < Sequence::MAX);
    query.after_sequence = query.after_sequence.map(low);
});

asks!(UntilSequenceIsSigned32Bits, |query| {
    const MOST: u64 = i32::MAX.unsigned_abs() as u64;
    query.until_sequence = query.until_sequence.map(|until| {
        let is_negative = (MOST..1 << 40).contains(&until.get().saturating_sub(1));
        if is_negative { Sequence::ZERO } else { until }
    });
});
