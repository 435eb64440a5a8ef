//! The suite as a test target: libtest-mimic in front, the certificate behind.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use rheo_core::{Clock, Gate, SystemClock};

use crate::broken_rules::{broken_rules, counted, was_judged};
use crate::case::{Applies, Case};
use crate::certificate::{self, CaseResult, Verdict};
use crate::harness::Harness;
use crate::secrets;
use crate::settings::Settings;
use crate::suite::{Audit, Subject, Suite, fails};
use crate::worker;

/// The exit code when the settings are wrong or the backend could not be opened.
pub const EXIT_NOT_STARTED: u8 = 2;
/// The exit code when no case ran.
pub const EXIT_NOTHING_RAN: u8 = 4;
/// The exit code when a case failed.
pub const EXIT_FAILED: u8 = 101;

/// Runs the suite: the whole `main` of an author's `tests/contract.rs`.
///
/// Takes the arguments of `cargo test` (a filter, `--exact`, `--list`, `--test-threads` …) and the
/// environment variables of [`Settings`]. Works with cargo-nextest, which runs each case in a process
/// of its own: it skips what is not declared, uses exit codes of its own, and leaves no certificate.
///
/// A backend that ends the process takes the run with it, whatever the exit code; only a certificate,
/// which is removed first and written last, says that all cases were judged.
///
/// Where the harness names a server, one and a half cases per processor run at once, since they mostly
/// wait for it; `--test-threads` says otherwise.
///
/// Cases that kill processes start this very program again, as a worker: do nothing before `run` that
/// must happen only once.
///
/// The exit code is 0 when everything that ran passed, [`EXIT_FAILED`] when a case failed or could
/// not be judged, [`EXIT_NOTHING_RAN`] when no case ran, and [`EXIT_NOT_STARTED`] when the settings
/// are wrong or the backend could not be opened.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use rheo_contract::{Harness, Namespace, Opened};
/// # use rheo_core::{Clock, async_trait};
/// struct MyHarness;
///
/// #[async_trait]
/// impl Harness for MyHarness {
///     fn name(&self) -> &str {
///         "my-backend"
///     }
///     fn version(&self) -> &str {
///         env!("CARGO_PKG_VERSION")
///     }
///     async fn open(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
///         # let _ = (namespace, clock);
///         todo!("open your backend on this namespace, with this clock")
///     }
/// }
///
/// fn main() -> std::process::ExitCode {
///     rheo_contract::run(MyHarness)
/// }
/// ```
pub fn run(harness: impl Harness) -> ExitCode {
    if let Some(code) = worker::serve_if_asked(&harness) {
        return code;
    }
    let mut arguments = Arguments::from_args();
    let suite = Settings::from_env()
        .and_then(|settings| Suite::new(harness, settings).map_err(|error| error.to_string()));
    let suite = match suite {
        Ok(suite) => Arc::new(suite),
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(EXIT_NOT_STARTED);
        }
    };
    if let Some(what) = unnamed(suite.harness()) {
        eprintln!("error: the harness gives no {what}: a certificate must say what it is about");
        return ExitCode::from(EXIT_NOT_STARTED);
    }
    if let Some(folder) = suite
        .settings()
        .certificates
        .as_ref()
        .filter(|_| !arguments.list)
        && let Err(error) = certificate::remove_stale(suite.harness().name(), folder)
    {
        eprintln!(
            "error: cannot remove the last certificate in {}: {error}",
            folder.display()
        );
        return ExitCode::from(EXIT_NOT_STARTED);
    }
    let subject = match suite.subject() {
        Ok(subject) => subject,
        Err(why) if arguments.list => {
            eprintln!("note: all cases are listed, since the backend could not be opened: {why}");
            return list_all(&arguments);
        }
        Err(why) => {
            eprintln!("error: the backend could not be opened: {why}");
            return ExitCode::from(EXIT_NOT_STARTED);
        }
    };
    if subject.server.is_some() {
        arguments
            .test_threads
            .get_or_insert_with(threads_of_a_server);
    }
    judge_and_print(&arguments, &suite, subject)
}

/// As many as there are processors, and half as many again: much of what a case does there is waiting.
fn threads_of_a_server() -> usize {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    processors + processors.div_ceil(2)
}

/// What a harness leaves empty that names the backend.
fn unnamed(harness: &dyn Harness) -> Option<&'static str> {
    let texts = [(harness.name(), "name"), (harness.version(), "version")];
    let empty = texts.into_iter().find(|(text, _)| text.trim().is_empty());
    empty.map(|(_, what)| what)
}

fn list_all(arguments: &Arguments) -> ExitCode {
    let trials = Suite::cases()
        .iter()
        .map(|case| Trial::test(case.full_name(), || Ok(())));
    libtest_mimic::run(arguments, trials.collect()).exit_code()
}

fn judge_and_print(arguments: &Arguments, suite: &Arc<Suite>, subject: Subject) -> ExitCode {
    let started = (SystemClock.now(), Instant::now());
    let settings = suite.settings();
    if !arguments.list {
        let harness = suite.harness();
        let server = subject.server.as_ref().map_or(String::new(), |server| {
            format!(" on {} {}", server.product, server.version)
        });
        println!(
            "Rheo contract {}: {} {}{server}, RHEO_SEED={}",
            env!("CARGO_PKG_VERSION"),
            harness.name(),
            harness.version(),
            settings.seed
        );
        if suite.secrets().too_short() > 0 {
            println!(
                "note: {} of the harness with fewer than {} characters: not looked for",
                counted(suite.secrets().too_short(), "secret"),
                secrets::LEAST
            );
        }
    }
    let subject = Arc::new(subject);
    let results: Arc<Mutex<Vec<CaseResult>>> = Arc::default();
    let trials = Suite::cases()
        .iter()
        .filter_map(|case| trial(case, arguments.list, suite, &subject, &results))
        .collect();
    let conclusion = libtest_mimic::run(arguments, trials);
    if arguments.list {
        return conclusion.exit_code();
    }
    let results = std::mem::take(&mut *results.lock().unwrap_or_else(PoisonError::into_inner));
    let ran = results.iter().filter(|result| was_judged(result)).count();
    let certificate = suite.certificate(&subject, results, started);
    if settings.audit {
        print_audit(&certificate.cases, &subject);
    }
    let one_of_many = std::env::var_os("NEXTEST").is_some();
    if one_of_many && settings.certificates.is_some() {
        eprintln!("note: no certificate: nextest runs each case in a process of its own");
    }
    if let Some(folder) = settings.certificates.as_ref().filter(|_| !one_of_many) {
        match certificate.write(folder) {
            Ok(path) => println!("certificate: {}", path.display()),
            Err(error) => {
                eprintln!(
                    "error: cannot write the certificate to {}: {error}",
                    folder.display()
                );
                return ExitCode::from(EXIT_NOT_STARTED);
            }
        }
    }
    if conclusion.has_failed() {
        let place_of = |case: &str| suite.place_of_panic(case);
        println!("{}", broken_rules(&certificate.cases, place_of));
        return ExitCode::from(EXIT_FAILED);
    }
    if ran == 0 {
        eprintln!("error: nothing ran: no case matches the filter, or none of them is declared");
        return ExitCode::from(EXIT_NOTHING_RAN);
    }
    ExitCode::SUCCESS
}

fn trial(
    case: &'static Case,
    listing: bool,
    suite: &Arc<Suite>,
    subject: &Arc<Subject>,
    results: &Arc<Mutex<Vec<CaseResult>>>,
) -> Option<Trial> {
    let applies = case.applies_to(&subject.capabilities);
    if applies == Applies::No {
        return None;
    }
    let (suite, subject, results) = (Arc::clone(suite), Arc::clone(subject), Arc::clone(results));
    let trial = Trial::ignorable_test(case.full_name(), move || {
        let result = suite.judge(case, &subject);
        let completion = completion(&result);
        results
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(result);
        completion
    });
    // Runners that list first skip what is marked; a run of this process says the reason instead.
    let skipped = listing && matches!(applies, Applies::NotDeclared(_));
    Some(trial.with_ignored_flag(skipped))
}

fn completion(result: &CaseResult) -> Result<Completion, Failed> {
    let reason = result.reason.clone().unwrap_or_default();
    match result.verdict {
        Verdict::Pass => Ok(Completion::Completed),
        Verdict::NotDeclared | Verdict::NotExercised => Ok(Completion::ignored_with(reason)),
        Verdict::Fail if !fails(result) => {
            let first = reason.lines().take(3).collect::<Vec<_>>().join("; ");
            Ok(Completion::ignored_with(format!(
                "SHOULD rule not kept: {first}"
            )))
        }
        Verdict::Fail => Err(Failed::from(reason)),
        Verdict::Unknown => Err(Failed::from(format!(
            "unknown, it could not be judged: {reason}"
        ))),
    }
}

/// Says for every undeclared guarantee or operation whether it could be declared.
fn print_audit(results: &[CaseResult], subject: &Subject) {
    let mut gates: BTreeMap<Gate, Vec<&str>> = BTreeMap::new();
    for case in Suite::cases() {
        if let Applies::NotDeclared(gate) = case.applies_to(&subject.capabilities)
            && let Some(result) = results
                .iter()
                .find(|result| result.name == case.full_name())
        {
            let reason = result.reason.as_deref().unwrap_or_default();
            gates.entry(gate).or_default().push(reason);
        }
    }
    if gates.is_empty() {
        println!("audit: every guarantee and operation that these cases need is declared");
    }
    for (gate, reasons) in gates {
        let count = |audit: Audit| {
            reasons
                .iter()
                .filter(|r| r.ends_with(audit.as_str()))
                .count()
        };
        let (pass, refused, fail) = (
            count(Audit::Passes),
            count(Audit::Refused),
            count(Audit::Fails),
        );
        let advice = match (refused, fail) {
            (0, 0) => "it could be declared",
            (_, 0) => "it is refused, as it must be: declare it to find out",
            _ => "declare it to see why those fail",
        };
        println!(
            "audit: {}: of {}, {pass} would pass, {fail} would fail, {refused} would be refused: \
             {advice}",
            gate.as_str(),
            counted(reasons.len(), "case")
        );
    }
}
