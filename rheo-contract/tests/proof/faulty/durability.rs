//! Defects that the cases of `durability` are there for.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use rheo_core::{
    Cursor, DeadLetter, DeadLetterOptions, Error, ErrorKind, Event, EventId, Existing,
    FetchOptions, GroupName, GroupOptions, Lag, Lease, LeaseDuration, LeaseId, NewEvent, Page,
    Partition, Query, ReadOptions, Replay, ResetOptions, Result, RetryDelay, RetryOptions,
    RetryOutcome, Sequence, Start, StreamName, StreamOptions, async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        TheTailIsNotWritten: "the last event of a partition is gone after a restart",
        says: "the log",
        kills: [
            "durability::DUR-1::events_survive",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "durability::DUR-1::sequences_go_on",
            "durability::DUR-1::taken_ids_stay_taken",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
        ],
    },
    faulty! {
        SequencesLiveInTheHandle: "each handle counts the sequences that it gives",
        says: "the sequences",
        kills: [
            "durability::DUR-1::sequences_go_on",
            "distribution::DST-1::concurrent_appends_of_two_handles_leave_no_gap",
            "distribution::DST-1::keys_go_to_the_same_partition_on_both",
            "distribution::DST-1::two_handles_append_to_one_log",
        ],
    },
    faulty! {
        PartitionsLiveInTheHandle: "a handle takes a stream that it did not make for one of a single partition",
        says: "the partition",
        kills: [
            "durability::DUR-1::partitions_survive",
            "distribution::DST-1::keys_go_to_the_same_partition_on_both",
        ],
    },
    faulty! {
        IdsLiveInTheHandle: "a handle refuses just the ids that it has appended itself",
        says: "Err(AlreadyExists)",
        kills: [
            "durability::DUR-1::taken_ids_stay_taken",
            "distribution::DST-1::an_id_taken_elsewhere_is_taken",
        ],
    },
    faulty! {
        NamesLiveInTheHandle: "a handle refuses just the names that it has made itself",
        says: "Err(AlreadyExists)",
        kills: [
            "durability::DUR-1::names_stay_taken",
            "distribution::DST-1::a_name_taken_elsewhere_is_taken",
            "distribution::DST-1::of_creators_on_two_handles_one_wins",
        ],
    },
    faulty! {
        DeliveriesAreForgotten: "after a restart a group begins again",
        says: "claimable",
        kills: [
            "durability::DUR-1::what_is_settled_stays_settled",
            "durability::DUR-1::a_lease_survives",
            "durability::DUR-1::a_replay_survives",
            "durability::DUR-1::a_reset_survives",
            "durability::DUR-1::attempts_survive",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "durability::DUR-1::max_attempts_survives",
            "durability::DUR-1::names_stay_taken",
            "durability::DUR-1::starts_survive",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        LeasesLiveInTheHandle: "a handle settles just the leases that it has given",
        says: "the last operation to succeed",
        kills: [
            "durability::DUR-1::a_lease_survives",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "distribution::DST-1::a_lease_settled_elsewhere_is_stale",
            "distribution::DST-1::concurrent_fetches_of_two_handles_claim_each_event_once",
            "distribution::DST-1::progress_is_the_same_on_both",
            "distribution::DST-1::two_handles_share_the_events",
            "durability::DUR-1::a_stale_lease_stays_stale",
            "durability::DUR-1::frontiers_survive",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "durability::DUR-1::what_is_settled_stays_settled",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        CloseGivesLeasesBack: "closing gives the handle's leases back",
        says: "the claimable sequences",
        kills: [
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "durability::DUR-1::a_lease_survives",
            "durability::DUR-1::a_stale_lease_stays_stale",
            "durability::DUR-1::frontiers_survive",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "durability::DUR-1::what_is_settled_stays_settled",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        UnknownLeasesAreFine: "after a restart an ack of any lease is Ok",
        says: "Err(StaleLease)",
        kills: [
            "durability::DUR-1::a_stale_lease_stays_stale",
            "durability::DUR-1::a_reset_survives",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "durability::DUR-1::what_is_settled_stays_settled",
        ],
    },
    faulty! {
        RenewalsAreNotWritten: "a lease ends when it would have ended without the renewals by a handle that was closed",
        says: "the claimable sequences",
        kills: ["durability::DUR-1::renewals_survive"],
    },
    faulty! {
        AttemptsLiveInTheHandle: "each handle counts the attempts that it has given",
        says: "the attempt",
        kills: [
            "durability::DUR-1::attempts_survive",
            "distribution::DST-1::a_lease_replaced_elsewhere_is_stale",
            "distribution::DST-1::a_retry_elsewhere_counts_as_an_attempt",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        MaxAttemptsLivesInTheHandle: "a handle never gives up in groups that it did not make",
        says: "the outcome",
        kills: [
            "durability::DUR-1::max_attempts_survives",
            "distribution::DST-1::max_attempts_hold_on_every_handle",
        ],
    },
    faulty! {
        DelaysEndAtClose: "closing ends the delays of the handle's retries",
        says: "the claimable sequences",
        kills: ["durability::DUR-1::the_delay_of_a_retry_survives"],
    },
    faulty! {
        StartsEndAtClose: "after a restart groups start at the beginning",
        says: "the claimable sequences",
        kills: ["durability::DUR-1::starts_survive"],
    },
    faulty! {
        DeadLettersAreForgotten: "after a restart there are no dead letters",
        says: "the dead letters",
        kills: ["durability::DUR-1::dead_letters_survive"],
    },
    faulty! {
        FrontierIsForgotten: "after a restart the frontier is at the beginning",
        says: "the lag",
        kills: ["durability::DUR-1::frontiers_survive"],
    },
    faulty! {
        CloseWritesThePositionBack: "closing writes the highest claimed position back",
        says: "the claimable sequences",
        kills: [
            "durability::DUR-1::a_replay_survives",
            "durability::DUR-1::a_reset_survives",
        ],
    },
    faulty! {
        CursorsLiveInTheHandle: "a handle knows just the cursors that it has given",
        says: "the last operation to succeed",
        kills: [
            "durability::DUR-1::a_cursor_survives",
            "distribution::DST-1::a_cursor_goes_on_elsewhere",
            "queries::QRY-3::a_cursor_is_valid_on_every_handle",
        ],
    },
    faulty! {
        IndexesAnewAfterARestart: "making indexes after a restart empties the log",
        says: "the log",
        kills: ["durability::DUR-1::making_indexes_after_a_restart_loses_nothing"],
    },
];

/// A stream stands for what the store keeps: that a handle was closed.
fn restart() -> StreamName {
    StreamName::new("there was a restart").expect("allowed")
}

async fn note_restart(real: &Real) -> Result<()> {
    let options = StreamOptions::new();
    let _ = real.backend.create_stream(&restart(), &options).await;
    real.backend.close().await
}

async fn was_restarted(real: &Real) -> bool {
    let read = real.backend.read(&restart(), &ReadOptions::new()).await;
    read.is_ok()
}

#[derive(Default)]
struct TheTailIsNotWritten;

#[async_trait]
impl Defect for TheTailIsNotWritten {
    async fn close(&self, real: &Real) -> Result<()> {
        note_restart(real).await
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        if was_restarted(real).await {
            events.pop();
        }
        Ok(events)
    }
}

#[derive(Default)]
struct SequencesLiveInTheHandle(Mutex<HashMap<(StreamName, Partition), Sequence>>);

#[async_trait]
impl Defect for SequencesLiveInTheHandle {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.append_batch(stream, events).await?;
        let mut last = self.0.lock().expect("not poisoned");
        for event in &mut events {
            let last = last.entry((stream.clone(), event.partition)).or_default();
            *last = last.next();
            event.sequence = *last;
        }
        Ok(events)
    }
}

/// Names that the handle has made.
#[derive(Default)]
struct Own(Mutex<HashSet<String>>);

impl Own {
    fn add(&self, name: impl Into<String>) {
        self.0.lock().expect("not poisoned").insert(name.into());
    }
    fn has(&self, name: &str) -> bool {
        self.0.lock().expect("not poisoned").contains(name)
    }
}

#[derive(Default)]
struct PartitionsLiveInTheHandle(Own);

#[async_trait]
impl Defect for PartitionsLiveInTheHandle {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        self.0.add(stream.as_str());
        real.backend.create_stream(stream, options).await
    }
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        for event in events.iter_mut().filter(|event| event.key.is_some()) {
            if !self.0.has(stream.as_str()) {
                event.partition.get_or_insert(Partition::ZERO);
            }
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
struct IdsLiveInTheHandle(Mutex<HashSet<EventId>>);

#[async_trait]
impl Defect for IdsLiveInTheHandle {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let mut appended = real.backend.append_batch(stream, events.clone()).await;
        if let Err(Error::AlreadyExists(Existing::Event(id))) = &appended {
            let is_own = self.0.lock().expect("not poisoned").contains(id);
            let twice = events.iter().filter(|event| event.id == Some(*id)).count() > 1;
            if !is_own && !twice {
                for event in &mut events {
                    event.id = None;
                }
                appended = real.backend.append_batch(stream, events).await;
            }
        }
        let new = appended.iter().flatten().map(|event| event.id);
        self.0.lock().expect("not poisoned").extend(new);
        appended
    }
}

#[derive(Default)]
struct NamesLiveInTheHandle(Own);

#[async_trait]
impl Defect for NamesLiveInTheHandle {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let is_own = self.0.has(stream.as_str());
        self.0.add(stream.as_str());
        match real.backend.create_stream(stream, options).await {
            Err(Error::AlreadyExists(_)) if !is_own => Ok(()),
            created => created,
        }
    }
}

/// Whether this handle has seen to a group since the restart.
#[derive(Default)]
struct DeliveriesAreForgotten(Own);

#[async_trait]
impl Defect for DeliveriesAreForgotten {
    async fn close(&self, real: &Real) -> Result<()> {
        note_restart(real).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let name = format!("{stream:?}{group:?}");
        if was_restarted(real).await && !self.0.has(&name) {
            let again = ResetOptions::new();
            real.backend.reset_group(stream, group, &again).await?;
            self.0.add(name);
        }
        real.backend.fetch(stream, group, options).await
    }
}

/// The leases that a handle has given.
#[derive(Default)]
struct Given(Mutex<Vec<Lease>>);

impl Given {
    fn add(&self, leases: &[Lease]) {
        let mut given = self.0.lock().expect("not poisoned");
        given.extend(leases.iter().cloned());
    }
    fn all(&self) -> Vec<Lease> {
        self.0.lock().expect("not poisoned").clone()
    }
    fn has(&self, id: &LeaseId) -> bool {
        let given = self.0.lock().expect("not poisoned");
        given.iter().any(|lease| lease.lease_id == *id)
    }
}

#[derive(Default)]
struct LeasesLiveInTheHandle(Given);

#[async_trait]
impl Defect for LeasesLiveInTheHandle {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        self.0.add(&leases);
        Ok(leases)
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ping().await?;
        if !self.0.has(&lease.lease_id) {
            return Err(Error::StaleLease);
        }
        real.backend.ack(lease).await
    }
}

#[derive(Default)]
struct CloseGivesLeasesBack(Given);

#[async_trait]
impl Defect for CloseGivesLeasesBack {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        self.0.add(&leases);
        Ok(leases)
    }
    async fn close(&self, real: &Real) -> Result<()> {
        for lease in self.0.all() {
            let _ = real.backend.retry(&lease, &RetryOptions::new()).await;
        }
        real.backend.close().await
    }
}

#[derive(Default)]
struct UnknownLeasesAreFine;

#[async_trait]
impl Defect for UnknownLeasesAreFine {
    async fn close(&self, real: &Real) -> Result<()> {
        note_restart(real).await
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        match real.backend.ack(lease).await {
            Err(Error::StaleLease) if was_restarted(real).await => Ok(()),
            acked => acked,
        }
    }
}

#[derive(Default)]
struct AttemptsLiveInTheHandle(Mutex<HashMap<(GroupName, EventId), u32>>);

#[async_trait]
impl Defect for AttemptsLiveInTheHandle {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        let mut attempts = self.0.lock().expect("not poisoned");
        for lease in leases.iter_mut().filter(|lease| lease.attempt > 1) {
            let given = attempts.get(&(group.clone(), lease.event.id));
            lease.attempt = given.map_or(1, |given| given + 1);
        }
        for lease in &leases {
            attempts.insert((group.clone(), lease.event.id), lease.attempt);
        }
        Ok(leases)
    }
}

#[derive(Default)]
struct MaxAttemptsLivesInTheHandle(Own);

#[async_trait]
impl Defect for MaxAttemptsLivesInTheHandle {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.0.add(format!("{stream:?}{group:?}"));
        real.backend.create_group(stream, group, options).await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let outcome = real.backend.retry(lease, options).await?;
        let (stream, group) = (&lease.event.stream, &lease.group);
        if outcome == RetryOutcome::DeadLettered && !self.0.has(&format!("{stream:?}{group:?}")) {
            let again = Replay::Events(vec![lease.event.id]);
            real.backend.replay(stream, group, &again).await?;
            return Ok(RetryOutcome::Retrying);
        }
        Ok(outcome)
    }
}

#[derive(Default)]
struct DelaysEndAtClose(Given);

#[async_trait]
impl Defect for DelaysEndAtClose {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let outcome = real.backend.retry(lease, options).await?;
        if options.delay != RetryDelay::NONE {
            self.0.add(std::slice::from_ref(lease));
        }
        Ok(outcome)
    }
    async fn close(&self, real: &Real) -> Result<()> {
        for Lease { event, group, .. } in self.0.all() {
            let again = Replay::Events(vec![event.id]);
            let _ = real.backend.replay(&event.stream, &group, &again).await;
        }
        real.backend.close().await
    }
}

#[derive(Default)]
struct StartsEndAtClose(Mutex<Vec<(StreamName, GroupName)>>);

#[async_trait]
impl Defect for StartsEndAtClose {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        if options.start != Start::Beginning {
            let mut groups = self.0.lock().expect("not poisoned");
            groups.push((stream.clone(), group.clone()));
        }
        Ok(())
    }
    async fn close(&self, real: &Real) -> Result<()> {
        let groups = self.0.lock().expect("not poisoned").clone();
        for (stream, group) in groups {
            let replay = Replay::after(Sequence::ZERO);
            let _ = real.backend.replay(&stream, &group, &replay).await;
        }
        real.backend.close().await
    }
}

#[derive(Default)]
struct DeadLettersAreForgotten;

#[async_trait]
impl Defect for DeadLettersAreForgotten {
    async fn close(&self, real: &Real) -> Result<()> {
        note_restart(real).await
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        if was_restarted(real).await {
            dead.clear();
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct FrontierIsForgotten;

#[async_trait]
impl Defect for FrontierIsForgotten {
    async fn close(&self, real: &Real) -> Result<()> {
        note_restart(real).await
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        if was_restarted(real).await {
            for partition in &mut lag.partitions {
                partition.frontier = Sequence::ZERO;
            }
        }
        Ok(lag)
    }
}

#[derive(Default)]
struct CloseWritesThePositionBack(Mutex<Vec<(StreamName, GroupName)>>);

impl CloseWritesThePositionBack {
    fn note(&self, stream: &StreamName, group: &GroupName) {
        let mut groups = self.0.lock().expect("not poisoned");
        groups.push((stream.clone(), group.clone()));
    }
}

#[async_trait]
impl Defect for CloseWritesThePositionBack {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        self.note(stream, group);
        real.backend.replay(stream, group, replay).await
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        self.note(stream, group);
        real.backend.reset_group(stream, group, options).await
    }
    async fn close(&self, real: &Real) -> Result<()> {
        let groups = self.0.lock().expect("not poisoned").clone();
        for (stream, group) in groups {
            let end = ResetOptions::new().with_start(Start::End);
            let _ = real.backend.reset_group(&stream, &group, &end).await;
        }
        real.backend.close().await
    }
}

#[derive(Default)]
struct CursorsLiveInTheHandle(Mutex<HashSet<Cursor>>);

#[async_trait]
impl Defect for CursorsLiveInTheHandle {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let queried = real.backend.query(stream, query).await;
        let mut known = self.0.lock().expect("not poisoned");
        let unknown = query
            .cursor
            .as_ref()
            .filter(|cursor| !known.contains(cursor));
        if let Some(cursor) = unknown
            && !matches!(&queried, Err(error) if error.kind() != ErrorKind::Invalid)
        {
            return Err(Error::invalid("cursor", cursor, "a cursor of this session"));
        }
        known.extend(queried.iter().filter_map(|page| page.next.clone()));
        queried
    }
}

#[derive(Default)]
struct IndexesAnewAfterARestart(Own);

#[async_trait]
impl Defect for IndexesAnewAfterARestart {
    async fn close(&self, real: &Real) -> Result<()> {
        note_restart(real).await
    }
    async fn ensure_indexes(&self, real: &Real) -> Result<()> {
        if was_restarted(real).await {
            self.0.add("emptied");
        }
        real.backend.ensure_indexes().await
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        if self.0.has("emptied") {
            events.clear();
        }
        Ok(events)
    }
}

/// Leases as they were before they were renewed first.
#[derive(Default)]
struct RenewalsAreNotWritten(Mutex<HashMap<LeaseId, Lease>>);

#[async_trait]
impl Defect for RenewalsAreNotWritten {
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = real.backend.renew(lease, duration).await?;
        let mut before = self.0.lock().expect("no defect panics");
        before
            .entry(lease.lease_id.clone())
            .or_insert_with(|| lease.clone());
        Ok(renewed)
    }
    async fn close(&self, real: &Real) -> Result<()> {
        let before = std::mem::take(&mut *self.0.lock().expect("no defect panics"));
        for lease in before.into_values() {
            let left = lease.expires_at.saturating_since(real.now());
            let left = LeaseDuration::new(left.max(std::time::Duration::from_micros(1)))?;
            // It may be settled by now.
            let _ = real.backend.renew(&lease, left).await;
        }
        real.backend.close().await
    }
}
