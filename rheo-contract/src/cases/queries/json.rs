//! JSON values in filters: compared as JSON, never run.

use rheo_core::{JsonObject, Query};
use serde_json::{Value, json};

use super::filters::found;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::{Fixture, new_event};
use crate::scene::Stream;

/// A stream whose events have these values in the field `v`, of payload and metadata.
pub(super) async fn stream_of(t: &Fixture, values: &[Value]) -> Outcome<Stream> {
    let stream = t.stream(1).await?;
    for value in values {
        append(&stream, json!({ "v": value })).await?;
    }
    Ok(stream)
}

pub(super) async fn append(stream: &Stream, document: Value) -> Outcome {
    let event = new_event("order.placed", document.clone());
    let event = event.with_metadata(JsonObject::metadata(document)?);
    stream.append_event(event).await?;
    Ok(())
}

/// Demands that these sequences have this value in that field, in payload and in metadata.
pub(super) async fn expect_found(
    stream: &Stream,
    field: &str,
    value: Value,
    expected: &[u64],
) -> Outcome {
    let shown = format!("{field:?} = {value}");
    let by_payload = Query::new().with_payload_field(field, value.clone())?;
    let by_metadata = Query::new().with_metadata_field(field, value)?;
    for (what, query) in [("payload", by_payload), ("metadata", by_metadata)] {
        let what = format!("the sequences with {shown} in the {what}");
        expect_eq(&what, found(stream, query).await?, expected.to_vec())?;
    }
    Ok(())
}

/// Demands that each value is found at its own place alone.
pub(super) async fn expect_all_different(t: &Fixture, values: &[Value]) -> Outcome {
    let stream = stream_of(t, values).await?;
    for (sequence, value) in (1..).zip(values) {
        expect_found(&stream, "v", value.clone(), &[sequence]).await?;
    }
    Ok(())
}

/// 1, "1" and true are three values.
pub(super) async fn values_of_different_types_differ(t: Fixture) -> Outcome {
    let values = [
        json!(1),
        json!("1"),
        json!(true),
        json!("true"),
        json!(0),
        json!("0"),
        json!(false),
        json!("false"),
        json!(null),
        json!("null"),
        json!(""),
        json!([]),
        json!({}),
        json!("[]"),
        json!("{}"),
        json!(1.5),
        json!("1.5"),
        json!([1]),
        json!({ "v": 1 }),
        json!("\"1\""),
        json!("A"),
        json!("a"),
        json!("a "),
    ];

    expect_all_different(&t, &values).await
}

/// Who asks for null asks for those who said so.
pub(super) async fn null_is_not_absent(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for document in [
        json!({}),
        json!({ "v": null }),
        json!({ "w": null }),
        json!({ "v": [null] }),
    ] {
        append(&stream, document).await?;
    }

    expect_found(&stream, "v", json!(null), &[2]).await?;
    expect_found(&stream, "w", json!(null), &[3]).await?;
    expect_found(&stream, "x", json!(null), &[]).await
}

/// One number, written as an integer or as a double, is one number; its neighbour is another.
pub(super) async fn numbers_are_compared_by_their_exact_value(t: Fixture) -> Outcome {
    let values = [
        json!(1),                            // 1
        json!(1.0),                          // 2
        json!(1.000_000_000_000_000_2),      // 3
        json!(9_007_199_254_740_992_u64),    // 4: 2^53
        json!(9_007_199_254_740_993_u64),    // 5: 2^53 + 1
        json!(9_007_199_254_740_992.0),      // 6
        json!(u64::MAX),                     // 7
        json!(18_446_744_073_709_551_616.0), // 8: u64::MAX + 1
        json!(i64::MAX),                     // 9
        json!(9_223_372_036_854_775_808.0),  // 10: i64::MAX + 1
        json!(1_u64 << 63),                  // 11
        json!(i64::MIN),                     // 12
        json!(-9_223_372_036_854_775_808.0), // 13
        json!(0.1),                          // 14
        json!(0.1 + 0.2),                    // 15
        json!(0.3),                          // 16
        json!(0),                            // 17
        json!(-1),                           // 18
        json!(1e300),                        // 19
        json!(5e-324),                       // 20
        json!(1e22),                         // 21
    ];
    let stream = stream_of(&t, &values).await?;

    for (value, expected) in [
        (json!(1), &[1, 2][..]),
        (json!(1.0), &[1, 2]),
        (values[2].clone(), &[3]),
        (values[3].clone(), &[4, 6]),
        (values[4].clone(), &[5]),
        (values[5].clone(), &[4, 6]),
        (values[6].clone(), &[7]),
        (values[7].clone(), &[8]),
        (values[8].clone(), &[9]),
        (values[9].clone(), &[10, 11]),
        (values[10].clone(), &[10, 11]),
        (values[11].clone(), &[12, 13]),
        (values[12].clone(), &[12, 13]),
        (json!(0.1), &[14]),
        (values[14].clone(), &[15]),
        (json!(0.3), &[16]),
        (json!(0), &[17]),
        (json!(-0.0), &[17]),
        (json!(-1.0), &[18]),
        (json!(1e300), &[19]),
        (json!(5e-324), &[20]),
        (json!(1e22), &[21]),
        (json!(2), &[]),
        (json!(u64::MAX - 1), &[]),
    ] {
        expect_found(&stream, "v", value, expected).await?;
    }
    Ok(())
}

/// JSON objects have no order, and an object with more in it is another.
pub(super) async fn objects_are_equal_in_any_order_and_as_a_whole(t: Fixture) -> Outcome {
    let values = [
        json!({ "a": 1, "b": { "c": 2, "d": [3] } }),       // 1
        json!({ "b": { "d": [3.0], "c": 2.0 }, "a": 1.0 }), // 2: the same
        json!({ "a": 1 }),                                  // 3
        json!({ "a": 1, "b": { "c": 2, "d": [3], "e": null } }), // 4
        json!({ "a": 1, "b": { "c": 2 } }),                 // 5
        json!({}),                                          // 6
        json!({ "A": 1 }),                                  // 7
        json!([{ "a": 1 }]),                                // 8
        json!({ "a": "1" }),                                // 9
    ];
    let stream = stream_of(&t, &values).await?;

    let reordered: Value = serde_json::from_str(r#"{"b":{"d":[3],"c":2},"a":1}"#)
        .map_err(|error| crate::expect::Failure::Undecided(error.to_string()))?;
    expect_found(&stream, "v", reordered, &[1, 2]).await?;
    for (sequence, value) in (1..).zip(values).skip(2) {
        expect_found(&stream, "v", value, &[sequence]).await?;
    }
    Ok(())
}

/// An array is not its items, and not a set.
pub(super) async fn arrays_are_compared_in_order_and_as_a_whole(t: Fixture) -> Outcome {
    let values = [
        json!([1, 2]),
        json!([2, 1]),
        json!([1]),
        json!(1),
        json!([1, 2, 3]),
        json!([]),
        json!([1, 1]),
        json!([[1, 2]]),
        json!(["1", "2"]),
        json!([1, null]),
        json!([null]),
        json!("1"),
        json!({ "0": 1 }),
    ];

    expect_all_different(&t, &values).await
}

/// A value from outside must not become a question that lets everything through.
pub(super) async fn values_are_not_operators(t: Fixture) -> Outcome {
    let values = [
        json!({ "$gt": "" }),
        json!({ "$ne": null }),
        json!({ "$exists": true }),
        json!({ "$in": ["x"] }),
        json!({ "$regex": ".*" }),
        json!({ "$where": "true" }),
        json!({ "$not": { "$eq": 1 } }),
        json!("x"),
        json!("$v"),
        json!("%"),
        json!("_"),
        json!(".*"),
        json!("' OR '1'='1"),
        json!("x' --"),
        json!({ "$literal": "x" }),
        json!({ "$eq": "x" }),
        json!({ "$numberInt": "1" }),
        json!(1),
        json!({ "$expr": true }),
        json!("$$ROOT"),
    ];

    expect_all_different(&t, &values).await
}

/// A field with a dot in its name is a field.
pub(super) async fn field_names_are_not_paths(t: Fixture) -> Outcome {
    let names = [
        "a.b",
        "a",
        "a.0",
        "",
        ".",
        "$where",
        "$or",
        "_id",
        "id",
        "a'b",
        "a\"b",
        "a\\",
        "A",
        "ü",
        "u\u{308}",
        "$.a",
        "a[0]",
        "{a,b}",
        "payload",
        "%",
        "a b",
        "__proto__",
        "?",
        "-1",
        "0",
    ];
    let stream = t.stream(1).await?;
    append(&stream, json!({ "a": { "b": 1, "0": 1 } })).await?;
    append(&stream, json!({ "a": [1], "x": { "a": { "b": 1 } } })).await?;
    for name in names {
        append(&stream, json!({ name: 1 })).await?;
    }

    for (sequence, name) in (3..).zip(names) {
        expect_found(&stream, name, json!(1), &[sequence]).await?;
    }
    Ok(())
}
