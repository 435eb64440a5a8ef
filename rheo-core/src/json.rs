//! JSON values as Rheo understands them: the domain every backend keeps exactly, and equality by value.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};

use crate::Error;

/// How deep arrays and objects may nest, counting the outermost object (LOG-8).
pub const MAX_JSON_DEPTH: usize = 64;

/// How long a payload or a metadata object may be as compact JSON: 1 MiB (LOG-8).
pub const MAX_JSON_BYTES: usize = 1_048_576;

/// A payload or metadata object that every backend stores and gives back equal (LOG-8).
///
/// Every `i64` and `u64`, finite doubles (integers and doubles stay distinct), any Unicode string
/// and key without U+0000, nesting to [`MAX_JSON_DEPTH`], at most [`MAX_JSON_BYTES`] as compact
/// JSON. Cheap to clone.
///
/// ```
/// use rheo_core::JsonObject;
/// use serde_json::json;
///
/// let payload = JsonObject::payload(json!({"order": 7, "total": 12.50}))?;
/// assert_eq!(payload.get("order"), Some(&json!(7)));
/// assert!(JsonObject::payload(json!([1, 2])).is_err());
/// # Ok::<(), rheo_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Default)]
pub struct JsonObject(Arc<Map<String, Value>>);

impl JsonObject {
    /// Checks a payload.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for the argument `payload` when it is outside the domain of LOG-8.
    pub fn payload(value: Value) -> Result<Self, Error> {
        Self::new("payload", value)
    }

    /// Checks metadata.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for the argument `metadata` when it is outside the domain of LOG-8.
    pub fn metadata(value: Value) -> Result<Self, Error> {
        Self::new("metadata", value)
    }

    fn new(argument: &str, value: Value) -> Result<Self, Error> {
        check_value(argument, &value, MAX_JSON_DEPTH)?;
        let Value::Object(map) = value else {
            return Err(Error::invalid(argument, kind_of(&value), "a JSON object"));
        };
        let object = Self(Arc::new(map));
        let bytes = object.byte_len();
        if bytes > MAX_JSON_BYTES {
            return Err(Error::invalid(
                argument,
                format_args!("{bytes} bytes of JSON"),
                format!("at most {MAX_JSON_BYTES} bytes of compact JSON"),
            ));
        }
        Ok(object)
    }

    /// The value of a top-level field.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field)
    }

    /// The fields.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The object as a value of its own; copies it.
    pub fn to_value(&self) -> Value {
        Value::Object((*self.0).clone())
    }

    /// Whether it has no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its length in bytes as compact JSON.
    pub fn byte_len(&self) -> usize {
        struct Counter(usize);
        impl std::io::Write for Counter {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0 += bytes.len();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut counter = Counter(0);
        match serde_json::to_writer(&mut counter, &*self.0) {
            Ok(()) => counter.0,
            Err(_) => usize::MAX,
        }
    }
}

impl fmt::Debug for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match serde_json::to_string(&*self.0) {
            Ok(text) => f.write_str(&text),
            Err(_) => f.write_str("{…}"),
        }
    }
}

impl Serialize for JsonObject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new("object", Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Checks nesting and U+0000 without recursion, so that no input can overflow the stack here.
pub(crate) fn check_value(argument: &str, value: &Value, max_depth: usize) -> Result<(), Error> {
    let no_nul = |text: &str| {
        if text.contains('\0') {
            return Err(Error::invalid(
                argument,
                format_args!("a string with U+0000: {text:?}"),
                "strings and keys without U+0000",
            ));
        }
        Ok(())
    };
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        if matches!(value, Value::Array(_) | Value::Object(_)) && depth == max_depth {
            return Err(Error::invalid(
                argument,
                format_args!("JSON nested deeper than {max_depth}"),
                format!("nesting of arrays and objects to {max_depth}"),
            ));
        }
        match value {
            Value::String(text) => no_nul(text)?,
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => {
                for (key, item) in fields {
                    no_nul(key)?;
                    open.push((item, depth + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    Ok(())
}

/// Equality of JSON by value (QRY-1): `1` equals `1.0` but not `"1"`, the order of keys does not
/// matter, the order of items does.
///
/// ```
/// use rheo_core::json_equal;
/// use serde_json::json;
///
/// assert!(json_equal(&json!({"a": 1, "b": [2]}), &json!({"b": [2.0], "a": 1.0})));
/// assert!(!json_equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0)));
/// ```
pub fn json_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => numbers_equal(left, right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| json_equal(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, l)| right.get(key).is_some_and(|r| json_equal(l, r)))
        }
        (left, right) => left == right,
    }
}

fn numbers_equal(left: &Number, right: &Number) -> bool {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => left == right,
        (None, None) => left.as_f64() == right.as_f64(),
        (Some(integer), None) => right.as_f64().is_some_and(|d| equals_integer(d, integer)),
        (None, Some(integer)) => left.as_f64().is_some_and(|d| equals_integer(d, integer)),
    }
}

/// Exact: the double is not compared by rounding the integer.
fn equals_integer(double: f64, integer: i128) -> bool {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a whole double below 2^65 fits i128; larger ones saturate and equal no u64 or i64"
    )]
    let whole = double as i128;
    double.fract() == 0.0 && whole == integer
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(depth: usize) -> Value {
        (1..depth).fold(json!({}), |inner, _| json!({ "a": inner }))
    }

    #[test]
    fn the_domain_of_log_8_is_accepted() {
        for value in [
            json!({}),
            json!({"": 1, "a.b": 2, "$where": {"$gt": ""}}),
            json!({"min": i64::MIN, "max": u64::MAX, "d": f64::MAX, "z": -0.0}),
            json!({"text": "\\u0000 is innocent", "crab": "🦀\u{ffff}"}),
            nested(64),
        ] {
            assert_eq!(
                JsonObject::payload(value.clone())
                    .expect("allowed")
                    .to_value(),
                value
            );
        }
    }

    #[test]
    fn what_is_outside_names_the_argument() {
        let huge = json!({"a": "x".repeat(MAX_JSON_BYTES)});
        for value in [
            json!(null),
            json!([]),
            json!("text"),
            json!({"a": "\0"}),
            json!({"\0": 1}),
            json!({"a": [{"b": "\0"}]}),
            nested(65),
            huge,
        ] {
            let Err(Error::Invalid(invalid)) = JsonObject::metadata(value) else {
                panic!("accepted");
            };
            assert_eq!(invalid.argument, "metadata");
        }
    }

    #[test]
    fn a_mebibyte_to_the_byte_is_allowed() {
        let fits = json!({"a": "x".repeat(MAX_JSON_BYTES - r#"{"a":""}"#.len())});
        assert_eq!(
            JsonObject::payload(fits).expect("fits").byte_len(),
            MAX_JSON_BYTES
        );
    }

    #[test]
    fn numbers_are_equal_by_value() {
        for (left, right, equal) in [
            (json!(1), json!(1.0), true),
            (json!(0), json!(-0.0), true),
            (json!(1), json!("1"), false),
            (json!(1), json!(true), false),
            (json!(u64::MAX), json!(-1), false),
            (json!(u64::MAX), json!(u64::MAX as f64), false),
            (json!(1u64 << 63), json!(9_223_372_036_854_775_808.0), true),
            (json!(i64::MAX), json!(i64::MAX as f64), false),
            (json!(1e300), json!(1e300), true),
            (json!(1e300), json!(1), false),
            (json!(0.1), json!(0), false),
            (json!([1, 2]), json!([2, 1]), false),
            (json!({"a": null}), json!({}), false),
        ] {
            assert_eq!(json_equal(&left, &right), equal, "{left} and {right}");
            assert_eq!(json_equal(&right, &left), equal, "{right} and {left}");
        }
    }
}
