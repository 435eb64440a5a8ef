//! A failure as a bug report.

use std::env;
use std::fmt;

use rheo_core::Level;

use crate::case::Case;
use crate::history::History;

/// Everything that somebody needs to find the defect.
pub(crate) struct Report<'a> {
    pub(crate) case: &'a Case,
    pub(crate) expected: String,
    pub(crate) seen: String,
    /// Whether the rule was seen broken, so that its usual cause is worth reading.
    pub(crate) broken: bool,
    pub(crate) history: &'a History,
    pub(crate) seed: u64,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.case.rule();
        let level = match rule.level {
            Level::Must => "MUST",
            Level::Should => "SHOULD",
        };
        writeln!(f, "rule:     {} ({level}) {}", rule.id, rule.text)?;
        writeln!(f, "expected: {}", self.expected)?;
        writeln!(f, "seen:     {}", self.seen)?;
        if let Some(call) = self.history.last_call() {
            writeln!(f, "after:    {call}")?;
        }
        writeln!(f, "history:")?;
        write!(f, "{}", self.history)?;
        if self.broken {
            writeln!(f, "usually:  {}", self.case.usual_cause())?;
        }
        write!(f, "again:    {}", self.again())
    }
}

impl Report<'_> {
    /// The command that runs just this case with the same seed; the features of the running program
    /// are unknown to it.
    fn again(&self) -> String {
        let package =
            env::var("CARGO_PKG_NAME").map_or(String::new(), |name| format!(" -p {name}"));
        let target = target_name().unwrap_or_else(|| "contract".to_owned());
        format!(
            "RHEO_SEED={} cargo test{package} --test {target} -- --exact {} (add your --features)",
            self.seed,
            self.case.full_name()
        )
    }
}

/// The name of the running test target: its file name without the hash that Cargo adds.
fn target_name() -> Option<String> {
    let path = env::current_exe().ok()?;
    let (name, _hash) = path.file_stem()?.to_str()?.rsplit_once('-')?;
    Some(name.to_owned())
}
