//! `cargo xtask test`: everything that the project has, step by step, and what came of each.

use std::io::{self, BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use rheo_contract::Certificate;

use crate::backends::{self, BACKENDS, Backend};
use crate::failures::Failures;
use crate::services::{self, Service};
use crate::{cargo, ending};

/// The most crates that rheo-core may bring along without its default features, itself included.
const CORE_CRATES: usize = 25;

#[derive(Args)]
pub(crate) struct Options {
    /// It is an error when the server of this backend cannot be had; without, it is said and left out.
    #[arg(long, value_name = "NAME", value_parser = backends::parser())]
    require: Vec<String>,
    #[command(flatten)]
    services: services::Options,
}

/// One thing that is checked.
struct Step {
    name: &'static str,
    run: fn(&Servers) -> Result<()>,
}

const STEPS: &[Step] = &[
    Step {
        name: "formatting",
        run: |_| call(cargo::cargo()?.args(["fmt", "--all", "--check"])),
    },
    Step {
        // Of all targets, so that benchmarks compile too.
        name: "lints",
        run: |_| lints(),
    },
    Step {
        name: "docs build without warnings",
        run: |_| docs(),
    },
    Step {
        name: "rheo-core is small",
        run: |_| core_is_small(),
    },
    Step {
        name: "tests of the workspace",
        run: tests,
    },
    Step {
        name: "certification",
        run: certification,
    },
    Step {
        name: "the third-party example passes",
        run: |_| third_party_passes(),
    },
    Step {
        name: "the broken third-party example fails readably",
        run: |_| third_party_fails(),
    },
];

/// The servers of this run, and the backends that have none.
#[derive(Default)]
struct Servers {
    started: Vec<Service>,
    missing: Vec<Backend>,
}

impl Servers {
    fn start(options: &Options) -> Result<Self> {
        let required = backends::named(&options.require);
        let mut servers = Self::default();
        for backend in BACKENDS {
            match backend.needs.start(&options.services) {
                Ok(None) => {}
                Ok(Some(service)) => {
                    println!("{}: {}", backend.package, service.told);
                    servers.started.push(service);
                }
                Err(why) if required.contains(backend) => {
                    return Err(why.context(format!("{} has no server", backend.package)));
                }
                Err(why) => {
                    println!("{}: NOT TESTED: {why:#}", backend.package);
                    servers.missing.push(*backend);
                }
            }
        }
        Ok(servers)
    }

    /// Tells a command where the servers are.
    fn tell<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        self.started
            .iter()
            .for_each(|service| service.tell(command));
        command
    }
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let servers = Servers::start(options)?;
    let mut ended: Vec<(&str, Duration, Option<anyhow::Error>)> = Vec::new();
    for step in STEPS {
        println!("\n=== {} ===", step.name);
        let started = Instant::now();
        let result = (step.run)(&servers);
        if let Err(error) = &result {
            eprintln!("FAILED: {error:#}");
        }
        ended.push((step.name, started.elapsed(), result.err()));
    }
    println!("\n=== summary ===");
    for (name, took, error) in &ended {
        let verdict = if error.is_none() { "ok" } else { "FAILED" };
        println!("{verdict:<6} {name} ({:.1} s)", took.as_secs_f64());
        if let Some(error) = error {
            let told = format!("{error:#}");
            told.lines().for_each(|line| println!("       {line}"));
        }
    }
    for backend in &servers.missing {
        println!("NOT TESTED: {}, which had no server", backend.package);
    }
    let failed = ended.iter().filter(|(.., error)| error.is_some()).count();
    println!("{} passed, {failed} failed", ended.len() - failed);
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn tests(servers: &Servers) -> Result<()> {
    let mut command = cargo::cargo()?;
    command.args(["test", "--workspace", "--no-fail-fast"]);
    for backend in &servers.missing {
        command.args(["--exclude", backend.package]);
    }
    call_tests(servers.tell(&mut command))
}

fn call(command: &mut Command) -> Result<()> {
    let told = shown(command);
    let status = ending::status(command).with_context(|| format!("cannot start {told}"))?;
    ensure!(status.success(), "{told} ended with {status}");
    Ok(())
}

/// The same for what prints results of tests: the error has the failures once more, so that they are found at
/// the end of a long output.
fn call_tests(command: &mut Command) -> Result<()> {
    let told = shown(command);
    let mut running = ending::Running::start(command.stdout(Stdio::piped()))
        .with_context(|| format!("cannot start {told}"))?;
    let mut failures = Failures::default();
    if let Some(output) = running.stdout() {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line)? > 0 {
            io::Write::write_all(&mut io::stdout(), &line)?;
            failures.line(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    }
    let status = running.wait()?;
    ensure!(status.success(), "{told} ended with {status}{failures}");
    Ok(())
}

/// A command without its environment, in which there may be secrets.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

fn lints() -> Result<()> {
    let deny = ["--", "--deny", "warnings"];
    call(
        cargo::cargo()?
            .args(["clippy", "--workspace", "--all-targets", "--all-features"])
            .args(deny),
    )?;
    let small = ["clippy", "--package", "rheo-core", "--no-default-features"];
    call(cargo::cargo()?.args(small).args(deny))
}

fn docs() -> Result<()> {
    let mut command = cargo::cargo()?;
    command.env("RUSTDOCFLAGS", "--deny warnings");
    call(command.args(["doc", "--workspace", "--no-deps"]))
}

fn core_is_small() -> Result<()> {
    let mut command = cargo::cargo()?;
    command.args(["tree", "--package", "rheo-core", "--no-default-features"]);
    command.args([
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let output = command.output().context("cannot start cargo")?;
    ensure!(
        output.status.success(),
        "cargo tree failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout)?;
    let mut crates: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    crates.sort_unstable();
    crates.dedup();
    println!(
        "rheo-core without default features is {} crates: {}",
        crates.len(),
        crates.join(", ")
    );
    ensure!(
        crates.len() < CORE_CRATES,
        "{} crates, fewer than {CORE_CRATES} are allowed",
        crates.len()
    );
    Ok(())
}

/// `certify`, then `verify` on what it wrote, as people do it.
fn certification(servers: &Servers) -> Result<()> {
    let folder = cargo::certificates()?;
    let mut certify = xtask()?;
    // Whatever else the environment says: what `verify` is to accept is a full run.
    certify.arg("certify").env_remove("RHEO_BUDGET");
    let mut files = Vec::new();
    for backend in BACKENDS
        .iter()
        .filter(|backend| !servers.missing.contains(backend))
    {
        certify.args(["--backend", backend.name]);
        files.push(Certificate::path_in(&folder, backend.package));
    }
    call_tests(servers.tell(&mut certify))?;
    call(xtask()?.arg("verify").args(files))
}

fn xtask() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.current_dir(cargo::root()?);
    Ok(command)
}

fn third_party(features: &[&str]) -> Result<Command> {
    let mut command = cargo::cargo()?;
    command.current_dir(cargo::root()?.join("examples/third-party"));
    command.env("CARGO_TARGET_DIR", cargo::target()?.join("third-party"));
    command.args(["test", "--locked"]).args(features);
    Ok(command)
}

fn third_party_passes() -> Result<()> {
    call_tests(&mut third_party(&[])?)
}

fn third_party_fails() -> Result<()> {
    let mut broken = third_party(&["--features", "broken"])?;
    let (status, output) =
        ending::output(broken.stderr(Stdio::null())).context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output);
    ensure!(!status.success(), "the broken backend passed:\n{text}");
    for part in [
        "rule:     LSE-2",
        "expected:",
        "seen:",
        "history:",
        "usually:",
        "again:",
    ] {
        ensure!(
            text.contains(part),
            "the failure does not say {part:?}:\n{text}"
        );
    }
    println!("it fails, with rule, expectation, history, usual cause and command");
    Ok(())
}
