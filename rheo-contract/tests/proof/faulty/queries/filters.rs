//! Filters that let other events through.

use std::sync::Mutex;

use rheo_core::{
    Cursor, Event, JsonObject, Page, Query, Result, StreamName, StreamOptions, async_trait,
    json_equal,
};
use serde_json::Value;

use crate::defect::{Defect, Real};

/// A page of what `matches`, whatever the query says besides its order, limit and cursor.
pub(super) async fn page_of(
    real: &Real,
    stream: &StreamName,
    query: &Query,
    matches: impl Fn(&Event) -> bool + Send,
) -> Result<Page> {
    let mut all = Query::new().with_limit(u32::MAX);
    (all.order, all.cursor, all.partition) = (query.order, query.cursor.clone(), query.partition);
    let mut events = real.backend.query(stream, &all).await?.events;
    events.retain(matches);
    let limit = query.limit() as usize;
    events.truncate(limit);
    let next = events
        .last()
        .filter(|_| events.len() == limit)
        .map(|last| Cursor::after(last, query.order));
    Ok(Page { events, next })
}

/// The query without some of its filters, which are checked by `$matches` instead.
macro_rules! filters {
    ($type:ident, |$query:ident| $without:block, |$event:ident, $given:ident| $matches:block) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
                let mut rest = query.clone();
                {
                    let $query = &mut rest;
                    $without
                }
                page_of(real, stream, query, |event| {
                    let ($event, $given) = (event, query);
                    rest.matches(event) && $matches
                })
                .await
            }
        }
    };
}

/// SQL's LIKE.
fn like(text: &str, pattern: &str) -> bool {
    let mut letters = pattern.chars();
    match letters.next() {
        None => text.is_empty(),
        Some('%') => (0..=text.len())
            .filter(|at| text.is_char_boundary(*at))
            .any(|at| like(&text[at..], letters.as_str())),
        Some(letter) => text
            .strip_prefix(|c| letter == '_' || c == letter)
            .is_some_and(|rest| like(rest, letters.as_str())),
    }
}

filters!(
    TypesAreComparedByLike,
    |query| {
        query.event_type = None;
    },
    |event, given| {
        given
            .event_type
            .as_ref()
            .is_none_or(|wanted| like(event.event_type.as_str(), wanted.as_str()))
    }
);

filters!(
    TypesAreComparedWithoutCase,
    |query| {
        query.event_type = None;
    },
    |event, given| {
        let folded = event.event_type.as_str().to_lowercase();
        given
            .event_type
            .as_ref()
            .is_none_or(|wanted| wanted.as_str().to_lowercase() == folded)
    }
);

filters!(
    KeysAreComparedByLike,
    |query| {
        query.key = None;
    },
    |event, given| {
        let like = |wanted: &str| {
            event
                .key
                .as_ref()
                .is_some_and(|key| like(key.as_str(), wanted))
        };
        given
            .key
            .as_ref()
            .is_none_or(|wanted| like(wanted.as_str()))
    }
);

filters!(
    KeysAreComparedWithoutTheirBlanks,
    |query| {
        query.key = None;
    },
    |event, given| {
        let trimmed = event.key.as_ref().map(|key| key.as_str().trim());
        given
            .key
            .as_ref()
            .is_none_or(|wanted| trimmed == Some(wanted.as_str().trim()))
    }
);

filters!(
    MissingKeyIsFoundByNull,
    |query| {
        query.key = None;
    },
    |event, given| {
        let key = event.key.as_ref().map_or("null", |key| key.as_str());
        given
            .key
            .as_ref()
            .is_none_or(|wanted| wanted.as_str() == key)
    }
);

/// The first bytes of a text.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

filters!(
    TypesAreComparedTo64Bytes,
    |query| {
        query.event_type = None;
    },
    |event, given| {
        given
            .event_type
            .as_ref()
            .is_none_or(|wanted| cut(wanted.as_str(), 64) == cut(event.event_type.as_str(), 64))
    }
);

filters!(
    KeysAreComparedTo767Bytes,
    |query| {
        query.key = None;
    },
    |event, given| {
        let key = event.key.as_ref().map(|key| cut(key.as_str(), 767));
        given
            .key
            .as_ref()
            .is_none_or(|wanted| key == Some(cut(wanted.as_str(), 767)))
    }
);

fn has(object: &JsonObject, field: &str, wanted: &Value) -> bool {
    object
        .get(field)
        .is_some_and(|value| json_equal(value, wanted))
}

filters!(
    MetadataIsSearchedInThePayload,
    |query| {
        query.metadata.clear();
    },
    |event, given| {
        given
            .metadata
            .iter()
            .all(|(field, wanted)| has(&event.payload, field, wanted))
    }
);

filters!(
    PayloadIsSearchedInBoth,
    |query| {
        query.payload.clear();
    },
    |event, given| {
        let in_both = |(field, wanted): (&String, &Value)| {
            has(&event.payload, field, wanted) || has(&event.metadata, field, wanted)
        };
        given.payload.iter().all(in_both)
    }
);

filters!(
    OneOfThePayloadFieldsIsEnough,
    |query| {
        query.payload.clear();
    },
    |event, given| {
        let any = given
            .payload
            .iter()
            .any(|(field, wanted)| has(&event.payload, field, wanted));
        given.payload.is_empty() || any
    }
);

filters!(
    TypeIsLeftOutWhereThereIsAKey,
    |query| {
        query.event_type = None;
    },
    |event, given| {
        given
            .event_type
            .as_ref()
            .is_none_or(|wanted| *wanted == event.event_type || given.key.is_some())
    }
);

filters!(
    MetadataIsLeftOutWhereThereIsAPayload,
    |query| {
        query.metadata.clear();
    },
    |event, given| {
        let all = given
            .metadata
            .iter()
            .all(|(field, wanted)| has(&event.metadata, field, wanted));
        all || !given.payload.is_empty()
    }
);

/// Finds by an index that knows nothing of streams.
#[derive(Default)]
pub(super) struct IndexesAreOverAllStreams {
    streams: Mutex<Vec<StreamName>>,
}

#[async_trait]
impl Defect for IndexesAreOverAllStreams {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        real.backend.create_stream(stream, options).await?;
        self.streams
            .lock()
            .expect("not poisoned")
            .push(stream.clone());
        Ok(())
    }
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut page = real.backend.query(stream, query).await?;
        if query.needs_secondary_indexes() && query.cursor.is_none() {
            let streams = self.streams.lock().expect("not poisoned").clone();
            for other in streams.iter().filter(|other| *other != stream) {
                page.events
                    .extend(real.backend.query(other, query).await?.events);
            }
        }
        Ok(page)
    }
}
