//! A failure as a bug report.

use std::env;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use rheo_core::{Level, Rule};

use crate::case::Case;
use crate::effort::Budget;
use crate::history::{History, cut};
use crate::panics::Panic;
use crate::settings::Settings;

/// How many calls without an answer are named.
const MOST_OPEN: usize = 8;

/// How many lines of what was expected or seen are shown, and how much of each.
const LINES: usize = 40;
const WIDTH: usize = 1000;

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
    /// The latest panic of what ran for the case.
    pub(crate) panic: Option<&'a Panic>,
    pub(crate) settings: &'a Settings,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule;
        let level = match rule.level {
            Level::Must => "MUST",
            Level::Should => "SHOULD",
        };
        writeln!(f, "rule:     {} ({level}) {}", rule.id, rule.text)?;
        writeln!(f, "expected: {}", self.bounded(&self.expected))?;
        writeln!(f, "seen:     {}", self.bounded(&self.seen))?;
        // That of the case itself is what was seen; that of a task which it spawned is not.
        let panic = self.panic.map(ToString::to_string);
        if let Some(panic) = panic.filter(|panic| !self.seen.contains(panic)) {
            writeln!(f, "panicked: {}", self.bounded(&panic))?;
        }
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
    /// The first lines of a text, without secrets.
    fn bounded(&self, text: &str) -> String {
        let text = self.history.secrets().masked(text);
        let lines = text.lines().take(LINES).map(|line| cut(&line, WIDTH));
        let mut shown = lines.collect::<Vec<_>>().join("\n");
        match text.lines().skip(LINES).count() {
            0 => {}
            more => shown.push_str(&format!("\n… {more} more lines")),
        }
        shown
    }

    /// The command that runs just this case once more, with the settings that are not the usual ones; the features
    /// of the running program are unknown to it, so it says so where the crate has some.
    fn again(&self) -> String {
        let usual = Settings::default();
        let Settings {
            seed,
            deadline,
            budget,
            audit,
            ..
        } = self.settings;
        let mut settings = format!("RHEO_SEED={seed}");
        if self.case.is_generated() && *budget != Budget::Default {
            settings.push_str(&format!(" RHEO_BUDGET={budget}"));
        }
        if *audit {
            settings.push_str(" RHEO_AUDIT=1");
        }
        if *deadline != usual.deadline {
            let seconds = deadline.as_secs().max(1);
            settings.push_str(&format!(" RHEO_DEADLINE={seconds}"));
        }
        let package =
            env::var("CARGO_PKG_NAME").map_or(String::new(), |name| format!(" -p {name}"));
        let target = target_name().unwrap_or_else(|| "contract".to_owned());
        let note = if has_features() {
            "  # and your --features"
        } else {
            ""
        };
        format!(
            "{settings} cargo test{package} --test {target} -- --exact {}{note}",
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
