//! The conformance suite for Rheo backends.
//!
//! Whoever writes a backend implements [`Harness`] and calls [`run`] in a test target with
//! `harness = false`; see [`run`] for the whole of it. Every rule of the specification that one
//! process can check has its cases, in groups by guarantee; a failure reads like a bug report, and
//! the results can be written as a [`Certificate`].
//!
//! # Settings
//!
//! Environment variables, so that every test runner passes them on: `RHEO_SEED`, `RHEO_AUDIT=1`,
//! `RHEO_BUDGET`, `RHEO_DEADLINE`, `RHEO_CERTIFICATES`; see [`Settings`].

mod aftermath;
mod broken_rules;
mod bulk;
mod case;
mod cases;
mod certificate;
mod describe;
mod difference;
mod durations;
mod effort;
mod expect;
mod faults;
mod fixture;
mod flight;
mod ground;
mod harness;
mod history;
mod junit;
mod model;
mod observed;
mod operations;
mod panics;
mod possible;
mod proxy;
mod race;
mod random;
mod recorder;
mod report;
mod runner;
mod scene;
mod secrets;
mod settings;
mod stage;
mod states;
mod step;
mod suite;
mod suite_clock;
mod worker;

pub use case::{Applies, Case};
pub use certificate::{
    BackendIdentity, CaseResult, Certificate, SCHEMA, SuiteIdentity, Summary, Verdict,
};
pub use effort::{Budget, Effort};
pub use faults::{Fault, FaultInjector};
pub use harness::{
    ClockControl, Harness, HarnessError, Namespace, Opened, OpenedFaulty, Part, Server,
};
pub use runner::{EXIT_FAILED, EXIT_NOT_STARTED, EXIT_NOTHING_RAN, run};
pub use secrets::secrets_of_url;
pub use settings::{MAX_SEED, Settings};
pub use suite::{Subject, Suite};

/// The examples of the README, which must compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
