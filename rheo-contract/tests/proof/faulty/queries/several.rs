//! Filters that are left out, and texts and times that are taken for others.

use std::collections::BTreeMap;

use rheo_core::{OrderBy, Page, Query, Result, StreamName, Timestamp, async_trait};
use serde_json::Value;

use super::filters::page_of;
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        TwoFieldsAreCompared: "the first two fields of payload and of metadata are compared",
        says: "the sequences with 1 in",
        kills: ["queries::QRY-1::any_number_of_fields_must_match"],
    },
    faulty! {
        BackslashesInFieldsAreEscapes: "two backslashes in the text of a field are taken for one",
        says: "the sequences by",
        kills: ["queries::QRY-1::escapes_and_wildcards_in_texts_are_letters"],
    },
    faulty! {
        UntilBefore1970IsNoBound: "until a time before 1970 is until ever",
        says: "sequence and partition from",
        kills: ["queries::QRY-1::a_time_range_may_be_anywhere"],
    },
    faulty! {
        FromTheFarFutureIsNoBound: "from a time that nanoseconds in 64 bits do not hold is from ever",
        says: "sequence and partition from",
        kills: ["queries::QRY-1::a_time_range_may_be_anywhere"],
    },
    faulty! {
        UntilIsLeftOutBesideTypeAndKey: "beside a type and a key, until plays no part",
        says: "the places found",
        kills: ["queries::QRY-1::every_filter_holds_beside_all_others"],
    },
    faulty! {
        PagesByAnIndexAreCutAt1000: "pages of a query with filters are cut at a thousand",
        says: "sequence and partition of one page",
        kills: ["queries::QRY-3::a_page_holds_1500_matching_events"],
    },
    faulty! {
        APageLooksAt1000Events: "a page ends after a thousand events were looked at",
        says: "the rare events of one page",
        kills: [
            "queries::QRY-3::rare_events_are_found_a_thousand_events_apart",
            "queries::QRY-3::a_page_holds_1500_matching_events",
        ],
    },
    faulty! {
        PagesByTimeEndAfter2000: "pages by time end after two thousand events",
        says: "sequence and partition by Timestamp",
        kills: [
            "queries::QRY-3::pages_join_up_beyond_a_thousand_events",
            "queries::QRY-3::rare_events_are_found_a_thousand_events_apart",
        ],
    },
];

#[derive(Default)]
struct TwoFieldsAreCompared;

fn first_two(fields: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let first = fields.iter().take(2);
    first
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[async_trait]
impl Defect for TwoFieldsAreCompared {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut query = query.clone();
        query.payload = first_two(&query.payload);
        query.metadata = first_two(&query.metadata);
        real.backend.query(stream, &query).await
    }
}

/// A text as something makes of it that takes a backslash for an escape.
fn unescaped(value: &Value) -> Value {
    match value.as_str() {
        Some(text) => Value::from(text.replace(r"\\", r"\")),
        None => value.clone(),
    }
}

#[derive(Default)]
struct BackslashesInFieldsAreEscapes;

#[async_trait]
impl Defect for BackslashesInFieldsAreEscapes {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut rest = query.clone();
        let is_text = |value: &Value| value.is_string();
        rest.payload.retain(|_, value| !is_text(value));
        page_of(real, stream, query, |event| {
            let mut texts = query.payload.iter().filter(|(_, value)| is_text(value));
            let has = |(name, wanted): (&String, &Value)| {
                let value = event.payload.get(name);
                value.is_some_and(|value| unescaped(value) == unescaped(wanted))
            };
            rest.matches(event) && texts.all(has)
        })
        .await
    }
}

#[derive(Default)]
struct UntilBefore1970IsNoBound;

#[async_trait]
impl Defect for UntilBefore1970IsNoBound {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut query = query.clone();
        query.until = query.until.filter(|until| *until >= Timestamp::UNIX_EPOCH);
        real.backend.query(stream, &query).await
    }
}

#[derive(Default)]
struct FromTheFarFutureIsNoBound;

#[async_trait]
impl Defect for FromTheFarFutureIsNoBound {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut query = query.clone();
        let is_held = |time: &Timestamp| time.as_micros() <= i64::MAX / 1_000;
        query.from = query.from.filter(is_held);
        real.backend.query(stream, &query).await
    }
}

#[derive(Default)]
struct APageLooksAt1000Events;

#[async_trait]
impl Defect for APageLooksAt1000Events {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let page = real.backend.query(stream, query).await?;
        if !query.needs_secondary_indexes() || query.limit() == 0 {
            return Ok(page);
        }
        let mut all = Query::new().with_limit(1_000);
        (all.order, all.cursor) = (query.order, query.cursor.clone());
        let looked_at = real.backend.query(stream, &all).await?;
        let mut events = page.events;
        events.retain(|event| looked_at.events.contains(event));
        let next = match events.len() == query.limit() as usize {
            true => page.next,
            false => looked_at.next,
        };
        Ok(Page { events, next })
    }
}

#[derive(Default)]
struct PagesByTimeEndAfter2000;

#[async_trait]
impl Defect for PagesByTimeEndAfter2000 {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let page = real.backend.query(stream, query).await?;
        if query.order.by == OrderBy::Sequence {
            return Ok(page);
        }
        let mut first = Query::new().with_limit(2_000);
        first.order = query.order;
        let first = real.backend.query(stream, &first).await?.events;
        let (mut events, count) = (page.events, first.len());
        events.retain(|event| count < 2_000 || first.contains(event));
        let next = page.next.filter(|_| !events.is_empty());
        Ok(Page { events, next })
    }
}

#[derive(Default)]
struct UntilIsLeftOutBesideTypeAndKey;

#[async_trait]
impl Defect for UntilIsLeftOutBesideTypeAndKey {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut query = query.clone();
        if query.event_type.is_some() && query.key.is_some() {
            query.until = None;
        }
        real.backend.query(stream, &query).await
    }
}

#[derive(Default)]
struct PagesByAnIndexAreCutAt1000;

#[async_trait]
impl Defect for PagesByAnIndexAreCutAt1000 {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut query = query.clone();
        if query.needs_secondary_indexes() {
            query.limit = Some(query.limit().min(1_000));
        }
        real.backend.query(stream, &query).await
    }
}
