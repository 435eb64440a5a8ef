//! Defects that the cases of `replay` are there for.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, Event, EventId, FetchOptions, GroupName, GroupOptions,
    Lag, Lease, LeaseDuration, LeaseId, ListOptions, NewEvent, Partition, Partitions, ReadOptions,
    Reason, Replay, ResetOptions, Result, RetryDelay, RetryOptions, RetryOutcome, Sequence, Start,
    StreamName, Timestamp, async_trait,
};

use super::Faulty;
use crate::book::{Book, all_dead, held, log_of};
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        ReplayIncludesTheSequence: "a replay reopens the sequence itself too",
        says: "the claimable sequences to be [3, 4]",
        kills: [
            "replay::RPL-1::replay_after_a_sequence_is_exclusive",
            "dead_letters::DLQ-5::an_after_that_was_replayed_is_cursor_not_found",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-1::dead_letters_above_are_gone_and_those_below_stay",
            "replay::RPL-1::each_partition_is_replayed_after_its_own_sequence",
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-3::replay_never_raises_the_frontier",
            "reset::RPL-5::a_group_that_was_reset_forward_can_be_replayed",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "durability::DUR-1::a_replay_survives",
        ],
    },
    faulty! {
        ReplayForgetsTheDead: "what is dead is not delivered again after a replay",
        says: "the claimable sequences to be [1, 2, 3, 4]",
        kills: [
            "replay::RPL-1::replay_reopens_what_was_acked_and_what_is_dead",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
        ],
    },
    faulty! {
        GoingBackKeepsWaits: "neither replay nor reset end the wait of a retry",
        says: "the claimable sequences to be [2]",
        kills: [
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "reset::RPL-5::reset_starts_again_from_the_beginning",
        ],
    },
    faulty! {
        GoingBackPardonsLeases: "leases from before a replay or reset can still be renewed and acked",
        says: "Err(StaleLease)",
        kills: [
            "replay::RPL-1::a_replayed_lease_settles_nothing",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-1::an_expired_lease_is_replayed_too",
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-5::a_partition_that_the_start_does_not_name_starts_at_its_beginning",
            "reset::RPL-5::reset_may_go_forward",
            "reset::RPL-5::reset_of_one_partition_leaves_the_others",
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "reset::RPL-5::reset_to_the_end_waits_for_new_events",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
        ],
    },
    faulty! {
        ReplayPardonsExpiredLeases: "expired leases can still be renewed after a replay",
        says: "Err(StaleLease)",
        kills: ["replay::RPL-1::an_expired_lease_is_replayed_too"],
    },
    faulty! {
        LeaseIdsAreMadeOfAttempts: "the lease id is made of group, event and attempt, so that it comes again",
        says: "Err(StaleLease)",
        kills: [
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "leases::LSE-1::a_lease_id_cannot_be_guessed_from_another",
            "leases::LSE-1::a_replayed_event_gets_a_new_lease_id",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "receipts::LSE-3::a_replayed_lease_with_another_receipt_is_stale",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_lease_from_before_a_reset_settles_nothing",
            "reset::RPL-7::acks_that_race_a_reset_lose_no_event",
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
        ],
    },
    faulty! {
        GoingBackKeepsAttempts: "attempts are counted on after a replay or reset",
        says: "the attempts to be [1, 1, 1]",
        kills: [
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-1::a_replayed_lease_settles_nothing",
            "replay::RPL-1::an_expired_lease_is_replayed_too",
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "reset::RPL-5::attempts_begin_again_after_a_reset",
            "distribution::DST-1::a_lease_replaced_elsewhere_is_stale",
            "distribution::DST-1::a_retry_elsewhere_counts_as_an_attempt",
            "durability::DUR-1::attempts_survive",
            "durability::DUR-1::the_delay_of_a_retry_survives",
            "durability::DUR-1::the_expiry_of_a_lease_survives",
        ],
    },
    faulty! {
        ReplayGivesEverythingBack: "a replay ends the leases at or below the sequence as well",
        says: "the lease is stale",
        kills: [
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-3::replay_never_raises_the_frontier",
        ],
    },
    faulty! {
        ReplayStopsAtTheStart: "a replay after a sequence goes no further back than to the group's start",
        says: "the claimable sequences to be [2, 3, 4, 5]",
        kills: [
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-1::a_group_that_started_at_the_end_can_go_back",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "reset::RPL-5::a_group_that_was_reset_forward_can_be_replayed",
        ],
    },
    faulty! {
        ReplayIgnoresThePartitions: "a replay is of all partitions",
        says: "the lease is stale",
        kills: [
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "input::ERR-8::a_replay_out_of_range_is_invalid",
            "replay::ERR-8::replay_of_a_partition_out_of_range_reopens_nothing",
            "replay::RPL-1::replay_of_no_partition_changes_nothing",
        ],
    },
    faulty! {
        ReplayTakesTheLowestOfAll: "of a sequence for each partition, the lowest is used for all",
        says: "the claimable places (partition, sequence) to be [(0, 3), (2, 2), (2, 3)]",
        kills: ["replay::RPL-1::each_partition_is_replayed_after_its_own_sequence"],
    },
    faulty! {
        ReplayOfNoPartitionIsOfAll: "an empty selection of partitions replays all",
        says: "no claimable event",
        kills: ["replay::RPL-1::replay_of_no_partition_changes_nothing"],
    },
    faulty! {
        ReplayOfNoSequenceIsOfAll: "an empty list of sequences replays everything",
        says: "no claimable event",
        kills: ["replay::RPL-1::replay_of_no_partition_changes_nothing"],
    },
    faulty! {
        ReplayKeepsTheListOfTheDead: "replayed dead letters are still listed",
        says: "the dead letters to be equal",
        kills: [
            "replay::RPL-1::dead_letters_above_are_gone_and_those_below_stay",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
        ],
    },
    faulty! {
        TheFirstDeathCounts: "a dead letter that dies again keeps its first attempt and reason",
        says: "attempt and reason of the dead letters to be [(1, \"second\")]",
        kills: ["replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter"],
    },
    faulty! {
        ReplayHappensOnce: "the same replay is done only once",
        says: "Err(StaleLease)",
        kills: [
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-2::replays_at_random_follow_the_rules",
        ],
    },
    faulty! {
        TheFrontierNeverFalls: "the frontier is only ever raised, whatever is replayed or reset",
        says: "the frontier to be 2",
        kills: [
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "reset::RPL-5::the_frontier_is_the_new_start",
        ],
    },
    faulty! {
        ReplaySetsTheFrontier: "a replay sets the frontier to its sequence, also upwards",
        says: "the frontier to be 0",
        kills: [
            "replay::RPL-2::a_lower_frontier_stays_where_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-3::replay_never_raises_the_frontier",
        ],
    },
    faulty! {
        TheFrontierStopsAtTheStart: "the frontier is never below the group's first start",
        says: "the frontier to be 1",
        kills: [
            "replay::RPL-2::below_the_start_the_frontier_falls_to_the_sequence",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
        ],
    },
    faulty! {
        ReplayJumpsForward: "a replay beyond what was claimed moves the group forward",
        says: "the lease is stale",
        kills: [
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-3::replay_before_anything_was_claimed_changes_nothing",
            "replay::RPL-3::replay_never_raises_the_frontier",
        ],
    },
    faulty! {
        ReplayRemembersThePosition: "after a replay nothing at or below its sequence is delivered, also what is appended later",
        says: "the claimable sequences to be [1, 2, 3]",
        kills: [
            "replay::RPL-3::replay_on_an_empty_stream_skips_no_later_event",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-3::replay_before_anything_was_claimed_changes_nothing",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-6::replay_leaves_the_log_alone",
        ],
    },
    faulty! {
        TheDeadAreNotChosen: "a replay of chosen events leaves out the dead",
        says: "the claimable sequences to be [1, 2, 3, 4, 5]",
        kills: [
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-2::replays_at_random_follow_the_rules",
        ],
    },
    faulty! {
        ChosenEventsReopenAllAbove: "a replay of chosen events reopens everything from the lowest of them",
        says: "the lease is stale",
        kills: [
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "delivery::DLV-4::replayed_events_go_before_what_is_new",
            "leases::LSE-2::a_lease_of_a_chosen_event_that_was_replayed_is_stale",
            "replay::DLV-4::reopened_events_come_before_later_ones_in_their_order",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-4::a_chosen_event_below_the_start_is_delivered",
            "replay::RPL-4::an_unknown_id_reopens_nothing",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "replay::RPL-4::chosen_events_are_reopened_in_their_own_partitions",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
        ],
    },
    faulty! {
        ReplayJumpsToTheChosenEvent: "a chosen event that was never claimed is where the group goes on",
        says: "the lease is stale",
        kills: [
            "replay::RPL-4::a_chosen_event_that_was_never_claimed_stays_as_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
        ],
    },
    faulty! {
        EventsBelowTheStartCannotBeChosen: "chosen events at or below the group's start are left out",
        says: "the claimable sequences to be [2, 4]",
        kills: [
            "replay::RPL-4::a_chosen_event_below_the_start_is_delivered",
            "replay::RPL-4::an_unknown_id_reopens_nothing",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
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
        ],
    },
    faulty! {
        EventsAreChosenBySequence: "events with the sequence of a chosen one are reopened in all partitions",
        says: "the claimable places (partition, sequence) to be [(0, 2), (2, 1)]",
        kills: [
            "replay::RPL-4::chosen_events_are_reopened_in_their_own_partitions",
            "replay::RPL-4::an_unknown_id_reopens_nothing",
        ],
    },
    faulty! {
        ReopenedEventsComeInTheOrderGiven: "what is reopened is queued in the order in which it was chosen",
        says: "the order of delivery to be [2, 4, 6]",
        kills: [
            "replay::DLV-4::reopened_events_come_before_later_ones_in_their_order",
            "delivery::DLV-4::replayed_events_go_before_what_is_new",
            "replay::RPL-4::an_unknown_id_reopens_nothing",
            "replay::RPL-4::chosen_events_are_reopened_in_every_state",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "replay::RPL-6::replay_leaves_other_groups_alone",
        ],
    },
    faulty! {
        ReplayIsForAllGroups: "a replay is done for every group of the stream",
        says: "the lease is stale",
        kills: ["replay::RPL-6::replay_leaves_other_groups_alone"],
    },
    faulty! {
        ReplayAppendsAgain: "a replay appends the events to the log again",
        says: "the log to be equal",
        kills: [
            "replay::RPL-6::replay_leaves_the_log_alone",
            "leases::LSE-2::a_lease_from_before_a_replay_is_stale",
            "log::LOG-4::replay_and_reset_change_no_event",
            "replay::RPL-1::a_group_that_started_at_the_end_can_go_back",
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-1::a_replayed_lease_is_stale_after_the_event_was_claimed_again",
            "replay::RPL-1::a_replayed_lease_settles_nothing",
            "replay::RPL-1::an_expired_lease_is_replayed_too",
            "replay::RPL-1::attempts_begin_again_after_a_replay",
            "replay::RPL-1::replay_after_a_sequence_is_exclusive",
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-1::replay_ends_the_wait_of_a_retry",
            "replay::RPL-1::replay_of_no_partition_changes_nothing",
            "replay::RPL-1::replay_of_one_partition_leaves_the_others",
            "replay::RPL-1::replay_reopens_what_was_acked_and_what_is_dead",
            "replay::RPL-1::what_is_at_or_below_the_sequence_stays_as_it_is",
            "replay::RPL-2::replays_at_random_follow_the_rules",
            "replay::RPL-2::the_frontier_falls_to_the_sequence",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-3::replay_before_anything_was_claimed_changes_nothing",
            "replay::RPL-3::replay_beyond_what_was_claimed_skips_nothing",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-7::acks_that_race_a_replay_lose_no_event",
            "replay::RPL-7::fetches_that_race_a_replay_lose_no_event",
            "replay::RPL-7::no_batch_of_leases_from_before_settles_after",
            "reset::RPL-5::a_group_that_was_reset_forward_can_be_replayed",
            "streams::STR-4::going_back_on_one_stream_leaves_the_other",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "durability::DUR-1::a_replay_survives",
        ],
    },
    faulty! {
        ReplayInTwoSteps: "acks that come in between the two steps of a replay stay acked",
        says: "the claimable sequences to be [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]",
        kills: ["replay::RPL-7::acks_that_race_a_replay_lose_no_event"],
    },
    faulty! {
        ReplayLosesRacingClaims: "what is claimed while a replay is under way is lost",
        says: "the claimable sequences to be [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]",
        kills: ["replay::RPL-7::fetches_that_race_a_replay_lose_no_event"],
    },
    faulty! {
        ABatchOfAcksIgnoresReplays: "a batch of acks lets leases from before a replay through",
        says: "Err(StaleLease)",
        kills: ["replay::RPL-7::no_batch_of_leases_from_before_settles_after"],
    },
    faulty! {
        WhatIsMissingIsReplayed: "a replay of a missing group is Ok",
        says: "Err(GroupNotFound)",
        kills: [
            "replay::ERR-6::replay_looks_for_the_stream_before_the_group",
            "input::ERR-6::a_missing_group_comes_before_bad_input",
            "input::ERR-6::a_missing_group_is_named",
            "input::ERR-6::nothing_to_replay_excuses_no_missing_group",
        ],
    },
    faulty! {
        ReplayLooksForTheGroupAlone: "a replay on a missing stream says that the group is missing",
        says: "Err(StreamNotFound)",
        kills: [
            "replay::ERR-6::replay_looks_for_the_stream_before_the_group",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
        ],
    },
    faulty! {
        ReplayChecksAsItGoes: "partitions are replayed one by one until one is out of range",
        says: "no reopened event",
        kills: [
            "replay::ERR-8::replay_of_a_partition_out_of_range_reopens_nothing",
            "input::ERR-6::nothing_to_replay_excuses_no_missing_group",
            "input::ERR-8::a_replay_out_of_range_is_invalid",
        ],
    },
];

#[derive(Default)]
struct ReplayIncludesTheSequence;

#[async_trait]
impl Defect for ReplayIncludesTheSequence {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let replay = with_sequences(replay, Sequence::previous);
        real.backend.replay(stream, group, &replay).await
    }
}

#[derive(Default)]
struct ReplayForgetsTheDead {
    hidden: Mutex<HashSet<(EventId, GroupName)>>,
}

#[async_trait]
impl Defect for ReplayForgetsTheDead {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        leases.retain(|lease| !held(&self.hidden).contains(&(lease.event.id, lease.group.clone())));
        Ok(leases)
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let dead = all_dead(real, stream, group).await?;
        held(&self.hidden).extend(
            dead.into_iter()
                .map(|letter| (letter.event.id, letter.group)),
        );
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct GoingBackKeepsWaits {
    due: Mutex<HashMap<(EventId, GroupName), Timestamp>>,
}

#[async_trait]
impl Defect for GoingBackKeepsWaits {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let due = real.now().saturating_add(options.delay.as_duration());
        if options.delay > RetryDelay::NONE {
            held(&self.due).insert((lease.event.id, lease.group.clone()), due);
        }
        real.backend.retry(lease, options).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        let waits = |lease: &Lease| {
            held(&self.due).get(&(lease.event.id, lease.group.clone())) > Some(&real.now())
        };
        leases.retain(|lease| !waits(lease));
        Ok(leases)
    }
}

#[derive(Default)]
struct GoingBackPardonsLeases {
    book: Book,
    pardoned: Mutex<HashSet<LeaseId>>,
}

#[async_trait]
impl Defect for GoingBackPardonsLeases {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        match real.backend.ack(lease).await {
            Err(Error::StaleLease) if held(&self.pardoned).contains(&lease.lease_id) => Ok(()),
            result => result,
        }
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        match real.backend.renew(lease, duration).await {
            Err(Error::StaleLease) if held(&self.pardoned).contains(&lease.lease_id) => {
                Ok(lease.clone())
            }
            result => result,
        }
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let current = self.book.current(real, stream, group).await;
        let pardoned = current.into_iter().map(|lease| lease.lease_id);
        held(&self.pardoned).extend(pardoned);
        real.backend.replay(stream, group, replay).await
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let current = self.book.current(real, stream, group).await;
        let pardoned = current.into_iter().map(|lease| lease.lease_id);
        held(&self.pardoned).extend(pardoned);
        real.backend.reset_group(stream, group, options).await
    }
}

#[derive(Default)]
struct ReplayPardonsExpiredLeases {
    book: Book,
    pardoned: Mutex<HashSet<LeaseId>>,
}

#[async_trait]
impl Defect for ReplayPardonsExpiredLeases {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        match real.backend.renew(lease, duration).await {
            Err(Error::StaleLease) if held(&self.pardoned).contains(&lease.lease_id) => {
                Ok(lease.clone())
            }
            result => result,
        }
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let current = self.book.current(real, stream, group).await;
        let pardoned = current
            .into_iter()
            .filter(|lease| lease.expires_at <= real.now())
            .map(|lease| lease.lease_id);
        held(&self.pardoned).extend(pardoned);
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct LeaseIdsAreMadeOfAttempts {
    ids: Mutex<HashMap<String, LeaseId>>,
}

#[async_trait]
impl Defect for LeaseIdsAreMadeOfAttempts {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for lease in &mut leases {
            let id = format!("{}/{}/{}", lease.group, lease.event.id, lease.attempt);
            held(&self.ids).insert(id.clone(), lease.lease_id.clone());
            lease.lease_id = LeaseId::new(id);
        }
        Ok(leases)
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = real.backend.renew(&self.real_one(lease), duration).await?;
        Ok(Lease {
            lease_id: lease.lease_id.clone(),
            ..renewed
        })
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(&self.real_one(lease)).await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        real.backend.retry(&self.real_one(lease), options).await
    }
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(&self.real_one(lease), reason).await
    }
}

#[derive(Default)]
struct GoingBackKeepsAttempts {
    claims: Mutex<HashMap<(EventId, GroupName), u32>>,
}

#[async_trait]
impl Defect for GoingBackKeepsAttempts {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for lease in &mut leases {
            let mut claims = held(&self.claims);
            let count = claims
                .entry((lease.event.id, lease.group.clone()))
                .or_default();
            *count += 1;
            lease.attempt = *count;
        }
        Ok(leases)
    }
}

#[derive(Default)]
struct ReplayGivesEverythingBack {
    book: Book,
}

#[async_trait]
impl Defect for ReplayGivesEverythingBack {
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
        let after = sequence_of(replay).unwrap_or_default();
        for lease in self.book.current(real, stream, group).await {
            if lease.event.sequence <= after {
                real.backend.retry(&lease, &RetryOptions::new()).await?;
            }
        }
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct ReplayStopsAtTheStart {
    starts: Starts,
}

#[async_trait]
impl Defect for ReplayStopsAtTheStart {
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
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.reset_group(stream, group, options).await?;
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
        let start = start_of(&self.starts, stream, group);
        let replay = with_sequences(replay, |sequence| sequence.max(start));
        real.backend.replay(stream, group, &replay).await
    }
}

#[derive(Default)]
struct ReplayIgnoresThePartitions;

#[async_trait]
impl Defect for ReplayIgnoresThePartitions {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match sequence_of(replay) {
            Some(sequence) => {
                real.backend
                    .replay(stream, group, &Replay::after(sequence))
                    .await
            }
            None => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ReplayTakesTheLowestOfAll;

#[async_trait]
impl Defect for ReplayTakesTheLowestOfAll {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match replay {
            Replay::AfterEach(sequences) if !sequences.is_empty() => {
                let lowest = sequences.values().min().copied().unwrap_or_default();
                let partitions = Partitions::only(sequences.keys().copied());
                let replay = Replay::After {
                    sequence: lowest,
                    partitions,
                };
                real.backend.replay(stream, group, &replay).await
            }
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ReplayOfNoPartitionIsOfAll;

#[async_trait]
impl Defect for ReplayOfNoPartitionIsOfAll {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match replay {
            Replay::After {
                sequence,
                partitions,
            } if *partitions == Partitions::only([]) => {
                real.backend
                    .replay(stream, group, &Replay::after(*sequence))
                    .await
            }
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ReplayOfNoSequenceIsOfAll;

#[async_trait]
impl Defect for ReplayOfNoSequenceIsOfAll {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match replay {
            Replay::AfterEach(sequences) if sequences.is_empty() => {
                real.backend
                    .replay(stream, group, &Replay::after(Sequence::ZERO))
                    .await
            }
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ReplayKeepsTheListOfTheDead {
    kept: Mutex<Vec<DeadLetter>>,
}

#[async_trait]
impl Defect for ReplayKeepsTheListOfTheDead {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        if options.after.is_none() {
            dead.extend(held(&self.kept).iter().cloned());
        }
        Ok(dead)
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let mut dead = all_dead(real, stream, group).await?;
        dead.retain(|letter| Some(letter.event.sequence) > sequence_of(replay));
        held(&self.kept).extend(dead);
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct TheFirstDeathCounts {
    first: Mutex<HashMap<(EventId, GroupName), (u32, Reason)>>,
}

#[async_trait]
impl Defect for TheFirstDeathCounts {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(lease, reason).await?;
        let key = (lease.event.id, lease.group.clone());
        held(&self.first)
            .entry(key)
            .or_insert((lease.attempt, reason.clone()));
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
        for letter in &mut dead {
            if let Some(first) = held(&self.first).get(&(letter.event.id, letter.group.clone())) {
                (letter.attempt, letter.reason) = first.clone();
            }
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct ReplayHappensOnce {
    seen: Mutex<HashSet<String>>,
}

#[async_trait]
impl Defect for ReplayHappensOnce {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        if held(&self.seen).insert(format!("{stream} {group} {replay:?}")) {
            real.backend.replay(stream, group, replay).await
        } else {
            Ok(())
        }
    }
}

#[derive(Default)]
struct TheFrontierNeverFalls {
    highest: Mutex<HashMap<(StreamName, GroupName, Partition), Sequence>>,
}

#[async_trait]
impl Defect for TheFrontierNeverFalls {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let _ = self.highest(real, stream, group).await;
        real.backend.replay(stream, group, replay).await
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let _ = self.highest(real, stream, group).await;
        real.backend.reset_group(stream, group, options).await
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        self.highest(real, stream, group).await
    }
}

#[derive(Default)]
struct ReplaySetsTheFrontier {
    set: Starts,
}

#[async_trait]
impl Defect for ReplaySetsTheFrontier {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        if let Some(sequence) = sequence_of(replay) {
            held(&self.set).insert((stream.clone(), group.clone()), sequence);
        }
        Ok(())
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        let progress = &mut lag.partitions[0];
        let set = start_of(&self.set, stream, group).min(progress.high_watermark);
        progress.frontier = progress.frontier.max(set);
        Ok(lag)
    }
}

#[derive(Default)]
struct TheFrontierStopsAtTheStart {
    starts: Starts,
}

#[async_trait]
impl Defect for TheFrontierStopsAtTheStart {
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
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        let progress = &mut lag.partitions[0];
        progress.frontier = progress.frontier.max(start_of(&self.starts, stream, group));
        Ok(lag)
    }
}

#[derive(Default)]
struct ReplayJumpsForward {
    book: Book,
}

#[async_trait]
impl Defect for ReplayJumpsForward {
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
        let last = real.backend.lag(stream, group).await?.partitions[0].high_watermark;
        match sequence_of(replay) {
            Some(sequence) if sequence > claimed => {
                let start = Start::AfterSequence(sequence.min(last));
                let options = ResetOptions::new().with_start(start);
                real.backend.reset_group(stream, group, &options).await
            }
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ReplayRemembersThePosition {
    position: Starts,
}

#[async_trait]
impl Defect for ReplayRemembersThePosition {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        if let Some(sequence) = sequence_of(replay) {
            held(&self.position).insert((stream.clone(), group.clone()), sequence);
        }
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
        let position = start_of(&self.position, stream, group);
        leases.retain(|lease| lease.attempt > 1 || lease.event.sequence > position);
        Ok(leases)
    }
}

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

#[derive(Default)]
struct ReplayIsForAllGroups;

#[async_trait]
impl Defect for ReplayIsForAllGroups {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        for other in real
            .backend
            .list_groups(stream, &ListOptions::new())
            .await?
        {
            real.backend.replay(stream, &other, replay).await?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct ReplayAppendsAgain;

#[async_trait]
impl Defect for ReplayAppendsAgain {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        if let Some(after) = sequence_of(replay) {
            let options = ReadOptions::new().with_after(after);
            for event in real.backend.read(stream, &options).await? {
                let again = NewEvent::new(event.event_type, event.payload.to_value())?;
                real.backend
                    .append(stream, again.with_partition(event.partition))
                    .await?;
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct ReplayInTwoSteps {
    is_half_way: AtomicBool,
    lost: Mutex<HashSet<(EventId, GroupName)>>,
}

#[async_trait]
impl Defect for ReplayInTwoSteps {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        if self.is_half_way.load(Ordering::SeqCst) {
            held(&self.lost).insert((lease.event.id, lease.group.clone()));
        }
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
        leases.retain(|lease| !held(&self.lost).contains(&(lease.event.id, lease.group.clone())));
        Ok(leases)
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        self.is_half_way.store(true, Ordering::SeqCst);
        for _ in 0..10_000 {
            if held(&self.lost).is_empty() {
                tokio::task::yield_now().await;
            }
        }
        self.is_half_way.store(false, Ordering::SeqCst);
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct ReplayLosesRacingClaims {
    is_half_way: AtomicBool,
    lost: Mutex<HashSet<(EventId, GroupName)>>,
}

#[async_trait]
impl Defect for ReplayLosesRacingClaims {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        leases.retain(|lease| !held(&self.lost).contains(&(lease.event.id, lease.group.clone())));
        if self.is_half_way.load(Ordering::SeqCst) {
            let claimed = leases
                .iter()
                .map(|lease| (lease.event.id, lease.group.clone()));
            held(&self.lost).extend(claimed);
        }
        Ok(leases)
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        self.is_half_way.store(true, Ordering::SeqCst);
        for _ in 0..10_000 {
            if held(&self.lost).is_empty() {
                tokio::task::yield_now().await;
            }
        }
        self.is_half_way.store(false, Ordering::SeqCst);
        real.backend.replay(stream, group, replay).await
    }
}

#[derive(Default)]
struct ABatchOfAcksIgnoresReplays {
    book: Book,
    pardoned: Mutex<HashSet<LeaseId>>,
}

#[async_trait]
impl Defect for ABatchOfAcksIgnoresReplays {
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
        let current = self.book.current(real, stream, group).await;
        let pardoned = current.into_iter().map(|lease| lease.lease_id);
        held(&self.pardoned).extend(pardoned);
        real.backend.replay(stream, group, replay).await
    }
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            let is_pardoned = held(&self.pardoned).contains(&lease.lease_id);
            let result = real.backend.ack(lease).await;
            results.push(if is_pardoned { Ok(()) } else { result });
        }
        results
    }
}

#[derive(Default)]
struct WhatIsMissingIsReplayed;

#[async_trait]
impl Defect for WhatIsMissingIsReplayed {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match real.backend.replay(stream, group, replay).await {
            Err(Error::GroupNotFound { .. }) => Ok(()),
            result => result,
        }
    }
}

#[derive(Default)]
struct ReplayLooksForTheGroupAlone;

#[async_trait]
impl Defect for ReplayLooksForTheGroupAlone {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match real.backend.replay(stream, group, replay).await {
            Err(Error::StreamNotFound { .. }) => Err(Error::GroupNotFound {
                stream: stream.clone(),
                group: group.clone(),
            }),
            result => result,
        }
    }
}

#[derive(Default)]
struct ReplayChecksAsItGoes;

#[async_trait]
impl Defect for ReplayChecksAsItGoes {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        if let Replay::After {
            sequence,
            partitions: Partitions::Only(partitions),
        } = replay
        {
            for partition in partitions {
                let partitions = Partitions::from(*partition);
                let replay = Replay::After {
                    sequence: *sequence,
                    partitions,
                };
                real.backend.replay(stream, group, &replay).await?;
            }
            return Ok(());
        }
        real.backend.replay(stream, group, replay).await
    }
}

/// The sequences of a replay, one for all partitions or one each, changed.
fn with_sequences(replay: &Replay, change: impl Fn(Sequence) -> Sequence) -> Replay {
    match replay {
        Replay::After {
            sequence,
            partitions,
        } => Replay::After {
            sequence: change(*sequence),
            partitions: partitions.clone(),
        },
        Replay::AfterEach(sequences) => Replay::AfterEach(
            sequences
                .iter()
                .map(|(partition, sequence)| (*partition, change(*sequence)))
                .collect(),
        ),
        Replay::Events(ids) => Replay::Events(ids.clone()),
    }
}

/// The sequence of a replay after one sequence.
fn sequence_of(replay: &Replay) -> Option<Sequence> {
    match replay {
        Replay::After { sequence, .. } => Some(*sequence),
        _ => None,
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

/// The start of each group, in partition 0.
type Starts = Mutex<HashMap<(StreamName, GroupName), Sequence>>;

/// Remembers where a group starts, right after it was created or reset.
async fn note_start(starts: &Starts, real: &Real, stream: &StreamName, group: &GroupName) {
    if let Ok(lag) = real.backend.lag(stream, group).await {
        let start = lag.partitions[0].frontier;
        held(starts).insert((stream.clone(), group.clone()), start);
    }
}

fn start_of(starts: &Starts, stream: &StreamName, group: &GroupName) -> Sequence {
    held(starts)
        .get(&(stream.clone(), group.clone()))
        .copied()
        .unwrap_or_default()
}

impl LeaseIdsAreMadeOfAttempts {
    fn real_one(&self, lease: &Lease) -> Lease {
        let ids = held(&self.ids);
        let lease_id = ids
            .get(lease.lease_id.as_str())
            .unwrap_or(&lease.lease_id)
            .clone();
        Lease {
            lease_id,
            ..lease.clone()
        }
    }
}

impl TheFrontierNeverFalls {
    async fn highest(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let mut lag = real.backend.lag(stream, group).await?;
        for progress in &mut lag.partitions {
            let key = (stream.clone(), group.clone(), progress.partition);
            let mut highest = held(&self.highest);
            let highest = highest.entry(key).or_default();
            *highest = progress.frontier.max(*highest);
            progress.frontier = *highest;
        }
        Ok(lag)
    }
}
