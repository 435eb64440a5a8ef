//! Faulty backends that only generated cases find: each dies of its case in at least 19 of 20 runs with
//! different seeds, and passes all cases that are not generated.

mod histories;

use libtest_mimic::Failed;
use rheo_contract::Case;

use crate::faulty::Faulty;
use crate::harness::Simulated;
use crate::{SEED, certify, killed};

/// How many runs, and in how many of them it must die.
const RUNS: u64 = 20;
const ENOUGH: usize = 19;

const GROUPS: &[&[Faulty]] = &[histories::FAULTY];

pub(crate) fn all() -> impl Iterator<Item = &'static Faulty> {
    GROUPS.iter().copied().flatten()
}

/// Dies of each of the declared cases nearly always, for the declared reason, and of no plain case.
pub(crate) fn dies_nearly_always(faulty: &'static Faulty) -> Result<(), Failed> {
    let mut wrong = String::new();
    for name in faulty.kills {
        let mut deaths = 0;
        let mut other_reason = None;
        for seed in 0..RUNS {
            let this = |case: &Case| case.full_name() == *name;
            let certificate = certify(Simulated::faulty(faulty), Some(SEED + seed), this)?;
            if let Some(reason) = killed(&certificate).get(name) {
                deaths += 1;
                if !reason.contains(faulty.message) {
                    other_reason = Some((*reason).to_owned());
                }
            }
        }
        if std::env::var_os("RHEO_PROOF_SHOW").is_some() {
            println!("// {}: {name} in {deaths} of {RUNS} runs", faulty.name);
        }
        if deaths < ENOUGH {
            wrong.push_str(&format!("\n{name} found it in {deaths} of {RUNS} runs"));
        }
        if let Some(reason) = other_reason.filter(|_| faulty.kills.first() == Some(name)) {
            let message = faulty.message;
            wrong.push_str(&format!("\na reason does not say {message:?}:\n{reason}"));
        }
    }
    let plain = |case: &Case| !case.is_generated();
    let certificate = certify(Simulated::faulty(faulty), Some(SEED), plain)?;
    for (case, reason) in killed(&certificate) {
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
