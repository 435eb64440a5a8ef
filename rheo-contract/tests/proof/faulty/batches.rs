//! Defects that the cases of `batches` are there for.

pub(super) mod single;

use rheo_core::{
    Error, Lag, Lease, LeaseDuration, Partition, Reason, Result, RetryOptions, RetryOutcome,
    Sequence, StreamName, Timestamp, async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        BatchStopsAtABadLease: "a batch ends at its first bad lease, and the rest has its error",
        says: "the results",
        kills: [
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::hundreds_of_leases_settle_in_one_batch",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
        ],
    },
    faulty! {
        BatchLeavesBadLeasesOut: "a batch of acks answers for the good leases alone",
        says: "the results",
        kills: [
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::hundreds_of_leases_settle_in_one_batch",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
        ],
    },
    faulty! {
        BatchCarriesBadLeases: "a batch of acks is Ok for all if it is for one",
        says: "the results",
        kills: [
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::hundreds_of_leases_settle_in_one_batch",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
        ],
    },
    faulty! {
        BatchHasOneError: "in a batch of acks every bad lease is stale",
        says: "ReceiptMismatch",
        kills: [
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
        ],
    },
    faulty! {
        BatchAnswersInOrderOfTheStore: "the results of a batch of rejects come by sequence",
        says: "the results",
        kills: [
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
        ],
    },
    faulty! {
        BatchIgnoresReceipts: "a batch of retries settles whatever the receipt, and then answers",
        says: "the claimable sequences to be [2, 4]",
        kills: ["batches::LSE-8::bad_leases_in_a_batch_have_no_effect"],
    },
    faulty! {
        BatchAnswersPerEvent: "a batch of acks gives each copy of a lease the answer to the first",
        says: "the results",
        kills: [
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::each_result_is_that_of_its_lease",
        ],
    },
    faulty! {
        BatchKeepsTheLastLeaseOfAnEvent: "a batch of acks takes of each event the last lease",
        says: "the results",
        kills: [
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::each_result_is_that_of_its_lease",
        ],
    },
    faulty! {
        BatchRenewsOnce: "the second renewal of a lease in a batch is stale",
        says: "the results",
        kills: ["batches::LSE-8::a_lease_may_be_renewed_twice_in_a_batch"],
    },
    faulty! {
        EmptyBatchHasAResult: "an empty batch of acks gives a result",
        says: "the results to be []",
        kills: ["batches::LSE-8::an_empty_batch_gives_no_results"],
    },
    faulty! {
        BatchIsOfOneStream: "a batch of acks is for the stream of its first lease",
        says: "the results",
        kills: [
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "batches::LSE-8::each_result_is_that_of_its_lease",
        ],
    },
    faulty! {
        BatchIsOfOneGroup: "a batch of retries is for the group of its first lease",
        says: "the results",
        kills: [
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "batches::LSE-8::each_result_is_that_of_its_lease",
        ],
    },
    faulty! {
        BatchIsOfOnePartition: "a batch of rejects is for the partition of its first lease",
        says: "the results",
        kills: [
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
        ],
    },
    faulty! {
        BatchIsCut: "of a batch of acks only the first hundred are done",
        says: "the results",
        kills: [
            "batches::LSE-8::hundreds_of_leases_settle_in_one_batch",
            "batches::LSE-8::hundreds_of_leases_are_over_after_one_batch",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
            "inspect::OPS-3::group_info_counts_any_number_of_leases_and_dead_letters",
            "progress::FRN-1::a_hole_below_a_thousand_acks_holds_the_frontier",
            "progress::FRN-1::holes_hold_the_frontier_however_far_up",
        ],
    },
    faulty! {
        BatchOfRenewalsIsSorted: "a batch of renewals gives the leases by sequence",
        says: "the renewed lease",
        kills: [
            "batches::LSE-8::a_batch_of_renewals_gives_the_renewed_leases_in_order",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
        ],
    },
    faulty! {
        BatchRenewsTheFirst: "a batch of renewals answers for all and stores the first",
        says: "no claimable event",
        kills: [
            "batches::LSE-8::a_batch_of_renewals_gives_the_renewed_leases_in_order",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "batches::LSE-8::hundreds_of_leases_are_renewed_in_one_batch",
        ],
    },
    faulty! {
        BatchDelaysTheFirst: "in a batch of retries only the first has its delay",
        says: "no claimable event",
        kills: [
            "batches::LSE-8::a_batch_of_retries_delays_each",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
        ],
    },
    faulty! {
        BatchHasOneOutcome: "a batch of retries has the outcome of its first lease",
        says: "the results",
        kills: [
            "batches::LSE-8::a_batch_of_retries_gives_up_on_the_used_up_ones_alone",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
        ],
    },
    faulty! {
        BatchKeepsTheFirstReason: "in a batch of rejects only the first keeps its reason",
        says: "the reasons",
        kills: [
            "batches::LSE-8::a_batch_of_rejects_keeps_the_reason_of_each",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
        ],
    },
    faulty! {
        BatchAsksForUnexpiredLeases: "in a batch of acks expired leases are stale",
        says: "the results",
        kills: [
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "progress::FRN-1::a_late_settle_fills_its_hole",
        ],
    },
    faulty! {
        BatchMovesTheFrontierOnce: "a batch of acks with a hole below it hides the hole from the lag",
        says: "the frontier",
        kills: [
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "progress::FRN-1::a_hole_below_a_thousand_acks_holds_the_frontier",
            "progress::FRN-1::holes_hold_the_frontier_however_far_up",
        ],
    },
];

/// Acks one by one.
async fn ack_each(real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
    let mut results = Vec::with_capacity(leases.len());
    for lease in leases {
        results.push(real.backend.ack(lease).await);
    }
    results
}

#[derive(Default)]
struct BatchStopsAtABadLease;

#[async_trait]
impl Defect for BatchStopsAtABadLease {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            match results.last() {
                Some(Err(error)) => results.push(Err(Error::clone(error))),
                _ => results.push(real.backend.ack(lease).await),
            }
        }
        results
    }
}

#[derive(Default)]
struct BatchLeavesBadLeasesOut;

#[async_trait]
impl Defect for BatchLeavesBadLeasesOut {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let mut results = ack_each(real, leases).await;
        if results.iter().any(Result::is_ok) {
            results.retain(Result::is_ok);
        }
        results
    }
}

#[derive(Default)]
struct BatchCarriesBadLeases;

#[async_trait]
impl Defect for BatchCarriesBadLeases {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let mut results = ack_each(real, leases).await;
        if results.iter().any(Result::is_ok) {
            results.fill(Ok(()));
        }
        results
    }
}

#[derive(Default)]
struct BatchHasOneError;

#[async_trait]
impl Defect for BatchHasOneError {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let mut results = ack_each(real, leases).await;
        for result in &mut results {
            if *result == Err(Error::ReceiptMismatch) {
                *result = Err(Error::StaleLease);
            }
        }
        results
    }
}

#[derive(Default)]
struct BatchAnswersInOrderOfTheStore;

#[async_trait]
impl Defect for BatchAnswersInOrderOfTheStore {
    async fn reject_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        reason: &Reason,
    ) -> Vec<Result<()>> {
        let results = real.backend.reject_batch(leases, reason).await;
        let mut by_sequence: Vec<_> = leases.iter().zip(results).collect();
        by_sequence.sort_by_key(|(lease, _)| lease.event.sequence);
        by_sequence.into_iter().map(|(_, result)| result).collect()
    }
}

#[derive(Default)]
struct BatchIgnoresReceipts;

#[async_trait]
impl Defect for BatchIgnoresReceipts {
    async fn retry_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        let results = real.backend.retry_batch(leases, options).await;
        for (lease, result) in leases.iter().zip(&results) {
            if *result == Err(Error::ReceiptMismatch) {
                let receipt = None;
                let right = Lease {
                    receipt,
                    ..lease.clone()
                };
                let _ = real.backend.retry(&right, options).await;
            }
        }
        results
    }
}

type Place = (StreamName, Partition, Sequence);

fn place_of(lease: &Lease) -> Place {
    let event = &lease.event;
    (event.stream.clone(), event.partition, event.sequence)
}

#[derive(Default)]
struct BatchAnswersPerEvent;

#[async_trait]
impl Defect for BatchAnswersPerEvent {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let results = ack_each(real, leases).await;
        let first = |lease: &Lease| {
            let same =
                |other: &Lease| other.lease_id == lease.lease_id && other.group == lease.group;
            leases.iter().position(same).unwrap_or_default()
        };
        leases
            .iter()
            .map(|lease| results[first(lease)].clone())
            .collect()
    }
}

#[derive(Default)]
struct BatchKeepsTheLastLeaseOfAnEvent;

#[async_trait]
impl Defect for BatchKeepsTheLastLeaseOfAnEvent {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let last = |lease: &Lease| {
            let place = place_of(lease);
            leases
                .iter()
                .rposition(|other| other.group == lease.group && place_of(other) == place)
        };
        let mut results: Vec<Result<()>> = Vec::new();
        for (at, lease) in leases.iter().enumerate() {
            let last = last(lease).unwrap_or(at);
            let is_first = leases[..at]
                .iter()
                .all(|other| other.group != lease.group || place_of(other) != place_of(lease));
            if is_first {
                results.push(real.backend.ack(&leases[last]).await);
            } else {
                results.push(Err(Error::StaleLease));
            }
        }
        results
    }
}

#[derive(Default)]
struct BatchRenewsOnce;

#[async_trait]
impl Defect for BatchRenewsOnce {
    async fn renew_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        duration: LeaseDuration,
    ) -> Vec<Result<Lease>> {
        let mut results = real.backend.renew_batch(leases, duration).await;
        for at in 1..leases.len() {
            let before = &leases[..at];
            if results[at].is_ok() && before.iter().any(|other| *other == leases[at]) {
                results[at] = Err(Error::StaleLease);
            }
        }
        results
    }
}

#[derive(Default)]
struct EmptyBatchHasAResult;

#[async_trait]
impl Defect for EmptyBatchHasAResult {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        if leases.is_empty() {
            return vec![Ok(())];
        }
        ack_each(real, leases).await
    }
}

#[derive(Default)]
struct BatchIsOfOneStream;

#[async_trait]
impl Defect for BatchIsOfOneStream {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let mut leases = leases.to_vec();
        if let Some(first) = leases.first().map(|lease| lease.event.stream.clone()) {
            leases
                .iter_mut()
                .for_each(|lease| lease.event.stream = first.clone());
        }
        ack_each(real, &leases).await
    }
}

#[derive(Default)]
struct BatchIsOfOneGroup;

#[async_trait]
impl Defect for BatchIsOfOneGroup {
    async fn retry_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        let mut leases = leases.to_vec();
        if let Some(first) = leases.first().map(|lease| lease.group.clone()) {
            leases
                .iter_mut()
                .for_each(|lease| lease.group = first.clone());
        }
        real.backend.retry_batch(&leases, options).await
    }
}

#[derive(Default)]
struct BatchIsOfOnePartition;

#[async_trait]
impl Defect for BatchIsOfOnePartition {
    async fn reject_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        reason: &Reason,
    ) -> Vec<Result<()>> {
        let mut leases = leases.to_vec();
        if let Some(first) = leases.first().map(|lease| lease.event.partition) {
            leases
                .iter_mut()
                .for_each(|lease| lease.event.partition = first);
        }
        real.backend.reject_batch(&leases, reason).await
    }
}

#[derive(Default)]
struct BatchIsCut;

#[async_trait]
impl Defect for BatchIsCut {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let mut results = ack_each(real, &leases[..leases.len().min(100)]).await;
        // The rest looks as if it were done.
        results.resize(leases.len(), Ok(()));
        results
    }
}

#[derive(Default)]
struct BatchOfRenewalsIsSorted;

#[async_trait]
impl Defect for BatchOfRenewalsIsSorted {
    async fn renew_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        duration: LeaseDuration,
    ) -> Vec<Result<Lease>> {
        let results = real.backend.renew_batch(leases, duration).await;
        let mut by_sequence: Vec<_> = leases.iter().zip(results).collect();
        by_sequence.sort_by_key(|(lease, _)| lease.event.sequence);
        by_sequence.into_iter().map(|(_, result)| result).collect()
    }
}

/// Renews to an expiry at which the lease would have ended anyway.
async fn renew_for_show(real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
    let now = real.now();
    let left = lease.expires_at.saturating_since(now);
    let as_before = LeaseDuration::new(left).unwrap_or(duration);
    let mut renewed = real.backend.renew(lease, as_before).await?;
    renewed.expires_at = Timestamp::saturating_add(now, duration.as_duration());
    Ok(renewed)
}

#[derive(Default)]
struct BatchRenewsTheFirst;

#[async_trait]
impl Defect for BatchRenewsTheFirst {
    async fn renew_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        duration: LeaseDuration,
    ) -> Vec<Result<Lease>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            if results.is_empty() {
                results.push(real.backend.renew(lease, duration).await);
            } else {
                results.push(renew_for_show(real, lease, duration).await);
            }
        }
        results
    }
}

#[derive(Default)]
struct BatchDelaysTheFirst;

#[async_trait]
impl Defect for BatchDelaysTheFirst {
    async fn retry_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        let mut results = Vec::with_capacity(leases.len());
        let mut options = options.clone();
        for lease in leases {
            results.push(real.backend.retry(lease, &options).await);
            options.delay = RetryOptions::new().delay;
        }
        results
    }
}

#[derive(Default)]
struct BatchHasOneOutcome;

#[async_trait]
impl Defect for BatchHasOneOutcome {
    async fn retry_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        let mut results = real.backend.retry_batch(leases, options).await;
        if let Some(Ok(first)) = results.first().cloned() {
            let outcomes = results.iter_mut().filter_map(|result| result.as_mut().ok());
            outcomes.for_each(|outcome| *outcome = first);
        }
        results
    }
}

#[derive(Default)]
struct BatchKeepsTheFirstReason;

#[async_trait]
impl Defect for BatchKeepsTheFirstReason {
    async fn reject_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        reason: &Reason,
    ) -> Vec<Result<()>> {
        let mut results = Vec::with_capacity(leases.len());
        let mut reason = reason.clone();
        for lease in leases {
            results.push(real.backend.reject(lease, &reason).await);
            reason = Reason::new("");
        }
        results
    }
}

#[derive(Default)]
struct BatchAsksForUnexpiredLeases;

#[async_trait]
impl Defect for BatchAsksForUnexpiredLeases {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            if lease.expires_at <= real.now() {
                results.push(Err(Error::StaleLease));
            } else {
                results.push(real.backend.ack(lease).await);
            }
        }
        results
    }
}

/// The lag takes the highest ack of a batch for the frontier.
#[derive(Default)]
struct BatchMovesTheFrontierOnce(std::sync::Mutex<Option<Sequence>>);

#[async_trait]
impl Defect for BatchMovesTheFrontierOnce {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let highest = leases.iter().map(|lease| lease.event.sequence).max();
        *crate::tweak::lock(&self.0) = highest;
        ack_each(real, leases).await
    }
    async fn lag(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &rheo_core::GroupName,
    ) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        if let Some(highest) = *crate::tweak::lock(&self.0) {
            for progress in &mut lag.partitions {
                let highest = highest.min(progress.high_watermark);
                progress.frontier = progress.frontier.max(highest);
            }
        }
        Ok(lag)
    }
}
