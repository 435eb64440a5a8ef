//! What cannot have been, whatever the order in which things that overlap took effect.

use std::collections::{BTreeMap, BTreeSet};

use rheo_core::{
    DeadLetter, ErrorKind, Event, EventId, Lag, Lease, LeaseId, Partition, Sequence, Timestamp,
};

use super::{Clocks, Done, How, What};
use crate::describe::Brief;
use crate::expect::{Failure, broken};
use crate::fixture::Fixture;

/// Everything that was done, and the log at the end.
pub(super) struct History {
    done: Vec<Done>,
    log: Vec<Vec<Event>>,
    clocks: Clocks,
}

/// What a check gives.
type Checked<T = ()> = Result<T, Anomaly>;

/// Where an event is.
type Place = (u32, u64);

/// Something that cannot have been.
pub(super) struct Anomaly {
    pub(super) failure: Failure,
    pub(super) about: About,
}

/// What an anomaly is about: an event, and operations that saw it.
#[derive(Default)]
pub(super) struct About {
    place: Option<Place>,
    /// When they started.
    seen_by: Vec<u64>,
}

impl About {
    fn place(place: Place) -> Self {
        Self {
            place: Some(place),
            ..Self::default()
        }
    }

    fn event(event: &Event) -> Self {
        Self::place(place_of(event))
    }

    fn and(mut self, done: &Done) -> Self {
        self.seen_by.push(done.started);
        self
    }

    fn is_at(&self, event: &Event) -> bool {
        self.place == Some(place_of(event))
    }

    fn concerns(&self, done: &Done) -> bool {
        let is_at_it = match &done.what {
            What::Append(_, Ok(event)) => self.is_at(event),
            What::Fetch(Ok(leases)) => leases.iter().any(|lease| self.is_at(&lease.event)),
            What::Settle(lease, ..) => self.is_at(&lease.event),
            _ => false,
        };
        is_at_it || self.seen_by.contains(&done.started)
    }

    /// The lease of the event, of those that a fetch gave.
    fn of(&self, fetched: &Result<Vec<Lease>, rheo_core::Error>) -> String {
        match fetched {
            Ok(leases) => {
                let here: Vec<_> = leases.iter().filter(|l| self.is_at(&l.event)).collect();
                let here: Vec<String> = here.into_iter().map(Brief::brief).collect();
                format!("{} leases, among them [{}]", leases.len(), here.join(", "))
            }
            Err(_) => given(fetched),
        }
    }

    /// The events around the place, of those that a read gave.
    fn around(&self, events: &[Event]) -> String {
        const NEAR: u64 = 2;
        let sequence = self.place.map_or(0, |(_, sequence)| sequence);
        let near: Vec<String> = events
            .iter()
            .filter(|event| event.sequence.get().abs_diff(sequence) <= NEAR)
            .map(Brief::brief)
            .collect();
        format!("{} events, among them [{}]", events.len(), near.join(", "))
    }
}

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

    /// Writes the history of the case anew: what was done, in order of its start, with its ticks, but
    /// only what an anomaly is about.
    pub(super) fn note(&self, t: &Fixture, about: &About) {
        let (told, left_out): (Vec<&Done>, Vec<&Done>) =
            self.done.iter().partition(|done| about.concerns(done));
        t.note(format_args!(
            "what overlaps in its ticks happened at the same time; {} operations on other events are \
             left out",
            left_out.len()
        ));
        for done in told {
            let what = match &done.what {
                What::Append(_, result) => format!("append -> {}", given(result)),
                What::Fetch(result) => format!("fetch -> {}", about.of(result)),
                What::Settle(lease, how, result) => {
                    format!("{how} of {} -> {}", lease.brief(), given(result))
                }
                What::Read(partition, events) => {
                    format!("read(p{partition}) -> {}", about.around(events))
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
    ) -> Checked {
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

    fn check_log(&self) -> Checked {
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
                            About::event(event),
                            format!("{} in the log, as append returned it", event.brief()),
                            logged.map_or("nothing there".to_owned(), Brief::brief),
                        ));
                    }
                    let earlier = last.entry(event.partition.number()).or_default();
                    if let Some((by, higher)) = earlier
                        .iter()
                        .find(|(e, sequence)| e.ended < done.started && *sequence > event.sequence)
                    {
                        return Err(anomaly(
                            "order broken (LOG-1)",
                            About::event(event).and(by),
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
                            About::event(event).and(done),
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
                        About::event(event),
                        format!("sequence {} next", at + 1),
                        event.brief(),
                    ));
                }
                if !ids.insert(event.id) || !known.contains(&event.id) {
                    return Err(anomaly(
                        "event that nobody appended, or twice (LOG-7)",
                        About::event(event),
                        "each event once",
                        event.brief(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// LOG-2, LOG-10: a read gives a prefix of the log, with everything whose append had ended.
    fn check_reads(&self) -> Checked {
        for done in &self.done {
            let What::Read(partition, events) = &done.what else {
                continue;
            };
            let log = &self.log[partition.number() as usize];
            if !log.starts_with(events) {
                let same = log.iter().zip(events).take_while(|(a, b)| a == b);
                let first = (partition.number(), same.count() as u64 + 1);
                return Err(anomaly(
                    "event that shows up later (LOG-2)",
                    About::place(first).and(done),
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
                    About::place((partition.number(), least)).and(done),
                    format!("at least {least} events"),
                    events.len(),
                ));
            }
        }
        Ok(())
    }

    fn claims(&self) -> Checked<BTreeMap<Place, Vec<Claim<'_>>>> {
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
                        About::event(&lease.event).and(done),
                        "an event of the log",
                        lease.brief(),
                    ));
                }
                let place = place_of(&lease.event);
                if !ids.entry(place).or_default().insert(&lease.lease_id) {
                    return Err(anomaly(
                        "lease id given out twice for an event (LSE-1)",
                        About::place(place),
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
    fn check_progress(&self, claims: &BTreeMap<Place, Vec<Claim<'_>>>) -> Checked {
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
                        About::place((partition, most + 1)).and(done),
                        format!(
                            "at most {most} in partition {partition}, since no more is settled"
                        ),
                        lag.brief(),
                    ));
                }
                let earlier = lags.iter().filter(|(other, _)| other.ended < done.started);
                let passed = earlier
                    .filter_map(|(by, lag)| Some((by, lag.partition(progress.partition)?.frontier)))
                    .max_by_key(|(_, frontier)| *frontier);
                if let Some((by, passed)) = passed.filter(|(_, it)| progress.frontier < *it) {
                    return Err(anomaly(
                        "frontier moving back (FRN-3)",
                        About::default().and(by).and(done),
                        format!("at least {passed} in partition {partition}, as before"),
                        lag.brief(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// DLV-6: what is not terminal is delivered when all leases have ended, and nothing else is.
    fn check_rest(&self, claims: &BTreeMap<Place, Vec<Claim<'_>>>, rest: &[Lease]) -> Checked {
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
                        About::place(place),
                        format!("{} to be delivered once all leases ended", event.brief()),
                        "it never was",
                    ));
                }
                Some(_) if terminal => {
                    return Err(anomaly(
                        "acked event redelivered (DLV-7)",
                        About::place(place),
                        format!("{} to stay terminal", event.brief()),
                        "it was delivered again",
                    ));
                }
                Some(attempt) if !unsure && *attempt as usize != claims.len() + 1 => {
                    return Err(anomaly(
                        "attempt skipped or repeated (LSE-5)",
                        About::place(place),
                        format!("attempt {} of {}", claims.len() + 1, event.brief()),
                        attempt,
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_lag(&self, claims: &BTreeMap<Place, Vec<Claim<'_>>>, lag: &Lag) -> Checked {
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
                    About::place(place(1 + least.min(seen) as usize)),
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
fn check_claims(place: Place, claims: &[Claim<'_>], clocks: Clocks) -> Checked {
    for (at, claim) in claims.iter().enumerate() {
        let attempt = at as u32 + 1;
        if claim.lease.attempt != attempt {
            return Err(anomaly(
                "double claim, or attempt skipped (DLV-7, LSE-5)",
                About::place(place),
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
                About::place(place),
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
fn check_reclaim(claim: &Claim<'_>, next: &Claim<'_>, clocks: Clocks) -> Checked {
    let mut ends: Timestamp = claim.lease.expires_at;
    let mut retried = false;
    for (by, how, surely) in claim.accepted() {
        match how {
            How::Retry => retried |= by.started < next.by.ended,
            How::Ack | How::Reject if surely => {
                return Err(anomaly(
                    "late settle accepted, or settled event redelivered (LSE-2, DLV-7)",
                    About::event(&claim.lease.event),
                    format!("nothing after {how} of {}", claim.lease.brief()),
                    next.lease.brief(),
                ));
            }
            How::Renew(_) if surely && by.started > next.by.ended => {
                return Err(anomaly(
                    "late renewal accepted (LSE-2)",
                    About::event(&claim.lease.event),
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
            About::event(&claim.lease.event),
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
fn check_refusals(claims: &[Claim<'_>], at: usize) -> Checked {
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
                About::event(&claim.lease.event),
                format!("{how} of {} to succeed", claim.lease.brief()),
                format!("Err({kind})"),
            ));
        }
    }
    Ok(())
}

/// DLQ-4, DLQ-5: each rejected event once, and nothing else.
fn check_dead_letters(claims: &BTreeMap<Place, Vec<Claim<'_>>>, dead: &[DeadLetter]) -> Checked {
    let mut places = BTreeSet::new();
    for letter in dead {
        if !places.insert(place_of(&letter.event)) {
            return Err(anomaly(
                "dead letter doubled (DLQ-5)",
                About::event(&letter.event),
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
                About::place(*place),
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

fn given<T: Brief>(result: &Result<T, rheo_core::Error>) -> String {
    match result {
        Ok(value) => crate::describe::ok(value),
        Err(error) => format!("Err({})", error.kind()),
    }
}

fn anomaly(
    name: &str,
    about: About,
    expected: impl std::fmt::Display,
    seen: impl std::fmt::Display,
) -> Anomaly {
    let failure = broken(format!("{expected}"), format!("{name}: {seen}"));
    Anomaly { failure, about }
}
