//! Defects that reach further than they should: other partitions, other groups, other streams.

use std::collections::BTreeSet;
use std::sync::Mutex;

use rheo_core::{
    EventId, FetchOptions, GroupName, Lease, ListOptions, Partition, Replay, ResetOptions, Result,
    RetryDelay, RetryOptions, RetryOutcome, StreamName, async_trait,
};

use super::Faulty;
use crate::book::{Book, all_dead, log_of};
use crate::defect::{Defect, Real};
use crate::tweak::{lock, place_of};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        ReplayTakesTheDeadOfOtherPartitions: "a replay takes the dead letters of all partitions",
        says: "the dead letters elsewhere",
        kills: [
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ReplayEndsDelaysOfOtherPartitions: "a replay ends the delays in all partitions",
        says: "what is claimable to be [(0, 6)]",
        kills: [
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ReplayVoidsLeasesOfOtherPartitions: "a replay voids the leases in all partitions",
        says: "StaleLease",
        kills: [
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-1::replay_of_no_partition_changes_nothing",
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
        ],
    },
    faulty! {
        ChosenEventsTakeOtherDead: "a replay of chosen events takes all dead letters",
        says: "the dead letters elsewhere",
        kills: [
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ChosenEventsEndOtherDelays: "a replay of chosen events ends all delays",
        says: "what is claimable to be [(0, 6)]",
        kills: [
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ReplayTakesTheDeadOfOtherGroups: "a replay takes the dead letters of all groups of the stream",
        says: "the dead letters elsewhere",
        kills: [
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ReplayEndsDelaysOfNamesakes: "a replay ends the delays of groups of that name on other streams",
        says: "what is claimable to be [(0, 6)]",
        kills: [
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "replay::RPL-6::replay_leaves_other_groups_alone",
        ],
    },
    faulty! {
        ResetTakesTheDeadOfOtherPartitions: "a reset takes the dead letters of all partitions",
        says: "the dead letters elsewhere",
        kills: [
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ResetEndsDelaysOfOtherPartitions: "a reset ends the delays in all partitions",
        says: "what is claimable to be [(0, 6)]",
        kills: [
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ResetVoidsLeasesOfOtherGroups: "a reset voids the leases of all groups of the stream",
        says: "StaleLease",
        kills: [
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_leaves_other_groups_alone",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ResetEndsDelaysOfOtherGroups: "a reset ends the delays of all groups of the stream",
        says: "what is claimable to be [(0, 6)]",
        kills: [
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_leaves_other_groups_alone",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ResetTakesTheDeadOfNamesakes: "a reset takes the dead letters of groups of that name on other streams",
        says: "the dead letters elsewhere",
        kills: [
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_leaves_other_groups_alone",
        ],
    },
    faulty! {
        IndexesAnewEndDelays: "making indexes ends all delays",
        says: "what is claimable to be [(0, 6)]",
        kills: [
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
        ],
    },
    faulty! {
        IndexesAnewVoidLeases: "making indexes takes back all leases",
        says: "StaleLease",
        kills: [
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
        ],
    },
    faulty! {
        IndexesAnewReclaim: "making indexes takes back the leases that have expired",
        says: "StaleLease",
        kills: [
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
        ],
    },
    faulty! {
        IndexesAnewReviveTheDead: "making indexes takes the dead letters away",
        says: "the dead letters elsewhere",
        kills: [
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
        ],
    },
];

/// What reaches too far.
const AFTER: char = 'a';
const CHOSEN: char = 'c';
const RESET: char = 'r';
const INDEXES: char = 'i';

/// What it reaches.
const DEAD: char = 'd';
const DELAYED: char = 'w';
const LEASED: char = 'l';
const EXPIRED: char = 'e';

/// And where.
const PARTITIONS: char = 'p';
const GROUPS: char = 'g';
const STREAMS: char = 's';

/// After an operation, what is in that state there is as if it had been replayed.
#[derive(Default)]
struct Reaching<const OPERATION: char, const STATE: char, const PLACE: char> {
    book: Book,
    waiting: Mutex<Vec<Lease>>,
}

type ReplayTakesTheDeadOfOtherPartitions = Reaching<AFTER, DEAD, PARTITIONS>;
type ReplayEndsDelaysOfOtherPartitions = Reaching<AFTER, DELAYED, PARTITIONS>;
type ReplayVoidsLeasesOfOtherPartitions = Reaching<AFTER, LEASED, PARTITIONS>;
type ChosenEventsTakeOtherDead = Reaching<CHOSEN, DEAD, PARTITIONS>;
type ChosenEventsEndOtherDelays = Reaching<CHOSEN, DELAYED, PARTITIONS>;
type ReplayTakesTheDeadOfOtherGroups = Reaching<AFTER, DEAD, GROUPS>;
type ReplayEndsDelaysOfNamesakes = Reaching<AFTER, DELAYED, STREAMS>;
type ResetTakesTheDeadOfOtherPartitions = Reaching<RESET, DEAD, PARTITIONS>;
type ResetEndsDelaysOfOtherPartitions = Reaching<RESET, DELAYED, PARTITIONS>;
type ResetVoidsLeasesOfOtherGroups = Reaching<RESET, LEASED, GROUPS>;
type ResetEndsDelaysOfOtherGroups = Reaching<RESET, DELAYED, GROUPS>;
type ResetTakesTheDeadOfNamesakes = Reaching<RESET, DEAD, STREAMS>;
type IndexesAnewEndDelays = Reaching<INDEXES, DELAYED, PARTITIONS>;
type IndexesAnewVoidLeases = Reaching<INDEXES, LEASED, PARTITIONS>;
type IndexesAnewReclaim = Reaching<INDEXES, EXPIRED, PARTITIONS>;
type IndexesAnewReviveTheDead = Reaching<INDEXES, DEAD, PARTITIONS>;

impl<const OPERATION: char, const STATE: char, const PLACE: char>
    Reaching<OPERATION, STATE, PLACE>
{
    /// The events of a group that are in that state, outside some partitions.
    async fn in_state(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        but: &BTreeSet<Partition>,
    ) -> Vec<EventId> {
        let leases = match STATE {
            DEAD => {
                let dead = all_dead(real, stream, group).await.unwrap_or_default();
                let elsewhere = dead.iter().filter(|d| !but.contains(&d.event.partition));
                return elsewhere.map(|dead| dead.event.id).collect();
            }
            DELAYED => lock(&self.waiting).clone(),
            _ => self.book.current(real, stream, group).await,
        };
        let is_such = |lease: &&Lease| {
            lease.event.stream == *stream
                && lease.group == *group
                && !but.contains(&lease.event.partition)
                && (STATE != EXPIRED || lease.expires_at <= real.now())
        };
        leases
            .iter()
            .filter(is_such)
            .map(|lease| lease.event.id)
            .collect()
    }

    async fn reach(
        &self,
        real: &Real,
        (stream, group): (&StreamName, &GroupName),
        partitions: &BTreeSet<Partition>,
    ) -> Result<()> {
        let (everywhere, none) = (ListOptions::new().with_limit(u32::MAX), BTreeSet::new());
        let mut reached = Vec::new();
        match PLACE {
            PARTITIONS => reached.push((stream.clone(), group.clone())),
            GROUPS => {
                let groups = real.backend.list_groups(stream, &everywhere).await?;
                let others = groups.into_iter().filter(|other| other != group);
                reached.extend(others.map(|other| (stream.clone(), other)));
            }
            _ => {
                let all = ListOptions::new().with_limit(u32::MAX);
                let streams = real.backend.list_streams(&all).await?;
                let others = streams.into_iter().filter(|other| other.stream != *stream);
                reached.extend(others.map(|other| (other.stream, group.clone())));
            }
        }
        for (stream, group) in reached {
            let but = if PLACE == PARTITIONS {
                partitions
            } else {
                &none
            };
            let ids = self.in_state(real, &stream, &group, but).await;
            if !ids.is_empty() {
                real.backend
                    .replay(&stream, &group, &Replay::Events(ids))
                    .await?;
            }
        }
        Ok(())
    }

    /// The partitions that a replay is for.
    async fn partitions_of(
        &self,
        real: &Real,
        stream: &StreamName,
        replay: &Replay,
    ) -> BTreeSet<Partition> {
        match replay {
            Replay::AfterEach(each) => each.keys().copied().collect(),
            Replay::After { partitions, .. } => {
                let all = (0..1_024).map(Partition::new);
                all.filter(|partition| partitions.contains(*partition))
                    .collect()
            }
            Replay::Events(ids) => {
                let log = log_of(real, stream).await;
                let chosen = log.iter().filter(|event| ids.contains(&event.id));
                chosen.map(|event| event.partition).collect()
            }
        }
    }
}

#[async_trait]
impl<const OPERATION: char, const STATE: char, const PLACE: char> Defect
    for Reaching<OPERATION, STATE, PLACE>
{
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = self.book.fetch(real, stream, group, options).await?;
        let claimed: Vec<_> = leases.iter().map(place_of).collect();
        lock(&self.waiting).retain(|waiting| !claimed.contains(&place_of(waiting)));
        Ok(leases)
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let outcome = real.backend.retry(lease, options).await?;
        if options.delay != RetryDelay::NONE && outcome == RetryOutcome::Retrying {
            lock(&self.waiting).push(lease.clone());
        }
        Ok(outcome)
    }
    async fn ensure_indexes(&self, real: &Real) -> Result<()> {
        real.backend.ensure_indexes().await?;
        if OPERATION == INDEXES {
            let all = ListOptions::new().with_limit(u32::MAX);
            for stream in real.backend.list_streams(&all).await? {
                let stream = stream.stream;
                let all = ListOptions::new().with_limit(u32::MAX);
                for group in real.backend.list_groups(&stream, &all).await? {
                    self.reach(real, (&stream, &group), &BTreeSet::new())
                        .await?;
                }
            }
        }
        Ok(())
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let partitions = self.partitions_of(real, stream, replay).await;
        real.backend.replay(stream, group, replay).await?;
        let is_chosen = matches!(replay, Replay::Events(_));
        if (OPERATION == CHOSEN && is_chosen) || (OPERATION == AFTER && !is_chosen) {
            self.reach(real, (stream, group), &partitions).await?;
        }
        Ok(())
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.reset_group(stream, group, options).await?;
        if OPERATION == RESET {
            let all = (0..1_024).map(Partition::new);
            let selected = all.filter(|p| options.partitions.contains(*p)).collect();
            self.reach(real, (stream, group), &selected).await?;
        }
        Ok(())
    }
}
