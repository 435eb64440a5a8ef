//! A database of its own with a schema of ours, and connections for those who need no handle.

use std::str::FromStr;
use std::sync::Arc;

use rheo_core::{
    Backend, EventKey, GroupName, GroupOptions, JsonObject, NewEvent, Partition, PartitionCount,
    StreamName, StreamOptions, SystemClock,
};
use rheo_postgres::{Config, PostgresBackend};
use serde_json::json;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};

/// As many as the design's measurements had.
pub(crate) const PARTITIONS: u32 = 16;

/// The schema of ours in the bench's database.
pub(crate) const SCHEMA: &str = "rheo";

/// A database that is thrown away at the end.
pub(crate) struct Bed {
    server: PgConnectOptions,
    url: String,
    database: String,
}

/// How many connections each contender has at most.
const CONNECTIONS: u32 = 16;

impl Bed {
    pub(crate) async fn new() -> Self {
        let url = std::env::var("RHEO_POSTGRES_URL")
            .expect("RHEO_POSTGRES_URL names a PostgreSQL server to measure");
        let server = PgConnectOptions::from_str(&url)
            .expect("a URL")
            .disable_statement_logging();
        let database = format!("rheo_bench_{}", std::process::id());
        let mut connection = server.connect().await.expect("connects");
        let sql = AssertSqlSafe(format!("CREATE DATABASE {database}"));
        connection.execute(sql).await.expect("made");
        let bed = Self {
            url: server.clone().database(&database).to_url_lossy().into(),
            server,
            database,
        };
        let backend = bed.backend(|config| config);
        backend.ensure_indexes().await.expect("the schema is made");
        bed
    }

    pub(crate) fn backend(&self, with: impl FnOnce(Config) -> Config) -> Arc<PostgresBackend> {
        let config = Config::new(&self.url)
            .with_max_connections(CONNECTIONS)
            .with_operation_timeout(std::time::Duration::from_secs(60));
        let backend = PostgresBackend::connect(with(config), Arc::new(SystemClock));
        Arc::new(backend.expect("the settings are right"))
    }

    pub(crate) async fn connection(&self) -> PgConnection {
        let options = self.server.clone().database(&self.database);
        options.connect().await.expect("connects")
    }

    pub(crate) async fn execute(&self, sql: &str) {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let done = self.connection().await.execute(sql).await;
        done.expect("executed");
    }

    pub(crate) async fn server_version(&self) -> String {
        sqlx::query_scalar("SELECT current_setting('server_version')")
            .fetch_one(&mut self.connection().await)
            .await
            .expect("told")
    }

    /// A stream, with a group that starts at its beginning.
    pub(crate) async fn stream(&self, name: &str) -> (StreamName, GroupName) {
        let backend = self.backend(|config| config);
        let (stream, group) = names(name);
        let count = PartitionCount::new(PARTITIONS).expect("allowed");
        let options = StreamOptions::new().with_partition_count(count);
        let made = backend.create_stream(&stream, &options).await;
        made.expect("made");
        let made = backend
            .create_group(&stream, &group, &GroupOptions::new())
            .await;
        made.expect("made");
        (stream, group)
    }

    /// Puts so many events into each partition of an empty stream, by SQL.
    pub(crate) async fn fill(&self, stream: &str, per_partition: u64) {
        self.execute(&format!(
            "INSERT INTO {SCHEMA}.events (stream_id, partition, sequence, event_id, event_type, key,
                payload, metadata, timestamp)
             SELECT s.stream_id, p, i, gen_random_uuid(), 'order.placed', 'customer-' || i % 999,
                '{}', '{}', 1700000000000000 + i
             FROM {SCHEMA}.streams s, generate_series(0, {} - 1) p,
                generate_series(1, {per_partition}) i
             WHERE s.name = '{stream}';
             ANALYZE",
            payload().to_value(),
            metadata().to_value(),
            PARTITIONS
        ))
        .await;
    }

    /// The same, for those who outlive this one's borrow.
    pub(crate) fn again(&self) -> Self {
        Self {
            server: self.server.clone(),
            url: self.url.clone(),
            database: self.database.clone(),
        }
    }

    /// For contenders that are SQL: a pool with what the backend asks of its own.
    pub(crate) fn pool(&self) -> PgPool {
        let options = self.server.clone().database(&self.database);
        PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .test_before_acquire(false)
            .connect_lazy_with(options)
    }

    pub(crate) async fn drop(self) {
        let mut connection = self.server.connect().await.expect("connects");
        let sql = AssertSqlSafe(format!("DROP DATABASE {} WITH (FORCE)", self.database));
        connection.execute(sql).await.expect("dropped");
    }
}

pub(crate) fn names(name: &str) -> (StreamName, GroupName) {
    let stream = StreamName::new(name).expect("allowed");
    (stream, GroupName::new("billing").expect("allowed"))
}

/// About 200 bytes with the metadata.
pub(crate) fn payload() -> JsonObject {
    let payload = json!({
        "order": 4711, "customer": "ada.lovelace", "total": 1249.50, "currency": "EUR",
        "items": [{"sku": "A-100", "count": 2}, {"sku": "B-7", "count": 1}]
    });
    JsonObject::payload(payload).expect("allowed")
}

pub(crate) fn metadata() -> JsonObject {
    JsonObject::metadata(json!({"source": "bench", "trace": "0af7651916cd43dd"})).expect("allowed")
}

pub(crate) fn new_event() -> NewEvent {
    let mut event = NewEvent::new("order.placed", json!({})).expect("allowed");
    event.payload = payload();
    event.metadata = metadata();
    let key = format!("customer-{}", fastrand::u32(0..999));
    event.with_key(EventKey::new(key).expect("allowed"))
}

pub(crate) fn any_partition() -> Partition {
    Partition::new(fastrand::u32(0..PARTITIONS))
}
