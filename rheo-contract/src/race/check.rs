//! What cannot have been, whatever the order in which things that overlap took effect.

mod claims;
mod end;
mod given;
mod lives;
mod log;
mod progress;

use std::collections::BTreeMap;

use rheo_core::{
    DeadLetter, Error, ErrorKind, Event, GroupName, Lag, Lease, Partition, ResetOptions, Sequence,
    StreamName, Timestamp,
};

use super::{Clocks, Done, How, What};
use crate::describe::{Brief, QueryText};
use crate::expect::{Failure, Outcome, broken};
use crate::fixture::Fixture;

/// Everything that was done, and what was there in the end.
pub(super) struct History {
    pub(super) stream: StreamName,
    pub(super) group: GroupName,
    /// Whether the group was replayed and reset: then what was settled may be open again.
    pub(super) goes_back: bool,
    /// How often the group hands an event out.
    pub(super) attempts: u32,
    pub(super) clocks: Clocks,
    pub(super) done: Vec<Done>,
    pub(super) log: Vec<Vec<Event>>,
    pub(super) end: End,
}

/// What was there of the group in the end.
pub(super) struct End {
    /// When.
    pub(super) at: Timestamp,
    /// What was left after every lease had ended, where the suite can let it end.
    pub(super) rest: Option<Vec<Lease>>,
    /// The lag after that.
    pub(super) lag: Option<Lag>,
    /// The dead letters after that.
    pub(super) dead: Option<Vec<DeadLetter>>,
}

impl End {
    /// Of which nothing is known yet.
    pub(super) fn new(at: Timestamp) -> Self {
        Self {
            at,
            rest: None,
            lag: None,
            dead: None,
        }
    }
}

/// Where an event is.
type Place = (u32, u64);

/// The claims of each event, by attempt.
type Claims<'a> = BTreeMap<Place, Vec<Claim<'a>>>;

/// Something that cannot have been.
pub(super) struct Anomaly {
    name: &'static str,
    pub(super) about: About,
    expected: String,
    seen: String,
    /// How many more there are, which may be what it led to.
    others: usize,
}

impl Anomaly {
    fn new(name: &'static str, about: About, expected: impl ToString, seen: impl ToString) -> Self {
        Self {
            name,
            about,
            expected: expected.to_string(),
            seen: seen.to_string(),
            others: 0,
        }
    }

    pub(super) fn failure(self) -> Failure {
        let Self { name, seen, .. } = self;
        let seen = match self.others {
            0 => format!("{name}: {seen}"),
            others => format!(
                "{name}: {seen}; this is the first of {} anomalies",
                others + 1
            ),
        };
        broken(self.expected, seen)
    }
}

/// What an anomaly is about: an event, and operations that saw it.
#[derive(Default)]
pub(super) struct About {
    place: Option<Place>,
    /// When they started.
    seen_by: Vec<u64>,
    /// The one that did it, or saw it first; else the end of the history did.
    by: Option<u64>,
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

    /// This one did it, or saw it first.
    fn by(mut self, done: &Done) -> Self {
        self.by = Some(done.started);
        self.and(done)
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
            What::Fetch(_, Ok(leases)) => leases.iter().any(|lease| self.is_at(&lease.event)),
            What::Settle(lease, ..) => self.is_at(&lease.event),
            _ => false,
        };
        is_at_it || self.seen_by.contains(&done.started)
    }

    /// What was done, as far as it is about this.
    fn told(&self, done: &Done) -> String {
        match &done.what {
            What::Append(_, result) => format!("append -> {}", given(result)),
            What::Fetch(_, result) => format!("fetch -> {}", self.of(result)),
            What::Settle(lease, how, result) => {
                format!("{how} of {} -> {}", lease.brief(), given(result))
            }
            What::Read(partition, events) => {
                format!("read(p{partition}) -> {}", self.around(events))
            }
            What::Query(query, pages) => {
                let pages: Vec<String> = pages.iter().map(|page| self.around(page)).collect();
                format!("{} -> {}", QueryText(query), pages.join(", then "))
            }
            What::Lag(lag) => format!("lag -> {}", lag.brief()),
            What::Replay(replay, result) => format!("{replay:?} -> {}", given(result)),
            What::Reset(options, result) => {
                let ResetOptions {
                    start, partitions, ..
                } = options;
                format!("reset to {start:?} in {partitions:?} -> {}", given(result))
            }
        }
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
    /// Whether it was the last attempt that the group has.
    is_last: bool,
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

    /// What was, or may have been, accepted and makes the event terminal.
    fn ended_by(&self) -> impl Iterator<Item = (&Done, How, bool)> {
        self.accepted().filter(|(_, how, _)| match how {
            How::Ack | How::Reject => true,
            How::Retry(_) => self.is_last,
            How::Renew(_) => false,
        })
    }

    fn is_terminal(&self) -> bool {
        self.ended_by().any(|(_, _, surely)| surely)
    }

    /// The first moment at which the lease may have ended by itself.
    fn ends(&self) -> Timestamp {
        let mut ends = self.lease.expires_at;
        let mut maybe = Timestamp::MAX;
        for (by, how, surely) in self.accepted() {
            if let How::Renew(duration) = how {
                let renewed = by.now.saturating_add(duration.as_duration());
                match surely {
                    true => ends = renewed,
                    false => maybe = maybe.min(renewed),
                }
            }
        }
        ends.min(maybe)
    }
}

impl History {
    /// The anomaly whose operation began first: others may be its consequences.
    pub(super) fn first_anomaly(&self) -> Outcome<Option<Anomaly>> {
        let mut found = Vec::new();
        self.check_appends(&mut found);
        self.check_log(&mut found);
        self.check_reads(&mut found);
        self.check_queries(&mut found);
        self.check_fetches(&mut found);
        self.check_answers(&mut found);
        self.check_lags(&mut found);
        self.check_letters(&mut found);
        let undecided = if self.goes_back {
            self.check_lives(&mut found)
        } else {
            self.check_claims(&mut found);
            None
        };
        let others = found.len().saturating_sub(1);
        let began = |anomaly: &Anomaly| anomaly.about.by.unwrap_or(u64::MAX);
        match (found.into_iter().min_by_key(began), undecided) {
            (Some(first), _) => Ok(Some(Anomaly { others, ..first })),
            (None, Some(why)) => Err(Failure::Undecided(why)),
            (None, None) => Ok(None),
        }
    }

    /// What holds as long as a group never goes back.
    fn check_claims(&self, found: &mut Vec<Anomaly>) {
        let claims = self.claims();
        for (place, claims) in &claims {
            self.check_claims_of(*place, claims, found);
        }
        self.check_given(&claims, found);
        self.check_progress(&claims, found);
        self.check_end(&claims, found);
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
            t.note(format_args!(
                "ticks {}-{}: {}",
                done.started,
                done.ended,
                about.told(done)
            ));
        }
    }

    /// The appends that were answered, with the answers.
    fn appended(&self) -> impl Iterator<Item = (&Done, &Event)> {
        self.done.iter().filter_map(|done| match &done.what {
            What::Append(_, Ok(event)) => Some((done, event)),
            _ => None,
        })
    }

    /// Those that had ended before something began.
    fn appended_before(&self, done: &Done) -> impl Iterator<Item = (&Done, &Event)> {
        let started = done.started;
        self.appended()
            .filter(move |(other, _)| other.ended < started)
    }

    /// How many events of a partition were there when something began.
    fn least(&self, done: &Done, partition: Partition) -> u64 {
        let before = self.appended_before(done);
        let here = before.filter(|(_, event)| event.partition == partition);
        here.map(|(_, event)| event.sequence.get())
            .max()
            .unwrap_or(0)
    }

    /// How many fetches that began before then may have claimed events of which nobody knows.
    fn unsure(&self, before: u64) -> usize {
        let fetches = self.done.iter().filter(|done| {
            let is_ambiguous = matches!(
                &done.what,
                What::Fetch(_, Err(error)) if error.kind() == ErrorKind::Ambiguous
            );
            is_ambiguous && done.started < before
        });
        fetches.count()
    }

    /// Whether a fetch that began before then may have found that a lease had ended at the last attempt.
    fn may_have_expired(&self, claim: &Claim<'_>, before: u64) -> bool {
        let ends = claim.ends();
        let finds_it = |done: &Done| {
            let has_ended = self.clocks == Clocks::Differ || done.now >= ends;
            matches!(done.what, What::Fetch(..)) && done.started < before && has_ended
        };
        claim.is_last && self.done.iter().any(finds_it)
    }

    /// Whether an event may have been claimed for the last time by fetches of which nobody knows what they
    /// claimed.
    fn may_have_ended_unseen(&self, claims: &[Claim<'_>], before: u64) -> bool {
        let unsure = self.unsure(before);
        unsure > 0 && claims.len() + unsure >= self.attempts as usize
    }

    /// Whether an event may have been terminal before then.
    fn may_be_terminal(&self, claims: &[Claim<'_>], before: u64) -> bool {
        let is_over = |claim: &Claim<'_>| {
            claim.ended_by().any(|(by, ..)| by.started < before)
                || self.may_have_expired(claim, before)
        };
        claims.iter().any(is_over) || self.may_have_ended_unseen(claims, before)
    }

    fn event(&self, partition: Partition, sequence: Sequence) -> Option<&Event> {
        let at = usize::try_from(sequence.get()).ok()?.checked_sub(1)?;
        self.log.get(partition.number() as usize)?.get(at)
    }

    fn is_in_the_log(&self, event: &Event) -> bool {
        self.event(event.partition, event.sequence) == Some(event)
    }
}

/// Whether an operation may fail for such a reason, at no fault of the caller.
fn may_fail(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Ambiguous | ErrorKind::Failed | ErrorKind::BackendUnavailable
    )
}

fn claims_of<'a, 'h>(claims: &'a Claims<'h>, place: Place) -> &'a [Claim<'h>] {
    claims.get(&place).map_or(&[], |claims| claims)
}

fn place_of(event: &Event) -> Place {
    (event.partition.number(), event.sequence.get())
}

fn given<T: Brief>(result: &Result<T, Error>) -> String {
    match result {
        Ok(value) => crate::describe::ok(value),
        Err(error) => format!("Err({})", error.kind()),
    }
}
