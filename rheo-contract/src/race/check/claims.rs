//! Fetches, and what became of the leases that they gave.

use std::collections::BTreeSet;

use rheo_core::{ErrorKind, FetchOptions, Lease, LeaseDuration, LeaseId, RetryOutcome};

use super::{About, Anomaly, Claim, Claims, History, Place, may_fail, place_of};
use crate::describe::Brief;
use crate::race::{Clocks, Done, How, Settled, What};

impl History {
    /// DLV-3, DLV-4, DLV-8, LSE-1: what a fetch gives is what was asked for.
    pub(super) fn check_fetches(&self, found: &mut Vec<Anomaly>) {
        let mut ids: BTreeSet<&LeaseId> = BTreeSet::new();
        for done in &self.done {
            let What::Fetch(asked, result) = &done.what else {
                continue;
            };
            let leases = match result {
                Ok(leases) => leases,
                Err(error) => {
                    if !may_fail(error.kind()) {
                        found.push(Anomaly::new(
                            "fetch refused (DLV-3)",
                            About::default().by(done),
                            "fetch to succeed, whoever else fetches",
                            format!("Err({})", error.kind()),
                        ));
                    }
                    continue;
                }
            };
            if leases.len() > asked.limit as usize {
                found.push(Anomaly::new(
                    "more leases than asked for (DLV-3)",
                    About::event(&leases[0].event).by(done),
                    format!("at most {}", asked.limit),
                    leases.brief(),
                ));
            }
            for (at, lease) in leases.iter().enumerate() {
                let about = || About::event(&lease.event).by(done);
                let here = |other: &&Lease| other.event.partition == lease.event.partition;
                let before = leases[..at].iter().rfind(here);
                if before.is_some_and(|before| before.event.sequence >= lease.event.sequence) {
                    found.push(Anomaly::new(
                        "leases out of order (DLV-4)",
                        about(),
                        "ascending sequences in each partition",
                        leases.brief(),
                    ));
                }
                if !ids.insert(&lease.lease_id) {
                    found.push(Anomaly::new(
                        "lease id given out twice (LSE-1)",
                        about(),
                        "a new lease id",
                        lease.brief(),
                    ));
                }
                self.check_lease(done, asked, lease, found);
            }
        }
    }

    fn check_lease(
        &self,
        done: &Done,
        asked: &FetchOptions,
        lease: &Lease,
        found: &mut Vec<Anomaly>,
    ) {
        let about = || About::event(&lease.event).by(done);
        if !self.is_in_the_log(&lease.event) {
            found.push(Anomaly::new(
                "claim of an event that is not in the log (LOG-5)",
                about(),
                "an event of the log",
                lease.brief(),
            ));
        }
        if lease.group != self.group || lease.consumer != asked.consumer {
            found.push(Anomaly::new(
                "lease of another group or consumer (DLV-8)",
                about(),
                format!("one of {:?} and {:?}", self.group, asked.consumer),
                format!("{:?} and {:?}", lease.group, lease.consumer),
            ));
        }
        if !asked.partitions.contains(lease.event.partition) {
            found.push(Anomaly::new(
                "lease of a partition that was not selected (DLV-3)",
                about(),
                format!("one of {:?}", asked.partitions),
                lease.brief(),
            ));
        }
        let lasts = asked.lease_duration.as_duration();
        if lease.expires_at != lease.leased_at.saturating_add(lasts) {
            found.push(Anomaly::new(
                "lease of another duration (DLV-8)",
                about(),
                format!("{lasts:?} from {} on", lease.leased_at),
                format!("until {}", lease.expires_at),
            ));
        }
        if self.clocks == Clocks::Agree && lease.leased_at != done.now {
            found.push(Anomaly::new(
                "lease of another time (DLV-8)",
                about(),
                format!("leased at {}", done.now),
                lease.leased_at,
            ));
        }
    }

    /// LSE-6, DLQ-2: a renewal answers with the lease, a retry with what it did.
    pub(super) fn check_answers(&self, found: &mut Vec<Anomaly>) {
        for done in &self.done {
            match &done.what {
                What::Settle(lease, How::Renew(duration), Ok(Settled::Renewed(renewed))) => {
                    self.check_renewed(done, lease, *duration, renewed, found);
                }
                What::Settle(lease, _, Ok(Settled::Retried(outcome))) => {
                    let expected = if lease.attempt >= self.attempts {
                        RetryOutcome::DeadLettered
                    } else {
                        RetryOutcome::Retrying
                    };
                    if *outcome != expected {
                        found.push(Anomaly::new(
                            "retry that answers something else (DLQ-2)",
                            About::event(&lease.event).by(done),
                            format!("{expected:?}, for {}", lease.brief()),
                            format!("{outcome:?}"),
                        ));
                    }
                }
                _ => {}
            }
        }
    }

    fn check_renewed(
        &self,
        done: &Done,
        lease: &Lease,
        duration: LeaseDuration,
        renewed: &Lease,
        found: &mut Vec<Anomaly>,
    ) {
        let expires_at = match self.clocks {
            Clocks::Agree => done.now.saturating_add(duration.as_duration()),
            Clocks::Stores | Clocks::Differ => renewed.expires_at,
        };
        let expected = Lease {
            expires_at,
            ..lease.clone()
        };
        if *renewed != expected {
            found.push(Anomaly::new(
                "renewal that answers another lease (LSE-6)",
                About::event(&lease.event).by(done),
                format!("{expected:?}"),
                format!("{renewed:?}"),
            ));
        }
    }

    pub(super) fn claims(&self) -> Claims<'_> {
        let mut claims = Claims::new();
        for done in &self.done {
            let What::Fetch(_, Ok(leases)) = &done.what else {
                continue;
            };
            for lease in leases {
                let of_place = claims.entry(place_of(&lease.event)).or_default();
                of_place.push(Claim {
                    lease,
                    by: done,
                    is_last: lease.attempt >= self.attempts,
                    settles: Vec::new(),
                });
            }
        }
        for done in &self.done {
            let What::Settle(lease, how, result) = &done.what else {
                continue;
            };
            let error = result.as_ref().err().map(rheo_core::Error::kind);
            let of_place = claims.entry(place_of(&lease.event)).or_default();
            if let Some(claim) = of_place
                .iter_mut()
                .find(|claim| claim.lease.lease_id == lease.lease_id)
            {
                claim.settles.push((done, *how, error));
            }
        }
        for claims in claims.values_mut() {
            claims.sort_by_key(|claim| claim.lease.attempt);
        }
        claims
    }

    /// What was claimed and settled of one event.
    pub(super) fn check_claims_of(
        &self,
        place: Place,
        claims: &[Claim<'_>],
        found: &mut Vec<Anomaly>,
    ) {
        let mut last = 0;
        for (at, claim) in claims.iter().enumerate() {
            let attempt = claim.lease.attempt;
            // A fetch without an answer may have claimed what nobody knows of.
            let is_skipped =
                || attempt > last + 1 && attempt as usize > at + 1 + self.unsure(u64::MAX);
            if attempt <= last || is_skipped() {
                found.push(Anomaly::new(
                    "double claim, or attempt skipped (DLV-7, LSE-5)",
                    About::place(place).by(claim.by),
                    format!("attempt {} of {place:?}", last + 1),
                    claim.lease.brief(),
                ));
            }
            if attempt > self.attempts {
                found.push(Anomaly::new(
                    "event delivered after its last attempt (DLQ-3)",
                    About::place(place).by(claim.by),
                    format!("at most {} attempts", self.attempts),
                    claim.lease.brief(),
                ));
            }
            last = attempt;
            check_winners(claim, found);
            self.check_refusals(claims, at, found);
            if let Some(next) = claims.get(at + 1) {
                self.check_reclaim(claim, next, found);
            }
        }
    }

    /// The next claim of an event must be allowed: after a retry, or from the end of the lease on, and
    /// then the lease settles nothing more.
    fn check_reclaim(&self, claim: &Claim<'_>, next: &Claim<'_>, found: &mut Vec<Anomaly>) {
        let about = |by: &Done| About::event(&claim.lease.event).by(by);
        let mut retried = false;
        for (by, how, surely) in claim.accepted() {
            match how {
                How::Retry(_) | How::Renew(_) if surely && by.started > next.by.ended => {
                    found.push(Anomaly::new(
                        "late retry or renewal accepted (LSE-2)",
                        about(by),
                        format!("{} to be stale", claim.lease.brief()),
                        format!("{how} after {}", next.lease.brief()),
                    ));
                }
                How::Retry(delay) => {
                    let due = by.now.saturating_add(delay.as_duration());
                    let waits = self.clocks == Clocks::Agree && next.by.now < due;
                    if waits && surely {
                        found.push(Anomaly::new(
                            "claim before the delay of a retry was over (DLQ-1)",
                            about(next.by),
                            format!(
                                "no claim before {due}, after {how} of {}",
                                claim.lease.brief()
                            ),
                            format!("{} at {}", next.lease.brief(), next.by.now),
                        ));
                    }
                    retried |= by.started < next.by.ended && (surely || !waits);
                }
                How::Ack | How::Reject if surely => found.push(Anomaly::new(
                    "late settle accepted, or settled event redelivered (LSE-2, DLV-7)",
                    about(std::cmp::max_by_key(by, next.by, |done| done.started)),
                    format!("nothing after {how} of {}", claim.lease.brief()),
                    next.lease.brief(),
                )),
                _ => {}
            }
        }
        let ends = claim.ends();
        if self.clocks != Clocks::Differ && !retried && next.by.now < ends {
            found.push(Anomaly::new(
                "double claim (DLV-7)",
                about(next.by),
                format!(
                    "no other lease before {ends}, when {} ends",
                    claim.lease.brief()
                ),
                format!("{} at {}", next.lease.brief(), next.by.now),
            ));
        }
    }

    /// A current lease is not refused: whoever was told that it is stale had lost it to somebody.
    fn check_refusals(&self, claims: &[Claim<'_>], at: usize, found: &mut Vec<Anomaly>) {
        let claim = &claims[at];
        for (refused, how, error) in &claim.settles {
            let Some(kind) = error.filter(|kind| !may_fail(*kind)) else {
                continue;
            };
            let settled = claim
                .accepted()
                .any(|(by, how, _)| !matches!(how, How::Renew(_)) && by.started < refused.ended);
            let replaced = claims
                .get(at + 1)
                .is_some_and(|next| next.by.started < refused.ended);
            let is_lost = settled
                || replaced
                || self.may_have_expired(claim, refused.ended)
                || self.unsure(refused.ended) > 0;
            if kind != ErrorKind::StaleLease || !is_lost {
                found.push(Anomaly::new(
                    "current lease refused (LSE-2)",
                    About::event(&claim.lease.event).by(refused),
                    format!("{how} of {} to succeed", claim.lease.brief()),
                    format!("Err({kind})"),
                ));
            }
        }
    }
}

/// LSE-2, LSE-7: a lease is settled once, and not renewed after that.
fn check_winners(claim: &Claim<'_>, found: &mut Vec<Anomaly>) {
    let (renewals, settles): (Vec<_>, Vec<_>) = claim
        .accepted()
        .filter(|(.., surely)| *surely)
        .partition(|(_, how, _)| matches!(how, How::Renew(_)));
    let Some((by, first, _)) = settles.first() else {
        return;
    };
    if let Some((second_by, second, _)) = settles.get(1) {
        found.push(Anomaly::new(
            "two winners of one settle (LSE-7)",
            About::event(&claim.lease.event).by(second_by),
            format!("one settle of {} to succeed", claim.lease.brief()),
            format!("{first:?} and {second:?} did"),
        ));
    }
    if let Some((late, ..)) = renewals.iter().find(|(late, ..)| late.started > by.ended) {
        found.push(Anomaly::new(
            "settled lease renewed (LSE-2)",
            About::event(&claim.lease.event).by(late),
            format!("{} to be stale after {first}", claim.lease.brief()),
            "it was renewed",
        ));
    }
}
