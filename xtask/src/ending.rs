//! Ends what this process started together with it: the commands that run, then the servers.
//!
//! Each command gets a process group of its own. A Ctrl-C reaches this process alone then, which passes
//! the signal on, to all that Cargo started as well, and only stops the servers when nobody uses them.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// A server that was started here.
pub(crate) trait Stop: Send + Sync {
    /// Stops it and clears up after it, and returns when that is done; a second call does nothing.
    fn stop(&self);
}

static ENDING: AtomicBool = AtomicBool::new(false);
static COMMANDS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());
static SERVERS: Mutex<Vec<Weak<dyn Stop>>> = Mutex::new(Vec::new());

/// How long commands have to end before the servers are stopped all the same.
const COMMANDS_LIMIT: Duration = Duration::from_secs(10);

/// From now on SIGINT, SIGTERM and SIGHUP clear up before they end this process.
pub(crate) fn on_signals() -> Result<()> {
    let mut signals =
        Signals::new([SIGHUP, SIGINT, SIGTERM]).context("cannot listen for signals")?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            end(signal);
            // As whoever sent it expects: the process dies of the signal.
            let _ = emulate_default_handler(signal);
        }
    });
    Ok(())
}

fn end(signal: i32) {
    eprintln!("\ntold to end: stopping what was started; there is no result");
    ENDING.store(true, Ordering::SeqCst);
    let passed_on = Signal::from_named_raw(signal).unwrap_or(Signal::TERM);
    for group in locked(&COMMANDS).iter() {
        // One that has just ended needs no signal.
        let _ = kill_process_group(*group, passed_on);
    }
    let told = Instant::now();
    while !locked(&COMMANDS).is_empty() && told.elapsed() < COMMANDS_LIMIT {
        thread::sleep(Duration::from_millis(10));
    }
    let servers: Vec<_> = locked(&SERVERS).iter().filter_map(Weak::upgrade).collect();
    servers.iter().for_each(|server| server.stop());
}

/// Has this server stopped when a signal ends the process.
pub(crate) fn with_this_process(server: &Arc<impl Stop + 'static>) {
    let server: Weak<dyn Stop> = Arc::downgrade(&(Arc::clone(server) as Arc<dyn Stop>));
    locked(&SERVERS).push(server);
}

/// While a signal ends the process, nothing else happens: the thread of the signal has the last word.
pub(crate) fn wait_if_ending() {
    while ENDING.load(Ordering::SeqCst) {
        thread::park();
    }
}

fn locked<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command that runs in a process group of its own; dropping it ends that group.
pub(crate) struct Running {
    child: Child,
    group: Pid,
    ended: bool,
}

impl Running {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let mut commands = locked(&COMMANDS);
        // Under the lock: a signal finds it in the list, or has come before and lets nothing start.
        if ENDING.load(Ordering::SeqCst) {
            drop(commands);
            wait_if_ending();
            return Err(io::Error::other("this process is ending"));
        }
        let child = command.process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        commands.push(group);
        Ok(Self {
            child,
            group,
            ended: false,
        })
    }

    /// Its standard output, if it is piped and was not taken yet.
    pub(crate) fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait();
        self.ended = true;
        status
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            let _ = kill_process_group(self.group, Signal::TERM);
            let _ = self.child.wait();
        }
        locked(&COMMANDS).retain(|group| *group != self.group);
        wait_if_ending();
    }
}

/// Runs a command to its end.
pub(crate) fn status(command: &mut Command) -> io::Result<ExitStatus> {
    Running::start(command)?.wait()
}

/// Runs a command to its end, and keeps its standard output. What it says beside it is not kept.
pub(crate) fn output(command: &mut Command) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut running = Running::start(command.stdout(Stdio::piped()))?;
    let mut output = Vec::new();
    if let Some(mut stdout) = running.stdout() {
        stdout.read_to_end(&mut output)?;
    }
    Ok((running.wait()?, output))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::Running;

    #[test]
    fn a_dropped_command_is_ended_with_what_it_started() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 1000 & echo $!; wait"]);
        let mut running = Running::start(shell.stdout(std::process::Stdio::piped())).expect("sh");
        let mut line = String::new();
        let mut output = std::io::BufReader::new(running.stdout().expect("piped"));
        std::io::BufRead::read_line(&mut output, &mut line).expect("a pid");

        drop(running);

        // The pipe ends when nobody holds it any more: neither the shell nor what it started.
        let mut rest = Vec::new();
        std::io::Read::read_to_end(&mut output, &mut rest).expect("ends");
        assert!(rest.is_empty());
    }
}
