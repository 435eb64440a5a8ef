//! Cursors: opaque, lasting, and noticed when they are damaged.

use rheo_core::{Backend, Cursor, Order, Query, Sequence};

use super::order::{ORDERS, all_by};
use crate::expect::{Failure, Outcome, broken, expect_eq, expect_invalid};
use crate::fixture::Fixture;
use crate::scene::{Stream, sequences};

/// A stream of five events, and the cursor after the first two in an order.
async fn after_two(t: &Fixture, order: Order) -> Outcome<(Stream, Cursor)> {
    let stream = t.stream(1).await?;
    stream.append(5).await?;
    let cursor = cursor_of(&stream, order).await?;
    Ok((stream, cursor))
}

async fn cursor_of(stream: &Stream, order: Order) -> Outcome<Cursor> {
    let page = stream.query(&all_by(order).with_limit(2)).await?;
    page.next
        .ok_or_else(|| broken("a cursor, since more events follow", "none"))
}

async fn rest(stream: &Stream, query: Query, cursor: &Cursor) -> Outcome<Vec<u64>> {
    Ok(sequences(
        &stream
            .query(&query.with_cursor(cursor.clone()))
            .await?
            .events,
    ))
}

/// Cursors travel: into a link, into a job's state.
pub(super) async fn a_cursor_survives_serialization(t: Fixture) -> Outcome {
    for (order, expected) in ORDERS
        .into_iter()
        .zip([[3, 4, 5], [3, 2, 1]].into_iter().cycle())
    {
        let (stream, cursor) = after_two(&t, order).await?;
        let undecided = |error: serde_json::Error| Failure::Undecided(error.to_string());
        let text = serde_json::to_string(&cursor).map_err(undecided)?;
        // Something else happens before it is used again.
        stream.query_all(all_by(order).with_limit(3)).await?;
        let cursor: Cursor = serde_json::from_str(&text).map_err(undecided)?;

        let rest = rest(&stream, all_by(order), &cursor).await?;
        expect_eq("the sequences after the first two", rest, expected.to_vec())?;
    }
    Ok(())
}

/// The next page is asked for from another process, more often than not.
pub(super) async fn a_cursor_is_valid_on_every_handle(t: Fixture) -> Outcome {
    let (stream, cursor) = after_two(&t, ORDERS[0]).await?;
    let second = t.second_handle().await?;

    let rest = rest(&stream.via(&second), Query::new(), &cursor).await?;
    expect_eq("the sequences after the first two", rest, vec![3, 4, 5])
}

/// People press reload.
pub(super) async fn a_cursor_may_be_used_again(t: Fixture) -> Outcome {
    let (stream, cursor) = after_two(&t, ORDERS[0]).await?;
    let page = Query::new().with_limit(2);

    for _ in 0..3 {
        let again = rest(&stream, page.clone(), &cursor).await?;
        expect_eq("the page after the first two", again, vec![3, 4])?;
    }
    Ok(())
}

/// A cursor is a position, nothing more.
pub(super) async fn a_cursor_goes_on_under_other_filters(t: Fixture) -> Outcome {
    let (stream, cursor) = after_two(&t, ORDERS[0]).await?;
    let sequence = |number| Sequence::new(number);

    for (query, expected) in [
        (Query::new().with_until_sequence(sequence(4)?), vec![3, 4]),
        (Query::new().with_after_sequence(sequence(3)?), vec![4, 5]),
        (
            Query::new().with_after_sequence(sequence(1)?),
            vec![3, 4, 5],
        ),
        (Query::new().with_until_sequence(sequence(1)?), vec![]),
        (Query::new().with_limit(1), vec![3]),
    ] {
        let rest = rest(&stream, query, &cursor).await?;
        expect_eq(
            "the sequences after the first two that match",
            rest,
            expected,
        )?;
    }
    Ok(())
}

/// Half a link must not show a page from somewhere else.
pub(super) async fn a_damaged_cursor_is_invalid(t: Fixture) -> Outcome {
    let (stream, cursor) = after_two(&t, ORDERS[0]).await?;
    let text = cursor.as_str();
    let mut damaged: Vec<String> = ["", " ", "nonsense", "0", "{}", "🦀", "'", "\u{0}"]
        .map(String::from)
        .into();
    damaged.push(format!("{text}0"));
    damaged.push(format!(" {text}"));
    for (at, letter) in text.char_indices() {
        let (before, after) = (&text[..at], &text[at + letter.len_utf8()..]);
        damaged.push(before.to_owned());
        damaged.push(format!("{before}{after}"));
        let other = if letter == '7' { '3' } else { '7' };
        damaged.push(format!("{before}{other}{after}"));
    }

    for text in damaged {
        let query = Query::new().with_cursor(Cursor::from_text(text));
        expect_invalid(t.backend.query(&stream.name, &query).await, "cursor")?;
    }
    Ok(())
}

/// A position in one order is no position in another.
pub(super) async fn a_cursor_of_another_order_is_invalid(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(5).await?;

    for order in ORDERS {
        let cursor = cursor_of(&stream, order).await?;
        for other in ORDERS.into_iter().filter(|other| *other != order) {
            let query = all_by(other).with_cursor(cursor.clone());
            expect_invalid(t.backend.query(&stream.name, &query).await, "cursor")?;
        }
    }
    Ok(())
}

/// A mistake must not hide behind a page of nothing.
pub(super) async fn a_limit_of_0_excuses_no_damaged_cursor(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(1).await?;
    let query = Query::new()
        .with_limit(0)
        .with_cursor(Cursor::from_text("nonsense"));

    expect_invalid(t.backend.query(&stream.name, &query).await, "cursor")
}
