//! How the suite reaches the Postgres backend, on the server that `RHEO_POSTGRES_URL` names.

mod schemas;

use std::env;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rheo_contract::{Harness, HarnessError, Namespace, Opened, Part, Server, secrets_of_url};
use rheo_core::{Backend, Clock, async_trait};
use rheo_postgres::{Config, PostgresBackend, Settings};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};

use self::schemas::Schemas;

/// A schema for each namespace, on a database that may hold other things.
pub(crate) struct Postgres {
    url: String,
    schemas: Arc<Schemas>,
}

/// Each case has handles of its own, so there are many at once.
const CONNECTIONS: u32 = 4;

impl Postgres {
    /// On the server that `RHEO_POSTGRES_URL` names; says what to set where it names none.
    pub(crate) fn from_env() -> Result<Self, ExitCode> {
        let url = env::var("RHEO_POSTGRES_URL").map_err(|_| {
            eprintln!(
                "error: RHEO_POSTGRES_URL is not set: the URL of a PostgreSQL database to test on, \
                 e.g. postgres://user:password@localhost/test"
            );
            ExitCode::from(rheo_contract::EXIT_NOT_STARTED)
        })?;
        let schemas = Arc::new(Schemas::new(&url));
        Ok(Self { url, schemas })
    }

    /// Runs something, and drops the schemas that are left when it is over.
    pub(crate) fn and_drop_all(self, run: impl FnOnce(Self) -> ExitCode) -> ExitCode {
        let schemas = Arc::clone(&self.schemas);
        let code = run(self);
        schemas.drop_all();
        code
    }

    /// Runs SQL on the schema of a namespace, `{schema}`.
    pub(crate) async fn execute(&self, namespace: &Namespace, sql: &str) -> sqlx::Result<()> {
        let schema = self.schemas.of(namespace).await?;
        let mut connection = PgConnectOptions::from_str(&self.url)?.connect().await?;
        let sql = sql.replace("{schema}", &schema);
        connection
            .execute(sqlx::raw_sql(AssertSqlSafe(sql)))
            .await?;
        Ok(())
    }

    fn config(&self, namespace: &Namespace, schema: &str) -> Config {
        let and = if self.url.contains('?') { '&' } else { '?' };
        Config::new(format!("{}{and}application_name={namespace}", self.url))
            .with_schema(schema)
            .with_max_connections(CONNECTIONS)
    }

    async fn connect(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let schema = self.schemas.of(namespace).await?;
        let config = self.config(namespace, &schema);
        self.open_with(config, namespace, clock).await
    }

    async fn open_at(
        &self,
        address: SocketAddr,
        settings: Settings,
        namespace: &Namespace,
        clock: Arc<dyn Clock>,
    ) -> Opened {
        let schema = self.schemas.of(namespace).await?;
        let options = PgConnectOptions::from_str(&self.url)?
            .host(&address.ip().to_string())
            .port(address.port())
            .application_name(namespace.as_str());
        let pool: PgPool = PgPoolOptions::new()
            .max_connections(2)
            .connect_lazy_with(options);
        let settings = settings.with_schema(schema);
        let backend = Arc::new(PostgresBackend::on_pool(pool.clone(), settings, clock)?);
        self.schemas.note(namespace, &backend, Some(pool));
        Ok(backend)
    }

    async fn open_with(
        &self,
        config: Config,
        namespace: &Namespace,
        clock: Arc<dyn Clock>,
    ) -> Opened {
        let backend = Arc::new(PostgresBackend::connect(config, clock)?);
        self.schemas.note(namespace, &backend, None);
        backend.ensure_indexes().await?;
        Ok(backend)
    }
}

async fn server_version(options: PgConnectOptions) -> Result<String, sqlx::Error> {
    let mut connection = options.connect().await?;
    sqlx::query_scalar("SELECT current_setting('server_version')")
        .fetch_one(&mut connection)
        .await
}

#[async_trait]
impl Harness for Postgres {
    fn name(&self) -> &str {
        "rheo-postgres"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn open(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let schema = self.schemas.begin(namespace).await?;
        let config = self.config(namespace, &schema);
        self.open_with(config, namespace, clock).await
    }

    fn secrets(&self) -> Vec<String> {
        secrets_of_url(&self.url)
    }

    async fn server(&self) -> Result<Option<Server>, HarnessError> {
        Ok(Some(Server {
            product: "PostgreSQL".to_owned(),
            version: server_version(PgConnectOptions::from_str(&self.url)?).await?,
        }))
    }

    async fn second_handle(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.connect(namespace, clock).await
    }

    async fn narrow_handle(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let schema = self.schemas.of(namespace).await?;
        let config = self.config(namespace, &schema).with_max_connections(1);
        self.open_with(config, namespace, clock).await
    }

    async fn reopen(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.connect(namespace, clock).await
    }

    async fn open_via(
        &self,
        namespace: &Namespace,
        clock: Arc<dyn Clock>,
        address: SocketAddr,
    ) -> Opened {
        // Many connect at once, and a password is hashed for each.
        let settings = Settings::new()
            .with_acquire_timeout(Duration::from_secs(2))
            .with_operation_timeout(Duration::from_secs(3));
        self.open_at(address, settings, namespace, clock).await
    }

    async fn open_unreachable(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let closed_port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        // Nobody comes: each call waits as long as it may.
        let settings = Settings::new()
            .with_acquire_timeout(Duration::from_millis(300))
            .with_operation_timeout(Duration::from_secs(1));
        self.open_at(closed_port, settings, namespace, clock).await
    }

    async fn store_address(&self) -> Result<SocketAddr, HarnessError> {
        let options = PgConnectOptions::from_str(&self.url)?;
        let address = (options.get_host(), options.get_port());
        let found = tokio::net::lookup_host(address).await?.next();
        found.ok_or_else(|| HarnessError::failed("the host of RHEO_POSTGRES_URL has no address"))
    }

    async fn restart_store(&self, _namespace: &Namespace) -> Result<(), HarnessError> {
        let Some(pid_file) = env::var_os("RHEO_POSTGRES_PID_FILE") else {
            return Err(HarnessError::NotSupplied(Part::RestartStore));
        };
        let options = PgConnectOptions::from_str(&self.url)?;
        let serves = || {
            let version = server_version(options.clone());
            async { version.await.is_ok() }
        };
        Ok(rheo_workers::kill_and_wait(pid_file.as_ref(), serves).await?)
    }

    async fn discard(&self, namespace: &Namespace) -> Result<(), HarnessError> {
        self.schemas.discard(namespace);
        Ok(())
    }
}
