//! The store, how a handle on it is opened, and what a handle declares.

use std::sync::{Arc, LazyLock};

use rheo_core::{
    Capabilities, Clock, Error, GroupName, Guarantee, Mechanism, OptionalOperation, Partition,
    Result, StreamName,
};

use crate::DoubleBackend;
use crate::error::stopped;
use crate::faults::Faults;
use crate::keyspace::Keyspace;
use crate::server::{EntryId, PendingEntry, Server};

/// A native stream server with its data, in this process. Cheap to clone; clones are the same server.
///
/// ```
/// use std::sync::Arc;
/// use rheo_core::{Backend, Error, ErrorKind, SystemClock};
/// use rheo_double::DoubleServer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let server = DoubleServer::new();
/// let backend = server.connect(Arc::new(SystemClock));
/// server.stop();
/// let refused = backend.ping().await.map_err(|error| error.kind());
/// assert_eq!(refused, Err(ErrorKind::BackendUnavailable));
/// server.start();
/// backend.ping().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct DoubleServer {
    pub(crate) native: Arc<Server<Keyspace>>,
    faults: Faults,
}

impl DoubleServer {
    /// A running server without any stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// A new handle, which takes its time from `clock`. There may be any number of them, and each
    /// may have another clock.
    pub fn connect(&self, clock: Arc<dyn Clock>) -> DoubleBackend {
        DoubleBackend::new(self.clone(), clock)
    }

    /// Stops the server: every handle gives `BackendUnavailable`. The data stays.
    pub fn stop(&self) {
        self.native.stop();
    }

    /// Starts the server again: every handle that was not closed works again (ERR-5).
    pub fn start(&self) {
        self.native.start();
    }

    /// The faults that the calls of all handles meet.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The native pending lists of a group, by partition and id: what an operator of the server sees.
    ///
    /// # Errors
    ///
    /// `BackendUnavailable`, `StreamNotFound`, `GroupNotFound`.
    pub fn pending(
        &self,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<Vec<(Partition, EntryId, PendingEntry)>> {
        let list = |keys: &mut Keyspace| {
            let stream = keys.stream(stream)?;
            let mut pending = Vec::new();
            for partition in stream.partition_count.partitions() {
                let native = stream.group_partition(group, partition)?.native;
                let entries = native.pending();
                pending.extend(entries.map(|(id, entry)| (partition, id, entry.clone())));
            }
            Ok::<_, Error>(pending)
        };
        self.native.script(list).map_err(stopped)?
    }
}

/// Not durable and not distributed: the server lives and dies with its process. The server's own lag
/// is not used, since it does not count what is pending.
pub(crate) static CAPABILITIES: LazyLock<Capabilities> = LazyLock::new(|| {
    let declared = Capabilities::builder()
        .guarantees([
            Guarantee::Partitions,
            Guarantee::ContiguousFrontier,
            Guarantee::Replay,
            Guarantee::OrderedRangeScan,
            Guarantee::SecondaryIndexes,
            Guarantee::BatchWrites,
        ])
        .without(Guarantee::Durable)
        .without(Guarantee::Distributed)
        .mechanisms([
            Mechanism::AtomicCompareAndSet,
            Mechanism::NativeConsumerGroups,
            Mechanism::NativePendingList,
            Mechanism::NativeReclaim,
            Mechanism::BlockingReads,
        ])
        .operations(OptionalOperation::ALL.iter().copied())
        .build();
    match declared {
        Ok(capabilities) => capabilities,
        Err(error) => unreachable!("the declaration is fixed and valid: {error}"),
    }
});
