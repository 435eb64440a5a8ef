//! Events in another order.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Mutex;

use rheo_core::{EventId, FetchOptions, Lease, Replay, RetryDelay, RetryOptions, Timestamp};

use crate::faulty::Faulty;
use crate::tweak::{Back, Place, Step, Tweak, lock, place_of};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        FetchIsReversed: "a fetch gives its leases in descending order",
        says: "the sequences",
        kills: [
            "delivery::DLV-4::the_lowest_sequences_come_first",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "batches::LSE-8::a_batch_of_retries_at_once_needs_no_clock",
            "batches::LSE-8::a_batch_of_retries_delays_each",
            "batches::LSE-8::a_batch_of_retries_gives_up_on_the_used_up_ones_alone",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "dead_letters::DLQ-4::reject_is_for_that_group_alone",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_reason_is_kept_character_by_character",
            "dead_letters::DLQ-5::a_reason_of_1_kib_is_kept",
            "dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream",
            "dead_letters::DLQ-5::an_after_that_was_replayed_is_cursor_not_found",
            "dead_letters::DLQ-5::dead_letters_are_in_order_of_sequence",
            "dead_letters::DLQ-5::pages_of_dead_letters_join_up",
            "dead_letters::DLQ-5::what_is_not_dead_is_no_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-1::each_group_gets_every_event",
            "delivery::DLV-1::groups_are_ready_at_different_times",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "delivery::DLV-2::a_group_can_start_on_an_empty_stream",
            "delivery::DLV-2::a_group_starts_at_the_beginning_by_default",
            "delivery::DLV-2::a_start_after_a_sequence_is_exclusive",
            "delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence",
            "delivery::DLV-2::a_start_at_a_time_is_before_the_first_event_of_that_time",
            "delivery::DLV-2::a_start_at_the_end_gets_all_that_comes_later",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_is_fixed_when_the_group_is_made",
            "delivery::DLV-2::a_start_that_names_no_sequence_is_the_beginning",
            "delivery::DLV-3::a_limit_of_0_gives_and_claims_nothing",
            "delivery::DLV-3::no_partitions_give_and_claim_nothing",
            "delivery::DLV-3::ten_thousand_events_may_be_open",
            "delivery::DLV-3::the_largest_limit_is_a_limit_too",
            "delivery::DLV-4::delayed_events_come_by_sequence_and_not_by_due_time",
            "delivery::DLV-4::each_partition_comes_in_order",
            "delivery::DLV-4::replayed_events_go_before_what_is_new",
            "delivery::DLV-4::retried_events_come_by_sequence_and_not_by_turn",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::a_lease_that_nobody_heard_of_comes_again",
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "delivery::DLV-6::events_that_come_while_others_are_leased_are_delivered",
            "delivery::DLV-6::events_with_earlier_times_are_not_passed_over",
            "delivery::DLV-7::two_consumers_never_hold_the_same_event",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "distribution::DST-1::a_lease_settled_elsewhere_is_stale",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "distribution::DST-1::an_append_elsewhere_is_fetched",
            "distribution::DST-1::progress_is_the_same_on_both",
            "durability::DUR-1::a_replay_survives",
            "durability::DUR-1::starts_survive",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
            "fidelity::LOG-8::any_field_name_comes_back",
            "fidelity::LOG-8::any_unicode_text_comes_back",
            "fidelity::LOG-8::control_characters_and_blanks_come_back",
            "fidelity::LOG-8::documents_that_look_like_typed_values_stay_documents",
            "fidelity::LOG-8::doubles_come_back",
            "fidelity::LOG-8::integers_of_64_bits_come_back",
            "fidelity::LOG-8::many_fields_and_long_names_come_back",
            "fidelity::LOG-8::nesting_to_64_comes_back",
            "fidelity::LOG-8::nulls_and_empty_values_stay",
            "fidelity::LOG-8::random_documents_come_back",
            "fidelity::LOG-8::text_that_looks_like_an_escape_stays",
            "fidelity::LOG-8::whole_doubles_and_integers_stay_what_they_are",
            "fidelity::STR-2::any_event_type_and_key_come_back",
            "input::ERR-6::a_missing_group_is_named",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-4::an_expired_lease_holds_until_it_is_reclaimed_itself",
            "leases::LSE-4::leases_of_one_fetch_end_each_on_its_own",
            "leases::LSE-4::what_was_found_expired_is_leased_when_the_clock_goes_back",
            "leases::LSE-4::what_was_settled_late_holds_up_nothing",
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "leases::LSE-6::a_later_attempt_is_renewed_like_the_first",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "log::LOG-2::a_group_passes_no_event",
            "partitions::DLV-4::each_partition_is_delivered_in_its_own_order",
            "progress::FRN-1::a_hole_below_a_thousand_acks_holds_the_frontier",
            "progress::FRN-1::a_hole_holds_the_frontier_until_it_is_filled",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "progress::FRN-1::a_late_settle_fills_its_hole",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "progress::FRN-1::holes_hold_the_frontier_however_far_up",
            "progress::FRN-1::what_waits_for_a_retry_holds_the_frontier",
            "progress::FRN-2::from_its_start_the_frontier_moves_on",
            "progress::FRN-4::lag_changes_nothing",
            "progress::FRN-4::lag_is_never_ahead_of_racing_acks",
            "queries::QRY-4::queries_change_nothing_for_groups",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "replay::RPL-1::a_group_that_started_at_the_end_can_go_back",
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-1::a_replayed_lease_settles_nothing",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-1::replay_after_a_sequence_is_exclusive",
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-1::replay_reopens_what_was_acked_and_what_is_dead",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-3::replay_before_anything_was_claimed_changes_nothing",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-3::replay_never_raises_the_frontier",
            "replay::RPL-3::replay_on_an_empty_stream_skips_no_later_event",
            "replay::RPL-4::a_chosen_event_below_the_start_is_delivered",
            "replay::RPL-4::a_chosen_event_that_was_never_claimed_stays_as_it_is",
            "replay::RPL-4::an_id_given_twice_counts_once",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_leaves_the_log_alone",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_group_that_was_reset_forward_can_be_replayed",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-5::attempts_begin_again_after_a_reset",
            "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
            "reset::RPL-5::reset_may_go_forward",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "reset::RPL-5::reset_to_a_time_starts_with_the_first_event_at_or_after_it",
            "reset::RPL-5::reset_to_no_sequences_starts_at_the_beginning",
            "reset::RPL-6::reset_leaves_the_log_alone",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "settling::DLQ-1::a_delay_holds_back_nothing_else",
            "settling::DLQ-1::each_delay_is_its_own",
            "settling::DLQ-1::what_was_found_due_waits_when_the_clock_goes_back",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
            "settling::DLQ-2::a_given_up_event_lets_the_frontier_pass",
            "settling::DLQ-3::a_clock_that_goes_back_keeps_the_last_lease",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
            "streams::STR-4::going_back_on_one_stream_leaves_the_other",
            "streams::STR-4::groups_of_one_name_are_two",
            "streams::STR-4::settling_on_one_stream_leaves_the_other",
            "wakeup::OPS-4::an_expired_renewal_is_told",
            "wakeup::OPS-4::waiting_claims_nothing",
        ],
    },
    faulty! {
        NewestPerPartitionFirst: "a fetch over several partitions gives the highest sequences first",
        says: "the sequences of partition",
        kills: [
            "delivery::DLV-4::each_partition_comes_in_order",
            "partitions::DLV-4::each_partition_is_delivered_in_its_own_order",
        ],
    },
    faulty! {
        NewEventsComeFirst: "a fetch gives new events before those that come again",
        says: "the claimable sequences to be [3, 5, 7, 8]",
        kills: [
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "delivery::DLV-4::retried_events_come_by_sequence_and_not_by_turn",
            "delivery::DLV-6::a_lease_that_nobody_heard_of_comes_again",
            "delivery::DLV-6::events_that_come_while_others_are_leased_are_delivered",
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
        ],
    },
    faulty! {
        RetriesQueueUp: "retried events come in the order of their retries",
        says: "the claimable sequences",
        kills: [
            "delivery::DLV-4::retried_events_come_by_sequence_and_not_by_turn",
            "batches::LSE-8::a_batch_of_renewals_answers_with_its_expiry",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
            "reset::RPL-5::reset_to_no_sequences_starts_at_the_beginning",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
        ],
    },
    faulty! {
        DelayedEventsComeAsTheyAreDue: "delayed events come in the order of their due times",
        says: "the claimable sequences",
        kills: [
            "delivery::DLV-4::delayed_events_come_by_sequence_and_not_by_due_time",
            "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
            "reset::RPL-5::reset_to_no_sequences_starts_at_the_beginning",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
        ],
    },
    faulty! {
        ReplayedEventsComeLast: "replayed events come behind the others",
        says: "the claimable sequences to be [3, 5, 6]",
        kills: [
            "delivery::DLV-4::replayed_events_go_before_what_is_new",
            "replay::RPL-4::a_chosen_event_below_the_start_is_delivered",
            "replay::RPL-4::a_chosen_event_that_was_never_claimed_stays_as_it_is",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-6::replay_leaves_the_log_alone",
        ],
    },
];

#[derive(Default)]
struct FetchIsReversed;

impl Tweak for FetchIsReversed {
    fn fetched(&self, _: &FetchOptions, leases: &mut Vec<Lease>) {
        leases.reverse();
    }
}

#[derive(Default)]
struct NewestPerPartitionFirst;

impl Tweak for NewestPerPartitionFirst {
    fn fetched(&self, _: &FetchOptions, leases: &mut Vec<Lease>) {
        let partitions: BTreeSet<_> = leases.iter().map(|lease| lease.event.partition).collect();
        if partitions.len() > 1 {
            leases.sort_by_key(|lease| std::cmp::Reverse(lease.event.sequence));
        }
    }
}

#[derive(Default)]
struct NewEventsComeFirst;

impl Tweak for NewEventsComeFirst {
    fn fetched(&self, _: &FetchOptions, leases: &mut Vec<Lease>) {
        leases.sort_by_key(|lease| lease.attempt > 1);
    }
}

#[derive(Default)]
struct RetriesQueueUp(Mutex<Vec<Place>>);

impl Tweak for RetriesQueueUp {
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Retry {
            lock(&self.0).push(place_of(lease));
        }
    }
    fn fetched(&self, _: &FetchOptions, leases: &mut Vec<Lease>) {
        let retried = lock(&self.0).clone();
        let turn = |lease: &Lease| retried.iter().rposition(|place| *place == place_of(lease));
        leases.sort_by_key(|lease| turn(lease).unwrap_or(usize::MAX));
    }
}

#[derive(Default)]
struct DelayedEventsComeAsTheyAreDue(Mutex<HashMap<Place, Timestamp>>);

impl Tweak for DelayedEventsComeAsTheyAreDue {
    fn retrying(&self, now: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        if options.delay != RetryDelay::NONE {
            let due = now.saturating_add(options.delay.as_duration());
            lock(&self.0).insert(place_of(lease), due);
        }
    }
    fn fetched(&self, _: &FetchOptions, leases: &mut Vec<Lease>) {
        let due = lock(&self.0).clone();
        let due = |lease: &Lease| due.get(&place_of(lease)).copied();
        leases.sort_by_key(|lease| due(lease).unwrap_or(Timestamp::MAX));
    }
}

#[derive(Default)]
struct ReplayedEventsComeLast(Mutex<HashSet<EventId>>);

impl Tweak for ReplayedEventsComeLast {
    fn went_back(&self, how: Back<'_>) {
        if let Back::Replay(Replay::Events(ids)) = how {
            lock(&self.0).extend(ids.iter().copied());
        }
    }
    fn fetched(&self, _: &FetchOptions, leases: &mut Vec<Lease>) {
        let replayed = lock(&self.0);
        leases.sort_by_key(|lease| replayed.contains(&lease.event.id));
    }
}
