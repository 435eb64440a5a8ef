//! Defects that need two things to meet: a replay or a reset, and what is asked, done or opened after it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use rheo_core::{
    Error, Event, EventId, GroupName, Lag, Partition, Partitions, Replay, Result, Start, StreamName,
};

use crate::book::{held, log_of};
use crate::defect::Real;
use crate::faulty::{Faulty, faulty};
use crate::generated::spoils::spoils;
use crate::journal::{Entry, What};

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        ReplaysAfterEachSpareWhatIsOftenHandled: "a replay with a sequence per partition leaves leases alone whose events were renewed, or claimed three times",
        says: "attempts at most, leases, dead letters and lag",
        kills: ["histories::RPL-1::random_replays_and_resets_agree_with_the_model"],
    },
    faulty! {
        ResetsPerPartitionSpareTheUnnamedAfterReplays: "a reset to a start per partition leaves those alone that are not named, where the group was replayed",
        says: "each compared with the model",
        kills: ["histories::RPL-1::random_replays_and_resets_agree_with_the_model"],
    },
    faulty! {
        InfoKeepsTheLagFromBeforeReplaysOfTheRenewed: "after a replay of an event whose lease was renewed once, `group_info` has the lag from before until something is done",
        says: "attempts at most, leases, dead letters and lag",
        kills: ["histories::RPL-1::random_replays_and_resets_agree_with_the_model"],
    },
    faulty! {
        ReplayedGroupsThatAreMadeAgainAreNotListed: "a group that was replayed is not listed any more when somebody makes it again, which is refused",
        says: "the list of groups",
        kills: ["histories::RPL-1::random_replays_and_resets_agree_with_the_model"],
    },
    faulty! {
        StreamsWithTwoRefusalsAreNotListed: "a stream is not listed any more when two batches were refused for the same id",
        says: "in the list of streams",
        kills: ["histories::LOG-5::random_appends_and_queries_agree_with_the_model"],
    },
    faulty! {
        LaterPagesOfLaterPartitionsAreOneShort: "a page of another partition than the first that begins behind its third event or later, and is full, is one short",
        says: "the events read",
        kills: ["histories::LOG-5::random_appends_and_queries_agree_with_the_model"],
    },
    faulty! {
        AcksAreLostWhereGroupsWentBack: "a handle that is opened does not know the acks of a group that was reset",
        says: "each compared with the model",
        kills: ["histories::DUR-1::random_histories_with_reopened_stores_agree_with_the_model"],
    },
];

/// A group of a stream.
type Key = (StreamName, GroupName);

/// The groups that were replayed.
type Replayed = Mutex<BTreeSet<Key>>;

async fn replay_and_note(
    real: &Real,
    stream: &StreamName,
    group: &GroupName,
    replay: &Replay,
) -> Result<()> {
    real.backend.replay(stream, group, replay).await?;
    held(&real.beside.of::<Replayed>()).insert((stream.clone(), group.clone()));
    Ok(())
}

fn was_replayed(real: &Real, stream: &StreamName, group: &GroupName) -> bool {
    held(&real.beside.of::<Replayed>()).contains(&(stream.clone(), group.clone()))
}

/// The events that are leased, and were renewed at some time or claimed three times.
fn often_handled(real: &Real, stream: &StreamName, group: &GroupName) -> Vec<EventId> {
    let all = real.journal.of(stream, group);
    let is_often_handled = |id: &EventId| {
        let of_it = || all.iter().filter(|entry| entry.lease.event.id == *id);
        let claims = of_it().filter(|entry| entry.what == What::Claimed).count();
        claims >= 3 || of_it().any(|entry| entry.what == What::Renewed)
    };
    let current = real.journal.current(stream, group).into_iter();
    current
        .map(|lease| lease.event.id)
        .filter(is_often_handled)
        .collect()
}

#[derive(Default)]
struct ReplaysAfterEachSpareWhatIsOftenHandled;

spoils! { ReplaysAfterEachSpareWhatIsOftenHandled {
    replay(self, real, stream, group, replay) {
        let spared = often_handled(real, stream, group);
        let Replay::AfterEach(each) = replay else {
            return real.backend.replay(stream, group, replay).await;
        };
        if spared.is_empty() {
            return real.backend.replay(stream, group, replay).await;
        }
        let is_above = |event: &Event| each.get(&event.partition).is_some_and(|after| event.sequence > *after);
        let mut events = log_of(real, stream).await;
        events.retain(|event| is_above(event) && !spared.contains(&event.id));
        let events = Replay::Events(events.iter().map(|event| event.id).collect());
        real.backend.replay(stream, group, &events).await
    }
} }

#[derive(Default)]
struct ResetsPerPartitionSpareTheUnnamedAfterReplays;

spoils! { ResetsPerPartitionSpareTheUnnamedAfterReplays {
    replay(self, real, stream, group, replay) {
        replay_and_note(real, stream, group, replay).await
    }
    reset_group(self, real, stream, group, options) {
        let mut options = options.clone();
        if let Start::AfterSequences(starts) = &options.start
            && was_replayed(real, stream, group)
            && starts.keys().all(|partition| options.partitions.contains(*partition))
        {
            options.partitions = Partitions::only(starts.keys().copied());
        }
        real.backend.reset_group(stream, group, &options).await
    }
} }

/// Lags from before a replay, and what was done by then.
type Lags = Mutex<BTreeMap<Key, (usize, Lag)>>;

#[derive(Default)]
struct InfoKeepsTheLagFromBeforeReplaysOfTheRenewed;

spoils! { InfoKeepsTheLagFromBeforeReplaysOfTheRenewed {
    replay(self, real, stream, group, replay) {
        let before = real.backend.lag(stream, group).await;
        let mark = real.journal.mark();
        real.backend.replay(stream, group, replay).await?;
        let was_renewed = |entry: &Entry| {
            real.journal.of_claim(&entry.lease).iter().any(|entry| entry.what == What::Renewed)
        };
        if let (true, Ok(before)) = (real.journal.since(mark).iter().any(was_renewed), before) {
            let key = (stream.clone(), group.clone());
            held(&real.beside.of::<Lags>()).insert(key, (real.journal.mark(), before));
        }
        Ok(())
    }
    group_info(self, real, stream, group) {
        let mut info = real.backend.group_info(stream, group).await?;
        let key = (stream.clone(), group.clone());
        let before = held(&real.beside.of::<Lags>()).get(&key).cloned();
        if let Some((_, before)) = before.filter(|(mark, _)| *mark == real.journal.mark()) {
            info.lag = before;
        }
        Ok(info)
    }
} }

/// The groups that somebody made again after they were replayed.
#[derive(Default)]
struct Unlisted(Mutex<BTreeSet<Key>>);

#[derive(Default)]
struct ReplayedGroupsThatAreMadeAgainAreNotListed;

spoils! { ReplayedGroupsThatAreMadeAgainAreNotListed {
    replay(self, real, stream, group, replay) {
        replay_and_note(real, stream, group, replay).await
    }
    create_group(self, real, stream, group, options) {
        let made = real.backend.create_group(stream, group, options).await;
        if made.is_err() && was_replayed(real, stream, group) {
            held(&real.beside.of::<Unlisted>().0).insert((stream.clone(), group.clone()));
        }
        made
    }
    list_groups(self, real, stream, options) {
        let mut groups = real.backend.list_groups(stream, options).await?;
        let unlisted = real.beside.of::<Unlisted>();
        groups.retain(|group| !held(&unlisted.0).contains(&(stream.clone(), group.clone())));
        Ok(groups)
    }
} }

/// How many batches were refused.
type Refusals = Mutex<BTreeMap<StreamName, u32>>;

#[derive(Default)]
struct StreamsWithTwoRefusalsAreNotListed;

spoils! { StreamsWithTwoRefusalsAreNotListed {
    append_batch(self, real, stream, events) {
        let appended = real.backend.append_batch(stream, events).await;
        if matches!(appended, Err(Error::AlreadyExists(_))) {
            *held(&real.beside.of::<Refusals>()).entry(stream.clone()).or_default() += 1;
        }
        appended
    }
    list_streams(self, real, options) {
        let mut streams = real.backend.list_streams(options).await?;
        let refusals = real.beside.of::<Refusals>();
        streams.retain(|info| held(&refusals).get(&info.stream).copied().unwrap_or(0) < 2);
        Ok(streams)
    }
} }

#[derive(Default)]
struct LaterPagesOfLaterPartitionsAreOneShort;

spoils! { LaterPagesOfLaterPartitionsAreOneShort {
    read(self, real, stream, options) {
        let mut events = real.backend.read(stream, options).await?;
        let is_later = options.partition != Partition::ZERO && options.after.get() >= 3;
        if is_later && events.len() == options.limit as usize {
            events.pop();
        }
        Ok(events)
    }
} }

/// The groups that were reset.
#[derive(Default)]
struct WentBack(Mutex<BTreeSet<Key>>);

/// The groups that the handle knows.
#[derive(Default)]
struct AcksAreLostWhereGroupsWentBack(Mutex<BTreeSet<Key>>);

impl AcksAreLostWhereGroupsWentBack {
    async fn open(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<()> {
        let key = (stream.clone(), group.clone());
        let is_known = !held(&self.0).insert(key.clone());
        if is_known || !held(&real.beside.of::<WentBack>().0).contains(&key) {
            return Ok(());
        }
        let mut lost = real.journal.last(stream, group);
        lost.retain(|entry| entry.what == What::Acked);
        let events = lost.iter().map(|entry| entry.lease.event.id).collect();
        real.store
            .replay(stream, group, &Replay::Events(events))
            .await?;
        let lost = lost.into_iter().map(|entry| (entry.lease, What::Reopened));
        real.journal.note(real.handle, lost.collect());
        Ok(())
    }
}

spoils! { AcksAreLostWhereGroupsWentBack {
    reset_group(self, real, stream, group, options) {
        self.open(real, stream, group).await?;
        real.backend.reset_group(stream, group, options).await?;
        held(&real.beside.of::<WentBack>().0).insert((stream.clone(), group.clone()));
        Ok(())
    }
    fetch(self, real, stream, group, options) {
        self.open(real, stream, group).await?;
        real.backend.fetch(stream, group, options).await
    }
    ack(self, real, lease) {
        self.open(real, &lease.event.stream, &lease.group).await?;
        real.backend.ack(lease).await
    }
    lag(self, real, stream, group) {
        self.open(real, stream, group).await?;
        real.backend.lag(stream, group).await
    }
} }
