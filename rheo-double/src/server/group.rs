//! A native consumer group: the last id it delivered, and the pending list.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::time::Duration;

use rheo_core::Timestamp;

use super::EntryId;

/// A delivery that was not acked yet, as the pending list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingEntry {
    /// Who got it last.
    pub consumer: String,
    /// When it was delivered last.
    pub delivered_at: Timestamp,
    /// How often it was delivered.
    pub deliveries: u32,
}

#[derive(Debug)]
pub(super) struct GroupState {
    last_delivered: EntryId,
    pending: BTreeMap<EntryId, PendingEntry>,
}

impl GroupState {
    pub(super) fn new(last_delivered: EntryId) -> Self {
        Self {
            last_delivered,
            pending: BTreeMap::new(),
        }
    }
}

/// A group of a stream, open for calls.
#[derive(Debug)]
pub struct NativeGroup<'a, F> {
    entries: &'a BTreeMap<EntryId, F>,
    state: &'a mut GroupState,
}

impl<'a, F> NativeGroup<'a, F> {
    pub(super) fn new(entries: &'a BTreeMap<EntryId, F>, state: &'a mut GroupState) -> Self {
        Self { entries, state }
    }

    /// The fields of one entry of the stream.
    pub fn entry(&self, id: EntryId) -> Option<&'a F> {
        self.entries.get(&id)
    }

    /// Delivers up to `count` entries that the group has not seen: the last delivered id moves, and
    /// each goes to the pending list (`XREADGROUP … STREAMS key >`).
    pub fn read(&mut self, consumer: &str, count: usize, now: Timestamp) -> Vec<(EntryId, &'a F)> {
        let read: Vec<_> = self.unread().take(count).collect();
        for (id, _) in &read {
            let pending = PendingEntry {
                consumer: consumer.into(),
                delivered_at: now,
                deliveries: 1,
            };
            self.state.pending.insert(*id, pending);
            self.state.last_delivered = *id;
        }
        read
    }

    /// The entries above the last delivered one (`XRANGE key (last-delivered +`).
    pub fn unread(&self) -> impl Iterator<Item = (EntryId, &'a F)> {
        self.entries
            .range((Excluded(self.state.last_delivered), Unbounded))
            .map(|(id, fields)| (*id, fields))
    }

    /// The last id that was delivered, or what it was set to (`XINFO GROUPS`).
    pub fn last_delivered(&self) -> EntryId {
        self.state.last_delivered
    }

    /// The pending list, ascending (`XPENDING`).
    pub fn pending(&self) -> impl Iterator<Item = (EntryId, &PendingEntry)> {
        self.state.pending.iter().map(|(id, entry)| (*id, entry))
    }

    /// One entry of the pending list.
    pub fn pending_entry(&self, id: EntryId) -> Option<&PendingEntry> {
        self.state.pending.get(&id)
    }

    /// Hands a pending entry that was idle for at least `min_idle` to a consumer, and gives how
    /// often it was delivered, this time included (`XCLAIM key group consumer min-idle id`). `None`
    /// when it is not pending or not idle for long enough.
    pub fn claim(
        &mut self,
        id: EntryId,
        consumer: &str,
        min_idle: Duration,
        now: Timestamp,
    ) -> Option<u32> {
        let entry = self.state.pending.get_mut(&id)?;
        if now.saturating_since(entry.delivered_at) < min_idle {
            return None;
        }
        entry.consumer = consumer.into();
        entry.delivered_at = now;
        entry.deliveries = entry.deliveries.saturating_add(1);
        Some(entry.deliveries)
    }

    /// Makes a pending entry count as delivered just now, once and for the same consumer (`XCLAIM …
    /// 0 id JUSTID` by that consumer).
    pub fn touch(&mut self, id: EntryId, now: Timestamp) {
        if let Some(entry) = self.state.pending.get_mut(&id) {
            entry.delivered_at = now;
        }
    }

    /// Puts an entry on the pending list as never delivered, also one that was acked (`XCLAIM … 0 id
    /// FORCE RETRYCOUNT 0`).
    pub fn reopen(&mut self, id: EntryId, now: Timestamp) {
        let entry = PendingEntry {
            consumer: String::new(),
            delivered_at: now,
            deliveries: 0,
        };
        self.state.pending.insert(id, entry);
    }

    /// Takes an entry off the pending list (`XACK`).
    pub fn ack(&mut self, id: EntryId) {
        self.state.pending.remove(&id);
    }

    /// Moves the last delivered id, forwards or backwards; the pending list stays (`XGROUP SETID`).
    pub fn set_id(&mut self, id: EntryId) {
        self.state.last_delivered = id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{NativeStream, ServerError};

    fn at(seconds: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH.saturating_add(Duration::from_secs(seconds))
    }

    fn stream_of_three() -> NativeStream<char> {
        let mut stream = NativeStream::default();
        for fields in ['a', 'b', 'c'] {
            stream.add(fields, at(1));
        }
        stream.create_group("g", EntryId::ZERO).expect("is new");
        stream
    }

    #[test]
    fn a_read_moves_the_group_and_fills_the_pending_list() {
        let mut stream = stream_of_three();
        let mut group = stream.group("g").expect("exists");
        let read = group.read("c1", 2, at(2));
        assert_eq!([read[0].1, read[1].1], [&'a', &'b']);
        assert_eq!(group.last_delivered(), read[1].0);
        let pending: Vec<EntryId> = group.pending().map(|(id, _)| id).collect();
        assert_eq!(pending, [read[0].0, read[1].0]);

        group.ack(read[0].0);
        assert_eq!(group.pending().count(), 1);
        assert_eq!(group.read("c1", 9, at(2)).len(), 1);
        assert!(group.read("c1", 9, at(2)).is_empty());
    }

    #[test]
    fn only_what_is_idle_can_be_claimed() {
        let mut stream = stream_of_three();
        let mut group = stream.group("g").expect("exists");
        let (id, _) = group.read("c1", 1, at(10))[0];
        let idle = Duration::from_secs(5);
        assert_eq!(group.claim(id, "c2", idle, at(14)), None);
        assert_eq!(group.claim(id, "c2", idle, at(15)), Some(2));
        group.touch(id, at(18));
        assert_eq!(group.claim(id, "c1", idle, at(22)), None);
        group.ack(id);
        assert_eq!(group.claim(id, "c1", Duration::ZERO, at(99)), None);
    }

    #[test]
    fn setting_the_id_back_delivers_again() {
        let mut stream = stream_of_three();
        let mut group = stream.group("g").expect("exists");
        let first = group.read("c1", 3, at(1));
        group.set_id(first[0].0);
        assert_eq!(group.read("c1", 3, at(1)), first[1..]);
    }

    #[test]
    fn a_group_is_made_once() {
        let mut stream = stream_of_three();
        assert_eq!(
            stream.create_group("g", EntryId::ZERO),
            Err(ServerError::BusyGroup)
        );
        assert_eq!(stream.group("h").err(), Some(ServerError::NoGroup));
    }
}
