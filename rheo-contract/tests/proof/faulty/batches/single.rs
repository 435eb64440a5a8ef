//! Batches that do something else than their single forms.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use rheo_core::{
    GroupName, Lag, Lease, LeaseDuration, Partition, Reason, Result, RetryOptions, RetryOutcome,
    Sequence, StreamName, async_trait,
};

use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Place, lock, place_of};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        BatchIsCutAtAThousand: "a batch of acks does the first thousand and answers Ok for all",
        says: "the first result of Ack",
        kills: [
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
            "inspect::OPS-3::group_info_counts_any_number_of_leases_and_dead_letters",
            "progress::FRN-1::a_hole_below_a_thousand_acks_holds_the_frontier",
            "progress::FRN-1::holes_hold_the_frontier_however_far_up",
        ],
    },
    faulty! {
        BatchAnswersWithTheOldExpiry: "a batch of renewals stores the new expiry and answers with the old one",
        says: "expires_at less the duration",
        kills: [
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "batches::LSE-8::a_batch_counts_from_a_clock_that_went_back",
        ],
    },
    faulty! {
        BatchTrimsReasons: "a batch of rejects takes the blanks off its reason",
        says: "the dead letter",
        kills: ["batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters"],
    },
    faulty! {
        BatchForgetsTheReason: "a batch of retries has no reason",
        says: "the dead letter",
        kills: ["batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters"],
    },
    faulty! {
        BatchGivesUpBehindTheFrontier: "what a batch of retries gives up on holds the frontier",
        says: "the frontier to be 2",
        kills: ["batches::LSE-8::a_batch_of_retries_moves_the_frontier_where_it_gives_up"],
    },
    faulty! {
        LateAckHoldsTheFrontier: "an ack of an expired lease does not move the frontier",
        says: "the frontier to be 1",
        kills: [
            "progress::FRN-1::a_late_settle_fills_its_hole",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
        ],
    },
    faulty! {
        FrontierGoesInSteps: "each lag looks 500 sequences further than the last one",
        says: "the frontier to be 549",
        kills: [
            "progress::FRN-1::a_hole_below_a_thousand_acks_holds_the_frontier",
            "progress::FRN-1::holes_hold_the_frontier_however_far_up",
        ],
    },
];

#[derive(Default)]
struct BatchIsCutAtAThousand;

#[async_trait]
impl Defect for BatchIsCutAtAThousand {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let first = &leases[..leases.len().min(1_000)];
        let mut results = real.backend.ack_batch(first).await;
        results.resize(leases.len(), Ok(()));
        results
    }
}

#[derive(Default)]
struct BatchAnswersWithTheOldExpiry;

#[async_trait]
impl Defect for BatchAnswersWithTheOldExpiry {
    async fn renew_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        duration: LeaseDuration,
    ) -> Vec<Result<Lease>> {
        let mut results = real.backend.renew_batch(leases, duration).await;
        for (result, lease) in results.iter_mut().zip(leases) {
            if let Ok(renewed) = result {
                renewed.expires_at = lease.expires_at;
            }
        }
        results
    }
}

#[derive(Default)]
struct BatchTrimsReasons;

#[async_trait]
impl Defect for BatchTrimsReasons {
    async fn reject_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        reason: &Reason,
    ) -> Vec<Result<()>> {
        let trimmed = Reason::new(reason.as_str().trim());
        real.backend.reject_batch(leases, &trimmed).await
    }
}

#[derive(Default)]
struct BatchForgetsTheReason;

#[async_trait]
impl Defect for BatchForgetsTheReason {
    async fn retry_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        let mut options = options.clone();
        options.reason = None;
        real.backend.retry_batch(leases, &options).await
    }
}

#[derive(Default)]
struct BatchGivesUpBehindTheFrontier(Mutex<HashSet<Place>>);

#[async_trait]
impl Defect for BatchGivesUpBehindTheFrontier {
    async fn retry_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        let results = real.backend.retry_batch(leases, options).await;
        for (result, lease) in results.iter().zip(leases) {
            if *result == Ok(RetryOutcome::DeadLettered) {
                lock(&self.0).insert(place_of(lease));
            }
        }
        results
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        hold(&mut lag, stream, group, &lock(&self.0));
        Ok(lag)
    }
}

/// Puts the frontiers of a group below the places that hold them.
fn hold(lag: &mut Lag, stream: &StreamName, group: &GroupName, places: &HashSet<Place>) {
    for progress in &mut lag.partitions {
        for (of, by, partition, sequence) in places {
            if (of, by, *partition) == (stream, group, progress.partition) {
                progress.frontier = progress.frontier.min(sequence.previous());
            }
        }
    }
}

#[derive(Default)]
struct LateAckHoldsTheFrontier(Mutex<HashSet<Place>>);

#[async_trait]
impl Defect for LateAckHoldsTheFrontier {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        if lease.expires_at <= real.now() {
            lock(&self.0).insert(place_of(lease));
        }
        Ok(())
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        hold(&mut lag, stream, group, &lock(&self.0));
        Ok(lag)
    }
}

/// How far the last lag of a partition has looked.
type Looked = HashMap<(StreamName, GroupName, Partition), Sequence>;

#[derive(Default)]
struct FrontierGoesInSteps(Mutex<Looked>);

#[async_trait]
impl Defect for FrontierGoesInSteps {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for progress in &mut lag.partitions {
            let key = (stream.clone(), group.clone(), progress.partition);
            let mut looked = lock(&self.0);
            let before = looked.entry(key).or_insert(progress.frontier);
            let most = Sequence::new(before.get() + 500)?;
            progress.frontier = progress.frontier.min(most);
            *before = progress.frontier;
        }
        Ok(lag)
    }
}
