//! What the suite makes of backends and harnesses that hang, panic, or lack a part.

#[path = "proof/defect.rs"]
#[expect(dead_code, reason = "the proof uses the rest of it")]
mod defect;
#[path = "proof/journal.rs"]
#[expect(dead_code, reason = "the proof uses the rest of it")]
mod journal;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rheo_contract::{
    Budget, Case, CaseResult, ClockControl, Harness, HarnessError, Namespace, Opened, Settings,
    Suite, Verdict,
};
use rheo_core::{
    Backend, Cause, Clock, Error, Event, Gate, Guarantee, Lease, ReadOptions, Result, StreamName,
    async_trait,
};
use rheo_ets_like::MemoryBackend;

use crate::defect::{Defect, Real, SECRET, Wrapped};

/// A memory backend that says it is a server, with a defect in front.
struct Odd<D>(fn() -> D);

#[async_trait]
impl<D: Defect> Harness for Odd<D> {
    fn name(&self) -> &str {
        "odd"
    }

    fn version(&self) -> &str {
        "0"
    }

    async fn open(&self, _: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let backend: Arc<dyn Backend> = Arc::new(MemoryBackend::new(Arc::clone(&clock)));
        let real = Real {
            store: Arc::clone(&backend),
            backend,
            clock,
            journal: Arc::default(),
            beside: Arc::default(),
            handle: 0,
            pool: 1,
            late: Arc::default(),
        };
        Ok(Arc::new(Wrapped {
            real,
            defect: Box::new((self.0)()),
        }))
    }
}

/// Judges the first case that `which` names.
fn judge(harness: impl Harness, which: impl Fn(&Case) -> bool) -> CaseResult {
    let mut settings = Settings::default();
    settings.deadline = Duration::from_millis(500);
    judge_with(settings, harness, which)
}

fn judge_with(
    settings: Settings,
    harness: impl Harness,
    which: impl Fn(&Case) -> bool,
) -> CaseResult {
    let suite = Suite::new(harness, settings).expect("starts");
    let subject = suite.subject().expect("opens");
    let case = Suite::cases()
        .iter()
        .find(|case| which(case))
        .expect("is there");
    suite.judge(case, &subject)
}

fn acks(case: &Case) -> bool {
    case.full_name()
        .ends_with("a_replaced_lease_settles_nothing")
}

fn reason(result: &CaseResult) -> &str {
    result.reason.as_deref().unwrap_or_default()
}

struct Nothing;
impl Defect for Nothing {}

struct NeverAnswers;
#[async_trait]
impl Defect for NeverAnswers {
    async fn ack(&self, _: &Real, _: &Lease) -> Result<()> {
        std::future::pending().await
    }
}

struct Blocks;
#[async_trait]
impl Defect for Blocks {
    async fn ack(&self, _: &Real, _: &Lease) -> Result<()> {
        loop {
            std::thread::park();
        }
    }
}

struct Panics;
#[async_trait]
impl Defect for Panics {
    async fn ack(&self, _: &Real, _: &Lease) -> Result<()> {
        panic!("index out of bounds, say")
    }
}

#[test]
fn a_hang_is_a_named_failure() {
    let result = judge(Odd(|| NeverAnswers), acks);
    assert_eq!(result.verdict, Verdict::Fail);
    assert!(
        reason(&result).contains("there was no answer within 500ms"),
        "{}",
        reason(&result)
    );
    assert!(
        reason(&result).contains("-> no answer yet"),
        "{}",
        reason(&result)
    );
}

#[test]
fn what_hangs_is_named() {
    let result = judge(Odd(|| NeverAnswers), acks);
    let named = |line: &str| line.starts_with("waits in: 8. ack(p0#1 ");
    assert!(reason(&result).lines().any(named), "{}", reason(&result));
    assert!(!reason(&result).contains("after:"), "{}", reason(&result));
}

/// A backend that blocks every thread it gets fails what calls it, and nothing else.
#[test]
fn a_blocked_thread_holds_up_no_other_case() {
    let mut settings = Settings::default();
    settings.deadline = Duration::from_millis(500);
    let suite = Suite::new(Odd(|| Blocks), settings).expect("starts");
    let certificate = suite
        .certify(|case| {
            let races = case.rule_id() == "LSE-7" || case.full_name().contains("concurrent");
            let needs_more = |gate| {
                [Guarantee::Durable, Guarantee::Distributed]
                    .map(Gate::Guarantee)
                    .contains(&gate)
            };
            races && !case.is_generated() && !case.gates().any(needs_more)
        })
        .expect("opens");
    let failed: Vec<_> = certificate
        .cases
        .iter()
        .filter(|case| matches!(case.verdict, Verdict::Fail | Verdict::Unknown))
        .collect();
    assert!(!failed.is_empty() && failed.len() < certificate.cases.len());
    for case in failed {
        let waits = |line: &str| line.starts_with("waits in: ") && line.contains(". ack");
        assert!(reason(case).lines().any(waits), "{}", reason(case));
    }
}

#[test]
fn a_blocked_thread_is_given_up_on() {
    let started = Instant::now();
    let result = judge(Odd(|| Blocks), acks);
    assert_eq!(result.verdict, Verdict::Fail);
    assert!(
        reason(&result).contains("blocks its thread"),
        "{}",
        reason(&result)
    );
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_panic_is_a_failure_with_its_text() {
    let result = judge(Odd(|| Panics), acks);
    assert_eq!(result.verdict, Verdict::Fail);
    assert!(
        reason(&result)
            .contains("panicked: index out of bounds, say, at rheo-contract/tests/judging.rs:"),
        "{}",
        reason(&result)
    );
    // What usually breaks the rule is no help with a panic.
    assert!(!reason(&result).contains("usually:"), "{}", reason(&result));
}

/// A panic of a task that a case spawns is no riddle, and no case that could not be judged.
#[test]
fn a_panic_of_a_spawned_task_has_its_place() {
    struct NoIndexes;
    #[async_trait]
    impl Defect for NoIndexes {
        async fn ensure_indexes(&self, _: &Real) -> Result<()> {
            panic!("no such index")
        }
    }
    let at_once = |case: &Case| case.full_name().ends_with("made_by_several_at_once");
    let result = judge(Odd(|| NoIndexes), at_once);
    assert_eq!(result.verdict, Verdict::Fail);
    let panicked = "\npanicked: no such index, at rheo-contract/tests/judging.rs:";
    assert!(reason(&result).contains(panicked), "{}", reason(&result));
    assert!(!reason(&result).contains("usually:"), "{}", reason(&result));
}

/// Nobody reads a thousand lines to learn that a read gave nothing.
#[test]
fn of_a_large_difference_the_beginning_is_shown() {
    struct ReadsNothing;
    #[async_trait]
    impl Defect for ReadsNothing {
        async fn read(&self, _: &Real, _: &StreamName, _: &ReadOptions) -> Result<Vec<Event>> {
            Ok(Vec::new())
        }
    }
    for name in ["a_read_gives_1500_events", "a_read_gives_3_megabytes"] {
        let of_that_name = |case: &Case| case.full_name().ends_with(name);
        let result = judge_with(Settings::default(), Odd(|| ReadsNothing), of_that_name);
        assert_eq!(result.verdict, Verdict::Fail);
        let (lines, bytes) = (reason(&result).lines().count(), reason(&result).len());
        assert!(lines < 110 && bytes < 50_000, "{}", reason(&result));
    }
}

#[test]
fn the_command_that_repeats_a_case_has_its_settings() {
    let repeats = |result: &CaseResult| {
        let again = reason(result).lines().last().unwrap_or_default();
        let again = again.strip_prefix("again:    ").expect("it is last");
        again.to_owned()
    };
    let mut settings = Settings::default();
    (settings.seed, settings.budget) = (7, Budget::Quick);
    let again = repeats(&judge_with(settings.clone(), Odd(|| Panics), acks));
    assert!(again.starts_with("RHEO_SEED=7 cargo test -p "), "{again}");

    settings.deadline = Duration::from_secs(40);
    settings.audit = true;
    let races = |case: &Case| case.group() == "races";
    let again = repeats(&judge_with(settings, Odd(|| Panics), races));
    let expected = "RHEO_SEED=7 RHEO_BUDGET=quick RHEO_AUDIT=1 RHEO_DEADLINE=40 cargo test -p ";
    assert!(again.starts_with(expected), "{again}");
}

#[test]
fn a_missing_part_fails_and_says_what_to_supply() {
    for (guarantee, method) in [
        (Guarantee::Durable, "Harness::reopen"),
        (Guarantee::Distributed, "Harness::second_handle"),
    ] {
        let needs = |case: &Case| case.gates().any(|gate| gate == Gate::Guarantee(guarantee));
        let result = judge(Odd(|| Nothing), needs);
        assert_eq!(result.verdict, Verdict::Fail);
        let expected = format!("the harness to supply {method}");
        assert!(reason(&result).contains(&expected), "{}", reason(&result));
    }
}

#[test]
fn an_unreachable_store_must_be_supplied_by_what_outlives_its_handles() {
    let result = judge(Odd(|| Nothing), |case| {
        case.group() == "unavailable" && case.rule_id() == "ERR-4"
    });
    assert_eq!(result.verdict, Verdict::Fail);
    assert!(
        reason(&result).contains("open_unreachable"),
        "{}",
        reason(&result)
    );
}

/// Declares what no other handle of it does.
struct DeclaresOtherwise(AtomicUsize);

#[async_trait]
impl Harness for DeclaresOtherwise {
    fn name(&self) -> &str {
        "declares-otherwise"
    }

    fn version(&self) -> &str {
        "0"
    }

    async fn open(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        if self.0.fetch_add(1, Ordering::SeqCst) == 0 {
            return Odd(|| Nothing).open(namespace, clock).await;
        }
        Ok(Arc::new(MemoryBackend::new(clock)))
    }
}

#[test]
fn a_handle_that_declares_something_else_fails_its_case() {
    let result = judge(DeclaresOtherwise(0.into()), acks);
    assert_eq!(result.verdict, Verdict::Fail);
    assert!(
        reason(&result).starts_with("rule:     CAP-2 (MUST) "),
        "{}",
        reason(&result)
    );
}

/// A memory backend with a password, which it tells.
struct Tells(&'static [&'static str]);

#[async_trait]
impl Harness for Tells {
    fn name(&self) -> &str {
        "tells"
    }

    fn version(&self) -> &str {
        "0"
    }

    fn secrets(&self) -> Vec<String> {
        self.0.iter().map(|secret| (*secret).to_owned()).collect()
    }

    async fn open(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        struct Told;
        #[async_trait]
        impl Defect for Told {
            async fn ack(&self, _: &Real, _: &Lease) -> Result<()> {
                Err(Error::Failed(Cause::new(format!("{SECRET} is wrong"))))
            }
        }
        Odd(|| Told).open(namespace, clock).await
    }
}

#[test]
fn an_error_that_shows_a_secret_fails_its_case_and_is_masked() {
    let result = judge(Tells(&[SECRET]), acks);
    assert_eq!(result.verdict, Verdict::Fail);
    let reason = reason(&result);
    assert!(reason.starts_with("rule:     ERR-11 (MUST) "), "{reason}");
    assert!(reason.contains("its text shows one: 8. ack("), "{reason}");
    assert!(
        reason.contains("Err(Failed): it did not happen: *** is wrong"),
        "{reason}"
    );
    assert!(!reason.contains(SECRET), "{reason}");
}

#[test]
fn without_secrets_there_is_nothing_to_look_for() {
    let about_secrets = |case: &Case| case.rule_id() == "ERR-11";
    for secrets in [&[][..], &["abc"]] {
        let result = judge(Tells(secrets), about_secrets);
        assert_eq!(result.verdict, Verdict::NotExercised);
        assert!(
            reason(&result).contains("Harness::secrets"),
            "{}",
            reason(&result)
        );
    }
}

/// Its store knows its own time only.
struct StoreTime;

#[async_trait]
impl Harness for StoreTime {
    fn name(&self) -> &str {
        "store-time"
    }

    fn version(&self) -> &str {
        "0"
    }

    fn clock_control(&self) -> ClockControl {
        ClockControl::Store
    }

    async fn open(&self, _: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let backend: Arc<dyn Backend> = Arc::new(MemoryBackend::new(clock));
        Ok(backend)
    }
}

#[test]
fn what_sets_the_clock_is_not_exercised_where_it_is_the_stores_own() {
    let sets_the_clock = |case: &Case| !case.is_exercised_by(ClockControl::Store);
    let suite = Suite::new(StoreTime, Settings::default()).expect("starts");
    let certificate = suite.certify(sets_the_clock).expect("opens");
    assert!(certificate.summary.not_exercised >= 12);
    let summary = certificate.summary;
    let not_run = summary.not_exercised + summary.not_declared;
    assert_eq!(certificate.cases.len(), not_run);
    assert_eq!(certificate.not_exercised, ["ClockControl::Suite"]);
    let result = &certificate.cases[0];
    assert!(
        reason(result).contains("the clock is the store's own"),
        "{}",
        reason(result)
    );
}

/// Opens once, to say what it declares, and never again.
struct OpensOnce(std::sync::atomic::AtomicBool);

#[async_trait]
impl Harness for OpensOnce {
    fn name(&self) -> &str {
        "opens-once"
    }

    fn version(&self) -> &str {
        "0"
    }

    async fn open(&self, _: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        if self.0.swap(true, std::sync::atomic::Ordering::SeqCst) {
            return Err(HarnessError::Failed(
                "the server is out for lunch".to_owned(),
            ));
        }
        let backend: Arc<dyn Backend> = Arc::new(MemoryBackend::new(clock));
        Ok(backend)
    }
}

#[test]
fn a_failing_harness_makes_the_case_unknown_which_is_no_pass() {
    let harness = OpensOnce(false.into());
    let suite = Suite::new(harness, Settings::default()).expect("starts");
    let certificate = suite.certify(acks).expect("opens once");
    assert_eq!(certificate.summary.unknown, 1);
    assert!(!certificate.certified);
    let result = &certificate.cases[0];
    assert!(
        reason(result).contains("out for lunch"),
        "{}",
        reason(result)
    );
}

#[test]
fn a_failure_reads_like_a_bug_report() {
    struct AckIsFine;
    #[async_trait]
    impl Defect for AckIsFine {
        async fn ack(&self, _: &Real, _: &Lease) -> Result<()> {
            Ok(())
        }
    }
    let result = judge(Odd(|| AckIsFine), acks);
    let lines: Vec<&str> = reason(&result).lines().collect();
    assert!(
        lines[0].starts_with("rule:     LSE-2 (MUST) "),
        "{}",
        reason(&result)
    );
    assert_eq!(lines[1], "expected: Err(StaleLease)");
    assert_eq!(lines[2], "seen:     Ok");
    assert!(
        lines[3].starts_with("after:    8. ack(p0#1 ")
            && lines[3].contains(" on \"orders-1\"/\"billing\")"),
        "{}",
        reason(&result)
    );
    assert_eq!(lines[4], "history:");
    assert!(
        lines[5].starts_with("   1. create_stream("),
        "{}",
        reason(&result)
    );
    let ack = lines
        .iter()
        .rfind(|line| line.contains(". ack(p0#1 "))
        .expect("is noted");
    assert!(ack.ends_with("-> Ok"), "{ack}");
    assert!(
        lines[lines.len() - 2].starts_with("usually:  "),
        "{}",
        reason(&result)
    );
    let again = lines[lines.len() - 1];
    assert!(
        again.contains("RHEO_SEED=") && again.contains(&format!("--exact {}", result.name)),
        "{again}"
    );
}
