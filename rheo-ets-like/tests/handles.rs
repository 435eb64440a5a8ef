//! Handles on a shared store: closing, shutting down, waiting for work and working in parallel.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rheo_core::{
    Backend, Capabilities, ConsumerId, Error, FetchOptions, GroupName, GroupOptions, Guarantee,
    LeaseDuration, ManualClock, NewEvent, OptionalOperation, Replay, RetryDelay, RetryOptions,
    Sequence, StreamName, StreamOptions, SystemClock, Timestamp, Wakeup,
};
use rheo_ets_like::{MemoryBackend, MemoryStore};
use serde_json::json;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(5);

struct Names {
    stream: StreamName,
    group: GroupName,
}

fn names() -> Names {
    Names {
        stream: StreamName::new("orders").expect("allowed"),
        group: GroupName::new("billing").expect("allowed"),
    }
}

async fn prepare(backend: &MemoryBackend) -> Names {
    let names = names();
    let made = backend
        .create_stream(&names.stream, &StreamOptions::new())
        .await;
    made.expect("new");
    let made = backend
        .create_group(&names.stream, &names.group, &GroupOptions::new())
        .await;
    made.expect("new");
    names
}

fn event() -> NewEvent {
    NewEvent::new("order.placed", json!({})).expect("allowed")
}

fn worker(limit: u32) -> FetchOptions {
    // Longer than any wait, so that no expiry ends one.
    let duration = LeaseDuration::new(2 * LONG).expect("allowed");
    FetchOptions::new(ConsumerId::new("worker").expect("allowed"))
        .with_limit(limit)
        .with_lease_duration(duration)
}

fn manual_clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH))
}

fn is_unavailable<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::BackendUnavailable(_)))
}

#[test]
fn the_declaration_is_honest() {
    let declared: Capabilities = MemoryBackend::new(manual_clock()).capabilities();
    assert!(!declared.guarantees(Guarantee::Durable));
    assert!(!declared.guarantees(Guarantee::Distributed));
    assert!(declared.guarantees(Guarantee::ContiguousFrontier));
    assert!(
        OptionalOperation::ALL
            .iter()
            .all(|operation| declared.offers(*operation))
    );
}

#[tokio::test]
async fn a_store_that_was_shut_down_comes_back_with_its_data() {
    let store = MemoryStore::new();
    let backend = store.open(manual_clock());
    let Names { stream, group } = prepare(&backend).await;
    backend.append(&stream, event()).await.expect("appended");
    let leases = backend
        .fetch(&stream, &group, &worker(1))
        .await
        .expect("fetched");

    store.shut_down();
    assert!(is_unavailable(&backend.ping().await));
    assert!(is_unavailable(&backend.append(&stream, event()).await));
    assert!(is_unavailable(&backend.ack(&leases[0]).await));
    assert!(backend.ack_batch(&leases).await.iter().all(is_unavailable));
    assert!(is_unavailable(
        &store.open(manual_clock()).lag(&stream, &group).await
    ));

    store.start_up();
    assert_eq!(backend.ack(&leases[0]).await, Ok(()));
    assert_eq!(
        backend.lag(&stream, &group).await.expect("there").total(),
        0
    );
}

#[tokio::test]
async fn closing_again_is_fine_and_other_handles_go_on() {
    let store = MemoryStore::new();
    let (closed, open) = (store.open(manual_clock()), store.open(manual_clock()));
    let Names { stream, group } = prepare(&closed).await;
    assert_eq!(closed.close().await, Ok(()));
    assert_eq!(closed.close().await, Ok(()));
    assert!(is_unavailable(
        &closed.wait_for_work(&stream, &group, SHORT).await
    ));
    assert!(open.lag(&stream, &group).await.is_ok());
}

#[tokio::test]
async fn waiting_ends_at_once_when_there_is_work_and_in_time_when_there_is_none() {
    let backend = MemoryBackend::new(manual_clock());
    let Names { stream, group } = prepare(&backend).await;
    assert_eq!(
        backend.wait_for_work(&stream, &group, SHORT).await,
        Ok(Wakeup::TimedOut)
    );
    backend.append(&stream, event()).await.expect("appended");
    assert_eq!(
        backend.wait_for_work(&stream, &group, LONG).await,
        Ok(Wakeup::MaybeWork)
    );
    let other = GroupName::new("other").expect("allowed");
    let missing = backend.wait_for_work(&stream, &other, SHORT).await;
    assert!(matches!(missing, Err(Error::GroupNotFound { .. })));
}

#[tokio::test]
async fn appends_retries_and_replays_wake_those_who_wait() {
    let backend = MemoryBackend::new(manual_clock());
    let Names { stream, group } = prepare(&backend).await;
    let wait = || backend.wait_for_work(&stream, &group, LONG);

    // `join!` polls the waiter first, so it is waiting when the other side acts.
    let (woken, _) = tokio::join!(wait(), backend.append(&stream, event()));
    assert_eq!(woken, Ok(Wakeup::MaybeWork));

    let lease = backend
        .fetch(&stream, &group, &worker(1))
        .await
        .expect("fetched")
        .remove(0);
    let options = RetryOptions::new();
    let (woken, _) = tokio::join!(wait(), backend.retry(&lease, &options));
    assert_eq!(woken, Ok(Wakeup::MaybeWork));

    let lease = backend
        .fetch(&stream, &group, &worker(1))
        .await
        .expect("fetched")
        .remove(0);
    backend.ack(&lease).await.expect("current");
    let replay = Replay::after(Sequence::ZERO);
    let (woken, _) = tokio::join!(wait(), backend.replay(&stream, &group, &replay));
    assert_eq!(woken, Ok(Wakeup::MaybeWork));
}

#[tokio::test]
async fn waiting_ends_when_a_delay_that_is_known_is_over() {
    let backend = MemoryBackend::new(Arc::new(SystemClock));
    let Names { stream, group } = prepare(&backend).await;
    backend.append(&stream, event()).await.expect("appended");
    let lease = backend
        .fetch(&stream, &group, &worker(1))
        .await
        .expect("fetched")
        .remove(0);
    let delay = RetryDelay::new(SHORT).expect("allowed");
    let options = RetryOptions::new().with_delay(delay);
    backend.retry(&lease, &options).await.expect("current");
    assert_eq!(
        backend.wait_for_work(&stream, &group, LONG).await,
        Ok(Wakeup::MaybeWork)
    );
}

#[tokio::test]
async fn closing_and_shutting_down_end_the_waiting() {
    let store = MemoryStore::new();
    let backend = store.open(manual_clock());
    let Names { stream, group } = prepare(&backend).await;
    let wait = || backend.wait_for_work(&stream, &group, LONG);

    let (woken, ()) = tokio::join!(wait(), async { store.shut_down() });
    assert!(is_unavailable(&woken));
    store.start_up();
    let (woken, _) = tokio::join!(wait(), backend.close());
    assert!(is_unavailable(&woken));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_on_one_handle_share_the_work() {
    const EVENTS: usize = 2_000;
    let backend = Arc::new(MemoryBackend::new(manual_clock()));
    let Names { stream, group } = prepare(&backend).await;
    let append = |_| {
        let (backend, stream) = (backend.clone(), stream.clone());
        tokio::spawn(async move {
            for _ in 0..EVENTS / 4 {
                backend.append(&stream, event()).await.expect("appended");
            }
        })
    };
    for task in (0..4).map(append).collect::<Vec<_>>() {
        task.await.expect("no panic");
    }

    let work = |_| {
        let (backend, stream, group) = (backend.clone(), stream.clone(), group.clone());
        tokio::spawn(async move {
            let mut given = Vec::new();
            loop {
                let leases = backend
                    .fetch(&stream, &group, &worker(7))
                    .await
                    .expect("fetched");
                if leases.is_empty() {
                    return given;
                }
                for lease in leases {
                    backend.ack(&lease).await.expect("current");
                    given.push(lease.event.id);
                }
            }
        })
    };
    let mut given = Vec::new();
    for task in (0..4).map(work).collect::<Vec<_>>() {
        given.extend(task.await.expect("no panic"));
    }
    assert_eq!(given.len(), EVENTS);
    assert_eq!(given.into_iter().collect::<HashSet<_>>().len(), EVENTS);
    assert_eq!(
        backend.lag(&stream, &group).await.expect("there").total(),
        0
    );
}
