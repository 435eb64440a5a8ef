//! Defects that show only when calls overlap: something is read, decided and written in steps.

use std::sync::atomic::AtomicUsize;

use rheo_core::{Error, EventId, Lease, RetryOutcome, Sequence, StreamName};

use crate::book::held;
use crate::defect::Real;
use crate::faulty::{Faulty, faulty};
use crate::generated::meddling::{
    OpenAppends, UnderWay, append_openly, claimed_again, first_events, in_one_answer, lose, reopen,
    slowness, taken_over,
};
use crate::generated::spoils::spoils;
use crate::journal::{Entry, What};
use crate::tweak::{Place, place_of};

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        ReclaimIsReadThenWritten: "a fetch reads what can be reclaimed, and claims it whoever did so meanwhile",
        says: "double claim",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        ReclaimLocksItsHandleAlone: "a lock in the handle keeps its own fetches from reclaiming the same, and no others",
        says: "double claim",
        kills: ["races::DST-1::concurrent_histories_of_two_handles_have_no_anomaly"],
    },
    faulty! {
        ReaperActsOnASnapshot: "a fetch lists the expired leases, and reclaims them though they were renewed meanwhile",
        says: "double claim",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        SequencesShowUpOutOfOrder: "an append takes its sequence first and writes its event later, after higher ones",
        says: "event that shows up later (LOG-2)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        ReadsEndBeforeOpenAppends: "a read ends before the first append that is under way, also where one after it is done",
        says: "appended event that a later read does not give (LOG-10)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        GroupsPassOpenAppends: "a fetch passes an event whose append is under way when it claims a later one",
        says: "event passed",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        FirstFetchMeetsFirstAppend: "a fetch that finds a partition empty takes its end for the group's position when it is done",
        says: "event passed",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        RenewalWritesItsClaimBack: "a renewal reads the claim and writes all of it back, though it was acked meanwhile",
        says: "DLV-7",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        LagCountsWhatIsUnderWay: "the frontier counts what is being settled, though it may be refused",
        says: "frontier ahead (FRN-4)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        LoserOfARejectWritesItsLetter: "a settle that loses against a reject leaves a second dead letter",
        says: "dead letter doubled (DLQ-5)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingFetchesCountTwice: "where two fetches overlap, what one of them reclaims counts two attempts",
        says: "attempt skipped",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        RejectUndoesAReset: "a reject that found its lease writes the dead letter, though the group was reset meanwhile",
        says: "the events that are open again",
        kills: ["races::RPL-7::a_reset_racing_with_settles_leaves_nothing_settled"],
    },
    faulty! {
        RetryUndoesAReplay: "a retry that found its lease writes the attempts back, though they were replayed meanwhile",
        says: "their attempts",
        kills: ["races::RPL-7::a_replay_racing_with_settles_leaves_nothing_settled"],
    },
    faulty! {
        LaterClaimWins: "of two claims of an event the one with the later time is taken for the current one",
        says: "(LSE-",
        kills: ["races::DST-1::concurrent_histories_of_skewed_clocks_lose_nothing"],
    },
    faulty! {
        LeasesOfTheFutureAreDropped: "a fetch takes another handle's lease that began in the future for rubbish, and its event with it",
        says: "DST-1 (MUST)",
        kills: ["races::DST-1::concurrent_histories_of_skewed_clocks_lose_nothing"],
    },
];

#[derive(Default)]
struct ReclaimIsReadThenWritten;

spoils! { ReclaimIsReadThenWritten {
    fetch(self, real, stream, group, options) {
        let mark = real.journal.mark();
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for claim in reclaimed_by_others(&real.journal.since(mark), &leases) {
            if claim.handle == real.handle && options.partitions.contains(claim.lease.event.partition) {
                let taken = taken_over(real, &claim.lease, options).await.unwrap_or_default();
                leases = in_one_answer(taken, leases, options);
                break;
            }
        }
        Ok(leases)
    }
} }

#[derive(Default)]
struct ReclaimLocksItsHandleAlone;

spoils! { ReclaimLocksItsHandleAlone {
    fetch(self, real, stream, group, options) {
        let mark = real.journal.mark();
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for claim in reclaimed_by_others(&real.journal.since(mark), &leases) {
            if claim.handle != real.handle && options.partitions.contains(claim.lease.event.partition) {
                let taken = taken_over(real, &claim.lease, options).await.unwrap_or_default();
                leases = in_one_answer(taken, leases, options);
                break;
            }
        }
        Ok(leases)
    }
} }

/// Claims that are not the first of their event, but for these.
fn reclaimed_by_others(entries: &[Entry], own: &[Lease]) -> Vec<Entry> {
    let is_own = |lease: &Lease| own.iter().any(|other| other.lease_id == lease.lease_id);
    let mut claims = entries.to_vec();
    claims.retain(|entry| {
        entry.what == What::Claimed && entry.lease.attempt > 1 && !is_own(&entry.lease)
    });
    claims
}

#[derive(Default)]
struct ReaperActsOnASnapshot;

spoils! { ReaperActsOnASnapshot {
    fetch(self, real, stream, group, options) {
        let (now, mark) = (real.now(), real.journal.mark());
        let expired: Vec<Lease> = real.journal.current(stream, group).into_iter()
            .filter(|lease| lease.expires_at <= now && options.partitions.contains(lease.event.partition))
            .collect();
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for renewed in real.journal.since(mark).iter().filter(|entry| entry.what == What::Renewed) {
            if expired.iter().any(|lease| lease.lease_id == renewed.lease.lease_id) {
                let taken = taken_over(real, &renewed.lease, options).await.unwrap_or_default();
                leases = in_one_answer(taken, leases, options);
                break;
            }
        }
        Ok(leases)
    }
} }

#[derive(Default)]
struct SequencesShowUpOutOfOrder(AtomicUsize);

spoils! { SequencesShowUpOutOfOrder {
    append_batch(self, real, stream, events) {
        append_openly(real, stream, events, slowness(&self.0)).await
    }
    read(self, real, stream, options) {
        let mut events = real.backend.read(stream, options).await?;
        let open = real.beside.of::<OpenAppends>();
        let visible = events.iter().rposition(|event| !open.has(&event.id)).map_or(0, |last| last + 1);
        events.truncate(visible);
        events.retain(|event| !open.has(&event.id));
        Ok(events)
    }
} }

#[derive(Default)]
struct ReadsEndBeforeOpenAppends(AtomicUsize);

spoils! { ReadsEndBeforeOpenAppends {
    append_batch(self, real, stream, events) {
        append_openly(real, stream, events, slowness(&self.0)).await
    }
    read(self, real, stream, options) {
        let mut events = real.backend.read(stream, options).await?;
        let open = real.beside.of::<OpenAppends>();
        let horizon = events.iter().position(|event| open.has(&event.id));
        events.truncate(horizon.unwrap_or(events.len()));
        Ok(events)
    }
} }

#[derive(Default)]
struct GroupsPassOpenAppends;

spoils! { GroupsPassOpenAppends {
    append_batch(self, real, stream, events) {
        append_openly(real, stream, events, 6).await
    }
    fetch(self, real, stream, group, options) {
        let leases = real.backend.fetch(stream, group, options).await?;
        let open = real.beside.of::<OpenAppends>();
        let mut given = Vec::new();
        for lease in &leases {
            let event = &lease.event;
            let is_passed = leases.iter().any(|other| {
                other.event.partition == event.partition && other.event.sequence > event.sequence
            });
            if is_passed && open.has(&event.id) {
                lose(real, lease).await?;
            } else {
                given.push(lease.clone());
            }
        }
        Ok(given)
    }
} }

#[derive(Default)]
struct FirstFetchMeetsFirstAppend;

spoils! { FirstFetchMeetsFirstAppend {
    fetch(self, real, stream, group, options) {
        let first = first_events(real, stream).await;
        let mut leases = real.backend.fetch(stream, group, options).await?;
        let is_first = |lease: &Lease| {
            let was_empty = first.get(lease.event.partition.number() as usize) == Some(&None);
            was_empty && lease.event.sequence.previous() == Sequence::ZERO
        };
        for lease in leases.iter().filter(|lease| is_first(lease)) {
            lose(real, lease).await?;
        }
        leases.retain(|lease| !is_first(lease));
        Ok(leases)
    }
} }

#[derive(Default)]
struct RenewalWritesItsClaimBack;

spoils! { RenewalWritesItsClaimBack {
    renew(self, real, lease, duration) {
        let mark = real.journal.mark();
        let renewed = real.backend.renew(lease, duration).await;
        let acked = |entry: &Entry| entry.what == What::Acked && entry.lease.lease_id == lease.lease_id;
        if renewed == Err(Error::StaleLease) && real.journal.since(mark).iter().any(acked) {
            reopen(real, lease).await?;
            let expires_at = real.now().saturating_add(duration.as_duration());
            return Ok(Lease { expires_at, ..lease.clone() });
        }
        renewed
    }
} }

#[derive(Default)]
struct LagCountsWhatIsUnderWay;

spoils! { LagCountsWhatIsUnderWay {
    ack(self, real, lease) {
        let _settling = real.beside.of::<UnderWay<Place>>().begin(place_of(lease));
        real.backend.ack(lease).await
    }
    renew(self, real, lease, duration) {
        let _settling = real.beside.of::<UnderWay<Place>>().begin(place_of(lease));
        real.backend.renew(lease, duration).await
    }
    retry(self, real, lease, options) {
        let _settling = real.beside.of::<UnderWay<Place>>().begin(place_of(lease));
        real.backend.retry(lease, options).await
    }
    lag(self, real, stream, group) {
        let mut lag = real.backend.lag(stream, group).await?;
        let settling = real.beside.of::<UnderWay<Place>>();
        for progress in &mut lag.partitions {
            let next = |at: Sequence| (stream.clone(), group.clone(), progress.partition, at.next());
            while progress.frontier < progress.high_watermark && settling.has(&next(progress.frontier)) {
                progress.frontier = progress.frontier.next();
            }
        }
        Ok(lag)
    }
} }

/// Events with a dead letter too many.
type Doubled = std::sync::Mutex<Vec<EventId>>;

#[derive(Default)]
struct LoserOfARejectWritesItsLetter;

spoils! { LoserOfARejectWritesItsLetter {
    ack(self, real, lease) {
        let mark = real.journal.mark();
        let acked = real.backend.ack(lease).await;
        double_if_rejected(real, lease, mark);
        acked
    }
    renew(self, real, lease, duration) {
        let mark = real.journal.mark();
        let renewed = real.backend.renew(lease, duration).await;
        double_if_rejected(real, lease, mark);
        renewed
    }
    dead_letters(self, real, stream, group, options) {
        let mut letters = real.backend.dead_letters(stream, group, options).await?;
        let doubled = real.beside.of::<Doubled>();
        let twice = letters.iter().filter(|letter| held(&doubled).contains(&letter.event.id)).cloned();
        letters.extend(twice.collect::<Vec<_>>());
        letters.sort_by_key(|letter| (letter.event.partition, letter.event.sequence));
        Ok(letters)
    }
} }

fn double_if_rejected(real: &Real, lease: &Lease, mark: usize) {
    let rejected =
        |entry: &Entry| entry.what == What::Rejected && entry.lease.lease_id == lease.lease_id;
    if real.journal.since(mark).iter().any(rejected) {
        held(&real.beside.of::<Doubled>()).push(lease.event.id);
    }
}

#[derive(Default)]
struct OverlappingFetchesCountTwice;

spoils! { OverlappingFetchesCountTwice {
    fetch(self, real, stream, group, options) {
        let fetching = real.beside.of::<UnderWay<StreamName>>();
        let overlaps = fetching.has(stream);
        let _fetching = fetching.begin(stream.clone());
        let mut leases = real.backend.fetch(stream, group, options).await?;
        if let Some(at) = leases.iter().position(|lease| overlaps && lease.attempt > 1) {
            let lease = leases.remove(at);
            let taken = taken_over(real, &lease, options).await.unwrap_or_default();
                leases = in_one_answer(taken, leases, options);
        }
        Ok(leases)
    }
} }

/// Whether a claim was reopened since then.
pub(crate) fn was_reopened(real: &Real, lease: &Lease, mark: usize) -> bool {
    let entries = real.journal.since(mark);
    let reopened =
        |entry: &Entry| entry.what == What::Reopened && place_of(&entry.lease) == place_of(lease);
    entries.iter().any(reopened)
}

#[derive(Default)]
struct RejectUndoesAReset;

spoils! { RejectUndoesAReset {
    reject(self, real, lease, reason) {
        let mark = real.journal.mark();
        let rejected = real.backend.reject(lease, reason).await;
        if rejected == Err(Error::StaleLease) && was_reopened(real, lease, mark)
            && let Some(again) = claimed_again(real, lease).await?
        {
            return real.store.reject(&again, reason).await;
        }
        rejected
    }
} }

#[derive(Default)]
struct RetryUndoesAReplay;

spoils! { RetryUndoesAReplay {
    retry(self, real, lease, options) {
        let mark = real.journal.mark();
        let retried = real.backend.retry(lease, options).await;
        if retried == Err(Error::StaleLease) && was_reopened(real, lease, mark)
            && let Some(again) = claimed_again(real, lease).await?
        {
            return real.store.retry(&again, options).await;
        }
        retried
    }
} }

#[derive(Default)]
struct LaterClaimWins;

/// Whether a claim is taken for later than the current one of its event.
fn is_later(real: &Real, lease: &Lease) -> bool {
    let last = real.journal.last(&lease.event.stream, &lease.group);
    let current = last
        .iter()
        .find(|entry| place_of(&entry.lease) == place_of(lease));
    current.is_some_and(|current| {
        current.lease.lease_id != lease.lease_id && current.lease.leased_at < lease.leased_at
    })
}

spoils! { LaterClaimWins {
    ack(self, real, lease) {
        let acked = real.backend.ack(lease).await;
        if acked == Err(Error::StaleLease) && is_later(real, lease) {
            return Ok(());
        }
        acked
    }
    reject(self, real, lease, reason) {
        let rejected = real.backend.reject(lease, reason).await;
        if rejected == Err(Error::StaleLease) && is_later(real, lease) {
            return Ok(());
        }
        rejected
    }
    retry(self, real, lease, options) {
        let retried = real.backend.retry(lease, options).await;
        if retried == Err(Error::StaleLease) && is_later(real, lease) {
            return Ok(RetryOutcome::Retrying);
        }
        retried
    }
} }

#[derive(Default)]
struct LeasesOfTheFutureAreDropped;

spoils! { LeasesOfTheFutureAreDropped {
    fetch(self, real, stream, group, options) {
        let now = real.now();
        for lease in real.journal.current(stream, group) {
            let of_others = real.journal.of_claim(&lease).iter().all(|entry| entry.handle != real.handle);
            if lease.leased_at > now && of_others {
                // Whether it was the current claim or not.
                let _ = real.backend.ack(&lease).await;
            }
        }
        real.backend.fetch(stream, group, options).await
    }
} }
