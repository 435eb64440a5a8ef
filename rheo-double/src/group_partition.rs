//! A group in one partition: each step changes the native group and what is kept beside it together.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};

use rheo_core::{
    DeadLetter, Event, GroupName, MaxAttempts, Partition, Reason, Sequence, Timestamp,
};

use crate::deliveries::{Claim, Deliveries};
use crate::server::{EntryId, NativeGroup};

/// Every entry up to the native group's last delivered id is done, unless it is pending; an entry is
/// pending exactly as long as it has a claim in `deliveries`. So nothing needs to be remembered of
/// what was acked, also above a hole.
#[derive(Debug)]
pub(crate) struct GroupPartition<'a> {
    pub(crate) name: &'a GroupName,
    pub(crate) partition: Partition,
    pub(crate) max_attempts: MaxAttempts,
    pub(crate) by_sequence: &'a [EntryId],
    pub(crate) native: NativeGroup<'a, Event>,
    pub(crate) deliveries: &'a mut Deliveries,
    pub(crate) dead: &'a mut BTreeMap<(Partition, EntryId), DeadLetter>,
}

impl GroupPartition<'_> {
    /// The native id of a sequence: `0-0` before the first, `None` above the high watermark.
    pub(crate) fn id_of(&self, sequence: Sequence) -> Option<EntryId> {
        match usize::try_from(sequence.get()).ok()?.checked_sub(1) {
            None => Some(EntryId::ZERO),
            Some(index) => self.by_sequence.get(index).copied(),
        }
    }

    /// Just below the lowest pending entry, else at the last delivered one (FRN-1).
    pub(crate) fn frontier(&self) -> Sequence {
        let sequence = |id| self.native.entry(id).map(|event| event.sequence);
        match self.native.pending().next() {
            Some((lowest, _)) => sequence(lowest).map(Sequence::previous),
            None => sequence(self.native.last_delivered()),
        }
        .unwrap_or(Sequence::ZERO)
    }

    /// From when on something is claimable.
    pub(crate) fn next_claimable(&self) -> Option<Timestamp> {
        if self.native.unread().next().is_some() {
            return Some(Timestamp::MIN);
        }
        self.deliveries.next_due()
    }

    /// The event is done.
    pub(crate) fn finish(&mut self, id: EntryId) {
        self.native.ack(id);
        self.deliveries.remove(id);
    }

    /// The event is done, as a dead letter (DLQ-5).
    pub(crate) fn bury(&mut self, id: EntryId, reason: Reason, now: Timestamp) {
        let attempt = self.native.pending_entry(id).map(|entry| entry.deliveries);
        if let (Some(event), Some(attempt)) = (self.native.entry(id), attempt) {
            let dead_letter = DeadLetter {
                event: event.clone(),
                group: self.name.clone(),
                attempt,
                reason,
                dead_at: now,
            };
            self.dead.insert((self.partition, id), dead_letter);
        }
        self.finish(id);
    }

    /// An event at or below the last delivered one is claimable again, from attempt 1 (RPL-4).
    pub(crate) fn reopen(&mut self, id: EntryId, now: Timestamp) {
        self.dead.remove(&(self.partition, id));
        self.native.reopen(id, now);
        let until = Timestamp::MIN;
        self.deliveries.put(id, Claim::Waiting { until });
    }

    /// Starts again after `start`; what is open or dead above `keep` is forgotten (RPL-1, RPL-5).
    pub(crate) fn restart(&mut self, start: EntryId, keep: EntryId) {
        let above = self.native.pending().map(|(id, _)| id);
        let above: Vec<EntryId> = above.filter(|id| *id > keep).collect();
        for id in above {
            self.finish(id);
        }
        let above = (
            Excluded((self.partition, keep)),
            Included((self.partition, EntryId::MAX)),
        );
        let dead: Vec<_> = self.dead.range(above).map(|(place, _)| *place).collect();
        for place in dead {
            self.dead.remove(&place);
        }
        self.native.set_id(start);
    }
}
