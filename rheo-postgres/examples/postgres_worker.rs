//! A worker: takes the orders of a stream for a group and settles them, until Ctrl-C.
//!
//! `cargo run --example postgres_worker -- postgres://user:password@localhost/shop`; as many at once as you like.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rheo_core::{
    Clock, ConsumerId, Error, ErrorKind, Event, EventId, FetchOptions, GroupOptions, Lease,
    LeaseDuration, PartitionCount, Reason, Result, RetryDelay, RetryOptions, Rheo, StreamOptions,
    SystemClock,
};
use rheo_postgres::{Config, PostgresBackend};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

const STREAM: &str = "orders";
const GROUP: &str = "billing";
/// How long to wait for work before looking again.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait before trying again what did not work.
const PAUSE: Duration = Duration::from_secs(1);

/// Why an event could not be handled.
enum Trouble {
    /// It may work later.
    Passing(String),
    /// It never will.
    Lasting(String),
}

/// What the worker is there for. An event may come again: the id lets doing it twice do no harm.
async fn bill(order: &Event) -> Result<(), Trouble> {
    let Some(total) = order.payload.get("total").and_then(Value::as_f64) else {
        return Err(Trouble::Lasting("the order has no total".to_owned()));
    };
    let charged = charge(order.id, total).await;
    charged.map_err(|error| Trouble::Passing(format!("the bank: {error}")))
}

async fn charge(order: EventId, total: f64) -> io::Result<()> {
    println!("{total} is charged for {order}");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1);
    let url = url.unwrap_or_else(|| "postgres://localhost/shop".to_owned());
    let backend = PostgresBackend::connect(Config::new(url), Arc::new(SystemClock))?;
    let rheo = Rheo::new(Arc::new(backend));
    prepare(&rheo).await?;

    let (stop, stopped) = watch::channel(false);
    let mut working = pin!(work(&rheo, stopped));
    tokio::select! {
        ended = &mut working => ended?,
        _ = tokio::signal::ctrl_c() => {
            stop.send_replace(true);
            working.await?;
        }
    }
    rheo.close().await
}

/// Makes what is missing. What an earlier start made stays as it is.
async fn prepare(rheo: &Rheo) -> Result<()> {
    rheo.ensure_indexes().await?;
    let options = StreamOptions::new().with_partition_count(PartitionCount::new(16)?);
    for made in [
        rheo.create_stream(STREAM, &options).await,
        rheo.create_group(STREAM, GROUP, &GroupOptions::new()).await,
    ] {
        match made {
            Ok(()) | Err(Error::AlreadyExists(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Takes events until it is stopped. What it took is settled first: a lease that just ends is an
/// attempt less.
async fn work(rheo: &Rheo, mut stopped: watch::Receiver<bool>) -> Result<()> {
    // Leased at once and handled one by one: the leases have to last for all ten.
    let options = FetchOptions::new(ConsumerId::new(format!("worker-{}", std::process::id()))?)
        .with_limit(10)
        .with_lease_duration(LeaseDuration::new(Duration::from_secs(60))?);
    while !*stopped.borrow() {
        let turn = match rheo.fetch(STREAM, GROUP, &options).await {
            Ok(leases) if leases.is_empty() => tokio::select! {
                waited = rheo.wait_for_work(STREAM, GROUP, PATIENCE) => waited.map(drop),
                _ = stopped.changed() => Ok(()),
            },
            Ok(leases) => {
                for lease in leases {
                    if SystemClock.now() >= lease.expires_at {
                        break; // Somebody else may have them.
                    }
                    let billed = bill(&lease.event).await;
                    settle(rheo, &lease, billed).await?;
                }
                Ok(())
            }
            Err(error) => Err(error),
        };
        match turn {
            // An ambiguous fetch may have leased something: that comes again when the leases end.
            Err(error) if may_pass(&error) => {
                eprintln!("trying again: {error}");
                let _ = timeout(PAUSE, stopped.changed()).await;
            }
            other => other?,
        }
    }
    Ok(())
}

/// Settles a lease: again while it did not happen, or nobody knows.
async fn settle(rheo: &Rheo, lease: &Lease, handled: Result<(), Trouble>) -> Result<()> {
    for _ in 0..5 {
        let settled = match &handled {
            Ok(()) => rheo.ack(lease).await,
            Err(Trouble::Passing(why)) => {
                let delay = Duration::from_secs(1 << lease.attempt.min(10));
                let options = RetryOptions::new().with_delay(RetryDelay::new(delay)?);
                let options = options.with_reason(Reason::new(why));
                rheo.retry(lease, &options).await.map(drop)
            }
            Err(Trouble::Lasting(why)) => rheo.reject(lease, why.as_str()).await,
        };
        match settled {
            // It did happen the time before, or the lease ended and somebody else has the event.
            Err(error) if error.is_lost() => return Ok(()),
            Err(error) if may_pass(&error) => {
                eprintln!("settling again: {error}");
                sleep(PAUSE).await;
            }
            other => return other,
        }
    }
    // The lease ends by itself, and the event comes again.
    Ok(())
}

/// Whether to try again: nothing happened, or at most what would have happened anyway.
fn may_pass(error: &Error) -> bool {
    error.is_retryable() || error.kind() == ErrorKind::Ambiguous
}
