//! Schemas that cases use one after the other.
//!
//! To make a schema and to drop it costs the server more than a case does in it: dozens of files that are
//! made, synced and removed. So a schema is emptied when its case is over, and handed to a later one. Rows
//! are deleted: TRUNCATE would make all those files anew. Its identities go on where they were, so that
//! no id of an earlier case is one of a later.
//!
//! One case in [`FRESH`] gets a schema that was never used all the same, and so do those for which none is
//! ready, and one that runs alone. The schema of a case that was given up on is not used again: nobody
//! discards it, and it is dropped in the end.
//!
//! What a case leaves behind must not reach the next one: its handles are closed, so that nothing new is
//! sent, then its sessions are ended, which all carry the namespace as their application's name.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rheo_contract::Namespace;
use rheo_core::Backend;
use rheo_postgres::PostgresBackend;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};
use tokio::time::timeout;

/// One case in so many gets a fresh schema.
const FRESH: u32 = 8;

/// More empty schemas than this are not kept.
const MOST_SPARE: usize = 8;

/// How long a handle may take to close, until its sessions are ended by force.
const PATIENCE: Duration = Duration::from_millis(200);

/// Another process finds a schema that is used again by the comment on it.
const FIND: &str = "SELECT n.nspname::text FROM pg_namespace n \
     JOIN pg_description d ON d.objoid = n.oid AND d.classoid = 'pg_namespace'::regclass \
     WHERE d.description = $1";

const END_SESSIONS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
     WHERE application_name = $1";

/// Those of a server, and who has which.
pub(crate) struct Schemas {
    url: String,
    pool: OnceLock<PgPool>,
    begun: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Empty ones.
    spare: Vec<String>,
    used: HashMap<Namespace, Used>,
    /// All that this process made and has not dropped, each with its last namespace.
    made: HashMap<String, Namespace>,
}

struct Used {
    schema: String,
    /// They are closed when the case is over: a task of one may have something to send still.
    handles: Vec<(Arc<PostgresBackend>, Option<PgPool>)>,
}

impl Schemas {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            pool: OnceLock::new(),
            begun: AtomicU32::new(0),
            state: Mutex::default(),
        }
    }

    /// A schema for a namespace that has none: empty, or not there yet.
    pub(crate) async fn begin(&self, namespace: &Namespace) -> sqlx::Result<String> {
        let is_fresh = self
            .begun
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(FRESH);
        let spare = if is_fresh {
            None
        } else {
            self.lock().spare.pop()
        };
        let schema = match spare {
            Some(spare) => {
                let comment = format!("COMMENT ON SCHEMA {spare} IS '{namespace}'");
                self.pool()?.execute(AssertSqlSafe(comment)).await?;
                spare
            }
            None => namespace.as_str().to_owned(),
        };
        let mut state = self.lock();
        state.made.insert(schema.clone(), namespace.clone());
        let used = Used {
            schema: schema.clone(),
            handles: Vec::new(),
        };
        state.used.insert(namespace.clone(), used);
        Ok(schema)
    }

    /// The schema of a namespace, which this process or another began.
    pub(crate) async fn of(&self, namespace: &Namespace) -> sqlx::Result<String> {
        if let Some(used) = self.lock().used.get(namespace) {
            return Ok(used.schema.clone());
        }
        let found = sqlx::query_scalar(FIND).bind(namespace.as_str());
        let found: Option<String> = found.fetch_optional(self.pool()?).await?;
        Ok(found.unwrap_or_else(|| namespace.as_str().to_owned()))
    }

    /// Notes a handle, and its pool if it has none of its own.
    pub(crate) fn note(
        &self,
        namespace: &Namespace,
        backend: &Arc<PostgresBackend>,
        pool: Option<PgPool>,
    ) {
        if let Some(used) = self.lock().used.get_mut(namespace) {
            used.handles.push((Arc::clone(backend), pool));
        }
    }

    /// Empties the schema of a case that is over, in the background.
    pub(crate) fn discard(self: &Arc<Self>, namespace: &Namespace) {
        let Some(used) = self.lock().used.remove(namespace) else {
            return;
        };
        let (this, namespace) = (Arc::clone(self), namespace.clone());
        tokio::spawn(async move {
            for (backend, pool) in used.handles {
                // From the first poll on, nothing new is sent.
                let _ = timeout(PATIENCE, backend.close()).await;
                if let Some(pool) = pool {
                    let _ = timeout(PATIENCE, pool.close()).await;
                }
            }
            // Where that fails the schema is used no more, and dropped in the end.
            let _ = this.recycle(&namespace, used.schema).await;
        });
    }

    async fn recycle(&self, namespace: &Namespace, schema: String) -> sqlx::Result<()> {
        let mut connection = self.pool()?.acquire().await?;
        end_sessions(&mut connection, namespace).await?;
        if self.lock().spare.len() >= MOST_SPARE {
            return self.drop_schema(&mut connection, &schema).await;
        }
        let find = "SELECT tablename::text FROM pg_tables \
             WHERE schemaname = $1 AND tablename <> 'migrations'";
        let tables: Vec<String> = sqlx::query_scalar(find)
            .bind(&schema)
            .fetch_all(&mut *connection)
            .await?;
        // One statement, so that it does not matter which table refers to which.
        let delete = |(number, table): (usize, &String)| {
            format!("deleted_{number} AS (DELETE FROM {schema}.{table})")
        };
        let deletes: Vec<_> = tables.iter().enumerate().map(delete).collect();
        let empty = format!("WITH {} SELECT", deletes.join(", "));
        connection.execute(AssertSqlSafe(empty)).await?;
        let tables: Vec<_> = tables.iter().map(|t| format!("{schema}.{t}")).collect();
        let vacuum = format!("VACUUM {}", tables.join(", "));
        connection.execute(AssertSqlSafe(vacuum)).await?;
        // All of it is on disk when this is: a case may kill the server at any moment.
        let spare = format!(
            "BEGIN; SET LOCAL synchronous_commit = on; COMMENT ON SCHEMA {schema} IS 'spare'; COMMIT"
        );
        connection
            .execute(sqlx::raw_sql(AssertSqlSafe(spare)))
            .await?;
        self.lock().spare.push(schema);
        Ok(())
    }

    async fn drop_schema(&self, connection: &mut PgConnection, schema: &str) -> sqlx::Result<()> {
        let drop = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
        connection.execute(AssertSqlSafe(drop)).await?;
        self.lock().made.remove(schema);
        Ok(())
    }

    /// Drops all that this process made, when the run is over and nothing of it works any more.
    pub(crate) fn drop_all(&self) {
        let made = std::mem::take(&mut self.lock().made);
        if made.is_empty() {
            return;
        }
        let dropping = async {
            let mut connection = self.options()?.connect().await?;
            for (schema, namespace) in made {
                end_sessions(&mut connection, &namespace).await?;
                self.drop_schema(&mut connection, &schema).await?;
            }
            Ok::<_, sqlx::Error>(())
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let dropped = runtime
            .map_err(sqlx::Error::from)
            .and_then(|runtime| runtime.block_on(dropping));
        if let Err(error) = dropped {
            eprintln!("note: schemas of the tests are left in the database: {error}");
        }
    }

    /// Connections for all that is done here; made when the first is needed, on the runtime of that one.
    fn pool(&self) -> sqlx::Result<&PgPool> {
        if self.pool.get().is_none() {
            let options = self.options()?;
            let pool = PgPoolOptions::new().max_connections(3);
            let _ = self.pool.set(pool.connect_lazy_with(options));
        }
        self.pool.get().ok_or(sqlx::Error::PoolClosed)
    }

    fn options(&self) -> sqlx::Result<PgConnectOptions> {
        // A case that survives a crash of the server has waited for a commit after these.
        let options = PgConnectOptions::from_str(&self.url)?;
        let options = options.options([("synchronous_commit", "off"), ("lock_timeout", "10s")]);
        Ok(options.disable_statement_logging())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the sessions of a namespace, and waits until they are gone.
async fn end_sessions(connection: &mut PgConnection, namespace: &Namespace) -> sqlx::Result<()> {
    for _ in 0..500 {
        let ended: i64 = sqlx::query_scalar(END_SESSIONS)
            .bind(namespace.as_str())
            .fetch_one(&mut *connection)
            .await?;
        if ended == 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(sqlx::Error::PoolTimedOut)
}
