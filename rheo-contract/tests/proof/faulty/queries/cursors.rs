//! Cursors that do not last, or say too little.

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{
    Cursor, Direction, Error, Order, OrderBy, Page, Query, Result, StreamName, async_trait,
};

use crate::defect::{Defect, Real};

fn invalid() -> Error {
    Error::invalid("cursor", "a cursor", "another one")
}

/// The number of events that came before, with the order.
#[derive(Default)]
pub(super) struct CursorIsAnOffset;

#[async_trait]
impl Defect for CursorIsAnOffset {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let order = format!("{:?}", query.order);
        let mut offset = 0;
        if let Some(cursor) = &query.cursor {
            let (given, number) = cursor.as_str().split_once('+').ok_or_else(invalid)?;
            if given != order {
                return Err(invalid());
            }
            offset = number.parse().map_err(|_| invalid())?;
        }
        let mut all = query.clone().with_limit(u32::MAX);
        all.cursor = None;
        let mut events = real.backend.query(stream, &all).await?.events;
        events.drain(..offset.min(events.len()));
        let limit = query.limit() as usize;
        events.truncate(limit);
        let ended = offset + events.len();
        let next = (limit > 0 && events.len() == limit)
            .then(|| Cursor::from_text(format!("{order}+{ended}")));
        Ok(Page { events, next })
    }
}

/// A number under which this handle remembers something, once or again and again.
#[derive(Default)]
struct Remembered(Mutex<HashMap<String, Cursor>>);

impl Remembered {
    async fn query(
        &self,
        real: &Real,
        stream: &StreamName,
        query: &Query,
        is_once: bool,
    ) -> Result<Page> {
        let mut query = query.clone();
        if let Some(cursor) = &query.cursor {
            let mut known = self.0.lock().expect("not poisoned");
            let real_cursor = match is_once {
                true => known.remove(cursor.as_str()),
                false => known.get(cursor.as_str()).cloned(),
            };
            query.cursor = Some(real_cursor.ok_or_else(invalid)?);
        }
        let mut page = real.backend.query(stream, &query).await?;
        if let Some(next) = &mut page.next {
            let mut known = self.0.lock().expect("not poisoned");
            let name = format!("cursor-{}-{}", known.len(), uuid::Uuid::new_v4().simple());
            let real_cursor = std::mem::replace(next, Cursor::from_text(&name));
            known.insert(name, real_cursor);
        }
        Ok(page)
    }
}

#[derive(Default)]
pub(super) struct CursorIsRememberedByTheHandle(Remembered);

#[async_trait]
impl Defect for CursorIsRememberedByTheHandle {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        self.0.query(real, stream, query, false).await
    }
}

#[derive(Default)]
pub(super) struct CursorIsUsedUp(Remembered);

#[async_trait]
impl Defect for CursorIsUsedUp {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        self.0.query(real, stream, query, true).await
    }
}

/// Each query forgets the cursor of the query before.
#[derive(Default)]
pub(super) struct OnlyTheLatestCursorIsValid {
    latest: Mutex<Option<Cursor>>,
}

#[async_trait]
impl Defect for OnlyTheLatestCursorIsValid {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let page = real.backend.query(stream, query).await?;
        let mut latest = self.latest.lock().expect("not poisoned");
        if query.cursor.is_some() && query.cursor != *latest {
            return Err(invalid());
        }
        if page.next.is_some() {
            latest.clone_from(&page.next);
        }
        Ok(page)
    }
}

/// The cursor belongs to the very same query.
#[derive(Default)]
pub(super) struct CursorHoldsTheFilters;

#[async_trait]
impl Defect for CursorHoldsTheFilters {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let filters = format!("{:?}/{:?}", query.after_sequence, query.until_sequence);
        let mut query = query.clone();
        if let Some(cursor) = &query.cursor {
            let (given, text) = cursor.as_str().split_once('|').ok_or_else(invalid)?;
            if given != filters {
                return Err(invalid());
            }
            query.cursor = Some(Cursor::from_text(text));
        }
        let mut page = real.backend.query(stream, &query).await?;
        page.next = page
            .next
            .map(|next| Cursor::from_text(format!("{filters}|{next}")));
        Ok(page)
    }
}

#[derive(Default)]
pub(super) struct DamagedCursorIsIgnored;

#[async_trait]
impl Defect for DamagedCursorIsIgnored {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        match real.backend.query(stream, query).await {
            Err(Error::Invalid(invalid)) if invalid.argument == "cursor" => {
                let mut first = query.clone();
                first.cursor = None;
                real.backend.query(stream, &first).await
            }
            page => page,
        }
    }
}

/// What stands behind the last dot is not looked at.
#[derive(Default)]
pub(super) struct CursorHasNoChecksum(Mutex<HashMap<String, Cursor>>);

#[async_trait]
impl Defect for CursorHasNoChecksum {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let position = |text: &str| {
            text.rsplit_once('.')
                .map(|(position, _)| position.to_owned())
        };
        let mut query = query.clone();
        if let Some(cursor) = &query.cursor {
            let known = self.0.lock().expect("not poisoned");
            let found =
                position(cursor.as_str()).and_then(|position| known.get(&position).cloned());
            query.cursor = found.or(query.cursor.clone());
        }
        let page = real.backend.query(stream, &query).await?;
        if let Some(next) = &page.next {
            let mut known = self.0.lock().expect("not poisoned");
            known.extend(position(next.as_str()).map(|position| (position, next.clone())));
        }
        Ok(page)
    }
}

/// A cursor of another order goes on in that order's place.
#[derive(Default)]
pub(super) struct CursorOfAnyOrderIsTaken;

#[async_trait]
impl Defect for CursorOfAnyOrderIsTaken {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let Some(cursor) = &query.cursor else {
            return real.backend.query(stream, query).await;
        };
        let is_of = |by, direction| cursor.position(Order { by, direction }).is_ok();
        for by in [OrderBy::Sequence, OrderBy::Timestamp] {
            for direction in [Direction::Ascending, Direction::Descending] {
                if is_of(by, direction) {
                    let query = query.clone().with_order_by(by).with_direction(direction);
                    return real.backend.query(stream, &query).await;
                }
            }
        }
        real.backend.query(stream, query).await
    }
}
