//! Filters and bounds that are left out of some statements.

use std::collections::BTreeMap;

use rheo_core::{Direction, OrderBy, Page, Position, Query, Result, StreamName, async_trait};

use super::filters::page_of;
use crate::defect::{Defect, Real};

/// Leaves something out of some queries.
macro_rules! loses {
    ($type:ident, |$query:ident| $when:expr, $lose:block) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
                let mut changed = query.clone();
                let $query = &mut changed;
                if $when {
                    $lose
                }
                real.backend.query(stream, &changed).await
            }
        }
    };
}

fn descends(query: &Query) -> bool {
    query.order.direction == Direction::Descending
}

fn is_by_time(query: &Query) -> bool {
    query.order.by == OrderBy::Timestamp
}

loses!(TypeIsLostOnLaterPages, |query| query.cursor.is_some(), {
    query.event_type = None;
});

loses!(
    KeyIsLostOnLaterPagesDescending,
    |query| query.cursor.is_some() && descends(query),
    {
        query.key = None;
    }
);

loses!(
    PayloadIsLostOnLaterPagesByTimestamp,
    |query| query.cursor.is_some() && is_by_time(query),
    {
        query.payload = BTreeMap::new();
    }
);

loses!(
    MetadataIsLostInARangeOfTime,
    |query| query.from.is_some() || query.until.is_some(),
    {
        query.metadata = BTreeMap::new();
    }
);

loses!(
    OneFieldIsLostOnLaterPages,
    |query| query.cursor.is_some() && query.payload.len() > 1,
    {
        query.payload.pop_first();
    }
);

loses!(
    PartitionIsLostWhereThereIsAType,
    |query| query.event_type.is_some(),
    {
        query.partition = None;
    }
);

loses!(PartitionIsLostByTimestamp, |query| is_by_time(query), {
    query.partition = None;
});

loses!(
    AfterIsLostWhereThereIsAKey,
    |query| query.key.is_some() && query.partition.is_none(),
    {
        query.after_sequence = None;
    }
);

loses!(
    UntilSequenceIsLostOnLaterPages,
    |query| query.cursor.is_some() && query.limit != Some(2),
    {
        query.until_sequence = None;
    }
);

loses!(UntilSequenceIsLostByTimestamp, |query| is_by_time(query), {
    query.until_sequence = None;
});

loses!(CursorTakesThePlaceOfFrom, |query| query.cursor.is_some(), {
    query.from = None;
});

loses!(
    CursorTakesThePlaceOfUntil,
    |query| query.cursor.is_some(),
    {
        query.until = None;
    }
);

loses!(
    TimesAreLostDescending,
    |query| descends(query) && is_by_time(query),
    {
        (query.from, query.until) = (None, None);
    }
);

/// With a filter, pages by time go on at the next timestamp.
#[derive(Default)]
pub(super) struct FilteredPagesGoOnAtTheNextTimestamp;

#[async_trait]
impl Defect for FilteredPagesGoOnAtTheNextTimestamp {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let is_affected = is_by_time(query) && query.event_type.is_some();
        let Some(cursor) = query.cursor.as_ref().filter(|_| is_affected) else {
            return real.backend.query(stream, query).await;
        };
        let ended: Position = cursor.position(query.order)?;
        page_of(real, stream, query, |event| {
            query.matches(event) && event.timestamp != ended.timestamp
        })
        .await
    }
}
