//! Faulty backends that only generated cases find: each dies of its case in nearly all runs with
//! different seeds, and passes all cases that are not generated.
//!
//! `RHEO_PROOF_RUNS=20` makes more runs than the usual few; `RHEO_PROOF_SHOW=1` prints the rates,
//! with a reason.

mod answers;
mod attempts;
mod cancellation;
mod faults;
mod histories;
mod meddling;
mod races;
pub(crate) mod spoils;

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use rheo_contract::Case;

use crate::faulty::Faulty;
use crate::harness::Simulated;
use crate::{SEED, certify, killed, races};

/// How many runs there are by default.
const RUNS: u64 = 5;
/// How many are made at once, since some wait most of their time.
const AT_ONCE: usize = 5;
/// One of so many may miss it.
const ONE_MISS_IN: u64 = 20;

const GROUPS: &[&[Faulty]] = &[
    histories::FAULTY,
    races::FAULTY,
    answers::FAULTY,
    attempts::FAULTY,
    cancellation::FAULTY,
    faults::FAULTY,
];

pub(crate) fn all() -> impl Iterator<Item = &'static Faulty> {
    GROUPS.iter().copied().flatten()
}

/// Dies of each of the declared cases nearly always, for the declared reason, and of no plain case.
pub(crate) fn dies_nearly_always(faulty: &'static Faulty) -> Result<(), Failed> {
    let runs = match std::env::var("RHEO_PROOF_RUNS") {
        Ok(runs) => runs.parse()?,
        Err(_) => RUNS,
    };
    let shows = std::env::var_os("RHEO_PROOF_SHOW").is_some();
    let mut wrong = String::new();
    for name in faulty.kills {
        let reasons = reasons_of(faulty, name, runs)?;
        let deaths = reasons.len() as u64;
        if shows {
            println!("// {}: {name} in {deaths} of {runs} runs", faulty.name);
            println!("{}", reasons.first().map_or("", String::as_str));
        }
        if deaths + (runs / ONE_MISS_IN).max(1) < runs {
            wrong.push_str(&format!("\n{name} found it in {deaths} of {runs} runs"));
        }
        let is_other = |reason: &&String| !reason.contains(faulty.message);
        let is_first = faulty.kills.first() == Some(name);
        if let Some(reason) = reasons.iter().find(is_other).filter(|_| is_first) {
            let message = faulty.message;
            wrong.push_str(&format!("\na reason does not say {message:?}:\n{reason}"));
        }
    }
    let plain = |case: &Case| !case.is_generated();
    let certificate = certify(Simulated::distant(faulty), Some(SEED), plain)?;
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

/// Why a case failed it, in those runs in which it did.
fn reasons_of(faulty: &'static Faulty, name: &str, runs: u64) -> Result<Vec<String>, Failed> {
    let run = |seed| -> Result<Option<String>, Failed> {
        let this = |case: &Case| case.full_name() == name;
        let certificate = certify(Simulated::distant(faulty), Some(SEED + seed), this)?;
        let killed: BTreeMap<&str, &str> = killed(&certificate);
        Ok(killed.get(name).map(|reason| (*reason).to_owned()))
    };
    let mut reasons = Vec::new();
    for some in (0..runs).collect::<Vec<_>>().chunks(AT_ONCE) {
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
