//! Judging: runs cases against a harness and says what came of each. Prints nothing.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rheo_core::{Capabilities, Clock, Level, Rule, SystemClock, Timestamp};
use tokio::runtime::{Builder, Runtime};

use crate::case::{Applies, Case};
use crate::cases;
use crate::certificate::{
    BackendIdentity, CaseResult, Certificate, SCHEMA, SuiteIdentity, Summary, Verdict,
};
use crate::effort::Tally;
use crate::expect::{Failure, Outcome};
use crate::fixture::{Fixture, Trial};
use crate::ground::Grounded;
use crate::harness::{ClockControl, Harness, Namespace, Part, Server};
use crate::history::History;
use crate::panics::Watch;
use crate::report::Report;
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::suite_clock::{StoreClock, SuiteClock};

/// The suite on one harness.
pub struct Suite {
    harness: Arc<dyn Harness>,
    settings: Settings,
    /// What backends stand on, see [`Grounded`].
    ground: Option<Runtime>,
    tally: Arc<Tally>,
    /// Read by each case that runs, written by one that has to be alone.
    running: RwLock<()>,
    secrets: Arc<Secrets>,
    /// Where the backend panicked, by the names of the cases that failed of it.
    panicked: Mutex<BTreeMap<String, String>>,
}

/// What the suite knows of a backend before it runs a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// What it declares.
    pub capabilities: Capabilities,
    /// The server behind it.
    pub server: Option<Server>,
    /// The store's time, as far as the suite can tell; unused where the suite sets the clock.
    pub(crate) store_clock: StoreClock,
}

/// How long a case that does not yield may go on after its deadline before it is given up on.
const GRACE: Duration = Duration::from_secs(2);

impl Suite {
    /// The suite with settings.
    ///
    /// # Errors
    ///
    /// When the operating system gives no threads.
    pub fn new(harness: impl Harness, settings: Settings) -> std::io::Result<Self> {
        let ground = Builder::new_multi_thread().enable_all().build()?;
        Ok(Self {
            secrets: Arc::new(Secrets::new(harness.secrets())),
            harness: Arc::new(harness),
            settings,
            ground: Some(ground),
            tally: Arc::default(),
            running: RwLock::default(),
            panicked: Mutex::default(),
        })
    }

    /// The settings of this run.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The harness.
    pub fn harness(&self) -> &dyn Harness {
        &*self.harness
    }

    /// The secrets of the harness.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Where the backend panicked in a case, if it did and the case failed.
    pub(crate) fn place_of_panic(&self, case: &str) -> Option<String> {
        let panicked = self.panicked.lock();
        let panicked = panicked.unwrap_or_else(PoisonError::into_inner);
        panicked.get(case).cloned()
    }

    /// All cases of the suite, whatever a backend declares.
    pub fn cases() -> &'static [Case] {
        cases::all()
    }

    /// Opens a backend once to learn what it declares.
    ///
    /// # Errors
    ///
    /// A message when it cannot be opened, does not answer within the deadline, or panics.
    pub fn subject(&self) -> Result<Subject, String> {
        let opening = |harness: Arc<dyn Harness>| async move {
            let namespace = Namespace::unique();
            let backend = harness.open(&namespace, Arc::new(SystemClock)).await?;
            let capabilities = backend.capabilities();
            let server = harness.server().await?;
            let store_clock = match harness.clock_control() {
                ClockControl::Suite => StoreClock::default(),
                // A backend that cannot append fails its cases; its clock is of no interest then.
                ClockControl::Store => StoreClock::learn(&*backend).await.unwrap_or_default(),
            };
            let _ = backend.close().await;
            harness.discard(&namespace).await?;
            Ok(Subject {
                capabilities,
                server,
                store_clock,
            })
        };
        let opened: Result<Outcome<Subject>, Stop> =
            self.on_a_thread(self.settings.deadline, &Watch::default(), opening);
        match opened {
            Ok(Ok(subject)) => Ok(subject),
            Ok(Err(why)) => Err(self.secrets.masked(&why.to_string())),
            Err(stop) => Err(self.secrets.masked(&format!("opening the backend {stop}"))),
        }
    }

    /// Runs one case.
    pub fn judge(&self, case: &Case, subject: &Subject) -> CaseResult {
        let is_exercised = case.is_exercised_by(self.harness.clock_control());
        match case.applies_to(&subject.capabilities) {
            Applies::Runs if is_exercised => self.run(case, subject),
            Applies::Runs => {
                self.tally.lacks(Part::SuiteClock);
                let reason = "it sets the clock, and the clock is the store's own".to_owned();
                result(case, Verdict::NotExercised, Some(reason), Duration::ZERO)
            }
            Applies::NotDeclared(gate) => {
                let mut reason = format!("{} is not declared", gate.as_str());
                let mut duration = Duration::ZERO;
                if self.settings.audit && is_exercised {
                    let (audit, took) = self.audit(case, subject);
                    duration = took;
                    reason.push_str(audit.as_str());
                }
                result(case, Verdict::NotDeclared, Some(reason), duration)
            }
            Applies::No => {
                let reason = "it checks what is missing where something is not declared".to_owned();
                result(case, Verdict::NotDeclared, Some(reason), Duration::ZERO)
            }
        }
    }

    /// Runs all cases that the filter lets through, several at a time, and gives the certificate.
    ///
    /// # Errors
    ///
    /// As [`subject`](Self::subject).
    pub fn certify(&self, filter: impl Fn(&Case) -> bool + Sync) -> Result<Certificate, String> {
        let started = (SystemClock.now(), Instant::now());
        let subject = self.subject()?;
        let cases: Vec<&Case> = Self::cases()
            .iter()
            .filter(|case| case.applies_to(&subject.capabilities) != Applies::No && filter(case))
            .collect();
        let next = Mutex::new(cases.iter());
        let results = Mutex::new(Vec::new());
        let threads = std::thread::available_parallelism().map_or(2, |n| n.get());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let case = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some(case) = case else { break };
                        let judged = self.judge(case, &subject);
                        results
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(judged);
                    }
                });
            }
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(self.certificate(&subject, results, started))
    }

    /// Puts results into a certificate, in the order of the suite.
    pub(crate) fn certificate(
        &self,
        subject: &Subject,
        mut results: Vec<CaseResult>,
        started: (Timestamp, Instant),
    ) -> Certificate {
        let order = |name: &str| {
            Self::cases()
                .iter()
                .position(|case| case.full_name() == name)
        };
        results.sort_by_cached_key(|result| order(&result.name));
        let mut certificate = Certificate {
            schema: SCHEMA.to_owned(),
            suite: SuiteIdentity::current(),
            backend: BackendIdentity {
                name: self.harness.name().to_owned(),
                version: self.harness.version().to_owned(),
            },
            server: subject.server.clone(),
            capabilities: subject.capabilities.clone(),
            clock: self.harness.clock_control(),
            seed: self.settings.seed,
            budget: self.settings.budget,
            effort: self.tally.total(),
            not_exercised: self.tally.not_exercised(),
            started_at: started.0,
            duration_micros: micros(started.1.elapsed()),
            summary: Summary::of(&results),
            certified: false,
            cases: results,
        };
        certificate.certified = certificate.shortcomings().is_empty();
        certificate
    }

    fn run(&self, case: &Case, subject: &Subject) -> CaseResult {
        let started = Instant::now();
        let history = Arc::new(History::with(Arc::clone(&self.secrets)));
        let watch = Watch::default();
        let outcome = self.outcome_of(case, subject, &history, &watch);
        let duration = started.elapsed();
        let (verdict, reason) = self.verdict_on(case, outcome, &history, &watch);
        let reason = reason.map(|reason| self.secrets.masked(&reason));
        result(case, verdict, reason, duration)
    }

    /// Runs a case whose gate is not declared.
    fn audit(&self, case: &Case, subject: &Subject) -> (Audit, Duration) {
        let started = Instant::now();
        let audit = match self.outcome_of(case, subject, &Arc::default(), &Watch::default()) {
            Ok(Ok(())) => Audit::Passes,
            Ok(Err(Failure::Refused(_))) => Audit::Refused,
            _ => Audit::Fails,
        };
        (audit, started.elapsed())
    }

    fn outcome_of(
        &self,
        case: &Case,
        subject: &Subject,
        history: &Arc<History>,
        watch: &Watch,
    ) -> Result<Outcome, Stop> {
        let _turn = if case.is_alone() {
            let alone = self.running.write();
            (None, Some(alone.unwrap_or_else(PoisonError::into_inner)))
        } else {
            let beside = self.running.read();
            (Some(beside.unwrap_or_else(PoisonError::into_inner)), None)
        };
        let case_ = *case;
        let (namespace, history) = (Namespace::unique(), Arc::clone(history));
        let (store_clock, declared) = (subject.store_clock, subject.capabilities.clone());
        let trial = Trial {
            seed: self.seed_of(case),
            budget: self.settings.budget,
            tally: Arc::clone(&self.tally),
        };
        // What generates what it tries takes longer than a story of ten calls.
        let deadline = self.settings.deadline * if case.is_generated() { 6 } else { 1 };
        let trying = move |harness: Arc<dyn Harness>| async move {
            let clock = match harness.clock_control() {
                ClockControl::Suite => SuiteClock::manual()?,
                ClockControl::Store => SuiteClock::Store(store_clock),
            };
            let (to_open, name) = (Arc::clone(&harness), namespace.clone());
            let opened = Fixture::open(to_open, name, clock, history, trial).await;
            let fixture = opened.map_err(|why| Failure::not_opened(&why))?;
            let declares = fixture.capabilities();
            let outcome = if declares == declared {
                case_.start(fixture).await
            } else {
                // Which cases run was decided by another declaration.
                Err(Failure::declared_otherwise(&declares, &declared))
            };
            let discarded = harness.discard(&namespace).await;
            outcome?;
            Ok(discarded?)
        };
        self.on_a_thread(deadline * self.settings.budget.patience(), watch, trying)
    }

    fn verdict_on(
        &self,
        case: &Case,
        outcome: Result<Outcome, Stop>,
        history: &History,
        watch: &Watch,
    ) -> (Verdict, Option<String>) {
        let outcome = match history.leak() {
            Some(leak) => Ok(Err(Failure::leaked(leak))),
            None => outcome,
        };
        let noted = watch.latest();
        let panic = noted.as_ref().filter(|panic| !panic.is_of_the_suite);
        let hangs = matches!(outcome, Err(Stop::Hung(_) | Stop::Blocked(_)));
        let (mut rule, mut usually) = (case.rule(), None);
        let is_about_the_rule = match &outcome {
            Ok(Err(Failure::Broken { .. } | Failure::Refused(_))) => true,
            Err(Stop::Panicked(_)) => noted.is_some(),
            _ => false,
        };
        if is_about_the_rule && panic.is_none() {
            usually = Some(case.usual_cause());
        }
        let (expected, seen) = match outcome {
            Ok(Ok(())) => return (Verdict::Pass, None),
            Ok(Err(Failure::Undecided(why))) => return (Verdict::Unknown, Some(why)),
            Ok(Err(Failure::NotExercised(part))) => {
                self.tally.lacks(part);
                let reason = format!("the harness does not supply {}", part.method());
                return (Verdict::NotExercised, Some(reason));
            }
            Ok(Err(Failure::Broken { expected, seen })) => (expected, seen),
            Ok(Err(Failure::BrokenElsewhere(broken))) => {
                rule = Rule::find(broken.rule).unwrap_or(rule);
                usually = Some(broken.cause);
                (broken.expected, broken.seen)
            }
            Ok(Err(Failure::Refused(error))) => (
                "the last operation to succeed, since what it needs is declared".to_owned(),
                format!("Err({}): {error}", error.kind()),
            ),
            Ok(Err(Failure::Missing(part))) => (
                format!(
                    "the harness to supply {}, since what is declared can only be checked with it",
                    part.method()
                ),
                format!("no {}", part.method()),
            ),
            // Nothing of the backend panicked: it gave what a case takes for impossible.
            Err(Stop::Panicked(text)) if panic.is_none() && noted.is_some() => (
                "results that the case can go on with".to_owned(),
                format!("it cannot: {text}"),
            ),
            Err(Stop::Panicked(text)) => (
                "the case to end without a panic".to_owned(),
                format!("it panicked: {text}"),
            ),
            Err(stop) => (
                "the case to end before its deadline".to_owned(),
                format!("it {stop}"),
            ),
        };
        if let Some(panic) = panic {
            let panicked = self.panicked.lock();
            let mut panicked = panicked.unwrap_or_else(PoisonError::into_inner);
            panicked.insert(case.full_name(), panic.place.clone());
        }
        let report = Report {
            case,
            rule,
            expected,
            seen,
            usually,
            hangs,
            history,
            panic: noted.as_ref(),
            settings: &self.settings,
        };
        (Verdict::Fail, Some(report.to_string()))
    }

    /// Runs a future on threads of its own, so that one that blocks holds up no other, and gives up on
    /// it at the deadline. What it gets is the harness on the ground that all share.
    fn on_a_thread<T: Send + 'static, F: Future<Output = T> + Send>(
        &self,
        deadline: Duration,
        watch: &Watch,
        begin: impl FnOnce(Arc<dyn Harness>) -> F + Send + 'static,
    ) -> Result<T, Stop> {
        let Some(ground) = &self.ground else {
            return Err(Stop::Panicked("the suite is over".to_owned()));
        };
        let harness = Arc::new(Grounded::new(Arc::clone(&self.harness), ground.handle()));
        let (sender, receiver) = mpsc::sync_channel(1);
        let watch = watch.clone();
        let spawned = std::thread::Builder::new()
            .name("case".to_owned())
            .spawn(move || {
                let runtime = match case_runtime(&watch) {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        let _ = sender.send(Err(no_thread(&error)));
                        return;
                    }
                };
                let ran = watch.caught(|| {
                    runtime.block_on(async { tokio::time::timeout(deadline, begin(harness)).await })
                });
                let _ = sender.send(match ran {
                    Ok(Ok(value)) => Ok(value),
                    Ok(Err(_elapsed)) => Err(Stop::Hung(deadline)),
                    Err(panic) => Err(Stop::Panicked(panic)),
                });
                runtime.shutdown_background();
            });
        if let Err(error) = spawned {
            return Err(no_thread(&error));
        }
        match receiver.recv_timeout(deadline + GRACE) {
            Ok(stopped) => stopped,
            Err(RecvTimeoutError::Timeout) => Err(Stop::Blocked(deadline)),
            Err(RecvTimeoutError::Disconnected) => Err(Stop::Panicked("its thread ended".into())),
        }
    }

    fn seed_of(&self, case: &Case) -> u64 {
        case.full_name()
            .bytes()
            .fold(self.settings.seed, |seed, byte| {
                seed.wrapping_mul(31).wrapping_add(byte.into())
            })
    }
}

impl Drop for Suite {
    fn drop(&mut self) {
        // A case that was given up on may still be running: it must not hold up the end.
        if let Some(ground) = self.ground.take() {
            ground.shutdown_background();
        }
    }
}

/// The threads of one case, for the tasks that it makes.
fn case_runtime(watch: &Watch) -> std::io::Result<Runtime> {
    let watch = watch.clone();
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get());
    Builder::new_multi_thread()
        .worker_threads(threads.clamp(2, 4))
        .enable_all()
        .on_thread_start(move || watch.this_thread())
        .build()
}

fn no_thread(error: &std::io::Error) -> Stop {
    Stop::Panicked(format!("got no thread: {error}"))
}

/// What an audit finds of a case whose gate is not declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audit {
    Passes,
    /// The backend refuses what it does not declare, as it must (CAP-6).
    Refused,
    Fails,
}

impl Audit {
    /// What the reason of a case ends with.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Passes => "; audit: it would pass",
            Self::Refused => "; audit: it is refused",
            Self::Fails => "; audit: it would fail",
        }
    }
}

/// How a case stopped without an outcome.
#[derive(Debug, thiserror::Error)]
enum Stop {
    #[error("hangs: there was no answer within {0:?}")]
    Hung(Duration),
    #[error("hangs: after {0:?} it still blocks its thread without yielding")]
    Blocked(Duration),
    #[error("panicked: {0}")]
    Panicked(String),
}

fn result(case: &Case, verdict: Verdict, reason: Option<String>, duration: Duration) -> CaseResult {
    CaseResult {
        name: case.full_name(),
        group: case.group().to_owned(),
        rule: case.rule_id().to_owned(),
        level: case.level(),
        verdict,
        reason,
        duration_micros: micros(duration),
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Whether a verdict fails the certification.
pub(crate) fn fails(result: &CaseResult) -> bool {
    match result.verdict {
        Verdict::Pass | Verdict::NotDeclared | Verdict::NotExercised => false,
        Verdict::Unknown => true,
        Verdict::Fail => result.level == Level::Must,
    }
}
