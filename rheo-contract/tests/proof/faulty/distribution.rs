//! Defects that the cases of `distribution` are there for.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, Event, EventId, FetchOptions, GroupName, Lag, Lease,
    LeaseDuration, LeaseId, NewEvent, ReadOptions, Reason, Replay, ResetOptions, Result,
    RetryOptions, RetryOutcome, StreamName, Timestamp, async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        MissingStreamsAreRemembered: "a handle that found a stream missing does not look again",
        says: "the last operation to succeed",
        kills: ["distribution::DST-1::a_stream_made_elsewhere_is_there"],
    },
    faulty! {
        MissingGroupsAreRemembered: "a handle that found a group missing does not look again",
        says: "the last operation to succeed",
        kills: ["distribution::DST-1::a_group_made_elsewhere_is_there"],
    },
    faulty! {
        ClaimsLiveInTheHandle: "a handle hands out what another one has claimed",
        says: "the claimed sequences",
        kills: [
            "distribution::DST-1::two_handles_share_the_events",
            "distribution::DST-1::concurrent_fetches_of_two_handles_claim_each_event_once",
        ],
    },
    faulty! {
        RenewsWhatItGave: "a handle renews the leases that it has given until it settles or replaces them itself",
        says: "Err(StaleLease)",
        kills: [
            "distribution::DST-1::a_lease_settled_elsewhere_is_stale",
            "distribution::DST-1::a_lease_replaced_elsewhere_is_stale",
        ],
    },
    faulty! {
        RepeatedAcksAreFine: "an ack that is repeated on one handle is Ok",
        says: "the settles that won",
        kills: ["distribution::DST-1::of_settles_on_two_handles_one_wins"],
    },
    faulty! {
        ReclaimsByTheExpiryItGave: "a handle reclaims its leases by the expiry that it gave them",
        says: "no claimable event",
        kills: ["distribution::DST-1::a_lease_renewed_elsewhere_is_not_reclaimed"],
    },
    faulty! {
        TheEndIsRemembered: "a handle that found nothing claimable does not look again before it changes something",
        says: "the claimable sequences",
        kills: ["distribution::DST-1::an_append_elsewhere_is_fetched"],
    },
    faulty! {
        OwnAcksAreForEver: "a handle does not hand out again what it has acked, unless it replays itself",
        says: "the claimable sequences",
        kills: ["distribution::DST-1::a_replay_elsewhere_is_seen"],
    },
    faulty! {
        LagIsRemembered: "a handle computes lag again just when it has changed something itself",
        says: "the frontier",
        kills: ["distribution::DST-1::progress_is_the_same_on_both"],
    },
    faulty! {
        DeadLettersLiveInTheHandle: "a handle gives just the dead letters that it has rejected itself",
        says: "the number of dead letters",
        kills: ["distribution::DST-1::dead_letters_are_the_same_on_both"],
    },
];

#[derive(Default)]
struct MissingStreamsAreRemembered(Mutex<HashSet<StreamName>>);

impl MissingStreamsAreRemembered {
    fn remember<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(Error::StreamNotFound { stream }) = &result {
            self.0.lock().expect("not poisoned").insert(stream.clone());
        }
        result
    }
    fn look(&self, stream: &StreamName) -> Result<()> {
        if self.0.lock().expect("not poisoned").contains(stream) {
            let stream = stream.clone();
            return Err(Error::StreamNotFound { stream });
        }
        Ok(())
    }
}

#[async_trait]
impl Defect for MissingStreamsAreRemembered {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &rheo_core::StreamOptions,
    ) -> Result<()> {
        self.0.lock().expect("not poisoned").remove(stream);
        real.backend.create_stream(stream, options).await
    }
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        real.backend.ping().await?;
        self.look(stream)?;
        self.remember(real.backend.append_batch(stream, events).await)
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        real.backend.ping().await?;
        self.look(stream)?;
        self.remember(real.backend.read(stream, options).await)
    }
}

#[derive(Default)]
struct MissingGroupsAreRemembered(Mutex<HashSet<(StreamName, GroupName)>>);

#[async_trait]
impl Defect for MissingGroupsAreRemembered {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &rheo_core::GroupOptions,
    ) -> Result<()> {
        let name = (stream.clone(), group.clone());
        self.0.lock().expect("not poisoned").remove(&name);
        real.backend.create_group(stream, group, options).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        real.backend.ping().await?;
        let name = (stream.clone(), group.clone());
        let missing = Error::GroupNotFound {
            stream: stream.clone(),
            group: group.clone(),
        };
        if self.0.lock().expect("not poisoned").contains(&name) {
            return Err(missing);
        }
        let fetched = real.backend.fetch(stream, group, options).await;
        if fetched == Err(missing) {
            self.0.lock().expect("not poisoned").insert(name);
        }
        fetched
    }
}

/// Before a fetch, reopens what was delivered, but not by this handle.
#[derive(Default)]
struct ClaimsLiveInTheHandle(Mutex<HashSet<(GroupName, EventId)>>);

#[async_trait]
impl Defect for ClaimsLiveInTheHandle {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let other = |event: &Event| {
            let own = self.0.lock().expect("not poisoned");
            !own.contains(&(group.clone(), event.id))
        };
        if options.limit > 0 && !self.0.lock().expect("not poisoned").is_empty() {
            let all = ReadOptions::new().with_limit(u32::MAX);
            let events = real.backend.read(stream, &all).await?;
            let others = events.into_iter().filter(other).map(|event| event.id);
            let reopened = Replay::Events(others.collect());
            real.backend.replay(stream, group, &reopened).await?;
        }
        let leases = real.backend.fetch(stream, group, options).await?;
        let mut own = self.0.lock().expect("not poisoned");
        own.extend(leases.iter().map(|lease| (group.clone(), lease.event.id)));
        Ok(leases)
    }
}

/// What the handle believes to be the current claims.
#[derive(Default)]
struct RenewsWhatItGave(Mutex<HashMap<(GroupName, EventId), LeaseId>>);

impl RenewsWhatItGave {
    fn forget(&self, lease: &Lease) {
        let event = (lease.group.clone(), lease.event.id);
        self.0.lock().expect("not poisoned").remove(&event);
    }
    fn holds(&self, lease: &Lease) -> bool {
        let event = (lease.group.clone(), lease.event.id);
        let held = self.0.lock().expect("not poisoned");
        held.get(&event) == Some(&lease.lease_id)
    }
}

#[async_trait]
impl Defect for RenewsWhatItGave {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        let mut held = self.0.lock().expect("not poisoned");
        let claim = |lease: &Lease| ((group.clone(), lease.event.id), lease.lease_id.clone());
        held.extend(leases.iter().map(claim));
        Ok(leases)
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        match real.backend.renew(lease, duration).await {
            Err(Error::StaleLease) if self.holds(lease) => Ok(lease.clone()),
            renewed => renewed,
        }
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        self.forget(lease);
        real.backend.ack(lease).await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        self.forget(lease);
        real.backend.retry(lease, options).await
    }
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        self.forget(lease);
        real.backend.reject(lease, reason).await
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        self.0.lock().expect("not poisoned").clear();
        real.backend.replay(stream, group, replay).await
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        self.0.lock().expect("not poisoned").clear();
        real.backend.reset_group(stream, group, options).await
    }
}

#[derive(Default)]
struct RepeatedAcksAreFine(Mutex<HashSet<LeaseId>>);

#[async_trait]
impl Defect for RepeatedAcksAreFine {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let is_new = self.0.lock().expect("not poisoned").insert(lease.lease_id.clone());
        match real.backend.ack(lease).await {
            Err(Error::StaleLease) if !is_new => Ok(()),
            acked => acked,
        }
    }
}

#[derive(Default)]
struct ReclaimsByTheExpiryItGave(Mutex<Vec<Lease>>);

#[async_trait]
impl Defect for ReclaimsByTheExpiryItGave {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut expired = std::mem::take(&mut *self.0.lock().expect("not poisoned"));
        let now = real.now();
        let held: Vec<Lease> = expired.extract_if(.., |lease| lease.expires_at > now).collect();
        self.0.lock().expect("not poisoned").extend(held);
        for lease in expired {
            let again = RetryOptions::new();
            let _ = real.backend.retry(&lease, &again).await;
        }
        let leases = real.backend.fetch(stream, group, options).await?;
        self.0.lock().expect("not poisoned").extend(leases.iter().cloned());
        Ok(leases)
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = real.backend.renew(lease, duration).await?;
        for held in &mut *self.0.lock().expect("not poisoned") {
            if held.lease_id == renewed.lease_id {
                held.expires_at = renewed.expires_at;
            }
        }
        Ok(renewed)
    }
}

#[derive(Default)]
struct TheEndIsRemembered(Mutex<HashMap<(StreamName, GroupName), Timestamp>>);

impl TheEndIsRemembered {
    fn look_again(&self) {
        self.0.lock().expect("not poisoned").clear();
    }
}

#[async_trait]
impl Defect for TheEndIsRemembered {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        self.look_again();
        real.backend.append_batch(stream, events).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let name = (stream.clone(), group.clone());
        let leases = real.backend.fetch(stream, group, &options.clone().with_limit(0)).await?;
        let end = self.0.lock().expect("not poisoned").get(&name).copied();
        if end == Some(real.now()) {
            return Ok(leases);
        }
        let leases = real.backend.fetch(stream, group, options).await?;
        if leases.is_empty() && options.limit > 0 && options.partitions == Default::default() {
            self.0.lock().expect("not poisoned").insert(name, real.now());
        }
        Ok(leases)
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        self.look_again();
        real.backend.retry(lease, options).await
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        self.look_again();
        real.backend.renew(lease, duration).await
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        self.look_again();
        real.backend.replay(stream, group, replay).await
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        self.look_again();
        real.backend.reset_group(stream, group, options).await
    }
}

#[derive(Default)]
struct OwnAcksAreForEver(Mutex<HashSet<(GroupName, EventId)>>);

#[async_trait]
impl Defect for OwnAcksAreForEver {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        let acked = (lease.group.clone(), lease.event.id);
        self.0.lock().expect("not poisoned").insert(acked);
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
        let acked = self.0.lock().expect("not poisoned");
        leases.retain(|lease| {
            lease.event.stream != *stream || !acked.contains(&(group.clone(), lease.event.id))
        });
        Ok(leases)
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        self.0.lock().expect("not poisoned").clear();
        real.backend.replay(stream, group, replay).await
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        self.0.lock().expect("not poisoned").clear();
        real.backend.reset_group(stream, group, options).await
    }
}

#[derive(Default)]
struct LagIsRemembered(Mutex<HashMap<(StreamName, GroupName), Lag>>);

impl LagIsRemembered {
    fn look_again(&self) {
        self.0.lock().expect("not poisoned").clear();
    }
}

#[async_trait]
impl Defect for LagIsRemembered {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        self.look_again();
        real.backend.append_batch(stream, events).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.look_again();
        real.backend.fetch(stream, group, options).await
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        self.look_again();
        real.backend.ack(lease).await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        self.look_again();
        real.backend.retry(lease, options).await
    }
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        self.look_again();
        real.backend.reject(lease, reason).await
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        self.look_again();
        real.backend.replay(stream, group, replay).await
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        self.look_again();
        real.backend.reset_group(stream, group, options).await
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let lag = real.backend.lag(stream, group).await?;
        let mut known = self.0.lock().expect("not poisoned");
        let name = (stream.clone(), group.clone());
        Ok(known.entry(name).or_insert(lag).clone())
    }
}

#[derive(Default)]
struct DeadLettersLiveInTheHandle(Mutex<HashSet<EventId>>);

#[async_trait]
impl Defect for DeadLettersLiveInTheHandle {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(lease, reason).await?;
        self.0.lock().expect("not poisoned").insert(lease.event.id);
        Ok(())
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        let own = self.0.lock().expect("not poisoned");
        // What other rules made of it is not this handle's doing either, and stays.
        dead.retain(|letter| letter.attempt > 1 || own.contains(&letter.event.id));
        Ok(dead)
    }
}
