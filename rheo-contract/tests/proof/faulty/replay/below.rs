//! Replays that leave some events out, keep old deadlines, or forget what is below the group's start.

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{
    EventId, FetchOptions, GroupName, GroupOptions, Lease, LeaseDuration, Partition, Partitions,
    Replay, Result, RetryOptions, RetryOutcome, StreamName, async_trait,
};

use super::{Starts, note_start, sequence_of, start_of};
use crate::book::{Book, all_dead, held, log_of};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        ChosenEventsAreCutAt10: "of chosen events, the first ten are reopened",
        says: "the claimable sequences",
        kills: [
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
        ],
    },
    faulty! {
        ChosenEventsAreCutAt1000: "of chosen events, the first thousand are reopened",
        says: "the claimable sequences",
        kills: ["replay::RPL-4::any_number_of_chosen_events_is_reopened"],
    },
    faulty! {
        ReplayAfterIsCutAt1000: "after a sequence, the first thousand events are reopened",
        says: "the claimable sequences",
        kills: ["replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence"],
    },
    faulty! {
        OldDeadlinesReopenAfterAReplay: "a lease from before a replay reopens its event when it ends",
        says: "the claimable sequences to be [5]",
        kills: [
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-1::leases_from_before_a_replay_hold_up_nothing",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ReplayReachesTenPartitions: "a replay of some partitions reaches the first ten",
        says: "the claimable places",
        kills: ["replay::RPL-1::replay_reaches_each_of_twelve_partitions"],
    },
    faulty! {
        LateDeathsAreNotChosen: "what died at attempt 2 or later cannot be chosen",
        says: "no dead letter",
        kills: ["replay::RPL-4::chosen_events_at_any_attempt_are_reopened"],
    },
    faulty! {
        BelowTheStartRetriesEnd: "a retry of an event at or below the group's start ends its delivery",
        says: "the frontier to be 1",
        kills: [
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "wakeup::OPS-4::chosen_events_are_told",
        ],
    },
    faulty! {
        BelowTheStartNothingExpires: "leases of events at or below the group's start do not expire",
        says: "sequence and attempt of what has expired",
        kills: ["replay::RPL-4::chosen_events_below_the_start_expire_as_any_other"],
    },
    faulty! {
        BelowTheStartEventsAreChosenOnce: "events at or below the group's start can be chosen once",
        says: "Err(StaleLease)",
        kills: ["replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again"],
    },
];

/// Reopens the first of them only.
#[derive(Default)]
struct Cut<const AT: usize>;

type ChosenEventsAreCutAt10 = Cut<10>;
type ChosenEventsAreCutAt1000 = Cut<1_000>;

#[async_trait]
impl<const AT: usize> Defect for Cut<AT> {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match replay {
            Replay::Events(ids) if ids.len() > AT => {
                let first = Replay::Events(ids[..AT].to_vec());
                real.backend.replay(stream, group, &first).await
            }
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ReplayAfterIsCutAt1000;

#[async_trait]
impl Defect for ReplayAfterIsCutAt1000 {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        if let Some(after) = sequence_of(replay) {
            let mut above = log_of(real, stream).await;
            above.retain(|event| event.sequence > after);
            if above.len() > 1_000 {
                above.truncate(1_000);
                let ids = above.iter().map(|event| event.id).collect();
                let first = Replay::Events(ids);
                return real.backend.replay(stream, group, &first).await;
            }
        }
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct ReplayReachesTenPartitions;

#[async_trait]
impl Defect for ReplayReachesTenPartitions {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let mut replay = replay.clone();
        if let Replay::After {
            partitions: Partitions::Only(selected),
            ..
        } = &mut replay
        {
            let is_beyond = |partition: &Partition| (10..12).contains(&partition.number());
            selected.retain(|partition| !is_beyond(partition));
        }
        real.backend.replay(stream, group, &replay).await
    }
}

#[derive(Default)]
struct LateDeathsAreNotChosen;

#[async_trait]
impl Defect for LateDeathsAreNotChosen {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let mut replay = replay.clone();
        let mut late = all_dead(real, stream, group).await.unwrap_or_default();
        late.retain(|letter| letter.attempt > 1);
        if let Replay::Events(ids) = &mut replay {
            ids.retain(|id| !late.iter().any(|letter| letter.event.id == *id));
        }
        real.backend.replay(stream, group, &replay).await
    }
}

/// The leases from before a replay, until they end.
#[derive(Default)]
struct OldDeadlinesReopenAfterAReplay {
    book: Book,
    old: Mutex<Vec<Lease>>,
}

#[async_trait]
impl Defect for OldDeadlinesReopenAfterAReplay {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let current = self.book.current(real, stream, group).await;
        real.backend.replay(stream, group, replay).await?;
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

#[derive(Default)]
struct BelowTheStartRetriesEnd(Starts);

#[async_trait]
impl Defect for BelowTheStartRetriesEnd {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        note_start(&self.0, real, stream, group).await;
        Ok(())
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let event = &lease.event;
        if event.sequence > start_of(&self.0, &event.stream, &lease.group) {
            return real.backend.retry(lease, options).await;
        }
        real.backend.ack(lease).await?;
        Ok(RetryOutcome::Retrying)
    }
}

#[derive(Default)]
struct BelowTheStartNothingExpires {
    starts: Starts,
    book: Book,
}

#[async_trait]
impl Defect for BelowTheStartNothingExpires {
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
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let start = start_of(&self.starts, stream, group);
        for lease in self.book.all(stream, group) {
            if lease.event.sequence <= start && lease.expires_at <= real.now() {
                let _ = real.backend.renew(&lease, LeaseDuration::default()).await;
            }
        }
        self.book.fetch(real, stream, group, options).await
    }
}

#[derive(Default)]
struct BelowTheStartEventsAreChosenOnce {
    starts: Starts,
    chosen: Mutex<HashSet<(GroupName, EventId)>>,
}

#[async_trait]
impl Defect for BelowTheStartEventsAreChosenOnce {
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
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let Replay::Events(ids) = replay else {
            return real.backend.replay(stream, group, replay).await;
        };
        let start = start_of(&self.starts, stream, group);
        let mut below = log_of(real, stream).await;
        below.retain(|event| event.sequence <= start && ids.contains(&event.id));
        let before = held(&self.chosen).clone();
        let mut left = ids.clone();
        left.retain(|id| !before.contains(&(group.clone(), *id)));
        real.backend
            .replay(stream, group, &Replay::Events(left))
            .await?;
        let below = below.into_iter().map(|event| (group.clone(), event.id));
        held(&self.chosen).extend(below);
        Ok(())
    }
}
