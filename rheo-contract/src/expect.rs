//! Judgements of a case: what was expected, what was seen.

use std::fmt;

use rheo_core::{Capabilities, Error, ErrorKind};
use tokio::task::JoinError;

use crate::describe::{Brief, ok};
use crate::difference::difference;
use crate::harness::{HarnessError, Part};

/// What a case comes to: nothing to say, or why not.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Why a case did not pass.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The backend broke a rule.
    Broken {
        /// What should have been seen.
        expected: String,
        /// What was.
        seen: String,
    },
    /// The backend broke a rule that holds for every case, whatever it is about.
    BrokenElsewhere(Box<Elsewhere>),
    /// The backend refused what it does not declare, where a case needs it.
    Refused(Error),
    /// The harness lacks a part that a declared guarantee needs.
    Missing(Part),
    /// The harness lacks a part that nothing needs, so that there was nothing to try.
    NotExercised(Part),
    /// The case could not be judged.
    Undecided(String),
}

/// A broken rule that is not the one of the case.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    /// That rule.
    pub(crate) rule: &'static str,
    /// What should have been seen.
    pub(crate) expected: String,
    /// What was.
    pub(crate) seen: String,
    /// What usually breaks it.
    pub(crate) cause: &'static str,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken { expected, seen } => write!(f, "expected {expected}, seen {seen}"),
            Self::BrokenElsewhere(broken) => {
                write!(f, "expected {}, seen {}", broken.expected, broken.seen)
            }
            Self::Refused(error) => write!(f, "refused: {error}"),
            Self::Missing(part) | Self::NotExercised(part) => {
                write!(f, "the harness has no {}", part.method())
            }
            Self::Undecided(why) => f.write_str(why),
        }
    }
}

/// A result that should have been `Ok`.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if error.kind() == ErrorKind::Unsupported {
            return Self::Refused(error);
        }
        broken(
            "the last operation to succeed",
            format_args!("Err({}): {error}", error.kind()),
        )
    }
}

/// A call in a task of its own that panicked.
impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        broken("every call to end without a panic", error)
    }
}

impl From<HarnessError> for Failure {
    fn from(error: HarnessError) -> Self {
        match error {
            HarnessError::NotSupplied(part) => Self::Missing(part),
            HarnessError::Failed(why) => Self::Undecided(format!("the harness failed: {why}")),
        }
    }
}

impl Failure {
    /// An error showed a secret.
    pub(crate) fn leaked(seen: &str) -> Self {
        Self::BrokenElsewhere(Box::new(Elsewhere {
            rule: "ERR-11",
            expected: "no error to show a secret of the harness".to_owned(),
            seen: seen.to_owned(),
            cause: "the text of the driver's error is passed on as it is, or the settings are put into it",
        }))
    }

    /// The handle of a case declares something else than the one that was asked before all cases.
    pub(crate) fn declared_otherwise(declared: &Capabilities, first: &Capabilities) -> Self {
        Self::BrokenElsewhere(Box::new(Elsewhere {
            rule: "CAP-2",
            expected: format!("what the first handle declares: {first:?}"),
            seen: format!("{declared:?}"),
            cause: "the declaration is made from what a handle finds when it is opened",
        }))
    }

    /// The harness did not open the backend for a case.
    pub(crate) fn not_opened(why: &HarnessError) -> Self {
        Self::Undecided(format!("the harness could not open the backend: {why}"))
    }
}

/// A broken rule: what was expected, what was seen.
pub(crate) fn broken(expected: impl fmt::Display, seen: impl fmt::Display) -> Failure {
    Failure::Broken {
        expected: expected.to_string(),
        seen: seen.to_string(),
    }
}

/// Demands that something holds.
pub(crate) fn expect(holds: bool, expected: impl fmt::Display, seen: impl fmt::Display) -> Outcome {
    if holds {
        Ok(())
    } else {
        Err(broken(expected, seen))
    }
}

/// Demands that two values are equal; shows them side by side, or as a diff where they are long.
pub(crate) fn expect_eq<T: PartialEq + fmt::Debug>(what: &str, seen: T, expected: T) -> Outcome {
    if seen == expected {
        return Ok(());
    }
    let (short_expected, short_seen) = (format!("{expected:?}"), format!("{seen:?}"));
    if short_expected.len() <= 120 && short_seen.len() <= 120 {
        return Err(broken(format!("{what} to be {short_expected}"), short_seen));
    }
    let (expected, seen) = (format!("{expected:#?}"), format!("{seen:#?}"));
    Err(broken(
        format!("{what} to be equal"),
        format!("a difference\n{}", difference(&expected, &seen)),
    ))
}

/// Demands an error of that kind.
pub(crate) fn expect_error<T: Brief>(result: Result<T, Error>, kind: ErrorKind) -> Outcome<Error> {
    match result {
        Err(error) if error.kind() == kind => Ok(error),
        Err(error) => Err(broken(
            format!("Err({kind})"),
            format!("Err({}): {error}", error.kind()),
        )),
        Ok(value) => Err(broken(format!("Err({kind})"), ok(&value))),
    }
}

/// Demands `Invalid` for that argument.
pub(crate) fn expect_invalid<T: Brief>(result: Result<T, Error>, argument: &str) -> Outcome {
    let error = expect_error(result, ErrorKind::Invalid)?;
    let Error::Invalid(invalid) = &error else {
        return Err(broken("Err(Invalid)", error));
    };
    expect(
        invalid.argument == argument,
        format!("Err(Invalid) for the argument `{argument}`"),
        format!("Err(Invalid) for `{}`: {invalid}", invalid.argument),
    )
}

/// Demands that there is nothing.
pub(crate) fn expect_empty<T: fmt::Debug>(what: &str, seen: &[T]) -> Outcome {
    expect(
        seen.is_empty(),
        format!("no {what}"),
        format!("{} of them: {seen:?}", seen.len()),
    )
}
