//! What a defect remembers: the leases that it handed out, and ways to look behind the backend.

use std::sync::{Mutex, MutexGuard};

use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, Event, FetchOptions, GroupName, Lease, Partition,
    ReadOptions, Receipt, Result, StreamName,
};

use crate::defect::Real;

/// The leases that were handed out through it.
#[derive(Default)]
pub(crate) struct Book {
    leases: Mutex<Vec<Lease>>,
}

impl Book {
    /// Fetches and remembers.
    pub(crate) async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        held(&self.leases).extend(leases.iter().cloned());
        Ok(leases)
    }

    /// All leases of a group that were ever handed out.
    pub(crate) fn all(&self, stream: &StreamName, group: &GroupName) -> Vec<Lease> {
        let is_of = |lease: &&Lease| lease.event.stream == *stream && lease.group == *group;
        held(&self.leases).iter().filter(is_of).cloned().collect()
    }

    /// Those that are the current claim, expired or not.
    pub(crate) async fn current(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Vec<Lease> {
        let mut current = Vec::new();
        for lease in self.all(stream, group) {
            // A wrong receipt tells whether the claim is current, and changes nothing.
            let probe = Lease {
                receipt: Some(Receipt::new("a probe")),
                ..lease.clone()
            };
            if real.backend.ack(&probe).await == Err(Error::ReceiptMismatch) {
                current.push(lease);
            }
        }
        current
    }
}

/// What a mutex holds.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no defect panics")
}

/// All events of a stream, by partition, then sequence.
pub(crate) async fn log_of(real: &Real, stream: &StreamName) -> Vec<Event> {
    let mut events = Vec::new();
    for partition in (0..).map(Partition::new) {
        let options = ReadOptions::new()
            .with_partition(partition)
            .with_limit(u32::MAX);
        match real.backend.read(stream, &options).await {
            Ok(read) => events.extend(read),
            Err(_) => break,
        }
    }
    events
}

/// All dead letters of a group.
pub(crate) async fn all_dead(
    real: &Real,
    stream: &StreamName,
    group: &GroupName,
) -> Result<Vec<DeadLetter>> {
    let options = DeadLetterOptions::new().with_limit(u32::MAX);
    real.backend.dead_letters(stream, group, &options).await
}
