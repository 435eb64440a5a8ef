//! What is native about this adapter: receipts, ids and the pending list.

use std::sync::Arc;
use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, DeadLetterOptions, Error, Event, FetchOptions, GroupName, GroupOptions,
    Lease, ManualClock, MaxAttempts, NewEvent, Partition, Reason, Receipt, Replay, RetryOptions,
    Sequence, Start, StreamName, StreamOptions, Timestamp,
};
use rheo_double::{DoubleBackend, DoubleServer};
use serde_json::json;

struct Scene {
    server: DoubleServer,
    backend: DoubleBackend,
    clock: Arc<ManualClock>,
    stream: StreamName,
    group: GroupName,
}

impl Scene {
    async fn new(options: GroupOptions) -> Self {
        let clock = Arc::new(ManualClock::new(at(1_700_000_000)));
        let server = DoubleServer::new();
        let scene = Self {
            backend: server.connect(clock.clone()),
            server,
            clock,
            stream: StreamName::new("orders").expect("allowed"),
            group: GroupName::new("billing").expect("allowed"),
        };
        let (backend, stream) = (&scene.backend, &scene.stream);
        let made = backend.create_stream(stream, &StreamOptions::new()).await;
        made.expect("is new");
        let made = backend.create_group(stream, &scene.group, &options).await;
        made.expect("is new");
        scene
    }

    async fn append(&self) -> Event {
        let event = NewEvent::new("placed", json!({})).expect("allowed");
        let appended = self.backend.append(&self.stream, event).await;
        appended.expect("appends")
    }

    async fn fetch(&self, consumer: &str, limit: u32) -> Vec<Lease> {
        let options = FetchOptions::new(ConsumerId::new(consumer).expect("allowed"));
        let options = options.with_limit(limit);
        let fetched = self.backend.fetch(&self.stream, &self.group, &options);
        fetched.await.expect("fetches")
    }

    async fn frontier(&self) -> u64 {
        let lag = self.backend.lag(&self.stream, &self.group).await;
        lag.expect("has one").partitions[0].frontier.get()
    }

    /// The pending list as (id, consumer, delivery count).
    fn pending(&self) -> Vec<(String, String, u32)> {
        let pending = self.server.pending(&self.stream, &self.group);
        let entries = pending.expect("has one").into_iter();
        entries
            .map(|(_, id, entry)| (id.to_string(), entry.consumer, entry.deliveries))
            .collect()
    }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::UNIX_EPOCH.saturating_add(Duration::from_secs(seconds))
}

fn receipt(lease: &Lease) -> String {
    lease.receipt.as_ref().expect("has one").as_str().to_owned()
}

fn sequences(leases: &[Lease]) -> Vec<u64> {
    let sequences = leases.iter().map(|lease| lease.event.sequence.get());
    sequences.collect()
}

#[tokio::test]
async fn the_receipt_is_the_native_id() {
    let t = Scene::new(GroupOptions::new()).await;
    t.append().await;
    t.clock.advance(Duration::from_millis(7));
    t.append().await;
    let leases = t.fetch("a", 2).await;
    let receipts: Vec<String> = leases.iter().map(receipt).collect();
    assert_eq!(receipts, ["1700000000000-0", "1700000000007-0"]);
    let listed = t.pending().into_iter().map(|(id, ..)| id);
    assert_eq!(listed.collect::<Vec<_>>(), receipts);
}

#[tokio::test]
async fn native_ids_increase_when_the_clock_does_not() {
    let t = Scene::new(GroupOptions::new()).await;
    t.append().await;
    t.append().await;
    t.clock.set(at(5));
    t.append().await;
    let receipts: Vec<String> = t.fetch("a", 9).await.iter().map(receipt).collect();
    let expected = ["1700000000000-0", "1700000000000-1", "1700000000000-2"];
    assert_eq!(receipts, expected);
}

#[tokio::test]
async fn another_receipt_settles_nothing() {
    let t = Scene::new(GroupOptions::new()).await;
    t.append().await;
    t.append().await;
    let leases = t.fetch("a", 2).await;
    for other in [None, leases[1].receipt.clone(), Some(Receipt::new("0-0"))] {
        let lease = Lease {
            receipt: other,
            ..leases[0].clone()
        };
        assert_eq!(t.backend.ack(&lease).await, Err(Error::ReceiptMismatch));
    }
    assert_eq!(t.pending().len(), 2);
    assert_eq!(t.backend.ack(&leases[0]).await, Ok(()));
}

#[tokio::test]
async fn the_pending_list_is_empty_once_everything_is_settled() {
    let t = Scene::new(GroupOptions::new()).await;
    for _ in 0..4 {
        t.append().await;
    }
    let leases = t.fetch("a", 4).await;
    assert_eq!(t.pending().len(), 4);
    t.backend.ack(&leases[1]).await.expect("is current");
    t.backend.ack(&leases[3]).await.expect("is current");
    assert_eq!(t.frontier().await, 0, "the first is pending");
    let reason = Reason::new("broken");
    t.backend
        .reject(&leases[0], &reason)
        .await
        .expect("is current");
    assert_eq!(t.frontier().await, 2, "the third is pending");

    let again = t.backend.retry(&leases[2], &RetryOptions::new()).await;
    again.expect("is current");
    assert_eq!(t.pending().len(), 1, "a retried entry stays pending");
    let retried = t.fetch("b", 9).await;
    t.backend.ack(&retried[0]).await.expect("is current");
    assert_eq!(t.pending(), []);
    assert_eq!(t.frontier().await, 4);
}

#[tokio::test]
async fn reclaiming_keeps_the_entry_and_raises_its_delivery_count() {
    let t = Scene::new(GroupOptions::new()).await;
    t.append().await;
    let first = t.fetch("a", 1).await.remove(0);
    t.clock.advance(Duration::from_secs(30));
    let second = t.fetch("b", 1).await.remove(0);
    assert_eq!(second.receipt, first.receipt);
    assert_ne!(second.lease_id, first.lease_id);
    assert_eq!(second.attempt, 2);
    assert_eq!(t.pending(), [(receipt(&second), "b".to_owned(), 2)]);
    assert_eq!(t.backend.ack(&first).await, Err(Error::StaleLease));
}

#[tokio::test]
async fn a_renewed_entry_is_not_idle() {
    let t = Scene::new(GroupOptions::new()).await;
    t.append().await;
    let lease = t.fetch("a", 1).await.remove(0);
    t.clock.advance(Duration::from_secs(29));
    let duration = Duration::from_secs(2).try_into().expect("allowed");
    t.backend.renew(&lease, duration).await.expect("is current");
    t.clock.advance(Duration::from_micros(1_999_999));
    assert_eq!(t.fetch("b", 1).await, []);
    t.clock.advance(Duration::from_micros(1));
    assert_eq!(t.fetch("b", 1).await.len(), 1);
}

#[tokio::test]
async fn what_is_due_goes_before_what_was_never_read() {
    let t = Scene::new(GroupOptions::new()).await;
    for _ in 0..5 {
        t.append().await;
    }
    let leases = t.fetch("a", 3).await;
    let later = RetryOptions::new().with_delay(Duration::from_secs(60).try_into().expect("ok"));
    t.backend.retry(&leases[0], &later).await.expect("current");
    t.backend
        .retry(&leases[2], &RetryOptions::new())
        .await
        .expect("current");
    assert_eq!(sequences(&t.fetch("b", 2).await), [3, 4]);
    t.clock.advance(Duration::from_secs(30));
    assert_eq!(sequences(&t.fetch("b", 9).await), [2, 3, 4, 5]);
    t.clock.advance(Duration::from_secs(30));
    assert_eq!(sequences(&t.fetch("b", 1).await), [1]);
}

#[tokio::test]
async fn an_entry_that_kills_its_consumers_leaves_the_pending_list() {
    let once = MaxAttempts::new(1).expect("allowed");
    let t = Scene::new(GroupOptions::new().with_max_attempts(once)).await;
    let event = t.append().await;
    t.append().await;
    let lost = t.fetch("a", 1).await.remove(0);
    t.clock.advance(Duration::from_secs(30));
    assert_eq!(sequences(&t.fetch("a", 1).await), [2]);
    assert_eq!(t.backend.ack(&lost).await, Err(Error::StaleLease));
    let first = DeadLetterOptions::new();
    let dead = t.backend.dead_letters(&t.stream, &t.group, &first).await;
    let dead = dead.expect("lists");
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].event, event);
    assert_eq!(dead[0].reason, Reason::lease_expired());
    assert_eq!(t.frontier().await, 1);
}

#[tokio::test]
async fn replay_sets_the_native_group_back_also_below_its_start() {
    let t = Scene::new(GroupOptions::new()).await;
    for _ in 0..4 {
        t.append().await;
    }
    let late = GroupName::new("late").expect("allowed");
    let t = Scene { group: late, ..t };
    let options = GroupOptions::new().with_start(Start::AfterSequence(sequence(3)));
    let made = t.backend.create_group(&t.stream, &t.group, &options).await;
    made.expect("is new");
    let old = t.fetch("a", 9).await;
    assert_eq!(sequences(&old), [4]);

    let replay = Replay::after(sequence(1));
    t.backend
        .replay(&t.stream, &t.group, &replay)
        .await
        .expect("replays");
    assert_eq!(t.backend.ack(&old[0]).await, Err(Error::StaleLease));
    assert_eq!(t.frontier().await, 1);
    assert_eq!(t.pending(), []);
    assert_eq!(sequences(&t.fetch("a", 9).await), [2, 3, 4]);

    let forward = Replay::after(sequence(4));
    t.backend
        .replay(&t.stream, &t.group, &forward)
        .await
        .expect("is Ok");
    assert_eq!(t.pending().len(), 3);
}

#[tokio::test]
async fn chosen_events_are_forced_back_onto_the_pending_list() {
    let t = Scene::new(GroupOptions::new()).await;
    let mut events = Vec::new();
    for _ in 0..4 {
        events.push(t.append().await.id);
    }
    let leases = t.fetch("a", 3).await;
    t.backend.ack(&leases[0]).await.expect("is current");
    let reason = Reason::new("broken");
    t.backend
        .reject(&leases[1], &reason)
        .await
        .expect("is current");

    let all = Replay::Events(events);
    t.backend
        .replay(&t.stream, &t.group, &all)
        .await
        .expect("replays");
    assert_eq!(t.backend.ack(&leases[2]).await, Err(Error::StaleLease));
    assert_eq!(t.frontier().await, 0);
    assert!(
        t.pending()
            .iter()
            .all(|(_, _, deliveries)| *deliveries == 0)
    );
    assert_eq!(t.pending().len(), 3, "the fourth was never delivered");
    let info = t
        .backend
        .group_info(&t.stream, &t.group)
        .await
        .expect("has");
    assert_eq!((info.leased, info.dead_letters), (0, 0));
    let again = t.fetch("b", 9).await;
    assert_eq!(sequences(&again), [1, 2, 3, 4]);
    assert!(again.iter().all(|lease| lease.attempt == 1));
}

#[tokio::test]
async fn no_partition_starves_whoever_asks() {
    let t = Scene::new(GroupOptions::new()).await;
    let stream = StreamName::new("wide").expect("allowed");
    let count = 4.try_into().expect("allowed");
    let options = StreamOptions::new().with_partition_count(count);
    t.backend
        .create_stream(&stream, &options)
        .await
        .expect("is new");
    let options = GroupOptions::new();
    let made = t.backend.create_group(&stream, &t.group, &options).await;
    made.expect("is new");
    for partition in count.partitions() {
        for _ in 0..10 {
            let event = NewEvent::new("t", json!({})).expect("allowed");
            let event = event.with_partition(partition);
            t.backend.append(&stream, event).await.expect("appends");
        }
    }
    let fetch = |partitions: [u32; 2]| {
        let consumer = ConsumerId::new("a").expect("allowed");
        let partitions = partitions.map(Partition::new);
        let options = FetchOptions::new(consumer);
        options.with_partitions(rheo_core::Partitions::only(partitions))
    };
    let mut served = Vec::new();
    for selected in [[0, 1], [2, 3], [0, 1], [2, 3]] {
        let leases = t.backend.fetch(&stream, &t.group, &fetch(selected)).await;
        served.extend(
            leases
                .expect("fetches")
                .iter()
                .map(|l| l.event.partition.number()),
        );
    }
    served.sort_unstable();
    assert_eq!(served, [0, 1, 2, 3]);
}

fn sequence(number: u64) -> Sequence {
    Sequence::new(number).expect("in range")
}
