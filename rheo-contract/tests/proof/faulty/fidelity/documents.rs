//! JSON that does not come back as it went in.

use std::fmt::Display;

use rheo_core::{Cause, Error, Event, JsonObject, NewEvent, Result, StreamName, async_trait};
use serde_json::{Map, Number, Value, json};

use crate::defect::{Defect, Real};

/// Stores payload and metadata as `$spoil` makes them: a function of a document.
macro_rules! stores {
    ($type:ident, $spoil:expr) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn append_batch(
                &self,
                real: &Real,
                stream: &StreamName,
                mut events: Vec<NewEvent>,
            ) -> Result<Vec<Event>> {
                let spoil: fn(Value) -> Result<Value> = $spoil;
                // A batch may hold one large document many times over: it is spoiled once.
                let mut last: [Option<(JsonObject, JsonObject)>; 2] = [None, None];
                for event in &mut events {
                    let documents = [&mut event.payload, &mut event.metadata];
                    for (document, last) in documents.into_iter().zip(&mut last) {
                        if last.as_ref().is_none_or(|(of, _)| of != document) {
                            let spoiled = JsonObject::payload(spoil(document.to_value())?)?;
                            *last = Some((document.clone(), spoiled));
                        }
                        if let Some((_, spoiled)) = last {
                            *document = spoiled.clone();
                        }
                    }
                }
                real.backend.append_batch(stream, events).await
            }
        }
    };
}

fn failed(cause: impl Display) -> Error {
    Error::Failed(Cause::new(cause.to_string()))
}

/// Changes every value, the innermost first.
fn each(value: Value, change: &dyn Fn(Value) -> Value) -> Value {
    let inner = match value {
        Value::Array(items) => items.into_iter().map(|item| each(item, change)).collect(),
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, each(value, change)));
            Value::Object(fields.collect())
        }
        other => other,
    };
    change(inner)
}

fn each_number(value: Value, change: impl Fn(&Number) -> Option<Value>) -> Value {
    each(value, &|value| match &value {
        Value::Number(number) => change(number).unwrap_or(value),
        _ => value,
    })
}

fn each_double(value: Value, change: impl Fn(f64) -> Value) -> Value {
    each_number(value, |number| {
        number.as_f64().filter(|_| number.is_f64()).map(&change)
    })
}

fn each_text(value: Value, change: impl Fn(&str) -> String) -> Value {
    each(value, &|value| match value {
        Value::String(text) => json!(change(&text)),
        other => other,
    })
}

fn each_name(value: Value, change: impl Fn(&str) -> String) -> Value {
    each_object(value, |fields| {
        fields
            .into_iter()
            .map(|(name, value)| (change(&name), value))
            .collect()
    })
}

fn each_object(value: Value, change: impl Fn(Map<String, Value>) -> Map<String, Value>) -> Value {
    each(value, &|value| match value {
        Value::Object(fields) => Value::Object(change(fields)),
        other => other,
    })
}

fn has_name(value: &Value, is_bad: fn(&str) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| has_name(item, is_bad)),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| is_bad(name) || has_name(value, is_bad)),
        _ => false,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

stores!(U64GoesThroughI64, |document| {
    Ok(each_number(document, |number| {
        number.as_u64().map(|n| json!(n.cast_signed()))
    }))
});

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "the defect"
)]
fn through_a_double(number: &Number) -> Option<Value> {
    number.as_i64().map(|n| json!(n as f64 as i64))
}

stores!(IntegersGoThroughADouble, |document| Ok(each_number(
    document,
    through_a_double
)));

stores!(DoublesHave15Digits, |document| {
    Ok(each_double(document, |double| {
        json!(format!("{double:.14e}").parse::<f64>().unwrap_or(double))
    }))
});

stores!(TinyDoublesAreZero, |document| {
    Ok(each_double(document, |double| {
        json!(if double.is_normal() { double } else { 0.0 })
    }))
});

#[expect(clippy::cast_possible_truncation, reason = "the defect")]
fn as_an_integer(double: f64) -> Value {
    if double.fract() == 0.0 && double.abs() < 1e18 {
        json!(double as i64)
    } else {
        json!(double)
    }
}

stores!(WholeDoublesBecomeIntegers, |document| Ok(each_double(
    document,
    as_an_integer
)));

stores!(LargeWholeDoublesLoseTheirPoint, |document| {
    Ok(each_double(document, |double| {
        if double.abs() >= 1e15 {
            as_an_integer(double)
        } else {
            json!(double)
        }
    }))
});

stores!(TextIsUnescapedTwice, |document| {
    Ok(each_text(document, |text| {
        text.replace(r"\u0041", "A")
            .replace(r"\n", "\n")
            .replace(r"\\", r"\")
    }))
});

// `\u0000` is searched for in the JSON text, where it may stand behind another backslash.
stores!(WhatLooksLikeNulIsRefused, |document| {
    if document.to_string().contains(r"\u0000") {
        return Err(failed(r"\u0000 cannot be converted to text"));
    }
    Ok(document)
});

stores!(TextIsNormalized, |document| {
    Ok(each_text(document, |text| {
        text.replace("u\u{308}", "ü").replace('\u{212b}', "Å")
    }))
});

stores!(TextHasThreeBytesACharacter, |document| {
    Ok(each_text(document, |text| {
        text.replace(|c| c > '\u{ffff}', "\u{fffd}")
    }))
});

stores!(NoncharactersAreDropped, |document| {
    Ok(each_text(document, |text| {
        text.replace(['\u{fffe}', '\u{ffff}'], "")
    }))
});

stores!(TextIsTrimmed, |document| Ok(each_text(document, |text| {
    text.trim().to_owned()
})));

stores!(LineEndsAreConverted, |document| {
    Ok(each_text(document, |text| text.replace("\r\n", "\n")))
});

stores!(ControlCharactersAreDropped, |document| {
    Ok(each_text(document, |text| {
        text.replace(|c: char| c.is_control() && c != '\n' && c != '\t', "")
    }))
});

stores!(DotsInNamesAreReplaced, |document| Ok(each_name(
    document,
    |name| name.replace('.', "\u{ff0e}")
)));

stores!(DollarNamesAreRefused, |document| {
    if has_name(&document, |name| name.starts_with('$')) {
        return Err(failed("a field name must not begin with '$'"));
    }
    Ok(document)
});

stores!(EmptyNamesAreRefused, |document| {
    if has_name(&document, str::is_empty) {
        return Err(failed("a field name must not be empty"));
    }
    Ok(document)
});

stores!(NamesAreLowered, |document| Ok(each_name(
    document,
    str::to_ascii_lowercase
)));

stores!(PrototypeIsDropped, |document| {
    Ok(each_object(document, |mut fields| {
        fields.remove("__proto__");
        fields
    }))
});

stores!(ExtendedJsonIsRead, |document| {
    let typed = |value: Value| {
        let only = value.as_object().filter(|fields| fields.len() == 1);
        match only.and_then(|fields| fields.iter().next()) {
            Some((name, Value::String(text))) if name == "$oid" || name == "$numberLong" => {
                json!(text)
            }
            _ => value,
        }
    };
    let Value::Object(fields) = document else {
        return Ok(document);
    };
    Ok(Value::Object(
        fields
            .into_iter()
            .map(|(name, value)| (name, each(value, &typed)))
            .collect(),
    ))
});

stores!(NullsAreLeftOut, |document| {
    Ok(each_object(document, |fields| {
        fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect()
    }))
});

stores!(EmptyArraysBecomeObjects, |document| {
    Ok(each(document, &|value| {
        if value == json!([]) { json!({}) } else { value }
    }))
});

stores!(NestingEndsAt63, |document| {
    if depth(&document) > 63 {
        return Err(failed("recursion limit exceeded"));
    }
    Ok(document)
});

stores!(ArraysAreCutAt1000, |document| {
    Ok(each(document, &|value| match value {
        Value::Array(items) => items.into_iter().take(1_000).collect(),
        other => other,
    }))
});

stores!(LongArraysAreSorted, |document| {
    Ok(each(document, &|value| match value {
        Value::Array(mut items) if items.len() > 100 => {
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        other => other,
    }))
});

/// The limit is compared with the document as it is stored, which is a little longer.
#[derive(Default)]
pub(super) struct LimitIsOfTheStoredForm;

#[async_trait]
impl Defect for LimitIsOfTheStoredForm {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        if events
            .iter()
            .any(|event| event.payload.byte_len() + 16 > rheo_core::MAX_JSON_BYTES)
        {
            return Err(Error::invalid("payload", "a document", "a shorter one"));
        }
        real.backend.append_batch(stream, events).await
    }
}

stores!(ObjectsOf1000FieldsAreRefused, |document| {
    match document
        .as_object()
        .is_some_and(|fields| fields.len() > 1_000)
    {
        true => Err(failed("too many fields")),
        false => Ok(document),
    }
});

stores!(FieldNamesAreCutAt1000Bytes, |document| {
    let Value::Object(fields) = document else {
        return Ok(document);
    };
    let cut = |name: String| name[..name.floor_char_boundary(1_000)].to_owned();
    Ok(fields
        .into_iter()
        .map(|(name, value)| (cut(name), value))
        .collect())
});

stores!(ArraysAreCutAt8192, |document| {
    Ok(each(document, &|value| match value {
        Value::Array(mut items) => {
            items.truncate(8_192);
            Value::Array(items)
        }
        other => other,
    }))
});
