//! The order of events: total, and the same both ways.

use std::time::Duration;

use rheo_core::{Backend, Direction, Event, Order, OrderBy, Partition, Query};

use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::{Stream, sequences_of};

/// All orders there are.
pub(super) const ORDERS: [Order; 4] = [
    order(OrderBy::Sequence, Direction::Ascending),
    order(OrderBy::Sequence, Direction::Descending),
    order(OrderBy::Timestamp, Direction::Ascending),
    order(OrderBy::Timestamp, Direction::Descending),
];

const fn order(by: OrderBy, direction: Direction) -> Order {
    Order { by, direction }
}

/// A query of everything in an order.
pub(super) fn all_by(order: Order) -> Query {
    Query::new()
        .with_order_by(order.by)
        .with_direction(order.direction)
}

/// A place as people read it.
pub(super) fn places(events: &[Event]) -> Vec<(u64, u32)> {
    let place = |event: &Event| (event.sequence.get(), event.partition.number());
    events.iter().map(place).collect()
}

/// The events in the order that QRY-2 demands, said once more.
pub(super) fn sorted(events: &[Event], order: Order) -> Vec<Event> {
    let mut sorted = events.to_vec();
    sorted.sort_by_key(|event| {
        let time = match order.by {
            OrderBy::Timestamp => event.timestamp.as_micros(),
            OrderBy::Sequence => 0,
        };
        (time, event.sequence.get(), event.partition.number())
    });
    if order.direction == Direction::Descending {
        sorted.reverse();
    }
    sorted
}

/// Three partitions with runs of equal sequences, and of equal timestamps where the clock can stand
/// still; appended neither by partition nor by sequence.
pub(super) async fn with_ties(t: &Fixture) -> Outcome<(Stream, Vec<Event>)> {
    let stream = t.stream(3).await?;
    let mut events = Vec::new();
    for (at, number) in [2, 0, 0, 1, 1, 2, 0, 1, 1, 0].into_iter().enumerate() {
        if at == 5 {
            t.pass(Duration::from_micros(1)).await;
        }
        events.extend(stream.append_to(Partition::new(number), 1).await?);
    }
    Ok((stream, events))
}

async fn expect_order(stream: &Stream, events: &[Event], order: Order) -> Outcome {
    let found = stream.query(&all_by(order)).await?.events;
    let what = format!(
        "sequence and partition by {:?}, {:?},",
        order.by, order.direction
    );
    expect_eq(&what, places(&found), places(&sorted(events, order)))
}

/// Without a total order, no page could end anywhere.
pub(super) async fn order_by_sequence_is_then_by_partition(t: Fixture) -> Outcome {
    let (stream, events) = with_ties(&t).await?;

    expect_order(&stream, &events, ORDERS[0]).await?;
    expect_order(&stream, &events, ORDERS[1]).await
}

/// Many events share a moment.
pub(super) async fn order_by_timestamp_is_then_by_sequence_and_partition(t: Fixture) -> Outcome {
    let (stream, events) = with_ties(&t).await?;

    expect_order(&stream, &events, ORDERS[2]).await?;
    expect_order(&stream, &events, ORDERS[3]).await
}

/// Clocks are put right; sequences still ascend, times do not.
pub(super) async fn timestamps_that_go_back_are_ordered_too(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut events = stream.append(2).await?;
    for back in [7, 1, 3] {
        t.turn_back(Duration::from_secs(back));
        events.extend(stream.append(2).await?);
        t.pass(Duration::from_millis(5)).await;
    }

    for order in ORDERS {
        expect_order(&stream, &events, order).await?;
    }
    Ok(())
}

/// Looking is free.
pub(super) async fn queries_change_nothing_for_groups(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    t.backend.ack(&leases[0]).await?;
    for order in ORDERS {
        group.stream.query_all(all_by(order).with_limit(3)).await?;
    }

    let rest = group.fetch_all("b").await?;
    expect_eq(
        "the sequences still claimable",
        sequences_of(&rest),
        vec![3, 4],
    )?;
    let attempts: Vec<u32> = rest.iter().map(|lease| lease.attempt).collect();
    expect_eq("their attempts", attempts, vec![1, 1])?;
    t.backend.ack(&leases[1]).await?;
    group.ack(&rest).await?;
    group.stream.query_all(Query::new()).await?;
    group.expect_nothing("b").await
}
