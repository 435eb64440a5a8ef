//! Events and what comes with them, out of rows.

use rheo_core::{
    Event, EventId, EventKey, EventType, JsonObject, Partition, Result, Sequence, StreamName,
    Timestamp,
};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{Decode, Postgres, Row, Type};
use uuid::Uuid;

use crate::error::{Stage, Subject, portable};

/// A column that the schema says is there.
pub(crate) fn column<'r, T>(row: &'r PgRow, name: &str) -> Result<T>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    row.try_get(name)
        .map_err(|error| portable(&error, Stage::SentRead, &Subject::default()))
}

/// As [`column`], of a number that is not negative.
pub(crate) fn number<T: TryFrom<i64> + Default>(row: &PgRow, name: &str) -> Result<T> {
    let number: i64 = column(row, name)?;
    T::try_from(number).map_err(|_| crate::error::failed("a number in the store is out of range"))
}

/// As [`number`], of a column of type integer.
pub(crate) fn small<T: TryFrom<i32> + Default>(row: &PgRow, name: &str) -> Result<T> {
    let number: i32 = column(row, name)?;
    T::try_from(number).map_err(|_| crate::error::failed("a number in the store is out of range"))
}

/// The event in a row that has all the columns of `events` but the stream.
pub(crate) fn event(stream: &StreamName, row: &PgRow) -> Result<Event> {
    let key: Option<&str> = column(row, "key")?;
    let Json(payload) = column::<Json<JsonObject>>(row, "payload")?;
    let Json(metadata) = column::<Json<JsonObject>>(row, "metadata")?;
    Ok(Event {
        id: EventId::new(column::<Uuid>(row, "event_id")?),
        stream: stream.clone(),
        partition: partition(row)?,
        sequence: sequence(row, "sequence")?,
        event_type: EventType::new(column::<&str>(row, "event_type")?)?,
        key: key.map(EventKey::new).transpose()?,
        payload,
        metadata,
        timestamp: timestamp(row, "timestamp")?,
    })
}

pub(crate) fn partition(row: &PgRow) -> Result<Partition> {
    Ok(Partition::new(small(row, "partition")?))
}

pub(crate) fn sequence(row: &PgRow, name: &str) -> Result<Sequence> {
    Sequence::try_from(column::<i64>(row, name)?)
}

pub(crate) fn timestamp(row: &PgRow, name: &str) -> Result<Timestamp> {
    Timestamp::from_micros(column(row, name)?)
}
