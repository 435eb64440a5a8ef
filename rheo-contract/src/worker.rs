//! Processes that work on a store and can be killed: the suite starts its own program again.

use std::env;
use std::io::{self, Write};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rheo_core::{
    Backend, Clock, ConsumerId, Event, FetchOptions, GroupName, Lease, ManualClock, NewEvent,
    StreamName, SystemClock, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::expect::{Failure, Outcome};
use crate::harness::{Harness, Namespace};

/// The variable that makes the program a worker.
const VARIABLE: &str = "RHEO_CONTRACT_WORKER";
/// What the lines that a worker means begin with, since a backend may print as well.
const MARK: &str = "rheo-worker ";

/// Whether this program becomes a worker when it is started with an order.
static CAN_BE_STARTED: AtomicBool = AtomicBool::new(false);

/// What a worker shall do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) namespace: Namespace,
    pub(crate) stream: StreamName,
    pub(crate) group: GroupName,
    pub(crate) consumer: ConsumerId,
    /// The time at which its clock stands still, where the suite sets the clock.
    pub(crate) now: Option<Timestamp>,
    pub(crate) task: Task,
}

/// What kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Task {
    /// On the store alone: appends, fetches, and acks one of two, until it is killed.
    Everything,
    /// Beside others: fetches that many events, and holds them until it is killed.
    Hold(u32),
    /// Beside others: fetches and acks until nothing is left.
    Drain,
}

/// What a worker tells: each is confirmed when it is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Told {
    Appended(Event),
    Leased(Vec<Lease>),
    Acked(Lease),
    Failed(String),
    Finished,
}

/// A worker that was started; it is killed when this is dropped.
pub(crate) struct Worker {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// In a process that was started as a worker: does the work and gives the exit code.
pub(crate) fn serve_if_asked(harness: &dyn Harness) -> Option<ExitCode> {
    CAN_BE_STARTED.store(true, Ordering::Relaxed);
    let order = env::var(VARIABLE).ok()?;
    let served = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(serve(harness, &order)));
    match served {
        Ok(()) => tell(&Told::Finished),
        Err(why) => tell(&Told::Failed(why)),
    }
    Some(ExitCode::SUCCESS)
}

async fn serve(harness: &dyn Harness, order: &str) -> Result<(), String> {
    let order: Order = serde_json::from_str(order).map_err(|error| error.to_string())?;
    let clock: Arc<dyn Clock> = match order.now {
        Some(now) => Arc::new(ManualClock::new(now)),
        None => Arc::new(SystemClock),
    };
    let opened = match order.task {
        Task::Everything => harness.reopen(&order.namespace, clock).await,
        _ => harness.second_handle(&order.namespace, clock).await,
    };
    let backend = opened.map_err(|error| error.to_string())?;
    let worked = work(&*backend, &order).await;
    worked.map_err(|error| format!("{}: {error}", error.kind()))
}

async fn work(backend: &dyn Backend, order: &Order) -> rheo_core::Result<()> {
    let (stream, group) = (&order.stream, &order.group);
    let fetch = FetchOptions::new(order.consumer.clone());
    match order.task {
        Task::Everything => {
            for number in 0_u64.. {
                let event = NewEvent::new("worked", json!({ "number": number }))?;
                tell(&Told::Appended(backend.append(stream, event).await?));
                if number % 2 == 1 {
                    let leases = backend
                        .fetch(stream, group, &fetch.clone().with_limit(2))
                        .await?;
                    tell(&Told::Leased(leases.clone()));
                    if let Some(first) = leases.into_iter().next() {
                        backend.ack(&first).await?;
                        tell(&Told::Acked(first));
                    }
                }
            }
        }
        Task::Hold(count) => {
            let leases = backend
                .fetch(stream, group, &fetch.with_limit(count))
                .await?;
            tell(&Told::Leased(leases));
            std::future::pending::<()>().await;
        }
        Task::Drain => loop {
            let leases = backend
                .fetch(stream, group, &fetch.clone().with_limit(3))
                .await?;
            if leases.is_empty() {
                break;
            }
            for lease in leases {
                backend.ack(&lease).await?;
                tell(&Told::Acked(lease));
            }
        },
    }
    Ok(())
}

/// Writes a line whole: a line that is there was meant.
fn tell(told: &Told) {
    let line = serde_json::to_string(told).unwrap_or_default();
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{MARK}{line}").and_then(|()| out.flush());
    if written.is_err() {
        // Nobody listens any more.
        std::process::exit(1);
    }
}

impl Worker {
    /// Starts one.
    pub(crate) fn start(order: &Order) -> Outcome<Self> {
        if !CAN_BE_STARTED.load(Ordering::Relaxed) {
            let why = "processes are started only by a test target that calls `rheo_contract::run`";
            return Err(Failure::Undecided(why.to_owned()));
        }
        let started = || -> io::Result<Self> {
            let mut child = Command::new(env::current_exe()?)
                .env(VARIABLE, serde_json::to_string(order)?)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()?;
            let out = child.stdout.take();
            let out = out.ok_or_else(|| io::Error::other("no standard output"))?;
            Ok(Self {
                child,
                lines: BufReader::new(out).lines(),
            })
        };
        started().map_err(|error| Failure::Undecided(format!("no worker could start: {error}")))
    }

    /// What it tells next; nothing when it has ended.
    pub(crate) async fn next(&mut self) -> Outcome<Option<Told>> {
        match self.next_of_any().await? {
            Some(Told::Failed(why)) => Err(crate::expect::broken(
                "a worker's operations to succeed",
                why,
            )),
            told => Ok(told),
        }
    }

    /// As [`next`](Self::next), and a failure is just told.
    async fn next_of_any(&mut self) -> Outcome<Option<Told>> {
        loop {
            let line = self.lines.next_line().await;
            let line = line.map_err(|error| Failure::Undecided(error.to_string()))?;
            let Some(line) = line else {
                return Ok(None);
            };
            // A line that the kill cut in two was not told.
            if let Some(Ok(told)) = line.strip_prefix(MARK).map(serde_json::from_str) {
                return Ok(Some(told));
            }
        }
    }

    /// Kills it with SIGKILL and gives what it had told before.
    pub(crate) async fn kill(mut self) -> Outcome<Vec<Told>> {
        self.end().await?;
        let mut told = Vec::new();
        while let Some(line) = self.next().await? {
            told.push(line);
        }
        Ok(told)
    }

    /// As [`kill`](Self::kill), for one whose store went away, so that it may have failed before.
    pub(crate) async fn kill_cut_off(mut self) -> Outcome<Vec<Told>> {
        self.end().await?;
        let mut told = Vec::new();
        while let Some(line) = self.next_of_any().await? {
            told.push(line);
        }
        Ok(told)
    }

    async fn end(&mut self) -> Outcome {
        let killed = self.child.kill().await;
        killed.map_err(|error| Failure::Undecided(format!("a worker cannot be killed: {error}")))
    }
}
