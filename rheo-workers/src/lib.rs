//! Eight workers in two processes, two handles each, share one group while events are appended.
//!
//! A backend's test has two halves: [`share`] in the test itself, and [`work_as_second_process`] in
//! one that is run by the child process which the first one starts. [`kill_and_wait`] is for the
//! harnesses of backends whose server can be killed.

mod servers;

pub use servers::kill_and_wait;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, EventKey, FetchOptions, GroupName, GroupOptions, LeaseDuration, NewEvent,
    Partition, PartitionCount, StreamName, StreamOptions,
};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

/// How many partitions the stream has.
pub const PARTITIONS: u32 = 8;
const HANDLES: usize = 2;
const WORKERS_PER_HANDLE: usize = 2;
const OUTPUT: &str = "deliveries: ";

/// What one worker got: partition and sequences, fetch by fetch.
type Deliveries = Vec<Vec<(u32, u64)>>;

/// Appends `events` events on a fresh store while workers of this process and of `child` share them,
/// and checks that each was delivered once, in order, without a gap.
///
/// `open` opens one more handle; `child` runs [`work_as_second_process`] on the same store.
///
/// # Panics
///
/// When something is wrong: this is a test.
pub async fn share<Open, Opening>(
    backend: Arc<dyn Backend>,
    events: u64,
    open: Open,
    mut child: Command,
) where
    Open: Fn() -> Opening,
    Opening: Future<Output = Arc<dyn Backend>>,
{
    let count = must(PartitionCount::new(PARTITIONS));
    let options = StreamOptions::new().with_partition_count(count);
    must(backend.create_stream(&stream(), &options).await);
    must(
        backend
            .create_group(&stream(), &group(), &GroupOptions::new())
            .await,
    );

    child.stdout(Stdio::piped()).kill_on_drop(true);
    let child = must(child.spawn());
    let appending = append_all(Arc::clone(&backend), events);
    let (here, there) = (work(events, open), output_of(child));
    let ((), here, there) = tokio::join!(appending, here, there);

    let mut seen: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for worker in here.iter().chain(&there) {
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        for (partition, sequence) in worker.iter().flatten() {
            let last = last.insert(*partition, *sequence);
            assert!(
                last < Some(*sequence),
                "{partition}: {sequence} after {last:?}"
            );
            let is_new = seen.entry(*partition).or_default().insert(*sequence);
            assert!(is_new, "{sequence} of {partition} was delivered twice");
        }
    }
    for sequences in seen.values() {
        let last = sequences.last().copied().unwrap_or_default();
        assert!(sequences.iter().copied().eq(1..=last), "a gap below {last}");
    }
    assert_eq!(seen.values().map(|s| s.len() as u64).sum::<u64>(), events);
    assert!(here.iter().all(|w| !w.is_empty()) && there.iter().all(|w| !w.is_empty()));
    let lag = must(backend.lag(&stream(), &group()).await);
    assert_eq!(lag.total(), 0);
}

/// Appends one event to each partition, and settles it: what a backend leaves behind until the next
/// fetch is gone then.
///
/// # Panics
///
/// When something is wrong: this is a test.
pub async fn finish(backend: &dyn Backend) {
    for partition in 0..PARTITIONS {
        let event = must(NewEvent::new("last", json!({})));
        let event = event.with_partition(Partition::new(partition));
        must(backend.append(&stream(), event).await);
    }
    let options = FetchOptions::new(must(ConsumerId::new("last"))).with_limit(PARTITIONS);
    let leases = must(backend.fetch(&stream(), &group(), &options).await);
    assert_eq!(leases.len(), PARTITIONS as usize);
    for acked in backend.ack_batch(&leases).await {
        must(acked);
    }
}

/// The other half of the workers, in a process of their own; `events` as in [`share`].
///
/// # Panics
///
/// When something is wrong: this is a test.
pub async fn work_as_second_process<Open, Opening>(events: u64, open: Open)
where
    Open: Fn() -> Opening,
    Opening: Future<Output = Arc<dyn Backend>>,
{
    let deliveries = work(events, open).await;
    println!("{OUTPUT}{}", json!(deliveries));
}

async fn output_of(mut child: Child) -> Vec<Deliveries> {
    let mut output = String::new();
    let Some(mut stdout) = child.stdout.take() else {
        panic!("the child's output is not piped");
    };
    must(stdout.read_to_string(&mut output).await);
    assert!(must(child.wait().await).success(), "{output}");
    let line = output.lines().find_map(|line| line.split_once(OUTPUT));
    let Some((_, deliveries)) = line else {
        panic!("the child did not say what it got: {output}");
    };
    must(serde_json::from_str(deliveries))
}

/// Appends in batches of different sizes, from four tasks at once.
async fn append_all(backend: Arc<dyn Backend>, events: u64) {
    const TASKS: u64 = 4;
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let backend = Arc::clone(&backend);
            tokio::spawn(async move {
                let mut left = events / TASKS;
                let mut size = 1;
                while left > 0 {
                    let batch = (0..size.min(left)).map(|i| {
                        let key = must(EventKey::new(format!("{task}-{}", left - i)));
                        let event = NewEvent::new("counted", json!({"left": left - i}));
                        must(event).with_key(key)
                    });
                    let batch: Vec<_> = batch.collect();
                    left -= batch.len() as u64;
                    size = size % 97 + 13;
                    must(backend.append_batch(&stream(), batch).await);
                }
            })
        })
        .collect();
    for task in tasks {
        must(task.await);
    }
}

/// Fetches and acks on two handles with two workers each, until all that is to be appended is done.
async fn work<Open, Opening>(events: u64, open: Open) -> Vec<Deliveries>
where
    Open: Fn() -> Opening,
    Opening: Future<Output = Arc<dyn Backend>>,
{
    let mut workers = Vec::new();
    for handle in 0..HANDLES {
        let backend = open().await;
        for worker in 0..WORKERS_PER_HANDLE {
            let name = format!("{}-{handle}-{worker}", std::process::id());
            let consumer = must(ConsumerId::new(name));
            let limit = 20 + 60 * must(u32::try_from(worker));
            let backend = Arc::clone(&backend);
            workers.push(tokio::spawn(work_alone(backend, consumer, limit, events)));
        }
    }
    let mut deliveries = Vec::new();
    for worker in workers {
        deliveries.push(must(worker.await));
    }
    deliveries
}

async fn work_alone(
    backend: Arc<dyn Backend>,
    consumer: ConsumerId,
    limit: u32,
    events: u64,
) -> Deliveries {
    let hour = must(LeaseDuration::new(Duration::from_secs(3_600)));
    let options = FetchOptions::new(consumer)
        .with_limit(limit)
        .with_lease_duration(hour);
    let mut deliveries = Vec::new();
    loop {
        let leases = must(backend.fetch(&stream(), &group(), &options).await);
        if leases.is_empty() {
            let lag = must(backend.lag(&stream(), &group()).await);
            let appended: u64 = lag.partitions.iter().map(|p| p.high_watermark.get()).sum();
            if appended == events && lag.total() == 0 {
                return deliveries;
            }
            let patience = Duration::from_millis(200);
            must(backend.wait_for_work(&stream(), &group(), patience).await);
            continue;
        }
        for result in backend.ack_batch(&leases).await {
            must(result);
        }
        let places = leases.iter().map(|lease| {
            let event = &lease.event;
            (event.partition.number(), event.sequence.get())
        });
        deliveries.push(places.collect());
    }
}

fn stream() -> StreamName {
    must(StreamName::new("orders"))
}

fn group() -> GroupName {
    must(GroupName::new("billing"))
}

/// What must be there in a test.
#[track_caller]
fn must<T, E: std::fmt::Debug>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error:?}"),
    }
}
