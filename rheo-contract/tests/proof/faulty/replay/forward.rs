//! Replays that move forward.

use rheo_core::{
    FetchOptions, GroupName, Lease, Replay, ResetOptions, Result, Start, StreamName, async_trait,
};

use super::{Starts, sequence_of, start_of};
use crate::book::{Book, held};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        ReplayJumpsForward: "a replay beyond what was claimed moves the group forward",
        says: "the lease is stale",
        kills: [
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-3::replay_before_anything_was_claimed_changes_nothing",
            "replay::RPL-3::replay_never_raises_the_frontier",
        ],
    },
    faulty! {
        ReplayRemembersThePosition: "after a replay nothing at or below its sequence is delivered, also what is appended later",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: [
            "replay::RPL-3::replay_on_an_empty_stream_skips_no_later_event",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-3::replay_before_anything_was_claimed_changes_nothing",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-6::replay_leaves_the_log_alone",
        ],
    },
];

#[derive(Default)]
struct ReplayJumpsForward {
    book: Book,
}

#[async_trait]
impl Defect for ReplayJumpsForward {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let all = self.book.all(stream, group);
        let claimed = all
            .iter()
            .map(|lease| lease.event.sequence)
            .max()
            .unwrap_or_default();
        let last = real.backend.lag(stream, group).await?.partitions[0].high_watermark;
        match sequence_of(replay) {
            Some(sequence) if sequence > claimed => {
                let start = Start::AfterSequence(sequence.min(last));
                let options = ResetOptions::new().with_start(start);
                real.backend.reset_group(stream, group, &options).await
            }
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ReplayRemembersThePosition {
    position: Starts,
}

#[async_trait]
impl Defect for ReplayRemembersThePosition {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        if let Some(sequence) = sequence_of(replay) {
            held(&self.position).insert((stream.clone(), group.clone()), sequence);
        }
        Ok(())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        let position = start_of(&self.position, stream, group);
        leases.retain(|lease| lease.attempt > 1 || lease.event.sequence > position);
        Ok(leases)
    }
}
