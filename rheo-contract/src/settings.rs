//! What a run can be told, by environment variables: they work with every test runner.

use std::env;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::effort::Budget;

/// The highest seed, 2^53 - 1: the highest that every reader of JSON reads exactly.
pub const MAX_SEED: u64 = (1 << 53) - 1;

/// The settings of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The seed of everything random; `RHEO_SEED`, at most [`MAX_SEED`], default a new one, which
    /// is printed.
    pub seed: u64,
    /// Whether cases of undeclared guarantees run too, to tell what could be declared;
    /// `RHEO_AUDIT=1`, default no.
    pub audit: bool,
    /// How long one case may take; `RHEO_DEADLINE` in seconds, default 30. Cases that generate what
    /// they try get six times that, and twenty times as much again with the budget `long`.
    pub deadline: Duration,
    /// How much of what is generated is tried; `RHEO_BUDGET`, `quick`, `default` or `long`.
    pub budget: Budget,
    /// Where to write `NAME.json` and `NAME.xml`; `RHEO_CERTIFICATES`, default nowhere.
    pub certificates: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: fastrand::u64(..=MAX_SEED),
            audit: false,
            deadline: Duration::from_secs(30),
            budget: Budget::default(),
            certificates: None,
        }
    }
}

impl Settings {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// A message that says which variable is wrong and what it may be.
    pub fn from_env() -> Result<Self, String> {
        let mut settings = Self::default();
        let allowed = format!("a whole number from 0 to {MAX_SEED}");
        if let Some(seed) = variable("RHEO_SEED", &allowed)? {
            if seed > MAX_SEED {
                return Err(wrong("RHEO_SEED", seed, &allowed));
            }
            settings.seed = seed;
        }
        if let Some(seconds) = variable("RHEO_DEADLINE", "a whole number of seconds from 1")? {
            let seconds: std::num::NonZeroU32 = seconds;
            settings.deadline = Duration::from_secs(seconds.get().into());
        }
        if let Some(audit) = variable::<u8>("RHEO_AUDIT", "0 or 1")? {
            settings.audit = match audit {
                0 => false,
                1 => true,
                other => return Err(wrong("RHEO_AUDIT", other.to_string(), "0 or 1")),
            };
        }
        if let Some(budget) = variable("RHEO_BUDGET", &Budget::NAMES.join(", "))? {
            settings.budget = budget;
        }
        settings.certificates = env::var_os("RHEO_CERTIFICATES")
            .filter(|path| !path.is_empty())
            .map(PathBuf::from);
        Ok(settings)
    }
}

fn variable<T: FromStr>(name: &str, allowed: &str) -> Result<Option<T>, String> {
    match env::var(name) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => text
            .parse()
            .map(Some)
            .map_err(|_| wrong(name, &text, allowed)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(wrong(name, "bytes that are no text", allowed)),
    }
}

fn wrong(name: &str, given: impl Display, allowed: &str) -> String {
    format!("{name} is {given}, allowed is {allowed}")
}
