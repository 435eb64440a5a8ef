//! Renewing and settling: only the current claim may, and it shows its lease id and its receipt.

use rheo_core::{
    Error, Lease, LeaseDuration, Reason, Receipt, Result, RetryOptions, RetryOutcome, Timestamp,
};

use crate::deliveries::Claim;
use crate::group_partition::GroupPartition;
use crate::keyspace::Keyspace;
use crate::server::EntryId;

/// The partition and the pending entry that a lease claims, if it is the current claim (LSE-2,
/// LSE-3). That it expired plays no part (LSE-4).
fn current<'a>(keys: &'a mut Keyspace, lease: &'a Lease) -> Result<(GroupPartition<'a>, EntryId)> {
    let event = &lease.event;
    let partition = keys
        .stream(&event.stream)
        .and_then(|stream| stream.group_partition(&lease.group, event.partition))
        .map_err(|_| Error::StaleLease)?;
    let id = partition.id_of(event.sequence).ok_or(Error::StaleLease)?;
    match partition.deliveries.claim(id) {
        Some(Claim::Leased { lease_id, .. }) if *lease_id == lease.lease_id => {}
        _ => return Err(Error::StaleLease),
    }
    let receipt = lease.receipt.as_ref().map(Receipt::as_str);
    if receipt != Some(id.to_string().as_str()) {
        return Err(Error::ReceiptMismatch);
    }
    Ok((partition, id))
}

pub(crate) fn renew(
    keys: &mut Keyspace,
    lease: &Lease,
    duration: LeaseDuration,
    now: Timestamp,
) -> Result<Lease> {
    let (mut partition, id) = current(keys, lease)?;
    let expires_at = now.saturating_add(duration.as_duration());
    partition.native.touch(id, now);
    let claim = Claim::Leased {
        lease_id: lease.lease_id.clone(),
        expires_at,
    };
    partition.deliveries.put(id, claim);
    Ok(Lease {
        expires_at,
        ..lease.clone()
    })
}

pub(crate) fn ack(keys: &mut Keyspace, lease: &Lease) -> Result<()> {
    let (mut partition, id) = current(keys, lease)?;
    partition.finish(id);
    Ok(())
}

/// The entry stays on the pending list, with its delivery count and without a holder.
pub(crate) fn retry(
    keys: &mut Keyspace,
    lease: &Lease,
    options: &RetryOptions,
    now: Timestamp,
) -> Result<RetryOutcome> {
    let (mut partition, id) = current(keys, lease)?;
    let attempt = partition.native.pending_entry(id).map(|e| e.deliveries);
    if attempt >= Some(partition.max_attempts.get()) {
        let reason = options.reason.clone().unwrap_or_else(Reason::max_attempts);
        partition.bury(id, reason, now);
        return Ok(RetryOutcome::DeadLettered);
    }
    // Without a delay it is claimable whatever the clocks say.
    let delay = options.delay.as_duration();
    let until = match delay.is_zero() {
        true => Timestamp::MIN,
        false => now.saturating_add(delay),
    };
    partition.deliveries.put(id, Claim::Waiting { until });
    Ok(RetryOutcome::Retrying)
}

pub(crate) fn reject(
    keys: &mut Keyspace,
    lease: &Lease,
    reason: &Reason,
    now: Timestamp,
) -> Result<()> {
    let (mut partition, id) = current(keys, lease)?;
    partition.bury(id, reason.clone(), now);
    Ok(())
}
