//! What was done in a store, by all handles, in order: defects look here what happened meanwhile.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheo_core::{GroupName, Lease, Partition, Partitions, Replay, Sequence, StreamName};

/// Calls that are held back on their way to the store.
#[derive(Default)]
pub(crate) struct Late(Mutex<Vec<LateCall>>);

type LateCall = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Late {
    /// This happens when the store is healed, if requests are held back until then.
    pub(crate) fn hold(&self, call: impl Future<Output = ()> + Send + 'static) {
        held(&self.0).push(Box::pin(call));
    }

    /// Everything that was held back.
    pub(crate) fn take(&self) -> Vec<LateCall> {
        std::mem::take(&mut *held(&self.0))
    }
}

/// What was done with a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Claimed,
    Renewed,
    Acked,
    Retried,
    Rejected,
    /// Its event was reopened by a replay or a reset.
    Reopened,
}

/// One thing that was done.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) lease: Lease,
    pub(crate) what: What,
    pub(crate) handle: usize,
}

/// Everything that was done with leases.
#[derive(Default)]
pub(crate) struct Journal(Mutex<Vec<Entry>>);

impl Journal {
    pub(crate) fn note(&self, handle: usize, done: Vec<(Lease, What)>) {
        let entry = |(lease, what)| Entry {
            lease,
            what,
            handle,
        };
        held(&self.0).extend(done.into_iter().map(entry));
    }

    /// How much was done up to now.
    pub(crate) fn mark(&self) -> usize {
        held(&self.0).len()
    }

    /// What was done since then.
    pub(crate) fn since(&self, mark: usize) -> Vec<Entry> {
        held(&self.0)[mark..].to_vec()
    }

    /// What was done to a group.
    pub(crate) fn of(&self, stream: &StreamName, group: &GroupName) -> Vec<Entry> {
        let entries = held(&self.0);
        let is_of =
            |entry: &&Entry| entry.lease.event.stream == *stream && entry.lease.group == *group;
        entries.iter().filter(is_of).cloned().collect()
    }

    /// What was done with one claim.
    pub(crate) fn of_claim(&self, lease: &Lease) -> Vec<Entry> {
        let mut entries = self.of(&lease.event.stream, &lease.group);
        entries.retain(|entry| entry.lease.lease_id == lease.lease_id);
        entries
    }

    /// The last thing done to each event of a group.
    pub(crate) fn last(&self, stream: &StreamName, group: &GroupName) -> Vec<Entry> {
        let mut last: HashMap<Place, Entry> = HashMap::new();
        for entry in self.of(stream, group) {
            last.insert(place_of(&entry.lease), entry);
        }
        let mut last: Vec<Entry> = last.into_values().collect();
        last.sort_by_key(|entry| (entry.lease.event.partition, entry.lease.event.sequence));
        last
    }

    /// The current claims of a group, expired or not.
    pub(crate) fn current(&self, stream: &StreamName, group: &GroupName) -> Vec<Lease> {
        let last = self.last(stream, group).into_iter();
        let is_current = |entry: &Entry| matches!(entry.what, What::Claimed | What::Renewed);
        last.filter(is_current).map(|entry| entry.lease).collect()
    }

    /// Whether a lease is the current claim of its event, expired or not.
    pub(crate) fn is_current(&self, lease: &Lease) -> bool {
        let (entries, place) = (held(&self.0), place_of(lease));
        let last = entries
            .iter()
            .rfind(|entry| place_of(&entry.lease) == place);
        last.is_some_and(|entry| {
            let is_claim = matches!(entry.what, What::Claimed | What::Renewed);
            is_claim && entry.lease.lease_id == lease.lease_id
        })
    }

    /// What a replay reopens of what was ever claimed.
    pub(crate) fn reopened_by(
        &self,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Vec<(Lease, What)> {
        let is_reopened = |lease: &Lease| {
            let event = &lease.event;
            match replay {
                Replay::After {
                    sequence,
                    partitions,
                } => partitions.contains(event.partition) && event.sequence > *sequence,
                Replay::AfterEach(each) => each
                    .get(&event.partition)
                    .is_some_and(|sequence| event.sequence > *sequence),
                Replay::Events(ids) => ids.contains(&event.id),
            }
        };
        let last = self
            .last(stream, group)
            .into_iter()
            .map(|entry| entry.lease);
        let reopened = last.filter(is_reopened);
        reopened.map(|lease| (lease, What::Reopened)).collect()
    }

    /// What a reset reopens of what was ever claimed.
    pub(crate) fn reset(
        &self,
        stream: &StreamName,
        group: &GroupName,
        partitions: &Partitions,
    ) -> Vec<(Lease, What)> {
        let last = self
            .last(stream, group)
            .into_iter()
            .map(|entry| entry.lease);
        let reopened = last.filter(|lease| partitions.contains(lease.event.partition));
        reopened.map(|lease| (lease, What::Reopened)).collect()
    }
}

/// What a defect keeps in the store, for all handles to see.
#[derive(Default)]
pub(crate) struct Beside(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Beside {
    /// The one value of that type.
    pub(crate) fn of<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut kept = held(&self.0);
        let value = kept
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::new(T::default()));
        Arc::clone(value).downcast().expect("it is of its type")
    }
}

/// What a lease names: whose claim of what it is.
pub(crate) type Place = (StreamName, GroupName, Partition, Sequence);

pub(crate) fn place_of(lease: &Lease) -> Place {
    let event = &lease.event;
    let (stream, group) = (event.stream.clone(), lease.group.clone());
    (stream, group, event.partition, event.sequence)
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
