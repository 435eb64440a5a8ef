//! The rules of the specification as a table: what cases, failures and certificates refer to.

mod table;

use std::fmt;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

pub use table::RULES;

use crate::{Capabilities, Guarantee, OptionalOperation};

/// How binding a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// A failing case fails the certification.
    Must,
    /// A failing case is reported and fails nothing.
    Should,
}

impl Level {
    /// `MUST` or `SHOULD`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a backend must declare for a rule or a case to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gate {
    /// A guarantee.
    Guarantee(Guarantee),
    /// An optional operation.
    Operation(OptionalOperation),
}

impl Gate {
    /// Whether it is declared.
    pub fn is_declared(self, capabilities: &Capabilities) -> bool {
        match self {
            Self::Guarantee(guarantee) => capabilities.guarantees(guarantee),
            Self::Operation(operation) => capabilities.offers(operation),
        }
    }

    /// The name in documents and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Guarantee(guarantee) => guarantee.as_str(),
            Self::Operation(operation) => operation.as_str(),
        }
    }
}

impl From<Guarantee> for Gate {
    fn from(guarantee: Guarantee) -> Self {
        Self::Guarantee(guarantee)
    }
}

impl From<OptionalOperation> for Gate {
    fn from(operation: OptionalOperation) -> Self {
        Self::Operation(operation)
    }
}

/// One rule of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// E.g. `LSE-2`.
    pub id: &'static str,
    /// How binding it is.
    pub level: Level,
    /// The text, as in the specification: Markdown, on one line.
    pub text: &'static str,
    /// What a backend must declare for it to apply; `None` if it always does.
    pub gate: Option<Gate>,
    /// The version of the suite it came with.
    pub since: &'static str,
    /// Why the suite has no case for it; `None` if it has some.
    pub untested: Option<&'static str>,
}

impl Rule {
    /// The rule with this id.
    pub fn find(id: &str) -> Option<&'static Self> {
        RULES.iter().find(|rule| rule.id == id)
    }

    const fn gated_by(mut self, gate: Gate) -> Self {
        self.gate = Some(gate);
        self
    }

    const fn untested(mut self, reason: &'static str) -> Self {
        self.untested = Some(reason);
        self
    }
}

const fn must(id: &'static str, text: &'static str) -> Rule {
    Rule {
        id,
        level: Level::Must,
        text,
        gate: None,
        since: "0.1.0",
        untested: None,
    }
}

const fn should(id: &'static str, text: &'static str) -> Rule {
    Rule {
        level: Level::Should,
        ..must(id, text)
    }
}

/// The hash of all rules: certificates carry it, so that one made with other rules is noticed.
///
/// XXH64, seed 0, as 16 lower-case hexadecimal digits, over one line per rule in the order of
/// [`RULES`]: id, level, text and gate (`-` where there is none), with a tab between them and a line
/// feed at its end. Whether a rule is tested plays no part in it.
///
/// ```
/// assert_eq!(rheo_core::rule_set_hash().len(), 16);
/// ```
pub fn rule_set_hash() -> String {
    let mut lines = String::new();
    for rule in RULES {
        let gate = rule.gate.map_or("-", Gate::as_str);
        lines += &format!("{}\t{}\t{}\t{gate}\n", rule.id, rule.level, rule.text);
    }
    format!("{:016x}", XxHash64::oneshot(0, lines.as_bytes()))
}
