//! Events: what goes into the log and what comes out of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    Error, EventKey, EventType, JsonObject, Partition, PartitionCount, Sequence, StreamName,
    Timestamp,
};

/// The id of an event, unique within its stream (LOG-7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(Uuid);

impl EventId {
    /// Any UUID of the caller's; e.g. a version 5 one made of an id from another system.
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// A new time-ordered id: UUID version 7 with the time to a microsecond and 62 random bits.
    ///
    /// Ids generated at different microseconds sort by time; within one microsecond they are in no
    /// order.
    pub fn generate(now: Timestamp) -> Self {
        let micros = now.as_micros().max(0).cast_unsigned();
        let (millis, rest) = (micros / 1_000, micros % 1_000);
        let mut tail = [0; 10];
        tail.copy_from_slice(&Uuid::new_v4().as_bytes()[6..]);
        // The twelve bits after the milliseconds hold the fraction of the millisecond (RFC 9562,
        // 6.2, method 3); the builder overwrites the version and variant bits.
        let fraction = u16::try_from(rest * 4_096 / 1_000).unwrap_or_default();
        tail[..2].copy_from_slice(&fraction.to_be_bytes());
        // In version 4 bytes, the two top bits of byte 8 are the variant, as they are in version 7.
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid())
    }

    /// The UUID.
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for EventId {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Uuid::parse_str(text)
            .map(Self)
            .map_err(|_| Error::invalid("event_id", format_args!("{text:?}"), "a UUID"))
    }
}

/// An event to append.
///
/// ```
/// use rheo_core::{EventKey, NewEvent};
/// use serde_json::json;
///
/// let event = NewEvent::new("order.placed", json!({"total": 12.50}))?
///     .with_key(EventKey::new("customer-7")?);
/// # Ok::<(), rheo_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NewEvent {
    /// The id; without one the backend generates a time-ordered one (LOG-7).
    pub id: Option<EventId>,
    /// What kind of event it is.
    pub event_type: EventType,
    /// What routes it, when no partition is given (LOG-6).
    pub key: Option<EventKey>,
    /// The partition; without one the key decides, without a key it is 0 (LOG-6).
    pub partition: Option<Partition>,
    /// The payload.
    pub payload: JsonObject,
    /// The metadata; default empty.
    pub metadata: JsonObject,
}

impl NewEvent {
    /// An event of a type with a payload.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for `event_type` or `payload`.
    pub fn new<T>(event_type: T, payload: Value) -> Result<Self, Error>
    where
        T: TryInto<EventType>,
        Error: From<T::Error>,
    {
        Ok(Self {
            id: None,
            event_type: event_type.try_into()?,
            key: None,
            partition: None,
            payload: JsonObject::payload(payload)?,
            metadata: JsonObject::default(),
        })
    }

    /// With an id of the caller's, so that the append can be repeated safely (LOG-7).
    #[must_use]
    pub fn with_id(mut self, id: EventId) -> Self {
        self.id = Some(id);
        self
    }

    /// With a key.
    #[must_use]
    pub fn with_key(mut self, key: EventKey) -> Self {
        self.key = Some(key);
        self
    }

    /// In a certain partition.
    #[must_use]
    pub fn with_partition(mut self, partition: Partition) -> Self {
        self.partition = Some(partition);
        self
    }

    /// With metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: JsonObject) -> Self {
        self.metadata = metadata;
        self
    }

    /// The partition it goes to: the given one, else the key's, else 0 (LOG-6).
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for `partition` when the given one is out of range.
    pub fn route(&self, count: PartitionCount) -> Result<Partition, Error> {
        match (&self.partition, &self.key) {
            (Some(partition), _) => {
                count.check("partition", *partition)?;
                Ok(*partition)
            }
            (None, Some(key)) => Ok(count.partition_of(key)),
            (None, None) => Ok(Partition::ZERO),
        }
    }
}

/// An event of the log: immutable (LOG-4), the same wherever it is read (LOG-5). Cheap to clone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Unique within the stream.
    pub id: EventId,
    /// The stream it is in.
    pub stream: StreamName,
    /// The partition it is in.
    pub partition: Partition,
    /// Its number within the partition.
    pub sequence: Sequence,
    /// What kind of event it is.
    pub event_type: EventType,
    /// The key it was appended with.
    pub key: Option<EventKey>,
    /// The payload, equal to what was appended.
    pub payload: JsonObject,
    /// The metadata, equal to what was appended.
    pub metadata: JsonObject,
    /// When it was appended.
    pub timestamp: Timestamp,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn generated_ids_are_version_7_and_sort_by_microsecond() {
        let at =
            |micros: i64| Timestamp::from_micros(1_764_433_526_000_000 + micros).expect("in range");
        let ids: Vec<EventId> = (0..3_000)
            .map(|micros| EventId::generate(at(micros)))
            .collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        let id = ids[1_234].as_uuid();
        assert_eq!(id.get_version_num(), 7);
        assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
        assert_eq!(
            id.get_timestamp().expect("has one").to_unix().0,
            1_764_433_526
        );
    }

    #[test]
    fn an_id_before_1970_is_still_an_id() {
        assert_eq!(
            EventId::generate(Timestamp::MIN)
                .as_uuid()
                .get_version_num(),
            7
        );
    }

    #[test]
    fn the_given_partition_goes_before_the_key() {
        let count = PartitionCount::new(4).expect("allowed");
        let key = EventKey::new("k").expect("allowed");
        let event = NewEvent::new("t", json!({})).expect("allowed");
        assert_eq!(event.route(count), Ok(Partition::ZERO));
        let event = event.with_key(key.clone());
        assert_eq!(event.route(count), Ok(count.partition_of(&key)));
        let event = event.with_partition(Partition::new(3));
        assert_eq!(event.route(count), Ok(Partition::new(3)));
        let event = event.with_partition(Partition::new(4));
        assert_eq!(
            event.route(count),
            Err(Error::invalid("partition", 4, "0 to 3"))
        );
    }
}
