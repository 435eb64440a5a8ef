//! Defects that show only when calls overlap: calls that ask for different things share an answer, an
//! argument or a fate.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use rheo_core::{
    DeadLetter, Error, Event, EventId, Existing, GroupName, Lag, LeaseDuration, Page, Reason,
    Result, RetryDelay, Start, StreamName, Wakeup,
};
use tokio::sync::OnceCell;

use crate::book::held;
use crate::faulty::{Faulty, faulty};
use crate::generated::meddling::{UnderWay, pause};
use crate::generated::spoils::spoils;

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        LagsUnderWayAreShared: "a lag that is asked for while another one of the stream is under way has that one's answer",
        says: "calls at once",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
    faulty! {
        ReadsUnderWayAreShared: "a read while another one of the stream is under way has that one's answer",
        says: "calls at once",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
    faulty! {
        QueriesUnderWayAreShared: "a query while another one of the stream is under way has that one's answer",
        says: "calls at once",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
    faulty! {
        PagesUnderWayAreShared: "a page of dead letters has the answer of another one of the group that is under way",
        says: "the dead letter that this call asks for",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
    faulty! {
        WaitsUnderWayAreShared: "a wait ends with another one of the stream that is under way",
        says: "calls at once",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
    faulty! {
        WaitsShareATimeout: "a wait that overlaps another one has the timeout of the latest, if that is shorter",
        says: "this wait to end no sooner than",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
    faulty! {
        RetriesShareADelay: "a retry that overlaps another one has the delay of that one",
        says: "the claimable places of",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
    faulty! {
        RejectsShareAReason: "a reject that overlaps another one has the reason of that one",
        says: "the reasons of the dead letters of",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
    faulty! {
        RenewalsShareADuration: "a renewal that overlaps another one has the duration of that one",
        says: "this lease to be renewed until",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
    faulty! {
        AppendsShareAStream: "an append that overlaps one to another stream goes where that one goes",
        says: "calls at once",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
    faulty! {
        AppendsShareARefusal: "an append that overlaps one with an id that is taken is refused with it",
        says: "calls at once",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
    faulty! {
        FetchesShareAGroup: "a fetch that overlaps another one of the stream claims for the group of that one",
        says: "calls at once",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
    faulty! {
        GroupsShareAStart: "a group that is made while another one is has the start of that one",
        says: "the places that",
        kills: ["races::STR-4::calls_at_once_are_answered_each_for_itself"],
    },
];

/// Calls under way, by what they are told apart by.
struct Flights<Key, Answer>(Mutex<HashMap<Key, Weak<OnceCell<Answer>>>>);

impl<Key, Answer> Default for Flights<Key, Answer> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Key: Eq + Hash, Answer: Clone> Flights<Key, Answer> {
    /// The answer of the call that is under way, or that of this one where none is.
    async fn join(&self, key: Key, call: impl Future<Output = Answer>) -> Answer {
        let flight = {
            let mut flights = held(&self.0);
            let flight = flights.get(&key).and_then(Weak::upgrade);
            let flight = flight.unwrap_or_default();
            flights.insert(key, Arc::downgrade(&flight));
            flight
        };
        flight.get_or_init(|| call).await.clone()
    }
}

#[derive(Default)]
struct LagsUnderWayAreShared(Flights<StreamName, Result<Lag>>);

spoils! { LagsUnderWayAreShared {
    lag(self, real, stream, group) {
        self.0.join(stream.clone(), real.backend.lag(stream, group)).await
    }
} }

#[derive(Default)]
struct ReadsUnderWayAreShared(Flights<StreamName, Result<Vec<Event>>>);

spoils! { ReadsUnderWayAreShared {
    read(self, real, stream, options) {
        self.0.join(stream.clone(), real.backend.read(stream, options)).await
    }
} }

#[derive(Default)]
struct QueriesUnderWayAreShared(Flights<StreamName, Result<Page>>);

spoils! { QueriesUnderWayAreShared {
    query(self, real, stream, query) {
        self.0.join(stream.clone(), real.backend.query(stream, query)).await
    }
} }

#[derive(Default)]
struct PagesUnderWayAreShared(Flights<(StreamName, GroupName), Result<Vec<DeadLetter>>>);

spoils! { PagesUnderWayAreShared {
    dead_letters(self, real, stream, group, options) {
        let key = (stream.clone(), group.clone());
        self.0.join(key, real.backend.dead_letters(stream, group, options)).await
    }
} }

#[derive(Default)]
struct WaitsUnderWayAreShared(Flights<StreamName, Result<Wakeup>>);

spoils! { WaitsUnderWayAreShared {
    wait_for_work(self, real, stream, group, timeout) {
        self.0.join(stream.clone(), real.backend.wait_for_work(stream, group, timeout)).await
    }
} }

#[derive(Default)]
struct WaitsShareATimeout(UnderWay<Duration>);

spoils! { WaitsShareATimeout {
    wait_for_work(self, real, stream, group, timeout) {
        let _waiting = self.0.begin(timeout);
        pause(4).await;
        let latest = self.0.all().pop().unwrap_or(timeout);
        real.backend.wait_for_work(stream, group, timeout.min(latest)).await
    }
} }

#[derive(Default)]
struct RetriesShareADelay(UnderWay<RetryDelay>);

spoils! { RetriesShareADelay {
    retry(self, real, lease, options) {
        let first = self.0.all().pop();
        let _retrying = self.0.begin(options.delay);
        let options = options.clone().with_delay(first.unwrap_or(options.delay));
        real.backend.retry(lease, &options).await
    }
} }

#[derive(Default)]
struct RejectsShareAReason(UnderWay<Reason>);

spoils! { RejectsShareAReason {
    reject(self, real, lease, reason) {
        let first = self.0.all().pop();
        let _rejecting = self.0.begin(reason.clone());
        real.backend.reject(lease, first.as_ref().unwrap_or(reason)).await
    }
} }

#[derive(Default)]
struct RenewalsShareADuration(UnderWay<LeaseDuration>);

spoils! { RenewalsShareADuration {
    renew(self, real, lease, duration) {
        let first = self.0.all().pop();
        let _renewing = self.0.begin(duration);
        real.backend.renew(lease, first.unwrap_or(duration)).await
    }
} }

#[derive(Default)]
struct AppendsShareAStream(UnderWay<StreamName>);

spoils! { AppendsShareAStream {
    append_batch(self, real, stream, events) {
        let first = self.0.all().pop();
        let _appending = self.0.begin(stream.clone());
        real.backend.append_batch(first.as_ref().unwrap_or(stream), events).await
    }
} }

/// A refusal, while others may share it.
#[derive(Default)]
struct AppendsShareARefusal(UnderWay<EventId>);

spoils! { AppendsShareARefusal {
    append_batch(self, real, stream, events) {
        let appended = real.backend.append_batch(stream, events).await;
        if let Err(Error::AlreadyExists(Existing::Event(id))) = &appended {
            let _refused = self.0.begin(*id);
            pause(8).await;
        } else if let Some(id) = self.0.all().pop() {
            return Err(Error::AlreadyExists(Existing::Event(id)));
        }
        appended
    }
} }

#[derive(Default)]
struct FetchesShareAGroup(UnderWay<(StreamName, GroupName)>);

spoils! { FetchesShareAGroup {
    fetch(self, real, stream, group, options) {
        let first = self.0.all().into_iter().find(|(other, _)| other == stream);
        let _fetching = self.0.begin((stream.clone(), group.clone()));
        let group = first.as_ref().map_or(group, |(_, group)| group);
        real.backend.fetch(stream, group, options).await
    }
} }

#[derive(Default)]
struct GroupsShareAStart(UnderWay<(StreamName, GroupName)>, Mutex<Option<Start>>);

spoils! { GroupsShareAStart {
    create_group(self, real, stream, group, options) {
        let first = held(&self.1).clone().filter(|_| self.0.is_any());
        let _making = self.0.begin((stream.clone(), group.clone()));
        *held(&self.1) = Some(options.start.clone());
        let options = options.clone().with_start(first.unwrap_or(options.start.clone()));
        real.backend.create_group(stream, group, &options).await
    }
} }
