//! `cargo xtask`: certify backends, verify certificates, run the tests, the benchmarks and servers.

mod backends;
mod bench;
mod cargo;
mod certify;
mod ending;
mod failures;
mod services;
mod table;
mod test;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
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
    /// Start the servers that backends need, until Ctrl-C or for one command.
    Services(services::Serve),
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    let done = ending::on_signals().and_then(|()| run(&command));
    // What went wrong because all is being stopped is no news.
    ending::wait_if_ending();
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Certify(options) => certify::run(options),
        Command::Verify(options) => verify::run(options),
        Command::Test(options) => test::run(options),
        Command::Bench(options) => bench::run(options),
        Command::Services(options) => services::run(options),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::Arguments;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_wrong_call_is_answered_as_it_is_made() {
        let usage = |arguments: &[&str]| {
            let error = Arguments::try_parse_from(arguments)
                .err()
                .expect("it is wrong");
            error.to_string()
        };
        assert!(usage(&["xtask"]).contains("Usage: cargo xtask <COMMAND>"));
        let seed = usage(&["xtask", "certify", "--seed", "x"]);
        assert!(seed.contains("a seed is a whole number"), "{seed}");
        let verify = usage(&["xtask", "verify"]);
        assert!(verify.contains("Usage: cargo xtask verify"), "{verify}");
    }
}
