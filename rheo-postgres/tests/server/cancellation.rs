//! Every operation may be dropped at every await point: connections, locks and rules stay whole.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rheo_core::{
    Backend, ConsumerId, FetchOptions, GroupName, GroupOptions, Lease, LeaseDuration, NewEvent,
    Partition, Reason, Replay, ResetOptions, RetryOptions, Sequence, StreamName, StreamOptions,
};
use rheo_postgres::PostgresBackend;
use serde_json::json;

use crate::bed::Bed;

/// Each is begun, and dropped when it has been polled so many times.
const MOST_POLLS: usize = 40;

/// A pool of one connection shows at once whether a dropped future keeps it.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_future_leaves_nothing_behind() {
    let bed = Bed::new().await;
    let backend = bed.backend(|config| config.with_max_connections(1).with_coalescing(false));
    begin(&backend).await;
    for operation in OPERATIONS {
        for polls in 0..MOST_POLLS {
            let lease = fresh_lease(&backend).await;
            let whole = operation(Arc::clone(&backend), lease);
            let was_done = poll_so_often(whole, polls).await;

            let patience = Duration::from_secs(10);
            let alive = tokio::time::timeout(patience, backend.ping()).await;
            alive.expect("in time").expect("the connection is there");
            if was_done {
                break;
            }
        }
    }
    let mut connection = bed.connection().await;
    let sql = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
        WHERE l.locktype = 'advisory' AND a.datname = current_database() \
        AND l.classid::bigint = (hashoid($1::text::regclass)::bigint & 4294967295)";
    for table in ["events", "claims"] {
        let locks: i64 = sqlx::query_scalar(sql)
            .bind(format!("{}.{table}", bed.schema))
            .fetch_one(&mut connection)
            .await
            .expect("counted");
        assert_eq!(locks, 0, "{table}");
    }
    let sql = bed.sql(
        "SELECT count(*) FROM {schema}.events e FULL JOIN \
         (SELECT generate_series(1, (SELECT max(sequence) FROM {schema}.events)) AS s) n \
         ON e.sequence = n.s WHERE e.sequence IS NULL OR n.s IS NULL",
    );
    let gaps: i64 = sqlx::query_scalar(sql)
        .fetch_one(&mut connection)
        .await
        .expect("counted");
    assert_eq!(gaps, 0);
    backend.close().await.expect("closed");
    bed.drop().await;
}

/// Also where no runtime is entered any more, and even then without a panic.
#[test]
fn a_future_may_be_dropped_outside_its_runtime() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (bed, backend) = runtime.block_on(async {
        let bed = Bed::new().await;
        let backend = bed.backend(|config| config.with_max_connections(1).with_coalescing(false));
        begin(&backend).await;
        (bed, backend)
    });
    for polls in 1..MOST_POLLS {
        let mut whole = append(Arc::clone(&backend), None);
        let was_done = runtime.block_on(async {
            for _ in 0..polls {
                if futures_util::poll!(whole.as_mut()).is_ready() {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            false
        });
        drop(whole);
        let alive = runtime.block_on(backend.ping());
        alive.expect("the connection is there");
        if was_done {
            break;
        }
    }
    runtime.block_on(bed.drop());
}

/// A caller that goes away takes nobody with it whose append or ack went out together with its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_caller_harms_no_other() {
    let bed = Bed::new().await;
    let backend = bed.backend(|config| config.with_max_connections(2));
    begin(&backend).await;
    let mut kept = Vec::new();
    for round in 0..200_u32 {
        let append = append(Arc::clone(&backend), None);
        match round % 2 {
            0 => kept.push(tokio::spawn(append)),
            _ => {
                poll_so_often(append, 1 + round as usize % 5).await;
            }
        }
    }
    for append in kept {
        append.await.expect("ran to its end");
    }

    let options = FetchOptions::new(consumer()).with_limit(1_000);
    let leases = backend.fetch(&stream(), &group(), &options).await;
    let leases = leases.expect("fetched");
    assert!(leases.len() >= 100);
    let mut kept = Vec::new();
    for (round, lease) in leases.iter().enumerate() {
        let ack = {
            let (backend, lease) = (Arc::clone(&backend), lease.clone());
            async move { backend.ack(&lease).await }
        };
        match round % 2 {
            0 => kept.push(tokio::spawn(ack)),
            _ => {
                poll_so_often(Box::pin(async { drop(ack.await) }), 1 + round % 5).await;
            }
        }
    }
    for ack in kept {
        ack.await.expect("ran to its end").expect("it was current");
    }
    bed.drop().await;
}

type Whole = BoxFuture<'static, ()>;

/// All that write, and the three kinds of reads.
const OPERATIONS: &[fn(Arc<PostgresBackend>, Lease) -> Whole] = &[
    |backend, lease| append(backend, Some(lease)),
    |backend, _| {
        Box::pin(async move {
            let batch = vec![new_event(); 10];
            drop(backend.append_batch(&stream(), batch).await);
        })
    },
    |backend, _| {
        Box::pin(async move {
            let options = FetchOptions::new(consumer()).with_limit(3);
            drop(backend.fetch(&stream(), &group(), &options).await);
        })
    },
    |backend, lease| Box::pin(async move { drop(backend.ack(&lease).await) }),
    |backend, lease| Box::pin(async move { drop(backend.ack_batch(&[lease]).await) }),
    |backend, lease| {
        Box::pin(async move { drop(backend.retry(&lease, &RetryOptions::new()).await) })
    },
    |backend, lease| {
        Box::pin(async move { drop(backend.reject(&lease, &Reason::new("no")).await) })
    },
    |backend, lease| {
        Box::pin(async move { drop(backend.renew(&lease, LeaseDuration::default()).await) })
    },
    |backend, _| {
        Box::pin(async move {
            let replay = Replay::after(Sequence::ZERO);
            drop(backend.replay(&stream(), &group(), &replay).await);
        })
    },
    |backend, lease| {
        Box::pin(async move {
            let replay = Replay::Events(vec![lease.event.id]);
            drop(backend.replay(&stream(), &group(), &replay).await);
        })
    },
    |backend, _| {
        Box::pin(async move {
            let options = ResetOptions::new().with_partitions(Partition::ZERO);
            drop(backend.reset_group(&stream(), &group(), &options).await);
        })
    },
    |backend, _| Box::pin(async move { drop(backend.ensure_indexes().await) }),
    |backend, _| Box::pin(async move { drop(backend.lag(&stream(), &group()).await) }),
    |backend, _| {
        Box::pin(async move { drop(backend.query(&stream(), &rheo_core::Query::new()).await) })
    },
    |backend, _| {
        Box::pin(async move {
            let patience = Duration::from_millis(50);
            drop(backend.wait_for_work(&stream(), &group(), patience).await);
        })
    },
];

/// Polls a future so often, each time when it has been woken, and drops it; tells whether it was
/// ready before.
async fn poll_so_often(whole: Whole, polls: usize) -> bool {
    let mut whole = pin!(whole);
    for _ in 0..polls {
        let woken = Arc::new(Woken(tokio::sync::Notify::new()));
        let waker = Waker::from(Arc::clone(&woken));
        if let Poll::Ready(()) = whole.as_mut().poll(&mut Context::from_waker(&waker)) {
            return true;
        }
        let patience = Duration::from_secs(10);
        let notified = tokio::time::timeout(patience, woken.0.notified()).await;
        notified.expect("something wakes it");
    }
    false
}

struct Woken(tokio::sync::Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

async fn begin(backend: &PostgresBackend) {
    let made = backend
        .create_stream(&stream(), &StreamOptions::new())
        .await;
    made.expect("made");
    let made = backend
        .create_group(&stream(), &group(), &GroupOptions::new())
        .await;
    made.expect("made");
}

/// A lease of an event of its own.
async fn fresh_lease(backend: &PostgresBackend) -> Lease {
    let options = FetchOptions::new(consumer()).with_limit(1);
    loop {
        let appended = backend.append(&stream(), new_event()).await;
        appended.expect("appended");
        let leases = backend.fetch(&stream(), &group(), &options).await;
        if let Some(lease) = leases.expect("fetched").pop() {
            return lease;
        }
    }
}

fn append(backend: Arc<PostgresBackend>, _: Option<Lease>) -> Whole {
    Box::pin(async move { drop(backend.append(&stream(), new_event()).await) })
}

fn new_event() -> NewEvent {
    NewEvent::new("counted", json!({"n": 1})).expect("allowed")
}

fn stream() -> StreamName {
    StreamName::new("orders").expect("allowed")
}

fn group() -> GroupName {
    GroupName::new("billing").expect("allowed")
}

fn consumer() -> ConsumerId {
    ConsumerId::new("a").expect("allowed")
}
