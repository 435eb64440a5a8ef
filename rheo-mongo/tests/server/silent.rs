//! A server that accepts every connection and answers nothing: each operation ends in time, and the
//! same handle works when the server is back.

use std::time::{Duration, Instant};

use rheo_core::{
    Backend, ErrorKind, FetchOptions, ListOptions, Partitions, Query, ReadOptions, Replay,
    ResetOptions, Result, RetryOptions, Sequence,
};
use rheo_mongo::MongoBackend;

use crate::proxy::{Afterwards, Proxy};
use crate::scene::{P0, Scene, consumer, event, group, stream};

/// The operation timeout.
const PATIENCE: Duration = Duration::from_millis(2_500);
/// All cores may be busy.
const IN_TIME: Duration = Duration::from_secs(4);

async fn all(scene: &Scene, backend: &MongoBackend) -> Vec<(&'static str, Result<()>, Duration)> {
    let (stream, group) = (stream(), group());
    let mut results = Vec::new();
    macro_rules! run {
        ($($name:literal: $call:expr,)+) => {$(
            let begun = Instant::now();
            let result = $call.await.map(drop);
            results.push(($name, result, begun.elapsed()));
        )+};
    }
    let fetch = FetchOptions::new(consumer());
    run! {
        "ping": backend.ping(),
        "append": backend.append(&stream, event(P0, 1)),
        "read": backend.read(&stream, &ReadOptions::new()),
        "query": backend.query(&stream, &Query::new()),
        "fetch": backend.fetch(&stream, &group, &fetch),
        "ack": backend.ack(&scene.leases[0]),
        "retry": backend.retry(&scene.leases[1], &RetryOptions::new()),
        "replay": backend.replay(&stream, &group, &Replay::after(Sequence::ZERO)),
        "reset_group": backend.reset_group(&stream, &group, &ResetOptions::new()),
        "lag": backend.lag(&stream, &group),
        "list_streams": backend.list_streams(&ListOptions::new()),
        "group_info": backend.group_info(&stream, &group),
        "wait_for_work": backend.wait_for_work(&stream, &group, Duration::ZERO),
    }
    results
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sent_is_unavailable_in_time() {
    let scene = Scene::new(1).await;
    let proxy = Proxy::start(scene.bed.server().await, 0, Afterwards::Silent).await;
    let backend = scene.bed.via(proxy.address, PATIENCE).await;
    for (name, result, took) in all(&scene, &backend).await {
        let kind = result.expect_err(name).kind();
        assert_eq!(kind, ErrorKind::BackendUnavailable, "{name}");
        assert!(took < IN_TIME, "{name} took {took:?}");
    }

    proxy.recover();
    for (name, result, _) in all(&scene, &backend).await {
        assert_eq!(result, Ok(()), "{name} when the server is back");
    }
    scene.bed.drop().await;
}

/// ERR-6: also on a handle that knows stream and group.
#[tokio::test(flavor = "multi_thread")]
async fn to_ask_for_nothing_excuses_no_error() {
    let scene = Scene::new(1).await;
    let proxy = Proxy::start(scene.bed.server().await, 20, Afterwards::Silent).await;
    let backend = scene.bed.via(proxy.address, PATIENCE / 5).await;
    let (stream, group) = (stream(), group());
    while backend.lag(&stream, &group).await.is_ok() {}

    let fetch = FetchOptions::new(consumer()).with_limit(0);
    let nowhere = ResetOptions::new().with_partitions(Partitions::only([]));
    macro_rules! unavailable {
        ($($call:expr,)+) => {$(
            let kind = $call.await.map(drop).map_err(|error| error.kind());
            assert_eq!(kind, Err(ErrorKind::BackendUnavailable), stringify!($call));
        )+};
    }
    unavailable! {
        backend.append_batch(&stream, Vec::new()),
        backend.read(&stream, &ReadOptions::new().with_limit(0)),
        backend.query(&stream, &Query::new().with_limit(0)),
        backend.fetch(&stream, &group, &fetch),
        backend.replay(&stream, &group, &Replay::Events(Vec::new())),
        backend.reset_group(&stream, &group, &nowhere),
        backend.list_groups(&stream, &ListOptions::new().with_limit(0)),
    }
    scene.bed.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_answer_does_not_come_is_ambiguous_in_time() {
    let scene = Scene::new(1).await;
    // Three commands look up the stream and where its log ends, the fourth inserts.
    let proxy = Proxy::start(scene.bed.server().await, 4, Afterwards::Silent).await;
    let backend = scene.bed.via(proxy.address, PATIENCE).await;
    let begun = Instant::now();
    let result = backend.append(&stream(), event(P0, 100)).await;
    let took = begun.elapsed();
    assert_eq!(
        result.map_err(|error| error.kind()),
        Err(ErrorKind::Ambiguous)
    );
    assert!(took < IN_TIME, "{took:?}");

    proxy.recover();
    let read = backend.read(&stream(), &ReadOptions::new()).await;
    assert!(read.is_ok(), "{read:?}");
    scene.bed.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_gets_no_connection_is_unavailable() {
    let scene = Scene::new(1).await;
    let proxy = Proxy::start(scene.bed.server().await, usize::MAX, Afterwards::Silent).await;
    let backend = scene.bed.via(proxy.address, PATIENCE).await;
    let appended = backend.append(&stream(), event(P0, 100)).await;
    appended.expect("appended");
    proxy.fall_silent();
    // There is one connection so far, and the ping has it.
    let event = event(P0, 101);
    let stream = stream();
    let (ping, append) = tokio::join!(biased; backend.ping(), backend.append(&stream, event));
    for result in [ping, append.map(drop)] {
        let kind = result.map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::BackendUnavailable));
    }
    scene.bed.drop().await;
}
