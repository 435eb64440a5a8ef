//! Concurrent histories: many tasks at work on one stream, everything they did on record with its
//! start and end, and a checker that names what cannot have been.

mod check;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rheo_core::{
    Backend, Clock, ConsumerId, Error, Event, EventId, FetchOptions, Gate, Guarantee, Lag, Lease,
    LeaseDuration, ManualClock, NewEvent, OptionalOperation, Partition, ReadOptions, Reason,
    RetryOptions, Timestamp,
};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::expect::Outcome;
use crate::fixture::Fixture;
use crate::recorder::Recorder;
use crate::scene::{Group, finished};

/// Tasks that work at the same time.
const TASKS: usize = 8;
/// What each of them does in a round.
const STEPS: usize = 6;
/// Rounds; the clock moves between them.
const ROUNDS: usize = 8;

/// Something that was done, between two ticks of one counter for all tasks: what ended before another
/// thing started has the lower ticks.
#[derive(Debug, Clone)]
struct Done {
    started: u64,
    ended: u64,
    /// The time of the suite's clock, which stands still during a round.
    now: Timestamp,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Append(NewEvent, Result<Event, Error>),
    Fetch(Result<Vec<Lease>, Error>),
    Settle(Lease, How, Result<(), Error>),
    Read(Partition, Vec<Event>),
    Lag(Lag),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Ack,
    Reject,
    Retry,
    Renew(LeaseDuration),
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ack => f.write_str("ack"),
            Self::Reject => f.write_str("reject"),
            Self::Retry => f.write_str("retry"),
            Self::Renew(duration) => write!(f, "renew for {:?}", duration.as_duration()),
        }
    }
}

/// What the tasks of a history share.
struct Track {
    group: Group,
    handles: Vec<Recorder>,
    partitions: u32,
    ticks: AtomicU64,
    done: Mutex<Vec<Done>>,
    leases: Mutex<Vec<Lease>>,
}

/// Plays concurrent histories over one or two handles and checks each; the budget says how many.
pub(crate) async fn play(t: &Fixture, handles: Vec<Recorder>) -> Outcome {
    for _ in 0..t.budget().times(4) {
        t.forget_history();
        let track = Arc::new(Track::new(t, handles.clone()).await?);
        for _ in 0..ROUNDS {
            track.round(t).await?;
            track.move_the_clock(t).await;
        }
        track.check(t, Clocks::Agree).await?;
    }
    Ok(())
}

/// The same over two handles whose clocks differ, and jump.
pub(crate) async fn play_skewed(t: &Fixture) -> Outcome {
    let clock = Arc::new(ManualClock::new(t.now()));
    let other = t.second_handle_with(Arc::clone(&clock) as Arc<dyn Clock>);
    let handles = vec![t.backend.clone(), other.await?];
    for _ in 0..t.budget().times(4) {
        t.forget_history();
        let track = Arc::new(Track::new(t, handles.clone()).await?);
        for _ in 0..ROUNDS {
            let off = t.brief().mul_f64(t.random(300) as f64 / 100.0);
            let off_by = if t.random(2) == 0 {
                t.now().saturating_add(off)
            } else {
                t.now().saturating_sub(off)
            };
            clock.set(off_by);
            t.note(format_args!(
                "the clock of the second handle is put to {off_by}"
            ));
            track.round(t).await?;
            track.move_the_clock(t).await;
        }
        track.check(t, Clocks::Differ).await?;
    }
    Ok(())
}

/// Whether all handles went by the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clocks {
    Agree,
    /// Leases may end early or late by the difference (DST-1).
    Differ,
}

impl Track {
    async fn new(t: &Fixture, handles: Vec<Recorder>) -> Outcome<Self> {
        let partitions = if t.capabilities().guarantees(Guarantee::Partitions) {
            2
        } else {
            1
        };
        let stream = t.stream(partitions).await?;
        Ok(Self {
            group: stream.group_of_attempts("billing", 10_000).await?,
            handles,
            partitions,
            ticks: AtomicU64::new(0),
            done: Mutex::default(),
            leases: Mutex::default(),
        })
    }

    /// All tasks at once, from one barrier on.
    async fn round(self: &Arc<Self>, t: &Fixture) -> Outcome {
        let barrier = Arc::new(Barrier::new(TASKS));
        let contended = self.contended(t.now());
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let (track, t, barrier) = (Arc::clone(self), t.clone(), Arc::clone(&barrier));
            let contended = contended.clone().filter(|_| task % 2 == 0);
            let mut dice = fastrand::Rng::with_seed(t.random(u64::MAX));
            tasks.spawn(async move {
                barrier.wait().await;
                if let Some(lease) = contended {
                    track.settle_one(&t, task, &mut dice, lease).await;
                }
                for _ in 0..STEPS {
                    track.step(&t, task, &mut dice).await?;
                }
                Ok(())
            });
        }
        finished(tasks).await?;
        t.tally().interleaved_operations((TASKS * STEPS) as u64);
        Ok(())
    }

    async fn step(&self, t: &Fixture, task: usize, dice: &mut fastrand::Rng) -> Outcome {
        let backend = &self.handles[task % self.handles.len()];
        let (stream, group) = (&self.group.stream.name, &self.group.name);
        let partition = Partition::new(dice.u32(0..self.partitions));
        let started = self.tick();
        let now = t.now();
        let what = match dice.u32(0..14) {
            0..3 => {
                let id = EventId::generate(now);
                let event = t.new_event().with_id(id).with_partition(partition);
                What::Append(event.clone(), backend.append(stream, event).await)
            }
            3..6 => {
                let options = FetchOptions::new(ConsumerId::new(format!("task-{task}"))?)
                    .with_limit(dice.u32(1..4))
                    .with_lease_duration(t.lease_to_race());
                let fetched = backend.fetch(stream, group, &options).await;
                held(&self.leases).extend(fetched.iter().flatten().cloned());
                What::Fetch(fetched)
            }
            6..10 => match self.lease(dice) {
                None => return Ok(()),
                Some(lease) => {
                    self.settle_one(t, task, dice, lease).await;
                    return Ok(());
                }
            },
            10..12 => {
                let options = ReadOptions::new().with_partition(partition);
                let read = backend.read(stream, &options.with_limit(10_000)).await?;
                What::Read(partition, read)
            }
            _ if self.declares(Gate::Guarantee(Guarantee::ContiguousFrontier)) => {
                What::Lag(backend.lag(stream, group).await?)
            }
            _ => return Ok(()),
        };
        self.note(started, now, what);
        Ok(())
    }

    async fn settle_one(&self, t: &Fixture, task: usize, dice: &mut fastrand::Rng, lease: Lease) {
        let backend = &self.handles[task % self.handles.len()];
        let how = self.how(t, dice);
        let (started, now) = (self.tick(), t.now());
        let settled = settle(backend, &lease, how).await;
        self.note(started, now, What::Settle(lease, how, settled));
    }

    /// Notes what was done, which ends now.
    fn note(&self, started: u64, now: Timestamp, what: What) {
        let ended = self.tick();
        held(&self.done).push(Done {
            started,
            ended,
            now,
            what,
        });
    }

    /// A lease that ends at this moment, or the latest one: half of the tasks begin with it, while the
    /// others may reclaim it.
    fn contended(&self, now: Timestamp) -> Option<Lease> {
        let leases = held(&self.leases);
        let ends_now = leases.iter().rfind(|lease| lease.expires_at == now);
        ends_now.or(leases.last()).cloned()
    }

    /// One of the very latest leases, that others settle at this moment too, or a somewhat older one.
    fn lease(&self, dice: &mut fastrand::Rng) -> Option<Lease> {
        let leases = held(&self.leases);
        let latest = if dice.bool() { TASKS / 2 } else { 3 * TASKS };
        let from = leases.len().saturating_sub(latest);
        dice.choice(&leases[from..]).cloned()
    }

    fn how(&self, t: &Fixture, dice: &mut fastrand::Rng) -> How {
        match dice.u32(0..8) {
            0..3 => How::Ack,
            3 => How::Reject,
            4..6 => How::Retry,
            _ => How::Renew(t.lease_to_race()),
        }
    }

    /// To the very end of some lease, where the clock can be set: then it may be acked, renewed and
    /// reclaimed at the same moment.
    async fn move_the_clock(&self, t: &Fixture) {
        let lease = {
            let leases = held(&self.leases);
            let now = t.now();
            let ends = leases.iter().map(|lease| lease.expires_at);
            ends.filter(|end| *end > now).min()
        };
        if let Some(end) = lease.filter(|_| t.sets_the_clock()) {
            t.until(end).await;
        }
    }

    async fn check(&self, t: &Fixture, clocks: Clocks) -> Outcome {
        let mut log = Vec::new();
        for at in 0..self.partitions {
            log.push(self.group.stream.read(Partition::new(at)).await?);
        }
        let exact_lag = if self.declares(Gate::Guarantee(Guarantee::ContiguousFrontier)) {
            Some(self.group.lag().await?)
        } else {
            None
        };
        let dead = if self.declares(Gate::Operation(OptionalOperation::DeadLetters)) {
            Some(self.group.dead_letters().await?)
        } else {
            None
        };
        let mut rest = Vec::new();
        if t.sets_the_clock() {
            t.pass(Duration::from_secs(3_600)).await;
            rest = self.group.fetch_all("the rest").await?;
        }
        let done = std::mem::take(&mut *held(&self.done));
        let history = check::History::new(done, log, clocks);
        let result = history.check(
            exact_lag.as_ref(),
            dead.as_deref(),
            &rest,
            t.sets_the_clock(),
        );
        result.map_err(|anomaly| {
            t.forget_history();
            history.note(t, &anomaly.about);
            anomaly.failure
        })
    }

    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    fn declares(&self, gate: Gate) -> bool {
        gate.is_declared(&self.group.stream.t.capabilities())
    }
}

async fn settle(backend: &Recorder, lease: &Lease, how: How) -> Result<(), Error> {
    match how {
        How::Ack => backend.ack(lease).await,
        How::Reject => backend.reject(lease, &Reason::new("no good")).await,
        How::Retry => backend.retry(lease, &RetryOptions::new()).await.map(drop),
        How::Renew(duration) => backend.renew(lease, duration).await.map(drop),
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
