//! The suite as a test target: libtest-mimic in front, the certificate behind.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use rheo_core::{Clock, SystemClock};

use crate::case::{Applies, Case};
use crate::certificate::{CaseResult, Verdict};
use crate::harness::Harness;
use crate::settings::Settings;
use crate::suite::{Subject, Suite, fails};

/// The exit code when the settings are wrong or the backend could not be opened.
pub const EXIT_NOT_STARTED: u8 = 2;
/// The exit code when no case ran.
pub const EXIT_NOTHING_RAN: u8 = 4;
/// The exit code when a case failed.
pub const EXIT_FAILED: u8 = 101;

/// Runs the suite: the whole `main` of an author's `tests/contract.rs`.
///
/// Takes the arguments of `cargo test` (a filter, `--exact`, `--list`, `--test-threads` …) and the
/// environment variables of [`Settings`]. Works with cargo-nextest.
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
    let arguments = Arguments::from_args();
    let suite = Settings::from_env()
        .and_then(|settings| Suite::new(harness, settings).map_err(|error| error.to_string()));
    let suite = match suite {
        Ok(suite) => Arc::new(suite),
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(EXIT_NOT_STARTED);
        }
    };
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
    judge_and_print(&arguments, &suite, subject)
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
    let ran = results
        .iter()
        .filter(|r| r.verdict != Verdict::NotDeclared)
        .count();
    let certificate = suite.certificate(&subject, results, started);
    if settings.audit {
        print_audit(&certificate.cases, &subject);
    }
    if let Some(folder) = &settings.certificates {
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
        Verdict::NotDeclared => Ok(Completion::ignored_with(reason)),
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
    let mut gates: Vec<(rheo_core::Gate, usize, usize)> = Vec::new();
    for case in Suite::cases() {
        let Applies::NotDeclared(gate) = case.applies_to(&subject.capabilities) else {
            continue;
        };
        let Some(result) = results
            .iter()
            .find(|result| result.name == case.full_name())
        else {
            continue;
        };
        let passes = result
            .reason
            .as_ref()
            .is_some_and(|why| why.ends_with("it would pass"));
        match gates.iter_mut().find(|(known, ..)| *known == gate) {
            Some((_, pass, all)) => (*pass, *all) = (*pass + usize::from(passes), *all + 1),
            None => gates.push((gate, usize::from(passes), 1)),
        }
    }
    if gates.is_empty() {
        println!("audit: every guarantee and operation that the suite knows is declared");
    }
    for (gate, pass, all) in gates {
        let advice = if pass == all {
            "it could be declared"
        } else {
            "it cannot be declared"
        };
        println!(
            "audit: {}: {pass} of {all} cases would pass: {advice}",
            gate.as_str()
        );
    }
}
