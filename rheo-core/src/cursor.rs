//! Where a page of a query ended, as an opaque text.

use std::fmt;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use crate::{Direction, Error, Event, Order, OrderBy, Partition, Sequence, Timestamp};

/// The place of an event in every order that queries have (QRY-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// When the event was appended.
    pub timestamp: Timestamp,
    /// Its sequence.
    pub sequence: Sequence,
    /// Its partition.
    pub partition: Partition,
}

impl From<&Event> for Position {
    fn from(event: &Event) -> Self {
        Self {
            timestamp: event.timestamp,
            sequence: event.sequence,
            partition: event.partition,
        }
    }
}

/// Where a page ended: opaque, serializable, valid for as long as the stream lives (QRY-3).
///
/// # For implementers
///
/// [`Cursor::after`] and [`Cursor::position`] give a cursor with a checksum, so that a damaged one
/// is noticed. A backend may use a text of its own with [`Cursor::from_text`] instead, which needs
/// a checksum too.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(String);

impl Cursor {
    /// A cursor after this event in this order.
    pub fn after(event: &Event, order: Order) -> Self {
        let position = format!(
            "1.{}.{}.{}.{}",
            tag(order),
            event.timestamp.as_micros(),
            event.sequence,
            event.partition
        );
        let sum = checksum(&position);
        Self(format!("{position}.{sum}"))
    }

    /// The position that [`Cursor::after`] put in.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for the argument `cursor` when it is damaged or was made for another
    /// order.
    pub fn position(&self, order: Order) -> Result<Position, Error> {
        let damaged = || {
            Error::invalid(
                "cursor",
                format_args!("{:?}", self.0),
                "a cursor from an earlier page, unchanged",
            )
        };
        let (position, sum) = self.0.rsplit_once('.').ok_or_else(damaged)?;
        if checksum(position) != sum {
            return Err(damaged());
        }
        let parts: Vec<&str> = position.split('.').collect();
        let ["1", given, timestamp, sequence, partition] = parts[..] else {
            return Err(damaged());
        };
        if given != tag(order) {
            return Err(Error::invalid(
                "cursor",
                "a cursor of a query with another order",
                "a cursor from an earlier page of this query",
            ));
        }
        let number = |text: &str| text.parse::<i64>().map_err(|_| damaged());
        Ok(Position {
            timestamp: Timestamp::from_micros(number(timestamp)?).map_err(|_| damaged())?,
            sequence: Sequence::try_from(number(sequence)?).map_err(|_| damaged())?,
            partition: Partition::new(partition.parse().map_err(|_| damaged())?),
        })
    }

    /// A cursor from its text: one that was stored, or a backend's own.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn tag(order: Order) -> &'static str {
    match (order.by, order.direction) {
        (OrderBy::Sequence, Direction::Ascending) => "sa",
        (OrderBy::Sequence, Direction::Descending) => "sd",
        (OrderBy::Timestamp, Direction::Ascending) => "ta",
        (OrderBy::Timestamp, Direction::Descending) => "td",
    }
}

fn checksum(text: &str) -> String {
    format!("{:016x}", XxHash64::oneshot(0, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{EventId, EventType, JsonObject, StreamName};

    fn event() -> Event {
        Event {
            id: EventId::generate(Timestamp::UNIX_EPOCH),
            stream: StreamName::new("s").expect("allowed"),
            partition: Partition::new(3),
            sequence: Sequence::new(41).expect("allowed"),
            event_type: EventType::new("t").expect("allowed"),
            key: None,
            payload: JsonObject::payload(json!({})).expect("allowed"),
            metadata: JsonObject::default(),
            timestamp: Timestamp::MIN,
        }
    }

    #[test]
    fn a_cursor_gives_its_position_back() {
        let event = event();
        let cursor = Cursor::after(&event, Order::default());
        assert_eq!(
            cursor.position(Order::default()),
            Ok(Position::from(&event))
        );
    }

    #[test]
    fn another_order_is_noticed() {
        let by_time = Order {
            by: OrderBy::Timestamp,
            direction: Direction::Ascending,
        };
        let cursor = Cursor::after(&event(), Order::default());
        assert!(matches!(cursor.position(by_time), Err(Error::Invalid(_))));
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let whole = Cursor::after(&event(), Order::default());
        for at in 0..whole.as_str().len() {
            let mut bytes = whole.as_str().as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'7' { b'8' } else { b'7' };
            let text = String::from_utf8(bytes).expect("ASCII");
            assert!(Cursor::from_text(text).position(Order::default()).is_err());
            let cut = &whole.as_str()[..at];
            assert!(Cursor::from_text(cut).position(Order::default()).is_err());
        }
    }
}
