//! Many leases that expire at once, and many events that wait: more than are sorted in one go.

use std::sync::Arc;
use std::time::Duration;

use rheo_core::{
    Backend, Clock, ConsumerId, DeadLetterOptions, FetchOptions, GroupName, GroupOptions, Lease,
    LeaseDuration, ManualClock, MaxAttempts, NewEvent, RetryOptions, StreamName, StreamOptions,
    Timestamp,
};
use rheo_postgres::{Config, PostgresBackend};
use serde_json::json;

use crate::bed::Bed;

/// More than the functions sort.
const MANY: u32 = 1_100;

/// DLQ-3: also when more are given up on than were asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_gives_nothing_leaves_no_used_up_lease() {
    let (bed, backend, clock) = begin(MaxAttempts::new(1).expect("allowed")).await;
    for _ in 0..30 {
        assert_eq!(fetch(&backend, 1).await.len(), 1);
    }
    fetch(&backend, MANY).await;
    clock.advance(Duration::from_secs(30));

    assert_eq!(fetch(&backend, 2).await.len(), 0);

    let all = DeadLetterOptions::new().with_limit(u32::MAX);
    let dead = backend.dead_letters(&stream(), &group(), &all).await;
    assert_eq!(dead.expect("there").len(), MANY as usize);
    bed.drop().await;
}

/// DLV-4: the lowest come first, however many leases expired, in whatever order they did.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_expired_claims_the_lowest_come_first() {
    let (bed, backend, clock) = begin(MaxAttempts::default()).await;
    for _ in 0..MANY {
        assert_eq!(fetch(&backend, 1).await.len(), 1);
        // The later claims expire first.
        clock.set(clock.now().saturating_sub(Duration::from_micros(10)));
    }
    clock.advance(Duration::from_secs(60));

    expect_in_order(&backend, 2).await;
    bed.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_retried_events_the_lowest_come_first() {
    let (bed, backend, _) = begin(MaxAttempts::default()).await;
    let mut leases = Vec::new();
    while leases.len() < MANY as usize {
        leases.extend(fetch(&backend, MANY).await);
    }
    // The highest is retried first.
    leases.reverse();
    for chunk in leases.chunks(100) {
        for retried in backend.retry_batch(chunk, &RetryOptions::new()).await {
            retried.expect("retried");
        }
    }

    expect_in_order(&backend, 2).await;
    bed.drop().await;
}

async fn expect_in_order(backend: &PostgresBackend, attempt: u32) {
    let mut next = 1;
    while next <= u64::from(MANY) {
        for lease in fetch(backend, 150).await {
            assert_eq!((lease.event.sequence.get(), lease.attempt), (next, attempt));
            next += 1;
        }
    }
}

async fn fetch(backend: &PostgresBackend, limit: u32) -> Vec<Lease> {
    let options = FetchOptions::new(ConsumerId::new("a").expect("allowed"))
        .with_limit(limit)
        .with_lease_duration(LeaseDuration::new(Duration::from_secs(30)).expect("allowed"));
    let leases = backend.fetch(&stream(), &group(), &options).await;
    leases.expect("fetched")
}

/// A stream of one partition with [`MANY`] events.
async fn begin(max_attempts: MaxAttempts) -> (Bed, PostgresBackend, Arc<ManualClock>) {
    let bed = Bed::new().await;
    let start = Timestamp::from_micros(1_800_000_000_000_000).expect("in range");
    let clock = Arc::new(ManualClock::new(start));
    let config = Config::new(&bed.url).with_schema(&bed.schema);
    let backend = PostgresBackend::connect(config, clock.clone()).expect("right settings");
    let made = backend
        .create_stream(&stream(), &StreamOptions::new())
        .await;
    made.expect("made");
    let options = GroupOptions::new().with_max_attempts(max_attempts);
    let made = backend.create_group(&stream(), &group(), &options).await;
    made.expect("made");
    let event = NewEvent::new("counted", json!({"n": 1})).expect("allowed");
    let batch = vec![event; MANY as usize];
    let appended = backend.append_batch(&stream(), batch).await;
    appended.expect("appended");
    (bed, backend, clock)
}

fn stream() -> StreamName {
    StreamName::new("orders").expect("allowed")
}

fn group() -> GroupName {
    GroupName::new("billing").expect("allowed")
}
