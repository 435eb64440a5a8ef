//! `cargo xtask verify FILE`: what a certificate says, checked without running anything.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use rheo_contract::{Certificate, SCHEMA};
use serde_json::Value;

use crate::table;

#[derive(Args)]
pub(crate) struct Options {
    /// The certificates, as `certify` writes them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut all_certify = true;
    for file in &options.files {
        let certificate = match read(file) {
            Ok(certificate) => certificate,
            Err(why) => {
                all_certify = false;
                println!("{}: {why:#}", file.display());
                continue;
            }
        };
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
                "{}: certifies {subject}: {} cases passed, {} not declared, {}",
                file.display(),
                certificate.summary.pass,
                certificate.summary.not_declared,
                table::not_exercised(&certificate)
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

/// Reads a certificate, and says plainly what a file is when it is none.
fn read(file: &Path) -> Result<Certificate> {
    let text = std::fs::read(file).context("it cannot be read")?;
    let document: Value = serde_json::from_slice(&text).context("it is no JSON")?;
    match &document["schema"] {
        Value::String(schema) if schema == SCHEMA => {}
        Value::String(schema) => bail!("its schema is {schema:?}, this version reads {SCHEMA:?}"),
        _ => bail!("it is no certificate: it has no `schema`, which says {SCHEMA:?}"),
    }
    serde_json::from_slice(&text).context("it is no certificate that this version reads")
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn what_is_no_certificate_is_said_plainly() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = |text: &str| {
            let file = folder.path().join("file.json");
            std::fs::write(&file, text).expect("writes");
            format!("{:#}", read(&file).expect_err("it is none"))
        };
        assert!(said("not json").starts_with("it is no JSON: "));
        assert!(said("[1]").starts_with("it is no certificate: it has no `schema`"));
        assert!(said("{}").starts_with("it is no certificate: it has no `schema`"));
        assert!(said("{\"schema\": \"x/1\"}").starts_with("its schema is \"x/1\""));
        let cut = "{\"schema\": \"rheo-certificate/1\"}";
        assert!(
            said(cut).contains("this version reads: missing field"),
            "{}",
            said(cut)
        );
        let nowhere = format!("{:#}", read(&folder.path().join("none")).expect_err("none"));
        assert!(nowhere.starts_with("it cannot be read: "));
    }
}
