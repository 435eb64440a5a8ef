//! Replays against concurrent fetches and settles.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rheo_core::{Backend, ErrorKind, MaxAttempts, RetryOptions};
use tokio::task::JoinSet;

use crate::expect::{Outcome, expect_error};
use crate::fixture::Fixture;
use crate::scene::finished;

/// Each ack comes before the replay, and its event is reopened, or after, and is refused.
pub(super) async fn acks_that_race_a_replay_lose_no_event(t: Fixture) -> Outcome {
    let group = t.group_with_events(16).await?;
    let leases = group.fetch_exactly("a", 16).await?;
    let has_begun = Arc::new(AtomicBool::new(false));

    let mut tasks = JoinSet::new();
    for (number, lease) in leases.iter().take(15).cloned().enumerate() {
        let (backend, has_begun) = (t.backend.clone(), Arc::clone(&has_begun));
        tasks.spawn(async move {
            // The first half goes ahead, so that there is something acked already.
            while number >= 8 && !has_begun.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
            let result = backend.ack(&lease).await;
            if result.is_err() {
                expect_error(result, ErrorKind::StaleLease)?;
            }
            Ok(())
        });
    }
    let replayed = group.clone();
    tasks.spawn(async move {
        has_begun.store(true, Ordering::SeqCst);
        replayed.replay_after(0).await
    });
    finished(tasks).await?;

    let all: Vec<u64> = (1..=16).collect();
    group.expect_claimable("b", &all).await?;
    for lease in &leases {
        group.expect_stale(lease).await?;
    }
    Ok(())
}

/// Consumers claim and give back while the replay runs; none of their claims falls in between.
pub(super) async fn fetches_that_race_a_replay_lose_no_event(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream
        .group_of_attempts("billing", MaxAttempts::MAX)
        .await?;
    stream.append(12).await?;
    let held = group.fetch_exactly("a", 8).await?;
    let is_over = Arc::new(AtomicBool::new(false));

    let mut tasks = JoinSet::new();
    for number in 0..4 {
        let (group, is_over) = (group.clone(), Arc::clone(&is_over));
        tasks.spawn(async move {
            while !is_over.load(Ordering::SeqCst) {
                for lease in group.fetch(&format!("consumer-{number}"), 1).await? {
                    let result = group.backend.retry(&lease, &RetryOptions::new()).await;
                    if result.is_err() {
                        expect_error(result, ErrorKind::StaleLease)?;
                    }
                }
                tokio::task::yield_now().await;
            }
            Ok(())
        });
    }
    let replayed = group.clone();
    tasks.spawn(async move {
        let outcome = replayed.replay_after(0).await;
        is_over.store(true, Ordering::SeqCst);
        outcome
    });
    finished(tasks).await?;

    let all: Vec<u64> = (1..=12).collect();
    group.expect_claimable("b", &all).await?;
    for lease in &held {
        group.expect_stale(lease).await?;
    }
    Ok(())
}

/// Batches take another way through most backends.
pub(super) async fn no_batch_of_leases_from_before_settles_after(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;

    group.replay_after(0).await?;

    for result in t.backend.ack_batch(&leases).await {
        expect_error(result, ErrorKind::StaleLease)?;
    }
    let current = group.expect_claimable("b", &[1, 2, 3]).await?;
    for result in t.backend.ack_batch(&leases).await {
        expect_error(result, ErrorKind::StaleLease)?;
    }
    group.ack(&current).await
}
