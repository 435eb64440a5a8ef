//! Paging: every event once, whatever ends where.

use std::time::Duration;

use rheo_core::{Event, Order, Partition, Query};
use serde_json::json;

use super::order::{ORDERS, all_by, places, sorted, with_ties};
use crate::bulk::long_event;
use crate::expect::{Outcome, broken, expect, expect_eq};
use crate::fixture::{Fixture, new_event};
use crate::scene::{P0, P1, Stream, sequences};

/// The pages of a query, to the end.
pub(super) async fn pages(stream: &Stream, mut query: Query) -> Outcome<Vec<Vec<Event>>> {
    const MOST: usize = 200;
    let mut pages = Vec::new();
    while pages.len() < MOST {
        let page = stream.query(&query).await?;
        pages.push(page.events);
        match page.next {
            Some(next) => query = query.with_cursor(next),
            None => return Ok(pages),
        }
    }
    Err(broken(
        "paging to come to an end",
        format!("{MOST} pages with a next one"),
    ))
}

async fn expect_each_once(stream: &Stream, events: &[Event], order: Order) -> Outcome {
    for limit in [1, 2, 3, 5, 10, 11] {
        let paged = pages(stream, all_by(order).with_limit(limit))
            .await?
            .concat();
        let (by, direction) = (order.by, order.direction);
        let what = format!("sequence and partition in pages of {limit} by {by:?}, {direction:?},");
        expect_eq(&what, places(&paged), places(&sorted(events, order)))?;
    }
    Ok(())
}

/// A page that ends between two events of the same sequence must go on with the second.
pub(super) async fn paging_by_sequence_gives_every_event_once(t: Fixture) -> Outcome {
    let (stream, events) = with_ties(&t).await?;

    expect_each_once(&stream, &events, ORDERS[0]).await?;
    expect_each_once(&stream, &events, ORDERS[1]).await
}

/// A page that ends between two events of the same moment must go on with the second.
pub(super) async fn paging_by_timestamp_gives_every_event_once(t: Fixture) -> Outcome {
    let (stream, events) = with_ties(&t).await?;

    expect_each_once(&stream, &events, ORDERS[2]).await?;
    expect_each_once(&stream, &events, ORDERS[3]).await
}

/// The simplest log of all.
pub(super) async fn paging_one_partition_gives_every_event_once(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let events = stream.append(7).await?;

    for order in ORDERS {
        expect_each_once(&stream, &events, order).await?;
    }
    Ok(())
}

fn sizes(pages: &[Vec<Event>]) -> Vec<usize> {
    let sizes = pages.iter().map(Vec::len);
    sizes.filter(|size| *size > 0).collect()
}

/// A short page is the last one; everything else would have to be asked for again.
pub(super) async fn pages_are_full(t: Fixture) -> Outcome {
    let (stream, _) = with_ties(&t).await?;

    for order in ORDERS {
        let pages = pages(&stream, all_by(order).with_limit(4)).await?;
        expect_eq("the sizes of the pages", sizes(&pages), vec![4, 4, 2])?;
    }
    Ok(())
}

/// As above, where most events do not match.
pub(super) async fn pages_of_rare_events_are_full(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for number in 0..30 {
        let event = new_event("order.placed", json!({ "rare": number % 6 == 5 }));
        stream.append_event(event).await?;
    }

    let rare = |order| {
        all_by(order)
            .with_limit(2)
            .with_payload_field("rare", json!(true))
    };
    for order in ORDERS {
        let pages = pages(&stream, rare(order)?).await?;
        expect_eq("the sizes of the pages", sizes(&pages), vec![2, 2, 1])?;
        let mut found: Vec<(u64, u32)> = places(&pages.concat());
        found.sort_unstable();
        let expected = [6, 12, 18, 24, 30].map(|sequence| (sequence, 0));
        expect_eq("the rare events", found, expected.to_vec())?;
    }
    Ok(())
}

/// A caller that asks for much gets much, and does not look for more when a page is short.
pub(super) async fn a_page_holds_1500_events(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let batch = vec![new_event("order.placed", json!({})); 1_500];
    stream.append_all(batch).await?;

    for order in ORDERS {
        let page = stream.query(&all_by(order).with_limit(1_500)).await?;
        let mut found = sequences(&page.events);
        found.sort_unstable();
        expect_eq("the sequences of one page", found, (1..=1_500).collect())?;
    }
    Ok(())
}

/// The limit counts events, whatever they weigh.
pub(super) async fn a_page_holds_3_megabytes(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let event = long_event(&t)?;
    stream.append_all(vec![event; 6]).await?;

    for order in ORDERS {
        let page = stream.query(&all_by(order)).await?;
        expect_eq("the number of long events in a page", page.events.len(), 6)?;
    }
    Ok(())
}

/// Pages through everything; after each of the first pages the clock goes back by so much, and an
/// event is appended to each of the partitions. Events from before must come once, those appended
/// meanwhile at most once, all in order.
async fn expect_undisturbed(
    stream: &Stream,
    order: Order,
    before: &[Event],
    partitions: &[Partition],
    back: Duration,
) -> Outcome {
    let mut seen: Vec<Event> = Vec::new();
    let mut query = all_by(order).with_limit(2);
    for turn in 0..30 {
        let page = stream.query(&query).await?;
        seen.extend(page.events);
        let Some(next) = page.next else { break };
        query = query.with_cursor(next);
        if turn < 3 {
            if !back.is_zero() {
                stream.t.turn_back(back);
            }
            for partition in partitions {
                stream.append_to(*partition, 1).await?;
            }
        }
    }

    let (by, direction) = (order.by, order.direction);
    let mut of_before = seen.clone();
    of_before.retain(|event| before.contains(event));
    let what = format!("the events from before, by {by:?}, {direction:?},");
    expect_eq(&what, places(&of_before), places(&sorted(before, order)))?;
    let mut once = places(&seen);
    once.sort_unstable();
    let repeat = once.windows(2).find(|pair| pair[0] == pair[1]);
    expect(
        repeat.is_none(),
        "no event twice",
        format_args!("{repeat:?} twice"),
    )
}

/// Logs grow while they are read.
pub(super) async fn events_appended_meanwhile_disturb_no_page(t: Fixture) -> Outcome {
    for order in ORDERS {
        let (stream, before) = with_ties(&t).await?;
        let partitions = [P0, P1, Partition::new(2)];

        expect_undisturbed(&stream, order, &before, &partitions, Duration::ZERO).await?;
    }
    Ok(())
}

/// An event that is appended now may be older than all before.
pub(super) async fn timestamps_that_go_back_disturb_no_page(t: Fixture) -> Outcome {
    let second = Duration::from_secs(1);
    for order in ORDERS {
        let stream = t.stream(1).await?;
        let mut before = Vec::new();
        for _ in 0..4 {
            before.extend(stream.append(2).await?);
            t.turn_back(second);
        }

        expect_undisturbed(&stream, order, &before, &[P0], second).await?;
    }
    Ok(())
}
