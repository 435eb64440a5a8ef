//! JSON values that are compared in some other way.

use std::collections::BTreeMap;

use rheo_core::{JsonObject, Page, Query, Result, StreamName, async_trait, json_equal};
use serde_json::{Map, Value, json};

use super::filters::page_of;
use crate::defect::{Defect, Real};

/// Finds fields by `$has` instead of by their JSON value.
macro_rules! compares {
    ($type:ident, $has:expr) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
                let has: fn(&JsonObject, &str, &Value) -> bool = $has;
                let mut rest = query.clone();
                rest.payload = BTreeMap::new();
                rest.metadata = BTreeMap::new();
                page_of(real, stream, query, |event| {
                    rest.matches(event)
                        && query
                            .payload
                            .iter()
                            .all(|(field, wanted)| has(&event.payload, field, wanted))
                        && query
                            .metadata
                            .iter()
                            .all(|(field, wanted)| has(&event.metadata, field, wanted))
                })
                .await
            }
        }
    };
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

compares!(ValuesAreComparedAsText, |object, field, wanted| {
    object
        .get(field)
        .is_some_and(|value| text(value) == text(wanted))
});

compares!(MissingFieldsAreNull, |object, field, wanted| {
    json_equal(object.get(field).unwrap_or(&Value::Null), wanted)
});

compares!(NullIsFoundNowhere, |object, field, wanted| {
    !wanted.is_null()
        && object
            .get(field)
            .is_some_and(|value| json_equal(value, wanted))
});

compares!(
    NumbersAreComparedAsTheyAreWritten,
    |object, field, wanted| object.get(field) == Some(wanted)
);

/// Equal by `scalar`, or of equal items and fields.
fn equal(left: &Value, right: &Value, scalar: fn(&Value, &Value) -> bool) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| equal(l, r, scalar))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same =
                |(name, l): (&String, &Value)| right.get(name).is_some_and(|r| equal(l, r, scalar));
            left.len() == right.len() && left.iter().all(same)
        }
        _ => scalar(left, right),
    }
}

compares!(NumbersAreComparedAsDoubles, |object, field, wanted| {
    let scalar = |l: &Value, r: &Value| match (l.as_f64(), r.as_f64()) {
        (Some(l), Some(r)) => l.to_bits() == r.to_bits() || (l == 0.0 && r == 0.0),
        _ => l == r,
    };
    object
        .get(field)
        .is_some_and(|value| equal(value, wanted, scalar))
});

compares!(TrueIs1, |object, field, wanted| {
    let scalar = |l: &Value, r: &Value| {
        let number = |value: &Value| {
            value
                .as_bool()
                .map_or(value.clone(), |is| json!(u8::from(is)))
        };
        json_equal(&number(l), &number(r))
    };
    object
        .get(field)
        .is_some_and(|value| equal(value, wanted, scalar))
});

/// As `@>`: everything wanted is somewhere in there.
fn contains(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| value.get(name).is_some_and(|value| contains(value, wanted))),
        (value, wanted) => json_equal(value, wanted),
    }
}

compares!(ObjectsAreComparedByContainment, |object, field, wanted| {
    object
        .get(field)
        .is_some_and(|value| contains(value, wanted))
});

fn written(fields: &Map<String, Value>) -> String {
    let field = |(name, value): (&String, &Value)| format!("{name}:{value}");
    fields.iter().map(field).collect::<Vec<String>>().join(",")
}

compares!(ObjectsAreComparedAsText, |object, field, wanted| {
    match (object.get(field), wanted) {
        (Some(Value::Object(value)), Value::Object(wanted)) => written(value) == written(wanted),
        (value, wanted) => value.is_some_and(|value| json_equal(value, wanted)),
    }
});

compares!(ArraysAreFoundByTheirItems, |object, field, wanted| {
    object.get(field).is_some_and(|value| {
        let items = value.as_array().into_iter().flatten();
        json_equal(value, wanted) || items.into_iter().any(|item| json_equal(item, wanted))
    })
});

fn sorted(value: &Value) -> Value {
    let mut items = value.as_array().cloned().unwrap_or_default();
    items.sort_by_key(Value::to_string);
    json!(items)
}

compares!(ArraysAreComparedAsSets, |object, field, wanted| {
    object.get(field).is_some_and(|value| {
        let are_arrays = value.is_array() && wanted.is_array();
        json_equal(value, wanted) || (are_arrays && sorted(value) == sorted(wanted))
    })
});

compares!(OperatorsAreRun, |object, field, wanted| {
    let operator = wanted.as_object().and_then(|fields| fields.keys().next());
    let value = object.get(field);
    match operator.map(String::as_str) {
        Some("$gt") => value.is_some_and(Value::is_string),
        Some("$ne" | "$exists") => value.is_some(),
        _ => value.is_some_and(|value| json_equal(value, wanted)),
    }
});

compares!(FieldNamesArePaths, |object, field, wanted| {
    let whole = object
        .get(field)
        .is_some_and(|value| json_equal(value, wanted));
    let (outer, inner) = field.split_once('.').unwrap_or((field, ""));
    let nested = object.get(outer).and_then(|value| value.get(inner));
    whole || nested.is_some_and(|value| json_equal(value, wanted))
});

/// Equal where texts are alike in `seen`.
fn alike(left: &Value, right: &Value, seen: fn(&str) -> String) -> bool {
    match (left.as_str(), right.as_str()) {
        (Some(left), Some(right)) => seen(left) == seen(right),
        _ => json_equal(left, right),
    }
}

compares!(TextsAreComparedTo255Bytes, |object, field, wanted| {
    let scalar = |left: &Value, right: &Value| {
        alike(left, right, |text| {
            text[..text.floor_char_boundary(255)].to_owned()
        })
    };
    object
        .get(field)
        .is_some_and(|value| equal(value, wanted, scalar))
});

compares!(LongTextsAreComparedTo4000Bytes, |object, field, wanted| {
    let first = |text: &str| text[..text.floor_char_boundary(4_000)].to_owned();
    object
        .get(field)
        .is_some_and(|value| alike(value, wanted, first))
});

compares!(
    NestedTextsAreComparedWithoutCase,
    |object, field, wanted| {
        object.get(field).is_some_and(|value| match value {
            Value::String(_) => value == wanted,
            _ => equal(value, wanted, |left, right| {
                alike(left, right, str::to_lowercase)
            }),
        })
    }
);

compares!(TextsAreComparedWithoutBlanks, |object, field, wanted| {
    let scalar =
        |left: &Value, right: &Value| alike(left, right, |text| text.trim_end().to_owned());
    object
        .get(field)
        .is_some_and(|value| equal(value, wanted, scalar))
});

compares!(AnEmptyTextIsNull, |object, field, wanted| {
    let or_null = |value: &Value| match value.as_str() {
        Some("") => Value::Null,
        _ => value.clone(),
    };
    object
        .get(field)
        .is_some_and(|value| json_equal(&or_null(value), &or_null(wanted)))
});

compares!(AMissingFieldIsAnEmptyText, |object, field, wanted| {
    let empty = json!("");
    json_equal(object.get(field).unwrap_or(&empty), wanted)
});

compares!(
    NestedNumbersAreComparedAsDoubles,
    |object, field, wanted| {
        let scalar = |l: &Value, r: &Value| match (l.as_f64(), r.as_f64()) {
            (Some(l), Some(r)) => l.total_cmp(&r).is_eq(),
            _ => l == r,
        };
        object.get(field).is_some_and(|value| match value {
            Value::Number(_) => json_equal(value, wanted),
            _ => equal(value, wanted, scalar),
        })
    }
);

/// The items of nested arrays in the order of their texts, each once.
fn as_sets(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(as_sets).collect();
            items.sort_by_key(Value::to_string);
            items.dedup();
            json!(items)
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| (name.clone(), as_sets(value)))
                .collect()
        }
        scalar => scalar.clone(),
    }
}

compares!(NestedArraysAreComparedAsSets, |object, field, wanted| {
    object.get(field).is_some_and(|value| match value {
        Value::Object(_) => json_equal(&as_sets(value), &as_sets(wanted)),
        _ => json_equal(value, wanted),
    })
});

/// Without the fields of objects that are null.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            fields
                .map(|(name, value)| (name.clone(), without_nulls(value)))
                .collect()
        }
        scalar => scalar.clone(),
    }
}

compares!(NestedNullsAreAbsent, |object, field, wanted| {
    object
        .get(field)
        .is_some_and(|value| json_equal(&without_nulls(value), &without_nulls(wanted)))
});

compares!(FieldNamesAreComparedTo63Bytes, |object, field, wanted| {
    let first = |text: &str| text[..text.floor_char_boundary(63)].to_owned();
    let mut fields = object.as_map().iter();
    fields.any(|(name, value)| first(name) == first(field) && json_equal(value, wanted))
});
