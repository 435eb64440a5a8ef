//! Claiming: what is due on the pending list first, since it is lower, then what was never read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rheo_core::{
    Event, FetchOptions, GroupName, Lease, LeaseId, Reason, Receipt, Result, StreamName, Timestamp,
};

use crate::deliveries::Claim;
use crate::group_partition::GroupPartition;
use crate::keyspace::Keyspace;
use crate::server::EntryId;

/// Begins with the partition that waited longest for its turn, so that none starves (DLV-5).
pub(crate) fn fetch(
    keys: &mut Keyspace,
    stream: &StreamName,
    name: &GroupName,
    options: &FetchOptions,
    now: Timestamp,
) -> Result<Vec<Lease>> {
    let stream = keys.stream(stream)?;
    let count = stream.partition_count;
    let group = stream.group(name)?;
    let mut selected = options.partitions.resolve(count)?;
    selected.sort_by_key(|p| group.partitions[p.number() as usize].served_in);
    group.turns += 1;
    let turn = group.turns;

    let limit = usize::try_from(options.limit).unwrap_or(usize::MAX);
    let mut leases = Vec::new();
    for partition in selected {
        if leases.len() == limit {
            break;
        }
        let mut partition = stream.group_partition(name, partition)?;
        let claimed = partition.claim_up_to(limit - leases.len(), options, now);
        if !claimed.is_empty() {
            partition.deliveries.served_in = turn;
        }
        leases.extend(claimed);
    }
    Ok(leases)
}

impl GroupPartition<'_> {
    /// Costs as much as there is due and claimed, whatever the length of the log (CST-2).
    fn claim_up_to(&mut self, limit: usize, options: &FetchOptions, now: Timestamp) -> Vec<Lease> {
        let mut claimed = Vec::new();
        let mut due: BinaryHeap<_> = self.deliveries.due_at(now).map(Reverse).collect();
        while claimed.len() < limit
            && let Some(Reverse(id)) = due.pop()
        {
            claimed.extend(self.reclaim(id, options, now));
        }
        let unread = limit - claimed.len();
        for (id, event) in self.native.read(options.consumer.as_str(), unread, now) {
            claimed.push(self.lease(id, event, 1, options, now));
        }
        claimed
    }

    /// Claims a pending entry that is due, or gives up on it when its attempts are used up (DLQ-3).
    fn reclaim(&mut self, id: EntryId, options: &FetchOptions, now: Timestamp) -> Option<Lease> {
        let pending = self.native.pending_entry(id)?;
        if pending.deliveries >= self.max_attempts.get() {
            self.bury(id, Reason::lease_expired(), now);
            return None;
        }
        let min_idle = match self.deliveries.claim(id)? {
            Claim::Leased { expires_at, .. } => expires_at.saturating_since(pending.delivered_at),
            Claim::Waiting { .. } => Duration::ZERO,
        };
        let consumer = options.consumer.as_str();
        let attempt = self.native.claim(id, consumer, min_idle, now)?;
        let event = self.native.entry(id)?;
        Some(self.lease(id, event, attempt, options, now))
    }

    fn lease(
        &mut self,
        id: EntryId,
        event: &Event,
        attempt: u32,
        options: &FetchOptions,
        now: Timestamp,
    ) -> Lease {
        let lease = Lease {
            event: event.clone(),
            group: self.name.clone(),
            consumer: options.consumer.clone(),
            lease_id: LeaseId::generate(),
            receipt: Some(Receipt::new(id.to_string())),
            attempt,
            leased_at: now,
            expires_at: now.saturating_add(options.lease_duration.as_duration()),
        };
        let claim = Claim::Leased {
            lease_id: lease.lease_id.clone(),
            expires_at: lease.expires_at,
        };
        self.deliveries.put(id, claim);
        lease
    }
}
