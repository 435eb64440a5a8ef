//! Variants that keep what they write locked while its end is on its way.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use rheo_core::{Cause, Error, Result, StreamName};

use super::{Differing, Variant};
use crate::book::held;
use crate::defect::Real;
use crate::generated::spoils::spoils;
use crate::link::has_no_answer;

pub(super) const ALL: &[&dyn Variant] = &[&Differing("WritersWaitForACommit", || {
    WritersWaitForACommit
})];

/// A write that was held back has a transaction open until it arrives, and other writers to its stream
/// wait for that, in vain.
struct WritersWaitForACommit;

/// The streams that are locked.
type Locked = Mutex<HashSet<StreamName>>;

/// Ends with the transaction, whether that happens or is given up.
struct Lock(Arc<Locked>, StreamName);

impl Drop for Lock {
    fn drop(&mut self) {
        held(&self.0).remove(&self.1);
    }
}

impl WritersWaitForACommit {
    async fn write<T>(
        real: &Real,
        stream: &StreamName,
        write: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let locked = real.beside.of::<Locked>();
        if held(&locked).contains(stream) {
            return Err(Error::Failed(Cause::new("another transaction is open")));
        }
        let written = write.await;
        if has_no_answer(&written) {
            held(&locked).insert(stream.clone());
            let lock = Lock(locked, stream.clone());
            real.late.hold(async move { drop(lock) });
        }
        written
    }
}

spoils! { WritersWaitForACommit {
    append_batch(self, real, stream, events) {
        Self::write(real, stream, real.backend.append_batch(stream, events)).await
    }
    ack(self, real, lease) {
        Self::write(real, &lease.event.stream, real.backend.ack(lease)).await
    }
    retry(self, real, lease, options) {
        Self::write(real, &lease.event.stream, real.backend.retry(lease, options)).await
    }
    reject(self, real, lease, reason) {
        Self::write(real, &lease.event.stream, real.backend.reject(lease, reason)).await
    }
    renew(self, real, lease, duration) {
        Self::write(real, &lease.event.stream, real.backend.renew(lease, duration)).await
    }
} }
