//! Short texts of arguments and results, for the history.

use std::fmt;

use rheo_core::{
    Capabilities, DeadLetter, Event, FetchOptions, GroupInfo, GroupName, JsonObject, Lag, Lease,
    NewEvent, Page, PartitionLag, Query, Result, RetryOutcome, StreamInfo, StreamName, Wakeup,
};
use serde_json::Value;

use crate::history::SHOWN;

/// A value as the history shows it: what tells it from others, on one line.
pub(crate) trait Brief {
    /// The text.
    fn brief(&self) -> String;
}

/// `Ok`, with what is in it.
pub(crate) fn ok<T: Brief>(value: &T) -> String {
    match value.brief() {
        nothing if nothing.is_empty() => "Ok".to_owned(),
        brief => format!("Ok({brief})"),
    }
}

impl Brief for () {
    fn brief(&self) -> String {
        String::new()
    }
}

impl Brief for Event {
    fn brief(&self) -> String {
        event_list(std::slice::from_ref(self))
    }
}

impl Brief for Vec<Event> {
    fn brief(&self) -> String {
        event_list(self)
    }
}

impl Brief for Page {
    fn brief(&self) -> String {
        let next = self.next.as_ref().map(|cursor| cursor.as_str());
        format!("{}, next {next:?}", event_list(&self.events))
    }
}

impl Brief for Lease {
    fn brief(&self) -> String {
        lease_list(std::slice::from_ref(self))
    }
}

impl Brief for Vec<Lease> {
    fn brief(&self) -> String {
        lease_list(self)
    }
}

impl Brief for Lag {
    fn brief(&self) -> String {
        let partition =
            |p: &PartitionLag| format!("{:?} {}/{}", p.partition, p.frontier, p.high_watermark);
        Shown(&self.partitions, partition).to_string()
    }
}

impl Brief for Vec<DeadLetter> {
    fn brief(&self) -> String {
        let dead = |dead: &DeadLetter| {
            let place = Place(&dead.event);
            format!("{place} attempt {} {:?}", dead.attempt, dead.reason)
        };
        Shown(self, dead).to_string()
    }
}

macro_rules! brief_as_debug {
    ($($type:ty),+) => {
        $(impl Brief for $type {
            fn brief(&self) -> String {
                format!("{self:?}")
            }
        })+
    };
}

brief_as_debug!(
    Capabilities,
    GroupInfo,
    RetryOutcome,
    Vec<GroupName>,
    Vec<StreamInfo>,
    Wakeup
);

/// A list of at most eight shown items.
pub(crate) struct Shown<'a, T, F>(pub(crate) &'a [T], pub(crate) F);

impl<'a, T, D: fmt::Display, F: Fn(&'a T) -> D> fmt::Display for Shown<'a, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 8;
        f.write_str("[")?;
        for (at, item) in self.0.iter().take(MOST).enumerate() {
            write!(f, "{}{}", if at == 0 { "" } else { ", " }, (self.1)(item))?;
        }
        if self.0.len() > MOST {
            write!(f, ", … {} in all", self.0.len())?;
        }
        f.write_str("]")
    }
}

/// Compact JSON, of which no more is written than is shown: documents may be megabytes.
struct Json<'a>(&'a JsonObject);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        write_fields(&mut text, self.0.as_map());
        f.write_str(&text)
    }
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::String(string) => write_string(text, string),
        Value::Object(fields) => write_fields(text, fields),
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if text.len() > SHOWN {
                    return;
                }
                text.push_str(if at == 0 { "" } else { "," });
                write_value(text, item);
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
    }
}

fn write_fields(text: &mut String, fields: &serde_json::Map<String, Value>) {
    text.push('{');
    for (at, (name, value)) in fields.iter().enumerate() {
        if text.len() > SHOWN {
            return;
        }
        text.push_str(if at == 0 { "" } else { "," });
        write_string(text, name);
        text.push(':');
        write_value(text, value);
    }
    text.push('}');
}

fn write_string(text: &mut String, string: &str) {
    let shown = &string[..string.floor_char_boundary(SHOWN)];
    text.push_str(&Value::from(shown).to_string());
}

/// An event to append.
pub(crate) struct Append<'a>(pub(crate) &'a NewEvent);

impl fmt::Display for Append<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NewEvent {
            id,
            event_type,
            key,
            partition,
            payload,
            metadata,
            ..
        } = self.0;
        write!(f, "{event_type:?}")?;
        if let Some(id) = id {
            write!(f, " id {id}")?;
        }
        if let Some(key) = key {
            write!(f, " key {key:?}")?;
        }
        if let Some(partition) = partition {
            write!(f, " to {partition:?}")?;
        }
        write!(f, " {}", Json(payload))?;
        if !metadata.is_empty() {
            write!(f, " metadata {}", Json(metadata))?;
        }
        Ok(())
    }
}

/// Where an event is.
struct Place<'a>(&'a Event);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{:?}", self.0.partition, self.0.sequence)
    }
}

/// A lease, as an argument.
pub(crate) struct LeaseRef<'a>(pub(crate) &'a Lease);

impl fmt::Display for LeaseRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lease = self.0;
        let id = lease.lease_id.as_str();
        let short = &id[..id.floor_char_boundary(8)];
        write!(
            f,
            "{} {short:?} of {:?}",
            Place(&lease.event),
            lease.consumer
        )?;
        if let Some(receipt) = &lease.receipt {
            write!(f, " receipt {receipt:?}")?;
        }
        Ok(())
    }
}

/// A lease, as an argument, with the stream and the group that it is of.
pub(crate) struct Placed<'a>(pub(crate) &'a Lease);

impl fmt::Display for Placed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stream, group) = place_of(self.0);
        write!(f, "{} on {stream:?}/{group:?}", LeaseRef(self.0))
    }
}

fn place_of(lease: &Lease) -> (&StreamName, &GroupName) {
    (&lease.event.stream, &lease.group)
}

/// Many leases, as an argument; where all are of one stream and group, that is said once.
pub(crate) struct Leases<'a>(pub(crate) &'a [Lease]);

impl fmt::Display for Leases<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.0.first() else {
            return f.write_str("[]");
        };
        let (stream, group) = place_of(first);
        if self
            .0
            .iter()
            .any(|lease| place_of(lease) != place_of(first))
        {
            return Shown(self.0, Placed).fmt(f);
        }
        write!(f, "{} on {stream:?}/{group:?}", Shown(self.0, LeaseRef))
    }
}

/// The results of a batch.
pub(crate) struct Results<'a, T>(pub(crate) &'a [Result<T>]);

impl<T> fmt::Display for Results<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(self.0, |result: &Result<T>| match result {
            Ok(_) => "Ok".to_owned(),
            Err(error) => error.kind().to_string(),
        })
        .fmt(f)
    }
}

/// What shall be fetched.
pub(crate) struct Fetch<'a>(pub(crate) &'a FetchOptions);

impl fmt::Display for Fetch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FetchOptions {
            consumer,
            limit,
            lease_duration,
            partitions,
            ..
        } = self.0;
        let duration = lease_duration.as_duration();
        write!(f, "{consumer:?}, limit {limit}, for {duration:?}")?;
        if let rheo_core::Partitions::Only(only) = partitions {
            write!(f, ", only {only:?}")?;
        }
        Ok(())
    }
}

/// A query, without what it does not say.
pub(crate) struct QueryText<'a>(pub(crate) &'a Query);

impl fmt::Display for QueryText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let q = self.0;
        let mut parts = Vec::new();
        let mut part = |name: &str, value: Option<String>| {
            parts.extend(value.map(|value| format!("{name} {value}")));
        };
        part("type", q.event_type.as_ref().map(|v| format!("{v:?}")));
        part("key", q.key.as_ref().map(|v| format!("{v:?}")));
        part("partition", q.partition.map(|v| v.to_string()));
        part(
            "payload",
            (!q.payload.is_empty()).then(|| format!("{:?}", q.payload)),
        );
        part(
            "metadata",
            (!q.metadata.is_empty()).then(|| format!("{:?}", q.metadata)),
        );
        part("from", q.from.map(|v| v.to_string()));
        part("until", q.until.map(|v| v.to_string()));
        part("after", q.after_sequence.map(|v| v.to_string()));
        part("until sequence", q.until_sequence.map(|v| v.to_string()));
        part("limit", q.limit.map(|v| v.to_string()));
        part(
            "cursor",
            q.cursor.as_ref().map(|v| format!("{:?}", v.as_str())),
        );
        write!(f, "by {:?} {:?}", q.order.by, q.order.direction)?;
        for part in parts {
            write!(f, ", {part}")?;
        }
        Ok(())
    }
}

/// Events, as a result.
pub(crate) fn event_list(events: &[Event]) -> String {
    Shown(events, |event| {
        format!("{} {}", Place(event), Json(&event.payload))
    })
    .to_string()
}

/// Leases, as a result.
pub(crate) fn lease_list(leases: &[Lease]) -> String {
    let shown = Shown(leases, |lease| {
        format!(
            "{} attempt {} until {}",
            LeaseRef(lease),
            lease.attempt,
            lease.expires_at
        )
    });
    shown.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(value: Value) -> String {
        let object = JsonObject::payload(value).expect("a valid payload");
        Json(&object).to_string()
    }

    #[test]
    fn json_is_shown_compactly() {
        let value = json!({ "a": [1, 1.0, null, "\"\n"], "b": { "": true }, "c": {}, "d": [] });

        assert_eq!(shown(value.clone()), value.to_string());
    }

    #[test]
    fn of_long_json_the_beginning_is_shown() {
        let long = "ü".repeat(100_000);
        let items: Vec<u32> = (0..100_000).collect();
        for value in [
            json!({ "text": long }),
            json!({ long.clone(): 1 }),
            json!({ "items": items }),
        ] {
            let text = shown(value.clone());

            assert!((SHOWN..2 * SHOWN).contains(&text.len()), "{}", text.len());
            assert!(
                value
                    .to_string()
                    .starts_with(&text[..text.floor_char_boundary(SHOWN - 1)])
            );
        }
    }
}
