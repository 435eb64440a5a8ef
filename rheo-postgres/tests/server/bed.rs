//! A schema of its own on the server that `RHEO_POSTGRES_URL` names, dropped at the end.

use std::env;
use std::str::FromStr;
use std::sync::Arc;

use rheo_core::{Backend, SystemClock};
use rheo_postgres::{Config, PostgresBackend};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions};

/// A fresh schema.
pub(crate) struct Bed {
    pub(crate) url: String,
    pub(crate) schema: String,
}

impl Bed {
    /// Makes it.
    pub(crate) async fn new() -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let bed = Self {
            url: url(),
            schema: format!("rheo_{id}"),
        };
        let backend = bed.backend(|config| config);
        backend.ensure_indexes().await.expect("the schema is made");
        bed
    }

    /// A handle of its own on the schema.
    pub(crate) fn backend(&self, with: impl FnOnce(Config) -> Config) -> Arc<PostgresBackend> {
        let config = with(Config::new(&self.url).with_schema(&self.schema));
        let backend = PostgresBackend::connect(config, Arc::new(SystemClock));
        Arc::new(backend.expect("the settings are right"))
    }

    /// A connection beside all handles.
    pub(crate) async fn connection(&self) -> PgConnection {
        let options = PgConnectOptions::from_str(&self.url).expect("a URL");
        options.connect().await.expect("connects")
    }

    /// A pool beside all handles.
    pub(crate) fn pool(&self, options: PgPoolOptions) -> PgPool {
        options.connect_lazy_with(PgConnectOptions::from_str(&self.url).expect("a URL"))
    }

    /// A statement about this schema.
    pub(crate) fn sql(&self, sql: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(sql.replace("{schema}", &self.schema))
    }

    /// Runs a script about this schema.
    pub(crate) async fn execute(&self, sql: &str) {
        let sql = sqlx::raw_sql(self.sql(sql));
        let done = sql.execute(&mut self.connection().await).await;
        done.expect("executed");
    }

    /// Throws the schema away.
    pub(crate) async fn drop(self) {
        self.execute("DROP SCHEMA {schema} CASCADE").await;
    }
}

/// The server to test on.
pub(crate) fn url() -> String {
    env::var("RHEO_POSTGRES_URL").unwrap_or_else(|_| {
        panic!(
            "RHEO_POSTGRES_URL is not set: the URL of a PostgreSQL database to test on, e.g. \
             postgres://user:password@localhost/test"
        )
    })
}
