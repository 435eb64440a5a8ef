//! `cargo xtask certify`: runs each backend's own `tests/contract.rs` and gathers the certificates.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rheo_contract::{Budget, Certificate, Effort, MAX_SEED, Settings, Verdict};

use crate::backends::{self, BACKENDS, Backend};
use crate::ending::Running;
use crate::services::{self, Service};
use crate::{cargo, table};

#[derive(Args)]
pub(crate) struct Options {
    /// Just this backend; may be given several times. Default: all that need no server.
    #[arg(long = "backend", value_name = "NAME", value_parser = backends::parser())]
    backends: Vec<String>,
    /// All backends; one whose server cannot be had is listed as not run.
    #[arg(long, conflicts_with = "backends")]
    all: bool,
    /// With --all: it is an error when the server of this backend cannot be had.
    #[arg(long, value_name = "NAME", value_parser = backends::parser(), requires = "all")]
    require: Vec<String>,
    #[command(flatten)]
    services: services::Options,
    /// What to print at the end.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Where to write NAME.json and NAME.xml; default `certificates` in Cargo's target folder, with a
    /// filter or the budget `quick` `certificates/partial`.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The seed of everything random; default `RHEO_SEED`, else a new one, which is printed.
    #[arg(long, value_parser = seed, allow_hyphen_values = true)]
    seed: Option<u64>,
    /// How much of what is generated is tried: `quick` while you work, which certifies nothing and ends
    /// with 0 where nothing failed, `long` at night; default `RHEO_BUDGET`, else `default`.
    #[arg(long, value_name = "BUDGET")]
    budget: Option<Budget>,
    /// Also run the cases of what is not declared, and say what could be; `RHEO_AUDIT=1` is the same.
    #[arg(long)]
    audit: bool,
    /// Only cases whose name contains this, e.g. `LSE-2` or `queries`; such a run certifies nothing.
    #[arg(value_name = "FILTER")]
    filter: Option<String>,
}

fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse().ok().filter(|seed| *seed <= MAX_SEED);
    seed.ok_or_else(|| format!("a seed is a whole number from 0 to {MAX_SEED}, as a run prints it"))
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A table for people.
    Table,
    /// The certificates, as a JSON array on standard output.
    Json,
}

impl Options {
    /// Whether the run certifies nothing, whatever it comes to.
    fn is_partial(&self, settings: &Settings) -> bool {
        self.filter.is_some() || settings.budget == Budget::Quick
    }

    /// What the run is told: by options, else by the environment.
    fn settings(&self, environment: Settings) -> Settings {
        let mut settings = environment;
        settings.budget = self.budget.unwrap_or(settings.budget);
        settings.audit |= self.audit;
        settings
    }

    /// The variables that tell it, where it is not the environment itself that does.
    fn variables(&self, settings: &Settings) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("RHEO_AUDIT", u8::from(settings.audit).to_string()),
            ("RHEO_BUDGET", settings.budget.to_string()),
        ];
        variables.extend(self.seed.map(|seed| ("RHEO_SEED", seed.to_string())));
        variables
    }
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let settings = options.settings(Settings::from_env().map_err(anyhow::Error::msg)?);
    let partial = options.is_partial(&settings);
    let folder = match &options.output {
        Some(folder) => std::path::absolute(folder)?,
        // A part of the suite certifies nothing, and must not replace what does.
        None if partial => cargo::certificates()?.join("partial"),
        None => cargo::certificates()?,
    };
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut certificates = Vec::new();
    let mut told = Vec::new();
    for backend in chosen(options) {
        let service = match backend.needs.start(&options.services) {
            Ok(service) => service,
            Err(why) if options.all && !backends::named(&options.require).contains(&backend) => {
                eprintln!("{}: not run: {why:#}", backend.package);
                continue;
            }
            Err(why) => return Err(why.context(format!("{} has no server", backend.package))),
        };
        let variables = options.variables(&settings);
        let certificate = certify(
            backend,
            service.as_ref(),
            options,
            &variables,
            &folder,
            &mut told,
        )
        .with_context(|| format!("{} could not be judged", backend.package))?;
        certificates.push(certificate);
    }
    match options.format {
        Format::Table => print_for_people(&certificates, &folder),
        Format::Json => println!("{}", serde_json::to_string_pretty(&certificates)?),
    }
    for line in told {
        eprintln!("{line}");
    }
    let fine = |certificate: &Certificate| {
        certificate.certified || (partial && table::verdict(certificate) != "FAILED")
    };
    Ok(if certificates.iter().all(fine) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The backends that were asked for.
fn chosen(options: &Options) -> Vec<Backend> {
    if !options.backends.is_empty() {
        return backends::named(&options.backends);
    }
    let chosen = |backend: &&Backend| options.all || !backend.has_server();
    BACKENDS.iter().filter(chosen).copied().collect()
}

fn certify(
    backend: Backend,
    service: Option<&Service>,
    options: &Options,
    variables: &[(&str, String)],
    folder: &Path,
    told: &mut Vec<String>,
) -> Result<Certificate> {
    if let Some(service) = service {
        eprintln!("{}: {}", backend.package, service.told);
    }
    let path = Certificate::path_in(folder, backend.package);
    // What an earlier run wrote must not be taken for what this one did.
    for stale in [path.clone(), path.with_extension("xml")] {
        if stale.exists() {
            fs::remove_file(&stale)
                .with_context(|| format!("cannot remove {}", stale.display()))?;
        }
    }
    let mut command = cargo::cargo()?;
    eprintln!(
        "{}: building and running its tests/contract.rs",
        backend.package
    );
    command.args([
        "test",
        "--package",
        backend.package,
        "--test",
        "contract",
        "--",
    ]);
    command.args(&options.filter);
    command.env("RHEO_CERTIFICATES", folder);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    // One line per case, whatever --quiet says to Cargo.
    command.args(["--format", "pretty", "--color", "never"]);
    if let Some(service) = service {
        service.tell(&mut command);
    }
    let mut child = Running::start(command.stdout(Stdio::piped())).context("cannot start cargo")?;
    let output = child.stdout().context("standard output is piped")?;
    let mut progress = Progress::new(backend.package);
    let mut other_lines = Vec::new();
    // A backend may print anything: its bytes need not be text.
    for line in BufReader::new(output).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        if !progress.notes(&line) {
            other_lines.push(line);
        }
    }
    // Where the process is told to end, this does not return: half a run is no result.
    let status = child.wait()?;
    progress.end();
    // What the suite itself says is behind what the test runner says.
    let said = other_lines
        .iter()
        .skip_while(|line| !line.starts_with("test result: "))
        .skip(1)
        .filter(|line| !line.is_empty() && !line.starts_with("certificate: "));
    told.extend(said.map(|line| format!("{}: {line}", backend.package)));
    if !path.exists() {
        bail!(
            "the suite wrote no certificate ({status}):\n{}",
            other_lines.join("\n")
        );
    }
    let certificate = Certificate::read(&path)
        .with_context(|| format!("{} is not what this version writes", path.display()))?;
    if certificate.backend.name != backend.package {
        bail!(
            "{} is the certificate of {:?}: the harness of {} must give its package's name",
            path.display(),
            certificate.backend.name,
            backend.package
        );
    }
    // The document is asked, not what it says of itself.
    let wrong = certificate.verify();
    if certificate.certified && !wrong.is_empty() {
        bail!(
            "{} contradicts itself: {}",
            path.display(),
            wrong.join("; ")
        );
    }
    let summary = certificate.summary;
    if !status.success() && summary.fail + summary.unknown == 0 && summary.pass > 0 {
        bail!("every case passed, but the run itself ended with {status}");
    }
    let ran = certificate
        .cases
        .iter()
        .any(|case| !matches!(case.verdict, Verdict::NotDeclared | Verdict::NotExercised));
    if !ran {
        bail!(
            "nothing ran: no case matches {:?}",
            options.filter.as_deref().unwrap_or_default()
        );
    }
    Ok(certificate)
}

fn print_for_people(certificates: &[Certificate], folder: &Path) {
    for certificate in certificates {
        for case in &certificate.cases {
            if matches!(case.verdict, Verdict::Fail | Verdict::Unknown) {
                let reason = case.reason.as_deref().unwrap_or("no reason was given");
                println!(
                    "\n---- {}: {} ----\n{reason}",
                    certificate.backend.name, case.name
                );
            }
        }
    }
    println!("\n{}", table::of(certificates));
    for certificate in certificates {
        let summary = certificate.summary;
        println!(
            "{}: {}: {} passed, {} failed, {} unknown, {} not declared, {} in {:.1} s; seed {}",
            certificate.backend.name,
            table::verdict(certificate),
            summary.pass,
            summary.fail,
            summary.unknown,
            summary.not_declared,
            table::not_exercised(certificate),
            std::time::Duration::from_micros(certificate.duration_micros).as_secs_f64(),
            certificate.seed,
        );
        // Why a run in which nothing failed certifies nothing.
        if table::verdict(certificate) == table::PARTIAL {
            for shortcoming in certificate.shortcomings() {
                println!("  not certified: {shortcoming}");
            }
        }
    }
    for certificate in certificates {
        let Effort {
            histories,
            operations,
            interleaved_operations,
            cut_points,
            drop_points,
            kills,
            ..
        } = certificate.effort;
        println!(
            "{}: tried {operations} operations in {histories} random histories, \
             {interleaved_operations} interleaved operations, {cut_points} cut points, \
             {drop_points} drop points, {kills} kills",
            certificate.backend.name,
        );
    }
    println!("certificates: {}", folder.display());
}

/// So many cases are a line of progress, where there is no terminal.
const LINE: usize = 100;

/// A line on standard error that counts the cases while they run.
struct Progress {
    name: &'static str,
    done: usize,
    failed: usize,
    live: bool,
}

impl Progress {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            done: 0,
            failed: 0,
            live: std::io::stderr().is_terminal(),
        }
    }

    /// Whether the line was about a case.
    fn notes(&mut self, line: &str) -> bool {
        let Some((_, outcome)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.split_once("... "))
        else {
            return false;
        };
        self.done += 1;
        self.failed += usize::from(outcome.starts_with("FAILED"));
        if self.live {
            eprint!("\r{self}");
            let _ = std::io::stderr().flush();
        } else if self.done.is_multiple_of(LINE) {
            eprintln!("{self} so far");
        }
        true
    }

    fn end(&self) {
        let start = if self.live { "\r" } else { "" };
        eprintln!("{start}{self}");
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cases = if self.done == 1 { "case" } else { "cases" };
        let Self {
            name, done, failed, ..
        } = self;
        write!(f, "{name}: {done} {cases}, {failed} failed")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rheo_contract::{Budget, Settings};

    use super::{MAX_SEED, Options, Progress, seed};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn told(line: &str, environment: &Settings) -> (bool, Vec<(&'static str, String)>) {
        let words = std::iter::once("certify").chain(line.split_whitespace());
        let options = Line::parse_from(words).options;
        let settings = options.settings(environment.clone());
        (options.is_partial(&settings), options.variables(&settings))
    }

    #[test]
    fn what_no_option_says_the_environment_says() {
        let mut environment = Settings::default();
        let variable = |name, value: &str| (name, value.to_owned());
        let usual = vec![
            variable("RHEO_AUDIT", "0"),
            variable("RHEO_BUDGET", "default"),
        ];
        assert_eq!(told("", &environment), (false, usual));

        environment.budget = Budget::Quick;
        environment.audit = true;
        let quick = vec![
            variable("RHEO_AUDIT", "1"),
            variable("RHEO_BUDGET", "quick"),
        ];
        assert_eq!(told("", &environment), (true, quick));

        let long = vec![
            variable("RHEO_AUDIT", "1"),
            variable("RHEO_BUDGET", "long"),
            variable("RHEO_SEED", "7"),
        ];
        assert_eq!(told("--budget long --seed 7", &environment), (false, long));
    }

    #[test]
    fn a_seed_is_a_number() {
        assert_eq!(seed("9007199254740991"), Ok(MAX_SEED));
        for wrong in ["", "-1", "0x7", "18446744073709551616"] {
            assert!(seed(wrong).is_err_and(|why| why.contains("a whole number")));
        }
    }

    #[test]
    fn one_case_is_no_cases() {
        let mut progress = Progress::new("a");
        assert!(progress.notes("test log::LOG-1::x ... ok"));
        assert_eq!(progress.to_string(), "a: 1 case, 0 failed");
        assert!(progress.notes("test log::LOG-1::y ... FAILED"));
        assert!(!progress.notes("certificate: a.json"));
        assert_eq!(progress.to_string(), "a: 2 cases, 1 failed");
    }
}
