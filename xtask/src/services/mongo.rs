//! MongoDB, and SecantusDB where there is no MongoDB: another product that speaks its protocol.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;

use super::local::{self, Program, User};
use super::{Handshake, Kind, Options, Started};
use crate::cargo;
use crate::ending;

/// The official image, of a version that runs are comparable with.
pub(super) const IMAGE: &str = "mongo:7.0.14";
const VARIABLE: &str = "RHEO_MONGO_URL";

/// SecantusDB as Cargo knows it. It is under the GPL: a program that tests talk to, never a dependency.
const CRATE: &str = "secantus-mdb";
const CRATE_VERSION: &str = "0.5.3-beta.193";
const SECANTUSD: &str = "secantusd-rs";

pub(super) fn kind(options: &Options) -> Kind<'_> {
    let more: &[&str] = match options.mongo_handshake {
        Handshake::Standalone => &[],
        Handshake::ReplicaSet => &["--replica-set"],
    };
    Kind {
        product: "MongoDB or compatible server",
        variable: VARIABLE,
        pid_variable: "RHEO_MONGO_PID_FILE",
        image: &options.mongo_image,
        container: ("mongo", more),
        local,
    }
}

fn local(options: &Options) -> Result<Started> {
    match local::find_on_path("mongod") {
        Some(mongod) => mongo(&mongod, options),
        None => secantus(&secantusd(options.install)?, options),
    }
}

fn mongo(mongod: &Path, options: &Options) -> Result<Started> {
    let (handshake, storage) = (options.mongo_handshake, options.storage.unwrap_or_default());
    // Only its shell can make a replica set.
    let shell = match handshake {
        Handshake::Standalone => None,
        Handshake::ReplicaSet => Some(local::find_on_path("mongosh").context(
            "a replica set of mongod needs mongosh on PATH: install it, or use the standalone handshake",
        )?),
    };
    let program = Program::new("mongo", User::Same, Signal::TERM, storage)?;
    let port = local::free_port()?;
    program.start(mongod, |server| {
        server.args(["--bind_ip", "127.0.0.1", "--port", &port.to_string()]);
        server.arg("--dbpath").arg(program.folder());
        if shell.is_some() {
            server.args(["--replSet", "rheo"]);
        }
    })?;
    program.wait_until(|| local::accepts(port))?;
    if let Some(shell) = shell {
        let initiate = format!(
            "rs.initiate({{_id: 'rheo', members: [{{_id: 0, host: '127.0.0.1:{port}'}}]}}); \
             while (!db.hello().isWritablePrimary) sleep(50)"
        );
        local::run(
            Command::new(shell)
                .args(["--quiet", "--port", &port.to_string(), "--eval", &initiate])
                .stdout(std::process::Stdio::null()),
        )?;
    }
    let version = local::version(mongod).unwrap_or_default();
    let told = format!("MongoDB {version} of {}", mongod.display());
    Ok(started(program, port, handshake, &told))
}

fn secantus(secantusd: &Path, options: &Options) -> Result<Started> {
    let (handshake, storage) = (options.mongo_handshake, options.storage.unwrap_or_default());
    let program = Program::new("secantus", User::Same, Signal::TERM, storage)?;
    let port = local::free_port()?;
    program.start(secantusd, |server| {
        server.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        server
            .arg("--storage-path")
            .arg(program.folder().join("data"));
        // Without, a write that it confirmed as journaled can be lost.
        server.arg("--sync-on-commit");
        if handshake == Handshake::Standalone {
            server.arg("--standalone");
        }
    })?;
    program.wait_until(|| local::accepts(port))?;
    let version = local::version(secantusd).unwrap_or_default();
    let told = format!(
        "SecantusDB {version} (not MongoDB) of {}",
        secantusd.display()
    );
    Ok(started(program, port, handshake, &told))
}

fn started(
    program: std::sync::Arc<Program>,
    port: u16,
    handshake: Handshake,
    told: &str,
) -> Started {
    let kind = match handshake {
        Handshake::Standalone => "by itself",
        Handshake::ReplicaSet => "as a replica set",
    };
    Started {
        url: format!("mongodb://127.0.0.1:{port}/"),
        pid_file: Some(program.keep_running()),
        told: format!("{told}, started {kind} on port {port} for this run"),
        lives: Box::new(program),
    }
}

/// SecantusDB's server: on PATH, else as it was built before, else built now if that is allowed.
fn secantusd(install: bool) -> Result<PathBuf> {
    if let Some(program) = local::find_on_path(SECANTUSD) {
        return Ok(program);
    }
    let root = cargo::target()?.join("secantus");
    let program = root.join("bin").join(SECANTUSD);
    if program.exists() && local::version(&program).as_deref() == Some(CRATE_VERSION) {
        return Ok(program);
    }
    if !install {
        bail!(
            "there is no mongod on PATH: install MongoDB 4.4 or later, or have SecantusDB built with \
             --install (some minutes, needs cmake), or set {VARIABLE}"
        );
    }
    if local::find_on_path("cmake").is_none() {
        local::install(&["cmake"])?;
    }
    eprintln!("building SecantusDB {CRATE_VERSION}, once");
    let mut build = cargo::cargo()?;
    build
        .args(["install", CRATE, "--version", CRATE_VERSION, "--locked"])
        .args(["--ignore-rust-version", "--root"])
        .arg(&root);
    // It is built for itself, whatever this project is built with.
    for variable in ["CARGO_TARGET_DIR", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        build.env_remove(variable);
    }
    let status = ending::status(&mut build).context("cannot start cargo")?;
    ensure!(status.success(), "the build of {CRATE} ended with {status}");
    Ok(program)
}
