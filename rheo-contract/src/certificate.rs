//! The result of a run as a document: a certificate when nothing is missing and nothing failed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rheo_core::{Capabilities, Level, Timestamp, rule_set_hash};
use serde::{Deserialize, Serialize};

use crate::case::{Applies, Case};
use crate::effort::{Budget, Effort};
use crate::harness::{ClockControl, Server};
use crate::settings::MAX_SEED;
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
    /// The case had nothing to try, since the harness lacks a part that is not required, or the clock is
    /// the store's own. Not a pass.
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
        for (what, text) in self.names() {
            if text.trim().is_empty() {
                found.push(format!("{what} is empty: it says not what it is about"));
            }
        }
        if self.seed > MAX_SEED {
            found.push(format!(
                "the seed is {}, and no run takes one above {MAX_SEED}",
                self.seed
            ));
        }
        if self.budget == Budget::Quick {
            found.push("the budget was quick, which tries too little".to_owned());
        }
        if self.summary.pass == 0 {
            found.push("no case passed: nothing ran".to_owned());
        }
        let mut wrong = Vec::new();
        for case in Suite::cases() {
            self.look_at(case, &mut wrong);
        }
        for result in &self.cases {
            let is_known = |case: &Case| case.full_name() == result.name;
            if !Suite::cases().iter().any(is_known) {
                wrong.push((Wrong::Unheard, result.name.clone()));
            }
        }
        found.extend(Wrong::ALL.iter().flat_map(|kind| kind.lines(&wrong)));
        found
    }

    /// As [`shortcomings`](Self::shortcomings), and whether `certified` says the same.
    pub fn verify(&self) -> Vec<String> {
        let mut found = self.shortcomings();
        let certifies = found.is_empty();
        if self.certified != certifies {
            let said = self.certified;
            found.push(format!("`certified` is {said}, but should be {certifies}"));
        }
        found
    }

    /// What says which backend and which server it is about.
    fn names(&self) -> Vec<(&'static str, &str)> {
        let BackendIdentity { name, version } = &self.backend;
        let mut names = vec![("backend.name", &**name), ("backend.version", version)];
        if let Some(Server { product, version }) = &self.server {
            names.extend([("server.product", &**product), ("server.version", version)]);
        }
        names
    }

    fn look_at(&self, case: &Case, wrong: &mut Vec<(Wrong, String)>) {
        let name = case.full_name();
        let results: Vec<&CaseResult> = self.cases.iter().filter(|r| r.name == name).collect();
        let applies = case.applies_to(&self.capabilities);
        let result = match (applies, &results[..]) {
            (Applies::No, []) => return,
            (Applies::No, _) => return wrong.push((Wrong::Needless, name)),
            (_, []) => return wrong.push((Wrong::Missing, name)),
            (_, [result]) => result,
            (_, _) => return wrong.push((Wrong::Repeated, name)),
        };
        let itself = (case.group(), case.rule_id(), case.level());
        if itself != (&*result.group, &*result.rule, result.level) {
            wrong.push((Wrong::Altered, name.clone()));
        }
        let not_declared = result.verdict == Verdict::NotDeclared;
        match (not_declared, matches!(applies, Applies::NotDeclared(_))) {
            (true, false) => wrong.push((Wrong::Declared, name.clone())),
            (false, true) => wrong.push((Wrong::Undeclared, name.clone())),
            _ => {}
        }
        let is_exercised = case.is_exercised_by(self.clock);
        match result.verdict {
            Verdict::NotExercised if is_exercised && !case.may_lack_a_part() => {
                wrong.push((Wrong::NotExercised, name.clone()));
            }
            Verdict::Pass if !is_exercised => wrong.push((Wrong::Unexercised, name.clone())),
            _ => {}
        }
        if fails(result) {
            let failed = result.verdict == Verdict::Fail;
            let kind = if failed {
                Wrong::Failed
            } else {
                Wrong::Unknown
            };
            wrong.push((kind, name));
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

    /// Where [`write`](Self::write) puts the certificate of a backend: `NAME.json`. Whatever in the name
    /// is no letter, digit, `-` or `_` is written as `%` and the hexadecimal values of its bytes, so two
    /// names are two files.
    pub fn path_in(folder: &Path, name: &str) -> PathBuf {
        let mut file = String::new();
        for c in name.chars() {
            if c.is_alphanumeric() || "-_".contains(c) {
                file.push(c);
            } else {
                let bytes = c.to_string().into_bytes();
                file.extend(bytes.iter().map(|byte| format!("%{byte:02X}")));
            }
        }
        folder.join(file + ".json")
    }

    /// Writes `NAME.json` and `NAME.xml` (JUnit) into a folder, which is made if need be, and returns
    /// [`path_in`](Self::path_in) it.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let path = Self::path_in(folder, &self.backend.name);
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

/// What can be wrong with one case of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Missing,
    Repeated,
    Needless,
    Unheard,
    Altered,
    Declared,
    Undeclared,
    NotExercised,
    Unexercised,
    Failed,
    Unknown,
}

impl Wrong {
    const ALL: [Self; 11] = [
        Self::Missing,
        Self::Repeated,
        Self::Needless,
        Self::Unheard,
        Self::Altered,
        Self::Declared,
        Self::Undeclared,
        Self::NotExercised,
        Self::Unexercised,
        Self::Failed,
        Self::Unknown,
    ];

    /// What it is, of one case and of several.
    fn words(self) -> [&'static str; 2] {
        match self {
            Self::Missing => ["required case is missing", "required cases are missing"],
            Self::Repeated => [
                "case is there several times",
                "cases are there several times",
            ],
            Self::Needless => [
                "case is listed that has nothing to check here",
                "cases are listed that have nothing to check here",
            ],
            Self::Unheard => ["case is none of this suite", "cases are none of this suite"],
            Self::Altered => [
                "case has another group, rule or level than in this suite",
                "cases have another group, rule or level than in this suite",
            ],
            Self::Declared => [
                "case is marked not_declared, and what it needs is declared",
                "cases are marked not_declared, and what they need is declared",
            ],
            Self::Undeclared => [
                "case is judged, and what it needs is not declared",
                "cases are judged, and what they need is not declared",
            ],
            Self::NotExercised => [
                "case is marked not_exercised, and needs no part that could be missing",
                "cases are marked not_exercised, and need no part that could be missing",
            ],
            Self::Unexercised => [
                "case sets the clock and is marked pass, and the clock is the store's own",
                "cases set the clock and are marked pass, and the clock is the store's own",
            ],
            Self::Failed => ["case failed", "cases failed"],
            Self::Unknown => ["case could not be judged", "cases could not be judged"],
        }
    }

    /// A line for all cases with which this is wrong, but one for each that failed.
    fn lines(self, wrong: &[(Self, String)]) -> Vec<String> {
        let mut names = wrong
            .iter()
            .filter(|(kind, _)| *kind == self)
            .map(|(_, name)| name);
        let [one, several] = self.words();
        if matches!(self, Self::Failed | Self::Unknown) {
            return names.map(|name| format!("1 {one}: {name}")).collect();
        }
        match (names.next(), names.count()) {
            (None, _) => Vec::new(),
            (Some(name), 0) => vec![format!("1 {one}: {name}")],
            (Some(name), more) => vec![format!("{} {several}, e.g. {name}", more + 1)],
        }
    }
}

/// Removes what an earlier run wrote, so that it is not taken for what this one does.
pub(crate) fn remove_stale(name: &str, folder: &Path) -> io::Result<()> {
    let path = Certificate::path_in(folder, name);
    for stale in [path.with_extension("xml"), path] {
        match fs::remove_file(stale) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
