//! Applying operations that go out together to a state, one after the other, without any I/O.
//!
//! What a fetch claims has to be read before. It is read for the state that is there at first, and what
//! goes before the fetch may take all of it away: a settle, a going back, another fetch. So a fetch that
//! finds nothing of what was read is held up until it has been read for the state that the fetch meets.

use rheo_core::{ConsumerId, LeaseDuration, MaxAttempts, Sequence, Timestamp};
use uuid::Uuid;

use crate::change::Done;
use crate::delivery::{Claimed, Delivery, Given, Holder, MOST_OPEN, Settle, Term};

/// What shall be done with a state.
#[derive(Debug)]
pub(crate) enum Op {
    Fetch {
        consumer: ConsumerId,
        limit: u64,
        duration: LeaseDuration,
    },
    Settle {
        leases: Vec<Given>,
        settle: Settle,
    },
    ReplayAfter(Sequence),
    ReplayEvents(Vec<Sequence>),
    Reset(Sequence),
}

/// What an operation found, before its events are read.
#[derive(Debug)]
pub(crate) enum Found {
    Claimed(Vec<Claimed>, Term),
    Other(Done),
}

/// The events that a fetch of a state can claim, the lowest first.
#[derive(Debug, PartialEq)]
pub(crate) struct Claimable {
    /// Those that are due again.
    pub(crate) due: Vec<Sequence>,
    /// How many more, of those after the cursor.
    pub(crate) unclaimed: u64,
}

/// Operations on their way from a state to the next one.
#[derive(Debug)]
pub(crate) struct Applying {
    pub(crate) next: Delivery,
    pub(crate) found: Vec<Found>,
    /// The state for which it was read last.
    read_for: Delivery,
    max_attempts: MaxAttempts,
    now: Timestamp,
}

impl Op {
    /// How many events it claims at most.
    pub(crate) fn wanted(&self) -> u64 {
        match self {
            Self::Fetch { limit, .. } => *limit,
            _ => 0,
        }
    }
}

impl Claimable {
    pub(crate) fn of(
        state: &Delivery,
        wanted: u64,
        max_attempts: MaxAttempts,
        now: Timestamp,
    ) -> Self {
        let mut due = match wanted {
            0 => Vec::new(),
            _ => state.claimable_again(now, max_attempts),
        };
        due.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
        let unclaimed = match state.has_room() {
            true => wanted - due.len() as u64,
            false => 0,
        };
        Self { due, unclaimed }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty() && self.unclaimed == 0
    }
}

impl Applying {
    /// To a state for which it was read.
    pub(crate) fn to(next: Delivery, max_attempts: MaxAttempts, now: Timestamp) -> Self {
        Self {
            found: Vec::new(),
            read_for: next.clone(),
            next,
            max_attempts,
            now,
        }
    }

    /// What is to be read for all of these.
    pub(crate) fn claimable(&self, ops: &[Op]) -> Claimable {
        let wanted: u64 = ops.iter().map(Op::wanted).sum();
        let wanted = wanted.min(MOST_OPEN);
        Claimable::of(&self.next, wanted, self.max_attempts, self.now)
    }

    /// Goes on with the operations that were not applied yet. Gives what is to be read for the state as it
    /// is now, if one of them waits for that; then this is to be called again.
    ///
    /// None waits twice: what is at hand then is of the very state that it meets.
    pub(crate) fn go_on(
        &mut self,
        ops: &[Op],
        is_at_hand: impl Fn(Sequence) -> bool,
    ) -> Option<Claimable> {
        for op in ops.iter().skip(self.found.len()) {
            let found = self.apply(op, &is_at_hand);
            let gives_none = matches!(&found, Found::Claimed(claimed, _) if claimed.is_empty());
            // A fetch that only gave up on leases has made another state as well.
            if gives_none && op.wanted() > 0 && self.next.differs_from(&self.read_for) {
                self.read_for = self.next.clone();
                let claimable = Claimable::of(&self.next, op.wanted(), self.max_attempts, self.now);
                if !claimable.is_empty() {
                    return Some(claimable);
                }
            }
            self.found.push(found);
        }
        None
    }

    fn apply(&mut self, op: &Op, is_at_hand: impl Fn(Sequence) -> bool) -> Found {
        let (next, now, max_attempts) = (&mut self.next, self.now, self.max_attempts);
        match op {
            Op::Fetch {
                consumer,
                limit,
                duration,
            } => {
                let term = Term {
                    now,
                    expires_at: now.saturating_add(duration.as_duration()),
                    holder: Holder {
                        token: Uuid::new_v4(),
                        consumer: consumer.clone(),
                    },
                };
                let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
                let claimed = next.fetch(is_at_hand, limit, max_attempts, &term);
                Found::Claimed(claimed, term)
            }
            Op::Settle { leases, settle } => {
                let each = leases
                    .iter()
                    .map(|given| next.settle(given, settle, max_attempts, now));
                Found::Other(Done::Settled(each.collect()))
            }
            Op::ReplayAfter(sequence) => {
                next.replay_after(*sequence);
                Found::Other(Done::WentBack)
            }
            Op::ReplayEvents(sequences) => {
                for sequence in sequences {
                    next.replay_event(*sequence);
                }
                Found::Other(Done::WentBack)
            }
            Op::Reset(start) => {
                next.reset(*start);
                Found::Other(Done::WentBack)
            }
        }
    }
}

#[cfg(test)]
mod tests;
