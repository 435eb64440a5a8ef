//! JSON as `jsonb` keeps it: which numbers need care, and how they are written.
//!
//! `jsonb` holds a number as a decimal of any length. It keeps `1.0` apart from `1`, every u64 and
//! every double comes back, and it compares by value, so that it is payload and index in one. Just
//! one thing is lost: a double that is written with an exponent comes back without it, and where it
//! is a whole number that a u64 or i64 could be, it comes back as an integer. So whole doubles are
//! written in full, as in `10000000000000000.0`: then their fraction stays. That they are written
//! exactly also makes them equal to the integer that they are, and to no other.
//!
//! The sign of a zero is lost, which LOG-8 allows.

use std::io;

use rheo_core::JsonObject;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};
use sqlx::encode::{Encode, IsNull};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo};
use sqlx::types::Json;
use sqlx::{Postgres, Type};

/// A JSON text to be bound as `jsonb`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Jsonb(Vec<u8>);

impl Jsonb {
    /// The text of an object.
    pub(crate) fn new(object: &JsonObject) -> Self {
        Self::of(object.as_map())
    }

    /// The text of any value that is JSON by its type.
    pub(crate) fn of(value: &impl Serialize) -> Self {
        let mut text = Vec::with_capacity(128);
        let mut serializer = serde_json::Serializer::with_formatter(&mut text, WholeDoubles);
        match value.serialize(&mut serializer) {
            Ok(()) => Self(text),
            Err(error) => unreachable!("JSON of maps with text keys can be written: {error}"),
        }
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Compact JSON in which a whole double that might be taken for an integer is written in full.
struct WholeDoubles;

/// No integer of 64 bits, signed or not, is that large.
const BEYOND_INTEGERS: f64 = 18_446_744_073_709_551_616.0;

impl Formatter for WholeDoubles {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        if value.fract() == 0.0 && value.abs() <= BEYOND_INTEGERS {
            write!(writer, "{value:.1}")
        } else {
            CompactFormatter.write_f64(writer, value)
        }
    }
}

impl Type<Postgres> for Jsonb {
    fn type_info() -> PgTypeInfo {
        <Json<()> as Type<Postgres>>::type_info()
    }
}

impl PgHasArrayType for Jsonb {
    fn array_type_info() -> PgTypeInfo {
        <Json<()> as PgHasArrayType>::array_type_info()
    }
}

impl Encode<'_, Postgres> for Jsonb {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        const VERSION: u8 = 1;
        buffer.push(VERSION);
        buffer.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn size_hint(&self) -> usize {
        1 + self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(value: Value) -> String {
        String::from_utf8(Jsonb::of(&value).0).expect("JSON is UTF-8")
    }

    #[test]
    fn a_whole_double_keeps_its_fraction() {
        for (value, text) in [
            (json!(1), "1"),
            (json!(1.0), "1.0"),
            (json!(1e16), "10000000000000000.0"),
            (json!(-1e18), "-1000000000000000000.0"),
            (
                json!(18_446_744_073_709_549_568.0),
                "18446744073709549568.0",
            ),
            (json!(u64::MAX), "18446744073709551615"),
            (json!(0.1), "0.1"),
            (json!(1e-7), "1e-7"),
            (json!(1e300), "1e+300"),
        ] {
            let written = written(value.clone());
            assert_eq!(written.replace('+', ""), text.replace('+', ""));
            assert_eq!(
                serde_json::from_str::<Value>(&written).expect("JSON"),
                value
            );
        }
    }

    #[test]
    fn all_else_is_compact_json() {
        let value = json!({"a": [null, true, "ü\"\\u0000"], "": {"$b.c": -1}});
        assert_eq!(written(value.clone()), value.to_string());
    }
}
