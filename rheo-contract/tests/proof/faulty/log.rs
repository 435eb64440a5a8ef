//! Defects that the cases of `log` are there for.

mod batch_ids;
mod batches;
mod ids;
mod immutability;
mod reading;
mod routing;
mod sequences;

use self::batch_ids::*;
use self::batches::*;
use self::ids::*;
use self::immutability::*;
use self::reading::*;
use self::routing::*;
use self::sequences::*;
use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        LosesTheFifthSequence: "sequence 5 is left out, while there is no group",
        says: "the sequences",
        kills: [
            "log::LOG-1::sequences_are_1_2_3",
            "delivery::DLV-2::a_start_at_a_time_goes_by_the_lowest_sequence",
            "delivery::DLV-2::a_start_at_a_time_is_before_the_first_event_of_that_time",
            "distribution::DST-1::concurrent_appends_of_two_handles_leave_no_gap",
            "distribution::DST-1::two_handles_append_to_one_log",
            "log::LOG-3::a_batch_comes_back_in_input_order",
            "log::LOG-9::a_read_gives_100_unless_told",
            "queries::QRY-2::timestamps_that_go_back_are_ordered_too",
            "queries::QRY-3::paging_one_partition_gives_every_event_once",
            "queries::QRY-3::timestamps_that_go_back_disturb_no_page",
        ],
    },
    faulty! {
        FirstSequenceOfPartition1Is2: "sequences of partition 1 begin at 2, while there is no group",
        says: "the sequences in partition",
        kills: [
            "log::LOG-1::each_partition_counts_on_its_own",
            "log::LOG-1::a_refused_batch_uses_up_no_sequence_of_any_partition",
            "log::LOG-3::a_batch_is_in_input_order_in_each_partition",
            "queries::QRY-1::a_query_by_partition_gives_that_partition_alone",
            "queries::QRY-2::order_by_sequence_is_then_by_partition",
            "queries::QRY-2::order_by_timestamp_is_then_by_sequence_and_partition",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::paging_by_sequence_gives_every_event_once",
            "queries::QRY-3::paging_by_timestamp_gives_every_event_once",
        ],
    },
    faulty! {
        BurnsASequenceOnATakenId: "a refused id uses up a sequence",
        says: "the sequences in partition 0",
        kills: [
            "log::LOG-1::a_taken_id_uses_up_no_sequence",
        ],
    },
    faulty! {
        BurnsASequenceOnABadPartition: "a partition out of range uses up a sequence",
        says: "the sequences in partition 0",
        kills: [
            "log::LOG-1::a_partition_out_of_range_uses_up_no_sequence",
            "input::ERR-8::an_append_out_of_range_is_invalid",
        ],
    },
    faulty! {
        BurnsTheSequencesOfARefusedBatch: "a refused batch uses up sequences",
        says: "the sequences in partition 0",
        kills: [
            "log::LOG-1::a_refused_batch_uses_up_no_sequence",
            "log::LOG-1::a_refused_batch_uses_up_no_sequence_of_any_partition",
        ],
    },
    faulty! {
        ShowsTheNewestBeforeTheOneBeforeIt: "the newest event is visible before the one before it",
        says: "the sequences that are visible",
        kills: [
            "log::LOG-2::a_reader_sees_no_event_before_its_predecessors",
            "dead_letters::DLQ-4::reject_leaves_the_log_alone",
            "fidelity::LOG-5::a_batch_gives_the_same_events",
            "fidelity::LOG-8::control_characters_and_blanks_come_back",
            "fidelity::LOG-8::nesting_to_64_comes_back",
            "log::LOG-1::each_partition_counts_on_its_own",
            "log::LOG-4::replay_and_reset_change_no_event",
            "replay::RPL-6::replay_leaves_the_log_alone",
            "reset::RPL-6::reset_leaves_the_log_alone",
            "streams::STR-4::logs_are_isolated",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
        ],
    },
    faulty! {
        ReadsLagBehind: "the first read after an append does not see the event",
        says: "the event just appended",
        kills: [
            "log::LOG-10::an_appended_event_is_read_and_fetched_at_once",
            "fidelity::LOG-5::a_missing_key_and_empty_metadata_stay_so",
            "fidelity::LOG-5::a_timestamp_keeps_its_microseconds",
            "fidelity::LOG-5::append_read_and_fetch_give_the_same_event",
            "fidelity::LOG-8::a_long_array_comes_back_in_order",
            "fidelity::LOG-8::the_longest_document_comes_back",
            "log::LOG-1::a_partition_out_of_range_uses_up_no_sequence",
            "log::LOG-1::a_refused_batch_uses_up_no_sequence_of_any_partition",
            "log::LOG-2::a_reader_sees_no_event_before_its_predecessors",
            "log::LOG-3::a_batch_of_one_is_an_append",
            "log::LOG-3::a_batch_with_a_taken_id_writes_nothing",
            "log::LOG-7::a_generated_id_is_taken_too",
            "log::LOG-7::a_given_id_is_kept",
            "log::LOG-7::a_taken_id_is_refused",
            "log::LOG-7::one_id_may_be_in_two_streams",
            "log::LOG-9::a_read_gives_100_unless_told",
            "log::LOG-9::a_read_gives_what_is_above_after",
            "log::LOG-9::a_read_is_of_one_partition",
            "partitions::STR-1::a_stream_of_1_024_partitions_works",
            "streams::STR-1::a_stream_has_one_partition_by_default",
            "streams::STR-1::a_stream_has_the_partitions_it_was_made_with",
            "streams::STR-1::of_concurrent_creators_one_wins",
            "streams::STR-2::stream_names_never_collide",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
            "streams::STR-4::one_event_id_may_be_in_two_streams",
            "distribution::DST-1::a_stream_made_elsewhere_is_there",
        ],
    },
    faulty! {
        QueriesLagBehind: "the first query after an append does not see the event",
        says: "the event just appended",
        kills: [
            "log::LOG-10::an_appended_event_is_found_by_a_query_at_once",
            "fidelity::LOG-5::a_query_gives_the_same_event",
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
            "queries::QRY-1::a_query_by_partition_gives_that_partition_alone",
            "queries::QRY-1::a_query_by_type_gives_that_type_alone",
            "queries::QRY-1::a_query_gives_100_unless_told",
            "queries::QRY-1::a_sequence_range_is_exclusive_below_and_inclusive_above",
            "queries::QRY-1::a_time_range_includes_both_ends",
            "queries::QRY-1::all_filters_must_match",
            "queries::QRY-1::arrays_are_compared_in_order_and_as_a_whole",
            "queries::QRY-1::filters_come_before_the_limit",
            "queries::QRY-1::null_is_not_absent",
            "queries::QRY-1::numbers_are_compared_by_their_exact_value",
            "queries::QRY-1::objects_are_equal_in_any_order_and_as_a_whole",
            "queries::QRY-1::payload_and_metadata_are_not_mixed_up",
            "queries::QRY-1::values_of_different_types_differ",
            "queries::QRY-2::order_by_sequence_is_then_by_partition",
            "queries::QRY-2::order_by_timestamp_is_then_by_sequence_and_partition",
            "queries::QRY-2::timestamps_that_go_back_are_ordered_too",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::pages_are_full",
            "queries::QRY-3::pages_of_rare_events_are_full",
            "queries::QRY-3::paging_by_sequence_gives_every_event_once",
            "queries::QRY-3::paging_by_timestamp_gives_every_event_once",
            "queries::QRY-3::paging_one_partition_gives_every_event_once",
            "queries::QRY-3::timestamps_that_go_back_disturb_no_page",
            "queries::STR-3::field_names_are_not_paths",
            "queries::STR-3::values_are_not_operators",
            "queries::STR-4::a_query_sees_its_own_stream_alone",
            "streams::STR-2::types_and_keys_are_told_apart",
            "streams::STR-3::a_field_name_is_no_path",
            "streams::STR-3::a_filter_is_a_value_and_no_operator",
            "streams::STR-3::a_filter_is_no_pattern",
            "streams::STR-4::queries_are_isolated",
            "durability::DUR-1::a_cursor_survives",
        ],
    },
    faulty! {
        LagIsCached: "the lag stays what it was until the group does something",
        says: "the lag",
        kills: [
            "log::LOG-10::an_appended_event_counts_in_the_lag_at_once",
            "distribution::DST-1::progress_is_the_same_on_both",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-2::a_group_that_starts_at_the_end_has_no_lag",
            "progress::FRN-4::lag_grows_with_appends_and_shrinks_with_acks",
        ],
    },
    faulty! {
        GroupPassesAnEvent: "of two events fetched together the first is passed",
        says: "the sequences delivered",
        kills: [
            "log::LOG-2::a_group_passes_no_event",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::expired_leases_settle_in_a_batch_as_well",
            "dead_letters::DLQ-4::reject_is_for_that_group_alone",
            "delivery::DLV-2::a_duplicate_group_changes_nothing",
            "delivery::DLV-2::a_start_after_a_sequence_is_exclusive",
            "delivery::DLV-2::a_start_at_a_time_is_before_the_first_event_of_that_time",
            "delivery::DLV-2::a_start_at_the_end_gets_all_that_comes_later",
            "delivery::DLV-2::a_start_is_fixed_when_the_group_is_made",
            "delivery::DLV-4::delayed_events_come_by_sequence_and_not_by_due_time",
            "delivery::DLV-6::events_with_earlier_times_are_not_passed_over",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "progress::FRN-4::lag_changes_nothing",
            "queries::QRY-4::queries_change_nothing_for_groups",
            "receipts::LSE-3::a_stale_lease_with_another_receipt_is_stale",
            "replay::RPL-1::a_replay_can_be_repeated",
            "replay::RPL-1::replay_after_a_sequence_is_exclusive",
            "replay::RPL-4::a_chosen_event_below_the_start_is_delivered",
            "replay::RPL-4::an_id_given_twice_counts_once",
            "replay::RPL-4::chosen_events_are_reopened_in_their_own_partitions",
            "replay::RPL-4::events_that_were_not_chosen_stay_as_they_are",
            "replay::RPL-4::the_frontier_falls_to_below_the_lowest_chosen_event",
            "reset::RPL-5::a_start_is_checked_in_the_selected_partitions_alone",
            "reset::RPL-5::reset_may_go_forward",
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "reset::RPL-5::reset_to_a_time_starts_with_the_first_event_at_or_after_it",
            "settling::DLQ-1::a_delay_holds_back_nothing_else",
            "distribution::DST-1::a_replay_elsewhere_is_seen",
            "distribution::DST-1::an_append_elsewhere_is_fetched",
            "durability::DUR-1::a_replay_survives",
            "durability::DUR-1::starts_survive",
        ],
    },
    faulty! {
        BatchIsAnsweredFromTheEnd: "the answer of a batch begins with its last event",
        says: "the ids, in input order",
        kills: [
            "log::LOG-3::a_batch_comes_back_in_input_order",
            "fidelity::LOG-5::a_batch_gives_the_same_events",
            "log::LOG-3::a_batch_is_in_input_order_in_each_partition",
            "log::LOG-6::a_batch_is_routed_as_single_events_are",
        ],
    },
    faulty! {
        BatchIsAnsweredByPartition: "the answer of a batch is sorted by partition",
        says: "the ids, in input order",
        kills: [
            "log::LOG-3::a_batch_is_in_input_order_in_each_partition",
            "log::LOG-6::a_batch_is_routed_as_single_events_are",
        ],
    },
    faulty! {
        BatchIsWrittenBackwards: "a batch is written in reverse",
        says: "the sequences",
        kills: [
            "log::LOG-3::a_batch_comes_back_in_input_order",
            "fidelity::LOG-5::a_batch_gives_the_same_events",
            "log::LOG-3::a_batch_is_in_input_order_in_each_partition",
        ],
    },
    faulty! {
        BatchIsWrittenOneByOne: "a batch is written event by event, up to the bad one",
        says: "the log",
        kills: [
            "log::LOG-3::a_batch_with_a_taken_id_writes_nothing",
            "input::ERR-8::a_batch_with_one_out_of_range_is_invalid",
            "log::LOG-1::a_refused_batch_uses_up_no_sequence",
            "log::LOG-1::a_refused_batch_uses_up_no_sequence_of_any_partition",
            "log::LOG-3::a_batch_with_a_partition_out_of_range_writes_nothing",
            "log::LOG-3::a_batch_with_an_id_twice_writes_nothing",
            "log::LOG-3::a_refused_batch_writes_nothing_to_any_partition",
        ],
    },
    faulty! {
        BatchTakesAnIdTwice: "ids in a batch are not compared with each other",
        says: "Err(AlreadyExists)",
        kills: [
            "log::LOG-3::a_batch_with_an_id_twice_writes_nothing",
        ],
    },
    faulty! {
        BatchIsCommittedPartitionByPartition: "each partition of a batch is written on its own",
        says: "no event in partition 0",
        kills: [
            "log::LOG-3::a_refused_batch_writes_nothing_to_any_partition",
            "input::ERR-8::a_batch_with_one_out_of_range_is_invalid",
            "log::LOG-1::a_refused_batch_uses_up_no_sequence_of_any_partition",
            "log::LOG-3::a_batch_with_a_partition_out_of_range_writes_nothing",
        ],
    },
    faulty! {
        EmptyBatchIsAnError: "an empty batch is an error",
        says: "the last operation to succeed",
        kills: [
            "log::LOG-3::an_empty_batch_writes_nothing",
        ],
    },
    faulty! {
        EmptyBatchAsksForNoStream: "an empty batch does not look for the stream",
        says: "Err(StreamNotFound)",
        kills: [
            "log::ERR-6::an_empty_batch_to_a_missing_stream_is_an_error",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
        ],
    },
    faulty! {
        AppendMakesTheStream: "an append makes a missing stream",
        says: "Err(StreamNotFound)",
        kills: [
            "log::ERR-1::an_append_to_a_missing_stream_makes_none",
            "input::ERR-6::a_missing_stream_comes_before_bad_input",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
        ],
    },
    faulty! {
        BatchOfOneNeedsBatchWrites: "a batch of one is Unsupported",
        says: "the last operation to succeed",
        kills: [
            "log::LOG-3::a_batch_of_one_is_an_append",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
            "input::ERR-8::an_append_out_of_range_is_invalid",
            "lifecycle::ERR-7::a_closed_handle_makes_and_appends_nothing",
            "unavailable::ERR-4::without_a_store_nothing_is_appended",
        ],
    },
    faulty! {
        AckDeletesTheEvent: "an acked event is gone from the log",
        says: "the log",
        kills: [
            "log::LOG-4::settling_changes_no_event",
            "durability::DUR-1::making_indexes_after_a_restart_loses_nothing",
            "log::LOG-4::replay_and_reset_change_no_event",
            "replay::RPL-6::replay_leaves_the_log_alone",
        ],
    },
    faulty! {
        RetryMarksTheEvent: "a retried event is marked in its metadata",
        says: "the log",
        kills: [
            "log::LOG-4::settling_changes_no_event",
        ],
    },
    faulty! {
        RejectMarksTheEvent: "a rejected event is marked in its metadata",
        says: "the log",
        kills: [
            "log::LOG-4::settling_changes_no_event",
            "dead_letters::DLQ-4::reject_leaves_the_log_alone",
            "log::LOG-4::a_dead_letter_stays_in_the_log",
            "settling::DLQ-4::a_rejected_event_is_over_for_its_group_alone",
        ],
    },
    faulty! {
        LastRetryMovesTheEventOut: "an event that is retried for the last time is gone from the log",
        says: "the log",
        kills: [
            "log::LOG-4::a_dead_letter_stays_in_the_log",
        ],
    },
    faulty! {
        ReclaimMarksTheEvent: "an event that is delivered again is marked in its metadata",
        says: "the log",
        kills: [
            "log::LOG-4::an_expired_lease_changes_no_event",
            "log::LOG-4::settling_changes_no_event",
        ],
    },
    faulty! {
        ReplayMarksTheEvents: "replayed events are marked in their metadata",
        says: "the log after a replay",
        kills: [
            "log::LOG-4::replay_and_reset_change_no_event",
            "replay::RPL-6::replay_leaves_the_log_alone",
        ],
    },
    faulty! {
        ResetEmptiesTheLog: "resetting a group empties the log",
        says: "the log after resets",
        kills: [
            "log::LOG-4::replay_and_reset_change_no_event",
            "reset::RPL-6::reset_leaves_the_log_alone",
        ],
    },
    faulty! {
        KeysGoByTheSumOfTheirBytes: "keys are routed by another hash",
        says: "the partition of",
        kills: [
            "log::LOG-6::keys_go_where_the_published_vectors_say",
            "log::LOG-6::a_batch_is_routed_as_single_events_are",
            "log::LOG-6::any_key_goes_where_its_hash_says",
            "distribution::DST-1::keys_go_to_the_same_partition_on_both",
            "durability::DUR-1::partitions_survive",
        ],
    },
    faulty! {
        KeysAreHashedAsAscii: "what is not ASCII plays no part in the hash of a key",
        says: "the partition of",
        kills: [
            "log::LOG-6::any_key_goes_where_its_hash_says",
            "log::LOG-6::keys_go_where_the_published_vectors_say",
            "distribution::DST-1::keys_go_to_the_same_partition_on_both",
            "durability::DUR-1::partitions_survive",
        ],
    },
    faulty! {
        KeyGoesBeforeThePartition: "a given partition is ignored where there is a key",
        says: "the partition",
        kills: [
            "log::LOG-6::a_given_partition_goes_before_the_key",
            "log::LOG-6::a_batch_is_routed_as_single_events_are",
            "log::LOG-6::a_partition_out_of_range_is_refused",
        ],
    },
    faulty! {
        EventsWithoutKeyAreSpread: "events without a key are spread over the partitions",
        says: "the partition",
        kills: [
            "log::LOG-6::an_event_without_key_goes_to_partition_0",
            "log::LOG-6::a_batch_is_routed_as_single_events_are",
        ],
    },
    faulty! {
        SinglePartitionIsHashedToo: "a stream of one partition is routed as if it had two",
        says: "the last operation to succeed",
        kills: [
            "log::LOG-6::a_single_partition_takes_every_key",
            "delivery::DLV-8::a_lease_is_whole",
            "fidelity::STR-2::any_event_type_and_key_come_back",
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
            "queries::QRY-1::all_filters_must_match",
            "queries::STR-4::a_query_sees_its_own_stream_alone",
            "streams::STR-2::types_and_keys_are_told_apart",
            "streams::STR-2::types_and_keys_come_back",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
            "distribution::DST-1::keys_go_to_the_same_partition_on_both",
            "durability::DUR-1::events_survive",
            "durability::DUR-1::partitions_survive",
        ],
    },
    faulty! {
        PartitionIsWrappedAround: "a partition out of range is taken modulo their number",
        says: "Err(Invalid)",
        kills: [
            "log::LOG-6::a_partition_out_of_range_is_refused",
            "input::ERR-8::a_batch_with_one_out_of_range_is_invalid",
            "input::ERR-8::an_append_out_of_range_is_invalid",
            "log::LOG-1::a_partition_out_of_range_uses_up_no_sequence",
            "log::LOG-3::a_batch_with_a_partition_out_of_range_writes_nothing",
            "log::LOG-7::a_refused_id_stays_free",
        ],
    },
    faulty! {
        BatchGoesToOnePartition: "a batch goes to the partition of its first event",
        says: "the partitions",
        kills: [
            "log::LOG-6::a_batch_is_routed_as_single_events_are",
            "input::ERR-8::a_batch_with_one_out_of_range_is_invalid",
            "log::LOG-3::a_batch_with_a_partition_out_of_range_writes_nothing",
        ],
    },
    faulty! {
        GivenIdsMustBeOfVersion7: "given ids of other versions are replaced",
        says: "the id",
        kills: [
            "log::LOG-7::a_given_id_is_kept",
        ],
    },
    faulty! {
        TakenIdIsIgnored: "an append with a taken id is Ok and writes nothing",
        says: "Err(AlreadyExists)",
        kills: [
            "log::LOG-7::a_taken_id_is_refused",
            "log::LOG-1::a_taken_id_uses_up_no_sequence",
            "log::LOG-7::a_generated_id_is_taken_too",
            "log::LOG-7::a_taken_id_is_refused_in_every_partition",
            "distribution::DST-1::an_id_taken_elsewhere_is_taken",
            "durability::DUR-1::taken_ids_stay_taken",
        ],
    },
    faulty! {
        IdsAreUniqueInTheirPartition: "an id may be taken once in each partition",
        says: "Err(AlreadyExists)",
        kills: [
            "log::LOG-7::a_taken_id_is_refused_in_every_partition",
        ],
    },
    faulty! {
        GeneratedIdsAreNotRemembered: "a generated id may be given once more",
        says: "Err(AlreadyExists)",
        kills: [
            "log::LOG-7::a_generated_id_is_taken_too",
            "log::LOG-1::a_taken_id_uses_up_no_sequence",
            "log::LOG-7::a_taken_id_is_refused_in_every_partition",
        ],
    },
    faulty! {
        IdsAreNotedFirst: "ids are noted before the event is checked",
        says: "the last operation to succeed",
        kills: [
            "log::LOG-7::a_refused_id_stays_free",
            "log::LOG-3::a_batch_with_an_id_twice_writes_nothing",
            "log::LOG-3::a_refused_batch_writes_nothing_to_any_partition",
        ],
    },
    faulty! {
        IdsAreUniqueOverAllStreams: "an id may be in one stream only",
        says: "the last operation to succeed",
        kills: [
            "log::LOG-7::one_id_may_be_in_two_streams",
            "streams::STR-4::one_event_id_may_be_in_two_streams",
        ],
    },
    faulty! {
        IdsAreOfTheTimeAndFiveBits: "generated ids are made of the millisecond and five more bits",
        says: "the last operation to succeed",
        kills: [
            "log::LOG-7::generated_ids_are_unique",
            "delivery::DLV-3::a_selection_is_looked_through_and_no_other",
            "delivery::DLV-5::a_busy_partition_starves_no_other",
            "delivery::DLV-5::every_partition_is_served",
            "delivery::DLV-5::every_selected_partition_is_served",
            "distribution::DST-1::concurrent_appends_of_two_handles_leave_no_gap",
            "distribution::DST-1::keys_go_to_the_same_partition_on_both",
            "distribution::DST-1::two_handles_append_to_one_log",
            "durability::DUR-1::partitions_survive",
            "durability::DUR-1::sequences_go_on",
            "durability::DUR-1::starts_survive",
            "input::LOG-8::a_batch_up_to_the_limits_is_taken_and_no_longer_one",
            "log::LOG-6::any_key_goes_where_its_hash_says",
            "log::LOG-9::a_read_gives_100_unless_told",
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
            "queries::QRY-1::a_query_by_type_gives_that_type_alone",
            "queries::QRY-1::a_query_gives_100_unless_told",
            "streams::STR-2::types_and_keys_are_told_apart",
            "streams::STR-2::types_and_keys_come_back",
        ],
    },
    faulty! {
        GeneratedIdsAreOfVersion4: "generated ids are of version 4",
        says: "an id of version 7",
        kills: [
            "log::LOG-7::generated_ids_hold_the_time_of_the_append",
            "lifecycle::ERR-7::closing_one_handle_leaves_the_others",
            "log::LOG-7::generated_ids_sort_by_millisecond",
            "distribution::DST-1::a_reset_elsewhere_is_seen",
            "distribution::DST-1::an_append_elsewhere_is_fetched",
            "distribution::DST-1::concurrent_appends_of_two_handles_leave_no_gap",
            "distribution::DST-1::keys_go_to_the_same_partition_on_both",
            "distribution::DST-1::progress_is_the_same_on_both",
            "distribution::DST-1::two_handles_append_to_one_log",
            "durability::DUR-1::partitions_survive",
            "durability::DUR-1::sequences_go_on",
            "durability::DUR-1::starts_survive",
        ],
    },
    faulty! {
        GeneratedIdsAreOfAnotherClock: "generated ids are made of a clock that is wrong and runs backwards",
        says: "ascending ids of events a millisecond apart",
        kills: [
            "log::LOG-7::generated_ids_sort_by_millisecond",
            "log::LOG-7::generated_ids_hold_the_time_of_the_append",
        ],
    },
    faulty! {
        ReadIncludesAfter: "`after` of a read is inclusive",
        says: "the sequences above 1",
        kills: [
            "log::LOG-9::a_read_gives_what_is_above_after",
            "input::LOG-8::a_batch_up_to_the_limits_is_taken_and_no_longer_one",
            "log::LOG-10::an_appended_event_is_read_and_fetched_at_once",
            "log::LOG-9::a_read_gives_up_to_limit",
        ],
    },
    faulty! {
        ReadLimitOf0MeansAll: "a read with limit 0 gives everything",
        says: "the first 0 sequences",
        kills: [
            "log::LOG-9::a_read_gives_up_to_limit",
        ],
    },
    faulty! {
        ReadGives50ByDefault: "a read gives 50 events by default",
        says: "the sequences",
        kills: [
            "log::LOG-9::a_read_gives_100_unless_told",
        ],
    },
    faulty! {
        ReadIsAlwaysOfPartition0: "a read ignores the partition",
        says: "partition",
        kills: [
            "log::LOG-9::a_read_is_of_one_partition",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
            "input::ERR-8::a_read_out_of_range_is_invalid",
            "log::LOG-1::a_refused_batch_uses_up_no_sequence_of_any_partition",
            "log::LOG-1::each_partition_counts_on_its_own",
            "log::LOG-3::a_batch_is_in_input_order_in_each_partition",
            "log::LOG-3::a_refused_batch_writes_nothing_to_any_partition",
            "log::LOG-7::a_taken_id_is_refused_in_every_partition",
            "partitions::LOG-1::each_partition_counts_from_1",
            "streams::STR-1::a_duplicate_does_not_change_the_partitions",
            "streams::STR-1::a_stream_has_one_partition_by_default",
            "streams::STR-1::a_stream_has_the_partitions_it_was_made_with",
            "streams::STR-1::a_stream_has_up_to_1024_partitions",
            "durability::DUR-1::partitions_survive",
        ],
    },
    faulty! {
        ReadIsOfAllPartitions: "a read gives the events of all partitions",
        says: "partition 0, the default",
        kills: [
            "log::LOG-9::a_read_is_of_one_partition",
            "log::LOG-1::a_refused_batch_uses_up_no_sequence_of_any_partition",
            "log::LOG-1::each_partition_counts_on_its_own",
            "log::LOG-3::a_batch_is_in_input_order_in_each_partition",
            "log::LOG-3::a_refused_batch_writes_nothing_to_any_partition",
            "log::LOG-7::a_taken_id_is_refused_in_every_partition",
            "partitions::LOG-1::each_partition_counts_from_1",
            "partitions::STR-1::a_stream_of_1_024_partitions_works",
            "streams::STR-1::a_stream_has_the_partitions_it_was_made_with",
        ],
    },
    faulty! {
        MissingStreamReadsAsEmpty: "reading a missing stream is Ok and empty",
        says: "Err(StreamNotFound)",
        kills: [
            "log::LOG-9::reading_a_missing_stream_is_an_error",
            "input::ERR-6::a_missing_stream_comes_before_bad_input",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
            "input::LOG-9::a_missing_stream_is_not_an_empty_one",
            "distribution::DST-1::a_stream_made_elsewhere_is_there",
        ],
    },
    faulty! {
        ReadOf0AsksForNoStream: "a read with limit 0 does not look for the stream",
        says: "Err(StreamNotFound)",
        kills: [
            "log::LOG-9::reading_a_missing_stream_is_an_error",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
        ],
    },
    faulty! {
        ReadsAreCutAt1000: "reads are cut at 1,000 events",
        says: "the sequences",
        kills: [
            "log::LOG-9::a_read_gives_1500_events",
        ],
    },
    faulty! {
        ReadsAreCutAtAMegabyte: "reads are cut at a megabyte",
        says: "the sequences of long events",
        kills: [
            "log::LOG-9::a_read_gives_3_megabytes",
        ],
    },
    faulty! {
        AfterIsReadIn32Bits: "of `after` the lower 32 bits count",
        says: "the sequences above",
        kills: [
            "log::LOG-9::a_read_gives_what_is_above_after",
        ],
    },
    faulty! {
        IdsOfABatchAreNotNoted: "an id that a batch wrote is taken again by an append",
        says: "Err(AlreadyExists)",
        kills: [
            "log::LOG-7::every_id_of_a_batch_is_taken",
        ],
    },
    faulty! {
        JustTheFirstIdOfABatchIsNoted: "of a batch's ids all but the first are taken again",
        says: "Err(AlreadyExists)",
        kills: [
            "log::LOG-7::every_id_of_a_batch_is_taken",
        ],
    },
    faulty! {
        TheLastIdOfABatchIsNotNoted: "the last id of a batch is taken again by an append",
        says: "Err(AlreadyExists)",
        kills: [
            "log::LOG-7::every_id_of_a_batch_is_taken",
        ],
    },
    faulty! {
        BatchesAreNotComparedWithBatches: "an id that a batch wrote is taken again by a batch",
        says: "Err(AlreadyExists)",
        kills: [
            "log::LOG-7::every_id_of_a_batch_is_taken",
        ],
    },
    faulty! {
        IdsOfABatchAreNotedByPartition: "an id that a batch wrote is taken again in another partition",
        says: "Err(AlreadyExists)",
        kills: [
            "log::LOG-7::every_id_of_a_batch_is_taken_in_every_partition",
        ],
    },
    faulty! {
        IdsOfBatchesAreUniqueEverywhere: "a batch with an id of another stream is refused",
        says: "the last operation to succeed",
        kills: [
            "log::LOG-7::one_batch_may_be_in_many_streams",
        ],
    },
    faulty! {
        KeysAreHashedTo255Bytes: "of a key the first 255 bytes are hashed",
        says: "the partition of a key",
        kills: [
            "log::LOG-6::a_long_key_is_hashed_to_its_end",
        ],
    },
    faulty! {
        PartitionsOfABatchAreOneDigit: "of a partition in a batch the first digit counts",
        says: "the partitions",
        kills: [
            "log::LOG-6::a_batch_finds_partitions_above_9",
        ],
    },
];
