//! A write that arrives only after it was sent again: it happens once, and nobody is told that it did not.

use std::time::Duration;

use rheo_core::{Backend, ErrorKind, StreamName, StreamOptions};

use crate::proxy::{Afterwards, Proxy};
use crate::scene::{P0, P1, Scene, event, group, stream};

const PATIENCE: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_arrives_late_is_in_the_log_once() {
    let scene = Scene::new(1).await;
    let direct = scene.bed.backend().await;
    let before = direct.lag(&stream(), &group()).await.expect("there");
    let proxy = Proxy::start(scene.bed.server().await, usize::MAX, Afterwards::Late).await;
    let backend = scene.bed.via(proxy.address, PATIENCE).await;

    let batch = vec![event(P0, 100), event(P1, 101)];
    let stream = stream();
    let append = backend.append_batch(&stream, batch);
    let meanwhile = async {
        proxy.held().await;
        // The handle sees where the log ends now, which is behind the batch.
        backend.lag(&stream, &group()).await.expect("there");
        proxy.go_on();
    };
    let (appended, ()) = tokio::join!(append, meanwhile);
    let after = direct.lag(&stream, &group()).await.expect("there");
    for event in appended.expect("appended") {
        let head = |lag: &rheo_core::Lag| {
            let of = lag.partition(event.partition).expect("there");
            of.high_watermark
        };
        assert_eq!(event.sequence, head(&before).next());
        assert_eq!(event.sequence, head(&after), "{}", event.partition);
    }
    scene.bed.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_is_refused_when_it_is_sent_again_is_ambiguous() {
    let scene = Scene::new(1).await;
    let proxy = Proxy::start(scene.bed.server().await, usize::MAX, Afterwards::Late).await;
    let backend = scene.bed.via(proxy.address, PATIENCE).await;
    let stream = stream();
    let append = backend.append(&stream, event(P0, 100));
    let meanwhile = async {
        proxy.held().await;
        proxy.refuse();
    };
    let (appended, ()) = tokio::join!(append, meanwhile);
    assert_eq!(
        appended.map_err(|error| error.kind()),
        Err(ErrorKind::Ambiguous)
    );
    scene.bed.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_refused_when_it_is_sent_again_is_ambiguous() {
    let scene = Scene::new(1).await;
    let proxy = Proxy::start(scene.bed.server().await, usize::MAX, Afterwards::Late).await;
    let backend = scene.bed.via(proxy.address, PATIENCE).await;
    let (name, options) = (
        StreamName::new("late").expect("allowed"),
        StreamOptions::new(),
    );
    let create = backend.create_stream(&name, &options);
    let meanwhile = async {
        proxy.held().await;
        proxy.refuse();
    };
    let (created, ()) = tokio::join!(create, meanwhile);
    assert_eq!(
        created.map_err(|error| error.kind()),
        Err(ErrorKind::Ambiguous)
    );
    scene.bed.drop().await;
}
