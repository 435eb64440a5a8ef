//! `wait_for_work` as a blocking read.

use std::sync::Arc;
use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, ErrorKind, FetchOptions, GroupName, GroupOptions, ManualClock, NewEvent,
    StreamName, StreamOptions, Timestamp, Wakeup,
};
use rheo_double::{DoubleBackend, DoubleServer};
use serde_json::json;
use tokio::time::Instant;

const LONG: Duration = Duration::from_secs(3_600);

fn stream() -> StreamName {
    StreamName::new("s").expect("allowed")
}

fn group() -> GroupName {
    GroupName::new("g").expect("allowed")
}

async fn scene() -> (DoubleServer, Arc<DoubleBackend>) {
    let server = DoubleServer::new();
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    let backend = Arc::new(server.connect(clock));
    let made = backend
        .create_stream(&stream(), &StreamOptions::new())
        .await;
    made.expect("is new");
    let options = GroupOptions::new();
    let made = backend.create_group(&stream(), &group(), &options).await;
    made.expect("is new");
    (server, backend)
}

async fn append(backend: &DoubleBackend) {
    let event = NewEvent::new("t", json!({})).expect("allowed");
    backend.append(&stream(), event).await.expect("appends");
}

#[tokio::test(start_paused = true)]
async fn nothing_to_do_takes_the_whole_timeout() {
    let (_server, backend) = scene().await;
    let started = Instant::now();
    let woken = backend.wait_for_work(&stream(), &group(), LONG).await;
    assert_eq!(woken, Ok(Wakeup::TimedOut));
    assert_eq!(started.elapsed(), LONG);
}

#[tokio::test(start_paused = true)]
async fn work_that_is_there_is_seen_at_once() {
    let (_server, backend) = scene().await;
    append(&backend).await;
    let now = Duration::ZERO;
    let woken = backend.wait_for_work(&stream(), &group(), now).await;
    assert_eq!(woken, Ok(Wakeup::MaybeWork));
}

#[tokio::test(start_paused = true)]
async fn an_append_on_another_handle_wakes() {
    let (server, backend) = scene().await;
    let other = server.connect(Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH)));
    let started = Instant::now();
    let (stream, group) = (stream(), group());
    let wait = backend.wait_for_work(&stream, &group, LONG);
    let (woken, ()) = tokio::join!(wait, append(&other));
    assert_eq!(woken, Ok(Wakeup::MaybeWork));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_expiring_lease_wakes() {
    let (_server, backend) = scene().await;
    append(&backend).await;
    let options = FetchOptions::new(ConsumerId::new("c").expect("allowed"));
    let fetched = backend.fetch(&stream(), &group(), &options).await;
    assert_eq!(fetched.expect("fetches").len(), 1);
    let started = Instant::now();
    let woken = backend.wait_for_work(&stream(), &group(), LONG).await;
    assert_eq!(woken, Ok(Wakeup::MaybeWork));
    assert_eq!(started.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn stopping_the_server_or_closing_the_handle_ends_the_wait() {
    let (server, backend) = scene().await;
    let (stream, group) = (stream(), group());
    let wait = || backend.wait_for_work(&stream, &group, LONG);
    let (woken, ()) = tokio::join!(wait(), async { server.stop() });
    let unavailable = Some(ErrorKind::BackendUnavailable);
    assert_eq!(woken.err().map(|error| error.kind()), unavailable);
    server.start();
    let (woken, closed) = tokio::join!(wait(), backend.close());
    assert_eq!(woken.err().map(|error| error.kind()), unavailable);
    assert_eq!(closed, Ok(()));
}
