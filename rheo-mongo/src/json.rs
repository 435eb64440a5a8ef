//! JSON in BSON: what comes back equal is kept as a document, to be queried like any other; what BSON
//! would change is kept as text.
//!
//! BSON has no integer above `i64::MAX`, and servers and their query language have ideas of their own
//! about keys that are empty, begin with `$` or hold a dot. All else of LOG-8 comes back equal:
//! integers are Int64 and doubles are Double, so `1` and `1.0` stay apart.

use mongodb::bson::{Bson, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use rheo_core::{Error, JsonObject, Result};
use serde_json::{Map, Number, Value};
use twox_hash::XxHash64;

use crate::error::failed;

/// An object as it is stored.
pub(crate) fn stored(object: &JsonObject) -> RawBson {
    match document(object.as_map()) {
        Some(document) => RawBson::Document(document),
        None => text(object),
    }
}

/// An object as compact JSON text, which takes as many bytes as LOG-8 counts.
pub(crate) fn text(object: &JsonObject) -> RawBson {
    match serde_json::to_string(object.as_map()) {
        Ok(text) => RawBson::String(text),
        Err(error) => unreachable!("a map with text keys can be written: {error}"),
    }
}

fn document(map: &Map<String, Value>) -> Option<RawDocumentBuf> {
    let mut document = RawDocumentBuf::new();
    for (key, value) in map {
        if key.is_empty() || key.starts_with('$') || key.contains('.') {
            return None;
        }
        document.append(key, bson(value)?);
    }
    Some(document)
}

fn bson(value: &Value) -> Option<RawBson> {
    Some(match value {
        Value::Null => RawBson::Null,
        Value::Bool(value) => RawBson::Boolean(*value),
        Value::String(text) => RawBson::String(text.clone()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => RawBson::Int64(integer),
            (None, Some(double)) if number.is_f64() => RawBson::Double(double),
            _ => return None,
        },
        Value::Array(items) => {
            let mut array = RawArrayBuf::new();
            for item in items {
                array.push(bson(item)?);
            }
            RawBson::Array(array)
        }
        Value::Object(map) => RawBson::Document(document(map)?),
    })
}

/// The value that was stored.
pub(crate) fn value(stored: RawBsonRef<'_>) -> Result<Value> {
    match stored {
        RawBsonRef::String(text) => {
            serde_json::from_str(text).map_err(|_| failed("a stored JSON text is damaged"))
        }
        RawBsonRef::Document(document) => Ok(Value::Object(map(document)?)),
        _ => Err(failed("a stored object is damaged")),
    }
}

fn map(document: &RawDocument) -> Result<Map<String, Value>> {
    document
        .iter()
        .map(|field| {
            let (key, value) = field.map_err(damaged)?;
            Ok((key.to_owned(), json(value)?))
        })
        .collect()
}

fn json(value: RawBsonRef<'_>) -> Result<Value> {
    Ok(match value {
        RawBsonRef::Null => Value::Null,
        RawBsonRef::Boolean(value) => Value::Bool(value),
        RawBsonRef::String(text) => Value::String(text.to_owned()),
        RawBsonRef::Int64(integer) => Value::Number(integer.into()),
        RawBsonRef::Double(double) => {
            let number = Number::from_f64(double);
            Value::Number(number.ok_or_else(|| failed("a stored number is damaged"))?)
        }
        RawBsonRef::Array(array) => {
            let items = array.into_iter();
            let items = items.map(|item| json(item.map_err(damaged)?));
            Value::Array(items.collect::<Result<_>>()?)
        }
        RawBsonRef::Document(document) => Value::Object(map(document)?),
        _ => return Err(failed("a stored value is of a kind that JSON has not")),
    })
}

fn damaged<E>(_: E) -> Error {
    failed("a stored document is damaged")
}

// What filters look for

/// A mark of something that an event has: equal for what is equal as a filter sees it (QRY-1). Marks
/// of different things are hardly ever equal, and nobody relies on it.
pub(crate) fn mark(what: &str, name: &str, value: &Value) -> Bson {
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(what.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(0);
    canonical(value, &mut bytes);
    Bson::Int64(XxHash64::oneshot(0, &bytes).cast_signed())
}

/// The same bytes for all that is equal as JSON: numbers by value, keys in order.
fn canonical(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Null => bytes.push(b'0'),
        Value::Bool(false) => bytes.push(b'f'),
        Value::Bool(true) => bytes.push(b't'),
        Value::Number(number) => {
            bytes.push(b'n');
            match whole(number) {
                Some(integer) => bytes.extend_from_slice(&integer.to_be_bytes()),
                None => {
                    let double = number.as_f64().unwrap_or_default();
                    bytes.extend_from_slice(&double.to_be_bytes());
                }
            }
        }
        Value::String(text) => {
            bytes.push(b's');
            sized(text, bytes);
        }
        Value::Array(items) => {
            bytes.push(b'[');
            for item in items {
                canonical(item, bytes);
            }
            bytes.push(b']');
        }
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            bytes.push(b'{');
            for (key, value) in fields {
                sized(key, bytes);
                canonical(value, bytes);
            }
            bytes.push(b'}');
        }
    }
}

fn sized(text: &str, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&text.len().to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// The integer that a number is, if a `u64` or `i64` could be equal to it.
fn whole(number: &Number) -> Option<i128> {
    /// No integer of 64 bits is that large.
    const BEYOND_INTEGERS: f64 = 18_446_744_073_709_551_616.0;
    if let Some(integer) = number.as_i128() {
        return Some(integer);
    }
    let double = number.as_f64()?;
    let is_whole = double.fract() == 0.0 && double.abs() < BEYOND_INTEGERS;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole and below 2^64"
    )]
    let integer = double as i128;
    is_whole.then_some(integer)
}

#[cfg(test)]
mod tests {
    use rheo_core::json_equal;
    use serde_json::json;

    use super::*;

    fn nested(depth: usize) -> Value {
        (1..depth).fold(json!({}), |inner, _| json!({ "a": inner }))
    }

    #[test]
    fn what_goes_in_comes_out() {
        for (object, is_document) in [
            (json!({}), true),
            (json!({"a": [null, true, 1, 1.0, -1, "x", {"b": []}]}), true),
            (
                json!({"i": i64::MIN, "j": i64::MAX, "d": f64::MAX, "e": 1e-300}),
                true,
            ),
            (
                json!({"text": "\\u0000 🦀\u{ffff}", "date": "2026-01-01T00:00:00Z"}),
                true,
            ),
            (json!({"_id": 1, "ü": {"a b": 1}}), true),
            (nested(64), true),
            (json!({"u": u64::MAX}), false),
            (json!({"a": [{"": 1}]}), false),
            (json!({"a.b": 1}), false),
            (json!({"a": {"$gt": ""}}), false),
            (json!({"$oid": "0123456789abcdef01234567"}), false),
        ] {
            let object = JsonObject::payload(object).expect("allowed");
            let kept = stored(&object);
            assert_eq!(kept.as_document().is_some(), is_document, "{object:?}");
            for kept in [kept, text(&object)] {
                assert_eq!(
                    value(kept.as_raw_bson_ref()).expect("whole"),
                    object.to_value()
                );
            }
        }
    }

    #[test]
    fn a_text_takes_no_more_than_log_8_counts() {
        let object = JsonObject::payload(json!({"a": "\"ü\n", "b": [0, 0.5]})).expect("allowed");
        let kept = text(&object);
        assert_eq!(kept.as_str().expect("a text").len(), object.byte_len());
    }

    #[test]
    fn marks_are_equal_where_filters_are() {
        let values = [
            json!(1),
            json!(1.0),
            json!("1"),
            json!(true),
            json!(0),
            json!(-0.0),
            json!(null),
            json!(0.1),
            json!(u64::MAX),
            json!(u64::MAX as f64),
            json!(-1),
            json!(1u64 << 63),
            json!(9_223_372_036_854_775_808.0),
            json!(i64::MIN),
            json!(1e300),
            json!([]),
            json!({}),
            json!([1, [2]]),
            json!([1, 2]),
            json!({"a": 1, "b": {"c": 2.0}}),
            json!({"b": {"c": 2}, "a": 1.0}),
            json!({"$gt": ""}),
        ];
        for left in &values {
            for right in &values {
                let is_equal = mark("payload", "f", left) == mark("payload", "f", right);
                assert_eq!(is_equal, json_equal(left, right), "{left} and {right}");
            }
        }
        assert_ne!(
            mark("payload", "f", &json!(1)),
            mark("metadata", "f", &json!(1))
        );
        assert_ne!(
            mark("payload", "f", &json!(1)),
            mark("payload", "g", &json!(1))
        );
    }
}
