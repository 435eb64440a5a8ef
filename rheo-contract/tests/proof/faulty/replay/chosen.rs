//! Replays of chosen events that choose others.

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{
    Error, Event, EventId, FetchOptions, GroupName, GroupOptions, Lag, Lease, NewEvent, Replay,
    ResetOptions, Result, Sequence, Start, StreamName, async_trait,
};

use super::{Starts, note_start, start_of};
use crate::book::{Book, all_dead, held, log_of};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        TheDeadAreNotChosen: "a replay of chosen events leaves out the dead",
        says: "the claimable sequences to be [1, 2, 3, 4, 5]",
        kills: [
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "inspect::OPS-3::group_info_counts_what_a_replay_left",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
        ],
    },
    faulty! {
        ChosenEventsReopenAllAbove: "a replay of chosen events reopens everything from the lowest of them",
        says: "the lease is stale",
        kills: [
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "delivery::DLV-4::replayed_events_go_before_what_is_new",
            "inspect::OPS-3::group_info_counts_what_a_replay_left",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "replay::DLV-4::reopened_events_come_before_later_ones_in_their_order",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::a_chosen_event_below_the_start_is_delivered",
            "replay::RPL-4::an_unknown_id_reopens_nothing",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "replay::RPL-4::chosen_events_are_reopened_in_their_own_partitions",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "wakeup::OPS-4::chosen_events_are_told",
        ],
    },
    faulty! {
        ReplayJumpsToTheChosenEvent: "a chosen event that was never claimed is where the group goes on",
        says: "the lease is stale",
        kills: [
            "replay::RPL-4::a_chosen_event_that_was_never_claimed_stays_as_it_is",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
        ],
    },
    faulty! {
        EventsBelowTheStartCannotBeChosen: "chosen events at or below the group's start are left out",
        says: "the claimable sequences to be [2, 4]",
        kills: [
            "replay::RPL-4::a_chosen_event_below_the_start_is_delivered",
            "inspect::OPS-3::group_info_counts_chosen_events_below_the_start",
            "replay::RPL-4::an_unknown_id_reopens_nothing",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "wakeup::OPS-4::chosen_events_are_told",
        ],
    },
    faulty! {
        UnknownIdsAreLeftOut: "unknown ids among those to replay are left out",
        says: "Err(Invalid)",
        kills: [
            "replay::RPL-4::an_unknown_id_reopens_nothing",
            "replay::RPL-4::an_id_from_another_stream_is_unknown",
        ],
    },
    faulty! {
        AnUnknownIdStopsHalfWay: "events are reopened one by one until an id is unknown",
        says: "no claimable event",
        kills: [
            "replay::RPL-4::an_unknown_id_reopens_nothing",
            "input::ERR-6::nothing_to_replay_excuses_no_missing_group",
            "replay::ERR-6::replay_looks_for_the_stream_before_the_group",
        ],
    },
    faulty! {
        IdsAreKnownInAllStreams: "an id that another stream has is no mistake",
        says: "Err(Invalid)",
        kills: [
            "replay::RPL-4::an_id_from_another_stream_is_unknown",
            "input::ERR-10::a_missing_group_is_named_with_its_stream",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::a_missing_group_is_named",
            "input::ERR-6::nothing_to_replay_excuses_no_missing_group",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
            "replay::ERR-6::replay_looks_for_the_stream_before_the_group",
        ],
    },
    faulty! {
        AnIdTwiceIsOneTooMany: "an id that is given twice is refused, since fewer rows than ids are found",
        says: "invalid events: got 3, allowed is ids of events that are in the stream",
        kills: [
            "replay::RPL-4::an_id_given_twice_counts_once",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::a_missing_group_comes_before_bad_input",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
        ],
    },
    faulty! {
        NoIdsAreAllIds: "a replay of no events is one of all events",
        says: "no claimable event",
        kills: ["replay::RPL-4::no_ids_change_nothing"],
    },
    faulty! {
        TheFrontierFallsToTheChosenEvent: "the frontier falls to the chosen event instead of below it",
        says: "the frontier to be 1",
        kills: [
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
        ],
    },
    faulty! {
        EventsAreChosenBySequence: "events with the sequence of a chosen one are reopened in all partitions",
        says: "the claimable places (partition, sequence) to be [(0, 2), (2, 1)]",
        kills: [
            "replay::RPL-4::chosen_events_are_reopened_in_their_own_partitions",
            "replay::RPL-4::an_unknown_id_reopens_nothing",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
        ],
    },
    faulty! {
        ReopenedEventsComeInTheOrderGiven: "what is reopened is queued in the order in which it was chosen",
        says: "the order of delivery to be [2, 4, 6]",
        kills: [
            "replay::DLV-4::reopened_events_come_before_later_ones_in_their_order",
            "delivery::DLV-4::replayed_events_go_before_what_is_new",
            "inspect::OPS-3::group_info_counts_chosen_events_below_the_start",
            "replay::RPL-1::leases_from_before_a_replay_hold_up_nothing",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-1::replay_reaches_each_of_twelve_partitions",
            "replay::RPL-4::an_unknown_id_reopens_nothing",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
        ],
    },
];

#[derive(Default)]
struct TheDeadAreNotChosen;

#[async_trait]
impl Defect for TheDeadAreNotChosen {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let dead = all_dead(real, stream, group).await?;
        match replay {
            Replay::Events(ids) => {
                let is_dead = |id: &EventId| dead.iter().any(|letter| letter.event.id == *id);
                let ids = ids.iter().filter(|id| !is_dead(id)).copied().collect();
                real.backend
                    .replay(stream, group, &Replay::Events(ids))
                    .await
            }
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ChosenEventsReopenAllAbove;

#[async_trait]
impl Defect for ChosenEventsReopenAllAbove {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let events = chosen(real, stream, replay).await.unwrap_or_default();
        match events.iter().map(|event| event.sequence).min() {
            Some(lowest) => {
                real.backend
                    .replay(stream, group, &Replay::after(lowest.previous()))
                    .await
            }
            None => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ReplayJumpsToTheChosenEvent {
    book: Book,
}

#[async_trait]
impl Defect for ReplayJumpsToTheChosenEvent {
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
        let events = chosen(real, stream, replay).await.unwrap_or_default();
        match events
            .iter()
            .find(|event| claimed > Sequence::ZERO && event.sequence > claimed)
        {
            Some(event) => {
                let start = Start::AfterSequence(event.sequence.previous());
                let options = ResetOptions::new()
                    .with_start(start)
                    .with_partitions(event.partition);
                real.backend.reset_group(stream, group, &options).await
            }
            None => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct EventsBelowTheStartCannotBeChosen {
    starts: Starts,
}

#[async_trait]
impl Defect for EventsBelowTheStartCannotBeChosen {
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
        match chosen(real, stream, replay).await {
            Some(mut events) if !events.is_empty() => {
                events.retain(|event| event.sequence > start_of(&self.starts, stream, group));
                real.backend.replay(stream, group, &ids_of(&events)).await
            }
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct UnknownIdsAreLeftOut;

#[async_trait]
impl Defect for UnknownIdsAreLeftOut {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match chosen(real, stream, replay).await {
            Some(events) => real.backend.replay(stream, group, &ids_of(&events)).await,
            None => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct AnUnknownIdStopsHalfWay;

#[async_trait]
impl Defect for AnUnknownIdStopsHalfWay {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.ping().await?;
        let Replay::Events(ids) = replay else {
            return real.backend.replay(stream, group, replay).await;
        };
        for id in ids {
            real.backend
                .replay(stream, group, &Replay::Events(vec![*id]))
                .await?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct IdsAreKnownInAllStreams {
    ids: Mutex<HashSet<EventId>>,
}

#[async_trait]
impl Defect for IdsAreKnownInAllStreams {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let appended = real.backend.append_batch(stream, events).await?;
        held(&self.ids).extend(appended.iter().map(|event| event.id));
        Ok(appended)
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.ping().await?;
        let result = real.backend.replay(stream, group, replay).await;
        match replay {
            Replay::Events(ids) if ids.iter().all(|id| held(&self.ids).contains(id)) => Ok(()),
            _ => result,
        }
    }
}

#[derive(Default)]
struct AnIdTwiceIsOneTooMany;

#[async_trait]
impl Defect for AnIdTwiceIsOneTooMany {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.ping().await?;
        match (replay, chosen(real, stream, replay).await) {
            (Replay::Events(ids), Some(events)) if ids.len() != events.len() => Err(
                Error::invalid("events", ids.len(), "ids of events that are in the stream"),
            ),
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct NoIdsAreAllIds;

#[async_trait]
impl Defect for NoIdsAreAllIds {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match replay {
            Replay::Events(ids) if ids.is_empty() => {
                real.backend
                    .replay(stream, group, &Replay::after(Sequence::ZERO))
                    .await
            }
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct TheFrontierFallsToTheChosenEvent {
    chosen: Mutex<HashSet<(GroupName, EventId)>>,
}

#[async_trait]
impl Defect for TheFrontierFallsToTheChosenEvent {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        let events = chosen(real, stream, replay).await.unwrap_or_default();
        held(&self.chosen).extend(events.into_iter().map(|event| (group.clone(), event.id)));
        Ok(())
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        held(&self.chosen).remove(&(lease.group.clone(), lease.event.id));
        Ok(())
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for event in log_of(real, stream).await {
            let progress = &mut lag.partitions[event.partition.number() as usize];
            let is_next = event.sequence == progress.frontier.next();
            if is_next && held(&self.chosen).contains(&(group.clone(), event.id)) {
                progress.frontier = event.sequence;
            }
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct EventsAreChosenBySequence;

#[async_trait]
impl Defect for EventsAreChosenBySequence {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let events = chosen(real, stream, replay).await.unwrap_or_default();
        if events.is_empty() {
            return real.backend.replay(stream, group, replay).await;
        }
        let mut log = log_of(real, stream).await;
        log.retain(|event| {
            events
                .iter()
                .any(|chosen| chosen.sequence == event.sequence)
        });
        real.backend.replay(stream, group, &ids_of(&log)).await
    }
}

#[derive(Default)]
struct ReopenedEventsComeInTheOrderGiven {
    queue: Mutex<Vec<EventId>>,
}

#[async_trait]
impl Defect for ReopenedEventsComeInTheOrderGiven {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        if let Replay::Events(ids) = replay {
            held(&self.queue).extend(ids.iter().skip(1));
            let first = Replay::Events(ids.iter().take(1).copied().collect());
            return real.backend.replay(stream, group, &first).await;
        }
        real.backend.replay(stream, group, replay).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        let next: Vec<EventId> = held(&self.queue).drain(..).take(1).collect();
        real.backend
            .replay(stream, group, &Replay::Events(next))
            .await?;
        Ok(leases)
    }
}

/// The chosen events of a replay, with their places; `None` where it is of another kind.
async fn chosen(real: &Real, stream: &StreamName, replay: &Replay) -> Option<Vec<Event>> {
    let Replay::Events(ids) = replay else {
        return None;
    };
    let mut log = log_of(real, stream).await;
    log.retain(|event| ids.contains(&event.id));
    Some(log)
}

fn ids_of(events: &[Event]) -> Replay {
    Replay::Events(events.iter().map(|event| event.id).collect())
}
