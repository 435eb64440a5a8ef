//! Faulty backends that only generated cases find: each dies of its case in nearly all runs with
//! different seeds, and passes all cases that are not generated.
//!
//! `RHEO_PROOF_RUNS=20` makes so many runs, where otherwise a few are enough if none of them misses it;
//! `RHEO_PROOF_SHOW=1` prints the rates, with a reason.

mod answers;
mod attempts;
mod batches;
mod cancellation;
mod faults;
mod flights;
mod going_back;
mod histories;
mod interplay;
pub(crate) mod meddling;
mod passing;
mod races;
mod sharing;
pub(crate) mod spoils;

use std::collections::BTreeMap;
use std::ops::Range;

use libtest_mimic::Failed;
use rheo_contract::Case;

use crate::faulty::Faulty;
use crate::harness::Simulated;
use crate::{DEADLINE, SEED, certify, killed, races};

/// How many runs there are by default, if each of them finds it.
const RUNS: u64 = 5;
/// How many there are else: chance may miss once in a few what is found 19 times in 20.
const RUNS_TO_BE_SURE: u64 = 25;
/// How many of those may miss it: what is found 19 times in 20 is missed more often once in 140 times.
const MISSES: u64 = 4;
/// How many are made at once, since some wait most of their time.
const AT_ONCE: usize = 5;
/// One of so many may miss it, where the number of runs is given.
const ONE_MISS_IN: u64 = 20;
/// One reason of so many says what is declared: what a race leads to may be seen first as something else.
const ONE_REASON_IN: usize = 4;

const GROUPS: &[&[Faulty]] = &[
    histories::FAULTY,
    interplay::FAULTY,
    races::FAULTY,
    batches::FAULTY,
    going_back::FAULTY,
    sharing::FAULTY,
    passing::FAULTY,
    answers::FAULTY,
    attempts::FAULTY,
    cancellation::FAULTY,
    faults::FAULTY,
    flights::FAULTY,
];

pub(crate) fn all() -> impl Iterator<Item = &'static Faulty> {
    GROUPS.iter().copied().flatten()
}

/// Dies of each of the declared cases nearly always, for the declared reason, and of no plain case.
pub(crate) fn dies_nearly_always(faulty: &'static Faulty) -> Result<(), Failed> {
    let asked_for: Option<u64> = match std::env::var("RHEO_PROOF_RUNS") {
        Ok(runs) => Some(runs.parse()?),
        Err(_) => None,
    };
    let shows = std::env::var_os("RHEO_PROOF_SHOW").is_some();
    let mut wrong = String::new();
    for name in faulty.kills {
        let mut runs = asked_for.unwrap_or(RUNS);
        let mut misses = asked_for.map_or(0, |runs| (runs / ONE_MISS_IN).max(1));
        let mut reasons = reasons_of(faulty, name, 0..runs)?;
        if asked_for.is_none() && reasons.len() as u64 != runs {
            reasons.extend(reasons_of(faulty, name, runs..RUNS_TO_BE_SURE)?);
            (runs, misses) = (RUNS_TO_BE_SURE, MISSES);
        }
        let deaths = reasons.len() as u64;
        if shows {
            println!("// {}: {name} in {deaths} of {runs} runs", faulty.name);
            println!("{}", reasons.first().map_or("", String::as_str));
        }
        if deaths + misses < runs {
            wrong.push_str(&format!("\n{name} found it in {deaths} of {runs} runs"));
        }
        let (saying, others): (Vec<_>, Vec<_>) = reasons
            .iter()
            .partition(|reason| reason.contains(faulty.message));
        let is_first = faulty.kills.first() == Some(name);
        if is_first && saying.len() * ONE_REASON_IN < reasons.len() {
            let (message, reason) = (faulty.message, others.first().map_or("", |it| it));
            wrong.push_str(&format!("\nmost reasons do not say {message:?}:\n{reason}"));
        }
    }
    let plain = |case: &Case| !case.is_generated();
    let certificate = certify(Simulated::distant(faulty), Some(SEED), None, plain)?;
    for (case, reason) in killed(&certificate)
        .into_iter()
        .filter(|(case, _)| !races(case))
    {
        wrong.push_str(&format!("\na plain case finds it too, {case}:\n{reason}"));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failed::from(format!(
        "{}: {}{wrong}",
        faulty.name, faulty.defect
    )))
}

/// Why a case failed it, in those of the runs in which it did.
fn reasons_of(
    faulty: &'static Faulty,
    name: &str,
    runs: Range<u64>,
) -> Result<Vec<String>, Failed> {
    let run = |seed| -> Result<Option<String>, Failed> {
        let this = |case: &Case| case.full_name() == name;
        let certificate = certify(
            Simulated::distant(faulty),
            Some(SEED + seed),
            Some(DEADLINE),
            this,
        )?;
        let killed: BTreeMap<&str, &str> = killed(&certificate);
        Ok(killed.get(name).map(|reason| (*reason).to_owned()))
    };
    let mut reasons = Vec::new();
    for some in runs.collect::<Vec<_>>().chunks(AT_ONCE) {
        let results: Vec<_> = std::thread::scope(|scope| {
            let started: Vec<_> = some.iter().map(|seed| scope.spawn(|| run(*seed))).collect();
            started
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join)
                .collect()
        });
        for result in results {
            reasons.extend(result.map_err(|_| Failed::from("a run panicked"))??);
        }
    }
    Ok(reasons)
}
