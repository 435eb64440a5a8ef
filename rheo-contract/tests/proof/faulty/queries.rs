//! Defects that the cases of `queries` are there for.

mod bounds;
mod cursors;
mod filters;
mod lost;
mod order;
pub(super) mod several;
mod values;

use self::bounds::*;
use self::cursors::*;
use self::filters::*;
use self::lost::*;
use self::order::*;
use self::values::*;
use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        TypesAreComparedByLike: "types are compared by LIKE",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::a_query_by_type_gives_that_type_alone",
            "queries::QRY-1::escapes_and_wildcards_in_texts_are_letters",
            "streams::STR-2::types_and_keys_are_told_apart",
        ],
    },
    faulty! {
        TypesAreComparedWithoutCase: "types are compared without case",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::a_query_by_type_gives_that_type_alone",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "streams::STR-2::types_and_keys_are_told_apart",
        ],
    },
    faulty! {
        KeysAreComparedByLike: "keys are compared by LIKE",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
            "queries::QRY-1::escapes_and_wildcards_in_texts_are_letters",
            "streams::STR-2::types_and_keys_are_told_apart",
        ],
    },
    faulty! {
        KeysAreComparedWithoutTheirBlanks: "blanks around keys play no part",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
            "streams::STR-2::types_and_keys_are_told_apart",
        ],
    },
    faulty! {
        MissingKeyIsFoundByNull: "events without a key are found by the key \"null\"",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
        ],
    },
    faulty! {
        PartitionOf0IsNone: "partition 0 in a query means all",
        says: "the events of partition 0",
        kills: [
            "queries::QRY-1::a_query_by_partition_gives_that_partition_alone",
        ],
    },
    faulty! {
        MetadataIsSearchedInThePayload: "metadata filters look at the payload",
        says: "metadata v = 1",
        kills: [
            "queries::QRY-1::payload_and_metadata_are_not_mixed_up",
            "queries::QRY-1::all_filters_must_match",
            "queries::QRY-1::any_number_of_fields_must_match",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
        ],
    },
    faulty! {
        PayloadIsSearchedInBoth: "payload filters look at the metadata too",
        says: "payload v = 1",
        kills: [
            "queries::QRY-1::payload_and_metadata_are_not_mixed_up",
        ],
    },
    faulty! {
        OneOfThePayloadFieldsIsEnough: "one of the payload filters is enough",
        says: "what matches all",
        kills: [
            "queries::QRY-1::all_filters_must_match",
            "queries::QRY-1::any_number_of_fields_must_match",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
        ],
    },
    faulty! {
        TypeIsLeftOutWhereThereIsAKey: "the type plays no part where there is a key",
        says: "what matches all",
        kills: [
            "queries::QRY-1::all_filters_must_match",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
        ],
    },
    faulty! {
        MetadataIsLeftOutWhereThereIsAPayload: "metadata filters play no part where there are payload filters",
        says: "what matches all",
        kills: [
            "queries::QRY-1::all_filters_must_match",
            "queries::QRY-1::any_number_of_fields_must_match",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::payload_and_metadata_are_not_mixed_up",
        ],
    },
    faulty! {
        UntilIsExclusive: "the end of a time range is exclusive",
        says: "the sequences from",
        kills: [
            "queries::QRY-1::a_time_range_includes_both_ends",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
        ],
    },
    faulty! {
        FromIsExclusive: "the beginning of a time range is exclusive",
        says: "the sequences from",
        kills: [
            "queries::QRY-1::a_time_range_includes_both_ends",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
        ],
    },
    faulty! {
        TimeRangeIsOfMilliseconds: "time ranges are rounded to milliseconds",
        says: "the sequences from",
        kills: [
            "queries::QRY-1::a_time_range_includes_both_ends",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::bounds_that_leave_nothing_give_an_empty_page",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
        ],
    },
    faulty! {
        AfterSequenceIsInclusive: "after_sequence is inclusive",
        says: "the sequences above",
        kills: [
            "queries::QRY-1::a_sequence_range_is_exclusive_below_and_inclusive_above",
            "log::LOG-10::an_appended_event_is_found_by_a_query_at_once",
            "queries::QRY-1::all_filters_must_match",
            "queries::QRY-1::bounds_that_leave_nothing_give_an_empty_page",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
        ],
    },
    faulty! {
        UntilSequenceIsExclusive: "until_sequence is exclusive",
        says: "the sequences above",
        kills: [
            "queries::QRY-1::a_sequence_range_is_exclusive_below_and_inclusive_above",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
        ],
    },
    faulty! {
        ContradictionIsInvalid: "bounds that contradict each other are refused",
        says: "the last operation to succeed",
        kills: [
            "queries::QRY-1::bounds_that_leave_nothing_give_an_empty_page",
        ],
    },
    faulty! {
        TimesAreSwappedIntoOrder: "a time range that is the wrong way round is turned",
        says: "the sequences found",
        kills: [
            "queries::QRY-1::bounds_that_leave_nothing_give_an_empty_page",
        ],
    },
    faulty! {
        QueryLimitOf0MeansAll: "a query with limit 0 gives everything",
        says: "a page of limit 0",
        kills: [
            "queries::QRY-1::a_query_gives_up_to_limit",
        ],
    },
    faulty! {
        LimitOf0HasANextPage: "a page of limit 0 has a next one",
        says: "no next page",
        kills: [
            "queries::QRY-1::a_query_gives_up_to_limit",
        ],
    },
    faulty! {
        QueryLimitIsSigned: "limits above 2147483647 overflow",
        says: "a page of limit",
        kills: [
            "queries::QRY-1::a_query_gives_up_to_limit",
        ],
    },
    faulty! {
        QueryGives50ByDefault: "a query gives 50 events by default",
        says: "the sequences of a page",
        kills: [
            "queries::QRY-1::a_query_gives_100_unless_told",
        ],
    },
    faulty! {
        LimitComesBeforeTheFilters: "a page is cut before it is filtered",
        says: "the first page of two",
        kills: [
            "queries::QRY-1::filters_come_before_the_limit",
            "queries::QRY-3::a_page_holds_1500_matching_events",
            "queries::QRY-3::pages_of_rare_events_are_full",
            "queries::QRY-3::rare_events_are_found_a_thousand_events_apart",
        ],
    },
    faulty! {
        IndexesAreOverAllStreams: "indexes are searched without the stream",
        says: "the events found",
        kills: [
            "queries::STR-4::a_query_sees_its_own_stream_alone",
        ],
    },
    faulty! {
        MissingStreamIsEmptyToQueries: "querying a missing stream is Ok and empty",
        says: "Err(StreamNotFound)",
        kills: [
            "queries::ERR-6::querying_a_missing_stream_is_an_error",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::querying_nothing_excuses_no_bad_input",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
        ],
    },
    faulty! {
        QueryOf0AsksForNoStream: "a query with limit 0 does not look for the stream",
        says: "Err(StreamNotFound)",
        kills: [
            "queries::ERR-6::querying_a_missing_stream_is_an_error",
            "input::ERR-6::querying_nothing_excuses_no_bad_input",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
        ],
    },
    faulty! {
        ValuesAreComparedAsText: "values are compared as text",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::values_of_different_types_differ",
            "queries::QRY-1::an_empty_value_is_neither_null_nor_absent",
            "queries::QRY-1::arrays_are_compared_in_order_and_as_a_whole",
            "queries::QRY-1::numbers_are_compared_by_their_exact_value",
            "queries::QRY-1::objects_are_equal_in_any_order_and_as_a_whole",
        ],
    },
    faulty! {
        TrueIs1: "true equals 1",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::values_of_different_types_differ",
            "queries::QRY-1::an_empty_value_is_neither_null_nor_absent",
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
        ],
    },
    faulty! {
        MissingFieldsAreNull: "a missing field equals null",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::null_is_not_absent",
            "queries::QRY-1::an_empty_value_is_neither_null_nor_absent",
        ],
    },
    faulty! {
        NullIsFoundNowhere: "null equals nothing, itself neither",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::null_is_not_absent",
            "queries::QRY-1::an_empty_value_is_neither_null_nor_absent",
            "queries::QRY-1::values_of_different_types_differ",
        ],
    },
    faulty! {
        NumbersAreComparedAsTheyAreWritten: "1 and 1.0 differ",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::numbers_are_compared_by_their_exact_value",
            "queries::QRY-1::objects_are_equal_in_any_order_and_as_a_whole",
        ],
    },
    faulty! {
        NumbersAreComparedAsDoubles: "numbers are compared as doubles",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::numbers_are_compared_by_their_exact_value",
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
        ],
    },
    faulty! {
        ObjectsAreComparedByContainment: "an object with more in it matches too",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::objects_are_equal_in_any_order_and_as_a_whole",
            "queries::QRY-1::values_of_different_types_differ",
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
        ],
    },
    faulty! {
        ObjectsAreComparedAsText: "objects are compared as text",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::objects_are_equal_in_any_order_and_as_a_whole",
        ],
    },
    faulty! {
        ArraysAreFoundByTheirItems: "an array is found by one of its items",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::arrays_are_compared_in_order_and_as_a_whole",
            "queries::QRY-1::null_is_not_absent",
            "queries::QRY-1::objects_are_equal_in_any_order_and_as_a_whole",
            "queries::QRY-1::values_of_different_types_differ",
            "queries::STR-3::field_names_are_not_paths",
            "streams::STR-3::a_field_name_is_no_path",
        ],
    },
    faulty! {
        ArraysAreComparedAsSets: "the order of items plays no part",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::arrays_are_compared_in_order_and_as_a_whole",
        ],
    },
    faulty! {
        OperatorsAreRun: "values that look like operators are run",
        says: "the sequences with",
        kills: [
            "queries::STR-3::values_are_not_operators",
            "streams::STR-3::a_filter_is_a_value_and_no_operator",
        ],
    },
    faulty! {
        FieldNamesArePaths: "a dot in a field's name descends",
        says: "the sequences with",
        kills: [
            "queries::STR-3::field_names_are_not_paths",
            "streams::STR-3::a_field_name_is_no_path",
        ],
    },
    faulty! {
        TiesOfSequencesComeBackwards: "equal sequences come by descending partition",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-2::order_by_sequence_is_then_by_partition",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::paging_by_sequence_gives_every_event_once",
        ],
    },
    faulty! {
        OrderBySequenceIsByPartition: "order by sequence is by partition first",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-2::order_by_sequence_is_then_by_partition",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::paging_by_sequence_gives_every_event_once",
        ],
    },
    faulty! {
        OrderByTimestampIsThenByPartition: "equal timestamps come by partition first",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-2::order_by_timestamp_is_then_by_sequence_and_partition",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::paging_by_timestamp_gives_every_event_once",
        ],
    },
    faulty! {
        OrderByTimestampIsThatOfTheLog: "order by timestamp is by sequence",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-2::timestamps_that_go_back_are_ordered_too",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::timestamps_that_go_back_disturb_no_page",
        ],
    },
    faulty! {
        TiesNeverDescend: "ties ascend in a descending order too",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-2::order_by_timestamp_is_then_by_sequence_and_partition",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::order_by_sequence_is_then_by_partition",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-2::timestamps_that_go_back_are_ordered_too",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
            "queries::QRY-3::a_cursor_survives_serialization",
            "queries::QRY-3::a_page_holds_1500_matching_events",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::pages_join_up_beyond_a_thousand_events",
            "queries::QRY-3::paging_by_sequence_gives_every_event_once",
            "queries::QRY-3::paging_by_timestamp_gives_every_event_once",
            "queries::QRY-3::paging_one_partition_gives_every_event_once",
            "queries::QRY-3::rare_events_are_found_a_thousand_events_apart",
            "queries::QRY-3::timestamps_that_go_back_disturb_no_page",
        ],
    },
    faulty! {
        CursorIsTheSequenceAlone: "pages go on at the next sequence",
        says: "sequence and partition in pages",
        kills: [
            "queries::QRY-3::paging_by_sequence_gives_every_event_once",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::pages_are_full",
        ],
    },
    faulty! {
        CursorIsTheTimestampAlone: "pages go on at the next timestamp",
        says: "sequence and partition in pages",
        kills: [
            "queries::QRY-3::paging_by_timestamp_gives_every_event_once",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::any_number_of_fields_must_match",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::a_cursor_survives_serialization",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::pages_are_full",
            "queries::QRY-3::pages_join_up_beyond_a_thousand_events",
            "queries::QRY-3::pages_of_rare_events_are_full",
            "queries::QRY-3::paging_one_partition_gives_every_event_once",
            "queries::QRY-3::rare_events_are_found_a_thousand_events_apart",
        ],
    },
    faulty! {
        CursorIsInclusive: "pages begin with the last event of the page before",
        says: "paging to come to an end",
        kills: [
            "queries::QRY-3::paging_one_partition_gives_every_event_once",
            "distribution::DST-1::a_cursor_goes_on_elsewhere",
            "durability::DUR-1::a_cursor_survives",
            "queries::QRY-1::a_query_gives_100_unless_told",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::any_number_of_fields_must_match",
            "queries::QRY-1::escapes_and_wildcards_in_texts_are_letters",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_come_before_the_limit",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
            "queries::QRY-3::a_cursor_is_valid_on_every_handle",
            "queries::QRY-3::a_cursor_may_be_used_again",
            "queries::QRY-3::a_cursor_survives_serialization",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::pages_are_full",
            "queries::QRY-3::pages_join_up_beyond_a_thousand_events",
            "queries::QRY-3::pages_of_rare_events_are_full",
            "queries::QRY-3::paging_by_sequence_gives_every_event_once",
            "queries::QRY-3::paging_by_timestamp_gives_every_event_once",
            "queries::QRY-3::rare_events_are_found_a_thousand_events_apart",
            "queries::QRY-3::timestamps_that_go_back_disturb_no_page",
            "streams::STR-4::queries_are_isolated",
        ],
    },
    faulty! {
        PagesLeaveRoom: "a page of four holds three",
        says: "the sizes of the pages",
        kills: [
            "queries::QRY-3::pages_are_full",
            "queries::QRY-1::a_query_gives_up_to_limit",
        ],
    },
    faulty! {
        PageEndsAfterTenThatDoNotMatch: "a page ends after ten events were looked at",
        says: "the sizes of the pages",
        kills: [
            "queries::QRY-3::pages_of_rare_events_are_full",
        ],
    },
    faulty! {
        CursorIsAnOffset: "a cursor is a number of events",
        says: "the events from before",
        kills: [
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
            "queries::QRY-3::a_damaged_cursor_is_invalid",
            "queries::QRY-3::timestamps_that_go_back_disturb_no_page",
        ],
    },
    faulty! {
        CursorIsRememberedByTheHandle: "a cursor means something to its handle only",
        says: "the last operation to succeed",
        kills: [
            "queries::QRY-3::a_cursor_is_valid_on_every_handle",
            "distribution::DST-1::a_cursor_goes_on_elsewhere",
            "durability::DUR-1::a_cursor_survives",
        ],
    },
    faulty! {
        CursorIsUsedUp: "a cursor can be used once",
        says: "the last operation to succeed",
        kills: [
            "queries::QRY-3::a_cursor_may_be_used_again",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
            "queries::QRY-3::a_cursor_is_valid_on_every_handle",
            "distribution::DST-1::a_cursor_goes_on_elsewhere",
            "durability::DUR-1::a_cursor_survives",
        ],
    },
    faulty! {
        OnlyTheLatestCursorIsValid: "a query makes earlier cursors invalid",
        says: "the last operation to succeed",
        kills: [
            "queries::QRY-3::a_cursor_survives_serialization",
            "queries::QRY-3::a_cursor_is_valid_on_every_handle",
            "queries::QRY-3::a_cursor_may_be_used_again",
            "distribution::DST-1::a_cursor_goes_on_elsewhere",
            "durability::DUR-1::a_cursor_survives",
        ],
    },
    faulty! {
        CursorHoldsTheFilters: "a cursor is refused for other filters",
        says: "the last operation to succeed",
        kills: [
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
        ],
    },
    faulty! {
        DamagedCursorIsIgnored: "a damaged cursor means the first page",
        says: "Err(Invalid)",
        kills: [
            "queries::QRY-3::a_damaged_cursor_is_invalid",
            "input::ERR-6::querying_nothing_excuses_no_bad_input",
            "queries::ERR-6::a_limit_of_0_excuses_no_damaged_cursor",
            "queries::QRY-3::a_cursor_of_another_order_is_invalid",
        ],
    },
    faulty! {
        CursorHasNoChecksum: "the checksum of a cursor is not looked at",
        says: "Err(Invalid)",
        kills: [
            "queries::QRY-3::a_damaged_cursor_is_invalid",
        ],
    },
    faulty! {
        CursorOfAnyOrderIsTaken: "a cursor of another order goes on in its own order",
        says: "Err(Invalid)",
        kills: [
            "queries::QRY-3::a_cursor_of_another_order_is_invalid",
        ],
    },
    faulty! {
        LimitOf0AsksForNoCursor: "with limit 0 the cursor is not looked at",
        says: "Err(Invalid)",
        kills: [
            "queries::ERR-6::a_limit_of_0_excuses_no_damaged_cursor",
            "input::ERR-6::querying_nothing_excuses_no_bad_input",
        ],
    },
    faulty! {
        QueriesClaimEvents: "a query claims an event for each group",
        says: "the sequences still claimable",
        kills: [
            "queries::QRY-4::queries_change_nothing_for_groups",
        ],
    },
    faulty! {
        TypeIsLostOnLaterPages: "later pages are not filtered by type",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::escapes_and_wildcards_in_texts_are_letters",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-3::rare_events_are_found_a_thousand_events_apart",
        ],
    },
    faulty! {
        KeyIsLostOnLaterPagesDescending: "later pages in descending order are not filtered by key",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::every_filter_holds_beside_all_others",
        ],
    },
    faulty! {
        PayloadIsLostOnLaterPagesByTimestamp: "later pages by timestamp are not filtered by payload",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::any_number_of_fields_must_match",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-3::pages_of_rare_events_are_full",
        ],
    },
    faulty! {
        MetadataIsLostInARangeOfTime: "with a bound of time, metadata filters play no part",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::every_filter_holds_beside_all_others",
        ],
    },
    faulty! {
        OneFieldIsLostOnLaterPages: "later pages are filtered by one of two payload fields",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::any_number_of_fields_must_match",
            "queries::QRY-1::every_filter_holds_beside_all_others",
        ],
    },
    faulty! {
        PartitionIsLostWhereThereIsAType: "with a type, the partition plays no part",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::every_filter_holds_beside_all_others",
        ],
    },
    faulty! {
        PartitionIsLostByTimestamp: "by timestamp, the partition plays no part",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
        ],
    },
    faulty! {
        AfterIsLostWhereThereIsAKey: "with a key, after_sequence plays no part",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
        ],
    },
    faulty! {
        UntilSequenceIsLostOnLaterPages: "later pages go beyond until_sequence",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
        ],
    },
    faulty! {
        UntilSequenceIsLostByTimestamp: "by timestamp, until_sequence plays no part",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
        ],
    },
    faulty! {
        CursorTakesThePlaceOfFrom: "on later pages the cursor takes the place of `from`",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
        ],
    },
    faulty! {
        CursorTakesThePlaceOfUntil: "on later pages the cursor takes the place of `until`",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
        ],
    },
    faulty! {
        TimesAreLostDescending: "by descending timestamp, the range of time plays no part",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
        ],
    },
    faulty! {
        FilteredPagesGoOnAtTheNextTimestamp: "with a type, pages by timestamp go on at the next timestamp",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-3::rare_events_are_found_a_thousand_events_apart",
        ],
    },
    faulty! {
        SequenceTiesComeByPartitionAsText: "equal sequences come by partition as text",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
        ],
    },
    faulty! {
        TimeTiesComeByPartitionAsText: "equal timestamps and sequences come by partition as text",
        says: "sequence and partition by",
        kills: [
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
        ],
    },
    faulty! {
        CursorHoldsThePartitionAsText: "pages go on where the partition is above as text",
        says: "sequence and partition by",
        kills: ["queries::QRY-2::partitions_above_9_are_ordered_by_number", "queries::QRY-3::a_cursor_goes_on_under_other_filters"],
    },
    faulty! {
        SequencesAreBoundIn32Bits: "of after_sequence the lower 32 bits count",
        says: "the sequences above",
        kills: [
            "queries::QRY-1::a_sequence_range_is_exclusive_below_and_inclusive_above",
        ],
    },
    faulty! {
        UntilSequenceIsSigned32Bits: "an until_sequence above 31 bits is negative",
        says: "the sequences up to",
        kills: [
            "queries::QRY-1::a_sequence_range_is_exclusive_below_and_inclusive_above",
        ],
    },
    faulty! {
        PagesAreCutAt1000: "pages are cut at 1,000 events",
        says: "the sequences of one page",
        kills: [
            "queries::QRY-3::a_page_holds_1500_events",
            "queries::QRY-3::a_page_holds_1500_matching_events",
        ],
    },
    faulty! {
        PagesAreCutAtAMegabyte: "pages are cut at a megabyte",
        says: "the number of long events",
        kills: [
            "queries::QRY-3::a_page_holds_3_megabytes",
        ],
    },
    faulty! {
        TypesAreComparedTo64Bytes: "of a type the first 64 bytes are compared",
        says: "the sequences of a type",
        kills: [
            "queries::QRY-1::long_types_are_compared_to_their_end",
        ],
    },
    faulty! {
        KeysAreComparedTo767Bytes: "of a key the first 767 bytes are compared",
        says: "the sequences of a key",
        kills: [
            "queries::QRY-1::long_keys_are_compared_to_their_end",
        ],
    },
    faulty! {
        TextsAreComparedTo255Bytes: "of texts in fields the first 255 bytes are compared",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::long_texts_in_fields_are_compared_to_their_end",
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
        ],
    },
    faulty! {
        LongTextsAreComparedTo4000Bytes: "of texts in fields the first 4,000 bytes are compared",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::long_texts_in_fields_are_compared_to_their_end",
        ],
    },
    faulty! {
        FieldNamesAreComparedTo63Bytes: "of field names the first 63 bytes are compared",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::long_field_names_are_compared_to_their_end",
        ],
    },
    faulty! {
        NestedTextsAreComparedWithoutCase: "texts in arrays and objects are compared without case",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
        ],
    },
    faulty! {
        TextsAreComparedWithoutBlanks: "blanks at the end of texts in fields play no part",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
            "queries::QRY-1::an_empty_value_is_neither_null_nor_absent",
            "queries::QRY-1::values_of_different_types_differ",
        ],
    },
    faulty! {
        AnEmptyTextIsNull: "an empty text equals null",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::an_empty_value_is_neither_null_nor_absent",
            "queries::QRY-1::values_of_different_types_differ",
        ],
    },
    faulty! {
        AMissingFieldIsAnEmptyText: "a missing field equals an empty text",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::an_empty_value_is_neither_null_nor_absent",
        ],
    },
    faulty! {
        NestedNumbersAreComparedAsDoubles: "numbers in arrays and objects are compared as doubles",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
        ],
    },
    faulty! {
        NestedArraysAreComparedAsSets: "arrays in objects are compared as sets",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
        ],
    },
    faulty! {
        NestedNullsAreAbsent: "in objects, null equals absent",
        says: "the sequences with",
        kills: [
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
            "queries::QRY-1::objects_are_equal_in_any_order_and_as_a_whole",
        ],
    },
];
