//! Variants whose writes go on when their callers drop them, and land later.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use rheo_core::{Result, StreamName};

use super::{Differing, Variant};
use crate::book::held;
use crate::defect::Real;
use crate::generated::meddling::pause;
use crate::generated::spoils::spoils;

pub(super) const ALL: &[&dyn Variant] = &[
    &Differing("DroppedAcksArriveWhileOneLooks", || {
        DroppedAcksArriveWhileOneLooks
    }),
    &Differing("DroppedWritesLandLate", || DroppedWritesLandLate),
];

type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Calls that were dropped and have not landed.
#[derive(Default)]
struct Dropped {
    calls: Mutex<Vec<Late>>,
    /// How many there were.
    count: Mutex<usize>,
}

struct Late {
    stream: StreamName,
    /// Upon which call on its stream it lands.
    left: usize,
    call: Call,
}

/// A call that was handed to a task of its own, which does it later if nobody waits any more.
struct Sent {
    to: Arc<Dropped>,
    call: Option<(StreamName, Call)>,
}

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some((stream, call)) = self.call.take() {
            let mut count = held(&self.to.count);
            *count += 1;
            // At once, soon, or much later: a look at everything is six calls or so.
            let left = 1 + *count * 5 % 47;
            held(&self.to.calls).push(Late { stream, left, call });
        }
    }
}

impl Dropped {
    /// A call on a stream: what is to land upon it does so.
    async fn land(&self, stream: &StreamName) {
        let mut due = VecDeque::new();
        {
            let mut calls = held(&self.calls);
            for mut late in std::mem::take(&mut *calls) {
                if late.stream == *stream {
                    late.left -= 1;
                }
                match late.left {
                    0 => due.push_back(late.call),
                    _ => calls.push(late),
                }
            }
        }
        for call in due {
            call.await;
        }
    }

    /// Waits for a task to take a call over, which lands late if it is dropped meanwhile.
    async fn hand_over(self: Arc<Self>, stream: &StreamName, late: Call) {
        let mut sent = Sent {
            call: Some((stream.clone(), late)),
            to: self,
        };
        pause(2).await;
        sent.call = None;
    }
}

/// An ack goes on when it is dropped, and takes effect just after the next look at the group's lag.
struct DroppedAcksArriveWhileOneLooks;

spoils! { DroppedAcksArriveWhileOneLooks {
    ack(self, real, lease) {
        let (store, late) = (Arc::clone(&real.store), lease.clone());
        let late = Box::pin(async move {
            let _ = store.ack(&late).await;
        });
        real.beside.of::<Dropped>().hand_over(&lease.event.stream, late).await;
        real.backend.ack(lease).await
    }
    lag(self, real, stream, group) {
        let lag = real.backend.lag(stream, group).await;
        let dropped = real.beside.of::<Dropped>();
        let is_of = |late: &Late| late.stream == *stream;
        while held(&dropped.calls).iter().any(is_of) {
            dropped.land(stream).await;
        }
        lag
    }
} }

/// Every write goes on when it is dropped, and takes effect upon one of the next calls on its stream: while
/// somebody looks, after it was repeated, or after what it is about was handed on.
struct DroppedWritesLandLate;

impl DroppedWritesLandLate {
    async fn read<T>(
        real: &Real,
        stream: &StreamName,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        real.beside.of::<Dropped>().land(stream).await;
        call.await
    }

    async fn write<T>(
        real: &Real,
        stream: &StreamName,
        late: impl Future<Output = ()> + Send + 'static,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let dropped = real.beside.of::<Dropped>();
        dropped.land(stream).await;
        dropped.hand_over(stream, Box::pin(late)).await;
        call.await
    }
}

/// A call as an owner of its arguments.
macro_rules! owned {
    ($real:ident, [$($lent:ident),*] $store:ident => $call:expr) => {{
        let $store = Arc::clone(&$real.store);
        $(let $lent = $lent.clone();)*
        async move {
            let _ = $call.await;
        }
    }};
}

spoils! { DroppedWritesLandLate {
    append_batch(self, real, stream, events) {
        let late = owned!(real, [stream, events] store => store.append_batch(&stream, events));
        Self::write(real, stream, late, real.backend.append_batch(stream, events)).await
    }
    fetch(self, real, stream, group, options) {
        let late = owned!(real, [stream, group, options] store => store.fetch(&stream, &group, &options));
        Self::write(real, stream, late, real.backend.fetch(stream, group, options)).await
    }
    renew(self, real, lease, duration) {
        let late = owned!(real, [lease] store => store.renew(&lease, duration));
        Self::write(real, &lease.event.stream, late, real.backend.renew(lease, duration)).await
    }
    ack(self, real, lease) {
        let late = owned!(real, [lease] store => store.ack(&lease));
        Self::write(real, &lease.event.stream, late, real.backend.ack(lease)).await
    }
    retry(self, real, lease, options) {
        let late = owned!(real, [lease, options] store => store.retry(&lease, &options));
        Self::write(real, &lease.event.stream, late, real.backend.retry(lease, options)).await
    }
    reject(self, real, lease, reason) {
        let late = owned!(real, [lease, reason] store => store.reject(&lease, &reason));
        Self::write(real, &lease.event.stream, late, real.backend.reject(lease, reason)).await
    }
    replay(self, real, stream, group, replay) {
        let late = owned!(real, [stream, group, replay] store => store.replay(&stream, &group, &replay));
        Self::write(real, stream, late, real.backend.replay(stream, group, replay)).await
    }
    reset_group(self, real, stream, group, options) {
        let late = owned!(real, [stream, group, options] store => store.reset_group(&stream, &group, &options));
        Self::write(real, stream, late, real.backend.reset_group(stream, group, options)).await
    }
    read(self, real, stream, options) {
        Self::read(real, stream, real.backend.read(stream, options)).await
    }
    query(self, real, stream, query) {
        Self::read(real, stream, real.backend.query(stream, query)).await
    }
    lag(self, real, stream, group) {
        Self::read(real, stream, real.backend.lag(stream, group)).await
    }
    dead_letters(self, real, stream, group, options) {
        Self::read(real, stream, real.backend.dead_letters(stream, group, options)).await
    }
    group_info(self, real, stream, group) {
        Self::read(real, stream, real.backend.group_info(stream, group)).await
    }
} }
