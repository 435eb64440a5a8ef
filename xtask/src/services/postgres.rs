//! PostgreSQL: by URL, else `initdb` and `postgres` of this machine in a temporary folder.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::Service;

const VARIABLE: &str = "RHEO_POSTGRES_URL";
/// What is needed of an installation.
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_isready"];
/// The oldest version that the adapter supports.
const OLDEST: u32 = 15;
/// Whom the server runs as when this process is root, since it refuses to be root.
const UNPRIVILEGED: &str = "postgres";
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// A PostgreSQL server for this run.
pub(crate) fn postgres(install: bool) -> Result<Service> {
    if let Some(url) = env::var(VARIABLE).ok().filter(|url| !url.is_empty()) {
        return Ok(Service {
            variable: VARIABLE,
            url,
            told: format!("PostgreSQL at {VARIABLE}"),
            _started: None,
        });
    }
    let programs = match programs() {
        Some(programs) => programs,
        None if install => {
            install_package()?;
            programs().context("the package postgresql was installed, and has no initdb")?
        }
        None => bail!(
            "no PostgreSQL: set {VARIABLE}, or install PostgreSQL {OLDEST} or later (Debian: \
             apt-get install postgresql), or allow that with --install"
        ),
    };
    let server = Server::start(&programs)?;
    Ok(Service {
        variable: VARIABLE,
        url: server.url(),
        told: format!(
            "PostgreSQL of {}, started on port {} for this run, since {VARIABLE} is not set",
            programs.display(),
            server.port
        ),
        _started: Some(Box::new(server)),
    })
}

/// The folder with `initdb` and `postgres`, the newest that there is.
fn programs() -> Option<PathBuf> {
    let on_path = env::var_os("PATH").unwrap_or_default();
    let debian = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut folders: Vec<(u32, PathBuf)> = debian
        .map(|entry| entry.path().join("bin"))
        .chain(env::split_paths(&on_path))
        .filter(|folder| PROGRAMS.iter().all(|program| folder.join(program).exists()))
        .filter_map(|folder| Some((version(&folder)?, folder)))
        .filter(|(version, _)| *version >= OLDEST)
        .collect();
    folders.sort();
    folders.pop().map(|(_, folder)| folder)
}

/// The major version of the `postgres` in a folder.
fn version(folder: &Path) -> Option<u32> {
    let output = Command::new(folder.join("postgres"))
        .arg("--version")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let number = text
        .split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    number
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

fn install_package() -> Result<()> {
    for arguments in [
        &["update"][..],
        &["install", "--yes", "--no-install-recommends", "postgresql"],
    ] {
        let status = Command::new("apt-get")
            .args(["-o", "Acquire::Retries=3"])
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null())
            .status()
            .context("--install needs apt-get")?;
        ensure!(
            status.success(),
            "apt-get {} ended with {status}",
            arguments.join(" ")
        );
    }
    Ok(())
}

/// A server in a temporary folder; dropping it stops it and removes the folder.
struct Server {
    process: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Server {
    fn start(programs: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("rheo-postgres-")
            .tempdir()?;
        let unprivileged = is_root()?;
        if unprivileged {
            let owner = format!("{UNPRIVILEGED}:");
            run(Command::new("chown").arg(owner).arg(folder.path()))?;
        }
        let data = folder.path().join("data");
        let mut initdb = command(unprivileged, &programs.join("initdb"));
        initdb.args([
            "--auth=trust",
            "--username=rheo",
            "--encoding=UTF8",
            "--no-locale",
        ]);
        run(initdb.arg("--pgdata").arg(&data).stdout(Stdio::null()))?;

        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let mut server = command(unprivileged, &programs.join("postgres"));
        server
            .arg("-D")
            .arg(&data)
            .args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        server.arg("-k").arg(folder.path());
        server.args([
            "-c",
            "fsync=on",
            "-c",
            "max_connections=300",
            "-c",
            "logging_collector=off",
        ]);
        let log = fs::File::create(folder.path().join("log"))?;
        let process = server.stdout(Stdio::null()).stderr(log).spawn();
        let mut server = Self {
            process: process.context("cannot start postgres")?,
            folder,
            port,
        };
        server.wait_until_ready(programs)?;
        Ok(server)
    }

    fn url(&self) -> String {
        format!("postgres://rheo@127.0.0.1:{}/postgres", self.port)
    }

    fn wait_until_ready(&mut self, programs: &Path) -> Result<()> {
        let started = Instant::now();
        loop {
            let ready = Command::new(programs.join("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()])
                .status()
                .context("cannot run pg_isready")?;
            if ready.success() {
                return Ok(());
            }
            if let Some(status) = self.process.try_wait()? {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                bail!("postgres ended with {status}:\n{log}");
            }
            ensure!(
                started.elapsed() < START_LIMIT,
                "postgres is not ready after {START_LIMIT:?}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends a signal to the server itself: between it and this process there may be another one.
    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args([signal, &pid]).status();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGINT is PostgreSQL's fast shutdown: sessions are ended, data is written.
        self.signal("-INT");
        let asked = Instant::now();
        while asked.elapsed() < STOP_LIMIT {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn is_root() -> Result<bool> {
    let output = Command::new("id")
        .arg("-u")
        .output()
        .context("cannot run id")?;
    Ok(output.stdout.trim_ascii() == b"0")
}

/// A command that ends with this process, and is not root.
fn command(unprivileged: bool, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    // Should this process be killed, the server gets the signal of a fast shutdown.
    command.args(["--pdeathsig", "INT"]);
    if unprivileged {
        command.args([
            "--reuid",
            UNPRIVILEGED,
            "--regid",
            UNPRIVILEGED,
            "--init-groups",
        ]);
    }
    command.arg("--").arg(program);
    command
}

fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
