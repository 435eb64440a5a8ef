//! Calls of Cargo, with the folder and the colours of the call that is running.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The project's folder.
pub(crate) fn root() -> Result<PathBuf> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(xtask
        .parent()
        .context("xtask lies in the project's folder")?
        .to_owned())
}

/// Where Cargo builds: `target`, unless the environment or Cargo's configuration says otherwise.
pub(crate) fn target() -> Result<PathBuf> {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    if let Some(target) = TARGET.get() {
        return Ok(target.clone());
    }
    let output = cargo()?
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cannot start cargo")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let target = metadata["target_directory"]
        .as_str()
        .context("cargo metadata names no target folder")?;
    Ok(TARGET.get_or_init(|| PathBuf::from(target)).clone())
}

/// Where certificates go; what only a part of the suite gave goes into `partial` below it.
pub(crate) fn certificates() -> Result<PathBuf> {
    Ok(target()?.join("certificates"))
}

/// A Cargo command in the project's folder.
pub(crate) fn cargo() -> Result<Command> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()?);
    // What Cargo sets for a running program speaks of xtask, and would reach the tests as if it spoke of them.
    for (name, _) in env::vars_os() {
        let of_xtask = name
            .to_str()
            .is_some_and(|n| n.starts_with("CARGO_PKG_") || n.starts_with("CARGO_MANIFEST_"));
        if of_xtask {
            command.env_remove(name);
        }
    }
    Ok(command)
}
