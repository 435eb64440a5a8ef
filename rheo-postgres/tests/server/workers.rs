//! Eight workers in two processes share one group while events are appended.

use std::env;
use std::sync::Arc;

use rheo_core::{Backend, SystemClock};
use rheo_postgres::{Config, PostgresBackend};
use tokio::process::Command;

use crate::bed::{self, Bed};

const EVENTS: u64 = 100_000;
/// Set for the second process: the schema that it works on.
const SCHEMA_OF_PARENT: &str = "RHEO_TEST_SCHEMA_OF_PARENT";

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_a_group() {
    if env::var(SCHEMA_OF_PARENT).is_ok() {
        return;
    }
    let bed = Bed::new().await;
    let mut child = Command::new(env::current_exe().expect("this test"));
    child
        .args(["--exact", "workers::the_second_process", "--nocapture"])
        .env(SCHEMA_OF_PARENT, &bed.schema);
    let backend = bed.backend(|config| config);
    let open = || open(bed.schema.clone());
    rheo_workers::share(Arc::clone(&backend) as _, EVENTS, open, child).await;

    // What is done costs nothing: a claim per partition says how far the group has claimed. Those
    // that were acked while another was claimed go with the next fetch.
    rheo_workers::finish(&*backend).await;
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
    assert_eq!(counts, (rheo_workers::PARTITIONS.into(), 0, 0));
    bed.drop().await;
}

/// Not a test by itself: the other half of the workers, in a process of their own.
#[tokio::test(flavor = "multi_thread")]
async fn the_second_process() {
    if let Ok(schema) = env::var(SCHEMA_OF_PARENT) {
        rheo_workers::work_as_second_process(EVENTS, || open(schema.clone())).await;
    }
}

async fn open(schema: String) -> Arc<dyn Backend> {
    let config = Config::new(bed::url())
        .with_schema(schema)
        .with_max_connections(3);
    let backend = PostgresBackend::connect(config, Arc::new(SystemClock));
    Arc::new(backend.expect("the settings are right"))
}
