//! What is there when all is over: what is left to deliver, the lag, and the dead letters.

use std::collections::{BTreeMap, BTreeSet};

use rheo_core::{DeadLetter, ErrorKind, Lease, Partition, PartitionLag, Reason};

use super::{About, Anomaly, Claim, Claims, History, Place, claims_of, place_of};
use crate::describe::Brief;
use crate::race::{How, REJECTED, What};

impl History {
    pub(super) fn check_end(&self, claims: &Claims<'_>, found: &mut Vec<Anomaly>) {
        if let Some(rest) = &self.end.rest {
            self.check_rest(claims, rest, found);
        }
        for progress in self.end.lag.iter().flat_map(|lag| &lag.partitions) {
            self.check_frontier(claims, progress, found);
        }
        if let Some(dead) = &self.end.dead {
            self.check_dead_letters(claims, dead, found);
        }
    }

    /// Whether an event is surely terminal in the end.
    fn is_terminal(&self, claims: &[Claim<'_>]) -> bool {
        let all_ended = self.end.rest.is_some();
        let is_over = |claim: &Claim<'_>| claim.is_terminal() || (claim.is_last && all_ended);
        claims.iter().any(is_over)
    }

    /// DLV-6: what is not terminal is delivered when all leases have ended, and nothing else is.
    fn check_rest(&self, claims: &Claims<'_>, rest: &[Lease], found: &mut Vec<Anomaly>) {
        let mut left: BTreeMap<Place, u32> = BTreeMap::new();
        for lease in rest {
            let place = place_of(&lease.event);
            if left.insert(place, lease.attempt).is_some() {
                found.push(Anomaly::new(
                    "event delivered twice in the end (DLV-7)",
                    About::place(place),
                    "each event once",
                    lease.brief(),
                ));
            }
        }
        for event in self.log.iter().flatten() {
            let place = place_of(event);
            let claims = claims_of(claims, place);
            let next = claims.len() + 1;
            let is_next = |attempt: usize| {
                attempt == next || (next..=next + self.unsure(u64::MAX)).contains(&attempt)
            };
            let is_terminal = self.is_terminal(claims);
            match left.get(&place) {
                None if !is_terminal && !self.may_be_terminal(claims, u64::MAX) => {
                    found.push(Anomaly::new(
                        "event passed by a group (DLV-6)",
                        About::place(place),
                        format!("{} to be delivered once all leases ended", event.brief()),
                        "it never was",
                    ));
                }
                Some(_) if is_terminal => {
                    found.push(Anomaly::new(
                        "terminal event redelivered (DLV-7, DLQ-6)",
                        About::place(place),
                        format!("{} to stay terminal", event.brief()),
                        "it was delivered again",
                    ));
                }
                Some(attempt) if !is_next(*attempt as usize) => {
                    found.push(Anomaly::new(
                        "attempt skipped or repeated (LSE-5)",
                        About::place(place),
                        format!("attempt {next} of {}", event.brief()),
                        attempt,
                    ));
                }
                _ => {}
            }
        }
    }

    /// FRN-4: the high watermark is exact when nothing is concurrent.
    pub(super) fn check_last_lag(&self, found: &mut Vec<Anomaly>) {
        let Some(lag) = &self.end.lag else {
            return;
        };
        for (number, events) in (0..).zip(&self.log) {
            let partition = Partition::new(number);
            match lag.partition(partition) {
                Some(progress) => self.check_last(progress, events.len() as u64, found),
                None => found.push(Anomaly::new(
                    "partition missing (FRN-4)",
                    About::default(),
                    format!("a lag of partition {partition}"),
                    lag.brief(),
                )),
            }
        }
    }

    /// FRN-1, FRN-4: so is the frontier.
    fn check_frontier(
        &self,
        claims: &Claims<'_>,
        progress: &PartitionLag,
        found: &mut Vec<Anomaly>,
    ) {
        let number = progress.partition.number();
        let last = self.log.get(number as usize).map_or(0, Vec::len) as u64;
        let surely = |sequence: &u64| self.is_terminal(claims_of(claims, (number, *sequence)));
        let maybe = |sequence: &u64| {
            let claims = claims_of(claims, (number, *sequence));
            self.is_terminal(claims) || self.may_be_terminal(claims, u64::MAX)
        };
        let least = (1..=last).take_while(surely).count() as u64;
        let most = (1..=last).take_while(maybe).count() as u64;
        let seen = progress.frontier.get();
        if !(least..=most).contains(&seen) {
            found.push(Anomaly::new(
                "frontier not exact when nothing is concurrent (FRN-1)",
                About::place((number, 1 + least.min(seen))),
                format!("{least} in partition {number}"),
                seen,
            ));
        }
    }

    fn check_last(&self, progress: &PartitionLag, last: u64, found: &mut Vec<Anomaly>) {
        let may_come_later = self.done.iter().any(|done| {
            matches!(&done.what, What::Append(_, Err(error)) if error.kind() == ErrorKind::Ambiguous)
        });
        let seen = progress.high_watermark.get();
        if seen != last && !may_come_later {
            found.push(Anomaly::new(
                "high watermark not exact when nothing is concurrent (FRN-4)",
                About::place((progress.partition.number(), last)),
                format!("{last} in partition {}", progress.partition),
                seen,
            ));
        }
    }

    /// DLQ-5: each event that was given up on once.
    pub(super) fn check_letters(&self, found: &mut Vec<Anomaly>) {
        let mut places = BTreeSet::new();
        for letter in self.end.dead.iter().flatten() {
            let place = place_of(&letter.event);
            if !places.insert(place) {
                found.push(Anomaly::new(
                    "dead letter doubled (DLQ-5)",
                    About::place(place),
                    "each dead letter once",
                    letter.event.brief(),
                ));
            }
            if !self.is_in_the_log(&letter.event) || letter.group != self.group {
                found.push(Anomaly::new(
                    "dead letter of another event or group (DLQ-5)",
                    About::place(place),
                    format!("an event of the log, and {:?}", self.group),
                    format!("{letter:?}"),
                ));
            }
        }
    }

    /// DLQ-2 to DLQ-5: what was given up on, with its reason, and nothing else.
    fn check_dead_letters(
        &self,
        claims: &Claims<'_>,
        dead: &[DeadLetter],
        found: &mut Vec<Anomaly>,
    ) {
        let mut places = BTreeSet::new();
        for letter in dead {
            let place = place_of(&letter.event);
            places.insert(place);
            let deaths = self.deaths(claims_of(claims, place));
            if deaths.is_empty() {
                found.push(Anomaly::new(
                    "dead letter of what was not given up on (DLQ-4)",
                    About::place(place),
                    format!("no dead letter at {place:?}"),
                    format!("{letter:?}"),
                ));
            } else if !deaths.contains(&(letter.attempt, letter.reason.clone())) {
                found.push(Anomaly::new(
                    "dead letter of another attempt or reason (DLQ-5)",
                    About::place(place),
                    format!("one of (attempt, reason) {deaths:?}"),
                    format!("{letter:?}"),
                ));
            }
        }
        for (place, claims) in claims {
            let mut accepted = claims.iter().flat_map(Claim::accepted);
            let may_be_acked = accepted.any(|(_, how, _)| how == How::Ack);
            if self.is_terminal(claims) && !may_be_acked && !places.contains(place) {
                found.push(Anomaly::new(
                    "dead letter lost (DLQ-3, DLQ-4)",
                    About::place(*place),
                    format!("a dead letter at {place:?}"),
                    "none",
                ));
            }
        }
    }

    /// At which attempts and why an event may have been given up on.
    fn deaths(&self, claims: &[Claim<'_>]) -> Vec<(u32, Reason)> {
        let mut deaths = Vec::new();
        for claim in claims {
            let attempt = claim.lease.attempt;
            let reasons = claim.ended_by().filter_map(|(_, how, _)| match how {
                How::Reject => Some(Reason::new(REJECTED)),
                How::Retry(_) => Some(Reason::max_attempts()),
                How::Ack | How::Renew(_) => None,
            });
            deaths.extend(reasons.map(|reason| (attempt, reason)));
            if claim.is_last && !claim.is_terminal() {
                deaths.push((attempt, Reason::lease_expired()));
            }
        }
        if self.may_have_ended_unseen(claims, u64::MAX) {
            deaths.push((self.attempts, Reason::lease_expired()));
        }
        deaths
    }
}
