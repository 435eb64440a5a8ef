//! What fetches did not give, though nobody else could have had it.

use rheo_core::{ErrorKind, Event, FetchOptions, Lease, RetryDelay};

use super::{About, Anomaly, Claim, Claims, History, claims_of, place_of};
use crate::describe::Brief;
use crate::race::{Clocks, Done, How, What};

impl History {
    /// DLV-3, DLV-4: a fetch that no other overlaps gives something, and the lowest first, of what was
    /// claimable from its start to its end.
    pub(super) fn check_given(&self, claims: &Claims<'_>, found: &mut Vec<Anomaly>) {
        for done in &self.done {
            let What::Fetch(asked, Ok(leases)) = &done.what else {
                continue;
            };
            if asked.limit == 0 || !self.is_alone(done) {
                continue;
            }
            let log = self.log.iter().flatten();
            let here = log.filter(|event| asked.partitions.contains(event.partition));
            let left = here.filter(|event| leases.iter().all(|lease| lease.event.id != event.id));
            for event in left.filter(|event| self.was_claimable(event, claims, done)) {
                found.extend(not_given(done, asked, leases, event));
            }
        }
    }

    /// Whether no other fetch may have been at work during one.
    fn is_alone(&self, fetch: &Done) -> bool {
        let is_fetch = |other: &&Done| matches!(other.what, What::Fetch(..));
        let mut others = self.done.iter().filter(is_fetch);
        others.all(|other| other.started == fetch.started || !overlaps(other, fetch))
    }

    /// Whether an event was claimable all the time that a fetch took, whatever else was done.
    ///
    /// A fetch need not wait for a settle, which may hold the claims of other events too: what was
    /// claimed before counts only where nothing was settled in its partition meanwhile.
    fn was_claimable(&self, event: &Event, claims: &Claims<'_>, fetch: &Done) -> bool {
        let mut appended = self.appended_before(fetch);
        let is_there = appended.any(|(_, other)| other.id == event.id);
        let claims = claims_of(claims, place_of(event)).iter();
        let mut before = claims.filter(|claim| claim.by.started < fetch.ended);
        let settles_here = |done: &Done| match &done.what {
            What::Settle(lease, ..) => lease.event.partition == event.partition,
            _ => false,
        };
        let mut settles = self.done.iter().filter(|done| settles_here(done));
        is_there
            && before.next_back().is_none_or(|last| {
                !last.is_last
                    && !settles.any(|settle| overlaps(settle, fetch))
                    && self.was_open_again(last, fetch)
            })
    }

    /// Whether a claim was over when a fetch began.
    fn was_open_again(&self, claim: &Claim<'_>, fetch: &Done) -> bool {
        let mut ends = claim.lease.expires_at;
        for (by, how, surely) in claim.accepted() {
            if by.started > fetch.ended {
                continue;
            }
            match how {
                _ if !surely => return false,
                How::Ack | How::Reject => return false,
                How::Retry(RetryDelay::NONE) => return true,
                How::Retry(delay) => {
                    let due = by.now.saturating_add(delay.as_duration());
                    return self.clocks == Clocks::Agree && due <= fetch.now;
                }
                How::Renew(duration) => {
                    ends = ends.max(by.now.saturating_add(duration.as_duration()));
                }
            }
        }
        self.clocks == Clocks::Agree && ends <= fetch.now
    }
}

/// Whether something may have been at work during a fetch: where it had no answer, until later.
fn overlaps(other: &Done, fetch: &Done) -> bool {
    let goes_on = match &other.what {
        What::Fetch(_, Err(error)) | What::Settle(_, _, Err(error)) => {
            error.kind() == ErrorKind::Ambiguous
        }
        _ => false,
    };
    other.started < fetch.ended && (fetch.started < other.ended || goes_on)
}

/// What is wrong where a fetch left an event that it could have given.
fn not_given(
    done: &Done,
    asked: &FetchOptions,
    leases: &[Lease],
    event: &Event,
) -> Option<Anomaly> {
    let about = About::event(event).by(done);
    if leases.is_empty() {
        return Some(Anomaly::new(
            "claimable event passed, and nothing given (DLV-3)",
            about,
            format!("at least one lease of {:?}", asked.partitions),
            format!("none, and {} was claimable all the time", event.brief()),
        ));
    }
    let mut here = leases.iter().map(|lease| &lease.event);
    let above =
        here.find(|given| given.partition == event.partition && given.sequence > event.sequence)?;
    Some(Anomaly::new(
        "lower event passed over (DLV-4)",
        about,
        format!("{} first, which was claimable all the time", event.brief()),
        format!("{} without it", above.brief()),
    ))
}
