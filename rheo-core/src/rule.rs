//! The rules of the specification as a table: what cases, failures and certificates refer to.

use serde::{Deserialize, Serialize};

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

/// One rule of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// E.g. `LSE-2`.
    pub id: &'static str,
    /// How binding it is.
    pub level: Level,
    /// The text, as in the specification.
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
}

/// All rules, in the order of the specification.
pub const RULES: &[Rule] = &[];
