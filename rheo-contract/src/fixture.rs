//! What one case gets: the backend on record, the clock, further handles, and short ways to the usual steps.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rheo_core::{
    Backend, Capabilities, Clock, EventId, Guarantee, Lease, LeaseDuration, ManualClock, NewEvent,
    Timestamp,
};
use serde_json::json;
use tokio::task::JoinSet;

use crate::effort::{Budget, Tally};
use crate::expect::{Failure, Outcome, expect, expect_eq};
use crate::faults::FaultInjector;
use crate::harness::{Harness, HarnessError, Namespace, Opened, Part};
use crate::history::{History, in_strand};
use crate::recorder::Recorder;
use crate::suite_clock::SuiteClock;

/// Set where cargo-nextest gives each case a process, so that no case can be alone.
const EACH_CASE_A_PROCESS: &str = "NEXTEST";

/// Everything a case works with. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Fixture {
    /// The backend under test; every call is on record.
    pub(crate) backend: Recorder,
    shared: Arc<Shared>,
}

struct Shared {
    harness: Arc<dyn Harness>,
    namespace: Namespace,
    clock: SuiteClock,
    history: Arc<History>,
    numbers: AtomicU64,
    rng: Mutex<fastrand::Rng>,
    trial: Trial,
}

/// What a run gives each of its cases.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    /// The seed of the case.
    pub(crate) seed: u64,
    /// How much of what is generated it tries.
    pub(crate) budget: Budget,
    /// Where it counts that.
    pub(crate) tally: Arc<Tally>,
}

/// How long a lease lasts that the suite waits for: clearly shorter than the 30 s of the others.
const BRIEF_SET: Duration = Duration::from_secs(10);
/// The same where the time cannot be set.
const BRIEF_REAL: Duration = Duration::from_millis(600);
/// How much later than a real point in time the suite acts, so that the store is there too.
const MARGIN: Duration = Duration::from_millis(80);

impl Fixture {
    /// Opens the backend on a fresh namespace.
    pub(crate) async fn open(
        harness: Arc<dyn Harness>,
        namespace: Namespace,
        clock: SuiteClock,
        history: Arc<History>,
        trial: Trial,
    ) -> Result<Self, HarnessError> {
        let backend = harness.open(&namespace, clock.handed_out()).await?;
        Ok(Self {
            backend: Recorder::new("", backend, Arc::clone(&history)),
            shared: Arc::new(Shared {
                harness,
                namespace,
                clock,
                history,
                numbers: AtomicU64::new(1),
                rng: Mutex::new(fastrand::Rng::with_seed(trial.seed)),
                trial,
            }),
        })
    }

    /// What the backend declares.
    pub(crate) fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    // Input

    /// A number that this fixture has not given out yet: 1, 2, 3 …
    pub(crate) fn number(&self) -> u64 {
        self.shared.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// An event whose payload is like no other's.
    pub(crate) fn new_event(&self) -> NewEvent {
        let number = self.number();
        new_event("order.placed", json!({ "number": number }))
    }

    /// A random number below `bound`; the same for the same seed.
    pub(crate) fn random(&self, bound: u64) -> u64 {
        self.shared
            .rng
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .u64(0..bound)
    }

    /// An id that no event has.
    pub(crate) fn unknown_id(&self) -> EventId {
        EventId::generate(self.now())
    }

    // Effort

    /// How much of what is generated the case tries.
    pub(crate) fn budget(&self) -> Budget {
        self.shared.trial.budget
    }

    /// Counts what it tried.
    pub(crate) fn tally(&self) -> &Tally {
        &self.shared.trial.tally
    }

    /// Demands that the harness has named secrets, since there is nothing to look for otherwise.
    pub(crate) fn expect_secrets(&self) -> Outcome {
        if self.shared.history.secrets().is_empty() {
            self.tally().lacks(Part::Secrets);
            return Err(Failure::NotExercised(Part::Secrets));
        }
        Ok(())
    }

    /// Notes something in the history.
    pub(crate) fn note(&self, what: impl std::fmt::Display) {
        self.shared.history.note(what);
    }

    /// Begins the history again, since what was tried so far was fine.
    pub(crate) fn forget_history(&self) {
        self.shared.history.clear();
    }

    /// Does things at once, each of which is a strand of the history; their results, in order, or the
    /// failure of the first one in order that failed, whose strand is the history.
    pub(crate) async fn strands<T, Strand>(
        &self,
        strands: impl IntoIterator<Item = Strand>,
    ) -> Outcome<Vec<T>>
    where
        T: Send + 'static,
        Strand: Future<Output = Outcome<T>> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for (number, strand) in strands.into_iter().enumerate() {
            tasks.spawn(async move { (number, in_strand(number, strand).await) });
        }
        let mut results = BTreeMap::new();
        while let Some(joined) = tasks.join_next().await {
            let (number, outcome) = joined?;
            results.insert(number, outcome);
        }
        let results = results.into_iter();
        results
            .map(|(number, outcome)| self.of_strand(number, outcome))
            .collect()
    }

    fn of_strand<T>(&self, number: usize, outcome: Outcome<T>) -> Outcome<T> {
        outcome.inspect_err(|_| self.shared.history.show_strand(number))
    }

    // Time

    /// Whether the suite sets the time; else it is the store's own.
    pub(crate) fn sets_the_clock(&self) -> bool {
        matches!(self.shared.clock, SuiteClock::Manual(_))
    }

    /// The time now, as near as the suite knows it.
    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// The duration of a lease or a delay that the case will wait for.
    pub(crate) fn brief(&self) -> Duration {
        match self.shared.clock {
            SuiteClock::Manual(_) => BRIEF_SET,
            SuiteClock::Store(_) => BRIEF_REAL,
        }
    }

    /// [`brief`](Self::brief), for a lease.
    pub(crate) fn brief_lease(&self) -> LeaseDuration {
        LeaseDuration::new(self.brief()).unwrap_or_default()
    }

    /// The duration of leases that end while others race for them, where the time can be set; else
    /// of leases that outlast the case.
    pub(crate) fn lease_to_race(&self) -> LeaseDuration {
        if self.sets_the_clock() {
            self.brief_lease()
        } else {
            self.lasting_lease()
        }
    }

    /// The duration of leases that outlast the case, also in real time.
    pub(crate) fn lasting_lease(&self) -> LeaseDuration {
        LeaseDuration::new(Duration::from_secs(3_600)).unwrap_or_default()
    }

    /// Lets that much time pass.
    pub(crate) async fn pass(&self, duration: Duration) {
        self.until(self.now().saturating_add(duration)).await;
    }

    /// Lets time pass until exactly that moment; where it cannot be set, until a little later.
    pub(crate) async fn until(&self, moment: Timestamp) {
        match &self.shared.clock {
            SuiteClock::Manual(clock) => self.set(clock, moment),
            SuiteClock::Store(store) => {
                self.note_wait(moment);
                store.wait_until(moment.saturating_add(MARGIN)).await;
            }
        }
    }

    /// Lets time pass until the last microsecond before that moment; where it cannot be set, until
    /// clearly before.
    pub(crate) async fn until_just_before(&self, moment: Timestamp) {
        match &self.shared.clock {
            SuiteClock::Manual(clock) => {
                self.set(clock, moment.saturating_sub(Duration::from_micros(1)));
            }
            SuiteClock::Store(store) => {
                let before = moment.saturating_sub(BRIEF_REAL / 2);
                self.note_wait(before);
                store.wait_until(before).await;
            }
        }
    }

    /// Lets a lease end: from then on it is reclaimable.
    pub(crate) async fn let_lease_expire(&self, lease: &Lease) {
        self.until(lease.expires_at).await;
    }

    /// Puts the clock back.
    ///
    /// # Panics
    ///
    /// Where the clock is the store's own: the case does not say that it sets the clock.
    pub(crate) fn turn_back(&self, by: Duration) {
        match &self.shared.clock {
            SuiteClock::Manual(clock) => self.set(clock, clock.now().saturating_sub(by)),
            SuiteClock::Store(_) => panic!("the suite puts back a clock that it cannot set"),
        }
    }

    /// Puts the clock to a moment that is too far to wait for, where the suite can; tells whether it
    /// could.
    pub(crate) fn jump_to(&self, moment: Timestamp) -> bool {
        match &self.shared.clock {
            SuiteClock::Manual(clock) => {
                self.set(clock, moment);
                true
            }
            SuiteClock::Store(_) => false,
        }
    }

    /// Demands that a time the backend gave is now: exactly, or within a minute where the time is
    /// the store's.
    pub(crate) fn expect_now(&self, what: &str, seen: Timestamp) -> Outcome {
        let now = self.now();
        match self.shared.clock {
            SuiteClock::Manual(_) => expect_eq(what, seen, now),
            SuiteClock::Store(_) => {
                let off = seen.saturating_since(now).max(now.saturating_since(seen));
                expect(
                    off < Duration::from_secs(60),
                    format!("{what} to be about {now}"),
                    seen,
                )
            }
        }
    }

    fn set(&self, clock: &ManualClock, moment: Timestamp) {
        clock.set(moment);
        self.shared
            .history
            .note_for_all(format_args!("the clock is put to {moment}"));
    }

    fn note_wait(&self, moment: Timestamp) {
        self.shared
            .history
            .note(format_args!("wait until {moment}"));
    }

    // Further handles

    /// One more handle on the same namespace.
    pub(crate) async fn second_handle(&self) -> Outcome<Recorder> {
        self.second_handle_with(self.shared.clock.handed_out())
            .await
    }

    /// The same, with a clock of its own.
    pub(crate) async fn second_handle_with(&self, clock: Arc<dyn Clock>) -> Outcome<Recorder> {
        let Shared {
            harness, namespace, ..
        } = &*self.shared;
        let opened = harness.second_handle(namespace, clock).await;
        self.recorded("second: ", opened)
    }

    /// One more handle on the same namespace that has little of its own, or the first one where the
    /// harness has none.
    pub(crate) async fn narrow_handle(&self) -> Outcome<Recorder> {
        let Shared {
            harness,
            namespace,
            clock,
            ..
        } = &*self.shared;
        match harness.narrow_handle(namespace, clock.handed_out()).await {
            Err(HarnessError::NotSupplied(part)) => {
                self.tally().lacks(part);
                Ok(self.backend.clone())
            }
            opened => self.recorded("narrow: ", opened),
        }
    }

    /// One more handle on the same namespace, and what makes things go wrong for it.
    pub(crate) async fn faulty_handle(&self) -> Outcome<(Recorder, Arc<dyn FaultInjector>)> {
        let Shared {
            harness,
            namespace,
            clock,
            ..
        } = &*self.shared;
        match harness.open_faulty(namespace, clock.handed_out()).await {
            Err(HarnessError::NotSupplied(part)) => {
                self.tally().lacks(part);
                Err(Failure::NotExercised(part))
            }
            opened => {
                let (backend, injector) = opened?;
                Ok((self.recorded("faulty: ", Ok(backend))?, injector))
            }
        }
    }

    /// The namespace, for processes of the suite's own.
    pub(crate) fn namespace(&self) -> &Namespace {
        &self.shared.namespace
    }

    /// Opens the namespace again; its handles were closed before, or their store has gone.
    pub(crate) async fn opened_again(&self) -> Outcome<Recorder> {
        let Shared {
            harness,
            namespace,
            clock,
            ..
        } = &*self.shared;
        self.shared.history.note("open the namespace again");
        let opened = harness.reopen(namespace, clock.handed_out()).await;
        self.recorded("reopened: ", opened)
    }

    /// Kills the store and starts it again.
    pub(crate) async fn restart_store(&self) -> Outcome {
        let Shared {
            harness, namespace, ..
        } = &*self.shared;
        let restarted = match std::env::var_os(EACH_CASE_A_PROCESS) {
            Some(_) => Err(HarnessError::NotSupplied(Part::RestartStore)),
            None => harness.restart_store(namespace).await,
        };
        match restarted {
            Err(HarnessError::NotSupplied(part)) => {
                self.tally().lacks(part);
                Err(Failure::NotExercised(part))
            }
            restarted => {
                restarted?;
                self.shared
                    .history
                    .note("the store was killed and started again");
                Ok(())
            }
        }
    }

    /// A handle on the same namespace after the first one was closed.
    pub(crate) async fn reopen(&self) -> Outcome<Recorder> {
        self.backend.close().await?;
        self.opened_again().await
    }

    /// Closes a handle, which is or is not the only one, and gives another one in its place; the same one
    /// where the store lives and dies with it.
    pub(crate) async fn replaced(&self, handle: &Recorder, is_only: bool) -> Outcome<Recorder> {
        let Shared {
            harness,
            namespace,
            clock,
            history,
            ..
        } = &*self.shared;
        let declared = self.capabilities();
        let opened = if is_only && declared.guarantees(Guarantee::Durable) {
            handle.close().await?;
            history.note("open the namespace again");
            harness.reopen(namespace, clock.handed_out()).await
        } else if declared.guarantees(Guarantee::Distributed) {
            history.note("open a handle for the one that is closed now");
            let opened = harness.second_handle(namespace, clock.handed_out()).await;
            handle.close().await?;
            opened
        } else {
            return Ok(handle.clone());
        };
        self.recorded(handle.label(), opened)
    }

    /// A handle whose store cannot be reached.
    ///
    /// A store that lives and dies with the process (neither durable nor distributed) is gone when
    /// its handle is closed, so that is what stands in where the harness supplies nothing else.
    pub(crate) async fn unreachable(&self) -> Outcome<Recorder> {
        let Shared {
            harness,
            namespace,
            clock,
            ..
        } = &*self.shared;
        let mut opened = harness
            .open_unreachable(namespace, clock.handed_out())
            .await;
        let declared = self.capabilities();
        let outlives = [Guarantee::Durable, Guarantee::Distributed]
            .iter()
            .any(|guarantee| declared.guarantees(*guarantee));
        if matches!(opened, Err(HarnessError::NotSupplied(_))) && !outlives {
            self.backend.close().await?;
            opened = Ok(Arc::new(self.backend.clone()));
        }
        self.recorded("unreachable: ", opened)
    }

    fn recorded(&self, label: &'static str, opened: Opened) -> Outcome<Recorder> {
        Ok(Recorder::new(
            label,
            opened?,
            Arc::clone(&self.shared.history),
        ))
    }
}

/// An event of a type with a payload that are known to be valid.
///
/// # Panics
///
/// When they are not: a mistake in the suite.
#[track_caller]
pub(crate) fn new_event(event_type: &str, payload: serde_json::Value) -> NewEvent {
    match NewEvent::new(event_type, payload) {
        Ok(event) => event,
        Err(error) => panic!("the suite's own input is bad: {error}"),
    }
}
