//! Processes that work on a store and can be killed: the suite starts its own program again.

use std::env;
use std::io::{self, Write};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rheo_core::{
    Backend, Clock, ConsumerId, Event, FetchOptions, GroupName, Lease, ManualClock, NewEvent,
    StreamName, SystemClock, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::expect::{Failure, Outcome, broken};
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
    /// The same beside others.
    EverythingBeside,
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
    /// What else it says, to be shown when it ends by itself.
    said: JoinHandle<String>,
}

/// What a worker says is cut to this many bytes, the last ones.
const MOST_SAID: usize = 4_096;

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
        Task::Everything | Task::EverythingBeside => {
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
                .stderr(Stdio::piped())
                .kill_on_drop(true)
                .spawn()?;
            let no_output = || io::Error::other("no output");
            let out = child.stdout.take().ok_or_else(no_output)?;
            let errors = child.stderr.take().ok_or_else(no_output)?;
            Ok(Self {
                child,
                lines: BufReader::new(out).lines(),
                said: tokio::spawn(last_of(errors)),
            })
        };
        started().map_err(|error| Failure::Undecided(format!("no worker could start: {error}")))
    }

    /// What it tells next. One that ends by itself, in whatever way, fails the case with what it said.
    pub(crate) async fn told(&mut self) -> Outcome<Told> {
        match self.next().await? {
            Some(told) => Ok(told),
            None => Err(self.ended_by_itself().await),
        }
    }

    /// What it tells next; nothing when it has ended.
    async fn next(&mut self) -> Outcome<Option<Told>> {
        match self.next_of_any().await? {
            Some(Told::Failed(why)) => Err(broken("a worker's operations to succeed", why)),
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
        let was_at_work = self.end().await?;
        let mut told = Vec::new();
        while let Some(line) = self.next().await? {
            told.push(line);
        }
        match was_at_work {
            true => Ok(told),
            false => Err(self.ended_by_itself().await),
        }
    }

    /// As [`kill`](Self::kill), for one whose store went away, so that it may have failed before.
    pub(crate) async fn kill_cut_off(mut self) -> Outcome<Vec<Told>> {
        let was_at_work = self.end().await?;
        let mut told = Vec::new();
        while let Some(line) = self.next_of_any().await? {
            told.push(line);
        }
        let has_failed = told.iter().any(|told| matches!(told, Told::Failed(_)));
        match was_at_work || has_failed {
            true => Ok(told),
            false => Err(self.ended_by_itself().await),
        }
    }

    /// Ends it; whether it was still at work.
    async fn end(&mut self) -> Outcome<bool> {
        let cannot = |error| Failure::Undecided(format!("a worker cannot be killed: {error}"));
        if self.child.try_wait().map_err(cannot)?.is_some() {
            return Ok(false);
        }
        self.child.kill().await.map_err(cannot)?;
        let status = self.child.wait().await.map_err(cannot)?;
        // A process that was killed has no code, where the system tells that.
        Ok(cfg!(not(unix)) || status.code().is_none())
    }

    async fn ended_by_itself(&mut self) -> Failure {
        let status = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        // Should a process that it started hold the pipe, the output is not waited for.
        let said = tokio::time::timeout(Duration::from_secs(5), &mut self.said).await;
        let said = said.map_or_else(|_| String::new(), Result::unwrap_or_default);
        broken(
            "a worker to go on until it is killed",
            format!("it ended by itself ({status}), and said:\n{said}"),
        )
    }
}

/// Reads to the end, and gives the last of it.
async fn last_of(mut errors: ChildStderr) -> String {
    let (mut last, mut some) = (Vec::new(), [0; 1_024]);
    while let Ok(count @ 1..) = errors.read(&mut some).await {
        last.extend_from_slice(&some[..count]);
        let cut = last.len().saturating_sub(MOST_SAID);
        last.drain(..cut);
    }
    String::from_utf8_lossy(&last).into_owned()
}
