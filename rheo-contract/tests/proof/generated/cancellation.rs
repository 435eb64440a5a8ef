//! Defects that need a dropped future: something is left behind, or half of an effect.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rheo_core::{
    Cause, DeadLetter, Error, EventId, FetchOptions, GroupName, Lease, LeaseDuration, ReadOptions,
    Reason, Result, StreamName,
};
use tokio::task::yield_now;

use crate::book::{all_dead, held, log_of};
use crate::defect::Real;
use crate::faulty::{Faulty, faulty};
use crate::generated::meddling::pause;
use crate::generated::spoils::spoils;
use crate::tweak::{Place, place_of};

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        DroppedCallsKeepTheirConnection: "a connection goes back to the pool after its call, which a dropped future never reaches",
        says: "no connection is free",
        kills: ["cancellation::CAN-1::a_dropped_future_leaves_all_or_nothing"],
    },
    faulty! {
        BatchIsWrittenInHalves: "a batch of events is written in two halves",
        says: "of [None, Part, Whole]",
        kills: ["cancellation::CAN-1::a_dropped_future_leaves_all_or_nothing"],
    },
    faulty! {
        ClaimsHaveNoEndAtFirst: "a claim is written for a year first, and gets its end then",
        says: "left to deliver",
        kills: ["cancellation::CAN-1::a_dropped_future_leaves_all_or_nothing"],
    },
    faulty! {
        DeadLetterBeforeItsSettle: "a reject writes the dead letter first and settles the lease then",
        says: "the dead letters",
        kills: ["cancellation::CAN-1::a_dropped_future_leaves_all_or_nothing"],
    },
    faulty! {
        ReplayTakesTheDeadLettersFirst: "a replay takes the dead letters away first and reopens their events then",
        says: "the dead letters",
        kills: ["cancellation::CAN-1::a_dropped_future_leaves_all_or_nothing"],
    },
    faulty! {
        FrontierMovesBeforeTheAck: "an ack moves the frontier first and settles the lease then",
        says: "the lag of",
        kills: ["cancellation::CAN-1::a_dropped_future_leaves_all_or_nothing"],
    },
    faulty! {
        DroppedFetchKeepsItsLock: "a fetch locks its group in the store, and a dropped one never unlocks it",
        says: "the lock is taken",
        kills: ["cancellation::CAN-1::a_dropped_future_harms_no_other_handle"],
    },
    faulty! {
        DroppedAppendKeepsItsTransaction: "an append opens a transaction that a dropped one never ends, and others wait for it",
        says: "the lock is taken",
        kills: ["cancellation::CAN-1::a_dropped_future_harms_no_other_handle"],
    },
    faulty! {
        DroppedAppendKeepsItsSequence: "readers wait for an append that has taken its sequence, also for a dropped one",
        says: "the events of",
        kills: ["cancellation::CAN-1::a_dropped_future_harms_no_other_handle"],
    },
    faulty! {
        TheNextCallGetsTheDroppedReply: "the reply to a dropped fetch or lag is taken for the answer to the next one",
        says: "to have its own answer",
        kills: ["cancellation::CAN-1::a_dropped_future_leaves_all_or_nothing"],
    },
    faulty! {
        TheNextReadGetsTheDroppedReply: "the reply to a dropped read is taken for the answer to the next one",
        says: "the next call after a dropped read",
        kills: ["cancellation::CAN-1::a_dropped_future_leaves_all_or_nothing"],
    },
];

/// How long one waits for what others hold.
const PATIENCE: Duration = Duration::from_millis(300);

/// Connections in use.
#[derive(Default)]
struct DroppedCallsKeepTheirConnection(AtomicUsize);

impl DroppedCallsKeepTheirConnection {
    async fn with_one<T>(
        &self,
        real: &Real,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let started = Instant::now();
        while self.0.fetch_add(1, Ordering::SeqCst) >= real.pool {
            self.0.fetch_sub(1, Ordering::SeqCst);
            if started.elapsed() > PATIENCE {
                return Err(Error::BackendUnavailable(Cause::new(
                    "no connection is free",
                )));
            }
            yield_now().await;
        }
        let answer = call.await;
        self.0.fetch_sub(1, Ordering::SeqCst);
        answer
    }
}

spoils! { DroppedCallsKeepTheirConnection {
    append_batch(self, real, stream, events) {
        self.with_one(real, real.backend.append_batch(stream, events)).await
    }
    fetch(self, real, stream, group, options) {
        self.with_one(real, real.backend.fetch(stream, group, options)).await
    }
    ack(self, real, lease) {
        self.with_one(real, real.backend.ack(lease)).await
    }
    lag(self, real, stream, group) {
        self.with_one(real, real.backend.lag(stream, group)).await
    }
} }

#[derive(Default)]
struct BatchIsWrittenInHalves;

spoils! { BatchIsWrittenInHalves {
    append_batch(self, real, stream, events) {
        let log = log_of(real, stream).await;
        let is_new = |id: EventId| log.iter().all(|event| event.id != id);
        let mut ids: Vec<_> = events.iter().filter_map(|event| event.id).collect();
        ids.sort();
        ids.dedup();
        // Nothing can be wrong with it.
        let is_fine = ids.len() == events.len() && ids.into_iter().all(is_new) && events.len() == 4;
        if !is_fine {
            return real.backend.append_batch(stream, events).await;
        }
        let mut first = events;
        let second = first.split_off(2);
        let mut appended = real.backend.append_batch(stream, first).await?;
        appended.extend(real.backend.append_batch(stream, second).await?);
        Ok(appended)
    }
} }

#[derive(Default)]
struct ClaimsHaveNoEndAtFirst;

spoils! { ClaimsHaveNoEndAtFirst {
    fetch(self, real, stream, group, options) {
        let year = LeaseDuration::new(Duration::from_secs(365 * 24 * 3_600))?;
        let endless = options.clone().with_lease_duration(year);
        let mut leases = real.backend.fetch(stream, group, &endless).await?;
        for lease in &mut leases {
            // By the time of the claim, unless it ends meanwhile.
            if let Ok(renewed) = real.store.renew(lease, options.lease_duration).await {
                *lease = renewed;
            }
        }
        Ok(leases)
    }
} }

/// Dead letters that are written already, or hidden already.
#[derive(Default)]
struct Early {
    written: Mutex<Vec<DeadLetter>>,
    hidden: Mutex<Vec<EventId>>,
}

#[derive(Default)]
struct DeadLetterBeforeItsSettle;

spoils! { DeadLetterBeforeItsSettle {
    reject(self, real, lease, reason) {
        let early = real.beside.of::<Early>();
        let letter = letter_of(real, lease, reason);
        held(&early.written).push(letter.clone());
        let rejected = real.backend.reject(lease, reason).await;
        held(&early.written).retain(|written| *written != letter);
        rejected
    }
    dead_letters(self, real, stream, group, options) {
        let mut letters = real.backend.dead_letters(stream, group, options).await?;
        let early = real.beside.of::<Early>();
        let written = held(&early.written).clone();
        for letter in written.into_iter().filter(|l| l.event.stream == *stream && l.group == *group) {
            if letters.iter().all(|other| other.event.id != letter.event.id) {
                letters.push(letter);
            }
        }
        letters.sort_by_key(|letter| (letter.event.partition, letter.event.sequence));
        Ok(letters)
    }
} }

fn letter_of(real: &Real, lease: &Lease, reason: &Reason) -> DeadLetter {
    DeadLetter {
        event: lease.event.clone(),
        group: lease.group.clone(),
        attempt: lease.attempt,
        reason: reason.clone(),
        dead_at: real.now(),
    }
}

#[derive(Default)]
struct ReplayTakesTheDeadLettersFirst;

spoils! { ReplayTakesTheDeadLettersFirst {
    replay(self, real, stream, group, replay) {
        let early = real.beside.of::<Early>();
        let dead: Vec<EventId> = all_dead(real, stream, group).await?.iter().map(|l| l.event.id).collect();
        let reopened = real.journal.reopened_by(stream, group, replay);
        let hidden: Vec<EventId> = reopened.iter().map(|(lease, _)| lease.event.id).filter(|id| dead.contains(id)).collect();
        held(&early.hidden).extend(&hidden);
        let replayed = real.backend.replay(stream, group, replay).await;
        held(&early.hidden).retain(|id| !hidden.contains(id));
        replayed
    }
    dead_letters(self, real, stream, group, options) {
        let mut letters = real.backend.dead_letters(stream, group, options).await?;
        let early = real.beside.of::<Early>();
        letters.retain(|letter| !held(&early.hidden).contains(&letter.event.id));
        Ok(letters)
    }
} }

/// Acks that count already.
type Counted = Mutex<Vec<Place>>;

#[derive(Default)]
struct FrontierMovesBeforeTheAck;

spoils! { FrontierMovesBeforeTheAck {
    ack(self, real, lease) {
        let counted = real.beside.of::<Counted>();
        if real.journal.is_current(lease) {
            held(&counted).push(place_of(lease));
        }
        let acked = real.backend.ack(lease).await;
        held(&counted).retain(|place| *place != place_of(lease));
        acked
    }
    lag(self, real, stream, group) {
        let mut lag = real.backend.lag(stream, group).await?;
        let counted = real.beside.of::<Counted>();
        for progress in &mut lag.partitions {
            let next = (stream.clone(), group.clone(), progress.partition, progress.frontier.next());
            if held(&counted).contains(&next) {
                progress.frontier = progress.frontier.next();
            }
        }
        Ok(lag)
    }
} }

/// What is locked in the store.
type Locks = Mutex<Vec<StreamName>>;

async fn lock(real: &Real, stream: &StreamName) -> Result<()> {
    let locks = real.beside.of::<Locks>();
    let started = Instant::now();
    loop {
        {
            let mut locks = held(&locks);
            if !locks.contains(stream) {
                locks.push(stream.clone());
                return Ok(());
            }
        }
        if started.elapsed() > PATIENCE {
            return Err(Error::Failed(Cause::new("the lock is taken")));
        }
        yield_now().await;
    }
}

fn unlock(real: &Real, stream: &StreamName) {
    held(&real.beside.of::<Locks>()).retain(|locked| locked != stream);
}

#[derive(Default)]
struct DroppedFetchKeepsItsLock;

spoils! { DroppedFetchKeepsItsLock {
    fetch(self, real, stream, group, options) {
        lock(real, stream).await?;
        let fetched = real.backend.fetch(stream, group, options).await;
        unlock(real, stream);
        fetched
    }
} }

#[derive(Default)]
struct DroppedAppendKeepsItsTransaction;

spoils! { DroppedAppendKeepsItsTransaction {
    append_batch(self, real, stream, events) {
        lock(real, stream).await?;
        let appended = real.backend.append_batch(stream, events).await;
        unlock(real, stream);
        appended
    }
} }

/// Sequences that are taken and not written yet, by the stream.
type Taken = Mutex<Vec<(StreamName, EventId)>>;

#[derive(Default)]
struct DroppedAppendKeepsItsSequence;

spoils! { DroppedAppendKeepsItsSequence {
    append_batch(self, real, stream, events) {
        let taken = real.beside.of::<Taken>();
        let id = events.first().and_then(|event| event.id);
        let key = id.map(|id| (stream.clone(), id));
        held(&taken).extend(key.clone());
        let appended = real.backend.append_batch(stream, events).await;
        pause(1).await;
        held(&taken).retain(|other| Some(other) != key.as_ref());
        appended
    }
    read(self, real, stream, options) {
        let mut events = real.backend.read(stream, options).await?;
        let taken = real.beside.of::<Taken>();
        let waits_for = |id: EventId| held(&taken).contains(&(stream.clone(), id));
        let horizon = events.iter().position(|event| waits_for(event.id));
        events.truncate(horizon.unwrap_or(events.len()));
        Ok(events)
    }
} }

/// Requests whose replies nobody has read.
struct Unread<T>(Mutex<Vec<T>>);

impl<T> Default for Unread<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// A request whose reply stays unread if nobody waits for it.
struct Asked<'a, T>(&'a Unread<T>, Option<T>);

impl<T> Drop for Asked<'_, T> {
    fn drop(&mut self) {
        held(&self.0.0).extend(self.1.take());
    }
}

impl<T> Unread<T> {
    fn pop(&self) -> Option<T> {
        held(&self.0).pop()
    }

    /// Calls; what was asked stays unread if that is dropped.
    async fn ask<A>(&self, request: T, call: impl Future<Output = A> + Send) -> A {
        let mut asked = Asked(self, Some(request));
        let answer = call.await;
        asked.1 = None;
        answer
    }
}

#[derive(Default)]
struct TheNextCallGetsTheDroppedReply {
    fetches: Unread<(StreamName, GroupName, FetchOptions)>,
    lags: Unread<(StreamName, GroupName)>,
}

spoils! { TheNextCallGetsTheDroppedReply {
    fetch(self, real, stream, group, options) {
        if let Some((stream, group, options)) = self.fetches.pop() {
            return real.store.fetch(&stream, &group, &options).await;
        }
        let request = (stream.clone(), group.clone(), options.clone());
        self.fetches.ask(request, real.backend.fetch(stream, group, options)).await
    }
    lag(self, real, stream, group) {
        if let Some((stream, group)) = self.lags.pop() {
            return real.store.lag(&stream, &group).await;
        }
        self.lags.ask((stream.clone(), group.clone()), real.backend.lag(stream, group)).await
    }
} }

#[derive(Default)]
struct TheNextReadGetsTheDroppedReply(Unread<(StreamName, ReadOptions)>);

spoils! { TheNextReadGetsTheDroppedReply {
    read(self, real, stream, options) {
        if let Some((stream, options)) = self.0.pop() {
            return real.store.read(&stream, &options).await;
        }
        self.0.ask((stream.clone(), options.clone()), real.backend.read(stream, options)).await
    }
} }
