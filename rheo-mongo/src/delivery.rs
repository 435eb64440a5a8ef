//! What one group has open in one partition: the state machine of a delivery, without any I/O.
//!
//! ```text
//!                   fetch                     ack
//!   never claimed ─────────▶ leased ─────────────────────▶ acked (nothing is kept)
//!                            │ ▲  │
//!               retry with   │ │  │ reject, retry or expiry
//!               attempts left│ │  │ with the attempts used up
//!                            ▼ │  ▼
//!                         waiting dead
//!
//!   replay: everything above a sequence is never claimed again, chosen events are waiting.
//! ```
//!
//! All of it is one document in the store: the *cursor*, up to which events were claimed, and the
//! *claims*, the sets of sequences that are open below it. What is at or below the cursor and in no
//! claim is done. So a claim is one write that moves the cursor and records the lease at once: there
//! is no moment at which one is done and not the other.
//!
//! An operation is a function from a state to the next one and an answer. The caller writes the next
//! state on the condition that the store still has the one before, by its `version`; if not, it takes
//! the new state and runs the operation again. That is why fencing needs no more than the comparison
//! in [`take_held`](Delivery::take_held): whoever settles, settles the state that the store has.
//!
//! # Dead letters
//!
//! They can be without number, so they are not kept here but in documents of their own. As no write
//! changes two documents, the state carries what is to be done about them: its *facts*. A fact says
//! that a sequence is dead, or is not, and since which version. Whoever comes next may write facts to
//! the dead letters, any number of times, in any order, however late: a fact counts there only if the
//! version that is there is lower (see [`dead`](crate::dead)). Once they are written, the next state
//! goes without them. Readers lay the facts of the state over the documents.

use rheo_core::{
    ConsumerId, Error, Lease, LeaseDuration, LeaseId, MaxAttempts, Reason, Receipt, Result,
    RetryDelay, RetryOptions, Sequence, Timestamp,
};
use uuid::Uuid;

use crate::lease_id::lease_id;
use crate::sequences::Sequences;

/// A group's delivery state in one partition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delivery {
    /// How many writes made it; 0 for a state that was never written.
    pub(crate) version: i64,
    /// The highest claimed sequence; the group's start when there is none.
    pub(crate) cursor: Sequence,
    /// The first sequence of the batch of the log that holds the event after the cursor, or will hold
    /// it; none if that is not known. It says where to read on, and nothing else.
    pub(crate) resume: Option<Sequence>,
    /// No sequence is in two of them, and none is above the cursor.
    pub(crate) claims: Vec<Claim>,
    pub(crate) facts: Vec<Fact>,
}

/// Deliveries that are leased together, or wait together to be claimed again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claim {
    /// How often they were claimed (LSE-5).
    pub(crate) attempts: u32,
    /// When they are claimable: the leases' expiry, or the end of the retry's delay.
    pub(crate) due: Timestamp,
    /// Who has them. It stays until they are settled or replaced, whatever the time (LSE-4).
    pub(crate) holder: Option<Holder>,
    pub(crate) open: Sequences,
}

/// A fetch that claimed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Holder {
    /// 122 random bits, which the lease ids are made of.
    pub(crate) token: Uuid,
    /// For people who look.
    pub(crate) consumer: ConsumerId,
}

/// What is to be done about dead letters, and the version that it is true from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fact {
    Dead {
        sequence: Sequence,
        since: i64,
        dead: Dead,
    },
    /// It is no dead letter. It has to be written down also where there is none, if it may be that
    /// somebody is still about to write an earlier fact.
    Gone {
        sequence: Sequence,
        since: i64,
        is_contested: bool,
    },
    /// None above that sequence is.
    GoneAbove { sequence: Sequence, since: i64 },
}

/// A delivery that was given up on (DLQ-5).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dead {
    pub(crate) attempt: u32,
    pub(crate) reason: Reason,
    pub(crate) dead_at: Timestamp,
}

/// What a fetch shall claim, and for whom.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub(crate) now: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) holder: Holder,
}

/// What makes a lease of an event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claimed {
    pub(crate) sequence: Sequence,
    pub(crate) lease_id: LeaseId,
    pub(crate) attempt: u32,
}

/// What a caller says of a lease; the event's other fields play no part (LSE-2).
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) sequence: Sequence,
    pub(crate) lease_id: LeaseId,
    pub(crate) receipt: Option<Receipt>,
}

/// What shall be done with a lease.
#[derive(Debug, Clone)]
pub(crate) enum Settle {
    Ack,
    Retry(RetryOptions),
    Reject(Reason),
    Renew(LeaseDuration),
}

/// What was done with a lease that was current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It is acked or rejected.
    Done,
    /// It will be handed out again.
    Retrying,
    /// It ran out of attempts.
    DeadLettered,
    /// It lasts until then.
    Until(Timestamp),
}

/// Due whatever the time is, also when the clock goes back.
pub(crate) const AT_ONCE: Timestamp = Timestamp::MIN;

/// No more events than this are open at once in one state, so that its document stays small: each
/// takes at most some 400 bytes. A fetch then claims nothing new until something is settled, which
/// holds consumers up but loses nothing; what is due again is handed out all the same.
pub(crate) const MOST_OPEN: u64 = 10_000;

impl Delivery {
    /// Nothing was delivered; the first event is the one after `start`.
    pub(crate) fn new(start: Sequence) -> Self {
        Self {
            version: 0,
            cursor: start,
            resume: (start == Sequence::ZERO).then(|| start.next()),
            claims: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// The same state as the next version, to be changed.
    pub(crate) fn successor(&self) -> Self {
        Self {
            version: self.version + 1,
            ..self.clone()
        }
    }

    /// Whether there is anything to write that the other does not have.
    pub(crate) fn differs_from(&self, before: &Self) -> bool {
        self.cursor != before.cursor || self.claims != before.claims || self.facts != before.facts
    }

    // Claiming

    /// Claims the lowest claimable sequences, at most `limit` (DLV-3, DLV-4), up to the first one whose
    /// event is not at hand.
    pub(crate) fn fetch(
        &mut self,
        is_at_hand: impl Fn(Sequence) -> bool,
        limit: usize,
        max_attempts: MaxAttempts,
        term: &Term,
    ) -> Vec<Claimed> {
        let mut claims = Vec::new();
        if limit == 0 {
            return claims;
        }
        for (sequence, attempts) in self.due(term.now) {
            if claims.len() == limit {
                return claims;
            }
            if attempts >= max_attempts.get() {
                // An expired lease: a retry would have made it a dead letter at once.
                self.take(sequence);
                self.bury(sequence, attempts, Reason::lease_expired(), term.now);
            } else if is_at_hand(sequence) {
                self.take(sequence);
                claims.push(self.claim(sequence, attempts + 1, term));
            } else {
                return claims;
            }
        }
        // All that is due is at or below the cursor, so it goes before what was never claimed.
        let mut room = MOST_OPEN.saturating_sub(self.open_count());
        while claims.len() < limit && room > 0 && is_at_hand(self.cursor.next()) {
            self.cursor = self.cursor.next();
            room -= 1;
            claims.push(self.claim(self.cursor, 1, term));
        }
        claims
    }

    /// What is claimable again or used up, and its attempts, ascending.
    fn due(&self, now: Timestamp) -> Vec<(Sequence, u32)> {
        let due = self.claims.iter().filter(|claim| claim.due <= now);
        let each =
            due.flat_map(|claim| claim.open.iter().map(|sequence| (sequence, claim.attempts)));
        let mut due: Vec<_> = each.collect();
        due.sort_unstable();
        due
    }

    /// What a fetch would claim again, ascending.
    pub(crate) fn claimable_again(
        &self,
        now: Timestamp,
        max_attempts: MaxAttempts,
    ) -> Vec<Sequence> {
        let due = self.due(now).into_iter();
        due.filter(|(_, attempts)| *attempts < max_attempts.get())
            .map(|(sequence, _)| sequence)
            .collect()
    }

    fn claim(&mut self, sequence: Sequence, attempt: u32, term: &Term) -> Claimed {
        let holder = Some(term.holder.clone());
        self.put(sequence, attempt, term.expires_at, holder);
        Claimed {
            sequence,
            lease_id: lease_id(term.holder.token, sequence),
            attempt,
        }
    }

    /// When something that was claimed before is claimable: [`AT_ONCE`], or the first due time.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.claims.iter().map(|claim| claim.due).min()
    }

    /// Whether something new may be claimed, should there be something.
    pub(crate) fn has_room(&self) -> bool {
        self.open_count() < MOST_OPEN
    }

    // Settling

    /// Settles or renews a lease (LSE-2 to LSE-7); what is no current claim changes nothing.
    pub(crate) fn settle(
        &mut self,
        given: &Given,
        settle: &Settle,
        max_attempts: MaxAttempts,
        now: Timestamp,
    ) -> Result<Settled> {
        let sequence = given.sequence;
        let (attempts, holder) = self.take_held(given)?;
        match settle {
            Settle::Ack => Ok(Settled::Done),
            Settle::Reject(reason) => {
                self.bury(sequence, attempts, reason.clone(), now);
                Ok(Settled::Done)
            }
            Settle::Retry(options) if attempts >= max_attempts.get() => {
                let reason = options.reason.clone().unwrap_or_else(Reason::max_attempts);
                self.bury(sequence, attempts, reason, now);
                Ok(Settled::DeadLettered)
            }
            Settle::Retry(options) => {
                let due = match options.delay {
                    RetryDelay::NONE => AT_ONCE,
                    delay => now.saturating_add(delay.as_duration()),
                };
                self.put(sequence, attempts, due, None);
                Ok(Settled::Retrying)
            }
            Settle::Renew(duration) => {
                let expires_at = now.saturating_add(duration.as_duration());
                self.put(sequence, attempts, expires_at, Some(holder));
                Ok(Settled::Until(expires_at))
            }
        }
    }

    /// Takes the delivery out of its claim if the lease is current; if not, nothing changes.
    fn take_held(&mut self, given: &Given) -> Result<(u32, Holder)> {
        let of = |claim: &Claim| claim.open.contains(given.sequence);
        let at = self.claims.iter().position(of).ok_or(Error::StaleLease)?;
        let claim = &self.claims[at];
        let holder = claim.holder.clone().ok_or(Error::StaleLease)?;
        if lease_id(holder.token, given.sequence) != given.lease_id {
            return Err(Error::StaleLease);
        }
        // Claims have no receipt here, so any receipt is another one (LSE-3).
        if given.receipt.is_some() {
            return Err(Error::ReceiptMismatch);
        }
        let attempts = claim.attempts;
        self.take_from(at, given.sequence);
        Ok((attempts, holder))
    }

    // Going back

    /// Everything above `sequence` is as if it had never been claimed (RPL-1); the cursor never
    /// moves forward (RPL-3).
    pub(crate) fn replay_after(&mut self, sequence: Sequence) {
        if sequence < self.cursor {
            self.drop_above(sequence);
            self.cursor = sequence;
            self.resume = (sequence == Sequence::ZERO).then(|| sequence.next());
        }
    }

    /// One event is claimable again, from attempt 1 (RPL-4); one above the cursor is already.
    pub(crate) fn replay_event(&mut self, sequence: Sequence) {
        if sequence > self.cursor {
            return;
        }
        let of = |claim: &Claim| claim.open.contains(sequence);
        match self.claims.iter().position(of) {
            // What is open is not dead.
            Some(at) => self.take_from(at, sequence),
            None => self.dig_up(sequence),
        }
        self.put(sequence, 0, AT_ONCE, None);
    }

    /// Everything is forgotten, and starts again after `start` (RPL-5).
    pub(crate) fn reset(&mut self, start: Sequence) {
        self.drop_above(Sequence::ZERO);
        self.cursor = start;
        self.resume = (start == Sequence::ZERO).then(|| start.next());
    }

    fn drop_above(&mut self, sequence: Sequence) {
        for claim in &mut self.claims {
            claim.open.remove_above(sequence);
        }
        self.claims.retain(|claim| !claim.open.is_empty());
        let since = self.version;
        for fact in &mut self.facts {
            if let Fact::Dead { sequence: dead, .. } = fact
                && *dead > sequence
            {
                *fact = Fact::Gone {
                    sequence: *dead,
                    since,
                    is_contested: true,
                };
            }
        }
        // An earlier one that says less need not be said any more.
        self.facts.retain(|fact| match fact {
            Fact::GoneAbove {
                sequence: other, ..
            } => *other < sequence,
            Fact::Gone {
                sequence: other,
                is_contested: false,
                ..
            } => *other <= sequence,
            _ => true,
        });
        self.facts.push(Fact::GoneAbove { sequence, since });
    }

    // Progress

    /// The highest sequence with nothing open at or below it (FRN-1); the dead let it pass (DLQ-6).
    pub(crate) fn frontier(&self) -> Sequence {
        let firsts = self.claims.iter().filter_map(|claim| claim.open.first());
        firsts.min().map_or(self.cursor, Sequence::previous)
    }

    /// How many claims are current, expired ones included.
    pub(crate) fn leased(&self) -> u64 {
        let leased = self.claims.iter().filter(|claim| claim.holder.is_some());
        leased.map(|claim| claim.open.len()).sum()
    }

    /// Whether the facts end what a document has said of a sequence since some version.
    pub(crate) fn ends(&self, of: Sequence, document_since: i64) -> bool {
        self.facts.iter().any(|fact| match fact {
            Fact::Dead { .. } => false,
            Fact::Gone {
                sequence, since, ..
            } => *sequence == of && *since > document_since,
            Fact::GoneAbove { sequence, since } => *sequence < of && *since > document_since,
        })
    }

    fn open_count(&self) -> u64 {
        self.claims.iter().map(|claim| claim.open.len()).sum()
    }

    // Keeping claims and facts in order

    fn put(&mut self, sequence: Sequence, attempts: u32, due: Timestamp, holder: Option<Holder>) {
        let is_same = |claim: &&mut Claim| {
            claim.attempts == attempts && claim.due == due && claim.holder == holder
        };
        // The last one is the one that the event before went to.
        match self.claims.iter_mut().rev().find(is_same) {
            Some(claim) => claim.open.insert(sequence),
            None => {
                let mut open = Sequences::default();
                open.insert(sequence);
                self.claims.push(Claim {
                    attempts,
                    due,
                    holder,
                    open,
                });
            }
        }
    }

    /// Takes out what is open.
    fn take(&mut self, sequence: Sequence) {
        let of = |claim: &Claim| claim.open.contains(sequence);
        if let Some(at) = self.claims.iter().position(of) {
            self.take_from(at, sequence);
        }
    }

    fn take_from(&mut self, at: usize, sequence: Sequence) {
        let open = &mut self.claims[at].open;
        open.remove(sequence);
        if open.is_empty() {
            self.claims.remove(at);
        }
    }

    fn bury(&mut self, sequence: Sequence, attempt: u32, reason: Reason, dead_at: Timestamp) {
        let dead = Dead {
            attempt,
            reason,
            dead_at,
        };
        self.forget(sequence);
        self.facts.push(Fact::Dead {
            sequence,
            since: self.version,
            dead,
        });
    }

    fn dig_up(&mut self, sequence: Sequence) {
        let is_contested = self.forget(sequence);
        self.facts.push(Fact::Gone {
            sequence,
            since: self.version,
            is_contested,
        });
    }

    /// Drops the earlier facts of a sequence, which a new one replaces; whether somebody may be
    /// about to write one of them where no document is.
    fn forget(&mut self, sequence: Sequence) -> bool {
        let mut is_contested = false;
        self.facts.retain(|fact| match fact {
            Fact::Dead { sequence: of, .. } if *of == sequence => {
                is_contested = true;
                false
            }
            Fact::Gone {
                sequence: of,
                is_contested: was_contested,
                ..
            } if *of == sequence => {
                is_contested |= was_contested;
                false
            }
            _ => true,
        });
        is_contested
    }
}

impl Given {
    pub(crate) fn of(lease: &Lease) -> Self {
        Self {
            sequence: lease.event.sequence,
            lease_id: lease.lease_id.clone(),
            receipt: lease.receipt.clone(),
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
