//! Variants that deliver otherwise: other lease ids and receipts, fewer leases, another order.

use std::cmp::Reverse;
use std::time::Duration;

use rheo_core::{
    Event, FetchOptions, GroupName, Lease, LeaseDuration, LeaseId, NewEvent, Reason, Receipt,
    Result, RetryOptions, RetryOutcome, StreamName, Wakeup, async_trait,
};

use super::{Differing, Variant};
use crate::defect::{Defect, Real};

pub(super) const ALL: &[&dyn Variant] = &[
    &Differing("OtherLeaseIds", || Rewritten {
        out: |lease| other_id(&lease),
        back: own_id,
    }),
    &Differing("LongReceipts", || Rewritten {
        out: |lease| with_receipt(lease, long_receipt),
        back: |lease| without_receipt(lease, long_receipt),
    }),
    &Differing("ReceiptsForSome", || Rewritten {
        out: |lease| with_receipt(lease, receipt_for_some),
        back: |lease| without_receipt(lease, receipt_for_some),
    }),
    &Differing("EmptyReceipts", || Rewritten {
        out: |lease| with_receipt(lease, empty_receipt),
        back: |lease| without_receipt(lease, empty_receipt),
    }),
    &Differing("OneReceiptForAll", || Rewritten {
        out: |lease| with_receipt(lease, receipt_for_all),
        back: |lease| without_receipt(lease, receipt_for_all),
    }),
    &Differing("RenewsWhatItIsGiven", || RenewsWhatItIsGiven),
    &Differing("OneLeaseAtATime", || Fetching {
        ask: |options| options.clone().with_limit(options.limit.min(1)),
        give: |_| {},
    }),
    &Differing("ThreeLeasesAtATime", || Fetching {
        ask: |options| options.clone().with_limit(options.limit.min(3)),
        give: |_| {},
    }),
    &Differing("LastPartitionFirst", || Fetching {
        ask: FetchOptions::clone,
        give: |leases| leases.sort_by_key(|lease| Reverse(lease.event.partition)),
    }),
    &Differing("PartitionsInterleaved", || Fetching {
        ask: FetchOptions::clone,
        give: |leases| {
            leases.sort_by_key(|lease| (lease.event.sequence, Reverse(lease.event.partition)));
        },
    }),
    &Differing("WakesForNothing", || WakesForNothing),
    &Differing("Hesitates", || Hesitates),
];

/// Leases look otherwise outside.
struct Rewritten {
    out: fn(Lease) -> Lease,
    back: fn(&Lease) -> Lease,
}

fn other_id(lease: &Lease) -> Lease {
    let id: String = lease.lease_id.as_str().chars().rev().collect();
    Lease {
        lease_id: LeaseId::new(format!("Claim/{id}/{}", "\u{fc}".repeat(40))),
        ..lease.clone()
    }
}

fn own_id(lease: &Lease) -> Lease {
    let inner = lease.lease_id.as_str().strip_prefix("Claim/");
    let inner = inner.and_then(|id| id.split_once('/'));
    let id: String = match inner {
        Some((id, rest)) if rest == "\u{fc}".repeat(40) => id.chars().rev().collect(),
        _ => "made up".to_owned(),
    };
    Lease {
        lease_id: LeaseId::new(id),
        ..lease.clone()
    }
}

/// The receipt of a claim, made of its lease id.
type ReceiptOf = fn(&Lease) -> Option<Receipt>;

fn long_receipt(lease: &Lease) -> Option<Receipt> {
    let stamp = lease.lease_id.as_str();
    Some(Receipt::new(format!("\u{1f980} {}", stamp.repeat(100))))
}

fn receipt_for_some(lease: &Lease) -> Option<Receipt> {
    let is_odd = lease.event.sequence.get() % 2 == 1;
    is_odd.then(|| Receipt::new(lease.lease_id.as_str().to_uppercase()))
}

fn empty_receipt(_: &Lease) -> Option<Receipt> {
    Some(Receipt::new(""))
}

fn receipt_for_all(_: &Lease) -> Option<Receipt> {
    Some(Receipt::new("session 7"))
}

fn with_receipt(lease: Lease, receipt: ReceiptOf) -> Lease {
    Lease {
        receipt: receipt(&lease),
        ..lease
    }
}

/// The memory backend gives none, so that any other receipt than the right one is another one there.
fn without_receipt(lease: &Lease, receipt: ReceiptOf) -> Lease {
    let is_right = lease.receipt == receipt(lease);
    let receipt = (!is_right).then(|| Receipt::new("another"));
    Lease {
        receipt,
        ..lease.clone()
    }
}

#[async_trait]
impl Defect for Rewritten {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        Ok(leases.into_iter().map(self.out).collect())
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = real.backend.renew(&(self.back)(lease), duration).await?;
        Ok((self.out)(renewed))
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(&(self.back)(lease)).await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        real.backend.retry(&(self.back)(lease), options).await
    }
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(&(self.back)(lease), reason).await
    }
}

/// A renewed lease is the one that was handed in, with another end (LSE-6).
struct RenewsWhatItIsGiven;

#[async_trait]
impl Defect for RenewsWhatItIsGiven {
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = real.backend.renew(lease, duration).await?;
        Ok(Lease {
            expires_at: renewed.expires_at,
            ..lease.clone()
        })
    }
}

/// Fetches ask for less, or give in another order.
struct Fetching {
    ask: fn(&FetchOptions) -> FetchOptions,
    give: fn(&mut Vec<Lease>),
}

#[async_trait]
impl Defect for Fetching {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let options = (self.ask)(options);
        let mut leases = real.backend.fetch(stream, group, &options).await?;
        (self.give)(&mut leases);
        Ok(leases)
    }
}

/// A hint may come for nothing, and always does.
struct WakesForNothing;

#[async_trait]
impl Defect for WakesForNothing {
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        _: Duration,
    ) -> Result<Wakeup> {
        let none = Duration::ZERO;
        real.backend.wait_for_work(stream, group, none).await?;
        Ok(Wakeup::MaybeWork)
    }
}

/// Lets others go first, before and after what it does.
struct Hesitates;

async fn hesitate() {
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
}

#[async_trait]
impl Defect for Hesitates {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        hesitate().await;
        let appended = real.backend.append_batch(stream, events).await;
        hesitate().await;
        appended
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        hesitate().await;
        let fetched = real.backend.fetch(stream, group, options).await;
        hesitate().await;
        fetched
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        hesitate().await;
        let acked = real.backend.ack(lease).await;
        hesitate().await;
        acked
    }
}
