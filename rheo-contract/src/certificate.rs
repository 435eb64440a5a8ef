//! The result of a run as a document: a certificate when nothing is missing and nothing failed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rheo_core::{Capabilities, Level, Timestamp, rule_set_hash};
use serde::{Deserialize, Serialize};

use crate::case::{Applies, Case};
use crate::effort::{Budget, Effort};
use crate::harness::{ClockControl, Server};
use crate::suite::{Suite, fails};

/// The schema that this version writes and reads; `docs/certificate.md` describes it.
pub const SCHEMA: &str = "rheo-certificate/1";

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// [`SCHEMA`].
    pub schema: String,
    /// Which suite ran.
    pub suite: SuiteIdentity,
    /// Against what.
    pub backend: BackendIdentity,
    /// On which server, if there is one.
    pub server: Option<Server>,
    /// What the backend declares.
    pub capabilities: Capabilities,
    /// Whose time it went by.
    pub clock: ClockControl,
    /// The seed of everything random.
    pub seed: u64,
    /// How much of what is generated the run was to try.
    pub budget: Budget,
    /// How much it tried.
    pub effort: Effort,
    /// The parts of the harness that are missing and not required, so that what needs them was not
    /// exercised.
    pub not_exercised: Vec<String>,
    /// When the run began.
    pub started_at: Timestamp,
    /// How long it took, in microseconds.
    pub duration_micros: u64,
    /// How many cases came to which verdict.
    pub summary: Summary,
    /// Whether the backend is certified: every case is there and nothing failed.
    pub certified: bool,
    /// Every case, in the order of the suite.
    pub cases: Vec<CaseResult>,
}

/// A suite and its rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteIdentity {
    /// The version of `rheo-contract`.
    pub version: String,
    /// The hash of its rules: equal hashes, equal rules.
    pub rule_set: String,
}

impl SuiteIdentity {
    /// This suite.
    pub fn current() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rule_set: rule_set_hash(),
        }
    }
}

/// A backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendIdentity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What one case came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseResult {
    /// `group::RULE::name`.
    pub name: String,
    /// The group of guarantees.
    pub group: String,
    /// The id of the rule.
    pub rule: String,
    /// Whether a failure fails the certification.
    pub level: Level,
    /// What it came to.
    pub verdict: Verdict,
    /// Why, unless it passed.
    pub reason: Option<String>,
    /// How long it took, in microseconds.
    pub duration_micros: u64,
}

/// What a case comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The rule was kept.
    Pass,
    /// The rule was broken.
    Fail,
    /// The case did not run, since what it needs is not declared.
    NotDeclared,
    /// The case had nothing to try, since the harness lacks a part that is not required. Not a pass.
    NotExercised,
    /// The case could not be judged. Not a pass.
    Unknown,
}

/// How many cases came to which verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each names the verdict it counts")]
pub struct Summary {
    pub pass: usize,
    pub fail: usize,
    pub not_declared: usize,
    pub not_exercised: usize,
    pub unknown: usize,
}

impl Summary {
    /// Counts.
    pub fn of(results: &[CaseResult]) -> Self {
        let mut summary = Self::default();
        for result in results {
            *match result.verdict {
                Verdict::Pass => &mut summary.pass,
                Verdict::Fail => &mut summary.fail,
                Verdict::NotDeclared => &mut summary.not_declared,
                Verdict::NotExercised => &mut summary.not_exercised,
                Verdict::Unknown => &mut summary.unknown,
            } += 1;
        }
        summary
    }
}

impl Certificate {
    /// Why this does not certify the backend; empty if it does.
    ///
    /// Looks at nothing but the document: it must be of this suite, hold every case that what is
    /// declared asks for, and no failure of a MUST rule, nor anything unknown.
    pub fn shortcomings(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.schema != SCHEMA {
            found.push(format!(
                "schema is {:?}, this version reads {SCHEMA:?}",
                self.schema
            ));
        }
        let current = SuiteIdentity::current();
        if self.suite != current {
            found.push(format!(
                "it is of suite {} with rules {}, this is suite {} with rules {}",
                self.suite.version, self.suite.rule_set, current.version, current.rule_set
            ));
        }
        if self.summary != Summary::of(&self.cases) {
            found.push("the summary does not count the cases".to_owned());
        }
        if self.budget == Budget::Quick {
            found.push("the budget was quick, which tries too little".to_owned());
        }
        if self.summary.pass == 0 {
            found.push("no case passed: nothing ran".to_owned());
        }
        for case in Suite::cases() {
            self.look_at(case, &mut found);
        }
        for result in &self.cases {
            if !Suite::cases()
                .iter()
                .any(|case| case.full_name() == result.name)
            {
                found.push(format!("{} is no case of this suite", result.name));
            }
        }
        found
    }

    /// As [`shortcomings`](Self::shortcomings), and whether `certified` says the same.
    pub fn verify(&self) -> Vec<String> {
        let mut found = self.shortcomings();
        if self.certified && !found.is_empty() {
            found.push("it says that it certifies, and does not".to_owned());
        }
        if !self.certified && found.is_empty() {
            found.push("it says that it does not certify, and nothing speaks against".to_owned());
        }
        found
    }

    fn look_at(&self, case: &Case, found: &mut Vec<String>) {
        let name = case.full_name();
        let results: Vec<&CaseResult> = self.cases.iter().filter(|r| r.name == name).collect();
        let applies = case.applies_to(&self.capabilities);
        let result = match (applies, &results[..]) {
            (Applies::No, []) => return,
            (Applies::No, _) => {
                found.push(format!("{name} has nothing to check here, and is listed"));
                return;
            }
            (_, []) => {
                found.push(format!("{name} is missing"));
                return;
            }
            (_, [result]) => result,
            (_, several) => {
                found.push(format!("{name} is there {} times", several.len()));
                return;
            }
        };
        let itself = (case.group(), case.rule_id(), case.level());
        if itself != (&*result.group, &*result.rule, result.level) {
            found.push(format!(
                "{name} has another group, rule or level than in this suite"
            ));
        }
        let not_declared = result.verdict == Verdict::NotDeclared;
        if not_declared != matches!(applies, Applies::NotDeclared(_)) {
            found.push(format!(
                "{name} is {}, which does not fit what is declared",
                if not_declared {
                    "not declared"
                } else {
                    "judged"
                }
            ));
        }
        if result.verdict == Verdict::NotExercised && !case.is_generated() {
            found.push(format!("{name} is not exercised, which it has to be"));
        }
        if fails(result) {
            let verdict = if result.verdict == Verdict::Fail {
                "failed"
            } else {
                "is unknown"
            };
            found.push(format!("{name} {verdict}"));
        }
    }

    /// Reads a certificate.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not of this schema.
    pub fn read(path: &Path) -> io::Result<Self> {
        serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other)
    }

    /// Writes `NAME.json` and `NAME.xml` (JUnit) into a folder, which is made if need be.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let path = file_of(&self.backend.name, folder);
        let mut text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        text.push('\n');
        fs::write(path.with_extension("xml"), crate::junit::to_xml(self)?)?;
        // Whole or not at all: half a certificate is none.
        let unfinished = path.with_extension("json.unfinished");
        fs::write(&unfinished, text)?;
        fs::rename(&unfinished, &path)?;
        Ok(path)
    }
}

/// Where the certificate of a backend is.
fn file_of(name: &str, folder: &Path) -> PathBuf {
    let is_plain = |c: char| c.is_alphanumeric() || "-_".contains(c);
    let name: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    folder.join(name).with_extension("json")
}

/// Removes what an earlier run wrote, so that it is not taken for what this one does.
pub(crate) fn remove_stale(name: &str, folder: &Path) -> io::Result<()> {
    let path = file_of(name, folder);
    for stale in [path.with_extension("xml"), path] {
        match fs::remove_file(stale) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
