//! The suite is proved, not believed: backends with one named defect each must be failed by exactly
//! the cases they declare, for the right reason; correct backends that use their freedom must pass.
//!
//! `RHEO_PROOF_SHOW=1` prints what kills each faulty backend, ready to be declared.

mod book;
mod defect;
mod faulty;
mod generated;
mod harness;
mod journal;
mod link;
mod meeting;
mod modest;
mod tweak;
mod variants;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use rheo_contract::{Case, Certificate, Harness, Settings, Suite, Verdict};

use crate::faulty::Faulty;
use crate::harness::Simulated;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Those with faults and deadlines wait most of their time.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    arguments
        .test_threads
        .get_or_insert(processors + processors / 2);
    let mut trials: Vec<Trial> = faulty::all()
        .map(|faulty| {
            Trial::test(format!("faulty::{}", faulty.name), move || {
                dies_as_declared(faulty)
            })
        })
        .collect();
    trials.extend(generated::all().map(|faulty| {
        Trial::test(format!("generated::{}", faulty.name), move || {
            generated::dies_nearly_always(faulty)
        })
    }));
    trials.extend(variants::all().map(|variant| {
        Trial::test(format!("variant::{}", variant.name()), move || {
            passes(variant)
        })
    }));
    trials.push(Trial::test("every_case_kills", every_case_kills));
    trials.push(Trial::test("names_are_unique", names_are_unique));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The seed for faulty backends: which cases fail them must not depend on chance.
const SEED: u64 = 1;

/// How long a case may take with a backend that should fail it, and may well hang. Others have the usual
/// time: the machine may be busy.
const DEADLINE: Duration = Duration::from_secs(10);

/// Runs the cases that a filter lets through.
fn certify(
    harness: impl Harness,
    seed: Option<u64>,
    deadline: Option<Duration>,
    filter: impl Fn(&Case) -> bool + Sync,
) -> Result<Certificate, Failed> {
    let mut settings = Settings::default();
    settings.seed = seed.unwrap_or(settings.seed);
    settings.deadline = deadline.unwrap_or(settings.deadline);
    let suite = Suite::new(harness, settings)?;
    Ok(suite.certify(filter)?)
}

/// What failed in a run, and why.
fn killed(certificate: &Certificate) -> BTreeMap<&str, &str> {
    certificate
        .cases
        .iter()
        .filter(|case| matches!(case.verdict, Verdict::Fail | Verdict::Unknown))
        .map(|case| (&*case.name, case.reason.as_deref().unwrap_or_default()))
        .collect()
}

/// A faulty backend fails exactly the declared cases, and the first of them says why. Generated cases
/// find much of this too, by chance; they have faulty backends of their own.
fn dies_as_declared(faulty: &'static Faulty) -> Result<(), Failed> {
    let plain = |case: &Case| !case.is_generated();
    let certificate = certify(Simulated::faulty(faulty), Some(SEED), Some(DEADLINE), plain)?;
    let killed = killed(&certificate);
    if std::env::var_os("RHEO_PROOF_SHOW").is_some() {
        println!("// {}\nkills: &[", faulty.name);
        killed.keys().for_each(|case| println!("    {case:?},"));
        println!("],");
    }
    let mut wrong = String::new();
    let first = faulty.kills.first();
    let by_luck = |case: &&str| races(case) && first != Some(case);
    let missing = |case: &&&'static str| !killed.contains_key(**case) && !by_luck(case);
    for case in faulty.kills.iter().filter(missing) {
        wrong.push_str(&format!("\nit should be failed by {case}, and is not"));
    }
    let undeclared = |case: &&str| !faulty.kills.contains(case) && !by_luck(case);
    for (case, reason) in killed.iter().filter(|(case, _)| undeclared(case)) {
        wrong.push_str(&format!(
            "\nit is failed by {case}, which is not declared:\n{reason}\n"
        ));
    }
    let reason = first.and_then(|case| killed.get(case));
    if let Some(reason) = reason.filter(|reason| !reason.contains(faulty.message)) {
        wrong.push_str(&format!(
            "\nthe reason does not say {:?}:\n{reason}",
            faulty.message
        ));
    }
    if faulty.kills.is_empty() {
        wrong.push_str("\nno case kills it: one is missing");
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failed::from(format!(
        "{}: {}{wrong}",
        faulty.name, faulty.defect
    )))
}

/// The cases that cannot run on a store in this very process: they kill processes.
const NOT_SIMULATED: &str = "crashes::";

fn is_simulated(case: &Case) -> bool {
    !case.full_name().starts_with(NOT_SIMULATED)
}

/// Whether a case fails a backend that it was not made for, or not, as the scheduler has it: one that lets
/// calls race, or one so large that what a defect keeps beside the store may take it to the deadline.
fn races(case: &str) -> bool {
    [
        "race",
        "racing",
        "concurrent",
        "of_settles_on_two_handles",
        "of_creators_on_two_handles",
        "ten_thousand_events",
        "over_a_thousand_leases_settle_in_one_batch",
    ]
    .iter()
    .any(|word| case.contains(word))
}

/// A backend that merely uses its freedom is certified.
fn passes(variant: &'static dyn variants::Variant) -> Result<(), Failed> {
    let certificate = certify(Simulated::variant(variant), None, None, is_simulated)?;
    let mut wrong = certificate.shortcomings();
    let left_out = Suite::cases().iter().filter(|case| !is_simulated(case));
    let missing = format!("{} required cases are missing", left_out.count());
    wrong.retain(|shortcoming| !shortcoming.starts_with(&missing));
    for case in &certificate.cases {
        if matches!(case.verdict, Verdict::Fail | Verdict::Unknown) {
            wrong.push(format!(
                "{}:\n{}",
                case.name,
                case.reason.as_deref().unwrap_or_default()
            ));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let name = variant.name();
    Err(Failed::from(format!(
        "{name} is correct and is not certified:\n{}",
        wrong.join("\n")
    )))
}

/// A case that no defect can fail does not belong in the suite.
fn every_case_kills() -> Result<(), Failed> {
    let idle: Vec<String> = Suite::cases()
        .iter()
        .filter(|case| is_simulated(case))
        .map(|case| case.full_name())
        .filter(|name| {
            let mut faulty = faulty::all().chain(generated::all());
            !faulty.any(|faulty| faulty.kills.contains(&&**name))
        })
        .collect();
    if idle.is_empty() {
        return Ok(());
    }
    Err(Failed::from(format!(
        "no faulty backend dies of:\n{}",
        idle.join("\n")
    )))
}

fn names_are_unique() -> Result<(), Failed> {
    let mut names: Vec<String> = Suite::cases().iter().map(|case| case.full_name()).collect();
    names.extend(
        faulty::all()
            .chain(generated::all())
            .map(|faulty| faulty.name.to_owned()),
    );
    names.extend(variants::all().map(|variant| variant.name().to_owned()));
    names.sort();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Failed::from(format!("{} is there twice", pair[0]))),
    }
}
