//! What must hold whatever the server, the role, the host's pool and the network do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rheo_core::{
    Backend, ConsumerId, ErrorKind, FetchOptions, GroupName, GroupOptions, NewEvent, Query,
    ReadOptions, StreamName, StreamOptions, SystemClock,
};
use rheo_postgres::{Config, PostgresBackend, Settings};
use serde_json::json;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Executor};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::bed::Bed;

/// DUR-1: durable in a session that is not, and settings of the role play no part.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_reaches_the_disk_whatever_the_session_says() {
    let bed = Bed::new().await;
    let backend = on_pool_that_says(&bed, "SET synchronous_commit = off");
    begin(&*backend).await;

    // The setting that an append commits with, seen from a trigger at its end.
    let sql = bed.sql(
        "CREATE TABLE {schema}.seen (value text);
         CREATE FUNCTION {schema}.look() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO {schema}.seen VALUES (current_setting('synchronous_commit'));
             RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER look AFTER INSERT ON {schema}.events
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {schema}.look()",
    );
    let mut connection = bed.connection().await;
    connection.execute(sqlx::raw_sql(sql)).await.expect("made");
    backend
        .append(&stream(), new_event())
        .await
        .expect("appended");
    let seen: Vec<String> = sqlx::query_scalar(bed.sql("SELECT value FROM {schema}.seen"))
        .fetch_all(&mut connection)
        .await
        .expect("read");
    assert_eq!(seen, ["on"]);
    bed.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_another_isolation_is_refused() {
    let bed = Bed::new().await;
    begin(&*bed.backend(|config| config)).await;
    let backend = on_pool_that_says(
        &bed,
        "SET default_transaction_isolation = 'repeatable read'",
    );
    let appended = backend.append(&stream(), new_event()).await;
    assert_eq!(appended.map_err(|e| e.kind()), Err(ErrorKind::Failed));
    bed.drop().await;
}

/// What a connection string can say is what a role or a database can have as a default.
#[tokio::test(flavor = "multi_thread")]
async fn defaults_of_the_role_play_no_part() {
    let bed = Bed::new().await;
    let options: PgConnectOptions = bed.url.parse().expect("a URL");
    let options = options.options([
        ("default_transaction_isolation", "serializable"),
        ("default_transaction_read_only", "on"),
        ("synchronous_commit", "off"),
        ("TimeZone", "Asia/Tokyo"),
    ]);
    let url = options.to_url_lossy();
    let backend = bed.backend(|_| Config::new(url).with_schema(&bed.schema));
    begin(&*backend).await;
    backend
        .append(&stream(), new_event())
        .await
        .expect("appended");
    bed.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_can_be_made_by_many_at_once() {
    let bed = Bed::new().await;
    bed.execute("DROP SCHEMA {schema} CASCADE").await;
    let makers = (0..6).map(|_| {
        let backend = bed.backend(|config| config);
        async move { backend.ensure_indexes().await }
    });
    for made in futures_util::future::join_all(makers).await {
        made.expect("made");
    }
    let backend = bed.backend(|config| config);
    begin(&*backend).await;
    backend
        .append(&stream(), new_event())
        .await
        .expect("appended");
    backend.ensure_indexes().await.expect("nothing to do");
    let events = backend.read(&stream(), &ReadOptions::new()).await;
    assert_eq!(events.expect("read").len(), 1);
    bed.drop().await;
}

/// ERR-1, ERR-2, ERR-4, ERR-5: the server freezes, the network breaks, and all is well again.
#[tokio::test(flavor = "multi_thread")]
async fn a_handle_outlives_its_network() {
    let bed = Bed::new().await;
    begin(&*bed.backend(|config| config)).await;
    let network = Network::to(&bed.url).await;
    let patience = Duration::from_millis(600);
    let backend = bed.backend(|_| {
        Config::new(&network.url)
            .with_schema(&bed.schema)
            .with_max_connections(2)
            .with_acquire_timeout(patience / 2)
            .with_operation_timeout(patience)
    });
    backend
        .append(&stream(), new_event())
        .await
        .expect("appended");

    for trouble in [State::Frozen, State::Cut] {
        network.set(trouble);
        for _ in 0..4 {
            let begun = Instant::now();
            let appended = backend.append(&stream(), new_event()).await;
            let kind = appended.map(drop).map_err(|e| e.kind());
            assert!(
                [
                    Err(ErrorKind::Ambiguous),
                    Err(ErrorKind::BackendUnavailable)
                ]
                .contains(&kind),
                "{trouble:?}: {kind:?}"
            );
            let queried = backend.query(&stream(), &Query::new()).await;
            let kind = queried.map(drop).map_err(|e| e.kind());
            assert_eq!(kind, Err(ErrorKind::BackendUnavailable), "{trouble:?}");
            let pinged = backend.ping().await.map_err(|e| e.kind());
            assert_eq!(pinged, Err(ErrorKind::BackendUnavailable), "{trouble:?}");
            // ERR-6: to ask for nothing excuses no error.
            let nothing = backend.append_batch(&stream(), Vec::new()).await;
            let kind = nothing.map(drop).map_err(|e| e.kind());
            assert_eq!(kind, Err(ErrorKind::BackendUnavailable), "{trouble:?}");
            let nothing = backend.query(&stream(), &Query::new().with_limit(0)).await;
            let kind = nothing.map(drop).map_err(|e| e.kind());
            assert_eq!(kind, Err(ErrorKind::BackendUnavailable), "{trouble:?}");
            assert!(begun.elapsed() < 6 * patience, "{:?}", begun.elapsed());
        }
        network.set(State::Open);
        let mut waited = 0;
        while backend.ping().await.is_err() {
            waited += 1;
            assert!(waited < 10, "{trouble:?}: the handle does not work again");
        }
        backend
            .append(&stream(), new_event())
            .await
            .expect("appended");
        let options = FetchOptions::new(ConsumerId::new("a").expect("allowed")).with_limit(100);
        let leases = backend.fetch(&stream(), &group(), &options).await;
        for acked in backend.ack_batch(&leases.expect("fetched")).await {
            acked.expect("acked");
        }
    }
    bed.drop().await;
}

/// A connection that broke while it was idle is not what the next append goes out on.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_append_after_an_outage_works() {
    let bed = Bed::new().await;
    begin(&*bed.backend(|config| config)).await;
    let network = Network::to(&bed.url).await;
    let backend = bed.backend(|_| Config::new(&network.url).with_schema(&bed.schema));
    let stream = stream();
    let at_once = (0..4).map(|_| backend.append(&stream, new_event()));
    for appended in futures_util::future::join_all(at_once).await {
        appended.expect("appended");
    }
    network.set(State::Cut);
    let lost = backend.append(&stream, new_event()).await;
    lost.expect_err("there is no network");
    network.set(State::Open);
    for _ in 0..6 {
        backend
            .append(&stream, new_event())
            .await
            .expect("appended");
    }
    bed.drop().await;
}

/// Who waits for a connection for less than it takes to make it must not have it made anew for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_slow_to_make_is_made() {
    let bed = Bed::new().await;
    let network = Network::to(&bed.url).await;
    network.set(State::Slow);
    let backend = bed.backend(|_| {
        Config::new(&network.url)
            .with_schema(&bed.schema)
            .with_max_connections(1)
            .with_acquire_timeout(Duration::from_millis(100))
    });
    let mut in_vain = 0;
    while let Err(error) = backend.ping().await {
        assert_eq!(error.kind(), ErrorKind::BackendUnavailable, "{error}");
        in_vain += 1;
        assert!(in_vain < 40, "no connection is made");
    }
    assert!(in_vain > 0, "to connect takes longer than the first waits");
    bed.drop().await;
}

/// CAN-1, ERR-5: a connection that goes silent when it goes back to the pool frees its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_does_not_come_back_keeps_no_place() {
    let bed = Bed::new().await;
    let network = Network::to(&bed.url).await;
    let patience = Duration::from_millis(600);
    let backend = bed.backend(|_| {
        Config::new(&network.url)
            .with_schema(&bed.schema)
            .with_max_connections(1)
            .with_acquire_timeout(patience / 2)
            .with_operation_timeout(patience)
    });
    network.set(State::MuteWhenAsked);
    backend.ping().await.expect("answered");
    sleep(patience / 3).await;
    network.set(State::Open);
    let mut waited = 0;
    while backend.ping().await.is_err() {
        waited += 1;
        assert!(waited < 6, "the place in the pool is lost");
    }
    assert!(waited > 0, "the connection is silent");
    bed.drop().await;
}

/// How long it may take to connect plays no part for who waits for a connection that others use.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_pool_is_waited_for_as_long_as_was_said() {
    let bed = Bed::new().await;
    let backend = bed.backend(|config| {
        config
            .with_max_connections(1)
            .with_connect_timeout(Duration::from_millis(500))
            .with_acquire_timeout(Duration::from_secs(4))
    });
    begin(&*backend).await;
    let mut blocker = bed.connection().await;
    let lock = bed.sql("BEGIN; SELECT {schema}.lock_log(stream_id, 0) FROM {schema}.streams");
    let locked = blocker.execute(sqlx::raw_sql(lock)).await;
    locked.expect("locked");
    let stream = stream();
    let (appended, pinged, _) = tokio::join!(
        backend.append(&stream, new_event()),
        async {
            sleep(Duration::from_millis(200)).await;
            backend.ping().await
        },
        async {
            sleep(Duration::from_millis(1500)).await;
            blocker.execute("COMMIT").await.expect("unlocked");
        },
    );
    appended.expect("appended");
    pinged.expect("answered when the append was done");
    bed.drop().await;
}

/// ERR-4: also on a handle that has to look up the stream first.
#[tokio::test(flavor = "multi_thread")]
async fn two_slow_statements_have_the_time_of_one_operation() {
    let bed = Bed::new().await;
    begin(&*bed.backend(|config| config)).await;
    let patience = Duration::from_secs(1);
    let [appending, querying] =
        [(); 2].map(|()| bed.backend(|config| config.with_operation_timeout(patience)));
    for backend in [&appending, &querying] {
        backend.ping().await.expect("answered");
    }
    let (mut streams, mut events) = (bed.connection().await, bed.connection().await);
    for (connection, table) in [(&mut streams, "streams"), (&mut events, "events")] {
        let lock = bed.sql(&format!("BEGIN; LOCK TABLE {{schema}}.{table}"));
        let locked = connection.execute(sqlx::raw_sql(lock)).await;
        locked.expect("locked");
    }
    let stream = stream();
    let in_time = patience + patience / 3;
    let query = Query::new();
    let (appended, queried, ()) = tokio::join!(
        tokio::time::timeout(in_time, appending.append(&stream, new_event())),
        tokio::time::timeout(in_time, querying.query(&stream, &query)),
        async {
            sleep(patience * 7 / 10).await;
            streams.execute("COMMIT").await.expect("unlocked");
        },
    );
    appended.expect("in time").expect_err("locked");
    queried.expect("in time").expect_err("locked");
    events.execute("COMMIT").await.expect("unlocked");
    bed.drop().await;
}

/// Where the server ended one session, the others are looked at before use: else each write on one of
/// them would be ambiguous.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_idle_when_a_session_was_ended_is_looked_at() {
    let bed = Bed::new().await;
    let backend = bed.backend(|config| config);
    begin(&*backend).await;
    let stream = stream();
    let at_once = (0..4).map(|_| backend.append_batch(&stream, vec![new_event(); 2]));
    for appended in futures_util::future::join_all(at_once).await {
        appended.expect("appended");
    }

    let mut blocker = bed.connection().await;
    let lock = bed.sql("BEGIN; SELECT {schema}.lock_log(stream_id, 0) FROM {schema}.streams");
    let locked = blocker.execute(sqlx::raw_sql(lock)).await;
    locked.expect("locked");
    let (lost, _) = tokio::join!(backend.append(&stream, new_event()), async {
        sleep(Duration::from_millis(200)).await;
        bed.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE query LIKE '%{schema}%' AND state <> 'idle in transaction' \
                 AND pid <> pg_backend_pid()",
        )
        .await;
    });
    let lost = lost.expect_err("the session was ended");
    assert_eq!(lost.kind(), ErrorKind::Ambiguous, "{lost}");
    blocker.execute("COMMIT").await.expect("unlocked");
    for _ in 0..6 {
        backend
            .append(&stream, new_event())
            .await
            .expect("appended");
    }
    bed.drop().await;
}

/// Stands between a handle and the server, and lets through what it is told to.
struct Network {
    url: String,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Open,
    /// Connections stay, and nothing comes through.
    Frozen,
    /// Connections break, and new ones too.
    Cut,
    /// Everything comes through a moment later.
    Slow,
    /// A connection is frozen for ever when the driver asks whether it is alive.
    MuteWhenAsked,
}

impl Network {
    async fn to(url: &str) -> Self {
        let options: PgConnectOptions = url.parse().expect("a URL");
        let server = (options.get_host().to_owned(), options.get_port());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("listens");
        let address = listener.local_addr().expect("has one");
        let (state, seen) = watch::channel(State::Open);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, seen) = (server.clone(), seen.clone());
                tokio::spawn(async move {
                    if *seen.borrow() == State::Cut {
                        return;
                    }
                    let Ok(server) = TcpStream::connect(server).await else {
                        return;
                    };
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    tokio::join!(
                        carry(from_client, to_server, seen.clone()),
                        carry(from_server, to_client, seen)
                    );
                });
            }
        });
        let through = options.host("127.0.0.1").port(address.port());
        Self {
            url: through.to_url_lossy().into(),
            state,
        }
    }

    fn set(&self, state: State) {
        self.state.send_replace(state);
    }
}

/// The message that the driver asks with.
const SYNC: &[u8] = b"S\0\0\0\x04";

async fn carry(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut seen: watch::Receiver<State>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let state = *seen.borrow_and_update();
        match state {
            State::Cut => return,
            State::Frozen => {
                if seen.changed().await.is_err() {
                    return;
                }
            }
            State::Open | State::Slow | State::MuteWhenAsked => tokio::select! {
                changed = seen.changed() => if changed.is_err() { return },
                read = from.read(&mut buffer) => match read {
                    Ok(count) if count > 0 => {
                        if state == State::Slow {
                            sleep(Duration::from_millis(60)).await;
                        }
                        if state == State::MuteWhenAsked && &buffer[..count] == SYNC {
                            std::future::pending::<()>().await;
                        }
                        if to.write_all(&buffer[..count]).await.is_err() {
                            return;
                        }
                    }
                    _ => return,
                },
            },
        }
    }
}

/// A handle on a pool of the host's whose sessions begin like that.
fn on_pool_that_says(bed: &Bed, sql: &'static str) -> Arc<PostgresBackend> {
    let options = PgPoolOptions::new().after_connect(move |connection, _| {
        Box::pin(async move {
            connection.execute(sql).await?;
            Ok(())
        })
    });
    let settings = Settings::new().with_schema(&bed.schema);
    let backend = PostgresBackend::on_pool(bed.pool(options), settings, Arc::new(SystemClock));
    Arc::new(backend.expect("the settings are right"))
}

async fn begin(backend: &dyn Backend) {
    let made = backend
        .create_stream(&stream(), &StreamOptions::new())
        .await;
    made.expect("made");
    let made = backend
        .create_group(&stream(), &group(), &GroupOptions::new())
        .await;
    made.expect("made");
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
