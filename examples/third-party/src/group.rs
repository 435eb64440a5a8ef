//! What one group has open: the part of a backend in which the rules of delivery live.

use std::collections::BTreeMap;

use rheo_core::{
    Error, FetchOptions, GroupName, Lag, Lease, LeaseDuration, LeaseId, MaxAttempts, Partition,
    PartitionLag, Result, RetryOptions, RetryOutcome, Sequence, Timestamp,
};

use crate::stream::{Log, after, high_watermark, partition_count};

/// Only what is open is kept: what was claimed and is not open any more is acked or dead.
///
/// The dead letters themselves are not kept, since this backend has no operation that shows them.
#[derive(Debug)]
pub(crate) struct Group {
    name: GroupName,
    max_attempts: MaxAttempts,
    /// The last sequence that was ever claimed; in the beginning the group's start.
    claimed: Sequence,
    open: BTreeMap<Sequence, Delivery>,
}

/// An event that was claimed and is neither acked nor dead.
#[derive(Debug)]
enum Delivery {
    /// The current claim, expired or not.
    Leased(Lease),
    /// Retried: claimable again, with a delay only from then on.
    Waiting {
        attempt: u32,
        until: Option<Timestamp>,
    },
}

impl Delivery {
    fn is_claimable(&self, now: Timestamp) -> bool {
        match self {
            Self::Leased(lease) => now >= lease.expires_at,
            Self::Waiting { until, .. } => until.is_none_or(|until| now >= until),
        }
    }

    fn attempt(&self) -> u32 {
        match self {
            Self::Leased(lease) => lease.attempt,
            Self::Waiting { attempt, .. } => *attempt,
        }
    }
}

impl Group {
    pub(crate) fn new(name: GroupName, start: Sequence, max_attempts: MaxAttempts) -> Self {
        Self {
            name,
            max_attempts,
            claimed: start,
            open: BTreeMap::new(),
        }
    }

    /// Claims the lowest claimable sequences: first those that were claimed before, then new ones.
    pub(crate) fn fetch(
        &mut self,
        log: &Log,
        options: &FetchOptions,
        now: Timestamp,
    ) -> Result<Vec<Lease>> {
        let mut leases = Vec::new();
        if options.partitions.resolve(partition_count())?.is_empty() {
            return Ok(leases);
        }
        let again = self.open.iter().filter(|(_, open)| open.is_claimable(now));
        let again: Vec<Sequence> = again.map(|(sequence, _)| *sequence).collect();
        let again = again.iter().filter_map(|sequence| log.get(sequence));
        for event in again.chain(after(log, self.claimed)) {
            if leases.len() == options.limit as usize {
                break;
            }
            let before = self.open.get(&event.sequence).map_or(0, Delivery::attempt);
            if before >= self.max_attempts.get() {
                // Expired at its last attempt: dead now, so that it cannot loop for ever (DLQ-3).
                self.open.remove(&event.sequence);
                continue;
            }
            let lease = Lease {
                event: event.clone(),
                group: self.name.clone(),
                consumer: options.consumer.clone(),
                lease_id: LeaseId::generate(),
                receipt: None,
                attempt: before + 1,
                leased_at: now,
                expires_at: now.saturating_add(options.lease_duration.as_duration()),
            };
            self.claimed = self.claimed.max(event.sequence);
            self.open
                .insert(event.sequence, Delivery::Leased(lease.clone()));
            leases.push(lease);
        }
        Ok(leases)
    }

    /// The current claim, if this lease is it. Whether it expired plays no part (LSE-4).
    fn current(&mut self, lease: &Lease) -> Result<&mut Lease> {
        let Some(Delivery::Leased(current)) = self.open.get_mut(&lease.event.sequence) else {
            return Err(Error::StaleLease);
        };
        // The planted defect leaves this comparison out: whoever held the event may settle it.
        if current.lease_id != lease.lease_id && !cfg!(feature = "broken") {
            return Err(Error::StaleLease);
        }
        if current.receipt != lease.receipt {
            return Err(Error::ReceiptMismatch);
        }
        Ok(current)
    }

    pub(crate) fn renew(
        &mut self,
        lease: &Lease,
        duration: LeaseDuration,
        now: Timestamp,
    ) -> Result<Lease> {
        let current = self.current(lease)?;
        current.expires_at = now.saturating_add(duration.as_duration());
        Ok(current.clone())
    }

    pub(crate) fn ack(&mut self, lease: &Lease) -> Result<()> {
        self.current(lease)?;
        self.open.remove(&lease.event.sequence);
        Ok(())
    }

    pub(crate) fn retry(
        &mut self,
        lease: &Lease,
        options: &RetryOptions,
        now: Timestamp,
    ) -> Result<RetryOutcome> {
        let attempt = self.current(lease)?.attempt;
        if attempt >= self.max_attempts.get() {
            self.open.remove(&lease.event.sequence);
            return Ok(RetryOutcome::DeadLettered);
        }
        let delay = options.delay.as_duration();
        // Without a delay it is claimable at once, also when the clock is put back.
        let until = (!delay.is_zero()).then(|| now.saturating_add(delay));
        let waiting = Delivery::Waiting { attempt, until };
        self.open.insert(lease.event.sequence, waiting);
        Ok(RetryOutcome::Retrying)
    }

    pub(crate) fn reject(&mut self, lease: &Lease) -> Result<()> {
        self.current(lease)?;
        self.open.remove(&lease.event.sequence);
        Ok(())
    }

    /// The lowest open sequence holds the frontier; without one, everything claimed is done.
    pub(crate) fn lag(&self, log: &Log) -> Lag {
        let lowest_open = self.open.first_key_value();
        Lag {
            partitions: vec![PartitionLag {
                partition: Partition::ZERO,
                frontier: lowest_open.map_or(self.claimed, |(lowest, _)| lowest.previous()),
                high_watermark: high_watermark(log),
            }],
        }
    }
}
