//! How a statement is run: one connection, one statement, one deadline, and no transaction that the
//! client begins.
//!
//! Every operation is a single call of a function of the schema. So the server commits it or not,
//! whatever becomes of the client, and a future that is dropped leaves nothing open: a connection
//! with an answer still to come goes back to the pool when the answer has come, or is closed when
//! that takes longer than an operation may.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rheo_core::{Clock, Error, Operation, Result, Timestamp};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Connection, Executor, Postgres, SqlSafeStr};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use crate::config::{Config, Settings};
use crate::error::{Stage, Subject, ends_session, is_worth_repeating, portable, unavailable};
use crate::migrations::in_schema;

/// A statement with its values.
pub(crate) type Statement = Query<'static, Postgres, PgArguments>;

/// A pool, what is in it, and whether this handle may still use it.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) pool: PgPool,
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    is_own_pool: bool,
    is_closed: AtomicBool,
    health: Arc<Health>,
    returning: Arc<Returning>,
}

/// When a connection broke last, or could not be made, so that those which were made before are
/// looked at before use.
#[derive(Debug, Default)]
struct Health {
    broke_at: AtomicU64,
}

/// A connection that was idle for longer is looked at before use.
const TRUSTED_IDLE: Duration = Duration::from_secs(2);

/// For how long a connection that is on its way back is waited for, rather than making another one: less than
/// that takes where a password is asked for.
const A_MOMENT: Duration = Duration::from_millis(10);

/// A statement that the server undid because of others is sent again so many times.
const REPEATS: u32 = 10;

impl Store {
    /// With a pool of its own; connects when it is first used.
    pub(crate) fn connect(config: Config, clock: Arc<dyn Clock>) -> Result<Self> {
        let options = config.connect_options()?;
        let settings = config.settings;
        let health = Arc::new(Health::default());
        let session = session_sql(settings.operation_timeout);
        let pool = PgPoolOptions::new()
            .max_connections(config.max_connections)
            .acquire_timeout(settings.connect_timeout.max(settings.acquire_timeout))
            .test_before_acquire(false)
            .after_connect(move |connection, _| {
                let session = session.clone();
                Box::pin(async move {
                    connection
                        .execute(sqlx::raw_sql(AssertSqlSafe(session)))
                        .await?;
                    Ok(())
                })
            })
            .before_acquire({
                let health = Arc::clone(&health);
                move |connection, meta| {
                    // One that went back about when another broke was asked before it broke itself.
                    let is_trusted = meta.idle_for < TRUSTED_IDLE
                        && !health.broke_within(meta.idle_for + TRUSTED_IDLE);
                    let health = Arc::clone(&health);
                    Box::pin(async move {
                        if !is_trusted {
                            let asked = connection.ping().await;
                            asked.inspect_err(|_| health.note_break())?;
                        }
                        Ok(true)
                    })
                }
            })
            .connect_lazy_with(options);
        Ok(Self {
            health,
            ..Self::on(pool, settings, clock, true)
        })
    }

    /// On a pool that somebody else closes.
    pub(crate) fn on_pool(pool: PgPool, settings: Settings, clock: Arc<dyn Clock>) -> Result<Self> {
        settings.check()?;
        Ok(Self::on(pool, settings, clock, false))
    }

    fn on(pool: PgPool, settings: Settings, clock: Arc<dyn Clock>, is_own_pool: bool) -> Self {
        Self {
            pool,
            settings,
            clock,
            is_own_pool,
            is_closed: AtomicBool::new(false),
            health: Arc::default(),
            returning: Arc::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(unavailable("this handle is closed"));
        }
        Ok(())
    }

    /// Ends this handle; waits for what is under way, for as long as an operation may take.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        if self.is_own_pool {
            let patience = self.settings.operation_timeout;
            let _ = timeout(patience, self.pool.close()).await;
        }
    }

    /// When an operation that begins now has to be done.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.settings.operation_timeout
    }

    /// Runs one statement and gives its rows. `{schema}` in the text stands for the schema, and
    /// `bind` gives the values; it is called again when the statement has to be repeated.
    pub(crate) async fn rows(
        &self,
        operation: Operation,
        subject: &Subject<'_>,
        sql: &'static str,
        bind: impl FnMut(Statement) -> Statement,
    ) -> Result<Vec<PgRow>> {
        self.rows_until(self.deadline(), operation, subject, sql, bind)
            .await
    }

    /// As [`rows`](Self::rows), with a deadline of the caller's.
    pub(crate) async fn rows_until(
        &self,
        deadline: Instant,
        operation: Operation,
        subject: &Subject<'_>,
        sql: &'static str,
        mut bind: impl FnMut(Statement) -> Statement,
    ) -> Result<Vec<PgRow>> {
        self.check_open()?;
        let sql: Arc<str> = in_schema(sql, &self.settings.schema).into();
        let mut repeats = 0;
        loop {
            let mut connection = self.acquire(deadline, subject).await?;
            let stage = match operation.writes() {
                true => {
                    self.prepare(&mut connection, &sql, deadline, subject)
                        .await?
                }
                false => Stage::SentRead,
            };
            let statement = bind(sqlx::query(AssertSqlSafe(Arc::clone(&sql))));
            let sent = connection.sent().fetch_all(statement);
            let answer = timeout_at(deadline, sent).await;
            match answer {
                Ok(Ok(rows)) => return Ok(rows),
                Ok(Err(error)) => {
                    if ends_session(&error) {
                        self.health.note_break();
                    }
                    if is_worth_repeating(&error) && repeats < REPEATS {
                        repeats += 1;
                        continue;
                    }
                    return Err(portable(&error, stage, subject));
                }
                Err(_) => {
                    connection.close();
                    self.health.note_break();
                    return Err(stage.lost("no answer within the operation timeout"));
                }
            }
        }
    }

    /// As [`rows_until`](Self::rows_until), for a statement that gives exactly one.
    pub(crate) async fn row_until(
        &self,
        deadline: Instant,
        operation: Operation,
        subject: &Subject<'_>,
        sql: &'static str,
        bind: impl FnMut(Statement) -> Statement,
    ) -> Result<PgRow> {
        let rows = self
            .rows_until(deadline, operation, subject, sql, bind)
            .await?;
        let one = rows.into_iter().next().ok_or(sqlx::Error::RowNotFound);
        one.map_err(|error| portable(&error, Stage::SentRead, subject))
    }

    /// Sends a script that is not prepared.
    pub(crate) async fn script(
        &self,
        deadline: Instant,
        operation: Operation,
        script: String,
    ) -> Result<()> {
        self.check_open()?;
        let subject = Subject::default();
        let mut connection = self.acquire(deadline, &subject).await?;
        let stage = match operation.writes() {
            true => Stage::SentWrite,
            false => Stage::SentRead,
        };
        let script = sqlx::raw_sql(AssertSqlSafe(script));
        match timeout_at(deadline, connection.sent().execute(script)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                if ends_session(&error) {
                    self.health.note_break();
                }
                Err(portable(&error, stage, &subject))
            }
            Err(_) => {
                connection.close();
                self.health.note_break();
                Err(stage.lost("no answer within the operation timeout"))
            }
        }
    }

    /// Whether the server answers (ERR-9).
    pub(crate) async fn ping(&self, deadline: Instant) -> Result<()> {
        let answer = self
            .script(deadline, Operation::Ping, "SELECT 1".to_owned())
            .await;
        answer.map_err(|error| match error {
            Error::Failed(cause) => Error::BackendUnavailable(cause),
            other => other,
        })
    }

    async fn acquire(&self, deadline: Instant, subject: &Subject<'_>) -> Result<InUse> {
        let patience = deadline.min(Instant::now() + self.settings.acquire_timeout);
        match timeout_at(patience, self.connection()).await {
            Ok(Ok(connection)) => Ok(InUse {
                connection: Some(connection),
                patience: self.settings.operation_timeout,
                returning: Arc::clone(&self.returning),
            }),
            Ok(Err(error)) => {
                if !matches!(error, sqlx::Error::PoolTimedOut) {
                    self.health.note_break();
                }
                Err(portable(&error, Stage::NotSent, subject))
            }
            Err(_) => Err(unavailable("no connection within the acquire timeout")),
        }
    }

    /// A connection of the pool. One that has to be made is made to the end, whether or not the caller
    /// still waits: else callers with less patience than it takes would begin it anew for ever.
    async fn connection(&self) -> sqlx::Result<PoolConnection<Postgres>> {
        // One that is coming back costs less than a new one: who calls in turn needs one in all.
        self.returning.wait_for_one(&self.pool).await;
        let acquired = self.pool.acquire();
        let is_full = self.pool.size() >= self.pool.options().get_max_connections();
        if is_full || self.pool.num_idle() > 0 {
            return acquired.await;
        }
        let made = tokio::spawn(timeout(self.settings.connect_timeout, acquired)).await;
        let made = made.map_err(|_| sqlx::Error::WorkerCrashed)?;
        made.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// Has the statement ready on the connection, so that whatever goes wrong before it is executed
    /// is known to have had no effect.
    async fn prepare(
        &self,
        connection: &mut InUse,
        sql: &Arc<str>,
        deadline: Instant,
        subject: &Subject<'_>,
    ) -> Result<Stage> {
        let sql = AssertSqlSafe(Arc::clone(sql)).into_sql_str();
        match timeout_at(deadline, connection.sent().prepare(sql)).await {
            Ok(Ok(_)) => Ok(Stage::SentWrite),
            Ok(Err(error)) => {
                if ends_session(&error) {
                    self.health.note_break();
                }
                Err(portable(&error, Stage::NotSent, subject))
            }
            Err(_) => {
                connection.close();
                self.health.note_break();
                Err(unavailable("no answer within the operation timeout"))
            }
        }
    }
}

/// A connection out of the pool for the time of one statement.
struct InUse {
    connection: Option<PoolConnection<Postgres>>,
    /// How long it may take to come back to the pool.
    patience: Duration,
    returning: Arc<Returning>,
}

/// The connections that are on their way back to the pool.
#[derive(Debug, Default)]
struct Returning {
    count: AtomicUsize,
    one_is_back: Notify,
}

/// One of them; dropped when it is back, or lost.
struct OneReturning(Arc<Returning>);

impl Returning {
    fn begin(self: &Arc<Self>) -> OneReturning {
        self.count.fetch_add(1, Ordering::SeqCst);
        OneReturning(Arc::clone(self))
    }

    /// Waits a moment for one, if none is there and one is on its way.
    async fn wait_for_one(&self, pool: &PgPool) {
        let mut back = pin!(self.one_is_back.notified());
        // From here on none is missed.
        back.as_mut().enable();
        if pool.num_idle() == 0 && self.count.load(Ordering::SeqCst) > 0 {
            let _ = timeout(A_MOMENT, back).await;
        }
    }
}

impl Drop for OneReturning {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
        self.0.one_is_back.notify_waiters();
    }
}

impl InUse {
    /// The connection, to send something.
    fn sent(&mut self) -> &mut PgConnection {
        match &mut self.connection {
            Some(connection) => connection,
            None => unreachable!("it is taken only when this is dropped or closed"),
        }
    }

    /// Cuts the connection, and frees its place in the pool.
    fn close(&mut self) {
        drop(self.connection.take().map(PoolConnection::detach));
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        // It comes back when the server has answered what is still to come, and a last question of the
        // pool's. The pool itself would wait for that for ever, and the place be lost so long.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            drop(connection.detach());
            return;
        };
        let (patience, returning) = (self.patience, self.returning.begin());
        runtime.spawn(async move {
            let _returning = returning;
            let _ = timeout(patience, connection.return_to_pool()).await;
        });
    }
}

impl Health {
    fn note_break(&self) {
        self.broke_at.store(since_start(), Ordering::Relaxed);
    }

    fn broke_within(&self, past: Duration) -> bool {
        let broke_at = self.broke_at.load(Ordering::Relaxed);
        let past = u64::try_from(past.as_micros()).unwrap_or(u64::MAX);
        broke_at > 0 && since_start().saturating_sub(broke_at) <= past
    }
}

/// Microseconds since the first call, and at least 1.
fn since_start() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_micros()).map_or(u64::MAX, |micros| micros.max(1))
}

/// What a session must not take from the server's or the role's defaults (DUR-1).
///
/// The server gives up a little before the client does, so that a statement that takes too long is
/// known to have had no effect.
fn session_sql(operation_timeout: Duration) -> String {
    let patience = operation_timeout.as_millis() * 9 / 10;
    let patience = patience.max(1);
    format!(
        "SET TimeZone = 'UTC'; \
         SET synchronous_commit = on; \
         SET default_transaction_isolation = 'read committed'; \
         SET default_transaction_read_only = off; \
         SET default_transaction_deferrable = off; \
         SET lock_timeout = {patience}; \
         SET statement_timeout = {patience}; \
         SET client_min_messages = warning; \
         SET jit = off"
    )
}
