//! Defects that show only when a group goes back while others are at work.

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, EventId, GroupName, Lag, Lease, LeaseId, Replay, Result,
    StreamName,
};

use crate::book::held;
use crate::defect::Real;
use crate::faulty::{Faulty, faulty};
use crate::generated::meddling::{UnderWay, claimed_again, lose, pause};
use crate::generated::races::was_reopened;
use crate::generated::spoils::spoils;
use crate::journal::What;
use crate::tweak::{Place, place_of};

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        AckUndoesAReplayOfItsEvent: "an ack that found its lease is written, though its event was chosen for a replay meanwhile",
        says: "that no order explains",
        kills: ["races::RPL-7::concurrent_histories_with_replays_and_resets_have_no_anomaly"],
    },
    faulty! {
        RenewalUndoesAReplay: "a renewal that found its lease claims the event anew, though it was replayed or reset meanwhile",
        says: "that no order explains",
        kills: ["races::RPL-7::concurrent_histories_with_replays_and_resets_have_no_anomaly"],
    },
    faulty! {
        ResetsDuringFetchesKeepLeases: "a reset that overlaps a fetch leaves the leases from before valid",
        says: "that no order explains",
        kills: ["races::RPL-7::concurrent_histories_with_replays_and_resets_have_no_anomaly"],
    },
    faulty! {
        FetchesCountOnOverAReplay: "a fetch that overlaps a replay or reset gives the attempt that would have been next before",
        says: "that no order explains",
        kills: ["races::RPL-7::concurrent_histories_with_replays_and_resets_have_no_anomaly"],
    },
    faulty! {
        GoingBackLosesWhatIsBeingClaimed: "a replay or reset loses an event that was claimed while it was under way",
        says: "that no order explains",
        kills: ["races::RPL-7::concurrent_histories_with_replays_and_resets_have_no_anomaly"],
    },
    faulty! {
        ReplaysDuringSettlesKeepLetters: "a replay that overlaps a settle or a fetch reopens dead letters, and keeps their entries",
        says: "dead letter that no order explains",
        kills: ["races::RPL-7::concurrent_histories_with_replays_and_resets_have_no_anomaly"],
    },
    faulty! {
        LagsOutlastAReplay: "a lag that a replay or reset overlaps is remembered, and is the frontier that the next lag gives",
        says: "frontier ahead that no order explains (FRN-4)",
        kills: ["races::RPL-7::concurrent_histories_with_replays_and_resets_have_no_anomaly"],
    },
    faulty! {
        ReplaysReachTheGroupThatSettles: "a replay goes back in another group too, while that settles",
        says: "that no order explains",
        kills: ["races::RPL-7::concurrent_histories_with_replays_and_resets_have_no_anomaly"],
    },
];

/// Events that were chosen for a replay.
type Chosen = Mutex<Vec<EventId>>;

#[derive(Default)]
struct AckUndoesAReplayOfItsEvent;

spoils! { AckUndoesAReplayOfItsEvent {
    replay(self, real, stream, group, replay) {
        if let Replay::Events(ids) = replay {
            held(&real.beside.of::<Chosen>()).extend(ids);
        }
        real.backend.replay(stream, group, replay).await
    }
    ack(self, real, lease) {
        let mark = real.journal.mark();
        let acked = real.backend.ack(lease).await;
        let is_chosen = held(&real.beside.of::<Chosen>()).contains(&lease.event.id);
        if acked == Err(Error::StaleLease) && is_chosen && was_reopened(real, lease, mark)
            && let Some(again) = claimed_again(real, lease).await?
        {
            return real.store.ack(&again).await;
        }
        acked
    }
} }

#[derive(Default)]
struct RenewalUndoesAReplay;

spoils! { RenewalUndoesAReplay {
    renew(self, real, lease, duration) {
        let mark = real.journal.mark();
        let renewed = real.backend.renew(lease, duration).await;
        if renewed == Err(Error::StaleLease) && was_reopened(real, lease, mark)
            && claimed_again(real, lease).await?.is_some()
        {
            let expires_at = real.now().saturating_add(duration.as_duration());
            return Ok(Lease { expires_at, ..lease.clone() });
        }
        renewed
    }
} }

/// Leases from before a reset, with the claims that they stand for now.
type Kept = Mutex<HashMap<LeaseId, Lease>>;

/// What a lease stands for.
fn kept(real: &Real, lease: &Lease) -> Lease {
    let kept = real.beside.of::<Kept>();
    let stands_for = held(&kept).get(&lease.lease_id).cloned();
    stands_for.unwrap_or_else(|| lease.clone())
}

#[derive(Default)]
struct ResetsDuringFetchesKeepLeases;

spoils! { ResetsDuringFetchesKeepLeases {
    fetch(self, real, stream, group, options) {
        let _fetching = real.beside.of::<UnderWay<GroupName>>().begin(group.clone());
        real.backend.fetch(stream, group, options).await
    }
    reset_group(self, real, stream, group, options) {
        let mut leases = Vec::new();
        if real.beside.of::<UnderWay<GroupName>>().has(group) {
            leases = real.journal.current(stream, group);
            leases.retain(|lease| options.partitions.contains(lease.event.partition));
        }
        real.backend.reset_group(stream, group, options).await?;
        for lease in leases {
            if let Some(again) = claimed_again(real, &lease).await? {
                held(&real.beside.of::<Kept>()).insert(lease.lease_id, again);
            }
        }
        Ok(())
    }
    ack(self, real, lease) {
        real.backend.ack(&kept(real, lease)).await
    }
    retry(self, real, lease, options) {
        real.backend.retry(&kept(real, lease), options).await
    }
    reject(self, real, lease, reason) {
        real.backend.reject(&kept(real, lease), reason).await
    }
} }

#[derive(Default)]
struct FetchesCountOnOverAReplay;

spoils! { FetchesCountOnOverAReplay {
    fetch(self, real, stream, group, options) {
        let mut before = real.journal.last(stream, group);
        before.retain(|entry| entry.what != What::Reopened);
        let mark = real.journal.mark();
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for lease in leases.iter_mut().filter(|lease| lease.attempt == 1) {
            let place = place_of(lease);
            let last = before.iter().find(|entry| place_of(&entry.lease) == place);
            if let Some(last) = last.filter(|_| was_reopened(real, lease, mark)) {
                lease.attempt = last.lease.attempt + 1;
            }
        }
        Ok(leases)
    }
} }

#[derive(Default)]
struct GoingBackLosesWhatIsBeingClaimed;

spoils! { GoingBackLosesWhatIsBeingClaimed {
    replay(self, real, stream, group, replay) {
        let mark = real.journal.mark();
        pause(8).await;
        real.backend.replay(stream, group, replay).await?;
        lose_what_was_claimed(real, stream, group, mark).await
    }
    reset_group(self, real, stream, group, options) {
        let mark = real.journal.mark();
        pause(8).await;
        real.backend.reset_group(stream, group, options).await?;
        lose_what_was_claimed(real, stream, group, mark).await
    }
} }

/// Loses what was claimed since then, and reopened.
async fn lose_what_was_claimed(
    real: &Real,
    stream: &StreamName,
    group: &GroupName,
    mark: usize,
) -> Result<()> {
    for entry in real.journal.since(mark) {
        let is_here = entry.lease.event.stream == *stream && entry.lease.group == *group;
        if is_here
            && entry.what == What::Claimed
            && was_reopened(real, &entry.lease, mark)
            && let Some(again) = claimed_again(real, &entry.lease).await?
        {
            // Whether or not another call lost it meanwhile.
            let _ = lose(real, &again).await;
        }
    }
    Ok(())
}

/// Letters of what was reopened.
type Letters = Mutex<Vec<DeadLetter>>;

#[derive(Default)]
struct ReplaysDuringSettlesKeepLetters;

spoils! { ReplaysDuringSettlesKeepLetters {
    fetch(self, real, stream, group, options) {
        let _busy = real.beside.of::<UnderWay<GroupName>>().begin(group.clone());
        real.backend.fetch(stream, group, options).await
    }
    ack(self, real, lease) {
        let _busy = real.beside.of::<UnderWay<GroupName>>().begin(lease.group.clone());
        real.backend.ack(lease).await
    }
    retry(self, real, lease, options) {
        let _busy = real.beside.of::<UnderWay<GroupName>>().begin(lease.group.clone());
        real.backend.retry(lease, options).await
    }
    reject(self, real, lease, reason) {
        let _busy = real.beside.of::<UnderWay<GroupName>>().begin(lease.group.clone());
        real.backend.reject(lease, reason).await
    }
    renew(self, real, lease, duration) {
        let _busy = real.beside.of::<UnderWay<GroupName>>().begin(lease.group.clone());
        real.backend.renew(lease, duration).await
    }
    replay(self, real, stream, group, replay) {
        let is_busy = real.beside.of::<UnderWay<GroupName>>().has(group);
        let all = DeadLetterOptions::new().with_limit(u32::MAX);
        let mut letters = real.store.dead_letters(stream, group, &all).await?;
        real.backend.replay(stream, group, replay).await?;
        if is_busy {
            let left = real.store.dead_letters(stream, group, &all).await?;
            letters.retain(|letter| !left.contains(letter));
            held(&real.beside.of::<Letters>()).extend(letters);
        }
        Ok(())
    }
    dead_letters(self, real, stream, group, options) {
        let kept = held(&real.beside.of::<Letters>()).clone();
        let is_kept = |id: &EventId| kept.iter().any(|letter| letter.event.id == *id);
        let mut letters = match real.backend.dead_letters(stream, group, options).await {
            Err(Error::CursorNotFound { after }) if is_kept(&after) => Vec::new(),
            letters => letters?,
        };
        for kept in kept.into_iter().filter(|_| options.after.is_none()) {
            let is_new = letters.iter().all(|letter| letter.event.id != kept.event.id);
            if is_new && kept.event.stream == *stream && kept.group == *group {
                letters.push(kept);
            }
        }
        letters.sort_by_key(|letter| (letter.event.partition, letter.event.sequence));
        Ok(letters)
    }
} }

/// Lags that are remembered.
type Remembered = Mutex<HashMap<(StreamName, GroupName), Lag>>;

#[derive(Default)]
struct LagsOutlastAReplay;

spoils! { LagsOutlastAReplay {
    lag(self, real, stream, group) {
        let key = (stream.clone(), group.clone());
        let remembered = real.beside.of::<Remembered>();
        let (before, mark) = (real.store.lag(stream, group).await?, real.journal.mark());
        let mut lag = real.backend.lag(stream, group).await?;
        let is_of = |lease: &Lease| lease.event.stream == *stream && lease.group == *group;
        let since = real.journal.since(mark);
        let overlaps = since.iter().any(|entry| entry.what == What::Reopened && is_of(&entry.lease));
        let last = held(&remembered).remove(&key);
        for (progress, last) in lag.partitions.iter_mut().zip(last.iter().flat_map(|lag| &lag.partitions)) {
            progress.frontier = progress.frontier.max(last.frontier);
        }
        if overlaps {
            held(&remembered).insert(key, before);
        }
        Ok(lag)
    }
} }

#[derive(Default)]
struct ReplaysReachTheGroupThatSettles;

spoils! { ReplaysReachTheGroupThatSettles {
    ack(self, real, lease) {
        let _settling = real.beside.of::<UnderWay<Place>>().begin(place_of(lease));
        real.backend.ack(lease).await
    }
    retry(self, real, lease, options) {
        let _settling = real.beside.of::<UnderWay<Place>>().begin(place_of(lease));
        real.backend.retry(lease, options).await
    }
    replay(self, real, stream, group, replay) {
        let settling = real.beside.of::<UnderWay<Place>>().all();
        real.backend.replay(stream, group, replay).await?;
        for (of, other, ..) in settling {
            if of == *stream && other != *group {
                real.store.replay(stream, &other, replay).await?;
            }
        }
        Ok(())
    }
} }
