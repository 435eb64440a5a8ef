//! What cannot have been, whatever the order in which things that overlap took effect.

use std::collections::{BTreeMap, BTreeSet};

use rheo_core::{
    DeadLetter, ErrorKind, Event, EventId, Lag, Lease, LeaseId, Partition, Sequence, Timestamp,
};

use super::{Clocks, Done, How, What};
use crate::describe::Brief;
use crate::expect::{Failure, Outcome, broken};
use crate::fixture::Fixture;

/// Everything that was done, and the log at the end.
pub(super) struct History {
    done: Vec<Done>,
    log: Vec<Vec<Event>>,
    clocks: Clocks,
}

/// Where an event is.
type Place = (u32, u64);

/// A claim of one event.
struct Claim<'a> {
    lease: &'a Lease,
    by: &'a Done,
    settles: Vec<(&'a Done, How, Option<ErrorKind>)>,
}

impl Claim<'_> {
    /// Whether a settle or renewal of it was, or may have been, accepted.
    fn accepted(&self) -> impl Iterator<Item = (&Done, How, bool)> {
        self.settles
            .iter()
            .filter_map(|(done, how, error)| match error {
                None => Some((*done, *how, true)),
                Some(ErrorKind::Ambiguous) => Some((*done, *how, false)),
                Some(_) => None,
            })
    }

    fn is_terminal(&self) -> bool {
        self.accepted()
            .any(|(_, how, surely)| surely && matches!(how, How::Ack | How::Reject))
    }
}

impl History {
    pub(super) fn new(mut done: Vec<Done>, log: Vec<Vec<Event>>, clocks: Clocks) -> Self {
        done.sort_by_key(|done| done.started);
        Self { done, log, clocks }
    }

    /// Writes the history of the case anew: what was done, in order of its start, with its ticks.
    pub(super) fn note(&self, t: &Fixture) {
        for done in &self.done {
            let what = match &done.what {
                What::Append(_, result) => format!("append -> {}", told(result)),
                What::Fetch(result) => format!("fetch -> {}", told(result)),
                What::Settle(lease, how, result) => {
                    format!("{how:?}({}) -> {}", lease.brief(), told(result))
                }
                What::Read(partition, events) => {
                    format!("read(p{partition}) -> {} events", events.len())
                }
                What::Lag(lag) => format!("lag -> {}", lag.brief()),
            };
            t.note(format_args!(
                "ticks {}-{}: {what}",
                done.started, done.ended
            ));
        }
    }

    /// Names the first anomaly. `rest` is what was left after every lease had ended.
    pub(super) fn check(
        &self,
        lag: Option<&Lag>,
        dead: Option<&[DeadLetter]>,
        rest: &[Lease],
        rest_is_known: bool,
    ) -> Outcome {
        self.check_log()?;
        self.check_reads()?;
        let claims = self.claims()?;
        for (place, claims) in &claims {
            check_claims(*place, claims, self.clocks)?;
        }
        self.check_progress(&claims)?;
        if rest_is_known {
            self.check_rest(&claims, rest)?;
        }
        if let Some(lag) = lag {
            self.check_lag(&claims, lag)?;
        }
        if let Some(dead) = dead {
            check_dead_letters(&claims, dead)?;
        }
        Ok(())
    }

    fn check_log(&self) -> Outcome {
        let mut known: BTreeSet<EventId> = BTreeSet::new();
        let mut last: BTreeMap<u32, Vec<(&Done, Sequence)>> = BTreeMap::new();
        for done in &self.done {
            let What::Append(given, result) = &done.what else {
                continue;
            };
            known.extend(given.id);
            match result {
                Ok(event) => {
                    let logged = self.event(event.partition, event.sequence);
                    if logged != Some(event) {
                        return Err(anomaly(
                            "lost event (LOG-10)",
                            format!("{} in the log, as append returned it", event.brief()),
                            logged.map_or("nothing there".to_owned(), Brief::brief),
                        ));
                    }
                    let earlier = last.entry(event.partition.number()).or_default();
                    if let Some((_, higher)) = earlier
                        .iter()
                        .find(|(e, sequence)| e.ended < done.started && *sequence > event.sequence)
                    {
                        return Err(anomaly(
                            "order broken (LOG-1)",
                            format!("a sequence above {higher}, whose append had ended before"),
                            event.brief(),
                        ));
                    }
                    earlier.push((done, event.sequence));
                }
                Err(error) if error.kind() == ErrorKind::Ambiguous => {}
                Err(error) => {
                    let id = given.id;
                    let there = self.log.iter().flatten().find(|event| Some(event.id) == id);
                    if let Some(event) = there {
                        return Err(anomaly(
                            "failed append that happened (ERR-1)",
                            format!("no event, since append gave Err({})", error.kind()),
                            event.brief(),
                        ));
                    }
                }
            }
        }
        let mut ids = BTreeSet::new();
        for events in &self.log {
            for (at, event) in events.iter().enumerate() {
                if event.sequence.get() != at as u64 + 1 {
                    return Err(anomaly(
                        "hole or repeated sequence (LOG-1)",
                        format!("sequence {} next", at + 1),
                        event.brief(),
                    ));
                }
                if !ids.insert(event.id) || !known.contains(&event.id) {
                    return Err(anomaly(
                        "event that nobody appended, or twice (LOG-7)",
                        "each event once",
                        event.brief(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// LOG-2, LOG-10: a read gives a prefix of the log, with everything whose append had ended.
    fn check_reads(&self) -> Outcome {
        for done in &self.done {
            let What::Read(partition, events) = &done.what else {
                continue;
            };
            let log = &self.log[partition.number() as usize];
            if !log.starts_with(events) {
                return Err(anomaly(
                    "event that shows up later (LOG-2)",
                    format!("the first {} events of the log", events.len()),
                    events.brief(),
                ));
            }
            let before = |other: &&Done| other.ended < done.started;
            let appended = self.done.iter().filter(before).filter_map(|other| {
                let What::Append(_, Ok(event)) = &other.what else {
                    return None;
                };
                (event.partition == *partition).then_some(event.sequence.get())
            });
            let least = appended.max().unwrap_or(0);
            if (events.len() as u64) < least {
                return Err(anomaly(
                    "appended event that a later read does not give (LOG-10)",
                    format!("at least {least} events"),
                    events.len(),
                ));
            }
        }
        Ok(())
    }

    fn claims(&self) -> Outcome<BTreeMap<Place, Vec<Claim<'_>>>> {
        let mut claims: BTreeMap<Place, Vec<Claim<'_>>> = BTreeMap::new();
        let mut at: BTreeMap<&LeaseId, Place> = BTreeMap::new();
        let mut ids: BTreeMap<Place, BTreeSet<&LeaseId>> = BTreeMap::new();
        for done in &self.done {
            let What::Fetch(Ok(leases)) = &done.what else {
                continue;
            };
            for lease in leases {
                if self.event(lease.event.partition, lease.event.sequence) != Some(&lease.event) {
                    return Err(anomaly(
                        "claim of an event that is not in the log (LOG-5)",
                        "an event of the log",
                        lease.brief(),
                    ));
                }
                let place = place_of(&lease.event);
                if !ids.entry(place).or_default().insert(&lease.lease_id) {
                    return Err(anomaly(
                        "lease id given out twice for an event (LSE-1)",
                        "a new lease id",
                        lease.brief(),
                    ));
                }
                at.insert(&lease.lease_id, place);
                claims.entry(place).or_default().push(Claim {
                    lease,
                    by: done,
                    settles: Vec::new(),
                });
            }
        }
        for done in &self.done {
            let What::Settle(lease, how, result) = &done.what else {
                continue;
            };
            let error = result.as_ref().err().map(rheo_core::Error::kind);
            let place = place_of(&lease.event);
            let of_place = claims.entry(place).or_default().iter_mut();
            if let Some(claim) = of_place
                .into_iter()
                .find(|claim| claim.lease.lease_id == lease.lease_id)
            {
                claim.settles.push((done, *how, error));
            }
        }
        for claims in claims.values_mut() {
            claims.sort_by_key(|claim| claim.lease.attempt);
        }
        Ok(claims)
    }

    /// FRN-3, FRN-4: no progress that was not made, none taken back.
    fn check_progress(&self, claims: &BTreeMap<Place, Vec<Claim<'_>>>) -> Outcome {
        let lags: Vec<(&Done, &Lag)> = self
            .done
            .iter()
            .filter_map(|done| match &done.what {
                What::Lag(lag) => Some((done, lag)),
                _ => None,
            })
            .collect();
        for (done, lag) in &lags {
            for progress in &lag.partitions {
                let partition = progress.partition.number();
                let settled = |sequence: u64| {
                    claims.get(&(partition, sequence)).is_some_and(|claims| {
                        claims.iter().flat_map(Claim::accepted).any(|(by, how, _)| {
                            matches!(how, How::Ack | How::Reject) && by.started < done.ended
                        })
                    })
                };
                let most = (1..).take_while(|sequence| settled(*sequence)).count() as u64;
                if progress.frontier.get() > most {
                    return Err(anomaly(
                        "frontier ahead (FRN-4)",
                        format!(
                            "at most {most} in partition {partition}, since no more is settled"
                        ),
                        lag.brief(),
                    ));
                }
                let earlier = lags.iter().filter(|(other, _)| other.ended < done.started);
                let passed = earlier
                    .filter_map(|(_, lag)| lag.partition(progress.partition))
                    .map(|progress| progress.frontier)
                    .max();
                if passed.is_some_and(|passed| progress.frontier < passed) {
                    return Err(anomaly(
                        "frontier moving back (FRN-3)",
                        format!("at least {passed:?} in partition {partition}, as before"),
                        lag.brief(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// DLV-6: what is not terminal is delivered when all leases have ended, and nothing else is.
    fn check_rest(&self, claims: &BTreeMap<Place, Vec<Claim<'_>>>, rest: &[Lease]) -> Outcome {
        let rest: BTreeMap<Place, u32> = rest
            .iter()
            .map(|lease| (place_of(&lease.event), lease.attempt))
            .collect();
        let unsure = self.done.iter().any(|done| {
            matches!(&done.what, What::Fetch(Err(error)) if error.kind() == ErrorKind::Ambiguous)
        });
        for event in self.log.iter().flatten() {
            let place = place_of(event);
            let claims = claims.get(&place).map_or(&[][..], |claims| claims);
            let terminal = claims.iter().any(Claim::is_terminal);
            let maybe = claims
                .iter()
                .flat_map(Claim::accepted)
                .any(|(_, how, _)| matches!(how, How::Ack | How::Reject));
            match rest.get(&place) {
                None if !maybe => {
                    return Err(anomaly(
                        "event passed by a group (DLV-6)",
                        format!("{} to be delivered once all leases ended", event.brief()),
                        "it never was",
                    ));
                }
                Some(_) if terminal => {
                    return Err(anomaly(
                        "acked event redelivered (DLV-7)",
                        format!("{} to stay terminal", event.brief()),
                        "it was delivered again",
                    ));
                }
                Some(attempt) if !unsure && *attempt as usize != claims.len() + 1 => {
                    return Err(anomaly(
                        "attempt skipped or repeated (LSE-5)",
                        format!("attempt {} of {}", claims.len() + 1, event.brief()),
                        attempt,
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_lag(&self, claims: &BTreeMap<Place, Vec<Claim<'_>>>, lag: &Lag) -> Outcome {
        for (at, events) in self.log.iter().enumerate() {
            let place = |sequence: usize| (u32::try_from(at).unwrap_or(0), sequence as u64);
            let done = |sequence: &usize| {
                let claims = claims.get(&place(*sequence));
                claims.is_some_and(|claims| claims.iter().any(Claim::is_terminal))
            };
            let least = (1..=events.len()).take_while(done).count() as u64;
            let partition = Partition::new(place(0).0);
            let seen = lag.partition(partition).map_or(0, |p| p.frontier.get());
            let unsure = claims.values().flatten().flat_map(Claim::accepted);
            if seen != least && unsure.into_iter().all(|(_, _, surely)| surely) {
                return Err(anomaly(
                    "frontier not exact when nothing is concurrent (FRN-1)",
                    format!("{least} in partition {partition}"),
                    seen,
                ));
            }
        }
        Ok(())
    }

    fn event(&self, partition: Partition, sequence: Sequence) -> Option<&Event> {
        let at = usize::try_from(sequence.get()).ok()?.checked_sub(1)?;
        self.log.get(partition.number() as usize)?.get(at)
    }
}

/// What was claimed and settled of one event.
fn check_claims(place: Place, claims: &[Claim<'_>], clocks: Clocks) -> Outcome {
    for (at, claim) in claims.iter().enumerate() {
        let attempt = at as u32 + 1;
        if claim.lease.attempt != attempt {
            return Err(anomaly(
                "double claim, or attempt skipped (DLV-7, LSE-5)",
                format!("attempt {attempt} of {place:?}"),
                claim.lease.brief(),
            ));
        }
        let mut settled = claim
            .accepted()
            .filter(|(_, how, surely)| *surely && !matches!(how, How::Renew(_)));
        if let (Some((_, first, _)), Some((_, second, _))) = (settled.next(), settled.next()) {
            return Err(anomaly(
                "two winners of one settle (LSE-7)",
                format!("one settle of {} to succeed", claim.lease.brief()),
                format!("{first:?} and {second:?} did"),
            ));
        }
        check_refusals(claims, at)?;
        if let Some(next) = claims.get(at + 1) {
            check_reclaim(claim, next, clocks)?;
        }
    }
    Ok(())
}

/// The next claim of an event must be allowed: after a retry, or from the end of the lease on, and
/// then the lease settles nothing more.
fn check_reclaim(claim: &Claim<'_>, next: &Claim<'_>, clocks: Clocks) -> Outcome {
    let mut ends: Timestamp = claim.lease.expires_at;
    let mut retried = false;
    for (by, how, surely) in claim.accepted() {
        match how {
            How::Retry => retried |= by.started < next.by.ended,
            How::Ack | How::Reject if surely => {
                return Err(anomaly(
                    "late settle accepted, or settled event redelivered (LSE-2, DLV-7)",
                    format!("nothing after {how:?} of {}", claim.lease.brief()),
                    next.lease.brief(),
                ));
            }
            How::Renew(_) if surely && by.started > next.by.ended => {
                return Err(anomaly(
                    "late renewal accepted (LSE-2)",
                    format!("{} to be stale", claim.lease.brief()),
                    format!("renewed after {}", next.lease.brief()),
                ));
            }
            How::Renew(duration) if surely => {
                ends = by.now.saturating_add(duration.as_duration());
            }
            _ => {}
        }
    }
    if clocks == Clocks::Agree && !retried && next.by.now < ends {
        return Err(anomaly(
            "double claim (DLV-7)",
            format!(
                "no other lease before {ends}, when {} ends",
                claim.lease.brief()
            ),
            format!("{} at {}", next.lease.brief(), next.by.now),
        ));
    }
    Ok(())
}

/// A current lease is not refused: whoever was told that it is stale had lost it to somebody.
fn check_refusals(claims: &[Claim<'_>], at: usize) -> Outcome {
    let claim = &claims[at];
    for (refused, how, error) in &claim.settles {
        let Some(kind) = error.filter(|kind| *kind != ErrorKind::Ambiguous) else {
            continue;
        };
        let settled = claim
            .accepted()
            .any(|(by, how, _)| !matches!(how, How::Renew(_)) && by.started < refused.ended);
        let replaced = claims
            .get(at + 1)
            .is_some_and(|next| next.by.started < refused.ended);
        let honest = matches!(kind, ErrorKind::StaleLease) && (settled || replaced);
        let failed = matches!(kind, ErrorKind::Failed | ErrorKind::BackendUnavailable);
        if !honest && !failed {
            return Err(anomaly(
                "current lease refused (LSE-2)",
                format!("{how:?} of {} to succeed", claim.lease.brief()),
                format!("Err({kind})"),
            ));
        }
    }
    Ok(())
}

/// DLQ-4, DLQ-5: each rejected event once, and nothing else.
fn check_dead_letters(claims: &BTreeMap<Place, Vec<Claim<'_>>>, dead: &[DeadLetter]) -> Outcome {
    let mut places = BTreeSet::new();
    for letter in dead {
        if !places.insert(place_of(&letter.event)) {
            return Err(anomaly(
                "dead letter doubled (DLQ-5)",
                "each dead letter once",
                letter.event.brief(),
            ));
        }
    }
    for (place, claims) in claims {
        let rejects = |surely: bool| {
            let mut accepted = claims.iter().flat_map(Claim::accepted);
            accepted.any(|(_, how, sure)| how == How::Reject && (sure || !surely))
        };
        let (is_dead, surely, maybe) = (places.contains(place), rejects(true), rejects(false));
        if is_dead != surely && !(is_dead && maybe) {
            return Err(anomaly(
                "dead letter lost, or made of what was not rejected (DLQ-4)",
                format!("a dead letter at {place:?}: {surely}"),
                is_dead,
            ));
        }
    }
    Ok(())
}

fn place_of(event: &Event) -> Place {
    (event.partition.number(), event.sequence.get())
}

fn told<T: Brief>(result: &Result<T, rheo_core::Error>) -> String {
    match result {
        Ok(value) => crate::describe::ok(value),
        Err(error) => format!("Err({})", error.kind()),
    }
}

fn anomaly(name: &str, expected: impl std::fmt::Display, seen: impl std::fmt::Display) -> Failure {
    broken(format!("{expected}"), format!("{name}: {seen}"))
}
