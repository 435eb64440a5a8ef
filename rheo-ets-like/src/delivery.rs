//! What one group has open in one partition: the state machine of a delivery.
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

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use rheo_core::{
    Error, Lease, LeaseDuration, LeaseId, MaxAttempts, Reason, Result, RetryDelay, RetryOptions,
    RetryOutcome, Sequence, Timestamp,
};

/// A group's delivery state in one partition.
///
/// An event above the cursor was never claimed. One at or below it is open, dead or, with no entry
/// at all, acked: what is done costs nothing (CST-1).
///
/// Every open delivery has a time from which it is claimable and is in exactly one of two indexes:
/// `waiting` for that time, or `ready` since a fetch found it due. So a fetch touches what is due
/// and what it claims, and nothing else (CST-2).
pub(crate) struct Delivery {
    max_attempts: MaxAttempts,
    /// The highest claimed sequence; the group's start when there is none.
    cursor: Sequence,
    open: BTreeMap<Sequence, Open>,
    waiting: BTreeSet<(Timestamp, Sequence)>,
    ready: BTreeSet<Sequence>,
    dead: BTreeMap<Sequence, Dead>,
}

/// A delivery that is leased, or waits to be claimed again.
struct Open {
    /// How often it was claimed (LSE-5).
    attempts: u32,
    /// When it is claimable: the lease's expiry, or the end of the retry's delay.
    due: Timestamp,
    /// The current claim. It stays until it is settled or replaced, whatever the time (LSE-4).
    holder: Option<LeaseId>,
}

/// A delivery that was given up on (DLQ-5).
pub(crate) struct Dead {
    pub(crate) attempt: u32,
    pub(crate) reason: Reason,
    pub(crate) dead_at: Timestamp,
}

/// The time of a fetch and the expiry of its claims.
pub(crate) struct Term {
    pub(crate) now: Timestamp,
    pub(crate) expires_at: Timestamp,
}

/// What makes a lease of an event.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) sequence: Sequence,
    pub(crate) lease_id: LeaseId,
    pub(crate) attempt: u32,
}

/// Due whatever the time is, also when the clock goes back.
const AT_ONCE: Timestamp = Timestamp::MIN;

impl Delivery {
    /// Nothing was delivered; the first event is the one after `start`.
    pub(crate) fn new(start: Sequence, max_attempts: MaxAttempts) -> Self {
        Self {
            max_attempts,
            cursor: start,
            open: BTreeMap::new(),
            waiting: BTreeSet::new(),
            ready: BTreeSet::new(),
            dead: BTreeMap::new(),
        }
    }

    // Claiming

    /// Claims the lowest claimable sequences, at most `limit` (DLV-3, DLV-4).
    pub(crate) fn fetch(
        &mut self,
        high_watermark: Sequence,
        limit: usize,
        term: &Term,
    ) -> Vec<Claim> {
        let mut claims = Vec::new();
        if limit == 0 {
            return claims;
        }
        self.find_due(term.now);
        while claims.len() < limit
            && let Some((sequence, attempts)) = self.next_claimable(high_watermark, term.now)
        {
            let claim = Claim {
                sequence,
                lease_id: LeaseId::generate(),
                attempt: attempts + 1,
            };
            let open = Open {
                attempts: claim.attempt,
                due: term.expires_at,
                holder: Some(claim.lease_id.clone()),
            };
            self.put(sequence, open);
            claims.push(claim);
        }
        claims
    }

    /// Moves what has become due from `waiting` to `ready`, where the order is by sequence.
    fn find_due(&mut self, now: Timestamp) {
        while let Some(&(due, sequence)) = self.waiting.first()
            && due <= now
        {
            self.waiting.pop_first();
            self.ready.insert(sequence);
        }
    }

    /// Takes the lowest claimable sequence, with how often it was claimed.
    ///
    /// What is ready is at or below the cursor, so it goes before what was never claimed.
    fn next_claimable(
        &mut self,
        high_watermark: Sequence,
        now: Timestamp,
    ) -> Option<(Sequence, u32)> {
        while let Some(&sequence) = self.ready.first()
            && let Some(open) = self.remove(sequence)
        {
            if open.due > now {
                // The clock has gone back since it was found due.
                self.put(sequence, open);
            } else if self.is_used_up(open.attempts) {
                // An expired lease: a retry would have made it a dead letter at once.
                self.bury(sequence, open.attempts, Reason::lease_expired(), now);
            } else {
                return Some((sequence, open.attempts));
            }
        }
        if self.cursor < high_watermark {
            self.cursor = self.cursor.next();
            return Some((self.cursor, 0));
        }
        None
    }

    /// When something is claimable: [`AT_ONCE`], or when the first open delivery is due.
    pub(crate) fn next_due(&self, high_watermark: Sequence) -> Option<Timestamp> {
        if self.cursor < high_watermark || !self.ready.is_empty() {
            return Some(AT_ONCE);
        }
        self.waiting.first().map(|(due, _)| *due)
    }

    // Settling

    /// Lets the lease expire `duration` from now, sooner or later than before (LSE-6).
    pub(crate) fn renew(
        &mut self,
        lease: &Lease,
        duration: LeaseDuration,
        now: Timestamp,
    ) -> Result<Lease> {
        let mut open = self.take_held(lease)?;
        open.due = now.saturating_add(duration.as_duration());
        let renewed = Lease {
            expires_at: open.due,
            ..lease.clone()
        };
        self.put(lease.event.sequence, open);
        Ok(renewed)
    }

    /// Done: nothing is kept.
    pub(crate) fn ack(&mut self, lease: &Lease) -> Result<()> {
        self.take_held(lease).map(drop)
    }

    /// Claimable again, or dead when the attempts are used up (DLQ-1, DLQ-2).
    pub(crate) fn retry(
        &mut self,
        lease: &Lease,
        options: &RetryOptions,
        now: Timestamp,
    ) -> Result<RetryOutcome> {
        let sequence = lease.event.sequence;
        let attempts = self.take_held(lease)?.attempts;
        if self.is_used_up(attempts) {
            let reason = options.reason.clone().unwrap_or_else(Reason::max_attempts);
            self.bury(sequence, attempts, reason, now);
            return Ok(RetryOutcome::DeadLettered);
        }
        let due = match options.delay {
            RetryDelay::NONE => AT_ONCE,
            delay => now.saturating_add(delay.as_duration()),
        };
        self.put(
            sequence,
            Open {
                attempts,
                due,
                holder: None,
            },
        );
        Ok(RetryOutcome::Retrying)
    }

    /// Dead for this group (DLQ-4).
    pub(crate) fn reject(&mut self, lease: &Lease, reason: &Reason, now: Timestamp) -> Result<()> {
        let attempts = self.take_held(lease)?.attempts;
        self.bury(lease.event.sequence, attempts, reason.clone(), now);
        Ok(())
    }

    // Going back

    /// Everything above `sequence` is as if it had never been claimed (RPL-1); the cursor never
    /// moves forward (RPL-3).
    pub(crate) fn replay_after(&mut self, sequence: Sequence) {
        if sequence >= self.cursor {
            return;
        }
        self.cursor = sequence;
        let above = sequence.next();
        self.dead.split_off(&above);
        for (sequence, open) in self.open.split_off(&above) {
            self.unschedule(sequence, open.due);
        }
    }

    /// One event is claimable again, from attempt 1 (RPL-4); one above the cursor is already.
    pub(crate) fn replay_event(&mut self, sequence: Sequence) {
        if sequence > self.cursor {
            return;
        }
        self.dead.remove(&sequence);
        self.remove(sequence);
        let open = Open {
            attempts: 0,
            due: AT_ONCE,
            holder: None,
        };
        self.put(sequence, open);
    }

    // Progress

    /// The highest sequence with nothing open at or below it (FRN-1); the dead let it pass (DLQ-6).
    pub(crate) fn frontier(&self) -> Sequence {
        match self.open.first_key_value() {
            Some((lowest, _)) => lowest.previous(),
            None => self.cursor,
        }
    }

    /// How many claims are current, expired ones included. Goes through what is open.
    pub(crate) fn leased(&self) -> u64 {
        self.open
            .values()
            .filter(|open| open.holder.is_some())
            .count() as u64
    }

    /// The dead above a sequence, ascending.
    pub(crate) fn dead_after(&self, after: Sequence) -> impl Iterator<Item = (Sequence, &Dead)> {
        self.dead
            .range(after.next()..)
            .map(|(sequence, dead)| (*sequence, dead))
    }

    /// Whether the event with this sequence is dead.
    pub(crate) fn is_dead(&self, sequence: Sequence) -> bool {
        self.dead.contains_key(&sequence)
    }

    /// How many are dead.
    pub(crate) fn dead_count(&self) -> u64 {
        self.dead.len() as u64
    }

    // Keeping entries and indexes together

    fn put(&mut self, sequence: Sequence, open: Open) {
        self.waiting.insert((open.due, sequence));
        self.open.insert(sequence, open);
    }

    fn remove(&mut self, sequence: Sequence) -> Option<Open> {
        let open = self.open.remove(&sequence)?;
        self.unschedule(sequence, open.due);
        Some(open)
    }

    /// Removes the delivery if the lease is its current claim (LSE-2); if not, nothing changes.
    fn take_held(&mut self, lease: &Lease) -> Result<Open> {
        let sequence = lease.event.sequence;
        let Entry::Occupied(entry) = self.open.entry(sequence) else {
            return Err(Error::StaleLease);
        };
        if entry.get().holder.as_ref() != Some(&lease.lease_id) {
            return Err(Error::StaleLease);
        }
        // Claims have no receipt here, so any receipt is another one (LSE-3).
        if lease.receipt.is_some() {
            return Err(Error::ReceiptMismatch);
        }
        let open = entry.remove();
        self.unschedule(sequence, open.due);
        Ok(open)
    }

    fn unschedule(&mut self, sequence: Sequence, due: Timestamp) {
        if !self.waiting.remove(&(due, sequence)) {
            self.ready.remove(&sequence);
        }
    }

    fn is_used_up(&self, attempts: u32) -> bool {
        attempts >= self.max_attempts.get()
    }

    fn bury(&mut self, sequence: Sequence, attempt: u32, reason: Reason, dead_at: Timestamp) {
        self.dead.insert(
            sequence,
            Dead {
                attempt,
                reason,
                dead_at,
            },
        );
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
