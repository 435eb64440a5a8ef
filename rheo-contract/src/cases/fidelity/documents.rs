//! Payload and metadata: each corner of the JSON that every backend keeps.

use rheo_core::{Backend, Event, JsonObject, MAX_JSON_DEPTH, ReadOptions};
use serde_json::{Map, Value, json};

use crate::expect::{Outcome, expect, expect_eq};
use crate::fixture::{Fixture, new_event};
use crate::scene::{P0, Stream};

/// Appends an event for each document, as payload and as metadata, and demands that what append,
/// read and fetch give is equal.
pub(super) async fn expect_round_trip(t: &Fixture, documents: Vec<Value>) -> Outcome {
    let group = t.group().await?;
    let mut appended = Vec::new();
    for document in &documents {
        let event = new_event("order.placed", document.clone());
        let event = event.with_metadata(JsonObject::metadata(document.clone())?);
        appended.push(group.stream.append_event(event).await?);
    }
    let read = group.stream.read(P0).await?;
    let leases = group.fetch_exactly("a", documents.len()).await?;
    let fetched = leases.into_iter().map(|lease| lease.event).collect();

    for (how, events) in [("appended", appended), ("read", read), ("fetched", fetched)] {
        expect_eq(
            &format!("the number of events {how}"),
            events.len(),
            documents.len(),
        )?;
        for (event, document) in events.iter().zip(&documents) {
            expect_eq(
                &format!("the payload, {how},"),
                event.payload.to_value(),
                document.clone(),
            )?;
            expect_eq(
                &format!("the metadata, {how},"),
                event.metadata.to_value(),
                document.clone(),
            )?;
        }
    }
    Ok(())
}

/// A document for each value, with the value at the top, in an array and in an object.
fn documents_of(values: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let values = values.into_iter();
    values
        .map(|value| json!({ "v": value, "in": [value, { "v": value }] }))
        .collect()
}

/// Ids of other systems, amounts in the smallest unit: one off is another order.
pub(super) async fn integers_of_64_bits_come_back(t: Fixture) -> Outcome {
    let values = [
        json!(0),
        json!(-1),
        json!(i32::MAX),
        json!(i64::from(i32::MIN) - 1),
        json!((1_i64 << 53) + 1),
        json!(-(1_i64 << 53) - 1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(1_u64 << 63),
        json!((1_u64 << 63) + 1),
        json!(u64::MAX - 1),
        json!(u64::MAX),
    ];

    expect_round_trip(&t, documents_of(values)).await
}

/// A double is 64 bits; all of them.
pub(super) async fn doubles_come_back(t: Fixture) -> Outcome {
    let values = [
        0.1,
        0.1 + 0.2,
        -0.1,
        1.0 / 3.0,
        123_456_789.123_456_79,
        1.5e-5,
        1e300,
        1e-300,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        f64::EPSILON,
        5e-324,
        -5e-324,
        2.225_073_858_507_201e-308,
        9_007_199_254_740_991.5,
    ];

    expect_round_trip(&t, documents_of(values.map(|value| json!(value)))).await
}

/// A price of 2.0 is not an amount of 2: typed consumers refuse one for the other.
pub(super) async fn whole_doubles_and_integers_stay_what_they_are(t: Fixture) -> Outcome {
    let integers = [1_i64, -1, 100, 1_000_000_000_000_000, 1 << 60].map(|value| json!(value));
    let doubles = [
        0.0,
        1.0,
        -1.0,
        100.0,
        1e15,
        1e16,
        1e18,
        1e21,
        1e22,
        -1e17,
        9_007_199_254_740_992.0,
        9_223_372_036_854_775_808.0,
        18_446_744_073_709_551_616.0,
    ];

    let doubles = doubles.map(|value| json!(value));
    expect_round_trip(&t, documents_of(integers.into_iter().chain(doubles))).await
}

/// A backslash, a `u` and four digits are six characters that people write about.
pub(super) async fn text_that_looks_like_an_escape_stays(t: Fixture) -> Outcome {
    let texts = [
        r"\u0000",
        r"\\u0000",
        r"\u0041",
        r"\ud83e",
        r"\udd80",
        r"\ud83e\udd80",
        r"\uZZZZ",
        r"\x00",
        r"\0",
        r"\n",
        r"\",
        r"\\",
        r#"\""#,
        r#"""#,
        "'",
        "%00",
        "%u0000",
        "&#0;",
        "&amp;",
        "NUL",
        "{}",
        "[]",
        "null",
        "true",
        "1",
        r#"{"a":"\u0000"}"#,
        "$1",
        "{0}",
        "${a}",
        "E'\\000'",
    ];

    let mut documents = documents_of(texts.map(|text| json!(text)));
    documents.push(
        texts
            .iter()
            .map(|text| ((*text).to_owned(), json!(text)))
            .collect(),
    );
    expect_round_trip(&t, documents).await
}

/// People have names, in all of Unicode.
pub(super) async fn any_unicode_text_comes_back(t: Fixture) -> Outcome {
    let texts = [
        "ü",
        "u\u{308}",
        "\u{212b}",
        "ß",
        "İ",
        "日本語",
        "🦀",
        "👩‍👩‍👧‍👦",
        "🇪🇺",
        "مرحبا",
        "שלום",
        "\u{202e}reversed\u{202c}",
        "\u{200f}\u{200b}\u{200d}",
        "\u{feff}bom",
        "\u{fffd}",
        "\u{fffe}",
        "\u{ffff}",
        "\u{fdd0}",
        "\u{e000}",
        "\u{d7ff}",
        "\u{10000}",
        "\u{1ffff}",
        "\u{10ffff}",
        "\u{2028}\u{2029}",
        "e\u{301}\u{323}\u{328}",
    ];

    let mut documents = documents_of(texts.map(|text| json!(text)));
    documents.push(
        texts
            .iter()
            .map(|text| ((*text).to_owned(), json!(text)))
            .collect(),
    );
    expect_round_trip(&t, documents).await
}

/// Whitespace is text too; only U+0000 is outside.
pub(super) async fn control_characters_and_blanks_come_back(t: Fixture) -> Outcome {
    let controls = (1..0x20_u8)
        .chain(0x7f..0xa1)
        .map(|byte| char::from(byte).to_string());
    let texts: Vec<String> = controls
        .chain(
            [
                "",
                " ",
                "  a  ",
                "a ",
                "a\n",
                "a\r\nb",
                "\t",
                "\u{a0}a\u{3000}",
            ]
            .map(String::from),
        )
        .collect();

    let each: Value = texts
        .iter()
        .map(|text| (text.clone(), json!(text)))
        .collect();
    expect_round_trip(
        &t,
        vec![
            json!({ "all": texts.concat() }),
            json!({ "each": texts }),
            each,
        ],
    )
    .await
}

/// Documents have the names that their authors gave them.
pub(super) async fn any_field_name_comes_back(t: Fixture) -> Outcome {
    let long = "n".repeat(1_000);
    let names = [
        "",
        " ",
        ".",
        "a.b",
        ".a",
        "a.",
        "a..b",
        "$",
        "$where",
        "$gt",
        "$set",
        "a$b",
        "_id",
        "id",
        "type",
        "payload",
        "metadata",
        "sequence",
        "__proto__",
        "constructor",
        "toString",
        "length",
        "0",
        "-1",
        "a",
        "A",
        "ü",
        "u\u{308}",
        "a b",
        "a ",
        "'",
        "\"",
        "`",
        "a\"b'c",
        "\\",
        "%",
        "a%5fb",
        "[0]",
        "a[0]",
        "->>",
        "#>",
        "?",
        ":a",
        "@",
        "*",
        "\n",
        "\u{1}",
        "🦀",
        "\u{ffff}",
        "null",
        &long,
    ];
    let all: Map<String, Value> = (1..)
        .zip(names)
        .map(|(n, name)| (name.to_owned(), json!(n)))
        .collect();
    let nested: Vec<Value> = names.map(|name| json!({ name: { name: 1 } })).into();

    expect_round_trip(
        &t,
        vec![
            json!(all),
            json!({ "nested": nested, "deep": { "er": all } }),
        ],
    )
    .await
}

/// Only the author of a document gives it a meaning.
pub(super) async fn documents_that_look_like_typed_values_stay_documents(t: Fixture) -> Outcome {
    let values = [
        json!({ "$oid": "507f1f77bcf86cd799439011" }),
        json!({ "$date": "2026-01-01T00:00:00Z" }),
        json!({ "$date": { "$numberLong": "0" } }),
        json!({ "$numberLong": "1" }),
        json!({ "$numberInt": "1" }),
        json!({ "$numberDouble": "NaN" }),
        json!({ "$numberDecimal": "1.0" }),
        json!({ "$binary": { "base64": "", "subType": "00" } }),
        json!({ "$uuid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8" }),
        json!({ "$regularExpression": { "pattern": ".*", "options": "" } }),
        json!({ "$timestamp": { "t": 1, "i": 1 } }),
        json!({ "$undefined": true }),
        json!({ "$minKey": 1 }),
        json!({ "$symbol": "a" }),
        json!({ "$code": "return 1" }),
        json!({ "$ref": "events", "$id": 1 }),
        json!({ "$inc": { "a": 1 } }),
        json!("2026-01-01T00:00:00Z"),
        json!("6BA7B810-9DAD-11D1-80B4-00C04FD430C8"),
        json!("1e3"),
        json!("Infinity"),
    ];
    let mut documents: Vec<Value> = values.iter().filter(|v| v.is_object()).cloned().collect();
    documents.extend(documents_of(values));

    expect_round_trip(&t, documents).await
}

/// There is nothing, there is null, and there is no field: three different answers.
pub(super) async fn nulls_and_empty_values_stay(t: Fixture) -> Outcome {
    let mut documents = documents_of([
        json!(null),
        json!({}),
        json!([]),
        json!(""),
        json!([[]]),
        json!([{}]),
        json!([null]),
        json!([null, null]),
        json!({ "a": null }),
        json!({ "a": {} }),
        json!({ "": [] }),
        json!(false),
    ]);
    documents.push(json!({}));

    expect_round_trip(&t, documents).await
}

/// 64, with the outermost counted; a parser's own limit must be above it.
pub(super) async fn nesting_to_64_comes_back(t: Fixture) -> Outcome {
    let objects = (1..MAX_JSON_DEPTH).fold(json!({}), |inner, _| json!({ "a": inner }));
    let arrays = (2..MAX_JSON_DEPTH).fold(json!([1.5, null]), |inner, _| json!([inner]));
    let mixed = (2..MAX_JSON_DEPTH).fold(json!({ "end": u64::MAX }), |inner, depth| {
        if depth % 2 == 0 {
            json!(["x", inner])
        } else {
            json!({ "in": inner, "x": "x" })
        }
    });

    expect_round_trip(
        &t,
        vec![objects, json!({ "a": arrays }), json!({ "a": mixed })],
    )
    .await
}

/// The most bytes that payload and metadata of one event may have each.
fn longest(t: &Fixture) -> usize {
    let limits = *t.capabilities().limits();
    let of_both = limits.batch_bytes.unwrap_or(usize::MAX);
    limits.json_bytes.min(of_both / 2)
}

/// Order is all that an array has.
pub(super) async fn a_long_array_comes_back_in_order(t: Fixture) -> Outcome {
    let most = longest(&t) / 8;
    let items = (0..most.min(10_000))
        .rev()
        .map(|n| if n % 3 == 0 { json!([n]) } else { json!(n % 7) });
    let document = json!({ "items": items.collect::<Vec<Value>>() });

    expect_round_trip(&t, vec![document]).await
}

/// A form with a field for each question, and names that are sentences.
pub(super) async fn many_fields_and_long_names_come_back(t: Fixture) -> Outcome {
    let bytes = longest(&t);
    let many = (0..(bytes / 24).min(3_000)).map(|n| (format!("field-{n}"), json!(n)));
    let lengths = [63, 64, 127, 128, 255, 256, 1_000, 1_024, 65_535, 65_536];
    let long = lengths
        .into_iter()
        .filter(|length| *length < bytes / 8)
        .flat_map(|length| ["1", "2"].map(|last| ("n".repeat(length) + last, json!(last))));

    expect_round_trip(&t, vec![many.collect(), long.collect()]).await
}

/// To the byte: the limit is the same wherever the backend runs.
pub(super) async fn the_longest_document_comes_back(t: Fixture) -> Outcome {
    let longest = longest(&t);
    let group = t.group().await?;
    let frame = r#"{"text":""}"#.len();
    // Quotes and backslashes are twice as long in JSON as in memory.
    let escaped = "\"\\".repeat(longest.saturating_sub(frame) / 8);
    let rest = longest.saturating_sub(frame + 2 * escaped.len());
    let document = |letter: &str| json!({ "text": escaped.clone() + &letter.repeat(rest) });
    let event = new_event("order.placed", document("p"));
    let event = event.with_metadata(JsonObject::metadata(document("m"))?);
    let given = (event.payload.clone(), event.metadata.clone());
    let appended = group.stream.append_event(event).await?;
    let lease = group.fetch_one("a").await?;

    for (how, event) in [
        ("appended", &appended),
        ("read", &read_one(&group.stream).await?),
        ("fetched", &lease.event),
    ] {
        expect(
            event.payload == given.0 && event.metadata == given.1,
            format!("payload and metadata of {longest} bytes, {how}, to be equal"),
            format!(
                "others, of {} and {} bytes",
                event.payload.byte_len(),
                event.metadata.byte_len()
            ),
        )?;
    }
    Ok(())
}

async fn read_one(stream: &Stream) -> Outcome<Event> {
    let one = ReadOptions::new().with_limit(1);
    let mut read = stream.backend.read(&stream.name, &one).await?;
    expect_eq("the number of events read", read.len(), 1)?;
    Ok(read.remove(0))
}
