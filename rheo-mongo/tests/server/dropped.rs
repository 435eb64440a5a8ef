//! Every operation is dropped while it waits for each of its commands: it is done, or not at all.

use std::time::Duration;

use rheo_core::{Backend, ErrorKind, LeaseId, Result};
use rheo_mongo::MongoBackend;

use crate::operations::Op;
use crate::proxy::{Afterwards, Proxy};
use crate::scene::{P0, Scene, event, stream};

async fn drop_everywhere(op: Op) {
    let before = op.undisturbed(false).await;
    let after = op.undisturbed(true).await;
    for loses in 1.. {
        let scene = op.scene().await;
        let proxy = Proxy::start(scene.bed.server().await, loses, Afterwards::Held).await;
        let backend = scene.bed.via(proxy.address, Duration::from_secs(10)).await;
        let has_ended = tokio::select! {
            result = op.run(&scene, &backend) => {
                assert_eq!(result, Ok(()), "{op:?}");
                true
            }
            () = proxy.held() => false,
        };
        proxy.recover();
        come_to_rest(&scene, &backend).await;
        drop(backend);
        let seen = scene.look().await;
        scene.bed.drop().await;

        let place = format!("{op:?} dropped at command {loses}");
        if op.is_fetch() {
            for (partition, seen) in &seen {
                let is_whole = *seen == before[partition] || *seen == after[partition];
                assert!(is_whole, "{place}: {partition} has {seen:#?}");
            }
        } else {
            let is_whole = seen == before || seen == after;
            assert!(
                is_whole,
                "{place}: {seen:#?}\nbefore {before:#?}\nafter {after:#?}"
            );
        }
        if has_ended {
            return;
        }
    }
}

/// Queues up behind what the handle still does, and leaves nothing.
async fn come_to_rest(scene: &Scene, backend: &MongoBackend) {
    let taken = event(P0, 0).with_id(scene.acked);
    let refused = until_known(async || {
        let refused = backend.append(&stream(), taken.clone()).await;
        refused.map(drop)
    });
    assert_eq!(refused.await, Err(ErrorKind::AlreadyExists));
    for lease in [&scene.leases[0], &scene.leases[2]] {
        let mut unknown = lease.clone();
        unknown.lease_id = LeaseId::generate();
        let refused = until_known(async || backend.ack(&unknown).await);
        assert_eq!(refused.await, Err(ErrorKind::StaleLease));
    }
}

/// The first attempts may meet connections that break, or a server that is not known to be back.
async fn until_known(attempt: impl AsyncFn() -> Result<()>) -> Result<(), ErrorKind> {
    loop {
        match attempt().await.map_err(|error| error.kind()) {
            Err(ErrorKind::BackendUnavailable | ErrorKind::Ambiguous) => {}
            known => return known,
        }
    }
}

macro_rules! dropped {
    ($($name:ident: $op:ident,)+) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            drop_everywhere(Op::$op).await;
        }
    )+};
}

dropped! {
    append: Append,
    append_spread: AppendSpread,
    fetch: Fetch,
    ack_with_many_facts: AckWithManyFacts,
    retry_the_last_time: RetryTheLastTime,
    replay_all: ReplayAll,
    replay_events: ReplayEvents,
    reset: Reset,
}
