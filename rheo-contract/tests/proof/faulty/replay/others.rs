//! Replays that reach further.

use rheo_core::{
    GroupName, ListOptions, NewEvent, ReadOptions, Replay, Result, StreamName, async_trait,
};

use super::sequence_of;
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        ReplayIsForAllGroups: "a replay is done for every group of the stream",
        says: "the lease is stale",
        kills: [
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
        ],
    },
    faulty! {
        ReplayAppendsAgain: "a replay appends the events to the log again",
        says: "the log to be equal",
        kills: [
            "replay::RPL-6::replay_leaves_the_log_alone",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "durability::DUR-1::a_replay_survives",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "log::LOG-4::replay_and_reset_change_no_event",
            "replay::RPL-1::a_group_that_started_at_the_end_can_go_back",
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-1::a_replayed_lease_settles_nothing",
            "replay::RPL-1::an_expired_lease_is_replayed_too",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-1::leases_from_before_a_replay_hold_up_nothing",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-1::replay_after_a_sequence_is_exclusive",
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-1::replay_of_no_partition_changes_nothing",
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "replay::RPL-1::replay_reopens_what_was_acked_and_what_is_dead",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-3::replay_before_anything_was_claimed_changes_nothing",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_group_that_was_reset_forward_can_be_replayed",
            "streams::STR-4::going_back_on_one_stream_leaves_the_other",
        ],
    },
];

#[derive(Default)]
struct ReplayIsForAllGroups;

#[async_trait]
impl Defect for ReplayIsForAllGroups {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        for other in real
            .backend
            .list_groups(stream, &ListOptions::new())
            .await?
        {
            real.backend.replay(stream, &other, replay).await?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct ReplayAppendsAgain;

#[async_trait]
impl Defect for ReplayAppendsAgain {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        if let Some(after) = sequence_of(replay) {
            let options = ReadOptions::new().with_after(after);
            for event in real.backend.read(stream, &options).await? {
                let again = NewEvent::new(event.event_type, event.payload.to_value())?;
                real.backend
                    .append(stream, again.with_partition(event.partition))
                    .await?;
            }
        }
        Ok(())
    }
}
