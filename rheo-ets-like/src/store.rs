//! The shared data of all handles: the streams, each behind its own lock.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use rheo_core::{
    Cause, Clock, Error, Existing, ListOptions, PartitionCount, Result, StreamInfo, StreamName,
};
use tokio::sync::Notify;

use crate::MemoryBackend;
use crate::stream::Stream;

/// Streams in memory, for any number of handles. Clones share the data, which goes away with the
/// last clone and the last handle.
///
/// It can be shut down and started up again like a server, which keeps its data.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Shared>);

#[derive(Default)]
struct Shared {
    streams: RwLock<BTreeMap<StreamName, Arc<Shelf>>>,
    is_down: AtomicBool,
}

/// A stream in the store.
pub(crate) struct Shelf {
    stream: Mutex<Stream>,
    /// Told when something may have become claimable.
    pub(crate) work: Notify,
}

impl Shelf {
    /// Locks the stream; never held across an await, so a dropped future leaves no lock (CAN-1).
    pub(crate) fn lock(&self) -> MutexGuard<'_, Stream> {
        // Poisoned means that a thread panicked in here. The data outlives that, as a server's does.
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryStore {
    /// An empty store that is up.
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle on this store that takes its time from `clock`.
    pub fn open(&self, clock: Arc<dyn Clock>) -> MemoryBackend {
        MemoryBackend::on(self.clone(), clock)
    }

    /// Makes every operation of every handle give `BackendUnavailable`; the data stays.
    pub fn shut_down(&self) {
        self.0.is_down.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// Brings the store back, with its data; the same handles work again (ERR-5).
    pub fn start_up(&self) {
        self.0.is_down.store(false, Ordering::SeqCst);
    }

    pub(crate) fn check_up(&self) -> Result<()> {
        if self.0.is_down.load(Ordering::SeqCst) {
            return Err(Error::BackendUnavailable(Cause::new(
                "the store is shut down",
            )));
        }
        Ok(())
    }

    /// Wakes whoever waits for work, to see that the store or a handle is gone.
    pub(crate) fn wake_all(&self) {
        let streams = self
            .0
            .streams
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        for shelf in streams.values() {
            shelf.work.notify_waiters();
        }
    }

    pub(crate) fn create(&self, stream: &StreamName, count: PartitionCount) -> Result<()> {
        let mut streams = self
            .0
            .streams
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if streams.contains_key(stream) {
            return Err(Error::AlreadyExists(Existing::Stream(stream.clone())));
        }
        let shelf = Shelf {
            stream: Mutex::new(Stream::new(stream, count)),
            work: Notify::new(),
        };
        streams.insert(stream.clone(), Arc::new(shelf));
        Ok(())
    }

    pub(crate) fn find(&self, stream: &StreamName) -> Option<Arc<Shelf>> {
        let streams = self
            .0
            .streams
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        streams.get(stream).cloned()
    }

    pub(crate) fn list(&self, options: &ListOptions<StreamName>) -> Vec<StreamInfo> {
        let after = options
            .after
            .as_ref()
            .map_or(Bound::Unbounded, Bound::Excluded);
        let streams = self
            .0
            .streams
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let info = |(name, shelf): (&StreamName, &Arc<Shelf>)| StreamInfo {
            stream: name.clone(),
            partition_count: shelf.lock().partition_count(),
        };
        streams
            .range::<StreamName, _>((after, Bound::Unbounded))
            .map(info)
            .take(options.limit as usize)
            .collect()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
