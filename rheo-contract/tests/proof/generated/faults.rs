//! Defects that need a network that fails: an outcome told wrong, a request too many, a half effect.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use rheo_core::{
    Cause, DeadLetter, Error, Event, GroupName, Lag, NewEvent, Replay, ResetOptions, Result,
    Sequence, StreamName, Wakeup,
};

use crate::book::held;
use crate::defect::Real;
use crate::faulty::{Faulty, faulty};
use crate::generated::spoils::spoils;
use crate::link::{LOST, REFUSED, TIMED_OUT, has_no_answer, is};

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        LostReplyIsAFailure: "an ack whose reply is lost is Failed",
        says: "of [None]",
        kills: [
            "faults::ERR-2::a_lost_reply_is_told_as_it_is",
            "faults::ERR-2::a_reply_that_breaks_off_is_no_reply",
        ],
    },
    faulty! {
        LostReplyIsAnOutage: "an append whose reply is lost is BackendUnavailable",
        says: "of [None]",
        kills: ["faults::ERR-2::a_lost_reply_is_told_as_it_is"],
    },
    faulty! {
        LostAckIsSentAgain: "an ack whose reply is lost is sent again",
        says: "Err(StaleLease)",
        kills: ["faults::ERR-2::a_lost_reply_is_told_as_it_is"],
    },
    faulty! {
        LostAppendIsSentAgain: "an append whose reply is lost is sent again",
        says: "append",
        kills: ["faults::ERR-2::a_lost_reply_is_told_as_it_is"],
    },
    faulty! {
        LostRejectIsTakenForDone: "a reject without an answer is Ok",
        says: "of [Whole]",
        kills: ["faults::ERR-1::a_request_that_is_cut_off_has_no_half_effect"],
    },
    faulty! {
        BatchIsTwoRequests: "a batch of events is sent in two halves",
        says: "of [None, Part, Whole]",
        kills: ["faults::ERR-1::a_request_that_is_cut_off_has_no_half_effect"],
    },
    faulty! {
        DeadLetterIsARequestOfItsOwn: "a reject writes the dead letter with one request and settles with another",
        says: "the dead letters",
        kills: ["faults::ERR-1::a_request_that_is_cut_off_has_no_half_effect"],
    },
    faulty! {
        ReplayIsARequestPerKind: "a replay reopens what is dead with one request and the rest with another",
        says: "of [None",
        kills: ["faults::ERR-1::a_request_that_is_cut_off_has_no_half_effect"],
    },
    faulty! {
        LateAppendIsTakenForNew: "an append that arrives late is not compared with what is there by then",
        says: "append",
        kills: ["faults::ERR-2::a_write_that_arrives_late_happens_once"],
    },
    faulty! {
        LateRetryIsNotFenced: "a retry that arrives late opens its event whoever holds it by then",
        says: "left to deliver",
        kills: ["faults::LSE-2::a_settle_that_arrives_late_is_stale"],
    },
    faulty! {
        BatchForgetsTheOthers: "one ack of a batch has no answer, and the others are told as done and given up",
        says: "of [Part",
        kills: ["faults::ERR-2::a_lost_reply_is_told_as_it_is"],
    },
    faulty! {
        LostAppendIsAnsweredByGuess: "an append whose reply is lost is answered as if nobody else appended",
        says: "the event appended",
        kills: ["faults::ERR-2::a_lost_reply_is_told_as_it_is"],
    },
    faulty! {
        LateRejectLeavesADeadLetter: "a reject that arrives late writes its dead letter before it looks at the lease",
        says: "the dead letters",
        kills: ["faults::LSE-2::a_settle_that_arrives_late_is_stale"],
    },
    faulty! {
        LateAckIsFencedByItsAttempt: "an ack that arrives late settles the claim of the same attempt, whoever holds it by then",
        says: "Err(StaleLease)",
        kills: ["faults::LSE-2::a_settle_that_arrives_late_is_stale"],
    },
    faulty! {
        LateRenewalIsOfTheNextClaim: "a renewal that arrives late renews the claim that is there by then",
        says: "of the interrupted renew",
        kills: ["faults::LSE-2::a_settle_that_arrives_late_is_stale"],
    },
    faulty! {
        NoWriteAfterAnOutage: "retries of a handle that was refused once are refused for ever",
        says: "retry to be answered when it is repeated",
        kills: ["faults::ERR-5::after_an_outage_the_same_handle_works"],
    },
    faulty! {
        LostAppendWithoutAnIdIsSentAgain: "an append without an id whose reply is lost is sent again, so that it is there twice",
        says: "append",
        kills: ["faults::ERR-2::a_lost_reply_is_told_as_it_is"],
    },
    faulty! {
        LateGroupStartsAgain: "a group that is made late is made over the one that is there by then",
        says: "of [Whole]",
        kills: ["faults::ERR-2::a_write_that_arrives_late_happens_once"],
    },
    faulty! {
        TimeoutsUseUpThePool: "each call without an answer in time costs a place in the pool for ever",
        says: "the handle to work again",
        kills: ["faults::ERR-4::a_frozen_store_ends_in_a_timeout"],
    },
    faulty! {
        LagIsRememberedInAnOutage: "a lag that cannot be asked for is the one that was given last",
        says: "an error of lag",
        kills: ["faults::ERR-5::after_an_outage_the_same_handle_works"],
    },
    faulty! {
        NobodyIsWokenAfterAnOutage: "the connection by which a handle hears of work is not made again",
        says: "the hint",
        kills: ["faults::ERR-5::after_an_outage_the_same_handle_works"],
    },
    faulty! {
        LateRejectIsNotFenced: "a reject that arrives late writes a dead letter whoever holds the event by then",
        says: "Err(StaleLease)",
        kills: ["faults::LSE-2::a_settle_that_arrives_late_is_stale"],
    },
    faulty! {
        LagMayBeAmbiguous: "a lag whose connection is lost is Ambiguous",
        says: "Err(Ambiguous)",
        kills: ["faults::ERR-3::reads_are_never_ambiguous"],
    },
    faulty! {
        DeadLettersMayBeAmbiguous: "dead letters whose connection is lost are Ambiguous",
        says: "Err(Ambiguous)",
        kills: ["faults::ERR-3::reads_are_never_ambiguous"],
    },
    faulty! {
        RefusedCallsUseUpThePool: "each call whose connection is refused costs a place in the pool for ever",
        says: "the handle to work again",
        kills: ["faults::ERR-5::after_an_outage_the_same_handle_works"],
    },
    faulty! {
        LostRepliesUseUpThePool: "each call whose reply is lost costs a place in the pool for ever",
        says: "the handle to work again",
        kills: [
            "faults::ERR-2::a_lost_reply_is_told_as_it_is",
            "faults::ERR-1::a_request_that_is_cut_off_has_no_half_effect",
        ],
    },
    faulty! {
        RefusedAppendsAreSentLater: "an append that was refused is sent when the store is back",
        says: "of [None]",
        kills: ["faults::ERR-5::after_an_outage_the_same_handle_works"],
    },
    faulty! {
        KnownStreamsNeedNoStore: "an empty batch for a stream that was used before is Ok, and the store is not asked",
        says: "an empty batch",
        kills: ["faults::ERR-6::what_a_handle_remembers_is_no_answer"],
    },
    faulty! {
        WaitsForTooLong: "a group's dead letters are waited for ten times as long as the timeout",
        says: "to end within its timeout",
        kills: ["faults::ERR-4::a_frozen_store_ends_in_a_timeout"],
    },
    faulty! {
        TimeoutIsAFailure: "a retry without an answer in time is Failed",
        says: "of [None]",
        kills: [
            "faults::ERR-2::a_write_that_arrives_late_happens_once",
            "faults::ERR-4::a_frozen_store_ends_in_a_timeout",
        ],
    },
    faulty! {
        TimeoutOfAReadIsAmbiguous: "a read without an answer in time is Ambiguous",
        says: "Err(Ambiguous)",
        kills: ["faults::ERR-4::a_frozen_store_ends_in_a_timeout"],
    },
    faulty! {
        SlowAnswersAreTakenForNone: "a settle that takes some time is given up",
        says: "to succeed, since nothing was cut",
        kills: ["faults::ERR-4::a_slow_store_is_waited_for"],
    },
    faulty! {
        SlowAppendIsSentAgain: "an append that takes some time is sent again",
        says: "append",
        kills: ["faults::ERR-4::a_slow_store_is_waited_for"],
    },
];

/// What is not known is told as something else.
fn told<T>(answer: Result<T>, otherwise: fn(Cause) -> Error) -> Result<T> {
    match answer {
        Err(Error::Ambiguous(cause)) => Err(otherwise(cause)),
        answer => answer,
    }
}

#[derive(Default)]
struct LostReplyIsAFailure;

spoils! { LostReplyIsAFailure {
    ack(self, real, lease) {
        told(real.backend.ack(lease).await, Error::Failed)
    }
} }

#[derive(Default)]
struct LostReplyIsAnOutage;

spoils! { LostReplyIsAnOutage {
    append_batch(self, real, stream, events) {
        told(real.backend.append_batch(stream, events).await, Error::BackendUnavailable)
    }
} }

#[derive(Default)]
struct LostAckIsSentAgain;

spoils! { LostAckIsSentAgain {
    ack(self, real, lease) {
        match real.backend.ack(lease).await {
            Err(Error::Ambiguous(_)) => real.backend.ack(lease).await,
            acked => acked,
        }
    }
} }

#[derive(Default)]
struct LostAppendIsSentAgain;

spoils! { LostAppendIsSentAgain {
    append_batch(self, real, stream, events) {
        match real.backend.append_batch(stream, events.clone()).await {
            Err(Error::Ambiguous(_)) => real.backend.append_batch(stream, events).await,
            appended => appended,
        }
    }
} }

#[derive(Default)]
struct LostRejectIsTakenForDone;

spoils! { LostRejectIsTakenForDone {
    reject(self, real, lease, reason) {
        match real.backend.reject(lease, reason).await {
            Err(Error::Ambiguous(_)) => Ok(()),
            rejected => rejected,
        }
    }
} }

#[derive(Default)]
struct BatchIsTwoRequests;

spoils! { BatchIsTwoRequests {
    append_batch(self, real, stream, events) {
        // A batch that is refused is refused whole.
        let log = crate::book::log_of(real, stream).await;
        let is_new = |event: &NewEvent| event.id.is_some_and(|id| log.iter().all(|other| other.id != id));
        if events.len() != 4 || !events.iter().all(is_new) || events[0].id == events[1].id {
            return real.backend.append_batch(stream, events).await;
        }
        let mut first = events;
        let second = first.split_off(2);
        let mut appended = real.backend.append_batch(stream, first).await?;
        let second = real.backend.append_batch(stream, second).await;
        appended.extend(second.map_err(|error| Error::Ambiguous(Cause::new(error.to_string())))?);
        Ok(appended)
    }
} }

/// Dead letters that were written before their settle.
type Written = Mutex<Vec<DeadLetter>>;

/// Dead letters of a group, and those that were written beside them.
fn with_written(
    real: &Real,
    mut letters: Vec<DeadLetter>,
    stream: &StreamName,
    group: &GroupName,
) -> Result<Vec<DeadLetter>> {
    let written = real.beside.of::<Written>();
    let is_of = |letter: &&DeadLetter| letter.event.stream == *stream && letter.group == *group;
    for letter in held(&written).iter().filter(is_of) {
        if letters
            .iter()
            .all(|other| other.event.id != letter.event.id)
        {
            letters.push(letter.clone());
        }
    }
    letters.sort_by_key(|letter| (letter.event.partition, letter.event.sequence));
    Ok(letters)
}

#[derive(Default)]
struct DeadLetterIsARequestOfItsOwn;

spoils! { DeadLetterIsARequestOfItsOwn {
    reject(self, real, lease, reason) {
        real.backend.ping().await?;
        let letter = DeadLetter {
            event: lease.event.clone(),
            group: lease.group.clone(),
            attempt: lease.attempt,
            reason: reason.clone(),
            dead_at: real.now(),
        };
        let written = real.beside.of::<Written>();
        held(&written).push(letter.clone());
        let rejected = real.backend.reject(lease, reason).await;
        if !rejected.as_ref().is_err_and(|error| is(error, LOST)) {
            held(&written).retain(|other| *other != letter);
        }
        rejected
    }
    dead_letters(self, real, stream, group, options) {
        with_written(real, real.backend.dead_letters(stream, group, options).await?, stream, group)
    }
} }

#[derive(Default)]
struct ReplayIsARequestPerKind;

spoils! { ReplayIsARequestPerKind {
    replay(self, real, stream, group, replay) {
        let dead = crate::book::all_dead(real, stream, group).await?;
        let reopened = real.journal.reopened_by(stream, group, replay);
        let ids = dead.iter().map(|letter| letter.event.id);
        let ids: Vec<_> = ids.filter(|id| reopened.iter().any(|(lease, _)| lease.event.id == *id)).collect();
        if !ids.is_empty() {
            real.backend.replay(stream, group, &Replay::Events(ids)).await?;
        }
        real.backend.replay(stream, group, replay).await
    }
} }

#[derive(Default)]
struct LateAppendIsTakenForNew;

spoils! { LateAppendIsTakenForNew {
    append_batch(self, real, stream, events) {
        let appended = real.backend.append_batch(stream, events.clone()).await;
        if has_no_answer(&appended) {
            let (store, stream, mut events) = (Arc::clone(&real.store), stream.clone(), events);
            events.iter_mut().for_each(|event| event.id = None);
            real.late.hold(async move {
                let _ = store.append_batch(&stream, events).await;
            });
        }
        appended
    }
} }

#[derive(Default)]
struct LateRetryIsNotFenced;

spoils! { LateRetryIsNotFenced {
    retry(self, real, lease, options) {
        let retried = real.backend.retry(lease, options).await;
        if has_no_answer(&retried) {
            let (store, lease) = (Arc::clone(&real.store), lease.clone());
            real.late.hold(async move {
                let event = Replay::Events(vec![lease.event.id]);
                let _ = store.replay(&lease.event.stream, &lease.group, &event).await;
            });
        }
        retried
    }
} }

#[derive(Default)]
struct LateRejectIsNotFenced;

spoils! { LateRejectIsNotFenced {
    reject(self, real, lease, reason) {
        let rejected = real.backend.reject(lease, reason).await;
        if has_no_answer(&rejected) {
            let (store, lease, reason) = (Arc::clone(&real.store), lease.clone(), reason.clone());
            let journal = Arc::clone(&real.journal);
            real.late.hold(async move {
                let entries = journal.of(&lease.event.stream, &lease.group);
                let latest = entries.iter().rfind(|entry| entry.lease.event.id == lease.event.id);
                if let Some(latest) = latest {
                    let _ = store.reject(&latest.lease, &reason).await;
                }
            });
        }
        rejected
    }
} }

#[derive(Default)]
struct BatchForgetsTheOthers;

spoils! { BatchForgetsTheOthers {
    ack_batch(self, real, leases) {
        let mut results = Vec::new();
        if let [first, second] = leases
            && first.lease_id != second.lease_id
        {
            let acked = real.backend.ack(second).await;
            if acked.as_ref().is_err_and(|error| is(error, LOST)) {
                return vec![Ok(()), acked];
            }
            return vec![real.backend.ack(first).await, acked];
        }
        for lease in leases {
            results.push(real.backend.ack(lease).await);
        }
        results
    }
} }

#[derive(Default)]
struct LostAppendIsAnsweredByGuess;

spoils! { LostAppendIsAnsweredByGuess {
    append_batch(self, real, stream, events) {
        let appended = real.backend.append_batch(stream, events.clone()).await;
        let log = crate::book::log_of(real, stream).await;
        let ids: Vec<_> = events.iter().filter_map(|event| event.id).collect();
        let mut there: Vec<Event> = log.into_iter().filter(|event| ids.contains(&event.id)).collect();
        if !appended.as_ref().is_err_and(|error| is(error, LOST)) || there.len() != events.len() {
            return appended;
        }
        there.sort_by_key(|event| ids.iter().position(|id| *id == event.id));
        for event in &mut there {
            event.sequence = Sequence::new(event.sequence.get() + 1)?;
        }
        Ok(there)
    }
} }

#[derive(Default)]
struct LateRejectLeavesADeadLetter;

spoils! { LateRejectLeavesADeadLetter {
    reject(self, real, lease, reason) {
        let rejected = real.backend.reject(lease, reason).await;
        if has_no_answer(&rejected) {
            let letter = DeadLetter {
                event: lease.event.clone(),
                group: lease.group.clone(),
                attempt: lease.attempt,
                reason: reason.clone(),
                dead_at: real.now(),
            };
            let written = real.beside.of::<Written>();
            real.late.hold(async move {
                held(&written).push(letter);
            });
        }
        rejected
    }
    dead_letters(self, real, stream, group, options) {
        with_written(real, real.backend.dead_letters(stream, group, options).await?, stream, group)
    }
} }

#[derive(Default)]
struct LateAckIsFencedByItsAttempt;

spoils! { LateAckIsFencedByItsAttempt {
    ack(self, real, lease) {
        let acked = real.backend.ack(lease).await;
        if has_no_answer(&acked) {
            let (store, lease) = (Arc::clone(&real.store), lease.clone());
            let journal = Arc::clone(&real.journal);
            real.late.hold(async move {
                let entries = journal.of(&lease.event.stream, &lease.group);
                let mut latest = entries.iter().rev().map(|entry| &entry.lease);
                let latest = latest.find(|claim| claim.event.id == lease.event.id);
                if let Some(latest) = latest.filter(|claim| claim.attempt == lease.attempt) {
                    let _ = store.ack(latest).await;
                }
            });
        }
        acked
    }
} }

#[derive(Default)]
struct LateRenewalIsOfTheNextClaim;

spoils! { LateRenewalIsOfTheNextClaim {
    renew(self, real, lease, duration) {
        let renewed = real.backend.renew(lease, duration).await;
        if has_no_answer(&renewed) {
            let (store, lease) = (Arc::clone(&real.store), lease.clone());
            let journal = Arc::clone(&real.journal);
            real.late.hold(async move {
                for claim in journal.current(&lease.event.stream, &lease.group) {
                    if claim.event.id == lease.event.id {
                        let _ = store.renew(&claim, duration).await;
                    }
                }
            });
        }
        renewed
    }
} }

/// Whether one was refused.
#[derive(Default)]
struct NoWriteAfterAnOutage(AtomicBool);

spoils! { NoWriteAfterAnOutage {
    retry(self, real, lease, options) {
        if self.0.load(Ordering::SeqCst) {
            return Err(Error::BackendUnavailable(Cause::new(REFUSED)));
        }
        let retried = real.backend.retry(lease, options).await;
        if retried.as_ref().is_err_and(|error| is(error, REFUSED)) {
            self.0.store(true, Ordering::SeqCst);
        }
        retried
    }
} }

#[derive(Default)]
struct LostAppendWithoutAnIdIsSentAgain;

spoils! { LostAppendWithoutAnIdIsSentAgain {
    append_batch(self, real, stream, events) {
        let appended = real.backend.append_batch(stream, events.clone()).await;
        let is_lost = appended.as_ref().is_err_and(|error| is(error, LOST));
        if is_lost && events.iter().all(|event| event.id.is_none()) {
            return real.backend.append_batch(stream, events).await;
        }
        appended
    }
} }

#[derive(Default)]
struct LateGroupStartsAgain;

spoils! { LateGroupStartsAgain {
    create_group(self, real, stream, group, options) {
        let made = real.backend.create_group(stream, group, options).await;
        if has_no_answer(&made) {
            let (store, stream, group) = (Arc::clone(&real.store), stream.clone(), group.clone());
            let again = ResetOptions::new().with_start(options.start.clone());
            real.late.hold(async move {
                let _ = store.reset_group(&stream, &group, &again).await;
            });
        }
        made
    }
} }

/// A read that is told as a write would be.
fn ambiguous<T>(answer: Result<T>, why: &str) -> Result<T> {
    answer.map_err(|error| match error {
        Error::BackendUnavailable(cause) if cause.as_str() == why => Error::Ambiguous(cause),
        error => error,
    })
}

#[derive(Default)]
struct LagMayBeAmbiguous;

spoils! { LagMayBeAmbiguous {
    lag(self, real, stream, group) {
        ambiguous(real.backend.lag(stream, group).await, LOST)
    }
} }

#[derive(Default)]
struct DeadLettersMayBeAmbiguous;

spoils! { DeadLettersMayBeAmbiguous {
    dead_letters(self, real, stream, group, options) {
        ambiguous(real.backend.dead_letters(stream, group, options).await, LOST)
    }
} }

/// A pool whose places are used up by calls that end in a certain way.
#[derive(Default)]
struct Places(AtomicUsize);

impl Places {
    async fn with_one<T>(
        &self,
        real: &Real,
        costly: &str,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        if self.0.load(Ordering::SeqCst) >= real.pool {
            return Err(Error::BackendUnavailable(Cause::new(
                "no connection is free",
            )));
        }
        let answer = call.await;
        if answer.as_ref().is_err_and(|error| is(error, costly)) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        answer
    }
}

/// Every call takes a place, and never gives it back where it ends like that.
macro_rules! uses_up_the_pool {
    ($defect:ident, $costly:expr) => {
        #[derive(Default)]
        struct $defect(Places);

        spoils! { $defect {
            ping(self, real) {
                self.0.with_one(real, $costly, real.backend.ping()).await
            }
            read(self, real, stream, options) {
                self.0.with_one(real, $costly, real.backend.read(stream, options)).await
            }
            append_batch(self, real, stream, events) {
                self.0.with_one(real, $costly, real.backend.append_batch(stream, events)).await
            }
            fetch(self, real, stream, group, options) {
                self.0.with_one(real, $costly, real.backend.fetch(stream, group, options)).await
            }
            renew(self, real, lease, duration) {
                self.0.with_one(real, $costly, real.backend.renew(lease, duration)).await
            }
            ack(self, real, lease) {
                self.0.with_one(real, $costly, real.backend.ack(lease)).await
            }
            retry(self, real, lease, options) {
                self.0.with_one(real, $costly, real.backend.retry(lease, options)).await
            }
            reject(self, real, lease, reason) {
                self.0.with_one(real, $costly, real.backend.reject(lease, reason)).await
            }
            lag(self, real, stream, group) {
                self.0.with_one(real, $costly, real.backend.lag(stream, group)).await
            }
            replay(self, real, stream, group, replay) {
                self.0.with_one(real, $costly, real.backend.replay(stream, group, replay)).await
            }
            reset_group(self, real, stream, group, options) {
                self.0.with_one(real, $costly, real.backend.reset_group(stream, group, options)).await
            }
            dead_letters(self, real, stream, group, options) {
                self.0.with_one(real, $costly, real.backend.dead_letters(stream, group, options)).await
            }
            group_info(self, real, stream, group) {
                self.0.with_one(real, $costly, real.backend.group_info(stream, group)).await
            }
        } }
    };
}

uses_up_the_pool!(RefusedCallsUseUpThePool, REFUSED);
uses_up_the_pool!(LostRepliesUseUpThePool, LOST);
uses_up_the_pool!(TimeoutsUseUpThePool, TIMED_OUT);

/// The lags that were given last.
#[derive(Default)]
struct LagIsRememberedInAnOutage(Mutex<HashMap<(StreamName, GroupName), Lag>>);

spoils! { LagIsRememberedInAnOutage {
    lag(self, real, stream, group) {
        let of = (stream.clone(), group.clone());
        match real.backend.lag(stream, group).await {
            Err(error) if is(&error, REFUSED) => {
                held(&self.0).get(&of).cloned().ok_or(error)
            }
            lag => {
                held(&self.0).extend(lag.clone().map(|lag| (of, lag)));
                lag
            }
        }
    }
} }

/// Whether the connection has gone.
#[derive(Default)]
struct NobodyIsWokenAfterAnOutage(AtomicBool);

spoils! { NobodyIsWokenAfterAnOutage {
    wait_for_work(self, real, stream, group, timeout) {
        let now = real.backend.wait_for_work(stream, group, Duration::ZERO).await;
        if now.as_ref().is_err_and(|error| is(error, REFUSED)) {
            self.0.store(true, Ordering::SeqCst);
        }
        if !self.0.load(Ordering::SeqCst) || !matches!(now, Ok(Wakeup::TimedOut)) {
            return match now {
                Ok(Wakeup::TimedOut) => real.backend.wait_for_work(stream, group, timeout).await,
                now => now,
            };
        }
        tokio::time::sleep(timeout).await;
        Ok(Wakeup::TimedOut)
    }
} }

/// Appends that wait for the store.
#[derive(Default)]
struct RefusedAppendsAreSentLater(Mutex<Vec<(StreamName, Vec<NewEvent>)>>);

spoils! { RefusedAppendsAreSentLater {
    append_batch(self, real, stream, events) {
        let appended = real.backend.append_batch(stream, events.clone()).await;
        if appended.as_ref().is_err_and(|error| is(error, REFUSED)) {
            held(&self.0).push((stream.clone(), events));
        }
        appended
    }
    ping(self, real) {
        real.backend.ping().await?;
        let waiting = std::mem::take(&mut *held(&self.0));
        for (stream, events) in waiting {
            real.backend.append_batch(&stream, events).await?;
        }
        Ok(())
    }
} }

#[derive(Default)]
struct WaitsForTooLong;

spoils! { WaitsForTooLong {
    dead_letters(self, real, stream, group, options) {
        let letters = real.backend.dead_letters(stream, group, options).await;
        if letters.as_ref().is_err_and(|error| is(error, TIMED_OUT)) {
            tokio::time::sleep(Duration::from_millis(10_200)).await;
        }
        letters
    }
} }

#[derive(Default)]
struct TimeoutIsAFailure;

spoils! { TimeoutIsAFailure {
    retry(self, real, lease, options) {
        told(real.backend.retry(lease, options).await, Error::Failed)
    }
} }

#[derive(Default)]
struct TimeoutOfAReadIsAmbiguous;

spoils! { TimeoutOfAReadIsAmbiguous {
    read(self, real, stream, options) {
        ambiguous(real.backend.read(stream, options).await, TIMED_OUT)
    }
} }

#[derive(Default)]
struct KnownStreamsNeedNoStore(Mutex<HashSet<StreamName>>);

spoils! { KnownStreamsNeedNoStore {
    append_batch(self, real, stream, events) {
        if events.is_empty() && held(&self.0).contains(stream) {
            return Ok(Vec::new());
        }
        let appended = real.backend.append_batch(stream, events).await?;
        held(&self.0).insert(stream.clone());
        Ok(appended)
    }
} }

/// How often a call may be waited for until it is taken for lost: by far not as often as a slow store
/// makes it, and more than any other.
const WAITS: usize = 10;

/// What the call gives, if it does so before it was waited for too often.
async fn in_time<T>(call: impl Future<Output = T> + Send) -> Option<T> {
    let mut call = pin!(call);
    let mut left = WAITS;
    poll_fn(move |context| match call.as_mut().poll(context) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

#[derive(Default)]
struct SlowAnswersAreTakenForNone;

spoils! { SlowAnswersAreTakenForNone {
    ack(self, real, lease) {
        let lost = || Err(Error::Ambiguous(Cause::new(TIMED_OUT)));
        in_time(real.backend.ack(lease)).await.unwrap_or_else(lost)
    }
} }

#[derive(Default)]
struct SlowAppendIsSentAgain;

spoils! { SlowAppendIsSentAgain {
    append_batch(self, real, stream, events) {
        let mut call = pin!(real.backend.append_batch(stream, events.clone()));
        if let Some(appended) = in_time(call.as_mut()).await {
            return appended;
        }
        let _ = call.await;
        real.backend.append_batch(stream, events).await
    }
} }
