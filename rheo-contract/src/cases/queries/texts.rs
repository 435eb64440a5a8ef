//! Texts and values that differ somewhere only: far behind, or deep inside.

use rheo_core::{EventKey, EventType, JsonObject, Query};
use serde_json::{Value, json};

use super::filters::found;
use super::json::{expect_all_different, expect_found, stream_of};
use crate::expect::{Outcome, expect_eq};
use crate::fixture::{Fixture, new_event};

/// How many bytes some store, index or column keeps of a text.
const CUTS: [usize; 12] = [7, 31, 32, 63, 64, 127, 128, 254, 255, 256, 767, 1_023];

/// Two texts for each of [`CUTS`] below `longest`: that many bytes alike, then another one.
fn alike(longest: usize) -> Vec<String> {
    let cuts = CUTS.into_iter().filter(|cut| *cut < longest);
    cuts.flat_map(|cut| ["1", "2"].map(|last| "x".repeat(cut) + last))
        .collect()
}

/// Names are made of what they are about: what tells them apart is at their end.
pub(super) async fn long_types_are_compared_to_their_end(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let types = alike(255);
    for event_type in &types {
        stream
            .append_event(new_event(event_type, json!({})))
            .await?;
    }

    for (sequence, event_type) in (1..).zip(&types) {
        let query = Query::new().with_event_type(EventType::new(event_type)?);
        let what = format!("the sequences of a type of {} bytes", event_type.len());
        expect_eq(&what, found(&stream, query).await?, vec![sequence])?;
    }
    Ok(())
}

/// As types, and four times as long.
pub(super) async fn long_keys_are_compared_to_their_end(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let keys = alike(1_024);
    for key in &keys {
        let event = t.new_event().with_key(EventKey::new(key)?);
        stream.append_event(event).await?;
    }

    for (sequence, key) in (1..).zip(&keys) {
        let query = Query::new().with_key(EventKey::new(key)?);
        let what = format!("the sequences of a key of {} bytes", key.len());
        expect_eq(&what, found(&stream, query).await?, vec![sequence])?;
    }
    Ok(())
}

/// Addresses and signatures are long, and differ at their end.
pub(super) async fn long_texts_in_fields_are_compared_to_their_end(t: Fixture) -> Outcome {
    let mut texts = alike(2_000);
    let longest = t.capabilities().limits().json_bytes.min(9_000) / 2;
    texts.extend(["1", "2"].map(|last| "x".repeat(longest) + last));
    let values: Vec<Value> = texts.iter().map(|text| json!(text)).collect();

    expect_all_different(&t, &values).await
}

/// A field's name has no bound but that of its document.
pub(super) async fn long_field_names_are_compared_to_their_end(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let names = alike(2_000);
    for name in &names {
        super::json::append(&stream, json!({ name: 1 })).await?;
    }

    for (sequence, name) in (1..).zip(&names) {
        expect_found(&stream, name, json!(1), &[sequence]).await?;
    }
    Ok(())
}

/// An empty text is a text: neither null, nor 0, nor no field at all.
pub(super) async fn an_empty_value_is_neither_null_nor_absent(t: Fixture) -> Outcome {
    let empty = [
        json!(null),
        json!(""),
        json!(0),
        json!(false),
        json!([]),
        json!({}),
        json!(" "),
        json!("null"),
    ];
    let stream = stream_of(&t, &empty).await?;
    super::json::append(&stream, json!({})).await?;
    super::json::append(&stream, json!({ "w": "" })).await?;

    for (sequence, value) in (1..).zip(empty) {
        expect_found(&stream, "v", value, &[sequence]).await?;
    }
    expect_found(&stream, "w", json!(""), &[10]).await?;
    expect_found(&stream, "x", json!(""), &[]).await
}

/// What holds at the top holds inside of arrays and objects.
pub(super) async fn what_is_nested_is_compared_exactly_too(t: Fixture) -> Outcome {
    let inner = [
        json!(null),
        json!(""),
        json!({}),
        json!({ "c": null }),
        json!({ "c": 1 }),
        json!({ "C": 1 }),
        json!({ "c": 1, "d": null }),
        json!([]),
        json!([1, 2]),
        json!([2, 1]),
        json!([1, 1, 2]),
        json!([1, 2, 2]),
        json!(1),
        json!("1"),
        json!(true),
        json!((1_u64 << 53) + 1),
        json!(1_u64 << 53),
        json!(-(1_i64 << 53) - 1),
        json!(-(1_i64 << 53)),
        json!(u64::MAX),
        json!(u64::MAX - 1),
        json!("a"),
        json!("A"),
        json!("a "),
        json!("x".repeat(300) + "1"),
        json!("x".repeat(300) + "2"),
    ];
    let values: Vec<Value> = inner
        .iter()
        .flat_map(|inner| {
            [
                json!({ "a": inner }),
                json!([inner]),
                json!({ "a": [{ "b": inner }] }),
            ]
        })
        .collect();

    expect_all_different(&t, &values).await
}

/// Texts with what some language takes for an escape or a wildcard, and what each might be taken for.
const ESCAPED: [&str; 25] = [
    "a\\b",
    "a\\\\b",
    "a\\\\\\\\b",
    "ab",
    "a%b",
    "a\\%b",
    "a%%b",
    "axxb",
    "a_b",
    "a\\_b",
    "axb",
    "a\\",
    "a\\\\",
    "a",
    "\\",
    "\\\\",
    "%",
    "\\%",
    "_",
    "\\_",
    "100%",
    "100",
    "a\\nb",
    "a\nb",
    "\\u0061b",
];

/// Paths, prices and templates: a backslash, a percent and an underscore are letters like any other.
pub(super) async fn escapes_and_wildcards_in_texts_are_letters(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let is_name = |text: &str| !text.contains('\n');
    // Each of them twice, so that there is a second page.
    for text in ESCAPED.iter().chain(&ESCAPED) {
        let event_type = if is_name(text) { text } else { "a name" };
        let event = new_event(event_type, json!({ "v": text, (*text): 1 }));
        let event = event.with_metadata(JsonObject::metadata(json!({ "v": text }))?);
        stream
            .append_event(event.with_key(EventKey::new(*text)?))
            .await?;
    }

    for (sequence, text) in (1..).zip(ESCAPED) {
        let mut queries = vec![
            Query::new().with_key(EventKey::new(text)?),
            Query::new().with_payload_field("v", json!(text))?,
            Query::new().with_payload_field(text, json!(1))?,
            Query::new().with_metadata_field("v", json!(text))?,
        ];
        if is_name(text) {
            queries.push(Query::new().with_event_type(EventType::new(text)?));
        }
        for query in queries {
            let what = format!("the sequences by {query:?}");
            let found = found(&stream, query.with_limit(1)).await?;
            expect_eq(
                &what,
                found,
                vec![sequence, sequence + ESCAPED.len() as u64],
            )?;
        }
    }
    Ok(())
}
