//! Servers for tests: one that a URL names, else server programs on this machine, started for this run.

mod postgres;

use anyhow::Result;

pub(crate) use postgres::postgres;

/// A server that tests can reach, for as long as this value lives.
pub(crate) struct Service {
    /// The environment variable that tells the tests where it is.
    pub(crate) variable: &'static str,
    /// What it holds.
    pub(crate) url: String,
    /// What serves, and why that.
    pub(crate) told: String,
    _started: Option<Box<dyn Send>>,
}

/// What a server backend needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing.
    Nothing,
    /// A PostgreSQL server.
    Postgres,
}

impl Needs {
    /// Gets it: `install` allows to install missing packages.
    pub(crate) fn start(self, install: bool) -> Result<Option<Service>> {
        match self {
            Self::Nothing => Ok(None),
            Self::Postgres => postgres(install).map(Some),
        }
    }
}
