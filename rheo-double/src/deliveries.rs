//! What the adapter keeps beside a native group: who holds each pending entry, and until when.

use std::collections::{BTreeMap, BTreeSet};

use rheo_core::{LeaseId, Timestamp};

use crate::server::EntryId;

/// Why an entry is on the pending list.
#[derive(Debug, Clone)]
pub(crate) enum Claim {
    /// A consumer holds it.
    Leased {
        lease_id: LeaseId,
        expires_at: Timestamp,
    },
    /// It was retried or replayed and nobody holds it.
    Waiting { until: Timestamp },
}

impl Claim {
    /// When it can be claimed.
    fn due(&self) -> Timestamp {
        match self {
            Self::Leased { expires_at, .. } => *expires_at,
            Self::Waiting { until } => *until,
        }
    }
}

/// One claim for each entry of the native pending list, and none for any other (CST-1).
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    claims: BTreeMap<EntryId, Claim>,
    due: BTreeSet<(Timestamp, EntryId)>,
    /// In which turn of the group this partition gave leases last (DLV-5).
    pub(crate) served_in: u64,
}

impl Deliveries {
    pub(crate) fn claim(&self, id: EntryId) -> Option<&Claim> {
        self.claims.get(&id)
    }

    pub(crate) fn put(&mut self, id: EntryId, claim: Claim) {
        self.due.insert((claim.due(), id));
        if let Some(old) = self.claims.insert(id, claim.clone())
            && old.due() != claim.due()
        {
            self.due.remove(&(old.due(), id));
        }
    }

    pub(crate) fn remove(&mut self, id: EntryId) {
        if let Some(old) = self.claims.remove(&id) {
            self.due.remove(&(old.due(), id));
        }
    }

    /// What is claimable at `now`, by time and not by sequence.
    pub(crate) fn due_at(&self, now: Timestamp) -> impl Iterator<Item = EntryId> {
        self.due.range(..=(now, EntryId::MAX)).map(|(_, id)| *id)
    }

    /// When the first of them is claimable.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    pub(crate) fn leased(&self) -> usize {
        let leased = |claim: &&Claim| matches!(claim, Claim::Leased { .. });
        self.claims.values().filter(leased).count()
    }
}
