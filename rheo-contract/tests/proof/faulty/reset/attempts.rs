//! Resets that lose what the group is, or reset nothing.

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{
    FetchOptions, GroupName, Lease, MaxAttempts, Partition, Partitions, Replay, ResetOptions,
    Result, RetryOptions, RetryOutcome, Start, StreamName, async_trait,
};

use crate::book::{Book, held, log_of};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        AResetPartitionHasTheDefaultAttempts: "a partition that is reset alone has the default attempts",
        says: "the outcome of a retry at the only attempt",
        kills: ["reset::RPL-5::max_attempts_stay_where_one_partition_was_reset"],
    },
    faulty! {
        ResetToNoSequencesResetsNothing: "a reset to a start without sequences resets no partition",
        says: "Err(StaleLease)",
        kills: ["reset::RPL-5::reset_to_no_sequences_starts_at_the_beginning"],
    },
    faulty! {
        ResetIsCutAt1000: "of what was delivered, a reset drops the first thousand",
        says: "no dead letter",
        kills: ["reset::RPL-5::reset_drops_any_number_of_deliveries"],
    },
    faulty! {
        ResetReachesTenPartitions: "a reset of some partitions reaches the first ten",
        says: "the claimable places",
        kills: ["reset::RPL-5::reset_reaches_each_of_twelve_partitions"],
    },
    faulty! {
        OldDeadlinesReopenAfterAReset: "a lease from before a reset reopens its event when it ends",
        says: "the claimable sequences to be [5]",
        kills: [
            "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        ],
    },
];

#[derive(Default)]
struct AResetPartitionHasTheDefaultAttempts(Mutex<HashSet<(StreamName, GroupName, Partition)>>);

#[async_trait]
impl Defect for AResetPartitionHasTheDefaultAttempts {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.reset_group(stream, group, options).await?;
        if let Partitions::Only(partitions) = &options.partitions {
            let named = |partition: &Partition| (stream.clone(), group.clone(), *partition);
            held(&self.0).extend(partitions.iter().map(named));
        }
        Ok(())
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let outcome = real.backend.retry(lease, options).await?;
        let (event, group) = (&lease.event, &lease.group);
        let place = (event.stream.clone(), group.clone(), event.partition);
        let is_reset = held(&self.0).contains(&place);
        if is_reset && lease.attempt < MaxAttempts::default().get() {
            let again = Replay::Events(vec![event.id]);
            real.backend.replay(&event.stream, group, &again).await?;
            return Ok(RetryOutcome::Retrying);
        }
        Ok(outcome)
    }
}

#[derive(Default)]
struct ResetToNoSequencesResetsNothing;

#[async_trait]
impl Defect for ResetToNoSequencesResetsNothing {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let mut options = options.clone();
        if let Start::AfterSequences(sequences) = &options.start
            && sequences.is_empty()
        {
            options.partitions = Partitions::only([]);
        }
        real.backend.reset_group(stream, group, &options).await
    }
}

#[derive(Default)]
struct ResetIsCutAt1000;

#[async_trait]
impl Defect for ResetIsCutAt1000 {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let mut log = log_of(real, stream).await;
        if log.len() <= 1_000 {
            return real.backend.reset_group(stream, group, options).await;
        }
        log.truncate(1_000);
        let first = Replay::Events(log.iter().map(|event| event.id).collect());
        real.backend.replay(stream, group, &first).await
    }
}

#[derive(Default)]
struct ResetReachesTenPartitions;

#[async_trait]
impl Defect for ResetReachesTenPartitions {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let mut options = options.clone();
        if let Partitions::Only(selected) = &mut options.partitions {
            let is_beyond = |partition: &Partition| (10..12).contains(&partition.number());
            selected.retain(|partition| !is_beyond(partition));
        }
        real.backend.reset_group(stream, group, &options).await
    }
}

/// The leases from before a reset, until they end.
#[derive(Default)]
struct OldDeadlinesReopenAfterAReset {
    book: Book,
    old: Mutex<Vec<Lease>>,
}

#[async_trait]
impl Defect for OldDeadlinesReopenAfterAReset {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let current = self.book.current(real, stream, group).await;
        real.backend.reset_group(stream, group, options).await?;
        held(&self.old).extend(current);
        Ok(())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let now = real.now();
        let is_of = |lease: &Lease| lease.event.stream == *stream && lease.group == *group;
        let has_ended = |lease: &mut Lease| is_of(lease) && lease.expires_at <= now;
        let ended: Vec<Lease> = held(&self.old).extract_if(.., has_ended).collect();
        let ids = ended.iter().map(|lease| lease.event.id).collect();
        let again = Replay::Events(ids);
        real.backend.replay(stream, group, &again).await?;
        self.book.fetch(real, stream, group, options).await
    }
}
