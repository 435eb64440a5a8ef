//! Filters that find by something else than the value.

use std::collections::BTreeMap;

use rheo_core::{Event, EventKey, Page, Query, Result, StreamName, async_trait, json_equal};

use crate::defect::{Defect, Real};

/// All events that pass the rest of the query, filtered another way.
async fn filtered(
    real: &Real,
    stream: &StreamName,
    query: Query,
    keep: impl Fn(&Event) -> bool,
) -> Result<Page> {
    let mut page = real
        .backend
        .query(stream, &query.with_limit(u32::MAX))
        .await?;
    page.events.retain(keep);
    page.next = None;
    Ok(page)
}

#[derive(Default)]
pub(super) struct TypeFilterFoldsCase;

#[async_trait]
impl Defect for TypeFilterFoldsCase {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut rest = query.clone();
        let Some(wanted) = rest.event_type.take() else {
            return real.backend.query(stream, query).await;
        };
        let wanted = wanted.as_str().to_lowercase();
        let keep = |event: &Event| event.event_type.as_str().to_lowercase() == wanted;
        filtered(real, stream, rest, keep).await
    }
}

#[derive(Default)]
pub(super) struct KeyFilterIgnoresBlanks;

#[async_trait]
impl Defect for KeyFilterIgnoresBlanks {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut rest = query.clone();
        let Some(wanted) = rest.key.take() else {
            return real.backend.query(stream, query).await;
        };
        let wanted = wanted.as_str().trim_end();
        let is_it = |key: &EventKey| key.as_str().trim_end() == wanted;
        filtered(real, stream, rest, |event| {
            event.key.as_ref().is_some_and(is_it)
        })
        .await
    }
}

#[derive(Default)]
pub(super) struct FilterRunsOperators;

#[async_trait]
impl Defect for FilterRunsOperators {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let operator = query.payload.iter().find_map(|(field, value)| {
            let operand = value.as_object()?.get("$ne")?;
            Some((field.clone(), operand.clone()))
        });
        let Some((field, operand)) = operator else {
            return real.backend.query(stream, query).await;
        };
        let mut rest = query.clone();
        rest.payload = BTreeMap::new();
        filtered(real, stream, rest, |event| {
            event.payload.get(&field) != Some(&operand)
        })
        .await
    }
}

#[derive(Default)]
pub(super) struct FilterIsLike;

#[async_trait]
impl Defect for FilterIsLike {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut query = query.clone();
        query.payload.retain(|_, value| value.as_str() != Some("%"));
        real.backend.query(stream, &query).await
    }
}

#[derive(Default)]
pub(super) struct FieldIsAPath;

#[async_trait]
impl Defect for FieldIsAPath {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let path = query.payload.iter().find_map(|(field, value)| {
            let (outer, inner) = field.split_once('.')?;
            Some((outer.to_owned(), inner.to_owned(), value.clone()))
        });
        let Some((outer, inner, wanted)) = path else {
            return real.backend.query(stream, query).await;
        };
        let mut rest = query.clone();
        rest.payload = BTreeMap::new();
        let keep = |event: &Event| {
            let found = event
                .payload
                .get(&outer)
                .and_then(|outer| outer.get(&inner));
            found.is_some_and(|found| json_equal(found, &wanted))
        };
        filtered(real, stream, rest, keep).await
    }
}
