//! `cargo xtask`: certify backends, verify certificates, run the tests and the benchmarks.

mod backends;
mod bench;
mod cargo;
mod certify;
mod services;
mod table;
mod test;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the contract suite on backends and write their certificates.
    Certify(certify::Options),
    /// Check a certificate offline.
    Verify(verify::Options),
    /// Run everything that the project has: formatting, lints, docs, tests, proof, certification, examples.
    Test(test::Options),
    /// Measure a backend.
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Certify(options) => certify::run(&options),
        Command::Verify(options) => verify::run(&options),
        Command::Test(options) => test::run(&options),
        Command::Bench(options) => bench::run(&options),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
