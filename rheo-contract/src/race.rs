//! Concurrent histories: many tasks at work on one stream, everything they did on record with its
//! start and end, and a checker that names what cannot have been.

mod back;
mod check;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rheo_core::{
    Backend, Clock, ConsumerId, Direction, Error, Event, EventId, EventKey, FetchOptions, Gate,
    GroupName, Guarantee, JsonObject, Lag, Lease, LeaseDuration, ManualClock, NewEvent,
    OptionalOperation, OrderBy, Partition, Query, ReadOptions, Reason, Replay, ResetOptions,
    RetryDelay, RetryOptions, RetryOutcome, Timestamp,
};
use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::describe::Brief;
use crate::expect::{Outcome, expect};
use crate::fixture::Fixture;
use crate::recorder::Recorder;
use crate::scene::{Group, Stream, finished};

/// Tasks that work at the same time.
const TASKS: usize = 8;
/// What each of them does in a round.
const STEPS: usize = 6;
/// Rounds; the clock moves between them.
const ROUNDS: usize = 10;
/// In one round of so many one task alone fetches, so that what is claimable stays so meanwhile.
const ALONE_EVERY: usize = 4;
/// How often an event is handed out, in one history after the other: as good as always, so that it is
/// reclaimed again and again, or twice, so that it dies of it.
const ATTEMPTS: [u32; 3] = [MANY, 2, MANY];
/// How many histories a case plays.
const HISTORIES: usize = 6;
const MANY: u32 = 10_000;
/// How often a task goes back, where it does: once in so many steps.
const BACK_EVERY: u32 = 16;
/// Why events are rejected.
const REJECTED: &str = "no good";

/// Something that was done, between two ticks of one counter for all tasks: what ended before another
/// thing started has the lower ticks.
#[derive(Debug, Clone)]
struct Done {
    started: u64,
    ended: u64,
    /// The time of the suite's clock, which stands still during a round.
    now: Timestamp,
    /// The group that it was done to, unless it was done to the stream.
    group: Option<GroupName>,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Append(NewEvent, Result<Event, Error>),
    Fetch(FetchOptions, Result<Vec<Lease>, Error>),
    Settle(Lease, How, Result<Settled, Error>),
    Read(Partition, Vec<Event>),
    /// All pages, one after the other.
    Query(Query, Vec<Vec<Event>>),
    Lag(Lag),
    Replay(Replay, Result<(), Error>),
    Reset(ResetOptions, Result<(), Error>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Ack,
    Reject,
    Retry(RetryDelay),
    Renew(LeaseDuration),
}

/// What a task does in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Everything.
    All,
    /// It is the only one that fetches, and does so more often.
    Fetcher,
    /// Everything else.
    Others,
}

impl Role {
    fn of(task: usize, round: usize) -> Self {
        match (
            round % ALONE_EVERY + 1 == ALONE_EVERY,
            task == round % TASKS,
        ) {
            (false, _) => Self::All,
            (true, true) => Self::Fetcher,
            (true, false) => Self::Others,
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ack => f.write_str("ack"),
            Self::Reject => f.write_str("reject"),
            Self::Retry(RetryDelay::NONE) => f.write_str("retry"),
            Self::Retry(delay) => write!(f, "retry after {:?}", delay.as_duration()),
            Self::Renew(duration) => write!(f, "renew for {:?}", duration.as_duration()),
        }
    }
}

/// What a settle or a renewal answers.
#[derive(Debug, Clone)]
enum Settled {
    Done,
    Retried(RetryOutcome),
    Renewed(Lease),
}

impl Brief for Settled {
    fn brief(&self) -> String {
        match self {
            Self::Done => String::new(),
            Self::Retried(outcome) => format!("{outcome:?}"),
            Self::Renewed(lease) => lease.brief(),
        }
    }
}

/// What the tasks of a history share.
struct Track {
    /// On one stream, and worked for by all tasks.
    groups: Vec<Group>,
    /// Whether its groups are replayed and reset.
    goes_back: bool,
    attempts: u32,
    handles: Vec<Recorder>,
    partitions: u32,
    ticks: AtomicU64,
    done: Mutex<Vec<Done>>,
    leases: Mutex<Vec<Lease>>,
}

/// Plays concurrent histories over one or two handles and checks each; the budget says how many.
pub(crate) async fn play(t: &Fixture, handles: Vec<Recorder>) -> Outcome {
    for number in 0..t.budget().times(HISTORIES) {
        t.forget_history();
        let track = Track::new(t, handles.clone(), number, &["billing"]).await?;
        Arc::new(track).play(t).await?;
    }
    Ok(())
}

/// The same with two groups that are replayed and reset meanwhile.
pub(crate) async fn play_back_and_forth(t: &Fixture, handles: Vec<Recorder>) -> Outcome {
    for number in 0..t.budget().times(HISTORIES) {
        t.forget_history();
        let track = Track::new(t, handles.clone(), number, &["billing", "shipping"]).await?;
        let track = Track {
            goes_back: true,
            ..track
        };
        Arc::new(track).play(t).await?;
    }
    Ok(())
}

/// The same over two handles whose clocks differ, and jump.
pub(crate) async fn play_skewed(t: &Fixture) -> Outcome {
    let clock = Arc::new(ManualClock::new(t.now()));
    let other = t.second_handle_with(Arc::clone(&clock) as Arc<dyn Clock>);
    let handles = vec![t.backend.clone(), other.await?];
    for number in 0..t.budget().times(HISTORIES) {
        t.forget_history();
        let track = Arc::new(Track::new(t, handles.clone(), number, &["billing"]).await?);
        for round in 0..ROUNDS {
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
            track.round(t, round).await?;
            track.move_the_clock(t).await;
        }
        track.check(t, Clocks::Differ).await?;
    }
    Ok(())
}

/// Whether all handles went by the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clocks {
    /// They did, and the suite knows it exactly.
    Agree,
    /// They went by the store's, which the suite knows about.
    Stores,
    /// Leases may end early or late by the difference (DST-1).
    Differ,
}

impl Track {
    async fn new(
        t: &Fixture,
        handles: Vec<Recorder>,
        number: usize,
        names: &[&str],
    ) -> Outcome<Self> {
        let partitions = if t.capabilities().guarantees(Guarantee::Partitions) {
            2
        } else {
            1
        };
        let stream = t.stream(partitions).await?;
        let attempts = ATTEMPTS[number % ATTEMPTS.len()];
        let mut groups = Vec::new();
        for name in names {
            groups.push(stream.group_of_attempts(name, attempts).await?);
        }
        Ok(Self {
            groups,
            goes_back: false,
            attempts,
            handles,
            partitions,
            ticks: AtomicU64::new(0),
            done: Mutex::default(),
            leases: Mutex::default(),
        })
    }

    /// Some rounds with time in between, and what can be said of them.
    async fn play(self: Arc<Self>, t: &Fixture) -> Outcome {
        for round in 0..ROUNDS {
            self.round(t, round).await?;
            self.move_the_clock(t).await;
        }
        let clocks = if t.sets_the_clock() {
            Clocks::Agree
        } else {
            Clocks::Stores
        };
        self.check(t, clocks).await
    }

    /// All tasks at once, from one barrier on.
    async fn round(self: &Arc<Self>, t: &Fixture, round: usize) -> Outcome {
        let barrier = Arc::new(Barrier::new(TASKS));
        let contended = self.contended(t.now());
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let (track, t, barrier) = (Arc::clone(self), t.clone(), Arc::clone(&barrier));
            let contended = contended
                .clone()
                .filter(|_| task % 2 == 0 || self.goes_back && task == 1);
            let role = Role::of(task, round);
            let mut dice = fastrand::Rng::with_seed(t.random(u64::MAX));
            tasks.spawn(async move {
                barrier.wait().await;
                match contended {
                    Some(lease) if task % 2 == 1 => {
                        track.go_back(&t, task, &mut dice, lease).await?
                    }
                    Some(lease) => track.settle_one(&t, task, &mut dice, lease).await,
                    None => {}
                }
                for _ in 0..STEPS {
                    track.step(&t, task, role, &mut dice).await?;
                }
                Ok(())
            });
        }
        finished(tasks).await?;
        t.tally().interleaved_operations((TASKS * STEPS) as u64);
        Ok(())
    }

    async fn step(
        &self,
        t: &Fixture,
        task: usize,
        role: Role,
        dice: &mut fastrand::Rng,
    ) -> Outcome {
        let backend = &self.handles[task % self.handles.len()];
        let group = match &self.groups[..] {
            [group] => group,
            groups => &groups[dice.usize(0..groups.len())],
        };
        let (stream, group) = (&group.stream.name, &group.name);
        let partition = Partition::new(dice.u32(0..self.partitions));
        if self.goes_back && dice.u32(0..BACK_EVERY) == 0 {
            return match self.lease(dice) {
                Some(lease) => self.go_back(t, task, dice, lease).await,
                None => Ok(()),
            };
        }
        let started = self.tick();
        let now = t.now();
        let scans = self.declares(Gate::Guarantee(Guarantee::OrderedRangeScan));
        let lags = self.declares(Gate::Guarantee(Guarantee::ContiguousFrontier));
        let what = match dice.u32(0..16) {
            _ if role == Role::Fetcher && dice.bool() => {
                self.fetch(t, backend, group, task, dice).await?
            }
            0..3 => {
                let event = event(t, dice)?.with_partition(partition);
                What::Append(event.clone(), backend.append(stream, event).await)
            }
            3..6 if role != Role::Others => self.fetch(t, backend, group, task, dice).await?,
            3..10 => match self.lease(dice) {
                None => return Ok(()),
                Some(lease) => {
                    self.settle_one(t, task, dice, lease).await;
                    return Ok(());
                }
            },
            10..12 if scans => {
                let query = query(partition, dice);
                let pages = self.pages(backend, &query).await?;
                What::Query(query, pages)
            }
            12..14 if lags => What::Lag(backend.lag(stream, group).await?),
            _ => {
                let options = ReadOptions::new().with_partition(partition);
                let read = backend.read(stream, &options.with_limit(10_000)).await?;
                What::Read(partition, read)
            }
        };
        let group = match what {
            What::Fetch(..) | What::Lag(_) => Some(group),
            _ => None,
        };
        self.note(started, now, group, what);
        Ok(())
    }

    /// From all partitions, or now and then from one alone.
    async fn fetch(
        &self,
        t: &Fixture,
        backend: &Recorder,
        group: &GroupName,
        task: usize,
        dice: &mut fastrand::Rng,
    ) -> Outcome<What> {
        let mut options = FetchOptions::new(ConsumerId::new(format!("task-{task}"))?)
            .with_limit(dice.u32(1..4))
            .with_lease_duration(self.duration(t, dice)?);
        if dice.u32(0..4) == 0 {
            options = options.with_partitions(Partition::new(dice.u32(0..self.partitions)));
        }
        let fetched = backend.fetch(&self.stream().name, group, &options).await;
        held(&self.leases).extend(fetched.iter().flatten().cloned());
        Ok(What::Fetch(options, fetched))
    }

    /// What a query gives, page by page.
    async fn pages(&self, backend: &Recorder, query: &Query) -> Outcome<Vec<Vec<Event>>> {
        const MOST: usize = TASKS * STEPS * ROUNDS;
        let (mut query, mut pages) = (query.clone(), Vec::new());
        loop {
            let page = backend.query(&self.stream().name, &query).await?;
            pages.push(page.events);
            match page.next {
                Some(next) => query = query.with_cursor(next),
                None => return Ok(pages),
            }
            expect(
                pages.len() < MOST,
                "paging to come to an end (QRY-3)",
                format_args!("{MOST} pages with a next one"),
            )?;
        }
    }

    async fn settle_one(&self, t: &Fixture, task: usize, dice: &mut fastrand::Rng, lease: Lease) {
        let backend = &self.handles[task % self.handles.len()];
        let how = how(t, dice);
        let (started, now) = (self.tick(), t.now());
        let settled = settle(backend, &lease, how).await;
        let group = lease.group.clone();
        self.note(
            started,
            now,
            Some(&group),
            What::Settle(lease, how, settled),
        );
    }

    /// Notes what was done, which ends now.
    fn note(&self, started: u64, now: Timestamp, group: Option<&GroupName>, what: What) {
        let ended = self.tick();
        held(&self.done).push(Done {
            started,
            ended,
            now,
            group: group.cloned(),
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

    /// For how long a fetch claims: always the same where leases race for their end again and again, else
    /// sometimes for longer.
    fn duration(&self, t: &Fixture, dice: &mut fastrand::Rng) -> Outcome<LeaseDuration> {
        let usual = t.lease_to_race();
        if self.attempts == MANY || dice.u32(0..4) > 0 {
            return Ok(usual);
        }
        Ok(LeaseDuration::new(usual.as_duration().mul_f64(1.5))?)
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
            log.push(self.stream().read(Partition::new(at)).await?);
        }
        if t.sets_the_clock() {
            t.pass(Duration::from_secs(3_600)).await;
        }
        let mut done = std::mem::take(&mut *held(&self.done));
        done.sort_by_key(|done| done.started);
        for group in &self.groups {
            let is_of = |done: &&Done| done.group.as_ref().is_none_or(|name| *name == group.name);
            let history = check::History {
                stream: self.stream().name.clone(),
                group: group.name.clone(),
                goes_back: self.goes_back,
                attempts: self.attempts,
                clocks,
                done: done.iter().filter(is_of).cloned().collect(),
                log: log.clone(),
                end: self.end(t, group).await?,
            };
            if let Some(anomaly) = history.first_anomaly()? {
                t.forget_history();
                history.note(t, &anomaly.about);
                return Err(anomaly.failure());
            }
        }
        Ok(())
    }

    /// What is there of a group when all is over.
    async fn end(&self, t: &Fixture, group: &Group) -> Outcome<check::End> {
        let mut end = check::End::new(t.now());
        if t.sets_the_clock() {
            end.rest = Some(group.fetch_all("the rest").await?);
        }
        if self.declares(Gate::Guarantee(Guarantee::ContiguousFrontier)) {
            end.lag = Some(group.lag().await?);
        }
        if self.declares(Gate::Operation(OptionalOperation::DeadLetters)) {
            end.dead = Some(group.dead_letters().await?);
        }
        Ok(end)
    }

    fn stream(&self) -> &Stream {
        &self.groups[0].stream
    }

    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    fn declares(&self, gate: Gate) -> bool {
        gate.is_declared(&self.stream().t.capabilities())
    }
}

/// An event that has something of its own in all that an append may be given.
fn event(t: &Fixture, dice: &mut fastrand::Rng) -> Outcome<NewEvent> {
    let mut event = t.new_event().with_id(EventId::generate(t.now()));
    if dice.bool() {
        event = event.with_key(EventKey::new(format!("key-{}", t.number()))?);
    }
    if dice.bool() {
        event = event.with_metadata(JsonObject::metadata(json!({ "trace": t.number() }))?);
    }
    Ok(event)
}

/// Of one partition or of all of them, in any order, in a few pages or in one.
fn query(partition: Partition, dice: &mut fastrand::Rng) -> Query {
    let mut query = Query::new().with_limit(if dice.bool() { 16 } else { 10_000 });
    if dice.bool() {
        query = query.with_partition(partition);
    }
    if dice.u32(0..4) == 0 {
        query = query.with_order_by(OrderBy::Timestamp);
    }
    if dice.bool() {
        query = query.with_direction(Direction::Descending);
    }
    query
}

/// A retry waits now and then where the suite sets the time: until a lease ends that was claimed now, or for
/// half as long.
fn how(t: &Fixture, dice: &mut fastrand::Rng) -> How {
    match dice.u32(0..8) {
        0..3 => How::Ack,
        3 => How::Reject,
        4..6 if t.sets_the_clock() && dice.u32(0..4) == 0 => {
            let part = if dice.bool() { 1 } else { 2 };
            How::Retry(RetryDelay::new(t.brief() / part).unwrap_or_default())
        }
        4..6 => How::Retry(RetryDelay::NONE),
        _ => How::Renew(t.lease_to_race()),
    }
}

async fn settle(backend: &Recorder, lease: &Lease, how: How) -> Result<Settled, Error> {
    match how {
        How::Ack => backend.ack(lease).await.map(|()| Settled::Done),
        How::Reject => {
            let rejected = backend.reject(lease, &Reason::new(REJECTED)).await;
            rejected.map(|()| Settled::Done)
        }
        How::Retry(delay) => {
            let options = RetryOptions::new().with_delay(delay);
            let retried = backend.retry(lease, &options).await;
            retried.map(Settled::Retried)
        }
        How::Renew(duration) => {
            let renewed = backend.renew(lease, duration).await;
            renewed.map(Settled::Renewed)
        }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
