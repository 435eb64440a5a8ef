//! Lease ids that come again or can be guessed.

use std::sync::atomic::{AtomicU64, Ordering};

use rheo_core::{Lease, LeaseId, Timestamp};

use crate::faulty::Faulty;
use crate::tweak::{Aliases, Step, Tweak, place_of};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        LeaseIdIsEventAndAttempt: "the lease id is made of the event and the attempt",
        says: "the number of lease ids",
        kills: [
            "leases::LSE-1::every_claim_has_a_lease_id_of_its_own",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "distribution::DST-1::a_lease_renewed_elsewhere_is_not_reclaimed",
            "distribution::DST-1::a_lease_settled_elsewhere_is_stale",
            "distribution::DST-1::concurrent_fetches_of_two_handles_claim_each_event_once",
            "distribution::DST-1::progress_is_the_same_on_both",
            "distribution::DST-1::two_handles_share_the_events",
            "durability::DUR-1::a_lease_survives",
            "durability::DUR-1::a_stale_lease_stays_stale",
            "durability::DUR-1::frontiers_survive",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "durability::DUR-1::what_is_settled_stays_settled",
            "leases::LSE-1::a_lease_id_cannot_be_guessed_from_another",
            "leases::LSE-1::a_replayed_event_gets_a_new_lease_id",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_is_of_its_group_alone",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "streams::STR-2::group_names_never_collide",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        LeaseIdIsTheClaim: "the lease id is made of all that the claim is about, and its attempt",
        says: "the number of lease ids of three claims to be 3",
        kills: [
            "leases::LSE-1::a_replayed_event_gets_a_new_lease_id",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "distribution::DST-1::a_lease_renewed_elsewhere_is_not_reclaimed",
            "distribution::DST-1::a_lease_settled_elsewhere_is_stale",
            "distribution::DST-1::concurrent_fetches_of_two_handles_claim_each_event_once",
            "distribution::DST-1::progress_is_the_same_on_both",
            "distribution::DST-1::two_handles_share_the_events",
            "durability::DUR-1::a_lease_survives",
            "durability::DUR-1::a_stale_lease_stays_stale",
            "durability::DUR-1::frontiers_survive",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "durability::DUR-1::what_is_settled_stays_settled",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "durability::DUR-1::renewals_survive",
        ],
    },
    faulty! {
        LeaseIdIsACounter: "the lease id is a counter",
        says: "differ in at least 8 characters",
        kills: [
            "leases::LSE-1::a_lease_id_cannot_be_guessed_from_another",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "distribution::DST-1::a_lease_renewed_elsewhere_is_not_reclaimed",
            "distribution::DST-1::a_lease_settled_elsewhere_is_stale",
            "distribution::DST-1::concurrent_fetches_of_two_handles_claim_each_event_once",
            "distribution::DST-1::progress_is_the_same_on_both",
            "distribution::DST-1::two_handles_share_the_events",
            "durability::DUR-1::a_lease_survives",
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
];

#[derive(Default)]
struct LeaseIdIsEventAndAttempt(Aliases);

impl Tweak for LeaseIdIsEventAndAttempt {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        let alias = format!("{}:{}", lease.event.id, lease.attempt);
        self.0.rename(lease, LeaseId::new(alias));
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.0.restore(lease);
    }
}

/// Written backwards, so that it ends and begins with other characters.
#[derive(Default)]
struct LeaseIdIsTheClaim(Aliases);

impl Tweak for LeaseIdIsTheClaim {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        let seed = format!("{:?} {}", place_of(lease), lease.attempt);
        let hash = |salt: &str| {
            let bytes = seed.bytes().chain(salt.bytes());
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            })
        };
        let alias = format!("{:016x}{:016x}", hash("a"), hash("b"));
        self.0.rename(lease, LeaseId::new(alias));
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.0.restore(lease);
    }
}

#[derive(Default)]
struct LeaseIdIsACounter(Aliases, AtomicU64);

impl Tweak for LeaseIdIsACounter {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        let count = self.1.fetch_add(1, Ordering::Relaxed);
        self.0
            .rename(lease, LeaseId::new(format!("lease-of-node-17-{count}")));
    }
    fn presented(&self, _: Timestamp, _: Step, lease: &mut Lease) {
        self.0.restore(lease);
    }
}
