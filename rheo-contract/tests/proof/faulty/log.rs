//! Defects that the cases of `log` are there for.

mod batches;
mod ids;
mod immutability;
mod reading;
mod routing;
mod sequences;

use self::batches::*;
use self::ids::*;
use self::immutability::*;
use self::reading::*;
use self::routing::*;
use self::sequences::*;
use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        LosesASequenceNowAndThen: "every now and then a sequence is left out",
        says: "the sequences",
        kills: [
            "log::LOG-1::sequences_are_1_2_3",
            "log::LOG-1::each_partition_counts_on_its_own",
            "log::LOG-9::a_read_gives_100_unless_told",
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
            "queries::QRY-1::a_query_by_partition_gives_that_partition_alone",
            "queries::QRY-1::a_query_by_type_gives_that_type_alone",
            "queries::QRY-1::a_query_gives_100_unless_told",
            "queries::QRY-1::all_filters_must_match",
            "queries::QRY-1::arrays_are_compared_in_order_and_as_a_whole",
            "queries::QRY-1::filters_come_before_the_limit",
            "queries::QRY-1::numbers_are_compared_by_their_exact_value",
            "queries::QRY-1::objects_are_equal_in_any_order_and_as_a_whole",
            "queries::QRY-1::values_of_different_types_differ",
            "queries::QRY-2::order_by_sequence_is_then_by_partition",
            "queries::QRY-2::order_by_timestamp_is_then_by_sequence_and_partition",
            "queries::QRY-2::timestamps_that_go_back_are_ordered_too",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
            "queries::QRY-3::a_cursor_is_valid_on_every_handle",
            "queries::QRY-3::a_cursor_survives_serialization",
            "queries::QRY-3::pages_are_full",
            "queries::QRY-3::pages_of_rare_events_are_full",
            "queries::QRY-3::paging_by_sequence_gives_every_event_once",
            "queries::QRY-3::paging_by_timestamp_gives_every_event_once",
            "queries::QRY-3::paging_one_partition_gives_every_event_once",
            "queries::STR-3::field_names_are_not_paths",
            "queries::STR-3::values_are_not_operators",
        ],
    },
    faulty! {
        OneCounterForTwoPartitions: "partitions 0 and 1 are numbered by one counter",
        says: "the sequences in partition",
        kills: [
            "log::LOG-1::each_partition_counts_on_its_own",
            "log::LOG-1::a_refused_batch_uses_up_no_sequence_of_any_partition",
            "log::LOG-3::a_batch_is_in_input_order_in_each_partition",
            "queries::QRY-1::a_query_by_partition_gives_that_partition_alone",
            "queries::QRY-2::order_by_sequence_is_then_by_partition",
            "queries::QRY-2::order_by_timestamp_is_then_by_sequence_and_partition",
            "queries::QRY-3::pages_are_full",
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
            "fidelity::LOG-5::a_batch_gives_the_same_events",
            "fidelity::LOG-8::control_characters_and_blanks_come_back",
            "fidelity::LOG-8::nesting_to_64_comes_back",
            "log::LOG-1::each_partition_counts_on_its_own",
            "log::LOG-4::replay_and_reset_change_no_event",
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
        ],
    },
    faulty! {
        LagIsCached: "the lag stays what it was when it was asked for first",
        says: "the lag",
        kills: [
            "log::LOG-10::an_appended_event_counts_in_the_lag_at_once",
        ],
    },
    faulty! {
        GroupPassesAnEvent: "of two events fetched together the first is passed",
        says: "the sequences delivered",
        kills: [
            "log::LOG-2::a_group_passes_no_event",
            "queries::QRY-4::queries_change_nothing_for_groups",
        ],
    },
    faulty! {
        BatchIsAnsweredById: "the answer of a batch is sorted by id",
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
        ],
    },
    faulty! {
        AppendMakesTheStream: "an append makes a missing stream",
        says: "Err(StreamNotFound)",
        kills: [
            "log::ERR-1::an_append_to_a_missing_stream_makes_none",
        ],
    },
    faulty! {
        BatchOfOneNeedsBatchWrites: "a batch of one is Unsupported",
        says: "the last operation to succeed",
        kills: [
            "log::LOG-3::a_batch_of_one_is_an_append",
        ],
    },
    faulty! {
        AckDeletesTheEvent: "an acked event is gone from the log",
        says: "the log",
        kills: [
            "log::LOG-4::settling_changes_no_event",
            "log::LOG-4::replay_and_reset_change_no_event",
        ],
    },
    faulty! {
        RetryAppendsTheEventAgain: "a retried event is appended once more",
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
            "log::LOG-4::a_dead_letter_stays_in_the_log",
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
        ReclaimPutsTheEventBack: "an event that is delivered again is appended once more",
        says: "the log",
        kills: [
            "log::LOG-4::an_expired_lease_changes_no_event",
            "log::LOG-4::settling_changes_no_event",
        ],
    },
    faulty! {
        ReplayAppendsTheEventsAgain: "replayed events are appended once more",
        says: "the log after a replay",
        kills: [
            "log::LOG-4::replay_and_reset_change_no_event",
        ],
    },
    faulty! {
        ResetEmptiesTheLog: "resetting a group empties the log",
        says: "the log after resets",
        kills: [
            "log::LOG-4::replay_and_reset_change_no_event",
        ],
    },
    faulty! {
        KeysGoByTheSumOfTheirBytes: "keys are routed by another hash",
        says: "the partition of",
        kills: [
            "log::LOG-6::keys_go_where_the_published_vectors_say",
            "log::LOG-6::a_batch_is_routed_as_single_events_are",
            "log::LOG-6::any_key_goes_where_its_hash_says",
        ],
    },
    faulty! {
        KeysAreHashedAsAscii: "what is not ASCII plays no part in the hash of a key",
        says: "the partition of",
        kills: [
            "log::LOG-6::any_key_goes_where_its_hash_says",
            "log::LOG-6::keys_go_where_the_published_vectors_say",
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
            "fidelity::STR-2::any_event_type_and_key_come_back",
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
            "queries::QRY-1::all_filters_must_match",
            "queries::STR-4::a_query_sees_its_own_stream_alone",
        ],
    },
    faulty! {
        PartitionIsWrappedAround: "a partition out of range is taken modulo their number",
        says: "Err(Invalid)",
        kills: [
            "log::LOG-6::a_partition_out_of_range_is_refused",
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
        ],
    },
    faulty! {
        IdsAreOfTheTimeAndFiveBits: "generated ids are made of the millisecond and five more bits",
        says: "the last operation to succeed",
        kills: [
            "log::LOG-7::generated_ids_are_unique",
            "fidelity::LOG-8::documents_that_look_like_typed_values_stay_documents",
            "fidelity::LOG-8::random_documents_come_back",
            "log::LOG-6::any_key_goes_where_its_hash_says",
            "log::LOG-9::a_read_gives_100_unless_told",
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
            "queries::QRY-1::a_query_by_type_gives_that_type_alone",
            "queries::QRY-1::a_query_gives_100_unless_told",
        ],
    },
    faulty! {
        GeneratedIdsAreOfVersion4: "generated ids are of version 4",
        says: "an id of version 7",
        kills: [
            "log::LOG-7::generated_ids_hold_the_time_of_the_append",
            "log::LOG-7::generated_ids_sort_by_millisecond",
        ],
    },
    faulty! {
        GeneratedIdsAreOfAnotherClock: "generated ids are made of a clock that is wrong and runs backwards",
        says: "the time in the id",
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
            "log::LOG-1::a_refused_batch_uses_up_no_sequence_of_any_partition",
            "log::LOG-1::each_partition_counts_on_its_own",
            "log::LOG-3::a_batch_is_in_input_order_in_each_partition",
            "log::LOG-3::a_refused_batch_writes_nothing_to_any_partition",
            "log::LOG-7::a_taken_id_is_refused_in_every_partition",
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
        ],
    },
    faulty! {
        MissingStreamReadsAsEmpty: "reading a missing stream is Ok and empty",
        says: "Err(StreamNotFound)",
        kills: [
            "log::LOG-9::reading_a_missing_stream_is_an_error",
        ],
    },
    faulty! {
        ReadOf0AsksForNoStream: "a read with limit 0 does not look for the stream",
        says: "Err(StreamNotFound)",
        kills: [
            "log::LOG-9::reading_a_missing_stream_is_an_error",
        ],
    },
];
