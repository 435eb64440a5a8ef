//! Defects that need an interplay which no plain case has: features that meet, or the fourth of a kind.

use std::collections::BTreeMap;
use std::sync::Mutex;

use rheo_core::{
    Error, FetchOptions, GroupName, Lag, Lease, MaxAttempts, Partitions, Reason, StreamName,
};

use crate::book::{held, log_of};
use crate::defect::Real;
use crate::faulty::{Faulty, faulty};
use crate::generated::meddling::reopen;
use crate::generated::spoils::spoils;
use crate::journal::{Entry, What};

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        OnlyTheLastIdsAreKnown: "of the ids of a stream only the last five are known: an older one is taken for a repeat that went well",
        says: "Err(AlreadyExists)",
        kills: ["histories::LOG-5::random_appends_and_queries_agree_with_the_model"],
    },
    faulty! {
        RenewalTellsTheFirstAttempt: "the renewal of a lease that was reclaimed or retried tells its first attempt",
        says: "the renewed lease (LSE-6)",
        kills: ["histories::DLV-6::random_deliveries_agree_with_the_model"],
    },
    faulty! {
        RenewedLeasesDieWithoutReason: "the reason of a reject is lost where the lease was renewed",
        says: "the dead letters",
        kills: ["histories::DLV-6::random_deliveries_agree_with_the_model"],
    },
    faulty! {
        RenewedAtItsLastAttempt: "a lease that was renewed at its last attempt is handed out again when it has expired",
        says: "expected: ",
        kills: ["histories::DLQ-3::random_expiries_agree_with_the_model"],
    },
    faulty! {
        RenewedLeasesDieOfRetries: "a lease that was renewed and expired at its last attempt has the reason of a retry",
        says: "the dead letters",
        kills: ["histories::DLQ-3::random_expiries_agree_with_the_model"],
    },
    faulty! {
        PartialResetForgetsTheAttempts: "a reset of some partitions sets the highest attempt to its default",
        says: "attempts at most",
        kills: ["histories::RPL-1::random_replays_and_resets_agree_with_the_model"],
    },
    faulty! {
        RenewedLeasesOutliveReplays: "the number of leases still counts those that were renewed before they were replayed",
        says: "attempts at most, leases and dead letters",
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
struct RenewalTellsTheFirstAttempt;

spoils! { RenewalTellsTheFirstAttempt {
    renew(self, real, lease, duration) {
        let renewed = real.backend.renew(lease, duration).await?;
        Ok(Lease { attempt: 1, ..renewed })
    }
} }

#[derive(Default)]
struct RenewedLeasesDieWithoutReason;

spoils! { RenewedLeasesDieWithoutReason {
    reject(self, real, lease, reason) {
        let renewed = real.journal.of_claim(lease).iter().any(|entry| entry.what == What::Renewed);
        let lost = Reason::new("rejected");
        real.backend.reject(lease, if renewed { &lost } else { reason }).await
    }
} }

/// The current leases of a group in the selected partitions that have ended.
fn expired(
    real: &Real,
    stream: &StreamName,
    group: &GroupName,
    selected: &Partitions,
) -> Vec<Lease> {
    let now = real.now();
    let mut leases = real.journal.current(stream, group);
    leases.retain(|lease| lease.expires_at <= now && selected.contains(lease.event.partition));
    leases
}

/// Those that are at their last attempt.
async fn used_up(
    real: &Real,
    stream: &StreamName,
    group: &GroupName,
    options: &FetchOptions,
) -> Vec<Lease> {
    let Ok(info) = real.store.group_info(stream, group).await else {
        return Vec::new();
    };
    let mut leases = expired(real, stream, group, &options.partitions);
    leases.retain(|lease| lease.attempt >= info.max_attempts.get());
    leases
}

#[derive(Default)]
struct RenewedAtItsLastAttempt;

spoils! { RenewedAtItsLastAttempt {
    fetch(self, real, stream, group, options) {
        if options.limit > 0 {
            for lease in used_up(real, stream, group, options).await {
                if real.journal.of_claim(&lease).iter().any(|entry| entry.what == What::Renewed) {
                    reopen(real, &lease).await?;
                }
            }
        }
        real.backend.fetch(stream, group, options).await
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

/// A group of a stream.
type Key = (StreamName, GroupName);

/// Groups that were reset in some partitions.
type Forgetful = Mutex<Vec<Key>>;

#[derive(Default)]
struct PartialResetForgetsTheAttempts;

spoils! { PartialResetForgetsTheAttempts {
    reset_group(self, real, stream, group, options) {
        real.backend.reset_group(stream, group, options).await?;
        if options.partitions != Partitions::All {
            held(&real.beside.of::<Forgetful>()).push((stream.clone(), group.clone()));
        }
        Ok(())
    }
    group_info(self, real, stream, group) {
        let mut info = real.backend.group_info(stream, group).await?;
        if held(&real.beside.of::<Forgetful>()).contains(&(stream.clone(), group.clone())) {
            info.max_attempts = MaxAttempts::default();
        }
        Ok(info)
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
