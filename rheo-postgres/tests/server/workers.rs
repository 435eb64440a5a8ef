//! Eight workers in two processes, two handles each, share one group while events are appended.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, EventKey, FetchOptions, GroupName, GroupOptions, LeaseDuration, NewEvent,
    Partition, PartitionCount, StreamName, StreamOptions, SystemClock,
};
use rheo_postgres::{Config, PostgresBackend};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::bed::{self, Bed};

const EVENTS: u64 = 100_000;
const PARTITIONS: u32 = 8;
const HANDLES: usize = 2;
const WORKERS_PER_HANDLE: usize = 2;
/// Set for the second process: the schema that it works on.
const SCHEMA_OF_PARENT: &str = "RHEO_TEST_SCHEMA_OF_PARENT";

/// What one worker got: partition and sequences, fetch by fetch.
type Deliveries = Vec<Vec<(u32, u64)>>;

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_a_group() {
    if env::var(SCHEMA_OF_PARENT).is_ok() {
        return;
    }
    let bed = Bed::new().await;
    let backend = bed.backend(|config| config);
    let options = StreamOptions::new()
        .with_partition_count(PartitionCount::new(PARTITIONS).expect("allowed"));
    backend
        .create_stream(&stream(), &options)
        .await
        .expect("made");
    backend
        .create_group(&stream(), &group(), &GroupOptions::new())
        .await
        .expect("made");

    let child = Command::new(env::current_exe().expect("this test"))
        .args(["--exact", "workers::the_second_process", "--nocapture"])
        .env(SCHEMA_OF_PARENT, &bed.schema)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("starts");
    let appending = append_all(Arc::clone(&backend));
    let here = work(&bed.url, &bed.schema);
    let there = output_of(child);
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
    assert_eq!(seen.values().map(|s| s.len() as u64).sum::<u64>(), EVENTS);
    assert!(here.iter().all(|w| !w.is_empty()) && there.iter().all(|w| !w.is_empty()));
    let lag = backend.lag(&stream(), &group()).await.expect("there");
    assert_eq!(lag.total(), 0);

    // What is done costs nothing: a claim per partition says how far the group has claimed. Those
    // that were acked while another was claimed go with the next fetch.
    for partition in 0..PARTITIONS {
        let event = NewEvent::new("last", json!({})).expect("allowed");
        let event = event.with_partition(Partition::new(partition));
        backend.append(&stream(), event).await.expect("appended");
    }
    let last = FetchOptions::new(ConsumerId::new("last").expect("allowed")).with_limit(PARTITIONS);
    let leases = backend.fetch(&stream(), &group(), &last).await;
    let leases = leases.expect("fetched");
    assert_eq!(leases.len(), PARTITIONS as usize);
    for acked in backend.ack_batch(&leases).await {
        acked.expect("acked");
    }
    let mut connection = bed.connection().await;
    let sql = bed.sql(
        "SELECT (SELECT count(*) FROM {schema}.claims), \
         (SELECT count(*) FROM {schema}.claims WHERE NOT isempty(open)), \
         (SELECT count(*) FROM {schema}.deliveries)",
    );
    let counts: (i64, i64, i64) = sqlx::query_as(sql)
        .fetch_one(&mut connection)
        .await
        .expect("counted");
    assert_eq!(counts, (PARTITIONS.into(), 0, 0));
    bed.drop().await;
}

/// Not a test by itself: the other half of the workers, in a process of their own.
#[tokio::test(flavor = "multi_thread")]
async fn the_second_process() {
    let Ok(schema) = env::var(SCHEMA_OF_PARENT) else {
        return;
    };
    let deliveries = work(&bed::url(), &schema).await;
    println!("{OUTPUT}{}", json!(deliveries));
}

const OUTPUT: &str = "deliveries: ";

async fn output_of(mut child: tokio::process::Child) -> Vec<Deliveries> {
    let mut output = String::new();
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_to_string(&mut output).await.expect("read");
    assert!(child.wait().await.expect("ended").success(), "{output}");
    let line = output.lines().find_map(|line| line.split_once(OUTPUT));
    let (_, deliveries) = line.expect("it says what it got");
    serde_json::from_str(deliveries).expect("as it was written")
}

/// Appends in batches of different sizes, from four tasks at once.
async fn append_all(backend: Arc<PostgresBackend>) {
    const TASKS: u64 = 4;
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let backend = Arc::clone(&backend);
            tokio::spawn(async move {
                let mut left = EVENTS / TASKS;
                let mut size = 1;
                while left > 0 {
                    let batch = (0..size.min(left)).map(|i| {
                        let key = EventKey::new(format!("{task}-{}", left - i)).expect("allowed");
                        let event = NewEvent::new("counted", json!({"left": left - i}));
                        event.expect("allowed").with_key(key)
                    });
                    let batch: Vec<_> = batch.collect();
                    left -= batch.len() as u64;
                    size = size % 97 + 13;
                    backend
                        .append_batch(&stream(), batch)
                        .await
                        .expect("appended");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("ran to its end");
    }
}

/// Fetches and acks on two handles with two workers each, until nothing has come for a while and all
/// that was appended is done.
async fn work(url: &str, schema: &str) -> Vec<Deliveries> {
    let acked = Arc::new(AtomicU64::new(0));
    let mut workers = Vec::new();
    for handle in 0..HANDLES {
        let config = Config::new(url).with_schema(schema).with_max_connections(3);
        let backend = PostgresBackend::connect(config, Arc::new(SystemClock));
        let backend = Arc::new(backend.expect("the settings are right"));
        for worker in 0..WORKERS_PER_HANDLE {
            let name = format!("{}-{handle}-{worker}", std::process::id());
            let consumer = ConsumerId::new(name).expect("allowed");
            let limit = 20 + 60 * u32::try_from(worker).expect("small");
            workers.push(tokio::spawn(work_alone(
                Arc::clone(&backend),
                consumer,
                limit,
                Arc::clone(&acked),
            )));
        }
    }
    let mut deliveries = Vec::new();
    for worker in workers {
        deliveries.push(worker.await.expect("ran to its end"));
    }
    deliveries
}

async fn work_alone(
    backend: Arc<PostgresBackend>,
    consumer: ConsumerId,
    limit: u32,
    acked: Arc<AtomicU64>,
) -> Deliveries {
    let hour = LeaseDuration::new(Duration::from_secs(3_600)).expect("allowed");
    let options = FetchOptions::new(consumer)
        .with_limit(limit)
        .with_lease_duration(hour);
    let mut deliveries = Vec::new();
    loop {
        let leases = backend.fetch(&stream(), &group(), &options).await;
        let leases = leases.expect("fetched");
        if leases.is_empty() {
            let lag = backend.lag(&stream(), &group()).await.expect("there");
            let appended: u64 = lag.partitions.iter().map(|p| p.high_watermark.get()).sum();
            if appended == EVENTS && lag.total() == 0 {
                return deliveries;
            }
            let patience = Duration::from_millis(200);
            let waited = backend.wait_for_work(&stream(), &group(), patience).await;
            waited.expect("waited");
            continue;
        }
        for result in backend.ack_batch(&leases).await {
            result.expect("the lease is current");
            acked.fetch_add(1, Ordering::Relaxed);
        }
        let places = leases.iter().map(|lease| {
            let event = &lease.event;
            (event.partition.number(), event.sequence.get())
        });
        deliveries.push(places.collect());
    }
}

fn stream() -> StreamName {
    StreamName::new("orders").expect("allowed")
}

fn group() -> GroupName {
    GroupName::new("billing").expect("allowed")
}
