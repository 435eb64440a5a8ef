//! The Postgres backend under the contract suite.

mod harness;

use std::process::ExitCode;

fn main() -> ExitCode {
    match harness::Postgres::from_env() {
        Ok(postgres) => rheo_contract::run(postgres),
        Err(code) => code,
    }
}
