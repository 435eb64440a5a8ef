//! Receipts: the backend's own handle of a delivery is checked too.

use rheo_core::{
    Backend, ErrorKind, Gate, Guarantee, Lease, OptionalOperation, Receipt, ResetOptions,
};

use crate::case::{Case, case};
use crate::expect::{Outcome, expect_empty, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::step::{Step, retry_after};

pub(crate) const CASES: &[Case] = &[
    case!(
        "LSE-3" => another_receipt_is_a_mismatch,
        "the receipt is not compared, or a missing one counts as any"
    ),
    case!(
        "LSE-3" => a_mismatch_settles_nothing,
        "the receipt is compared after the delivery was changed"
    ),
    case!(
        "LSE-3" => a_mismatch_moves_no_expiry,
        "the renewal is written before the receipt is compared"
    ),
    case!(
        "LSE-3" => a_mismatch_makes_no_dead_letter,
        "the dead letter is written before the receipt is compared"
    )
    .needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "LSE-3" => after_a_mismatch_the_right_receipt_settles,
        "a mismatch ends the claim as if somebody were cheating"
    ),
    case!(
        "LSE-3" => an_expired_claim_still_has_its_receipt,
        "the receipt is compared only while the lease is unexpired"
    ),
    case!(
        "LSE-3" => a_stale_lease_with_another_receipt_is_stale,
        "the receipt is compared before the lease id"
    ),
    case!(
        "LSE-3" => a_replayed_lease_with_another_receipt_is_stale,
        "a replay or a reset keeps the receipts, and they are compared first"
    )
    .needs(&[Gate::Guarantee(Guarantee::Replay)]),
    case!(
        "LSE-3" => a_made_up_lease_with_the_right_receipt_is_stale,
        "the receipt alone finds the delivery"
    ),
];

/// Copies of a lease, each with a receipt that is not the claim's.
fn with_other_receipts(lease: &Lease, neighbour: &Lease) -> Vec<Lease> {
    let right = lease.receipt.as_ref();
    let longer = right.map(|receipt| format!("{}x", receipt.as_str()));
    [
        None,
        Some(Receipt::new("")),
        Some(Receipt::new("made-up")),
        Some(Receipt::new("a\0b")),
        Some(Receipt::new(lease.lease_id.to_string() + "-made-up")),
        longer.map(Receipt::new),
        neighbour.receipt.clone(),
    ]
    .into_iter()
    .filter(|receipt| *receipt != lease.receipt)
    .map(|receipt| Lease {
        receipt,
        ..lease.clone()
    })
    .collect()
}

/// The lease id opens the door; a receipt of something else says that it is the wrong one.
async fn another_receipt_is_a_mismatch(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;

    for (lease, neighbour) in [(&leases[0], &leases[1]), (&leases[1], &leases[0])] {
        for other in with_other_receipts(lease, neighbour) {
            for step in Step::ALL {
                let result = step.on(&t.backend, &other).await;
                expect_error(result, ErrorKind::ReceiptMismatch)?;
            }
        }
    }
    Ok(())
}

/// What is refused has no effect: the event is neither done, nor claimable, nor given up on.
async fn a_mismatch_settles_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    for step in Step::ALL {
        for other in with_other_receipts(&leases[0], &leases[1]) {
            let result = step.on(&t.backend, &other).await;
            expect_error(result, ErrorKind::ReceiptMismatch)?;
            group.expect_nothing("b").await?;
        }
    }
    Step::Retry.on(&t.backend, &leases[0]).await?;

    let again = group.expect_claimable("b", &[1]).await?;
    expect_eq("the attempt", again[0].attempt, 2)
}

/// Nor does it keep the event from being reclaimed in time.
async fn a_mismatch_moves_no_expiry(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    for other in with_other_receipts(&lease, &lease) {
        let result = Step::Renew.on(&t.backend, &other).await;
        expect_error(result, ErrorKind::ReceiptMismatch)?;
    }
    t.until_just_before(lease.expires_at).await;

    group.expect_nothing("b").await?;
    t.until(lease.expires_at).await;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 2)
}

/// Nor does it leave a dead letter, also at the last attempt.
async fn a_mismatch_makes_no_dead_letter(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group_of_attempts("billing", 1).await?;
    stream.append(1).await?;
    let lease = group.fetch_one("a").await?;
    for other in with_other_receipts(&lease, &lease) {
        for step in [Step::Retry, Step::Reject] {
            let result = step.on(&t.backend, &other).await;
            expect_error(result, ErrorKind::ReceiptMismatch)?;
        }
    }

    expect_empty("dead letters", &group.dead_letters().await?)
}

/// The holder is still the holder.
async fn after_a_mismatch_the_right_receipt_settles(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    let leases = group.fetch_exactly("a", 4).await?;
    for (right, step) in leases.iter().zip(Step::ALL) {
        for other in with_other_receipts(right, &leases[0]) {
            let result = step.on(&t.backend, &other).await;
            expect_error(result, ErrorKind::ReceiptMismatch)?;
        }

        step.on(&t.backend, right).await?;
    }
    group.expect_claimable("b", &[3]).await?;
    Ok(())
}

/// Expired is not void: the claim is current, and so is what belongs to it.
async fn an_expired_claim_still_has_its_receipt(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;

    for other in with_other_receipts(&lease, &lease) {
        for step in Step::ALL {
            let result = step.on(&t.backend, &other).await;
            expect_error(result, ErrorKind::ReceiptMismatch)?;
        }
    }
    t.backend.ack(&lease).await?;
    Ok(())
}

/// A consumer that lost its lease hears that, and not that its receipt is odd.
async fn a_stale_lease_with_another_receipt_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    let leases = group.fetch_exactly_briefly("a", 5).await?;
    for (step, lease) in Step::SETTLES.iter().zip(&leases[..3]) {
        step.on(&t.backend, lease).await?;
    }
    t.backend
        .retry(&leases[3], &retry_after(t.brief() * 10)?)
        .await?;
    t.let_lease_expire(&leases[4]).await;
    // Takes the second, which was retried, and the fifth, which expired.
    let again = group.expect_claimable("b", &[2, 5]).await?;

    for stale in &leases {
        for other in with_other_receipts(stale, &again[0]) {
            for step in Step::ALL {
                let result = step.on(&t.backend, &other).await;
                expect_error(result, ErrorKind::StaleLease)?;
            }
        }
    }
    group.ack(&again).await
}

/// The same after a replay and after a reset.
async fn a_replayed_lease_with_another_receipt_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let replayed = group.fetch_one("a").await?;
    group.replay_after(0).await?;
    let dropped = group.fetch_one("a").await?;
    group.reset(&ResetOptions::new()).await?;
    let current = group.fetch_one("a").await?;

    for stale in [&replayed, &dropped] {
        for other in with_other_receipts(stale, &current) {
            for step in Step::ALL {
                let result = step.on(&t.backend, &other).await;
                expect_error(result, ErrorKind::StaleLease)?;
            }
        }
    }
    group.ack(&[current]).await
}

/// A receipt is no fencing token: without the lease id it opens nothing.
async fn a_made_up_lease_with_the_right_receipt_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    let forged = Lease {
        lease_id: leases[1].lease_id.clone(),
        ..leases[0].clone()
    };

    for step in Step::ALL {
        let result = step.on(&t.backend, &forged).await;
        expect_error(result, ErrorKind::StaleLease)?;
    }
    group.ack(&leases).await
}
