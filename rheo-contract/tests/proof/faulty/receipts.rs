//! Defects that the cases of `receipts` are there for.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use rheo_core::{
    Error, GroupName, Lease, LeaseDuration, LeaseId, Reason, Receipt, Replay, Result, RetryOptions,
    RetryOutcome, StreamName, Timestamp, async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real};
use crate::tweak::{Claims, Step, Tweak, lock, void};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        ReceiptIsIgnored: "receipts are not compared",
        says: "Err(ReceiptMismatch)",
        kills: [
            "receipts::LSE-3::another_receipt_is_a_mismatch",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "receipts::LSE-3::a_mismatch_makes_no_dead_letter",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
        ],
    },
    faulty! {
        NoReceiptIsAnyReceipt: "its claims have receipts, and a lease without one fits all",
        says: "Err(ReceiptMismatch)",
        kills: [
            "receipts::LSE-3::another_receipt_is_a_mismatch",
            "receipts::LSE-3::a_mismatch_makes_no_dead_letter",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
        ],
    },
    faulty! {
        ReceiptMayBeLonger: "its claims have receipts, and only their beginning is compared",
        says: "Err(ReceiptMismatch)",
        kills: [
            "receipts::LSE-3::another_receipt_is_a_mismatch",
            "receipts::LSE-3::a_mismatch_makes_no_dead_letter",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
        ],
    },
    faulty! {
        EmptyReceiptIsNone: "an empty receipt counts as none",
        says: "Err(ReceiptMismatch)",
        kills: [
            "receipts::LSE-3::another_receipt_is_a_mismatch",
            "receipts::LSE-3::a_mismatch_makes_no_dead_letter",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
        ],
    },
    faulty! {
        RenewalIgnoresTheReceipt: "a renewal does not compare the receipt",
        says: "Err(ReceiptMismatch)",
        kills: [
            "receipts::LSE-3::another_receipt_is_a_mismatch",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "receipts::LSE-3::a_mismatch_moves_no_expiry",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
        ],
    },
    faulty! {
        MismatchAcksAllTheSame: "an ack with another receipt errs, and is done",
        says: "Err(ReceiptMismatch)",
        kills: [
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
            "receipts::LSE-3::another_receipt_is_a_mismatch",
        ],
    },
    faulty! {
        MismatchRetriesAllTheSame: "a retry with another receipt errs, and is done",
        says: "no claimable event",
        kills: [
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "receipts::LSE-3::a_mismatch_makes_no_dead_letter",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
            "receipts::LSE-3::another_receipt_is_a_mismatch",
        ],
    },
    faulty! {
        MismatchRenewsAllTheSame: "a renewal with another receipt errs, and is done",
        says: "one lease, since an event is claimable",
        kills: ["receipts::LSE-3::a_mismatch_moves_no_expiry"],
    },
    faulty! {
        MismatchRejectsAllTheSame: "a reject with another receipt errs, and is done",
        says: "Err(ReceiptMismatch)",
        kills: [
            "receipts::LSE-3::a_mismatch_makes_no_dead_letter",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
            "receipts::LSE-3::another_receipt_is_a_mismatch",
        ],
    },
    faulty! {
        MismatchEndsTheClaim: "whoever presents another receipt loses the claim",
        says: "StaleLease",
        kills: [
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::an_expired_claim_still_has_its_receipt",
        ],
    },
    faulty! {
        ExpiredClaimHasNoReceipt: "receipts are compared until the lease expires",
        says: "Err(ReceiptMismatch)",
        kills: ["receipts::LSE-3::an_expired_claim_still_has_its_receipt"],
    },
    faulty! {
        ReceiptIsComparedFirst: "another receipt is a mismatch, whatever the lease id",
        says: "Err(StaleLease)",
        kills: [
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
        ],
    },
    faulty! {
        FirstClaimKeepsItsReceipt: "of a replayed event the receipt is compared before the lease id",
        says: "Err(StaleLease)",
        kills: ["receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale"],
    },
    faulty! {
        ReceiptAloneIsEnough: "its claims have receipts, and the receipt alone finds the claim",
        says: "Err(StaleLease)",
        kills: [
            "receipts::LSE-3::a_made_up_lease_with_the_right_receipt_is_stale",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
            "leases::LSE-2::a_made_up_lease_is_stale",
            "leases::LSE-2::a_stale_lease_makes_no_dead_letter",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
        ],
    },
];

#[derive(Default)]
struct ReceiptIsIgnored;

impl Tweak for ReceiptIsIgnored {
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        lease.receipt = None;
    }
}

/// The receipt of a claim, where claims have one.
fn native(lease: &Lease) -> Receipt {
    Receipt::new(format!("{}-{}", lease.event.sequence, lease.lease_id))
}

/// Turns a native receipt into none, which is right underneath.
fn accept(lease: &mut Lease, fits: impl FnOnce(&Receipt) -> bool) {
    let receipt = lease.receipt.take();
    if !receipt.as_ref().is_some_and(fits) {
        lease.receipt = Some(receipt.unwrap_or_else(|| Receipt::new("none")));
    }
}

#[derive(Default)]
struct NoReceiptIsAnyReceipt;

impl Tweak for NoReceiptIsAnyReceipt {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        lease.receipt = Some(native(lease));
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        if lease.receipt.is_some() {
            let right = native(lease);
            accept(lease, |receipt| *receipt == right);
        }
    }
}

#[derive(Default)]
struct ReceiptMayBeLonger;

impl Tweak for ReceiptMayBeLonger {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        lease.receipt = Some(native(lease));
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        let right = native(lease);
        accept(lease, |receipt| {
            receipt.as_str().starts_with(right.as_str())
        });
    }
}

#[derive(Default)]
struct EmptyReceiptIsNone;

impl Tweak for EmptyReceiptIsNone {
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        lease.receipt = lease
            .receipt
            .take()
            .filter(|receipt| !receipt.as_str().is_empty());
    }
}

#[derive(Default)]
struct RenewalIgnoresTheReceipt;

impl Tweak for RenewalIgnoresTheReceipt {
    fn presented(&self, _: Timestamp, step: Step, lease: &mut Lease) {
        if step == Step::Renew {
            lease.receipt = None;
        }
    }
}

/// The lease with the receipt that its claim has underneath.
fn rightly(lease: &Lease) -> Lease {
    Lease {
        receipt: None,
        ..lease.clone()
    }
}

#[derive(Default)]
struct MismatchAcksAllTheSame;

#[async_trait]
impl Defect for MismatchAcksAllTheSame {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let acked = real.backend.ack(lease).await;
        if acked == Err(Error::ReceiptMismatch) {
            let _ = real.backend.ack(&rightly(lease)).await;
        }
        acked
    }
}

#[derive(Default)]
struct MismatchRetriesAllTheSame;

#[async_trait]
impl Defect for MismatchRetriesAllTheSame {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let retried = real.backend.retry(lease, options).await;
        if retried == Err(Error::ReceiptMismatch) {
            let _ = real.backend.retry(&rightly(lease), options).await;
        }
        retried
    }
}

#[derive(Default)]
struct MismatchRenewsAllTheSame;

#[async_trait]
impl Defect for MismatchRenewsAllTheSame {
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = real.backend.renew(lease, duration).await;
        if renewed == Err(Error::ReceiptMismatch) {
            let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
            let _ = real.backend.renew(&rightly(lease), hour).await;
        }
        renewed
    }
}

#[derive(Default)]
struct MismatchRejectsAllTheSame;

#[async_trait]
impl Defect for MismatchRejectsAllTheSame {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        let rejected = real.backend.reject(lease, reason).await;
        if rejected == Err(Error::ReceiptMismatch) {
            let _ = real.backend.reject(&rightly(lease), reason).await;
        }
        rejected
    }
}

#[derive(Default)]
struct MismatchEndsTheClaim {
    claims: Claims,
    ended: Mutex<HashSet<LeaseId>>,
}

impl Tweak for MismatchEndsTheClaim {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.claims.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        if lease.receipt.is_some() {
            lock(&self.ended).insert(lease.lease_id.clone());
        } else if lock(&self.ended).contains(&lease.lease_id) {
            void(lease);
        }
    }
}

#[derive(Default)]
struct ExpiredClaimHasNoReceipt(Claims);

impl Tweak for ExpiredClaimHasNoReceipt {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn presented(&self, now: Timestamp, _: Step, lease: &mut Lease) {
        let claim = self.0.by_id(&lease.lease_id);
        if claim.is_some_and(|claim| claim.expires_at <= now) {
            lease.receipt = None;
        }
    }
}

/// Whether a stale lease with another receipt is taken for a mismatch.
async fn compare_first(real: &Real, lease: &Lease, is_compared: bool) -> Result<()> {
    match real.backend.ack(lease).await {
        Err(Error::StaleLease) if is_compared && lease.receipt.is_some() => {
            Err(Error::ReceiptMismatch)
        }
        acked => acked,
    }
}

#[derive(Default)]
struct ReceiptIsComparedFirst;

#[async_trait]
impl Defect for ReceiptIsComparedFirst {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        compare_first(real, lease, true).await
    }
}

/// As it would be where a replay keeps the row with the receipt in it and removes the lease id.
#[derive(Default)]
struct FirstClaimKeepsItsReceipt(Mutex<bool>);

#[async_trait]
impl Defect for FirstClaimKeepsItsReceipt {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        *lock(&self.0) = true;
        real.backend.replay(stream, group, replay).await
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let was_replayed = *lock(&self.0);
        compare_first(real, lease, was_replayed).await
    }
}

#[derive(Default)]
struct ReceiptAloneIsEnough(Claims);

impl Tweak for ReceiptAloneIsEnough {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        lease.receipt = Some(native(lease));
        self.0.note(lease);
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        if let Some(current) = self.0.last_of(lease)
            && current.receipt == lease.receipt
        {
            lease.lease_id = current.lease_id;
        }
        let right = native(lease);
        accept(lease, |receipt| *receipt == right);
    }
}
