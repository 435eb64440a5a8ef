//! Variants that answer in other words: other cursors, a next page that is empty, other texts of errors.

use rheo_core::{
    Cause, Cursor, Error, Event, FetchOptions, GroupName, GroupOptions, Lease, NewEvent, Page,
    Query, ReadOptions, Replay, ResetOptions, Result, StreamName, async_trait,
};

use super::{Differing, Variant};
use crate::defect::{Defect, Real};

pub(super) const ALL: &[&dyn Variant] = &[
    &Differing("OtherCursors", || OtherCursors),
    &Differing("NextPageIsAlwaysThere", || NextPageIsAlwaysThere),
    &Differing("OtherWords", || OtherWords),
];

/// Its cursors are texts of its own.
struct OtherCursors;

fn reversed(cursor: &Cursor) -> String {
    cursor.as_str().chars().rev().collect()
}

#[async_trait]
impl Defect for OtherCursors {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut query = query.clone();
        query.cursor = query.cursor.map(|cursor| {
            let inner = reversed(&cursor);
            Cursor::from_text(inner.strip_suffix(" \u{fc} ").unwrap_or("damaged"))
        });
        let mut page = real.backend.query(stream, &query).await?;
        page.next = page
            .next
            .map(|next| Cursor::from_text(format!(" \u{fc} {}", reversed(&next))));
        Ok(page)
    }
}

/// A page with events always has a next one, which may be empty.
struct NextPageIsAlwaysThere;

#[async_trait]
impl Defect for NextPageIsAlwaysThere {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut page = real.backend.query(stream, query).await?;
        page.next = page
            .events
            .last()
            .map(|last| Cursor::after(last, query.order));
        Ok(page)
    }
}

/// Its errors say the same in other words.
struct OtherWords;

fn reworded<T>(result: Result<T>) -> Result<T> {
    result.map_err(|mut error| {
        match &mut error {
            Error::Invalid(invalid) => {
                invalid.given = "something".to_owned();
                invalid.allowed = "see the manual".to_owned();
            }
            Error::BackendUnavailable(cause) | Error::Failed(cause) => {
                *cause = Cause::new("no route to host");
            }
            _ => {}
        }
        error
    })
}

#[async_trait]
impl Defect for OtherWords {
    async fn ping(&self, real: &Real) -> Result<()> {
        reworded(real.backend.ping().await)
    }
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        reworded(real.backend.create_group(stream, group, options).await)
    }
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        reworded(real.backend.append_batch(stream, events).await)
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        reworded(real.backend.read(stream, options).await)
    }
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        reworded(real.backend.query(stream, query).await)
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        reworded(real.backend.fetch(stream, group, options).await)
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        reworded(real.backend.replay(stream, group, replay).await)
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        reworded(real.backend.reset_group(stream, group, options).await)
    }
}
