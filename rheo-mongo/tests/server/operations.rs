//! Operations on a scene, each with a command or more.

use std::collections::BTreeMap;
use std::time::Duration;

use rheo_core::{
    Backend, EventId, FetchOptions, LeaseDuration, Partition, Reason, Replay, ResetOptions, Result,
    RetryOptions, Sequence,
};
use rheo_mongo::MongoBackend;
use uuid::Uuid;

use crate::scene::{P0, P1, Scene, Seen, consumer, event, group, stream};

/// An operation on a scene.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
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
    pub(crate) async fn scene(self) -> Scene {
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

    pub(crate) async fn run(self, scene: &Scene, backend: &MongoBackend) -> Result<()> {
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

    pub(crate) fn is_fetch(self) -> bool {
        matches!(self, Self::Fetch | Self::FetchExpired | Self::FetchUsedUp)
    }

    /// What is seen when nobody disturbs, with or without the operation.
    pub(crate) async fn undisturbed(self, runs: bool) -> BTreeMap<Partition, Seen> {
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
