//! Dropped futures: every operation is dropped at each of its await points in turn.

mod next;

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use rheo_core::{Gate, Guarantee};

use crate::aftermath::{Aftermath, deliver_the_rest};
use crate::case::{Case, case};
use crate::expect::{Outcome, expect};
use crate::fixture::Fixture;
use crate::flight::{Flight, Others, Quiet};
use crate::recorder::Recorder;
use crate::stage::{Interrupted, Stage};

use next::Next;

const DISTRIBUTED: Gate = Gate::Guarantee(Guarantee::Distributed);

pub(crate) const CASES: &[Case] = &[
    case!(
        "CAN-1" => a_dropped_future_leaves_all_or_nothing,
        "what belongs together is written in several steps, or something is taken and given back by \
         code that a dropped future never reaches"
    ),
    case!(
        "CAN-1" => a_dropped_future_harms_no_other_handle,
        "a transaction or a lock stays behind in the store, or half of the effect does"
    )
    .needs(&[DISTRIBUTED]),
    case!(
        "CAN-1" => calls_beside_a_dropped_one_go_on,
        "calls share work, a turn or a connection, and whoever did the part of the others was dropped"
    ),
];

/// The most await points at which one operation is dropped.
const MOST_POINTS: usize = 40;
/// Where flights cost time, so many points of an operation are enough once that time has passed.
const FEW_POINTS: usize = 3;
const ENOUGH_TIME: Duration = Duration::from_secs(40);

/// Timeouts, select, a client that hangs up: futures are dropped anywhere.
async fn a_dropped_future_leaves_all_or_nothing(t: Fixture) -> Outcome {
    let narrow = t.narrow_handle().await?;
    drop_everywhere(&t, &narrow, &[&narrow]).await
}

/// The same, seen by a handle that has nothing to do with it.
async fn a_dropped_future_harms_no_other_handle(t: Fixture) -> Outcome {
    let other = t.second_handle().await?;
    drop_everywhere(&t, &t.backend, &[&other, &t.backend]).await
}

/// A hundred requests share a handle, and the client of one hangs up.
async fn calls_beside_a_dropped_one_go_on(t: Fixture) -> Outcome {
    let handle = t.narrow_handle().await?;
    let quiet = Quiet::of(&t).await?;
    let mut operations: Vec<_> = Interrupted::some(&t, |_| true)
        .iter()
        .map(|o| o.0)
        .collect();
    operations.dedup();
    let (started, few_after) = (Instant::now(), t.budget().time(ENOUGH_TIME));
    for operation in operations {
        // It begins before the others, or after them.
        for is_ahead in [true, false] {
            for point in 0..t.budget().times(MOST_POINTS) {
                t.forget_history();
                let flight = Flight::of(&t, &quiet).await?;
                let dropped = dropped_after(point, flight.call(&handle, operation));
                let (ended, landed) = flight.beside(&handle, operation, is_ahead, dropped).await?;
                flight.judge(landed, Others::GoOn).await?;
                expect(
                    ended.is_some(),
                    format!("{operation} to end, or to be dropped (CAN-1, ERR-4)"),
                    "neither, after others were dropped on its handle",
                )?;
                if matches!(ended, Some(Some(_))) {
                    break;
                }
                t.tally().drop_points(1);
                if point + 1 >= FEW_POINTS && started.elapsed() > few_after {
                    break;
                }
            }
        }
    }
    Ok(())
}

async fn drop_everywhere(t: &Fixture, dropping: &Recorder, handles: &[&Recorder]) -> Outcome {
    let next = Next::of(t).await?;
    for operation in Interrupted::some(t, |_| true) {
        for point in 0..t.budget().times(MOST_POINTS) {
            t.forget_history();
            let Some(stage) = Stage::make(t, 1).await?.pop() else {
                return Ok(());
            };
            let ended = dropped_after(point, stage.call(dropping, operation)).await;
            let has_ended = ended.is_some();
            let mut aftermath = match ended {
                Some(results) => Aftermath::of(stage, operation, &results?)?,
                None => {
                    t.tally().drop_points(1);
                    next.is_answered(dropping, operation).await?;
                    Aftermath::of_dropped(stage, operation)
                }
            };
            expect(
                aftermath.succeeded() || !has_ended,
                format!("{} to succeed", operation.0),
                "an error",
            )?;
            aftermath.judge(handles).await?;
            deliver_the_rest(t, handles[0], vec![Some(aftermath)]).await?;
            if has_ended {
                break;
            }
        }
    }
    Ok(())
}

/// Polls a future until it has waited that often and waits once more, and drops it there; gives its
/// result if it ends before.
async fn dropped_after<T>(waits: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = waits;
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}
