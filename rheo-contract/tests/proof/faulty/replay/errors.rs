//! Replays that are refused otherwise, or not.

use rheo_core::{Error, GroupName, Partitions, Replay, Result, StreamName, async_trait};

use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        WhatIsMissingIsReplayed: "a replay of a missing group is Ok",
        says: "Err(GroupNotFound)",
        kills: [
            "replay::ERR-6::replay_looks_for_the_stream_before_the_group",
            "input::ERR-10::a_missing_group_is_named_with_its_stream",
            "input::ERR-6::a_missing_group_comes_before_bad_input",
            "input::ERR-6::a_missing_group_is_named",
            "input::ERR-6::nothing_to_replay_excuses_no_missing_group",
        ],
    },
    faulty! {
        ReplayLooksForTheGroupAlone: "a replay on a missing stream says that the group is missing",
        says: "Err(StreamNotFound)",
        kills: [
            "replay::ERR-6::replay_looks_for_the_stream_before_the_group",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
        ],
    },
    faulty! {
        ReplayChecksAsItGoes: "partitions are replayed one by one until one is out of range",
        says: "no reopened event",
        kills: [
            "replay::ERR-8::replay_of_a_partition_out_of_range_reopens_nothing",
            "input::ERR-6::nothing_to_replay_excuses_no_missing_group",
            "input::ERR-8::a_replay_out_of_range_is_invalid",
        ],
    },
];

#[derive(Default)]
struct WhatIsMissingIsReplayed;

#[async_trait]
impl Defect for WhatIsMissingIsReplayed {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match real.backend.replay(stream, group, replay).await {
            Err(Error::GroupNotFound { .. }) => Ok(()),
            result => result,
        }
    }
}

#[derive(Default)]
struct ReplayLooksForTheGroupAlone;

#[async_trait]
impl Defect for ReplayLooksForTheGroupAlone {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match real.backend.replay(stream, group, replay).await {
            Err(Error::StreamNotFound { .. }) => Err(Error::GroupNotFound {
                stream: stream.clone(),
                group: group.clone(),
            }),
            result => result,
        }
    }
}

#[derive(Default)]
struct ReplayChecksAsItGoes;

#[async_trait]
impl Defect for ReplayChecksAsItGoes {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        if let Replay::After {
            sequence,
            partitions: Partitions::Only(partitions),
        } = replay
        {
            for partition in partitions {
                let partitions = Partitions::from(*partition);
                let replay = Replay::After {
                    sequence: *sequence,
                    partitions,
                };
                real.backend.replay(stream, group, &replay).await?;
            }
            return Ok(());
        }
        real.backend.replay(stream, group, replay).await
    }
}
