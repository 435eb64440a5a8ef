//! What sessions do to each other, statement by statement.

use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, FetchOptions, GroupName, GroupOptions, Lease, NewEvent, StreamName,
    StreamOptions,
};
use rheo_postgres::PostgresBackend;
use serde_json::json;
use sqlx::Executor;

use crate::bed::Bed;

/// A fetch removes the claim that says how far its group has come, and never waits for a row.
#[tokio::test(flavor = "multi_thread")]
async fn a_stale_settle_under_way_delays_no_fetch() {
    let bed = Bed::new().await;
    let backend = bed.backend(|config| config.with_operation_timeout(Duration::from_secs(2)));
    begin(&backend).await;
    append(&backend).await;
    for acked in backend.ack_batch(&fetch(&backend).await).await {
        acked.expect("acked");
    }

    let mut settling = bed.connection().await;
    for function in [
        "ack(%)",
        "retry(%, 0, '', 0)",
        "reject(%, '', 0)",
        "renew(%, 0)",
    ] {
        append(&backend).await;
        let call = function.replace(
            '%',
            "'{orders}', '{billing}', '{0}', ARRAY[first], ARRAY[token], '{\"{[1,2]}\"}'",
        );
        let sql = format!("BEGIN; SELECT {{schema}}.{call} FROM {{schema}}.claims");
        let settled = settling.execute(sqlx::raw_sql(bed.sql(&sql))).await;
        settled.expect("settled nothing");
        let leases = fetch(&backend).await;
        assert_eq!(leases.len(), 2, "{function}");
        settling.execute("COMMIT").await.expect("committed");
        for acked in backend.ack_batch(&leases).await {
            acked.expect("acked");
        }
    }
    bed.drop().await;
}

/// CST-1: what is acked while a lower lease is held leaves nothing behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_held_keeps_no_other_claims() {
    let bed = Bed::new().await;
    let backend = bed.backend(|config| config);
    begin(&backend).await;
    append(&backend).await;
    let held = fetch(&backend).await;
    let mut connection = bed.connection().await;
    for _ in 0..20 {
        append(&backend).await;
        for acked in backend.ack_batch(&fetch(&backend).await).await {
            acked.expect("acked");
        }
        let count = bed.sql("SELECT count(*) FROM {schema}.claims");
        let claims: i64 = sqlx::query_scalar(count)
            .fetch_one(&mut connection)
            .await
            .expect("counted");
        assert_eq!(claims, 2, "the one that is held, and the last");
    }
    for acked in backend.ack_batch(&held).await {
        acked.expect("acked");
    }
    let lag = backend.lag(&stream(), &group()).await.expect("known");
    assert_eq!(lag.total(), 0);
    bed.drop().await;
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

async fn append(backend: &PostgresBackend) {
    let event = NewEvent::new("counted", json!({})).expect("allowed");
    let appended = backend.append_batch(&stream(), vec![event; 2]).await;
    appended.expect("appended");
}

async fn fetch(backend: &PostgresBackend) -> Vec<Lease> {
    let consumer = ConsumerId::new("a").expect("allowed");
    let options = FetchOptions::new(consumer).with_limit(2);
    let fetched = backend.fetch(&stream(), &group(), &options).await;
    fetched.expect("fetched")
}

fn stream() -> StreamName {
    StreamName::new("orders").expect("allowed")
}

fn group() -> GroupName {
    GroupName::new("billing").expect("allowed")
}
