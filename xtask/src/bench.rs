//! `cargo xtask bench NAME`: a backend's own benchmark.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::{backends, cargo, ending, services};

#[derive(Args)]
pub(crate) struct Options {
    /// Which backend.
    #[arg(default_value = "ets-like", value_parser = backends::bench_parser())]
    backend: String,
    #[command(flatten)]
    services: services::Options,
    /// Passed on to the benchmark, e.g. a filter.
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let backend = backends::named(std::slice::from_ref(&options.backend))
        .into_iter()
        .next();
    let backend = backend.context("no such backend")?;
    let target = backend.bench.context("it has no benchmark")?;
    let mut services = options.services.clone();
    // What a write costs on a disk is part of what is measured.
    services.storage.get_or_insert(services::Storage::Disk);
    let service = backend.needs.start(&services)?;
    if let Some(service) = &service {
        eprintln!("{}: {}", backend.name, service.told);
    }
    let mut bench = cargo::cargo()?;
    bench.args(["bench", "--quiet", "--package", backend.package]);
    bench.args(["--bench", target, "--"]).args(&options.rest);
    if let Some(service) = &service {
        service.tell(&mut bench);
    }
    let status = ending::status(&mut bench).context("cannot start cargo")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
