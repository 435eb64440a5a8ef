//! A native stream: entries in order of their ids, and the groups that read them.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};

use rheo_core::Timestamp;

use super::group::GroupState;
use super::{EntryId, NativeGroup, ServerError};

/// An append-only list of entries with what `F` says are an entry's fields.
#[derive(Debug)]
pub struct NativeStream<F> {
    entries: BTreeMap<EntryId, F>,
    last_id: EntryId,
    groups: BTreeMap<String, GroupState>,
}

impl<F> NativeStream<F> {
    /// Adds an entry and gives its id (`XADD key *`).
    pub fn add(&mut self, fields: F, now: Timestamp) -> EntryId {
        self.last_id = self.last_id.next(now);
        self.entries.insert(self.last_id, fields);
        self.last_id
    }

    /// The entries above `after` up to and including `until`, ascending (`XRANGE key (after until`).
    pub fn range(&self, after: EntryId, until: EntryId) -> impl DoubleEndedIterator<Item = &F> {
        self.entries
            .range((Excluded(after), Included(until.max(after))))
            .map(|(_, fields)| fields)
    }

    /// The fields of one entry (`XRANGE key id id`).
    pub fn entry(&self, id: EntryId) -> Option<&F> {
        self.entries.get(&id)
    }

    /// Makes a group that reads what comes after an id (`XGROUP CREATE key group after`).
    ///
    /// # Errors
    ///
    /// [`ServerError::BusyGroup`] when it exists.
    pub fn create_group(&mut self, group: &str, after: EntryId) -> Result<(), ServerError> {
        if self.groups.contains_key(group) {
            return Err(ServerError::BusyGroup);
        }
        self.groups.insert(group.into(), GroupState::new(after));
        Ok(())
    }

    /// A group, for the calls that name one.
    ///
    /// # Errors
    ///
    /// [`ServerError::NoGroup`].
    pub fn group(&mut self, group: &str) -> Result<NativeGroup<'_, F>, ServerError> {
        let state = self.groups.get_mut(group).ok_or(ServerError::NoGroup)?;
        Ok(NativeGroup::new(&self.entries, state))
    }
}

impl<F> Default for NativeStream<F> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            last_id: EntryId::ZERO,
            groups: BTreeMap::new(),
        }
    }
}
