//! Documents that nobody thought of.

use serde_json::{Map, Value, json};

use super::documents::expect_round_trip;
use crate::expect::Outcome;
use crate::fixture::Fixture;

/// The seed in the report gives the same documents again.
pub(super) async fn random_documents_come_back(t: Fixture) -> Outcome {
    let documents: Vec<Value> = (0..60).map(|_| json!(random_fields(&t, 4))).collect();

    expect_round_trip(&t, documents).await
}

fn random_fields(t: &Fixture, depth: u32) -> Map<String, Value> {
    let count = t.random(5);
    (0..count)
        .map(|_| (random_text(t, 8), random_value(t, depth)))
        .collect()
}

fn random_value(t: &Fixture, depth: u32) -> Value {
    match t.random(if depth == 0 { 7 } else { 10 }) {
        0 => Value::Null,
        1 => json!(t.random(2) == 0),
        2 => json!(t.random(u64::MAX)),
        3 => json!(t.random(u64::MAX).cast_signed()),
        4 => json!(random_double(t)),
        5 => json!(t.random(1_000)),
        6 => json!(random_text(t, 20)),
        7 => json!(random_fields(t, depth - 1)),
        _ => {
            let count = t.random(5);
            (0..count).map(|_| random_value(t, depth - 1)).collect()
        }
    }
}

/// Any bits that are a finite double; the sign of a zero may get lost, so no zero is negative.
fn random_double(t: &Fixture) -> f64 {
    let double = match t.random(4) {
        0 => f64::from(u32::try_from(t.random(1 << 32)).unwrap_or_default()),
        _ => f64::from_bits(t.random(u64::MAX)),
    };
    if double.is_finite() {
        double + 0.0
    } else {
        0.5
    }
}

fn random_text(t: &Fixture, longest: u64) -> String {
    let length = t.random(longest);
    (0..length).map(|_| random_char(t)).collect()
}

fn random_char(t: &Fixture) -> char {
    const SPECIAL: &[char] = &[
        '\\', '"', '\'', '$', '.', '%', '_', '{', '[', 'u', '0', ' ', '\n', '\u{1}', '\u{7f}',
        '\u{ffff}',
    ];
    let below = |bound: u64| usize::try_from(t.random(bound)).unwrap_or_default();
    match t.random(4) {
        0 => SPECIAL[below(SPECIAL.len() as u64)],
        1 => char::from(b'a' + u8::try_from(t.random(26)).unwrap_or_default()),
        2 => u32::try_from(1 + t.random(0xffff))
            .ok()
            .and_then(char::from_u32)
            .unwrap_or('x'),
        _ => u32::try_from(1 + t.random(0x10_ffff))
            .ok()
            .and_then(char::from_u32)
            .unwrap_or('y'),
    }
}
