//! Faults on command: what the next call of an operation shall meet.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rheo_core::{Error, Operation, Result};

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing happens; the answer is `BackendUnavailable`, as if the connection was refused.
    Unavailable,
    /// Nothing happens; the answer is `Ambiguous`, as if the request was lost on its way.
    AmbiguousBefore,
    /// It happens; the answer is `Ambiguous`, as if the answer was lost on its way.
    AmbiguousAfter,
    /// It happens after that long, in real time; at most [`Fault::MAX_SLOW`]. Dropped before,
    /// nothing happens.
    Slow(Duration),
    /// Nothing happens and no answer comes, until the future is dropped: a frozen server and a client
    /// without an operation timeout. It breaks ERR-4, so that the defences of others can be tried.
    Hang,
}

impl Fault {
    /// The longest [`Fault::Slow`]: 5 s, the default operation timeout.
    pub const MAX_SLOW: Duration = Duration::from_secs(5);

    fn is_ambiguous(self) -> bool {
        matches!(self, Self::AmbiguousBefore | Self::AmbiguousAfter)
    }
}

/// The faults of one handle ([`DoubleBackend::faults`](crate::DoubleBackend::faults)) or of every
/// handle ([`DoubleServer::faults`](crate::DoubleServer::faults)).
///
/// They queue: a call meets the first one that is meant for it, and each is met once. A handle's own
/// come before the server's. `close`, and any call on a closed handle, meets none.
///
/// ```
/// use std::sync::Arc;
/// use rheo_core::{Backend, Error, ErrorKind, NewEvent, Operation, ReadOptions, StreamName};
/// use rheo_core::{StreamOptions, SystemClock};
/// use rheo_double::{DoubleServer, Fault};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let backend = DoubleServer::new().connect(Arc::new(SystemClock));
/// let orders = StreamName::new("orders")?;
/// backend.create_stream(&orders, &StreamOptions::new()).await?;
///
/// backend.faults().next(Operation::Append, Fault::AmbiguousAfter)?;
/// let placed = NewEvent::new("order.placed", json!({"total": 12.50}))?;
/// let lost = backend.append(&orders, placed.clone()).await.map_err(|error| error.kind());
/// assert_eq!(lost, Err(ErrorKind::Ambiguous));
/// assert_eq!(backend.read(&orders, &ReadOptions::new()).await?.len(), 1);
///
/// backend.append(&orders, placed).await?; // each fault is met once
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<VecDeque<Scripted>>>);

#[derive(Debug)]
struct Scripted {
    /// `None` for any.
    operation: Option<Operation>,
    fault: Fault,
}

impl Scripted {
    fn is_for(&self, operation: Operation) -> bool {
        match self.operation {
            Some(only) => only == operation,
            None => operation.writes() || !self.fault.is_ambiguous(),
        }
    }
}

impl Faults {
    /// The next call of `operation` that no earlier fault is meant for meets this one.
    ///
    /// # Errors
    ///
    /// Nothing is queued then:
    ///
    /// - `Invalid` for `operation`: `close`, which needs no server and so meets no fault.
    /// - `Invalid` for `fault`: ambiguous for an operation that only reads, since a read is never
    ///   `Ambiguous` (ERR-3), or slower than [`Fault::MAX_SLOW`].
    pub fn next(&self, operation: Operation, fault: Fault) -> Result<()> {
        if operation == Operation::Close {
            return Err(Error::invalid(
                "operation",
                operation,
                "an operation that needs the server",
            ));
        }
        if fault.is_ambiguous() && !operation.writes() {
            return Err(Error::invalid(
                "fault",
                format_args!("{fault:?} for {operation}"),
                "Unavailable, Slow or Hang for an operation that only reads",
            ));
        }
        self.push(Some(operation), fault)
    }

    /// The next call of whatever operation meets this fault; an ambiguous one lets reads pass.
    ///
    /// # Errors
    ///
    /// `Invalid` for `fault`: slower than [`Fault::MAX_SLOW`]. Nothing is queued.
    pub fn next_of_any(&self, fault: Fault) -> Result<()> {
        self.push(None, fault)
    }

    /// How many faults were not met yet.
    pub fn remaining(&self) -> usize {
        self.queue(|queue| queue.len())
    }

    /// Forgets the faults that were not met yet.
    pub fn clear(&self) {
        self.queue(VecDeque::clear);
    }

    pub(crate) fn take(&self, operation: Operation) -> Option<Fault> {
        self.queue(|queue| {
            let first = queue.iter().position(|s| s.is_for(operation))?;
            queue.remove(first).map(|scripted| scripted.fault)
        })
    }

    fn push(&self, operation: Option<Operation>, fault: Fault) -> Result<()> {
        if let Fault::Slow(delay) = fault
            && delay > Fault::MAX_SLOW
        {
            return Err(Error::invalid(
                "fault",
                format_args!("{fault:?}"),
                format!("Slow of at most {:?}", Fault::MAX_SLOW),
            ));
        }
        self.queue(|queue| queue.push_back(Scripted { operation, fault }));
        Ok(())
    }

    fn queue<T>(&self, work: impl FnOnce(&mut VecDeque<Scripted>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
