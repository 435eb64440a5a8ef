//! Calls of Cargo, with the folder and the colours of the call that is running.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The project's folder.
pub(crate) fn root() -> Result<PathBuf> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(xtask
        .parent()
        .context("xtask lies in the project's folder")?
        .to_owned())
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
