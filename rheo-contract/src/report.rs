//! A failure as a bug report.

use std::env;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use rheo_core::{Level, Rule};

use crate::case::Case;
use crate::history::History;

/// How many calls without an answer are named.
const MOST_OPEN: usize = 8;

/// Everything that somebody needs to find the defect.
pub(crate) struct Report<'a> {
    pub(crate) case: &'a Case,
    /// The rule that was broken: nearly always that of the case.
    pub(crate) rule: &'static Rule,
    pub(crate) expected: String,
    pub(crate) seen: String,
    /// What usually breaks the rule, where it was seen broken.
    pub(crate) usually: Option<&'static str>,
    /// Whether the case was given up on, so that what has no answer yet is to blame.
    pub(crate) hangs: bool,
    pub(crate) history: &'a History,
    pub(crate) seed: u64,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule;
        let level = match rule.level {
            Level::Must => "MUST",
            Level::Should => "SHOULD",
        };
        writeln!(f, "rule:     {} ({level}) {}", rule.id, rule.text)?;
        writeln!(f, "expected: {}", self.expected)?;
        writeln!(f, "seen:     {}", self.seen)?;
        let open = if self.hangs {
            self.history.open_calls()
        } else {
            Vec::new()
        };
        for call in open.iter().take(MOST_OPEN) {
            writeln!(f, "waits in: {call}")?;
        }
        if open.len() > MOST_OPEN {
            writeln!(f, "          … {} calls in all", open.len())?;
        }
        if let Some(call) = self.history.last_call().filter(|_| open.is_empty()) {
            writeln!(f, "after:    {call}")?;
        }
        writeln!(f, "history:")?;
        write!(f, "{}", self.history)?;
        if let Some(cause) = self.usually {
            writeln!(f, "usually:  {cause}")?;
        }
        write!(f, "again:    {}", self.again())
    }
}

impl Report<'_> {
    /// The command that runs just this case with the same seed; the features of the running program
    /// are unknown to it, so it says so where the crate has some.
    fn again(&self) -> String {
        let package =
            env::var("CARGO_PKG_NAME").map_or(String::new(), |name| format!(" -p {name}"));
        let target = target_name().unwrap_or_else(|| "contract".to_owned());
        let note = if has_features() {
            " (add your --features)"
        } else {
            ""
        };
        format!(
            "RHEO_SEED={} cargo test{package} --test {target} -- --exact {}{note}",
            self.seed,
            self.case.full_name()
        )
    }
}

/// Whether the crate that is being tested has features, as far as its manifest can be read.
fn has_features() -> bool {
    static HAS: LazyLock<bool> = LazyLock::new(|| {
        let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let manifest =
            manifest.and_then(|crate_| fs::read_to_string(crate_.join("Cargo.toml")).ok());
        manifest.is_some_and(|text| text.lines().any(|line| line.trim() == "[features]"))
    });
    *HAS
}

/// The name of the running test target: its file name without the hash that Cargo adds.
fn target_name() -> Option<String> {
    let path = env::current_exe().ok()?;
    let (name, _hash) = path.file_stem()?.to_str()?.rsplit_once('-')?;
    Some(name.to_owned())
}
