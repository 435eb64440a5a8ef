//! Every operation is stopped after each of its commands: what is left is what was before or what comes
//! after, in each partition, and the caller was told which unless nobody can know.

use std::collections::BTreeMap;
use std::time::Duration;

use rheo_core::{
    Backend, ErrorKind, EventId, FetchOptions, LeaseDuration, Partition, Reason, Replay,
    ResetOptions, Result, RetryOptions, Sequence,
};
use rheo_mongo::MongoBackend;
use uuid::Uuid;

use crate::proxy::{Afterwards, Proxy};
use crate::scene::{P0, P1, Scene, Seen, consumer, event, group, stream};

/// An operation on a scene.
#[derive(Debug, Clone, Copy)]
enum Op {
    Append,
    AppendWithIds,
    AppendSpread,
    Fetch,
    FetchExpired,
    FetchUsedUp,
    Ack,
    AckBatch,
    AckWithManyFacts,
    Retry,
    RetryTheLastTime,
    Reject,
    Renew,
    ReplayAll,
    ReplayEvents,
    Reset,
}

impl Op {
    async fn scene(self) -> Scene {
        let mut scene = match self {
            // More than a state carries along, so that dead letters are written in between.
            Self::AckWithManyFacts | Self::ReplayEvents => Scene::new(20).await,
            _ => Scene::new(1).await,
        };
        match self {
            Self::FetchExpired => scene.let_expire(),
            Self::RetryTheLastTime => scene.reclaim().await,
            Self::FetchUsedUp => {
                scene.reclaim().await;
                scene.let_expire();
            }
            _ => {}
        }
        scene
    }

    async fn run(self, scene: &Scene, backend: &MongoBackend) -> Result<()> {
        let (stream, group) = (stream(), group());
        let id = |n| EventId::new(Uuid::from_u128(n));
        let first = &scene.leases[0];
        match self {
            Self::Append => backend.append(&stream, event(P0, 100)).await.map(drop),
            Self::AppendWithIds => {
                let batch = vec![event(P0, 100).with_id(id(1)), event(P0, 101).with_id(id(2))];
                backend.append_batch(&stream, batch).await.map(drop)
            }
            Self::AppendSpread => {
                let batch = vec![
                    event(P0, 100).with_id(id(1)),
                    event(P1, 101).with_id(id(2)),
                    event(P0, 102).with_id(id(3)),
                ];
                backend.append_batch(&stream, batch).await.map(drop)
            }
            Self::Fetch | Self::FetchExpired | Self::FetchUsedUp => {
                let lease = LeaseDuration::new(Duration::from_secs(30))?;
                let options = FetchOptions::new(consumer())
                    .with_limit(20)
                    .with_lease_duration(lease);
                backend.fetch(&stream, &group, &options).await.map(drop)
            }
            Self::Ack | Self::AckWithManyFacts => backend.ack(first).await,
            Self::AckBatch => {
                let results = backend.ack_batch(&scene.leases[..2]).await;
                results.into_iter().collect()
            }
            Self::Retry | Self::RetryTheLastTime => {
                let retried = backend.retry(first, &RetryOptions::new()).await;
                retried.map(drop)
            }
            Self::Reject => backend.reject(first, &Reason::new("no stock")).await,
            Self::Renew => {
                let minute = LeaseDuration::new(Duration::from_secs(60))?;
                backend.renew(first, minute).await.map(drop)
            }
            Self::ReplayAll => {
                let all = Replay::after(Sequence::ZERO);
                backend.replay(&stream, &group, &all).await
            }
            Self::ReplayEvents => {
                let chosen = Replay::Events(vec![scene.acked, scene.dead]);
                backend.replay(&stream, &group, &chosen).await
            }
            Self::Reset => {
                let options = ResetOptions::new();
                backend.reset_group(&stream, &group, &options).await
            }
        }
    }

    fn is_fetch(self) -> bool {
        matches!(self, Self::Fetch | Self::FetchExpired | Self::FetchUsedUp)
    }

    /// What is seen when nobody disturbs, with or without the operation.
    async fn undisturbed(self, runs: bool) -> BTreeMap<Partition, Seen> {
        let scene = self.scene().await;
        let backend = scene.bed.backend().await;
        if runs {
            self.run(&scene, &backend).await.expect("nobody disturbs");
        }
        let seen = scene.look().await;
        scene.bed.drop().await;
        seen
    }
}

/// Stops the operation after each of its commands in turn.
async fn stop_everywhere(op: Op, afterwards: Afterwards) {
    let before = op.undisturbed(false).await;
    let after = op.undisturbed(true).await;
    let (mut stopped, mut done) = (0, 0);
    for loses in 1.. {
        let scene = op.scene().await;
        let proxy = Proxy::start(scene.bed.server().await, loses, afterwards).await;
        let backend = scene.bed.via(proxy.address).await;
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
