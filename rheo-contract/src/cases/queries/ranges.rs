//! Ranges of time, wherever time is.

use std::time::Duration;

use rheo_core::{Event, Query, Timestamp};

use super::order::{ORDERS, all_by, places, sorted};
use super::paging::pages;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::Stream;

/// Moments around the bounds of what stores keep time in, in microseconds: 1901 and 2038, before and after
/// 1970, 2262, and the years 1, 1000 and 9000.
const MOMENTS: [i64; 10] = [
    -62_135_596_800_000_000,
    -30_610_224_000_000_000,
    -2_147_483_649_000_000,
    -1_500_001,
    -1,
    0,
    1,
    2_147_483_648_000_000,
    9_223_372_036_854_776,
    221_845_392_000_000_000,
];

/// Demands that a range gives its events, in each order, over all pages.
async fn expect_in_range(stream: &Stream, events: &[Event], range: &Query) -> Outcome {
    let mut matching = events.to_vec();
    matching.retain(|event| range.matches(event));
    for order in ORDERS {
        let mut query = range.clone().with_limit(5);
        query.order = all_by(order).order;
        let found = pages(stream, query).await?.concat();
        let what = format!(
            "sequence and partition from {:?} until {:?}, by {:?}, {:?},",
            range.from, range.until, order.by, order.direction
        );
        expect_eq(&what, places(&found), places(&sorted(&matching, order)))?;
    }
    Ok(())
}

/// A clock that is badly wrong, or a log of the past; and "all until", and "all since", from anywhere.
pub(super) async fn a_time_range_may_be_anywhere(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut events = stream.append(2).await?;
    for micros in MOMENTS {
        if t.jump_to(Timestamp::from_micros(micros)?) {
            events.extend(stream.append(1).await?);
        }
    }

    let mut bounds = vec![Timestamp::MIN, Timestamp::MAX];
    for micros in MOMENTS {
        bounds.push(Timestamp::from_micros(micros)?);
    }
    for bound in bounds {
        for range in [
            Query::new().with_from(bound),
            Query::new().with_until(bound),
            Query::new()
                .with_from(bound)
                .with_until(bound.saturating_add(Duration::from_secs(2))),
        ] {
            expect_in_range(&stream, &events, &range).await?;
        }
    }
    Ok(())
}
