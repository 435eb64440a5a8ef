//! Every operation is stopped after each of its commands: what is left is what was before or what comes
//! after, in each partition, and the caller was told which unless nobody can know.

use std::time::Duration;

use rheo_core::ErrorKind;

use crate::operations::Op;
use crate::proxy::{Afterwards, Proxy};

/// Stops the operation after each of its commands in turn.
async fn stop_everywhere(op: Op, afterwards: Afterwards) {
    let before = op.undisturbed(false).await;
    let after = op.undisturbed(true).await;
    let (mut stopped, mut done) = (0, 0);
    for loses in 1.. {
        let scene = op.scene().await;
        let proxy = Proxy::start(scene.bed.server().await, loses, afterwards).await;
        let patience = match afterwards {
            Afterwards::Dead => Duration::from_secs(2),
            _ => Duration::from_secs(15),
        };
        let backend = scene.bed.via(proxy.address, patience).await;
        let result = op.run(&scene, &backend).await;
        let was_stopped = proxy.has_lost();
        drop(backend);
        let seen = scene.look().await;
        scene.bed.drop().await;

        let place = format!("{op:?} after command {loses}, {afterwards:?}: {result:?}");
        for (partition, seen) in &seen {
            let is_before = *seen == before[partition];
            let is_after = *seen == after[partition];
            let is_right = match result.as_ref().map_err(rheo_core::Error::kind) {
                // What a fetch did not give, it may have left.
                Ok(()) => is_after || (is_before && op.is_fetch()),
                Err(ErrorKind::Ambiguous) => is_before || is_after,
                Err(_) => is_before,
            };
            assert!(
                is_right,
                "{place}\n{partition} has {seen:#?}\nbefore {:#?}\nafter {:#?}",
                before[partition], after[partition]
            );
        }
        if !was_stopped {
            assert_eq!(result, Ok(()), "{place}");
            break;
        }
        stopped += 1;
        done += usize::from(result.is_ok());
    }
    // Every operation takes a write at least, after it has looked up its stream.
    assert!(stopped >= 2, "{op:?} was stopped {stopped} times");
    if afterwards == Afterwards::Goes {
        assert_eq!(done, stopped, "{op:?} does not get over a lost answer");
    }
}

macro_rules! stopped {
    ($($name:ident: $op:ident,)+) => {
        mod stopped {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                stop_everywhere(Op::$op, Afterwards::Dead).await;
            })+
        }

        mod answer_lost {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                stop_everywhere(Op::$op, Afterwards::Goes).await;
            })+
        }

        mod answer_lost_twice {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                stop_everywhere(Op::$op, Afterwards::GoesTwice).await;
            })+
        }
    };
}

stopped! {
    append: Append,
    append_with_ids: AppendWithIds,
    append_spread: AppendSpread,
    fetch: Fetch,
    fetch_expired: FetchExpired,
    fetch_used_up: FetchUsedUp,
    ack: Ack,
    ack_batch: AckBatch,
    ack_with_many_facts: AckWithManyFacts,
    retry: Retry,
    retry_the_last_time: RetryTheLastTime,
    reject: Reject,
    renew: Renew,
    replay_all: ReplayAll,
    replay_events: ReplayEvents,
    reset: Reset,
}
