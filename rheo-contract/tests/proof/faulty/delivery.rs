//! Defects that the cases of `delivery` are there for.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use rheo_core::{
    Cause, ConsumerId, DeadLetterOptions, Error, Event, EventId, FetchOptions, GroupName,
    GroupOptions, JsonObject, Lease, LeaseDuration, Partition, Partitions, ReadOptions, Replay,
    ResetOptions, Result, RetryDelay, RetryOptions, Sequence, Start, StreamName, Timestamp,
    async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real};
use crate::tweak::{Back, Claims, Place, Step, Tweak, lock, place_of};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        OneGroupTakesFromTheOthers: "what one group was given no other gets",
        says: "3 leases, since that many events are claimable",
        kills: [
            "delivery::DLV-1::each_group_gets_every_event",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "dead_letters::DLQ-4::one_event_can_be_dead_in_two_groups",
            "dead_letters::DLQ-4::reject_is_for_that_group_alone",
            "delivery::DLV-1::groups_are_ready_at_different_times",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "delivery::DLV-2::a_group_can_start_on_an_empty_stream",
            "delivery::DLV-2::a_group_starts_at_the_beginning_by_default",
            "delivery::DLV-2::a_start_after_a_sequence_is_exclusive",
            "delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence",
            "delivery::DLV-2::a_start_at_a_time_is_before_the_first_event_of_that_time",
            "delivery::DLV-5::every_selected_partition_is_served",
            "durability::DUR-1::starts_survive",
            "input::ERR-6::a_missing_group_is_named",
            "inspect::OPS-1::a_stream_is_listed_once_whatever_is_in_it",
            "leases::LSE-1::every_claim_has_a_lease_id_of_its_own",
            "leases::LSE-2::a_lease_is_of_its_group_alone",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "settling::DLQ-2::max_attempts_is_each_groups_own",
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
            "streams::STR-2::group_names_never_collide",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
        ],
    },
    faulty! {
        AckIsForAllGroups: "an acked event is done for every group",
        says: "the claimable sequences to be [1, 2, 3, 4, 5]",
        kills: [
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "delivery::DLV-1::groups_are_ready_at_different_times",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "streams::STR-2::group_names_never_collide",
        ],
    },
    faulty! {
        DoneEventsAreGone: "a later group does not get what all earlier ones have done",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: [
            "delivery::DLV-1::groups_are_ready_at_different_times",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
        ],
    },
    faulty! {
        DefaultStartIsTheEnd: "a group starts at the end by default",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: [
            "delivery::DLV-2::a_group_starts_at_the_beginning_by_default",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "dead_letters::DLQ-4::one_event_can_be_dead_in_two_groups",
            "dead_letters::DLQ-4::reject_is_for_that_group_alone",
            "delivery::DLV-1::groups_are_ready_at_different_times",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "delivery::DLV-3::a_fetch_gives_no_more_than_its_limit",
            "delivery::DLV-3::a_fetch_stays_in_its_partitions",
            "delivery::DLV-3::a_selection_is_looked_through_and_no_other",
            "delivery::DLV-4::each_partition_comes_in_order",
            "delivery::DLV-5::a_busy_partition_starves_no_other",
            "delivery::DLV-5::a_retried_event_starves_no_other_partition",
            "delivery::DLV-5::every_partition_is_served",
            "delivery::DLV-5::every_selected_partition_is_served",
            "distribution::DST-1::a_group_made_elsewhere_is_there",
            "input::ERR-6::a_missing_group_is_named",
            "input::ERR-8::a_group_start_out_of_range_is_invalid",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "progress::FRN-2::the_frontier_begins_at_the_start",
            "streams::STR-1::a_stream_has_up_to_1024_partitions",
            "streams::STR-2::group_names_never_collide",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
        ],
    },
    faulty! {
        StartIsInclusive: "a start after a sequence is taken for a start at it",
        says: "the claimable sequences to be [2, 3]",
        kills: [
            "delivery::DLV-2::a_start_after_a_sequence_is_exclusive",
            "delivery::DLV-2::a_start_after_a_sequence_is_for_every_partition",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
            "progress::FRN-2::from_its_start_the_frontier_moves_on",
            "progress::FRN-2::the_frontier_begins_at_the_start",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-4::a_chosen_event_below_the_start_is_delivered",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
        ],
    },
    faulty! {
        StartIsOfPartition0: "a start after a sequence is applied to partition 0",
        says: "the claimable events",
        kills: [
            "delivery::DLV-2::a_start_after_a_sequence_is_for_every_partition",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
        ],
    },
    faulty! {
        UnnamedPartitionsStartAtTheEnd: "a partition that a start does not name starts at its end",
        says: "the claimable events",
        kills: [
            "delivery::DLV-2::a_start_may_name_a_sequence_per_partition",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
            "input::ERR-8::a_group_start_out_of_range_is_invalid",
            "partitions::DLV-2::each_partition_has_its_own_start",
        ],
    },
    faulty! {
        StartIsCutToTheEnd: "a start beyond the high watermark is taken for the end",
        says: "Err(Invalid)",
        kills: [
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
        ],
    },
    faulty! {
        StartIsComparedWithTheLargestPartition: "a start is checked against the highest high watermark",
        says: "Err(Invalid)",
        kills: [
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
        ],
    },
    faulty! {
        StartTimeIsExclusive: "a start at a time is behind the events of that time",
        says: "the claimable sequences",
        kills: [
            "delivery::DLV-2::a_start_at_a_time_is_before_the_first_event_of_that_time",
            "delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence",
            "delivery::DLV-2::a_start_at_a_time_is_found_per_partition",
        ],
    },
    faulty! {
        StartTimeIsInMilliseconds: "a start at a time loses its microseconds",
        says: "the claimable sequences",
        kills: [
            "delivery::DLV-2::a_start_at_a_time_is_before_the_first_event_of_that_time",
            "progress::FRN-2::the_frontier_begins_at_the_start",
        ],
    },
    faulty! {
        StartTimeIsAfterTheLastEarlierEvent: "a start at a time is behind the last event from before",
        says: "the claimable sequences",
        kills: ["delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence"],
    },
    faulty! {
        StartTimeIsFoundByBisection: "a start at a time is found as if timestamps ascended",
        says: "the claimable sequences",
        kills: ["delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence"],
    },
    faulty! {
        StartTimeIsOfPartition0: "a start at a time is the same sequence everywhere",
        says: "the claimable events",
        kills: ["delivery::DLV-2::a_start_at_a_time_is_found_per_partition"],
    },
    faulty! {
        StartTimeIsComparedAtEachFetch: "a start at a time hides all earlier events",
        says: "the claimable sequences to be [2, 3]",
        kills: [
            "delivery::DLV-2::a_start_is_fixed_when_the_group_is_made",
            "delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence",
            "progress::FRN-2::the_frontier_begins_at_the_start",
        ],
    },
    faulty! {
        EndIsFoundAtTheFirstFetch: "a start at the end is where that is at the first fetch",
        says: "the claimable sequences to be [3, 4]",
        kills: [
            "delivery::DLV-2::a_start_at_the_end_gets_all_that_comes_later",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
        ],
    },
    faulty! {
        EndOfNothingIsTheFirst: "a start at the end of an empty stream is behind its first event",
        says: "the claimable sequences to be [1, 2]",
        kills: ["delivery::DLV-2::a_group_can_start_on_an_empty_stream"],
    },
    faulty! {
        DuplicateGroupStartsAgain: "a duplicate group errs, and starts again",
        says: "StaleLease",
        kills: [
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "distribution::DST-1::a_name_taken_elsewhere_is_taken",
            "durability::DUR-1::names_stay_taken",
        ],
    },
    faulty! {
        LimitIsOfEachPartition: "the limit of a fetch applies to each partition",
        says: "1 to 1 leases",
        kills: [
            "delivery::DLV-3::a_fetch_gives_no_more_than_its_limit",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
        ],
    },
    faulty! {
        LimitIsOffByOne: "a fetch with a limit above one gives one more",
        says: "1 to 2 leases",
        kills: [
            "delivery::DLV-3::a_fetch_gives_no_more_than_its_limit",
            "dead_letters::DLQ-5::an_after_that_is_no_dead_letter_is_cursor_not_found",
            "dead_letters::DLQ-5::what_is_not_dead_is_no_dead_letter",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "delivery::DLV-4::replayed_events_go_before_what_is_new",
            "delivery::DLV-4::retried_events_come_by_sequence_and_not_by_turn",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::a_lease_that_nobody_heard_of_comes_again",
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "delivery::DLV-7::a_holder_does_not_get_its_own_event_again",
            "delivery::DLV-7::concurrent_fetches_share_no_event",
            "delivery::DLV-7::two_consumers_never_hold_the_same_event",
            "durability::DUR-1::frontiers_survive",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "durability::DUR-1::what_is_settled_stays_settled",
            "inspect::OPS-3::group_info_counts_current_leases",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_counts_nothing_after_a_reset",
            "inspect::OPS-3::group_info_gives_the_progress_that_lag_gives",
            "leases::LSE-1::every_claim_has_a_lease_id_of_its_own",
            "leases::LSE-2::a_lease_is_of_its_sequence_alone",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::what_was_never_claimed_holds_the_frontier",
            "progress::FRN-3::the_frontier_never_moves_back_by_itself",
            "queries::QRY-4::queries_change_nothing_for_groups",
            "replay::DLV-4::reopened_events_come_before_later_ones_in_their_order",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-3::replay_never_raises_the_frontier",
            "replay::RPL-4::a_chosen_event_that_was_never_claimed_stays_as_it_is",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
            "reset::RPL-5::the_frontier_is_the_new_start",
            "reset::RPL-6::reset_leaves_other_groups_alone",
        ],
    },
    faulty! {
        LimitOf0IsNone: "a limit of 0 is no limit",
        says: "no lease",
        kills: [
            "delivery::DLV-3::a_limit_of_0_gives_and_claims_nothing",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
        ],
    },
    faulty! {
        LimitOf0ClaimsOne: "a fetch with a limit of 0 claims an event and keeps it",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: [
            "delivery::DLV-3::a_limit_of_0_gives_and_claims_nothing",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
        ],
    },
    faulty! {
        LimitIsSigned: "a limit above i32::MAX is negative, and gives nothing",
        says: "the sequences to be [1, 2, 3]",
        kills: ["delivery::DLV-3::the_largest_limit_is_a_limit_too"],
    },
    faulty! {
        LimitOf1IsTheDefaultOf2: "a limit of 1 counts as nothing said, and becomes 2",
        says: "the sequences to be [1]",
        kills: [
            "delivery::DLV-3::one_lease_is_the_default",
            "dead_letters::DLQ-4::reject_is_for_that_group_alone",
            "delivery::DLV-3::a_fetch_gives_no_more_than_its_limit",
            "delivery::DLV-7::two_consumers_never_hold_the_same_event",
            "delivery::DLV-8::a_lease_lasts_as_long_as_was_asked_for",
            "distribution::DST-1::a_reset_elsewhere_is_seen",
            "distribution::DST-1::concurrent_fetches_of_two_handles_claim_each_event_once",
            "distribution::DST-1::dead_letters_are_the_same_on_both",
            "distribution::DST-1::two_handles_share_the_events",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
            "inspect::OPS-1::a_stream_is_listed_once_whatever_is_in_it",
            "inspect::OPS-3::group_info_changes_nothing",
            "leases::LSE-2::a_made_up_lease_claims_nothing",
            "leases::LSE-2::a_rejected_lease_is_stale",
            "leases::LSE-2::an_acked_lease_is_stale",
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "log::LOG-4::an_expired_lease_changes_no_event",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "progress::FRN-4::lag_changes_nothing",
            "progress::FRN-4::lag_grows_with_appends_and_shrinks_with_acks",
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "reset::RPL-5::reset_may_go_forward",
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "settling::DLQ-1::a_delay_holds_back_nothing_else",
            "settling::DLQ-2::a_given_up_event_is_settled",
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
            "streams::STR-1::a_stream_is_not_made_twice",
            "streams::STR-2::consumer_names_come_back",
            "wakeup::OPS-4::work_that_is_there_is_told",
        ],
    },
    faulty! {
        DeadLettersFillEmptyFetches: "a fetch that would be empty tries dead letters again",
        says: "no claimable event",
        kills: [
            "delivery::DLV-3::nothing_claimable_gives_nothing",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_batch_of_retries_gives_up_on_the_used_up_ones_alone",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-1::what_one_group_does_concerns_no_other",
            "distribution::DST-1::a_lease_is_settled_on_any_handle",
            "distribution::DST-1::max_attempts_hold_on_every_handle",
            "durability::DUR-1::max_attempts_survives",
            "durability::DUR-1::what_is_settled_stays_settled",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "leases::LSE-2::a_rejected_lease_is_stale",
            "leases::LSE-4::an_expired_lease_still_settles",
            "leases::LSE-7::a_lease_is_settled_once",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::the_frontier_follows_random_work",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-6::reset_leaves_other_groups_alone",
            "settling::DLQ-2::a_given_up_event_is_settled",
            "settling::DLQ-2::at_the_last_attempt_a_delayed_retry_gives_up_too",
            "settling::DLQ-2::at_the_last_attempt_a_retry_gives_up",
            "settling::DLQ-2::five_attempts_are_the_default",
            "settling::DLQ-2::lost_leases_count_towards_the_last_attempt",
            "settling::DLQ-2::one_attempt_means_no_second_chance",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
            "settling::DLQ-3::once_it_is_given_up_on_the_last_lease_is_stale",
            "settling::DLQ-3::until_it_is_reclaimed_the_last_lease_settles",
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
            "streams::STR-4::settling_on_one_stream_leaves_the_other",
        ],
    },
    faulty! {
        FetchLooksAtFiftyEvents: "a fetch looks at the fifty events above the lowest open one",
        says: "the sequences of a single fetch",
        kills: ["delivery::DLV-3::a_fetch_finds_the_only_claimable_event"],
    },
    faulty! {
        SelectionIsIgnored: "a fetch looks into all partitions",
        says: "the leased events",
        kills: [
            "delivery::DLV-3::a_fetch_stays_in_its_partitions",
            "delivery::DLV-3::a_selection_is_looked_through_and_no_other",
            "delivery::DLV-5::every_selected_partition_is_served",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
            "input::ERR-8::a_fetch_out_of_range_is_invalid",
            "leases::LSE-4::a_fetch_from_elsewhere_takes_no_lease_away",
            "partitions::DLV-3::a_fetch_is_restricted_to_the_selected_partitions",
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing",
        ],
    },
    faulty! {
        SelectionComesAfterTheLimit: "what is not selected is sorted out after the limit was applied",
        says: "the sequences of a single fetch to be [1]",
        kills: [
            "delivery::DLV-3::a_selection_is_looked_through_and_no_other",
            "delivery::DLV-3::no_partitions_give_and_claim_nothing",
            "leases::LSE-4::a_fetch_from_elsewhere_takes_no_lease_away",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "partitions::LSE-5::attempts_are_counted_in_each_partition",
            "settling::DLQ-3::a_fetch_from_elsewhere_gives_up_on_nothing",
        ],
    },
    faulty! {
        NoPartitionsAreAll: "an empty selection means all partitions",
        says: "no lease",
        kills: [
            "delivery::DLV-3::no_partitions_give_and_claim_nothing",
            "leases::LSE-4::a_fetch_that_claims_nothing_takes_no_lease_away",
            "partitions::DLV-3::a_fetch_is_restricted_to_the_selected_partitions",
        ],
    },
    faulty! {
        FetchIsReversed: "a fetch gives its leases in descending order",
        says: "the sequences",
        kills: [
            "delivery::DLV-4::the_lowest_sequences_come_first",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "batches::LSE-8::a_batch_of_retries_delays_each",
            "batches::LSE-8::a_batch_of_retries_gives_up_on_the_used_up_ones_alone",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "dead_letters::DLQ-4::reject_is_for_that_group_alone",
            "dead_letters::DLQ-5::a_reason_is_kept_character_by_character",
            "dead_letters::DLQ-5::a_reason_of_1_kib_is_kept",
            "dead_letters::DLQ-5::an_after_that_was_replayed_is_cursor_not_found",
            "dead_letters::DLQ-5::dead_letters_are_in_order_of_sequence",
            "dead_letters::DLQ-5::pages_of_dead_letters_join_up",
            "dead_letters::DLQ-5::what_is_not_dead_is_no_dead_letter",
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
            "delivery::DLV-3::a_limit_of_0_gives_and_claims_nothing",
            "delivery::DLV-3::no_partitions_give_and_claim_nothing",
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
            "leases::LSE-5::attempts_are_counted_per_event_and_group",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "log::LOG-2::a_group_passes_no_event",
            "partitions::DLV-4::each_partition_is_delivered_in_its_own_order",
            "progress::FRN-1::a_hole_holds_the_frontier_until_it_is_filled",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
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
            "replay::RPL-1::attempts_begin_again_after_a_replay",
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
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_leaves_the_log_alone",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_group_that_was_reset_forward_can_be_replayed",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-5::attempts_begin_again_after_a_reset",
            "reset::RPL-5::reset_may_go_forward",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "reset::RPL-5::reset_to_a_time_starts_with_the_first_event_at_or_after_it",
            "reset::RPL-6::reset_leaves_the_log_alone",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "settling::DLQ-1::a_delay_holds_back_nothing_else",
            "settling::DLQ-1::each_delay_is_its_own",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
            "settling::DLQ-2::a_given_up_event_lets_the_frontier_pass",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_lets_the_frontier_pass",
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
            "streams::STR-2::long_names_that_begin_alike_are_told_apart",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
            "streams::STR-4::going_back_on_one_stream_leaves_the_other",
            "streams::STR-4::groups_of_one_name_are_two",
            "streams::STR-4::settling_on_one_stream_leaves_the_other",
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
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
        ],
    },
    faulty! {
        DelayedEventsComeAsTheyAreDue: "delayed events come in the order of their due times",
        says: "the claimable sequences",
        kills: [
            "delivery::DLV-4::delayed_events_come_by_sequence_and_not_by_due_time",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
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
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-6::replay_leaves_the_log_alone",
        ],
    },
    faulty! {
        LowestPartitionFirst: "a fetch begins with the lowest partition each time",
        says: "the partitions served by",
        kills: [
            "delivery::DLV-5::every_partition_is_served",
            "delivery::DLV-5::a_busy_partition_starves_no_other",
            "delivery::DLV-5::a_retried_event_starves_no_other_partition",
            "delivery::DLV-5::every_selected_partition_is_served",
        ],
    },
    faulty! {
        FullestPartitionFirst: "a fetch begins with the partition that has the most events",
        says: "the partitions served by",
        kills: ["delivery::DLV-5::a_busy_partition_starves_no_other"],
    },
    faulty! {
        RetriesComeFirst: "a fetch begins with the partition that has retried events",
        says: "the partitions served by",
        kills: ["delivery::DLV-5::a_retried_event_starves_no_other_partition"],
    },
    faulty! {
        LowestSelectedPartitionFirst: "a fetch from some partitions begins with the lowest of them",
        says: "the partitions served by",
        kills: ["delivery::DLV-5::every_selected_partition_is_served"],
    },
    faulty! {
        CaughtUpGroupSkipsOne: "after an empty fetch the next new event is missed",
        says: "the claimable sequences to be [3]",
        kills: [
            "delivery::DLV-6::events_that_come_while_others_are_leased_are_delivered",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-7::an_acked_event_never_comes_again",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "distribution::DST-1::a_reset_elsewhere_is_seen",
            "distribution::DST-1::an_append_elsewhere_is_fetched",
            "log::LOG-2::a_group_passes_no_event",
            "partitions::DLV-2::the_end_is_each_partitions_own",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::the_frontier_follows_random_work",
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "reset::RPL-5::reset_to_a_time_starts_with_the_first_event_at_or_after_it",
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "settling::DLQ-1::a_delay_holds_back_nothing_else",
        ],
    },
    faulty! {
        AckSettlesAllBelow: "an ack settles all lower events of its partition",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: [
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::events_that_come_while_others_are_leased_are_delivered",
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "settling::DLQ-1::each_delay_is_its_own",
        ],
    },
    faulty! {
        FetchAcksTheLast: "a fetch acks what its consumer fetched before and let expire",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: [
            "delivery::DLV-6::a_lease_that_nobody_heard_of_comes_again",
            "delivery::DLV-6::nothing_is_missed_whatever_happens_to_it",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "leases::LSE-5::the_same_consumer_reclaims_like_any_other",
            "settling::DLQ-2::lost_leases_count_towards_the_last_attempt",
            "settling::DLQ-3::an_event_that_kills_its_consumers_is_not_handed_out_for_ever",
        ],
    },
    faulty! {
        DelayedEventsGetLost: "a delayed event that is due is not found again after another fetch",
        says: "no event missed",
        kills: ["delivery::DLV-6::nothing_is_missed_whatever_happens_to_it"],
    },
    faulty! {
        PositionIsOverAllPartitions: "an acked event of one partition passes older ones of the others by",
        says: "the claimable events",
        kills: [
            "delivery::DLV-6::events_of_a_lower_partition_are_not_passed_over",
            "partitions::DLV-1::a_group_gets_the_events_of_all_partitions",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "replay::RPL-1::each_partition_is_replayed_after_its_own_sequence",
            "replay::RPL-4::chosen_events_are_reopened_in_their_own_partitions",
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
            "reset::RPL-5::a_start_beyond_one_partition_drops_nothing_in_any",
        ],
    },
    faulty! {
        PositionIsATime: "events with an earlier timestamp than an acked one are passed by",
        says: "the claimable sequences to be [3, 4]",
        kills: [
            "delivery::DLV-6::events_with_earlier_times_are_not_passed_over",
            "reset::RPL-5::reset_to_a_time_starts_with_the_first_event_at_or_after_it",
        ],
    },
    faulty! {
        LastEventHasTwoHolders: "a fetch with room left gives another consumer's event as well",
        says: "the sequences",
        kills: [
            "delivery::DLV-7::two_consumers_never_hold_the_same_event",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_batch_of_retries_delays_each",
            "batches::LSE-8::a_batch_of_retries_gives_up_on_the_used_up_ones_alone",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "delivery::DLV-3::a_fetch_stays_in_its_partitions",
            "delivery::DLV-4::delayed_events_come_by_sequence_and_not_by_due_time",
            "delivery::DLV-4::replayed_events_go_before_what_is_new",
            "delivery::DLV-4::retried_events_come_by_sequence_and_not_by_turn",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "delivery::DLV-6::an_ack_settles_no_lower_event",
            "delivery::DLV-6::events_that_come_while_others_are_leased_are_delivered",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "leases::LSE-2::a_rejected_lease_is_stale",
            "leases::LSE-2::an_acked_lease_is_stale",
            "leases::LSE-7::a_lease_is_settled_once",
            "lifecycle::STR-5::making_indexes_again_keeps_deliveries",
            "queries::QRY-4::queries_change_nothing_for_groups",
            "receipts::LSE-3::a_mismatch_settles_nothing",
            "receipts::LSE-3::after_a_mismatch_the_right_receipt_settles",
            "replay::RPL-1::a_replayed_lease_settles_nothing",
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-4::a_chosen_event_that_was_never_claimed_stays_as_it_is",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
            "reset::RPL-5::a_start_beyond_one_partition_drops_nothing_in_any",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-5::reset_of_one_partition_leaves_the_others",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "reset::RPL-6::reset_leaves_other_groups_alone",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
            "settling::DLQ-1::each_delay_is_its_own",
            "streams::STR-1::a_stream_is_not_made_twice",
            "streams::STR-4::going_back_on_one_stream_leaves_the_other",
            "streams::STR-4::settling_on_one_stream_leaves_the_other",
        ],
    },
    faulty! {
        HolderGetsItsEventAgain: "a fetch that would be empty gives the consumer what it holds",
        says: "no claimable event",
        kills: [
            "delivery::DLV-7::a_holder_does_not_get_its_own_event_again",
            "dead_letters::DLQ-6::a_dead_letter_is_not_delivered_again",
            "dead_letters::DLQ-6::a_dead_letter_lets_the_frontier_pass",
            "delivery::DLV-2::a_start_at_the_end_gets_all_that_comes_later",
            "delivery::DLV-3::a_fetch_stays_in_its_partitions",
            "delivery::DLV-3::a_selection_is_looked_through_and_no_other",
            "delivery::DLV-3::nothing_claimable_gives_nothing",
            "delivery::DLV-6::events_that_come_while_others_are_leased_are_delivered",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "distribution::DST-1::a_reset_elsewhere_is_seen",
            "distribution::DST-1::two_handles_share_the_events",
            "durability::DUR-1::max_attempts_survives",
            "inspect::OPS-3::group_info_counts_dead_letters",
            "leases::LSE-4::a_fetch_from_elsewhere_takes_no_lease_away",
            "leases::LSE-4::a_lease_is_not_reclaimable_before_its_expiry",
            "partitions::DLV-3::a_blocked_partition_holds_no_other",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::the_frontier_follows_random_work",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "settling::DLQ-1::a_delay_ends_exactly_then",
            "settling::DLQ-2::at_the_last_attempt_a_retry_gives_up",
            "settling::DLQ-2::five_attempts_are_the_default",
            "settling::DLQ-2::lost_leases_count_towards_the_last_attempt",
            "settling::DLQ-2::one_attempt_means_no_second_chance",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        AckLeavesTheClaim: "an ack takes the lease id away and leaves the claim to expire",
        says: "no claimable event",
        kills: [
            "delivery::DLV-7::an_acked_event_never_comes_again",
            "batches::LSE-8::a_batch_moves_the_frontier_like_its_single_settles",
            "delivery::DLV-4::what_comes_again_goes_before_what_is_new",
            "distribution::DST-1::progress_is_the_same_on_both",
            "durability::DUR-1::frontiers_survive",
            "partitions::FRN-1::each_partition_has_its_own_frontier",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "progress::FRN-1::a_frontier_is_its_groups_own",
            "progress::FRN-1::a_hole_holds_the_frontier_until_it_is_filled",
            "progress::FRN-1::a_hole_may_be_filled_by_a_later_attempt",
            "progress::FRN-1::every_shape_of_holes_gives_its_frontier",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-1::what_has_expired_holds_the_frontier",
            "progress::FRN-1::what_waits_for_a_retry_holds_the_frontier",
            "progress::FRN-1::what_was_never_claimed_holds_the_frontier",
            "progress::FRN-2::from_its_start_the_frontier_moves_on",
            "progress::FRN-3::the_frontier_never_moves_back_by_itself",
            "progress::FRN-4::lag_grows_with_appends_and_shrinks_with_acks",
            "progress::FRN-4::lag_is_never_ahead_of_racing_acks",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-3::replay_never_raises_the_frontier",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
        ],
    },
    faulty! {
        ConcurrentFetchesChooseFirst: "concurrent fetches choose the same event",
        says: "the sequences",
        kills: [
            "delivery::DLV-7::concurrent_fetches_share_no_event",
        ],
    },
    faulty! {
        LeaseHasNoMetadata: "the event in a lease has no metadata",
        says: "the event",
        kills: [
            "delivery::DLV-8::a_lease_is_whole",
            "fidelity::LOG-5::a_renewed_and_a_redelivered_lease_hold_the_same_event",
            "fidelity::LOG-5::append_read_and_fetch_give_the_same_event",
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
            "fidelity::LOG-8::a_long_array_comes_back_in_order",
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
            "fidelity::LOG-8::the_longest_document_comes_back",
            "fidelity::LOG-8::whole_doubles_and_integers_stay_what_they_are",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        ConsumerIsFolded: "consumers lose their blanks",
        says: "the consumer",
        kills: [
            "delivery::DLV-8::a_lease_is_whole",
            "streams::STR-2::consumer_names_come_back",
        ],
    },
    faulty! {
        LeasesLastWholeSeconds: "the duration of a lease is rounded up to seconds",
        says: "the duration",
        kills: ["delivery::DLV-8::a_lease_lasts_as_long_as_was_asked_for"],
    },
    faulty! {
        LeasesLastTwelveHours: "a lease lasts twelve hours at most",
        says: "the duration",
        kills: ["delivery::DLV-8::a_lease_lasts_as_long_as_was_asked_for"],
    },
    faulty! {
        LateExpiryOverflows: "a lease that would end after the highest timestamp cannot be made",
        says: "the last operation to succeed",
        kills: ["delivery::DLV-8::no_lease_outlasts_the_highest_timestamp"],
    },
    faulty! {
        ReclaimKeepsTheConsumer: "a reclaimed event is still its first consumer's",
        says: "the consumer",
        kills: [
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
            "leases::LSE-5::reclaiming_gives_a_new_lease_and_the_next_attempt",
        ],
    },
    faulty! {
        ClaimKeepsItsFirstTime: "leased_at stays that of the first claim",
        says: "leased_at",
        kills: [
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
            "leases::LSE-5::reclaiming_gives_a_new_lease_and_the_next_attempt",
        ],
    },
    faulty! {
        GroupIsLookedUpAlone: "a fetch looks up the group, not the stream",
        says: "Err(StreamNotFound)",
        kills: [
            "delivery::ERR-6::a_missing_stream_is_noticed_before_its_group",
            "input::ERR-6::a_missing_stream_comes_before_bad_input",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
        ],
    },
];

/// An event of a stream, whoever is given it.
type Spot = (StreamName, Partition, Sequence);

fn spot(event: &Event) -> Spot {
    (event.stream.clone(), event.partition, event.sequence)
}

// DLV-1

#[derive(Default)]
struct OneGroupTakesFromTheOthers(Mutex<HashMap<Spot, GroupName>>);

impl Tweak for OneGroupTakesFromTheOthers {
    fn keeps(&self, lease: &Lease) -> bool {
        let mut taken = lock(&self.0);
        let by = taken
            .entry(spot(&lease.event))
            .or_insert(lease.group.clone());
        *by == lease.group
    }
}

#[derive(Default)]
struct AckIsForAllGroups(Mutex<HashMap<Spot, GroupName>>);

impl Tweak for AckIsForAllGroups {
    fn keeps(&self, lease: &Lease) -> bool {
        let acked = lock(&self.0);
        acked
            .get(&spot(&lease.event))
            .is_none_or(|group| *group == lease.group)
    }
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Ack {
            lock(&self.0).insert(spot(&lease.event), lease.group.clone());
        }
    }
}

/// What was acked before each group was made.
#[derive(Default)]
struct DoneEventsAreGone {
    acked: Mutex<HashSet<Spot>>,
    gone: Mutex<HashMap<(StreamName, GroupName), HashSet<Spot>>>,
}

impl Tweak for DoneEventsAreGone {
    fn creating(&self, stream: &StreamName, group: &GroupName, _: &mut GroupOptions) {
        let group = (stream.clone(), group.clone());
        lock(&self.gone)
            .entry(group)
            .or_insert_with(|| lock(&self.acked).clone());
    }
    fn keeps(&self, lease: &Lease) -> bool {
        let group = (lease.event.stream.clone(), lease.group.clone());
        let gone = lock(&self.gone);
        gone.get(&group)
            .is_none_or(|gone| !gone.contains(&spot(&lease.event)))
    }
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Ack {
            lock(&self.acked).insert(spot(&lease.event));
        }
    }
}

// DLV-2

#[derive(Default)]
struct DefaultStartIsTheEnd;

impl Tweak for DefaultStartIsTheEnd {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        if options.start == Start::Beginning {
            options.start = Start::End;
        }
    }
}

#[derive(Default)]
struct StartIsInclusive;

impl Tweak for StartIsInclusive {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        if let Start::AfterSequence(sequence) = &mut options.start {
            *sequence = sequence.previous();
        }
    }
}

#[derive(Default)]
struct StartIsOfPartition0;

impl Tweak for StartIsOfPartition0 {
    fn creating(&self, _: &StreamName, _: &GroupName, options: &mut GroupOptions) {
        if let Start::AfterSequence(sequence) = options.start {
            let only = BTreeMap::from([(Partition::ZERO, sequence)]);
            options.start = Start::AfterSequences(only);
        }
    }
}

/// All events of a stream, by partition.
async fn logs(real: &Real, stream: &StreamName) -> BTreeMap<Partition, Vec<Event>> {
    let mut logs = BTreeMap::new();
    for partition in (0..1_024).map(Partition::new) {
        let options = ReadOptions::new()
            .with_partition(partition)
            .with_limit(u32::MAX);
        match real.backend.read(stream, &options).await {
            Ok(events) => logs.insert(partition, events),
            Err(_) => break,
        };
    }
    logs
}

/// Makes a group that starts where `start` says for the events of a partition.
async fn create_from(
    real: &Real,
    (stream, group): (&StreamName, &GroupName),
    options: &GroupOptions,
    start: impl Fn(Partition, &[Event]) -> Sequence,
) -> Result<()> {
    let logs = logs(real, stream).await;
    let starts = logs.iter().map(|(partition, events)| {
        let high_watermark = events.last().map_or(Sequence::ZERO, |event| event.sequence);
        (*partition, start(*partition, events).min(high_watermark))
    });
    let start = Start::AfterSequences(starts.collect());
    let options = options.clone().with_start(start);
    real.backend.create_group(stream, group, &options).await
}

/// `create_start!(Type, pattern => |partition, events| sequence)`: a defect in one kind of start.
macro_rules! create_start {
    ($type:ident, $pattern:pat => $start:expr) => {
        #[derive(Default)]
        struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn create_group(
                &self,
                real: &Real,
                stream: &StreamName,
                group: &GroupName,
                options: &GroupOptions,
            ) -> Result<()> {
                match &options.start {
                    $pattern => create_from(real, (stream, group), options, $start).await,
                    _ => real.backend.create_group(stream, group, options).await,
                }
            }
        }
    };
}

create_start!(UnnamedPartitionsStartAtTheEnd, Start::AfterSequences(named) => |partition, _: &[Event]| {
    named.get(&partition).copied().unwrap_or(Sequence::MAX)
});

create_start!(StartIsCutToTheEnd, Start::AfterSequence(sequence) => |_, _: &[Event]| *sequence);

#[derive(Default)]
struct StartIsComparedWithTheLargestPartition;

#[async_trait]
impl Defect for StartIsComparedWithTheLargestPartition {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let Start::AfterSequence(sequence) = options.start else {
            return real.backend.create_group(stream, group, options).await;
        };
        let logs = logs(real, stream).await;
        let highest = logs
            .values()
            .filter_map(|events| events.last())
            .map(|event| event.sequence);
        if highest.max().unwrap_or(Sequence::ZERO) < sequence {
            return real.backend.create_group(stream, group, options).await;
        }
        create_from(real, (stream, group), options, |_, _| sequence).await
    }
}

/// The sequence before the one at `index`.
fn before(index: usize) -> Sequence {
    Sequence::new(index as u64).unwrap_or(Sequence::MAX)
}

create_start!(StartTimeIsExclusive, Start::AtTime(time) => |_, events: &[Event]| {
    before(events.iter().position(|event| event.timestamp > *time).unwrap_or(events.len()))
});

create_start!(StartTimeIsInMilliseconds, Start::AtTime(time) => |_, events: &[Event]| {
    let millis = |time: Timestamp| time.as_micros().div_euclid(1_000);
    let is_it = |event: &Event| millis(event.timestamp) >= millis(*time);
    before(events.iter().position(is_it).unwrap_or(events.len()))
});

create_start!(StartTimeIsAfterTheLastEarlierEvent, Start::AtTime(time) => |_, events: &[Event]| {
    let earlier = events.iter().rposition(|event| event.timestamp < *time);
    before(earlier.map_or(0, |at| at + 1))
});

create_start!(StartTimeIsFoundByBisection, Start::AtTime(time) => |_, events: &[Event]| {
    before(events.partition_point(|event| event.timestamp < *time))
});

#[derive(Default)]
struct StartTimeIsOfPartition0;

#[async_trait]
impl Defect for StartTimeIsOfPartition0 {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let Start::AtTime(time) = options.start else {
            return real.backend.create_group(stream, group, options).await;
        };
        let logs = logs(real, stream).await;
        let events = logs.get(&Partition::ZERO).map_or(&[][..], Vec::as_slice);
        let first = events.iter().position(|event| event.timestamp >= time);
        let start = before(first.unwrap_or(events.len()));
        create_from(real, (stream, group), options, |_, _| start).await
    }
}

#[derive(Default)]
struct StartTimeIsComparedAtEachFetch(Mutex<HashMap<(StreamName, GroupName), Timestamp>>);

impl Tweak for StartTimeIsComparedAtEachFetch {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        if let Start::AtTime(time) = options.start {
            options.start = Start::Beginning;
            lock(&self.0).insert((stream.clone(), group.clone()), time);
        }
    }
    fn keeps(&self, lease: &Lease) -> bool {
        let group = (lease.event.stream.clone(), lease.group.clone());
        let start = lock(&self.0).get(&group).copied();
        start.is_none_or(|start| lease.event.timestamp >= start)
    }
}

#[derive(Default)]
struct EndIsFoundAtTheFirstFetch(Mutex<HashSet<(StreamName, GroupName)>>);

#[async_trait]
impl Tweak for EndIsFoundAtTheFirstFetch {
    fn creating(&self, stream: &StreamName, group: &GroupName, options: &mut GroupOptions) {
        if options.start == Start::End {
            lock(&self.0).insert((stream.clone(), group.clone()));
        }
    }
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        _: &mut FetchOptions,
    ) {
        let is_first = lock(&self.0).remove(&(stream.clone(), group.clone()));
        if is_first {
            let end = ResetOptions::new().with_start(Start::End);
            let _ = real.backend.reset_group(stream, group, &end).await;
        }
    }
}

#[derive(Default)]
struct EndOfNothingIsTheFirst(Mutex<HashSet<(StreamName, GroupName)>>);

#[async_trait]
impl Defect for EndOfNothingIsTheFirst {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let is_empty = logs(real, stream).await.values().all(Vec::is_empty);
        if options.start == Start::End && is_empty {
            lock(&self.0).insert((stream.clone(), group.clone()));
        }
        real.backend.create_group(stream, group, options).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        let key = (stream.clone(), group.clone());
        if !leases.is_empty() && lock(&self.0).remove(&key) {
            real.backend.ack(&leases.remove(0)).await?;
        }
        Ok(leases)
    }
}

#[derive(Default)]
struct DuplicateGroupStartsAgain;

#[async_trait]
impl Defect for DuplicateGroupStartsAgain {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let created = real.backend.create_group(stream, group, options).await;
        if let Err(Error::AlreadyExists(_)) = created {
            let start = ResetOptions::new().with_start(options.start.clone());
            let _ = real.backend.reset_group(stream, group, &start).await;
        }
        created
    }
}

// DLV-3

/// One fetch for each selected partition, in that order, with that limit.
async fn fetch_each(
    real: &Real,
    (stream, group): (&StreamName, &GroupName),
    options: &FetchOptions,
    order: impl IntoIterator<Item = Partition>,
    limit_is_of_each: bool,
) -> Result<Vec<Lease>> {
    // Whatever is wrong with the request is found out here.
    let none = options.clone().with_limit(0);
    let mut leases = real.backend.fetch(stream, group, &none).await?;
    for partition in order {
        let mut options = options.clone();
        if !options.partitions.contains(partition) {
            continue;
        }
        if !limit_is_of_each {
            let so_far = u32::try_from(leases.len()).unwrap_or(u32::MAX);
            options.limit = options.limit.saturating_sub(so_far);
        }
        let options = options.with_partitions(partition);
        leases.extend(real.backend.fetch(stream, group, &options).await?);
    }
    Ok(leases)
}

/// The partitions of a stream, ascending.
async fn partitions(real: &Real, stream: &StreamName) -> Vec<Partition> {
    logs(real, stream).await.into_keys().collect()
}

#[derive(Default)]
struct LimitIsOfEachPartition;

#[async_trait]
impl Defect for LimitIsOfEachPartition {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let order = partitions(real, stream).await;
        fetch_each(real, (stream, group), options, order, true).await
    }
}

#[derive(Default)]
struct LimitIsOffByOne;

impl Tweak for LimitIsOffByOne {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        if options.limit > 1 {
            options.limit = options.limit.saturating_add(1);
        }
    }
}

#[derive(Default)]
struct LimitOf0IsNone;

impl Tweak for LimitOf0IsNone {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        if options.limit == 0 {
            options.limit = u32::MAX;
        }
    }
}

#[derive(Default)]
struct LimitOf0ClaimsOne;

#[async_trait]
impl Defect for LimitOf0ClaimsOne {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        if options.limit == 0 {
            let one = options.clone().with_limit(1);
            real.backend.fetch(stream, group, &one).await?;
            return Ok(Vec::new());
        }
        real.backend.fetch(stream, group, options).await
    }
}

#[derive(Default)]
struct LimitIsSigned;

impl Tweak for LimitIsSigned {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        if i32::try_from(options.limit).is_err() {
            options.limit = 0;
        }
    }
}

/// Only in a group where nothing was fetched before, so that not every case is full of it.
#[derive(Default)]
struct LimitOf1IsTheDefaultOf2(Mutex<HashSet<(StreamName, GroupName)>>);

#[async_trait]
impl Tweak for LimitOf1IsTheDefaultOf2 {
    async fn before_fetch(
        &self,
        _: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        let is_first = lock(&self.0).insert((stream.clone(), group.clone()));
        if is_first && options.limit == 1 {
            options.limit = 2;
        }
    }
}

#[derive(Default)]
struct DeadLettersFillEmptyFetches;

#[async_trait]
impl Defect for DeadLettersFillEmptyFetches {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        let one = DeadLetterOptions::new().with_limit(1);
        let dead = real.backend.dead_letters(stream, group, &one).await?;
        if !leases.is_empty() || dead.is_empty() {
            return Ok(leases);
        }
        let ids: Vec<EventId> = dead.iter().map(|dead| dead.event.id).collect();
        let again = Replay::Events(ids);
        real.backend.replay(stream, group, &again).await?;
        real.backend.fetch(stream, group, options).await
    }
}

#[derive(Default)]
struct FetchLooksAtFiftyEvents(Mutex<BTreeSet<(Spot, GroupName)>>);

#[async_trait]
impl Defect for FetchLooksAtFiftyEvents {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut seen = Vec::new();
        for lease in real.backend.fetch(stream, group, options).await? {
            let mut open = lock(&self.0).clone();
            open.retain(|(spot, of)| spot.0 == *stream && of == group);
            let lowest = open.first().map_or(lease.event.sequence, |open| open.0.2);
            let is_far = lease.event.sequence.get() > lowest.get() + 50;
            if is_far && lease.attempt > 1 {
                real.backend.retry(&lease, &RetryOptions::new()).await?;
            } else {
                lock(&self.0).insert((spot(&lease.event), group.clone()));
                seen.push(lease);
            }
        }
        Ok(seen)
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        lock(&self.0).remove(&(spot(&lease.event), lease.group.clone()));
        Ok(())
    }
}

#[derive(Default)]
struct SelectionIsIgnored;

impl Tweak for SelectionIsIgnored {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        if options.partitions != Partitions::only([]) {
            options.partitions = Partitions::All;
        }
    }
}

#[derive(Default)]
struct SelectionComesAfterTheLimit;

#[async_trait]
impl Defect for SelectionComesAfterTheLimit {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        // Whatever is wrong with the request is found out here.
        let none = options.clone().with_limit(0);
        let mut selected = real.backend.fetch(stream, group, &none).await?;
        let all = options.clone().with_partitions(Partitions::All);
        for lease in real.backend.fetch(stream, group, &all).await? {
            if options.partitions.contains(lease.event.partition) {
                selected.push(lease);
            } else {
                real.backend.retry(&lease, &RetryOptions::new()).await?;
            }
        }
        Ok(selected)
    }
}

#[derive(Default)]
struct NoPartitionsAreAll;

impl Tweak for NoPartitionsAreAll {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        if options.partitions == Partitions::only([]) {
            options.partitions = Partitions::All;
        }
    }
}

// DLV-4

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

// DLV-5

#[derive(Default)]
struct LowestPartitionFirst;

#[async_trait]
impl Defect for LowestPartitionFirst {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let order = partitions(real, stream).await;
        fetch_each(real, (stream, group), options, order, false).await
    }
}

#[derive(Default)]
struct FullestPartitionFirst;

#[async_trait]
impl Defect for FullestPartitionFirst {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut logs: Vec<_> = logs(real, stream).await.into_iter().collect();
        let (most, least) = (
            logs.iter().map(|(_, events)| events.len()).max(),
            logs.iter().map(|(_, events)| events.len()).min(),
        );
        if most == least {
            return real.backend.fetch(stream, group, options).await;
        }
        logs.sort_by_key(|(_, events)| std::cmp::Reverse(events.len()));
        let order = logs.into_iter().map(|(partition, _)| partition);
        fetch_each(
            real,
            (stream, group),
            options,
            order.collect::<Vec<_>>(),
            false,
        )
        .await
    }
}

#[derive(Default)]
struct RetriesComeFirst(Mutex<Vec<Partition>>);

#[async_trait]
impl Defect for RetriesComeFirst {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<rheo_core::RetryOutcome> {
        lock(&self.0).push(lease.event.partition);
        real.backend.retry(lease, options).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let retried = lock(&self.0).first().copied();
        let Some(retried) = retried else {
            return real.backend.fetch(stream, group, options).await;
        };
        let mut order = partitions(real, stream).await;
        order.sort_by_key(|partition| *partition != retried);
        fetch_each(real, (stream, group), options, order, false).await
    }
}

#[derive(Default)]
struct LowestSelectedPartitionFirst;

#[async_trait]
impl Defect for LowestSelectedPartitionFirst {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        if options.partitions == Partitions::All {
            return real.backend.fetch(stream, group, options).await;
        }
        let order = partitions(real, stream).await;
        fetch_each(real, (stream, group), options, order, false).await
    }
}

// DLV-6

#[derive(Default)]
struct CaughtUpGroupSkipsOne(Mutex<HashSet<(StreamName, GroupName)>>);

#[async_trait]
impl Defect for CaughtUpGroupSkipsOne {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let key = (stream.clone(), group.clone());
        let mut leases = real.backend.fetch(stream, group, options).await?;
        if leases.is_empty() && options.limit > 0 {
            lock(&self.0).insert(key);
        } else if leases
            .first()
            .is_some_and(|lease| lease.attempt == 1 && lease.event.sequence > Sequence::ZERO.next())
            && lock(&self.0).remove(&key)
        {
            real.backend.ack(&leases.remove(0)).await?;
        }
        Ok(leases)
    }
}

#[derive(Default)]
struct AckSettlesAllBelow(Mutex<HashMap<(StreamName, GroupName, Partition), Sequence>>);

impl Tweak for AckSettlesAllBelow {
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Ack {
            let (stream, group, partition, sequence) = place_of(lease);
            let mut positions = lock(&self.0);
            let position = positions.entry((stream, group, partition)).or_default();
            *position = sequence.max(*position);
        }
    }
    fn keeps(&self, lease: &Lease) -> bool {
        let (stream, group, partition, sequence) = place_of(lease);
        let positions = lock(&self.0);
        let position = positions.get(&(stream, group, partition)).copied();
        position.is_none_or(|position| sequence > position)
    }
    fn went_back(&self, _: Back<'_>) {
        lock(&self.0).clear();
    }
}

#[derive(Default)]
struct FetchAcksTheLast(Claims);

#[async_trait]
impl Tweak for FetchAcksTheLast {
    async fn before_fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &mut FetchOptions,
    ) {
        for claim in self.0.expired(stream, group, real.now()) {
            let is_its_own = claim.consumer == options.consumer && claim.attempt == 1;
            if is_its_own && self.0.by_id(&claim.lease_id).as_ref() == Some(&claim) {
                let _ = real.backend.ack(&claim).await;
            }
        }
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
}

/// Of the delayed events that are due only the first three come again.
#[derive(Default)]
struct DelayedEventsGetLost(Mutex<HashMap<Place, usize>>);

impl Tweak for DelayedEventsGetLost {
    fn retrying(&self, _: Timestamp, lease: &Lease, options: &mut RetryOptions) {
        let mut delayed = lock(&self.0);
        if options.delay != RetryDelay::NONE {
            let count = delayed.len();
            delayed.entry(place_of(lease)).or_insert(count);
        }
    }
    fn keeps(&self, lease: &Lease) -> bool {
        let delayed = lock(&self.0);
        delayed.get(&place_of(lease)).is_none_or(|turn| *turn < 3)
    }
}

/// The highest partition of which a group has acked something.
#[derive(Default)]
struct PositionIsOverAllPartitions(Mutex<HashMap<(StreamName, GroupName), Partition>>);

#[async_trait]
impl Defect for PositionIsOverAllPartitions {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        let group = (lease.event.stream.clone(), lease.group.clone());
        let mut acked = lock(&self.0);
        let highest = acked.entry(group).or_default();
        *highest = lease.event.partition.max(*highest);
        Ok(())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut kept = Vec::new();
        let position = lock(&self.0).get(&(stream.clone(), group.clone())).copied();
        for lease in real.backend.fetch(stream, group, options).await? {
            let is_new = lease.attempt == 1;
            if is_new && position.is_some_and(|position| lease.event.partition < position) {
                real.backend.ack(&lease).await?;
            } else {
                kept.push(lease);
            }
        }
        Ok(kept)
    }
}

#[derive(Default)]
struct PositionIsATime(Mutex<HashMap<(StreamName, GroupName), Timestamp>>);

impl Tweak for PositionIsATime {
    fn done(&self, _: Timestamp, step: Step, lease: &Lease) {
        if step == Step::Ack {
            let group = (lease.event.stream.clone(), lease.group.clone());
            let mut acked = lock(&self.0);
            let latest = acked.entry(group).or_insert(Timestamp::MIN);
            *latest = lease.event.timestamp.max(*latest);
        }
    }
    fn keeps(&self, lease: &Lease) -> bool {
        let group = (lease.event.stream.clone(), lease.group.clone());
        let latest = lock(&self.0).get(&group).copied();
        latest.is_none_or(|latest| lease.event.timestamp >= latest)
    }
}

// DLV-7

#[derive(Default)]
struct LastEventHasTwoHolders(Claims);

impl Tweak for LastEventHasTwoHolders {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.0.note(lease);
    }
    fn fetched(&self, options: &FetchOptions, leases: &mut Vec<Lease>) {
        let has_room = leases.len() < options.limit as usize;
        let Some(first) = leases.first().filter(|_| has_room).cloned() else {
            return;
        };
        let is_elsewhere = |claim: &&Lease| {
            claim.event.stream == first.event.stream
                && claim.group == first.group
                && claim.consumer != first.consumer
                && claim.expires_at > first.leased_at
        };
        leases.extend(self.0.all().iter().rfind(is_elsewhere).cloned());
    }
}

#[derive(Default)]
struct HolderGetsItsEventAgain(Claims, Mutex<HashSet<Place>>);

#[async_trait]
impl Defect for HolderGetsItsEventAgain {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        lock(&self.1).insert(place_of(lease));
        Ok(())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        leases.iter().for_each(|lease| self.0.note(lease));
        if leases.is_empty() && options.limit == 1 {
            let mut held = self.0.all();
            held.retain(|claim| {
                claim.event.stream == *stream
                    && claim.group == *group
                    && claim.consumer == options.consumer
                    && claim.expires_at > real.now()
                    && !lock(&self.1).contains(&place_of(claim))
            });
            held.truncate(1);
            return Ok(held);
        }
        Ok(leases)
    }
}

#[derive(Default)]
struct AckLeavesTheClaim;

#[async_trait]
impl Defect for AckLeavesTheClaim {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let left = lease.expires_at.saturating_since(real.now());
        match RetryDelay::new(left) {
            Ok(left) if left != RetryDelay::NONE => {
                let until_then = RetryOptions::new().with_delay(left);
                real.backend.retry(lease, &until_then).await.map(drop)
            }
            _ => real.backend.ack(lease).await,
        }
    }
}

/// Fetches wait a little for each other, so that it shows.
#[derive(Default)]
struct ConcurrentFetchesChooseFirst(Mutex<(u32, Option<Lease>)>);

#[async_trait]
impl Defect for ConcurrentFetchesChooseFirst {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        lock(&self.0).0 += 1;
        let mut is_shared = false;
        for _ in 0..200 {
            is_shared = lock(&self.0).0 > 1;
            if is_shared {
                break;
            }
            tokio::task::yield_now().await;
        }
        let leases = real.backend.fetch(stream, group, options).await;
        tokio::task::yield_now().await;
        let mut inside = lock(&self.0);
        inside.0 -= 1;
        let mut leases = leases?;
        if let Some(chosen) = inside.1.take().filter(|_| is_shared)
            && let Some(last) = leases.last_mut()
            && (&chosen.event.stream, &chosen.group) == (stream, group)
        {
            *last = chosen;
        }
        inside.1 = leases.last().cloned();
        Ok(leases)
    }
}

// DLV-8

#[derive(Default)]
struct LeaseHasNoMetadata;

impl Tweak for LeaseHasNoMetadata {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        lease.event.metadata = JsonObject::default();
    }
}

#[derive(Default)]
struct ConsumerIsFolded;

impl Tweak for ConsumerIsFolded {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        let folded = ConsumerId::new(&*lease.consumer.as_str().replace(' ', ""));
        lease.consumer = folded.unwrap_or(lease.consumer.clone());
    }
}

#[derive(Default)]
struct LeasesLastWholeSeconds;

impl Tweak for LeasesLastWholeSeconds {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        let duration = options.lease_duration.as_duration();
        let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
        let whole = LeaseDuration::new(Duration::from_secs(seconds));
        options.lease_duration = whole.unwrap_or(options.lease_duration);
    }
}

#[derive(Default)]
struct LeasesLastTwelveHours;

impl Tweak for LeasesLastTwelveHours {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        let most = LeaseDuration::new(Duration::from_secs(43_200));
        let most = most.unwrap_or(options.lease_duration);
        options.lease_duration = options.lease_duration.min(most);
    }
}

#[derive(Default)]
struct LateExpiryOverflows;

#[async_trait]
impl Defect for LateExpiryOverflows {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let left = Timestamp::MAX.saturating_since(real.now());
        if options.lease_duration.as_duration() > left {
            return Err(Error::Failed(Cause::new("timestamp out of range")));
        }
        real.backend.fetch(stream, group, options).await
    }
}

#[derive(Default)]
struct ReclaimKeepsTheConsumer(Claims);

impl Tweak for ReclaimKeepsTheConsumer {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        if let Some(first) = self.0.last_of(lease) {
            lease.consumer = first.consumer;
        }
        self.0.note(lease);
    }
}

#[derive(Default)]
struct ClaimKeepsItsFirstTime(Claims);

impl Tweak for ClaimKeepsItsFirstTime {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        if let Some(first) = self.0.last_of(lease) {
            lease.leased_at = first.leased_at;
        }
        self.0.note(lease);
    }
}

// ERR-6

#[derive(Default)]
struct GroupIsLookedUpAlone;

#[async_trait]
impl Defect for GroupIsLookedUpAlone {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        match real.backend.fetch(stream, group, options).await {
            Err(Error::StreamNotFound { stream }) => {
                let group = group.clone();
                Err(Error::GroupNotFound { stream, group })
            }
            other => other,
        }
    }
}
