//! A small imitation of a native stream server, synchronous and in memory.
//!
//! It knows nothing of Rheo and speaks its own language, which is that of Redis Streams: a
//! [`NativeStream`] holds entries under ids that the server gives out, and consumer groups that
//! know the last id they delivered and a pending list of what was delivered and not acked. What a
//! native store lacks (sequences, leases, delays, dead letters) is for the adapter to add.
//!
//! # Scripts
//!
//! A [`Server`] runs one [`script`](Server::script) at a time, whole, on all of its data: here a
//! closure under its lock, there a Lua script in one `EVAL`. It is the only way in, so every
//! operation of an adapter is one atomic step in one round trip. As there, a script that gives up
//! halfway is not rolled back: it has to check first and write afterwards.
//!
//! Time is an argument of the calls, since a double has to live by the clock of a test.

mod entry_id;
mod group;
mod stream;

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub use entry_id::EntryId;
pub use group::{NativeGroup, PendingEntry};
pub use stream::NativeStream;

/// What the server refuses, in its own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The server does not run.
    #[error("connection refused: the server is stopped")]
    Stopped,
    /// The stream has no such group.
    #[error("NOGROUP no such consumer group")]
    NoGroup,
    /// The stream has that group already.
    #[error("BUSYGROUP consumer group name already exists")]
    BusyGroup,
}

/// A server process with its data.
#[derive(Debug, Default)]
pub struct Server<D> {
    state: Mutex<State<D>>,
    changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State<D> {
    stopped: bool,
    data: D,
}

impl<D> Server<D> {
    /// Runs a script: nothing else happens on the server meanwhile.
    ///
    /// # Errors
    ///
    /// [`ServerError::Stopped`]; the script was not run.
    pub fn script<T>(&self, script: impl FnOnce(&mut D) -> T) -> Result<T, ServerError> {
        let mut state = self.state();
        if state.stopped {
            return Err(ServerError::Stopped);
        }
        Ok(script(&mut state.data))
    }

    /// Stops answering; the data stays.
    pub fn stop(&self) {
        self.state().stopped = true;
        self.announce();
    }

    /// Answers again.
    pub fn start(&self) {
        self.state().stopped = false;
        self.announce();
    }

    /// Wakes every blocked read, so that it looks again.
    pub fn announce(&self) {
        self.changes.send_replace(());
    }

    /// What a blocked read waits on: it changes with every announcement from now on.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn state(&self) -> MutexGuard<'_, State<D>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
