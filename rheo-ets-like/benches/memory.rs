//! What append and fetch+ack cost, with a short and a long history, on one task and on four.
//!
//! `fetch_and_ack` works on a group that fetched and acked the whole history once; each round
//! replays the last events and goes through them again. Its tasks share one handle, one stream and
//! one group, which is the worst case for the lock.

use std::hint::black_box;
use std::sync::{Arc, OnceLock};

use divan::counter::ItemsCount;
use rheo_core::{
    Backend, ConsumerId, FetchOptions, GroupName, GroupOptions, JsonObject, Lease, NewEvent,
    Replay, Sequence, StreamName, StreamOptions, SystemClock,
};
use rheo_ets_like::MemoryBackend;
use serde_json::json;
use tokio::runtime::Runtime;

const SHORT: usize = 10_000;
const LONG: usize = 5_000_000;
const CASES: [(usize, usize); 4] = [(SHORT, 1), (SHORT, 4), (LONG, 1), (LONG, 4)];

/// Events per round, over all tasks.
const ROUND: usize = 10_000;
const BATCH: usize = 100;

fn main() {
    divan::main();
}

#[divan::bench(args = CASES, sample_count = 50, sample_size = 1)]
fn append(bencher: divan::Bencher, (history, tasks): (usize, usize)) {
    let bed = Bed::with_history(history);
    bencher.counter(ItemsCount::new(ROUND)).bench(|| {
        bed.on_tasks(tasks, |bed| async move {
            for _ in 0..ROUND / tasks {
                let appended = bed.backend.append(&bed.stream, bed.event.clone()).await;
                black_box(appended.expect("appended"));
            }
        });
    });
}

#[divan::bench(args = CASES, sample_count = 50, sample_size = 1)]
fn append_batch_of_100(bencher: divan::Bencher, (history, tasks): (usize, usize)) {
    let bed = Bed::with_history(history);
    bencher.counter(ItemsCount::new(ROUND)).bench(|| {
        bed.on_tasks(tasks, |bed| async move {
            for _ in 0..ROUND / BATCH / tasks {
                let batch = vec![bed.event.clone(); BATCH];
                let appended = bed.backend.append_batch(&bed.stream, batch).await;
                black_box(appended.expect("appended"));
            }
        });
    });
}

#[divan::bench(args = CASES, sample_count = 100, sample_size = 1)]
fn fetch_100_and_ack_each(bencher: divan::Bencher, (history, tasks): (usize, usize)) {
    let bed = Bed::with_history(history);
    bencher
        .counter(ItemsCount::new(ROUND))
        .with_inputs(|| bed.replay_round())
        .bench_values(|()| {
            bed.on_tasks(tasks, |bed| async move {
                while let Some(leases) = bed.fetch().await {
                    for lease in &leases {
                        bed.backend.ack(lease).await.expect("acked");
                    }
                }
            });
        });
}

#[divan::bench(args = CASES, sample_count = 100, sample_size = 1)]
fn fetch_100_and_ack_batch(bencher: divan::Bencher, (history, tasks): (usize, usize)) {
    let bed = Bed::with_history(history);
    bencher
        .counter(ItemsCount::new(ROUND))
        .with_inputs(|| bed.replay_round())
        .bench_values(|()| {
            bed.on_tasks(tasks, |bed| async move {
                while let Some(leases) = bed.fetch().await {
                    for acked in bed.backend.ack_batch(&leases).await {
                        acked.expect("acked");
                    }
                }
            });
        });
}

/// A stream with a history that its group has fetched and acked.
struct Bed {
    runtime: Runtime,
    backend: MemoryBackend,
    stream: StreamName,
    group: GroupName,
    event: NewEvent,
    fetch: FetchOptions,
}

impl Bed {
    /// The bed with at least this history; a long one is made once.
    fn with_history(history: usize) -> Arc<Self> {
        static LONG_BED: OnceLock<Arc<Bed>> = OnceLock::new();
        match history {
            LONG => LONG_BED.get_or_init(|| Self::new(LONG)).clone(),
            _ => Self::new(history),
        }
    }

    fn new(history: usize) -> Arc<Self> {
        let payload = json!({"order": 7, "total": 12.5, "customer": "ada"});
        let consumer = ConsumerId::new("bench").expect("valid");
        let bed = Arc::new(Self {
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(4)
                .build()
                .expect("starts"),
            backend: MemoryBackend::new(Arc::new(SystemClock)),
            stream: StreamName::new("orders").expect("valid"),
            group: GroupName::new("billing").expect("valid"),
            event: NewEvent::new("order.placed", payload)
                .expect("valid")
                .with_metadata(JsonObject::default()),
            fetch: FetchOptions::new(consumer).with_limit(BATCH as u32),
        });
        bed.on_tasks(1, |bed| async move {
            let (backend, stream) = (&bed.backend, &bed.stream);
            let made = backend.create_stream(stream, &StreamOptions::new()).await;
            made.expect("created");
            let made = backend
                .create_group(stream, &bed.group, &GroupOptions::new())
                .await;
            made.expect("created");
            for _ in 0..history / BATCH {
                let batch = vec![bed.event.clone(); BATCH];
                backend.append_batch(stream, batch).await.expect("appended");
            }
            while let Some(leases) = bed.fetch().await {
                backend.ack_batch(&leases).await;
            }
        });
        bed
    }

    async fn fetch(&self) -> Option<Vec<Lease>> {
        let leases = self
            .backend
            .fetch(&self.stream, &self.group, &self.fetch)
            .await
            .expect("fetched");
        (!leases.is_empty()).then_some(leases)
    }

    /// Makes the last events claimable again; what was appended meanwhile counts as history.
    fn replay_round(&self) {
        self.runtime.block_on(async {
            while let Some(leases) = self.fetch().await {
                self.backend.ack_batch(&leases).await;
            }
            let lag = self.backend.lag(&self.stream, &self.group).await;
            let last = lag.expect("there").partitions[0].high_watermark.get();
            let after = Sequence::new(last - ROUND as u64).expect("in range");
            self.backend
                .replay(&self.stream, &self.group, &Replay::after(after))
                .await
                .expect("replayed");
        });
    }

    /// Runs the same work on so many tasks at once, to the end.
    fn on_tasks<F>(self: &Arc<Self>, tasks: usize, work: impl Fn(Arc<Self>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let running: Vec<_> = (0..tasks)
            .map(|_| self.runtime.spawn(work(self.clone())))
            .collect();
        self.runtime.block_on(async {
            for task in running {
                task.await.expect("ran to its end");
            }
        });
    }
}
