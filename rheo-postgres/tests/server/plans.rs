//! Every statement on the hot path uses an index, with and without statistics.
//!
//! The server's `auto_explain` sends the plan of each statement, also of those inside functions, as a
//! notice; the driver hands notices to `log`. It is loaded by a superuser.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use log::{LevelFilter, Log, Metadata, Record};
use rheo_core::{
    Backend, ConsumerId, EventKey, EventType, FetchOptions, GroupName, GroupOptions, LeaseDuration,
    NewEvent, OrderBy, Partition, PartitionCount, Query, ReadOptions, Reason, RetryDelay,
    RetryOptions, StreamName, StreamOptions, SystemClock,
};
use rheo_postgres::{PostgresBackend, Settings};
use serde_json::json;
use sqlx::Executor;
use sqlx::postgres::{PgConnection, PgPoolOptions};

use crate::bed::Bed;

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_of_the_hot_path_uses_an_index() {
    static NOTICES: Notices = Notices(Mutex::new(Vec::new()));
    log::set_logger(&NOTICES).expect("the only test that logs");
    log::set_max_level(LevelFilter::Trace);

    let bed = Bed::new().await;
    let mut connection = bed.connection().await;
    fill(&bed, &mut connection).await;
    for with_statistics in [false, true] {
        if with_statistics {
            let analyzed = connection.execute("ANALYZE").await;
            analyzed.expect("analyzed");
        }
        let backend = explaining(&bed);
        NOTICES.take();
        walk(&backend).await;

        let plans = NOTICES.take();
        let of_tables = |plan: &&String| plan.contains(&bed.schema);
        assert!(
            plans.iter().filter(of_tables).count() > 100,
            "too few plans"
        );
        let uses = |index| plans.iter().any(|plan| plan.contains(index));
        assert!(uses("claims_by_expiry") && uses("deliveries_by_due"));
        for plan in &plans {
            let scanned = TABLES.iter().find(|table| {
                plan.contains(&format!("Seq Scan on {table}"))
                    || plan.contains(&format!("Seq Scan on {}.{table}", bed.schema))
            });
            assert_eq!(scanned, None, "statistics: {with_statistics}\n{plan}");
            let read = plan.lines().filter_map(rows_read).max();
            assert!(
                read <= Some(MOST_ROWS),
                "statistics: {with_statistics}\n{plan}"
            );
        }
        if with_statistics {
            NOTICES.take();
            for (query, index) in queries() {
                let page = backend.query(&stream(), &query).await;
                assert_eq!(page.expect("found").events.len(), 1, "{index}");
                let plans = NOTICES.take();
                let uses = plans.iter().any(|plan| plan.contains(index));
                assert!(uses, "{index} is not used in\n{}", plans.concat());
            }
        }
        backend.close().await.expect("closed");
    }
    bed.drop().await;
}

/// Queries that one event of many matches, each with the index that finds it.
fn queries() -> [(Query, &'static str); 5] {
    let rare = EventKey::new("rare").expect("allowed");
    let query = Query::new().with_limit(1);
    [
        (
            query
                .clone()
                .with_event_type(EventType::new("rare").expect("allowed")),
            "events_by_type",
        ),
        (query.clone().with_key(rare), "events_by_key"),
        (
            query
                .clone()
                .with_payload_field("rare", json!({"is": [true]}))
                .expect("allowed"),
            "events_by_payload",
        ),
        (
            query.clone().with_order_by(OrderBy::Timestamp),
            "events_by_time",
        ),
        (query, "events_pkey"),
    ]
}

/// No statement here is about more, while there is much more of everything.
const MOST_ROWS: usize = 50;

/// How many rows a line of a plan says that a scan gave or left out.
fn rows_read(line: &str) -> Option<usize> {
    let number = |mark: &str| {
        let (_, rest) = line.split_once(mark)?;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    number("Rows Removed by Filter: ").or_else(|| match line.contains("Scan") {
        true => number(" rows=")
            .and(line.rsplit_once("(actual"))
            .and_then(|(_, actual)| {
                let (_, rest) = actual.split_once("rows=")?;
                rest.split(' ').next()?.parse().ok()
            }),
        false => None,
    })
}

const TABLES: [&str; 6] = [
    "streams",
    "groups",
    "events",
    "claims",
    "deliveries",
    "dead_letters",
];

/// Many streams and groups, a log, and much that is open or dead in other groups.
async fn fill(bed: &Bed, connection: &mut PgConnection) {
    let backend = bed.backend(|config| config);
    let options =
        StreamOptions::new().with_partition_count(PartitionCount::new(4).expect("allowed"));
    backend
        .create_stream(&stream(), &options)
        .await
        .expect("made");
    backend
        .create_group(&stream(), &group(), &GroupOptions::new())
        .await
        .expect("made");
    for _ in 0..10 {
        append(&backend, 2_000).await;
    }
    let rare = NewEvent::new("rare", json!({"rare": {"is": [true]}}));
    let key = EventKey::new("rare").expect("allowed");
    let rare = rare.expect("allowed").with_key(key);
    backend.append(&stream(), rare).await.expect("appended");
    // Much is open in the group itself, and waits.
    let hour = LeaseDuration::new(Duration::from_secs(3_600)).expect("allowed");
    let one =
        FetchOptions::new(ConsumerId::new("slow").expect("allowed")).with_lease_duration(hour);
    let later = RetryDelay::new(Duration::from_secs(3_600)).expect("allowed");
    let later = RetryOptions::new().with_delay(later);
    for round in 0..800 {
        let leases = backend.fetch(&stream(), &group(), &one).await;
        let leases = leases.expect("fetched");
        if round % 2 == 0 {
            let retried = backend.retry(&leases[0], &later).await;
            retried.expect("retried");
        }
    }
    let sql = bed.sql(
        "INSERT INTO {schema}.streams (name, partition_count)
         SELECT 'other-' || i, 1 FROM generate_series(1, 5000) i;
         INSERT INTO {schema}.groups (stream_id, name, max_attempts)
         SELECT stream_id, 'billing', 5 FROM {schema}.streams WHERE name LIKE 'other-%';
         INSERT INTO {schema}.claims
         SELECT g.group_id, 0, 100 * i + 1, 100 * i + 100,
             int8multirange(int8range(100 * i + 1, 100 * i + 101)), gen_random_uuid(),
             extract(epoch FROM now()) * 1000000 + i, 1
         FROM {schema}.groups g, generate_series(0, 3) i WHERE g.stream_id > 1;
         INSERT INTO {schema}.deliveries
         SELECT g.group_id, 0, i, 1, gen_random_uuid(), extract(epoch FROM now()) * 1000000 + i
         FROM {schema}.groups g, generate_series(1, 4) i WHERE g.stream_id > 1;
         INSERT INTO {schema}.dead_letters
         SELECT g.group_id, 0, i + 10, 1, 'rejected', 0
         FROM {schema}.groups g, generate_series(1, 4) i WHERE g.stream_id > 1",
    );
    let filled = connection.execute(sqlx::raw_sql(sql)).await;
    filled.expect("filled");
    backend.close().await.expect("closed");
}

/// A handle whose sessions send the plan of every statement.
fn explaining(bed: &Bed) -> PostgresBackend {
    let options = PgPoolOptions::new().after_connect(|connection, _| {
        Box::pin(async move {
            connection
                .execute(
                    "LOAD 'auto_explain';
                     SET auto_explain.log_min_duration = 0;
                     SET auto_explain.log_nested_statements = on;
                     SET auto_explain.log_analyze = on;
                     SET auto_explain.log_level = notice;
                     SET client_min_messages = notice",
                )
                .await?;
            Ok(())
        })
    });
    let settings = Settings::new().with_schema(&bed.schema);
    let backend = PostgresBackend::on_pool(bed.pool(options), settings, Arc::new(SystemClock));
    backend.expect("the settings are right")
}

/// The operations that run again and again, often enough for the server to reuse plans.
async fn walk(backend: &PostgresBackend) {
    let fetch = FetchOptions::new(ConsumerId::new("a").expect("allowed")).with_limit(10);
    for round in 0..12 {
        append(backend, 1).await;
        append(backend, 40).await;
        let leases = backend.fetch(&stream(), &group(), &fetch).await;
        let leases = leases.expect("fetched");
        let [first, second, third, fourth, rest @ ..] = &leases[..] else {
            panic!("{} leases", leases.len());
        };
        backend.ack(first).await.expect("acked");
        let minute = LeaseDuration::default();
        backend.renew(second, minute).await.expect("renewed");
        let again = RetryOptions::new();
        backend.retry(third, &again).await.expect("retried");
        let no = Reason::new("no");
        backend.reject(fourth, &no).await.expect("rejected");
        for renewed in backend.renew_batch(rest, minute).await {
            renewed.expect("renewed");
        }
        for acked in backend.ack_batch(rest).await {
            acked.expect("acked");
        }
        backend.ack(second).await.expect("acked");
        backend.lag(&stream(), &group()).await.expect("there");
        let page = ReadOptions::new()
            .with_partition(Partition::new(round % 4))
            .with_limit(40);
        backend.read(&stream(), &page).await.expect("there");
        let patience = Duration::ZERO;
        let looked = backend.wait_for_work(&stream(), &group(), patience).await;
        looked.expect("there");
    }
}

async fn append(backend: &PostgresBackend, count: usize) {
    let event = |i: usize| {
        let key = EventKey::new(format!("key-{i}")).expect("allowed");
        let event = NewEvent::new("counted", json!({"number": i}));
        event.expect("allowed").with_key(key)
    };
    let batch = (0..count).map(event).collect();
    let appended = backend.append_batch(&stream(), batch).await;
    appended.expect("appended");
}

fn stream() -> StreamName {
    StreamName::new("orders").expect("allowed")
}

fn group() -> GroupName {
    GroupName::new("billing").expect("allowed")
}

/// The notices of the server.
struct Notices(Mutex<Vec<String>>);

impl Notices {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Log for Notices {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::postgres::notice"
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            notices.push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}
