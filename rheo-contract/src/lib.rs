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
//! `RHEO_DEADLINE`, `RHEO_CERTIFICATES`; see [`Settings`].

mod bulk;
mod case;
mod cases;
mod certificate;
mod describe;
mod durations;
mod expect;
mod fixture;
mod harness;
mod history;
mod junit;
mod operations;
mod panics;
mod recorder;
mod report;
mod runner;
mod scene;
mod settings;
mod states;
mod step;
mod suite;
mod suite_clock;

pub use case::{Applies, Case};
pub use certificate::{
    BackendIdentity, CaseResult, Certificate, SCHEMA, SuiteIdentity, Summary, Verdict,
};
pub use harness::{ClockControl, Harness, HarnessError, Namespace, Opened, Part, Server};
pub use runner::{EXIT_FAILED, EXIT_NOT_STARTED, EXIT_NOTHING_RAN, run};
pub use settings::{MAX_SEED, Settings};
pub use suite::{Subject, Suite};

/// The examples of the README, which must compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
