//! The Postgres backend under the contract suite.

#[expect(dead_code, reason = "the crashes run SQL")]
mod harness;

use std::process::ExitCode;

fn main() -> ExitCode {
    match harness::Postgres::from_env() {
        Ok(postgres) => postgres.and_drop_all(rheo_contract::run),
        Err(code) => code,
    }
}
