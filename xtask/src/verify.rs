//! `cargo xtask verify FILE`: what a certificate says, checked without running anything.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use rheo_contract::Certificate;

#[derive(Args)]
pub(crate) struct Options {
    /// The certificates, as `certify` writes them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut all_certify = true;
    for file in &options.files {
        std::fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?;
        let certificate = Certificate::read(file).with_context(|| {
            format!(
                "{} is not a certificate that this version reads",
                file.display()
            )
        })?;
        let found = certificate.verify();
        let server = certificate.server.as_ref().map_or(String::new(), |server| {
            format!(" on {} {}", server.product, server.version)
        });
        let subject = format!(
            "{} {}{server}",
            certificate.backend.name, certificate.backend.version
        );
        if found.is_empty() {
            println!(
                "{}: certifies {subject}: {} cases passed, {} not declared",
                file.display(),
                certificate.summary.pass,
                certificate.summary.not_declared
            );
        } else {
            all_certify = false;
            println!("{}: does NOT certify {subject}:", file.display());
            found.iter().for_each(|why| println!("  - {why}"));
        }
    }
    Ok(if all_certify {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
