//! PostgreSQL.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::local::{self, Program, User};
use super::{Kind, Options, Started, Storage};

/// The official image, of a version that runs are comparable with.
pub(super) const IMAGE: &str = "postgres:17.6";
const VARIABLE: &str = "RHEO_POSTGRES_URL";
/// What is needed of an installation.
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_isready"];
/// The oldest version that the adapter supports.
const OLDEST: u32 = 15;

pub(super) fn kind(options: &Options) -> Kind<'_> {
    Kind {
        product: "PostgreSQL",
        variable: VARIABLE,
        pid_variable: "RHEO_POSTGRES_PID_FILE",
        image: &options.postgres_image,
        container: ("postgres", &[]),
        local,
    }
}

fn local(options: &Options) -> Result<Started> {
    let programs = match programs() {
        Some(programs) => programs,
        None if options.install => {
            local::install(&["postgresql"])?;
            programs().with_context(|| {
                format!(
                    "the package postgresql was installed, and has no initdb of {OLDEST} or later"
                )
            })?
        }
        None => bail!(
            "there is no initdb of PostgreSQL {OLDEST} or later on PATH or under /usr/lib/postgresql: \
             install it (Debian: apt-get install postgresql), or allow that with --install, or set \
             {VARIABLE}"
        ),
    };
    start(&programs, options.storage.unwrap_or_default())
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
        .filter_map(|folder| Some((major(&version(&folder)?)?, folder)))
        .filter(|(version, _)| *version >= OLDEST)
        .collect();
    folders.sort();
    folders.pop().map(|(_, folder)| folder)
}

fn version(folder: &Path) -> Option<String> {
    local::version(&folder.join("postgres"))
}

fn major(version: &str) -> Option<u32> {
    version
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

fn start(programs: &Path, storage: Storage) -> Result<Started> {
    // SIGINT is PostgreSQL's fast shutdown: sessions are ended, data is written. It refuses to be root.
    let program = Program::new("postgres", User::Instead("postgres"), Signal::INT, storage)?;
    let data = program.folder().join("data");
    program.prepare(&programs.join("initdb"), |initdb| {
        initdb
            .args(["--auth=trust", "--username=rheo"])
            .args(["--encoding=UTF8", "--no-locale"])
            .arg("--pgdata")
            .arg(&data);
    })?;
    let port = local::free_port()?;
    program.start(&programs.join("postgres"), |server| {
        server
            .arg("-D")
            .arg(&data)
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k"])
            .arg(program.folder());
        for setting in ["fsync=on", "max_connections=300", "logging_collector=off"] {
            server.args(["-c", setting]);
        }
    })?;
    let is_ready = programs.join("pg_isready");
    program.wait_until(|| {
        let mut is_ready = Command::new(&is_ready);
        is_ready.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]);
        is_ready.status().is_ok_and(|status| status.success())
    })?;
    // It asks for no password; one that is there all the same must show in no error.
    Ok(Started {
        url: format!("postgres://rheo:shown-in-no-error@127.0.0.1:{port}/postgres"),
        told: format!(
            "PostgreSQL {} of {}, started on port {port} for this run",
            version(programs).unwrap_or_default(),
            programs.display()
        ),
        pid_file: Some(program.keep_running()),
        lives: Box::new(program),
    })
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn a_version_has_a_major_part() {
        assert_eq!(major("15.18"), Some(15));
        assert_eq!(major("18beta1"), Some(18));
        assert_eq!(major("devel"), None);
    }
}
