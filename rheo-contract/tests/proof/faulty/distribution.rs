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
            "delivery::DLV-2::a_group_starts_in_each_of_twelve_partitions",
            "delivery::DLV-2::a_start_after_a_sequence_is_exclusive",
            "delivery::DLV-2::a_start_after_a_sequence_is_for_every_partition",
            "delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence",
            "delivery::DLV-2::a_start_at_a_time_is_before_the_first_event_of_that_time",
            "delivery::DLV-2::a_start_at_a_time_is_found_per_partition",
            "delivery::DLV-2::a_start_at_a_time_may_be_a_thousand_events_back",
            "delivery::DLV-2::a_start_at_the_end_gets_all_that_comes_later",
            "delivery::DLV-2::a_start_is_fixed_when_the_group_is_made",
            "delivery::DLV-2::a_start_may_name_a_sequence_per_partition",
            "distribution::DST-1::a_reset_elsewhere_is_seen",
            "distribution::DST-1::concurrent_fetches_of_two_handles_claim_each_event_once",
            "durability::DUR-1::a_replay_survives",
            "durability::DUR-1::a_reset_survives",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "durability::DUR-1::starts_survive",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "durability::DUR-1::what_is_settled_stays_settled",
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "partitions::DLV-2::each_partition_has_its_own_start",
            "partitions::DLV-2::the_end_is_each_partitions_own",
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-4::a_chosen_event_below_the_start_is_delivered",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "reset::RPL-5::a_group_that_was_reset_forward_can_be_replayed",
            "reset::RPL-5::a_start_is_checked_in_the_selected_partitions_alone",
            "reset::RPL-5::reset_may_go_forward",
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "reset::RPL-6::reset_leaves_other_groups_alone",
            "wakeup::OPS-4::chosen_events_are_told",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        RenewsWhatItGave: "a handle renews the leases that it has given until it settles or replaces them itself",
        says: "Err(StaleLease)",
        kills: [
            "distribution::DST-1::a_lease_settled_elsewhere_is_stale",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "distribution::DST-1::a_lease_replaced_elsewhere_is_stale",
            "leases::LSE-2::a_lease_is_of_its_sequence_alone",
            "leases::LSE-2::a_lease_of_something_that_is_not_there_is_stale",
            "leases::LSE-2::the_other_fields_of_a_lease_are_not_compared",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
        ],
    },
    faulty! {
        RepeatedAcksAreFine: "an ack that is repeated on one handle is Ok",
        says: "the settles that won",
        kills: [
            "distribution::DST-1::of_settles_on_two_handles_one_wins",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::hundreds_of_leases_are_over_after_one_batch",
            "batches::LSE-8::hundreds_of_leases_settle_in_one_batch",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_is_of_its_sequence_alone",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "leases::LSE-2::a_lease_of_something_that_is_not_there_is_stale",
            "leases::LSE-2::a_replaced_lease_settles_nothing",
            "leases::LSE-2::a_retried_lease_is_stale",
            "leases::LSE-2::an_acked_lease_is_stale",
            "leases::LSE-2::the_other_fields_of_a_lease_are_not_compared",
            "leases::LSE-6::a_copy_from_before_a_renewal_still_settles",
            "leases::LSE-7::a_lease_is_settled_once",
            "leases::LSE-7::of_concurrent_settles_one_wins",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
            "streams::STR-2::stream_and_group_are_not_run_together",
        ],
    },
    faulty! {
        ReclaimsByTheExpiryItGave: "a handle reclaims its leases by the expiry that it gave them",
        says: "no claimable event",
        kills: [
            "distribution::DST-1::a_lease_renewed_elsewhere_is_not_reclaimed",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "inspect::OPS-3::group_info_counts_expired_leases_that_nobody_reclaimed",
            "leases::LSE-4::a_fetch_from_elsewhere_takes_no_lease_away",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
            "leases::LSE-4::an_expired_lease_holds_until_it_is_reclaimed_itself",
            "leases::LSE-4::what_was_found_expired_is_leased_when_the_clock_goes_back",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
        ],
    },
    faulty! {
        TheEndIsRemembered: "a handle that found nothing claimable does not look again before it changes something",
        says: "the claimable sequences",
        kills: [
            "distribution::DST-1::an_append_elsewhere_is_fetched",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "distribution::DST-1::a_reset_elsewhere_is_seen",
        ],
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
        kills: [
            "distribution::DST-1::dead_letters_are_the_same_on_both",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "durability::DUR-1::dead_letters_survive",
            "log::LOG-4::a_dead_letter_stays_in_the_log",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
        ],
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
        let is_new = self
            .0
            .lock()
            .expect("not poisoned")
            .insert(lease.lease_id.clone());
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
        let held: Vec<Lease> = expired
            .extract_if(.., |lease| lease.expires_at > now)
            .collect();
        self.0.lock().expect("not poisoned").extend(held);
        for lease in expired {
            let again = RetryOptions::new();
            let _ = real.backend.retry(&lease, &again).await;
        }
        let leases = real.backend.fetch(stream, group, options).await?;
        self.0
            .lock()
            .expect("not poisoned")
            .extend(leases.iter().cloned());
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
        let leases = real
            .backend
            .fetch(stream, group, &options.clone().with_limit(0))
            .await?;
        let end = self.0.lock().expect("not poisoned").get(&name).copied();
        if end == Some(real.now()) {
            return Ok(leases);
        }
        let leases = real.backend.fetch(stream, group, options).await?;
        if leases.is_empty() && options.limit > 0 && options.partitions == Default::default() {
            self.0
                .lock()
                .expect("not poisoned")
                .insert(name, real.now());
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
