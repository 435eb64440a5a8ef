//! Replays that leave another frontier.

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{
    GroupName, GroupOptions, Lag, Partition, Replay, ResetOptions, Result, Sequence, StreamName,
    async_trait,
};

use super::{Starts, note_start, sequence_of, start_of};
use crate::book::held;
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        TheFrontierNeverFalls: "the frontier is only ever raised, whatever is replayed or reset",
        says: "the frontier to be 2",
        kills: [
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "reset::RPL-5::the_frontier_is_the_new_start",
        ],
    },
    faulty! {
        ReplaySetsTheFrontier: "a replay sets the frontier to its sequence, also upwards",
        says: "the frontier to be 0",
        kills: [
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-3::replay_never_raises_the_frontier",
        ],
    },
    faulty! {
        TheFrontierStopsAtTheStart: "the frontier is never below the group's first start",
        says: "the frontier to be 1",
        kills: [
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
        ],
    },
];

#[derive(Default)]
struct TheFrontierNeverFalls {
    highest: Mutex<HashMap<(StreamName, GroupName, Partition), Sequence>>,
}

#[async_trait]
impl Defect for TheFrontierNeverFalls {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let _ = self.highest(real, stream, group).await;
        real.backend.replay(stream, group, replay).await
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let _ = self.highest(real, stream, group).await;
        real.backend.reset_group(stream, group, options).await
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        self.highest(real, stream, group).await
    }
}

#[derive(Default)]
struct ReplaySetsTheFrontier {
    set: Starts,
}

#[async_trait]
impl Defect for ReplaySetsTheFrontier {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        if let Some(sequence) = sequence_of(replay) {
            held(&self.set).insert((stream.clone(), group.clone()), sequence);
        }
        Ok(())
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        let progress = &mut lag.partitions[0];
        let set = start_of(&self.set, stream, group).min(progress.high_watermark);
        progress.frontier = progress.frontier.max(set);
        Ok(lag)
    }
}

#[derive(Default)]
struct TheFrontierStopsAtTheStart {
    starts: Starts,
}

#[async_trait]
impl Defect for TheFrontierStopsAtTheStart {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        note_start(&self.starts, real, stream, group).await;
        Ok(())
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        let progress = &mut lag.partitions[0];
        progress.frontier = progress.frontier.max(start_of(&self.starts, stream, group));
        Ok(lag)
    }
}

impl TheFrontierNeverFalls {
    async fn highest(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for progress in &mut lag.partitions {
            let key = (stream.clone(), group.clone(), progress.partition);
            let mut highest = held(&self.highest);
            let highest = highest.entry(key).or_default();
            *highest = progress.frontier.max(*highest);
            progress.frontier = *highest;
        }
        Ok(lag)
    }
}
