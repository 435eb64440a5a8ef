//! Each scripted fault, for writes and for reads, and the server going away.

use std::sync::Arc;
use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, Error, ErrorKind, Event, FetchOptions, GroupName, GroupOptions, NewEvent,
    Operation, ReadOptions, Result, StreamName, StreamOptions, SystemClock,
};
use rheo_double::{DoubleBackend, DoubleServer, Fault};
use serde_json::json;

fn stream() -> StreamName {
    StreamName::new("s").expect("allowed")
}

fn group() -> GroupName {
    GroupName::new("g").expect("allowed")
}

async fn scene() -> (DoubleServer, DoubleBackend) {
    let server = DoubleServer::new();
    let backend = server.connect(Arc::new(SystemClock));
    let made = backend
        .create_stream(&stream(), &StreamOptions::new())
        .await;
    made.expect("is new");
    let options = GroupOptions::new();
    let made = backend.create_group(&stream(), &group(), &options).await;
    made.expect("is new");
    (server, backend)
}

async fn append(backend: &DoubleBackend) -> Result<Event> {
    let event = NewEvent::new("t", json!({})).expect("allowed");
    backend.append(&stream(), event).await
}

async fn read(backend: &DoubleBackend) -> Result<usize> {
    let events = backend.read(&stream(), &ReadOptions::new()).await?;
    Ok(events.len())
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

#[tokio::test]
async fn a_write_that_is_refused_does_nothing() {
    let (_server, backend) = scene().await;
    for (fault, expected) in [
        (Fault::Unavailable, ErrorKind::BackendUnavailable),
        (Fault::AmbiguousBefore, ErrorKind::Ambiguous),
    ] {
        backend
            .faults()
            .next(Operation::Append, fault)
            .expect("allowed");
        assert_eq!(kind(append(&backend).await), Some(expected));
        assert_eq!(read(&backend).await, Ok(0));
    }
    assert_eq!(kind(append(&backend).await), None);
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_did_happen() {
    let (_server, backend) = scene().await;
    let faults = backend.faults();
    faults
        .next(Operation::Append, Fault::AmbiguousAfter)
        .expect("allowed");
    assert_eq!(kind(append(&backend).await), Some(ErrorKind::Ambiguous));
    assert_eq!(read(&backend).await, Ok(1));

    // A lost fetch holds its events until the lease expires.
    faults
        .next(Operation::Fetch, Fault::AmbiguousAfter)
        .expect("allowed");
    let options = FetchOptions::new(ConsumerId::new("c").expect("allowed"));
    let lost = backend.fetch(&stream(), &group(), &options).await;
    assert_eq!(kind(lost), Some(ErrorKind::Ambiguous));
    assert_eq!(
        backend.fetch(&stream(), &group(), &options).await,
        Ok(vec![])
    );
}

#[tokio::test]
async fn every_lease_of_a_batch_meets_its_fault() {
    let (_server, backend) = scene().await;
    append(&backend).await.expect("appends");
    append(&backend).await.expect("appends");
    let options = FetchOptions::new(ConsumerId::new("c").expect("allowed")).with_limit(2);
    let leases = backend
        .fetch(&stream(), &group(), &options)
        .await
        .expect("fetches");
    let faults = backend.faults();
    faults
        .next(Operation::AckBatch, Fault::AmbiguousAfter)
        .expect("allowed");
    let lost = backend.ack_batch(&leases).await;
    assert_eq!(lost.len(), 2);
    assert!(
        lost.into_iter()
            .all(|ack| kind(ack) == Some(ErrorKind::Ambiguous))
    );
    let again = backend.ack_batch(&leases).await;
    assert_eq!(again, [Err(Error::StaleLease), Err(Error::StaleLease)]);
}

#[tokio::test]
async fn a_read_may_be_refused_but_never_ambiguous() {
    let (_server, backend) = scene().await;
    let faults = backend.faults();
    for operation in Operation::ALL
        .iter()
        .filter(|operation| !operation.writes())
    {
        for fault in [Fault::AmbiguousBefore, Fault::AmbiguousAfter] {
            let refused = faults.next(*operation, fault);
            assert_eq!(kind(refused), Some(ErrorKind::Invalid), "{operation}");
        }
    }
    let refused = faults.next(Operation::Close, Fault::Unavailable);
    assert_eq!(kind(refused), Some(ErrorKind::Invalid));
    assert_eq!(faults.remaining(), 0);

    faults.next_of_any(Fault::AmbiguousBefore).expect("allowed");
    assert_eq!(
        read(&backend).await,
        Ok(0),
        "an ambiguous fault lets reads pass"
    );
    assert_eq!(kind(append(&backend).await), Some(ErrorKind::Ambiguous));

    faults
        .next(Operation::Read, Fault::Unavailable)
        .expect("allowed");
    let refused = kind(read(&backend).await);
    assert_eq!(refused, Some(ErrorKind::BackendUnavailable));
    assert_eq!(read(&backend).await, Ok(0));
}

#[tokio::test]
async fn faults_queue_and_each_is_met_once() {
    let (_server, backend) = scene().await;
    let faults = backend.faults();
    faults
        .next(Operation::Append, Fault::AmbiguousBefore)
        .expect("allowed");
    faults
        .next(Operation::Ping, Fault::Unavailable)
        .expect("allowed");
    faults.next_of_any(Fault::Unavailable).expect("allowed");
    assert_eq!(kind(append(&backend).await), Some(ErrorKind::Ambiguous));
    let second = kind(append(&backend).await);
    assert_eq!(second, Some(ErrorKind::BackendUnavailable));
    assert_eq!(kind(append(&backend).await), None);
    assert_eq!(faults.remaining(), 1);
    faults.clear();
    assert_eq!(backend.ping().await, Ok(()));
}

#[tokio::test]
async fn a_fault_is_for_one_handle_or_for_all() {
    let (server, one) = scene().await;
    let other = server.connect(Arc::new(SystemClock));
    one.faults()
        .next(Operation::Ping, Fault::Unavailable)
        .expect("allowed");
    assert_eq!(other.ping().await, Ok(()));
    assert!(one.ping().await.is_err());
    server
        .faults()
        .next(Operation::Ping, Fault::Unavailable)
        .expect("allowed");
    assert!(other.ping().await.is_err());
    assert_eq!(one.ping().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_happens_late() {
    let (_server, backend) = scene().await;
    let delay = Duration::from_secs(3);
    for operation in [Operation::Append, Operation::Read] {
        backend
            .faults()
            .next(operation, Fault::Slow(delay))
            .expect("allowed");
    }
    let started = tokio::time::Instant::now();
    append(&backend).await.expect("appends");
    assert_eq!(started.elapsed(), delay);
    assert_eq!(read(&backend).await, Ok(1));
    assert_eq!(started.elapsed(), 2 * delay);

    let too_slow = Fault::Slow(Fault::MAX_SLOW + Duration::from_nanos(1));
    let refused = backend.faults().next(Operation::Append, too_slow);
    assert_eq!(kind(refused), Some(ErrorKind::Invalid));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_slow_call_leaves_all_or_nothing() {
    let (_server, backend) = scene().await;
    let delay = Duration::from_millis(100);
    let batch = || vec![NewEvent::new("t", json!({})).expect("allowed"); 3];
    let stream = stream();
    let mut whole = 0;
    for wait in [0, 99, 100, 101].map(Duration::from_millis) {
        let faults = backend.faults();
        faults
            .next(Operation::AppendBatch, Fault::Slow(delay))
            .expect("allowed");
        let append = backend.append_batch(&stream, batch());
        whole += match tokio::time::timeout(wait, append).await {
            Ok(appended) => appended.expect("appends").len(),
            Err(_) => 0,
        };
        assert_eq!(read(&backend).await, Ok(whole), "dropped after {wait:?}");
    }
    assert!(whole >= 3, "the one that waited for longer than the delay");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_does_so_until_dropped() {
    let (_server, backend) = scene().await;
    let day = Duration::from_secs(86_400);
    backend
        .faults()
        .next(Operation::Append, Fault::Hang)
        .expect("allowed");
    backend
        .faults()
        .next(Operation::Read, Fault::Hang)
        .expect("allowed");
    assert!(tokio::time::timeout(day, append(&backend)).await.is_err());
    assert!(tokio::time::timeout(day, read(&backend)).await.is_err());
    assert_eq!(read(&backend).await, Ok(0));
}

#[tokio::test]
async fn a_stopped_server_comes_back_with_its_data() {
    let (server, backend) = scene().await;
    append(&backend).await.expect("appends");
    server.stop();
    assert_eq!(
        kind(append(&backend).await),
        Some(ErrorKind::BackendUnavailable)
    );
    assert_eq!(
        kind(read(&backend).await),
        Some(ErrorKind::BackendUnavailable)
    );
    server.start();
    assert_eq!(read(&backend).await, Ok(1));
}

#[tokio::test]
async fn closing_ends_one_handle() {
    let (server, one) = scene().await;
    let other = server.connect(Arc::new(SystemClock));
    assert_eq!(one.close().await, Ok(()));
    assert_eq!(one.close().await, Ok(()));
    assert_eq!(kind(one.ping().await), Some(ErrorKind::BackendUnavailable));
    assert_eq!(kind(read(&one).await), Some(ErrorKind::BackendUnavailable));
    assert_eq!(read(&other).await, Ok(0));
}
