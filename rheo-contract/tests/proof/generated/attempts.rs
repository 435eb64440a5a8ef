//! Defects that show only when calls overlap, at the last attempt: events die twice, never, or of
//! something else.

use std::sync::Mutex;

use rheo_core::{
    ConsumerId, DeadLetter, EventId, FetchOptions, GroupName, Lease, LeaseId, Reason, Result,
    RetryOutcome, StreamName,
};

use crate::book::{all_dead, held};
use crate::defect::Real;
use crate::faulty::{Faulty, faulty};
use crate::generated::meddling::UnderWay;
use crate::generated::spoils::spoils;

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        OverlappingReapersDeliverOnceMore: "where two fetches overlap, what expired at its last attempt is given up on, and delivered by one of them",
        says: "event delivered after its last attempt (DLQ-3)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingReapersLeaveTwoLetters: "where two fetches overlap, what expired at its last attempt leaves two dead letters",
        says: "dead letter doubled (DLQ-5)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingReapersLeaveNoLetter: "where two fetches overlap, what expired at its last attempt leaves no dead letter",
        says: "dead letter lost (DLQ-3, DLQ-4)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingReapersBlameARetry: "where two fetches overlap, what expired at its last attempt has the reason of a retry",
        says: "dead letter of another attempt or reason (DLQ-5)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        LastRetriesAmongOthersAreToldAsRetried: "a retry at the last attempt that overlaps another one, or a fetch, answers that the event comes again",
        says: "retry that answers something else (DLQ-2)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
];

/// Fetches, and finds what they gave up on while others fetched.
async fn fetch_and_reap(
    real: &Real,
    stream: &StreamName,
    group: &GroupName,
    options: &FetchOptions,
) -> Result<(Vec<Lease>, Vec<Lease>)> {
    let now = real.now();
    let fetching = real.beside.of::<UnderWay<ConsumerId>>();
    let mut reaped = Vec::new();
    if fetching.is_any() {
        reaped = real.journal.current(stream, group);
        reaped.retain(|lease| {
            lease.expires_at <= now && options.partitions.contains(lease.event.partition)
        });
    }
    let _fetching = fetching.begin(options.consumer.clone());
    let leases = real.backend.fetch(stream, group, options).await?;
    if !reaped.is_empty() {
        let dead = dead_by_expiry(real, stream, group).await?;
        reaped.retain(|lease| dead.contains(&lease.event.id));
    }
    Ok((leases, reaped))
}

async fn dead_by_expiry(
    real: &Real,
    stream: &StreamName,
    group: &GroupName,
) -> Result<Vec<EventId>> {
    let dead = all_dead(real, stream, group).await?;
    let expired = dead
        .iter()
        .filter(|letter| letter.reason == Reason::lease_expired());
    Ok(expired.map(|letter| letter.event.id).collect())
}

#[derive(Default)]
struct OverlappingReapersDeliverOnceMore;

spoils! { OverlappingReapersDeliverOnceMore {
    fetch(self, real, stream, group, options) {
        let (mut leases, reaped) = fetch_and_reap(real, stream, group, options).await?;
        for lease in reaped {
            if leases.len() < options.limit as usize {
                let leased_at = real.now();
                leases.push(Lease {
                    consumer: options.consumer.clone(),
                    lease_id: LeaseId::generate(),
                    attempt: lease.attempt + 1,
                    leased_at,
                    expires_at: leased_at.saturating_add(options.lease_duration.as_duration()),
                    ..lease
                });
            }
        }
        leases.sort_by_key(|lease| (lease.event.partition, lease.event.sequence));
        Ok(leases)
    }
} }

/// Events that were given up on while fetches overlapped.
type Reaped = Mutex<Vec<EventId>>;

/// Fetches, and remembers what it gave up on while others fetched.
async fn fetch_and_note(
    real: &Real,
    stream: &StreamName,
    group: &GroupName,
    options: &FetchOptions,
) -> Result<Vec<Lease>> {
    let (leases, reaped) = fetch_and_reap(real, stream, group, options).await?;
    held(&real.beside.of::<Reaped>()).extend(reaped.iter().map(|lease| lease.event.id));
    Ok(leases)
}

fn was_reaped(real: &Real, letter: &DeadLetter) -> bool {
    held(&real.beside.of::<Reaped>()).contains(&letter.event.id)
}

#[derive(Default)]
struct OverlappingReapersLeaveTwoLetters;

spoils! { OverlappingReapersLeaveTwoLetters {
    fetch(self, real, stream, group, options) {
        fetch_and_note(real, stream, group, options).await
    }
    dead_letters(self, real, stream, group, options) {
        let letters = real.backend.dead_letters(stream, group, options).await?;
        let times = |letter: DeadLetter| {
            let times = if was_reaped(real, &letter) { 2 } else { 1 };
            std::iter::repeat_n(letter, times)
        };
        Ok(letters.into_iter().flat_map(times).collect())
    }
} }

#[derive(Default)]
struct OverlappingReapersLeaveNoLetter;

spoils! { OverlappingReapersLeaveNoLetter {
    fetch(self, real, stream, group, options) {
        fetch_and_note(real, stream, group, options).await
    }
    dead_letters(self, real, stream, group, options) {
        let mut letters = real.backend.dead_letters(stream, group, options).await?;
        letters.retain(|letter| !was_reaped(real, letter));
        Ok(letters)
    }
} }

#[derive(Default)]
struct OverlappingReapersBlameARetry;

spoils! { OverlappingReapersBlameARetry {
    fetch(self, real, stream, group, options) {
        fetch_and_note(real, stream, group, options).await
    }
    dead_letters(self, real, stream, group, options) {
        let mut letters = real.backend.dead_letters(stream, group, options).await?;
        for letter in letters.iter_mut().filter(|letter| was_reaped(real, letter)) {
            letter.reason = Reason::max_attempts();
        }
        Ok(letters)
    }
} }

#[derive(Default)]
struct LastRetriesAmongOthersAreToldAsRetried;

spoils! { LastRetriesAmongOthersAreToldAsRetried {
    fetch(self, real, stream, group, options) {
        let _fetching = real.beside.of::<UnderWay<ConsumerId>>().begin(options.consumer.clone());
        real.backend.fetch(stream, group, options).await
    }
    retry(self, real, lease, options) {
        let under_way = real.beside.of::<UnderWay<ConsumerId>>();
        let overlaps = under_way.is_any();
        let _retrying = under_way.begin(lease.consumer.clone());
        let outcome = real.backend.retry(lease, options).await?;
        Ok(if overlaps { RetryOutcome::Retrying } else { outcome })
    }
} }
