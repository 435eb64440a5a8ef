//! Server programs of this machine, each in a temporary folder that goes with it.

use std::env;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::statvfs;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use super::Storage;
use crate::ending::{self, Stop};

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// Whom a program runs as when this process is root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// Root as well.
    Same,
    /// Somebody else, since the program refuses to be root.
    Instead(&'static str),
}

/// How often it is looked whether a server still runs that shall be kept running.
const LOOK: Duration = Duration::from_millis(50);

/// A server program and its folder. Dropping it stops the server and removes the folder, and so does
/// the end of this process, but for a kill -9: then the server ends and the folder stays.
pub(crate) struct Program {
    name: &'static str,
    path: PathBuf,
    user: User,
    /// What tells it to write its data and end.
    stop_by: Signal,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Nothing more may be started.
    over: bool,
    process: Option<Child>,
    /// What started it, and starts it again.
    start: Option<Command>,
    folder: Option<TempDir>,
}

/// A file system in memory, and how much of it a server may need.
const MEMORY: &str = "/dev/shm";
const ROOM: u64 = 4 << 30;

/// Where the folders of servers are made.
fn folders(storage: Storage) -> PathBuf {
    let has_room = || {
        statvfs(MEMORY).is_ok_and(|system| system.f_bavail.saturating_mul(system.f_frsize) >= ROOM)
    };
    match storage {
        Storage::Memory if env::var_os("TMPDIR").is_none() && has_room() => MEMORY.into(),
        _ => env::temp_dir(),
    }
}

impl Program {
    /// Makes the folder.
    pub(crate) fn new(
        name: &'static str,
        user: User,
        stop_by: Signal,
        storage: Storage,
    ) -> Result<Arc<Self>> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("rheo-{name}-"))
            .tempdir_in(folders(storage))?;
        let user = if geteuid().is_root() {
            user
        } else {
            User::Same
        };
        if let User::Instead(user) = user {
            run(Command::new("chown")
                .arg(format!("{user}:"))
                .arg(folder.path()))?;
        }
        let program = Arc::new(Self {
            name,
            path: folder.path().to_owned(),
            user,
            stop_by,
            state: Mutex::new(State {
                folder: Some(folder),
                ..State::default()
            }),
        });
        ending::with_this_process(&program);
        Ok(program)
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.path
    }

    /// A command that prepares the folder, as the server's user.
    pub(crate) fn prepare(
        &self,
        command: &Path,
        arguments: impl FnOnce(&mut Command),
    ) -> Result<()> {
        let mut command = self.command(command);
        arguments(&mut command);
        run(command.stdout(Stdio::null()))
    }

    /// Starts the server.
    pub(crate) fn start(&self, command: &Path, arguments: impl FnOnce(&mut Command)) -> Result<()> {
        let mut command = self.command(command);
        arguments(&mut command);
        let log = File::create(self.log())?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut state = self.state();
        ensure!(!state.over, "{} was told to end", self.name);
        // In a group of its own: a Ctrl-C is for this process, which stops the server when it is time.
        let process = command.process_group(0).spawn();
        state.process = Some(process.with_context(|| format!("cannot start {command:?}"))?);
        state.start = Some(command);
        Ok(())
    }

    /// From now on, starts the server again whenever it ends before it shall: tests kill it to see what
    /// is there afterwards. Gives the file that has its process id.
    pub(crate) fn keep_running(self: &Arc<Self>) -> PathBuf {
        let program = Arc::downgrade(self);
        let pid_file = self.path.join("server.pid");
        self.state().tell_pid(&pid_file);
        let file = pid_file.clone();
        // It lasts as long as the server, which ends with the thread that started it.
        std::thread::spawn(move || {
            while let Some(program) = program.upgrade() {
                let mut state = program.state();
                if state.over {
                    return;
                }
                if let Some(status) = state.ended() {
                    let ended = how_it_ended(status);
                    eprintln!("{} {ended}, and is started again", program.name);
                    state.start_again();
                    state.tell_pid(&file);
                }
                drop(state);
                drop(program);
                std::thread::sleep(LOOK);
            }
        });
        pid_file
    }

    /// Waits until the server is ready to serve.
    pub(crate) fn wait_until(&self, mut is_ready: impl FnMut() -> bool) -> Result<()> {
        let started = Instant::now();
        while !is_ready() {
            let ended = match &mut self.state().process {
                Some(process) => process.try_wait()?.map(|status| status.to_string()),
                None => Some("a signal".to_owned()),
            };
            if let Some(how) = ended {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                bail!("{} ended with {how}:\n{log}", self.name);
            }
            ensure!(
                started.elapsed() < START_LIMIT,
                "{} is not ready after {START_LIMIT:?}",
                self.name
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// A command in the folder, as the server's user, which ends should this process be killed.
    fn command(&self, program: &Path) -> Command {
        let mut command = if self.user == User::Same && find_on_path("setpriv").is_none() {
            // Not Linux: nothing there does this.
            Command::new(program)
        } else {
            let mut setpriv = Command::new("setpriv");
            setpriv.args(["--pdeathsig", signal_name(self.stop_by)]);
            if let User::Instead(user) = self.user {
                setpriv.args(["--reuid", user, "--regid", user, "--init-groups"]);
            }
            setpriv.arg("--").arg(program);
            setpriv
        };
        command.current_dir(&self.path);
        command
    }

    fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How it ended, if it did.
    fn ended(&mut self) -> Option<ExitStatus> {
        self.process.as_mut()?.try_wait().ok()?
    }

    /// What does not come up is found to have ended, and started once more.
    fn start_again(&mut self) {
        if let Some(start) = &mut self.start
            && let Ok(process) = start.spawn()
        {
            self.process = Some(process);
        }
    }

    fn tell_pid(&self, file: &Path) {
        if let Some(process) = &self.process
            && let Err(error) = fs::write(file, process.id().to_string())
        {
            eprintln!("{} cannot be written: {error}", file.display());
        }
    }
}

/// Tests kill a server on purpose, by SIGKILL; whatever else ended it is worth knowing.
fn how_it_ended(status: ExitStatus) -> String {
    if status.signal() == Some(Signal::KILL.as_raw()) {
        "was killed, as cases do to see what is there afterwards".to_owned()
    } else {
        format!("ended by itself with {status}")
    }
}

impl Stop for Program {
    fn stop(&self) {
        let mut state = self.state();
        state.over = true;
        if let Some(mut process) = state.process.take() {
            let _ = kill_process(Pid::from_child(&process), self.stop_by);
            let asked = Instant::now();
            while matches!(process.try_wait(), Ok(None)) && asked.elapsed() < STOP_LIMIT {
                std::thread::sleep(Duration::from_millis(20));
            }
            // No effect on one that has ended.
            let _ = process.kill();
            let _ = process.wait();
        }
        if let Some(folder) = state.folder.take()
            && let Err(error) = folder.close()
        {
            eprintln!("{} cannot be removed: {error}", self.path.display());
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop();
    }
}

/// As setpriv calls it.
fn signal_name(signal: Signal) -> &'static str {
    if signal == Signal::INT { "INT" } else { "TERM" }
}

/// A port that was free just now.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Whether something accepts connections there.
pub(crate) fn accepts(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// The program of this name on PATH.
pub(crate) fn find_on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// What a program says to `--version`, and the first number in it.
pub(crate) fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    version_in(&String::from_utf8_lossy(&output.stdout))
}

fn version_in(text: &str) -> Option<String> {
    let starts_a_version = |word: &&str| {
        word.trim_start_matches('v')
            .starts_with(|c: char| c.is_ascii_digit())
    };
    let word = text.split_whitespace().find(starts_a_version)?;
    Some(word.trim_start_matches('v').to_owned())
}

/// Installs packages, as root on Debian.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    eprintln!("installing {}", packages.join(", "));
    let install = ["install", "--yes", "--no-install-recommends"];
    for arguments in [&["update"][..], &[&install, packages].concat()] {
        let status = ending::status(
            Command::new("apt-get")
                .args(["-o", "Acquire::Retries=3"])
                .args(arguments)
                .env("DEBIAN_FRONTEND", "noninteractive")
                .stdin(Stdio::null())
                .stdout(Stdio::null()),
        )
        .context("--install needs apt-get")?;
        ensure!(
            status.success(),
            "apt-get {} ended with {status}",
            arguments.join(" ")
        );
    }
    Ok(())
}

pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = ending::status(command).with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::Path;
    use std::process::Command;

    use rustix::process::{Signal, test_kill_process};

    use super::{Pid, Program, User, how_it_ended, version_in};
    use crate::services::Storage;

    #[test]
    fn versions_are_found() {
        let of = |text| version_in(text);
        assert_eq!(
            of("postgres (PostgreSQL) 17.6 (Debian 1)").as_deref(),
            Some("17.6")
        );
        assert_eq!(
            of("db version v7.0.14\nBuild Info").as_deref(),
            Some("7.0.14")
        );
        assert_eq!(
            of("secantusd-rs 0.5.3-beta.193").as_deref(),
            Some("0.5.3-beta.193")
        );
        assert_eq!(of("none"), None);
    }

    #[test]
    fn a_kill_is_told_from_a_crash() {
        let ended = |script: &str| {
            let mut shell = Command::new("sh");
            let status = shell.args(["-c", script]).status().expect("sh");
            how_it_ended(status)
        };
        assert!(ended("kill -KILL $$").starts_with("was killed, as cases do"));
        assert_eq!(ended("exit 3"), "ended by itself with exit status: 3");
        assert!(ended("kill -ABRT $$").starts_with("ended by itself with signal: 6"));
    }

    #[test]
    fn a_panic_stops_the_server_and_removes_its_folder() {
        let program =
            Program::new("test", User::Same, Signal::TERM, Storage::Disk).expect("a folder");
        program
            .start(Path::new("sleep"), |sleep| {
                sleep.arg("1000");
            })
            .expect("sleep");
        let folder = program.folder().to_owned();
        let pid = program
            .state()
            .process
            .as_ref()
            .map(Pid::from_child)
            .expect("runs");
        assert!(folder.exists());

        let moved = AssertUnwindSafe(program);
        let ended = catch_unwind(|| {
            let _program = moved;
            panic!("as a test would");
        });

        assert!(ended.is_err());
        assert!(!folder.exists());
        assert!(test_kill_process(pid).is_err(), "it still runs");
    }

    #[test]
    fn a_server_that_ends_at_once_says_why() {
        let program =
            Program::new("test", User::Same, Signal::TERM, Storage::Disk).expect("a folder");
        program
            .start(Path::new("sh"), |shell| {
                shell.args(["-c", "echo no memory >&2; exit 3"]);
            })
            .expect("sh");
        let why = program.wait_until(|| false).expect_err("it ended");
        let why = format!("{why:#}");
        assert!(
            why.contains("exit status: 3") && why.contains("no memory"),
            "{why}"
        );
    }
}
