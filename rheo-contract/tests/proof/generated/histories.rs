//! Defects that need an interplay which no plain case has: features that meet, or the fourth of a kind.

use std::collections::BTreeMap;
use std::sync::Mutex;

use rheo_core::{Error, GroupName, Lag, Lease, Reason, StreamName};

use crate::book::{held, log_of};
use crate::faulty::{Faulty, faulty};
use crate::generated::spoils::spoils;
use crate::journal::{Entry, What};

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        OnlyTheLastIdsAreKnown: "of the ids of a stream only the last five are known: an older one is taken for a repeat that went well",
        says: "Err(AlreadyExists)",
        kills: ["histories::LOG-5::random_appends_and_queries_agree_with_the_model"],
    },
    faulty! {
        RenewedTwiceAndDeadWithoutReason: "the reason of a reject is lost where the lease was renewed twice",
        says: "the dead letters",
        kills: ["histories::DLV-6::random_deliveries_agree_with_the_model"],
    },
    faulty! {
        RenewedLeasesDieOfRetries: "a lease that was renewed and expired at its last attempt has the reason of a retry",
        says: "the dead letters",
        kills: ["histories::DLQ-3::random_expiries_agree_with_the_model"],
    },
    faulty! {
        RenewedLeasesOutliveReplays: "the number of leases still counts those that were renewed before they were replayed",
        says: "attempts at most, leases, dead letters and lag",
        kills: ["histories::RPL-1::random_replays_and_resets_agree_with_the_model"],
    },
    faulty! {
        LagIsKeptFromTheFourthTimeOn: "a handle that was asked four times for a lag keeps it until it settles something itself",
        says: "the lag of",
        kills: ["histories::DST-1::random_histories_of_two_handles_agree_with_the_model"],
    },
];

#[derive(Default)]
struct OnlyTheLastIdsAreKnown;

spoils! { OnlyTheLastIdsAreKnown {
    append_batch(self, real, stream, events) {
        let ids: Vec<_> = events.iter().filter_map(|event| event.id).collect();
        let appended = real.backend.append_batch(stream, events).await;
        if let (Err(Error::AlreadyExists { .. }), [id]) = (&appended, &ids[..]) {
            let mut log = log_of(real, stream).await;
            log.sort_by_key(|event| event.sequence);
            let age = log.iter().rev().position(|event| event.id == *id).unwrap_or(0);
            if age >= 5 {
                log.retain(|event| event.id == *id);
                return Ok(log);
            }
        }
        appended
    }
} }

#[derive(Default)]
struct RenewedTwiceAndDeadWithoutReason;

spoils! { RenewedTwiceAndDeadWithoutReason {
    reject(self, real, lease, reason) {
        let entries = real.journal.of_claim(lease);
        let renewed = entries.iter().filter(|entry| entry.what == What::Renewed).count();
        let lost = Reason::new("rejected");
        real.backend.reject(lease, if renewed >= 2 { &lost } else { reason }).await
    }
} }

#[derive(Default)]
struct RenewedLeasesDieOfRetries;

spoils! { RenewedLeasesDieOfRetries {
    dead_letters(self, real, stream, group, options) {
        let mut letters = real.backend.dead_letters(stream, group, options).await?;
        let last = real.journal.last(stream, group);
        for letter in letters.iter_mut().filter(|letter| letter.reason == Reason::lease_expired()) {
            let of_it = |entry: &&Entry| entry.lease.event.id == letter.event.id;
            if last.iter().find(of_it).is_some_and(|entry| entry.what == What::Renewed) {
                letter.reason = Reason::max_attempts();
            }
        }
        Ok(letters)
    }
} }

/// Leases that were renewed and then replayed.
type Outliving = Mutex<Vec<Lease>>;

#[derive(Default)]
struct RenewedLeasesOutliveReplays;

spoils! { RenewedLeasesOutliveReplays {
    replay(self, real, stream, group, replay) {
        let last = real.journal.last(stream, group);
        let mark = real.journal.mark();
        real.backend.replay(stream, group, replay).await?;
        let renewed = |entry: &&Entry| last.iter().any(|before| {
            before.what == What::Renewed && before.lease.lease_id == entry.lease.lease_id
        });
        let reopened = real.journal.since(mark);
        held(&real.beside.of::<Outliving>()).extend(reopened.iter().filter(renewed).map(|entry| entry.lease.clone()));
        Ok(())
    }
    group_info(self, real, stream, group) {
        let mut info = real.backend.group_info(stream, group).await?;
        let outliving = real.beside.of::<Outliving>();
        let here = held(&outliving).iter().filter(|l| l.event.stream == *stream && l.group == *group).count();
        info.leased += here as u64;
        Ok(info)
    }
} }

/// A group of a stream.
type Key = (StreamName, GroupName);

/// Lags with how often they were asked for.
#[derive(Default)]
struct LagIsKeptFromTheFourthTimeOn(Mutex<BTreeMap<Key, (u32, Lag)>>);

impl LagIsKeptFromTheFourthTimeOn {
    fn forget(&self, lease: &Lease) {
        held(&self.0).remove(&(lease.event.stream.clone(), lease.group.clone()));
    }
}

spoils! { LagIsKeptFromTheFourthTimeOn {
    ack(self, real, lease) {
        self.forget(lease);
        real.backend.ack(lease).await
    }
    reject(self, real, lease, reason) {
        self.forget(lease);
        real.backend.reject(lease, reason).await
    }
    retry(self, real, lease, options) {
        self.forget(lease);
        real.backend.retry(lease, options).await
    }
    replay(self, real, stream, group, replay) {
        held(&self.0).clear();
        real.backend.replay(stream, group, replay).await
    }
    reset_group(self, real, stream, group, options) {
        held(&self.0).clear();
        real.backend.reset_group(stream, group, options).await
    }
    append_batch(self, real, stream, events) {
        held(&self.0).clear();
        real.backend.append_batch(stream, events).await
    }
    fetch(self, real, stream, group, options) {
        held(&self.0).clear();
        real.backend.fetch(stream, group, options).await
    }
    lag(self, real, stream, group) {
        let key = (stream.clone(), group.clone());
        let (asked, lag) = held(&self.0).get(&key).cloned().unwrap_or_default();
        if asked >= 4 {
            return Ok(lag);
        }
        let lag = real.backend.lag(stream, group).await?;
        held(&self.0).insert(key, (asked + 1, lag.clone()));
        Ok(lag)
    }
} }
