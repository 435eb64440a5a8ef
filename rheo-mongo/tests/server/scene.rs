//! A stream with a history, and what a reader sees of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, DeadLetterOptions, EventId, FetchOptions, GroupName, GroupOptions, Lease,
    LeaseDuration, ManualClock, MaxAttempts, NewEvent, Partition, PartitionCount, Partitions,
    ReadOptions, Reason, StreamName, StreamOptions, Timestamp,
};
use rheo_mongo::MongoBackend;
use serde_json::json;

use crate::bed::Bed;

pub(crate) const P0: Partition = Partition::new(0);
pub(crate) const P1: Partition = Partition::new(1);
const LEASE: Duration = Duration::from_secs(30);

/// Two partitions. In the first, event 1 is acked, 2 and 3 are leased, the next `dead` are dead, and
/// two more were never claimed; in the second, the same without the dead.
pub(crate) struct Scene {
    pub(crate) bed: Bed,
    pub(crate) clock: Arc<ManualClock>,
    /// Of events 2 and 3 of the first partition, then of the second.
    pub(crate) leases: Vec<Lease>,
    /// In the first partition.
    pub(crate) acked: EventId,
    pub(crate) dead: EventId,
}

/// What there is in a partition, without what differs from run to run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    /// What the events say, in their order.
    log: Vec<String>,
    frontier: u64,
    /// Sequence, attempt, reason.
    dead: Vec<(u64, u32, String)>,
    /// Sequence and attempt of what comes when all leases have expired.
    comes: Vec<(u64, u32)>,
}

impl Scene {
    pub(crate) async fn new(dead: u64) -> Self {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let clock = Arc::new(ManualClock::new(start));
        let bed = Bed::new(Arc::clone(&clock) as _).await;
        let backend = bed.backend().await;
        let count = PartitionCount::new(2).expect("allowed");
        let options = StreamOptions::new().with_partition_count(count);
        let made = backend.create_stream(&stream(), &options).await;
        made.expect("made");
        let two = MaxAttempts::new(2).expect("allowed");
        let options = GroupOptions::new().with_max_attempts(two);
        let made = backend.create_group(&stream(), &group(), &options).await;
        made.expect("made");

        let mut leases = Vec::new();
        let (mut acked, mut dead_event) = (None, None);
        for (partition, dead) in [(P0, dead), (P1, 0)] {
            let open = 3 + dead;
            let batch = (1..open).map(|n| event(partition, n)).collect();
            backend
                .append_batch(&stream(), batch)
                .await
                .expect("appended");
            let last = event(partition, open);
            backend.append(&stream(), last).await.expect("appended");
            let mut claimed = fetch(&backend, partition, u32::MAX).await;
            for lease in claimed.drain(3..) {
                dead_event = Some(lease.event.id);
                let reason = Reason::new(format!("bad {}", lease.event.sequence));
                backend.reject(&lease, &reason).await.expect("rejected");
            }
            let first = claimed.remove(0);
            backend.ack(&first).await.expect("acked");
            acked = acked.or(Some(first.event.id));
            leases.extend(claimed);
            let new = (1..=2).map(|n| event(partition, open + n)).collect();
            backend
                .append_batch(&stream(), new)
                .await
                .expect("appended");
        }
        backend.close().await.expect("closed");
        Self {
            bed,
            clock,
            leases,
            acked: acked.expect("one was acked"),
            dead: dead_event.expect("one is dead"),
        }
    }

    /// Lets all leases expire.
    pub(crate) fn let_expire(&self) {
        self.clock.advance(10 * LEASE);
    }

    /// Has all leases of the first partition expire, and claimed for the second and last time.
    pub(crate) async fn reclaim(&mut self) {
        self.let_expire();
        let backend = self.bed.backend().await;
        let claimed = fetch(&backend, P0, 2).await;
        let attempts: Vec<u32> = claimed.iter().map(|lease| lease.attempt).collect();
        assert_eq!(attempts, [2, 2]);
        self.leases.splice(..2, claimed);
        backend.close().await.expect("closed");
    }

    /// Looks at everything through a handle of its own, and does what is left to do.
    pub(crate) async fn look(&self) -> BTreeMap<Partition, Seen> {
        let backend = self.bed.backend().await;
        let lag = backend.lag(&stream(), &group()).await.expect("there");
        let all = DeadLetterOptions::new().with_limit(u32::MAX);
        let letters = backend.dead_letters(&stream(), &group(), &all).await;
        let letters = letters.expect("there");
        let info = backend
            .group_info(&stream(), &group())
            .await
            .expect("there");
        assert_eq!(info.dead_letters, letters.len() as u64);
        self.let_expire();
        let mut seen = BTreeMap::new();
        for partition in [P0, P1] {
            let of = ReadOptions::new()
                .with_partition(partition)
                .with_limit(u32::MAX);
            let log = backend.read(&stream(), &of).await.expect("read");
            let sequences = log.iter().map(|event| event.sequence.get());
            assert!(sequences.eq(1..=log.len() as u64), "a hole in {log:?}");
            let dead = letters.iter().filter(|l| l.event.partition == partition);
            let progress = lag.partition(partition).expect("there");
            assert_eq!(progress.high_watermark.get(), log.len() as u64);
            let mut comes = Vec::new();
            loop {
                let leases = fetch(&backend, partition, u32::MAX).await;
                if leases.is_empty() {
                    break;
                }
                comes.extend(leases.iter().map(|l| (l.event.sequence.get(), l.attempt)));
                for acked in backend.ack_batch(&leases).await {
                    acked.expect("acked");
                }
            }
            seen.insert(
                partition,
                Seen {
                    log: log
                        .iter()
                        .map(|event| event.payload.to_value().to_string())
                        .collect(),
                    frontier: progress.frontier.get(),
                    dead: dead
                        .map(|l| (l.event.sequence.get(), l.attempt, l.reason.to_string()))
                        .collect(),
                    comes,
                },
            );
        }
        let lag = backend.lag(&stream(), &group()).await.expect("there");
        assert_eq!(lag.total(), 0, "all is done: {lag:?}");
        backend.close().await.expect("closed");
        seen
    }
}

pub(crate) async fn fetch(backend: &MongoBackend, partition: Partition, limit: u32) -> Vec<Lease> {
    let options = FetchOptions::new(consumer())
        .with_limit(limit)
        .with_lease_duration(LeaseDuration::new(LEASE).expect("allowed"))
        .with_partitions(Partitions::from(partition));
    let leases = backend.fetch(&stream(), &group(), &options).await;
    leases.expect("fetched")
}

pub(crate) fn event(partition: Partition, number: u64) -> NewEvent {
    let event = NewEvent::new("counted", json!({"partition": partition, "number": number}));
    event.expect("allowed").with_partition(partition)
}

pub(crate) fn stream() -> StreamName {
    StreamName::new("orders").expect("allowed")
}

pub(crate) fn group() -> GroupName {
    GroupName::new("billing").expect("allowed")
}

pub(crate) fn consumer() -> ConsumerId {
    ConsumerId::new("worker").expect("allowed")
}
