//! Defects that the cases of `fidelity` are there for.

mod documents;
mod everywhere;

use self::documents::*;
use self::everywhere::*;
use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        AppendAnswersWithAnotherTime: "an append with metadata answers with a time a microsecond after the event's",
        says: "the timestamp",
        kills: [
            "fidelity::LOG-5::append_read_and_fetch_give_the_same_event",
            "delivery::DLV-8::a_lease_is_whole",
            "durability::DUR-1::events_survive",
            "fidelity::LOG-5::a_dead_letter_holds_the_same_event",
            "fidelity::LOG-5::a_query_gives_the_same_event",
            "fidelity::LOG-5::a_renewed_and_a_redelivered_lease_hold_the_same_event",
            "input::LOG-8::the_longest_payload_is_taken_and_no_longer_one",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::STR-4::a_query_sees_its_own_stream_alone",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        TimesAreBehindInOtherPartitions: "events of other partitions than 0 are a microsecond behind",
        says: "the timestamp",
        kills: [
            "fidelity::LOG-5::every_append_has_its_own_time",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::order_by_timestamp_is_then_by_sequence_and_partition",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::paging_by_timestamp_gives_every_event_once",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-5::reset_to_a_time_is_found_per_partition",
        ],
    },
    faulty! {
        FetchForgetsTheKey: "a fetched event has no key",
        says: "the event, fetched",
        kills: [
            "fidelity::LOG-5::append_read_and_fetch_give_the_same_event",
            "delivery::DLV-8::a_lease_is_whole",
            "fidelity::LOG-5::a_renewed_and_a_redelivered_lease_hold_the_same_event",
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
            "fidelity::STR-2::any_event_type_and_key_come_back",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        BatchForgetsTheKeys: "events that are appended together lose their keys",
        says: "the appended event",
        kills: [
            "fidelity::LOG-5::a_batch_gives_the_same_events",
        ],
    },
    faulty! {
        QueryForgetsTheMetadata: "an event found by a query has no metadata",
        says: "the events, queried",
        kills: [
            "fidelity::LOG-5::a_query_gives_the_same_event",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::STR-4::a_query_sees_its_own_stream_alone",
        ],
    },
    faulty! {
        RedeliveryForgetsTheMetadata: "an event that is delivered again has no metadata",
        says: "the event, reclaimed",
        kills: [
            "fidelity::LOG-5::a_renewed_and_a_redelivered_lease_hold_the_same_event",
        ],
    },
    faulty! {
        RenewForgetsTheKey: "the event in a renewed lease has no key",
        says: "the event, renewed",
        kills: [
            "fidelity::LOG-5::a_renewed_and_a_redelivered_lease_hold_the_same_event",
        ],
    },
    faulty! {
        DeadLettersForgetTheMetadata: "the event of a dead letter has no metadata",
        says: "the events of the dead letters",
        kills: [
            "fidelity::LOG-5::a_dead_letter_holds_the_same_event",
        ],
    },
    faulty! {
        DeadLettersAreStampedAnew: "the event of a dead letter has the time at which it became one",
        says: "the events of the dead letters",
        kills: [
            "fidelity::LOG-5::a_dead_letter_holds_the_same_event",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
        ],
    },
    faulty! {
        MissingKeysAreTheTextNull: "an event without a key gets the key \"null\"",
        says: "no key",
        kills: [
            "fidelity::LOG-5::a_missing_key_and_empty_metadata_stay_so",
            "fidelity::LOG-5::a_batch_gives_the_same_events",
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
        ],
    },
    faulty! {
        EmptyMetadataGetsAField: "empty metadata gets a field",
        says: "the metadata",
        kills: [
            "fidelity::LOG-5::a_missing_key_and_empty_metadata_stay_so",
            "fidelity::LOG-5::a_batch_gives_the_same_events",
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
            "fidelity::LOG-8::nulls_and_empty_values_stay",
            "fidelity::LOG-8::random_documents_come_back",
        ],
    },
    faulty! {
        TimestampsAreInMilliseconds: "timestamps are cut to milliseconds",
        says: "the timestamp",
        kills: [
            "fidelity::LOG-5::a_timestamp_keeps_its_microseconds",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "delivery::DLV-2::a_start_at_a_time_is_before_the_first_event_of_that_time",
            "fidelity::LOG-5::a_batch_gives_the_same_events",
            "fidelity::LOG-5::a_dead_letter_holds_the_same_event",
            "fidelity::LOG-5::a_timestamp_follows_the_clock_back",
            "fidelity::LOG-5::append_read_and_fetch_give_the_same_event",
            "fidelity::LOG-5::every_append_has_its_own_time",
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
            "fidelity::LOG-5::the_first_and_the_last_timestamp_come_back",
            "log::LOG-7::generated_ids_hold_the_time_of_the_append",
            "progress::FRN-2::the_frontier_begins_at_the_start",
            "queries::QRY-1::a_time_range_includes_both_ends",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::every_filter_holds_beside_all_others",
            "queries::QRY-1::filters_hold_on_every_page_in_every_order",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "reset::RPL-5::reset_reaches_each_of_twelve_partitions",
            "reset::RPL-5::reset_to_a_time_goes_by_the_lowest_sequence",
            "reset::RPL-5::reset_to_a_time_is_found_per_partition",
            "reset::RPL-5::reset_to_a_time_starts_with_the_first_event_at_or_after_it",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
        ],
    },
    faulty! {
        TimestampsAreUnsigned: "timestamps before 1970 are 1970",
        says: "the timestamp",
        kills: [
            "fidelity::LOG-5::the_first_and_the_last_timestamp_come_back",
            "queries::QRY-1::a_time_range_may_be_anywhere",
        ],
    },
    faulty! {
        TimestampsAreNanosecondsIn64Bits: "timestamps that do not fit 64 bits of nanoseconds are refused",
        says: "the last operation to succeed",
        kills: [
            "fidelity::LOG-5::the_first_and_the_last_timestamp_come_back",
            "queries::QRY-1::a_time_range_may_be_anywhere",
        ],
    },
    faulty! {
        TypesAreTrimmed: "blanks around a type are lost",
        says: "type and key",
        kills: [
            "fidelity::STR-2::any_event_type_and_key_come_back",
            "queries::QRY-1::a_query_by_type_gives_that_type_alone",
            "streams::STR-2::types_and_keys_are_told_apart",
            "streams::STR-2::types_and_keys_come_back",
        ],
    },
    faulty! {
        KeysAreLowered: "keys become lower case",
        says: "type and key",
        kills: [
            "fidelity::STR-2::any_event_type_and_key_come_back",
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
            "streams::STR-2::types_and_keys_are_told_apart",
            "streams::STR-2::types_and_keys_come_back",
        ],
    },
    faulty! {
        KeysAreCutAt255Bytes: "keys are cut after 255 bytes",
        says: "type and key",
        kills: [
            "fidelity::STR-2::any_event_type_and_key_come_back",
            "log::LOG-6::a_long_key_is_hashed_to_its_end",
            "queries::QRY-1::long_keys_are_compared_to_their_end",
            "streams::STR-2::types_and_keys_come_back",
        ],
    },
    faulty! {
        U64GoesThroughI64: "integers above i64 become negative",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::integers_of_64_bits_come_back",
            "fidelity::LOG-8::nesting_to_64_comes_back",
            "fidelity::LOG-8::random_documents_come_back",
            "queries::QRY-1::numbers_are_compared_by_their_exact_value",
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
        ],
    },
    faulty! {
        IntegersGoThroughADouble: "integers are kept as doubles",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::integers_of_64_bits_come_back",
            "fidelity::LOG-8::random_documents_come_back",
            "queries::QRY-1::numbers_are_compared_by_their_exact_value",
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
        ],
    },
    faulty! {
        DoublesHave15Digits: "doubles are printed with 15 digits",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::doubles_come_back",
            "fidelity::LOG-8::random_documents_come_back",
            "fidelity::LOG-8::whole_doubles_and_integers_stay_what_they_are",
            "queries::QRY-1::numbers_are_compared_by_their_exact_value",
        ],
    },
    faulty! {
        TinyDoublesAreZero: "subnormal doubles become zero",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::doubles_come_back",
            "queries::QRY-1::numbers_are_compared_by_their_exact_value",
        ],
    },
    faulty! {
        WholeDoublesBecomeIntegers: "1.0 becomes 1",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::whole_doubles_and_integers_stay_what_they_are",
            "fidelity::LOG-8::doubles_come_back",
            "fidelity::LOG-8::random_documents_come_back",
        ],
    },
    faulty! {
        LargeWholeDoublesLoseTheirPoint: "1e15 becomes 1000000000000000",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::whole_doubles_and_integers_stay_what_they_are",
            "fidelity::LOG-8::doubles_come_back",
        ],
    },
    faulty! {
        TextIsUnescapedTwice: "text is unescaped once too often",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::text_that_looks_like_an_escape_stays",
            "queries::QRY-1::escapes_and_wildcards_in_texts_are_letters",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        WhatLooksLikeNulIsRefused: "a backslash, u and four zeros are taken for U+0000",
        says: "the last operation to succeed",
        kills: [
            "fidelity::LOG-8::text_that_looks_like_an_escape_stays",
        ],
    },
    faulty! {
        TextIsNormalized: "text is brought to normal form C",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::any_unicode_text_comes_back",
        ],
    },
    faulty! {
        TextHasThreeBytesACharacter: "characters of four bytes are replaced",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::any_unicode_text_comes_back",
            "fidelity::LOG-8::random_documents_come_back",
        ],
    },
    faulty! {
        NoncharactersAreDropped: "U+FFFE and U+FFFF are dropped",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::random_documents_come_back",
            "fidelity::LOG-8::any_unicode_text_comes_back",
        ],
    },
    faulty! {
        TextIsTrimmed: "blanks around text are lost",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::control_characters_and_blanks_come_back",
            "fidelity::LOG-8::any_unicode_text_comes_back",
            "fidelity::LOG-8::random_documents_come_back",
            "queries::QRY-1::an_empty_value_is_neither_null_nor_absent",
            "queries::QRY-1::values_of_different_types_differ",
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
        ],
    },
    faulty! {
        LineEndsAreConverted: "a carriage return before a line feed is lost",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::control_characters_and_blanks_come_back",
        ],
    },
    faulty! {
        ControlCharactersAreDropped: "control characters are dropped",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::control_characters_and_blanks_come_back",
            "fidelity::LOG-8::random_documents_come_back",
        ],
    },
    faulty! {
        DotsInNamesAreReplaced: "dots in field names are replaced",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::any_field_name_comes_back",
            "fidelity::LOG-8::random_documents_come_back",
            "queries::STR-3::field_names_are_not_paths",
            "streams::STR-3::a_field_name_is_no_path",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        DollarNamesAreRefused: "field names that begin with a dollar sign are refused",
        says: "the last operation to succeed",
        kills: [
            "fidelity::LOG-8::any_field_name_comes_back",
            "fidelity::LOG-8::documents_that_look_like_typed_values_stay_documents",
            "fidelity::LOG-8::random_documents_come_back",
            "fidelity::LOG-8::text_that_looks_like_an_escape_stays",
            "queries::STR-3::field_names_are_not_paths",
            "queries::STR-3::values_are_not_operators",
            "streams::STR-3::a_field_name_is_no_path",
            "streams::STR-3::a_filter_is_a_value_and_no_operator",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        EmptyNamesAreRefused: "empty field names are refused",
        says: "the last operation to succeed",
        kills: [
            "fidelity::LOG-8::any_field_name_comes_back",
            "fidelity::LOG-8::control_characters_and_blanks_come_back",
            "fidelity::LOG-8::nulls_and_empty_values_stay",
            "fidelity::LOG-8::random_documents_come_back",
            "queries::STR-3::field_names_are_not_paths",
            "streams::STR-3::a_field_name_is_no_path",
        ],
    },
    faulty! {
        NamesAreLowered: "field names become lower case",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::any_field_name_comes_back",
            "fidelity::LOG-8::documents_that_look_like_typed_values_stay_documents",
            "fidelity::LOG-8::text_that_looks_like_an_escape_stays",
            "queries::QRY-1::objects_are_equal_in_any_order_and_as_a_whole",
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
            "queries::STR-3::field_names_are_not_paths",
            "queries::STR-3::values_are_not_operators",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        PrototypeIsDropped: "the field __proto__ is dropped",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::any_field_name_comes_back",
            "queries::STR-3::field_names_are_not_paths",
        ],
    },
    faulty! {
        ExtendedJsonIsRead: "documents that look like extended JSON become values",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::documents_that_look_like_typed_values_stay_documents",
        ],
    },
    faulty! {
        NullsAreLeftOut: "null fields are left out",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::nulls_and_empty_values_stay",
            "fidelity::LOG-5::a_batch_gives_the_same_events",
            "fidelity::LOG-5::append_read_and_fetch_give_the_same_event",
            "fidelity::LOG-8::random_documents_come_back",
            "queries::QRY-1::an_empty_value_is_neither_null_nor_absent",
            "queries::QRY-1::null_is_not_absent",
            "queries::QRY-1::objects_are_equal_in_any_order_and_as_a_whole",
            "queries::QRY-1::values_of_different_types_differ",
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
            "queries::STR-3::values_are_not_operators",
            "streams::STR-3::a_filter_is_a_value_and_no_operator",
        ],
    },
    faulty! {
        EmptyArraysBecomeObjects: "an empty array becomes an empty object",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::nulls_and_empty_values_stay",
            "fidelity::LOG-8::random_documents_come_back",
            "queries::QRY-1::an_empty_value_is_neither_null_nor_absent",
            "queries::QRY-1::arrays_are_compared_in_order_and_as_a_whole",
            "queries::QRY-1::values_of_different_types_differ",
            "queries::QRY-1::what_is_nested_is_compared_exactly_too",
        ],
    },
    faulty! {
        NestingEndsAt63: "nesting deeper than 63 is refused",
        says: "the last operation to succeed",
        kills: [
            "fidelity::LOG-8::nesting_to_64_comes_back",
        ],
    },
    faulty! {
        ArraysAreCutAt1000: "arrays are cut after 1,000 items",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::a_long_array_comes_back_in_order",
        ],
    },
    faulty! {
        LongArraysAreSorted: "long arrays are sorted",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::a_long_array_comes_back_in_order",
        ],
    },
    faulty! {
        LimitIsOfTheStoredForm: "a document of exactly the limit is refused",
        says: "the last operation to succeed",
        kills: [
            "fidelity::LOG-8::the_longest_document_comes_back",
            "input::LOG-8::a_batch_of_as_many_bytes_as_allowed_is_taken_and_no_larger_one",
            "input::LOG-8::the_longest_payload_is_taken_and_no_longer_one",
        ],
    },
    faulty! {
        ObjectsOf1000FieldsAreRefused: "objects of more than 1,000 fields are refused",
        says: "the last operation to succeed",
        kills: [
            "fidelity::LOG-8::many_fields_and_long_names_come_back",
        ],
    },
    faulty! {
        FieldNamesAreCutAt1000Bytes: "field names are cut at 1,000 bytes",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::many_fields_and_long_names_come_back",
            "queries::QRY-1::long_field_names_are_compared_to_their_end",
        ],
    },
    faulty! {
        ArraysAreCutAt8192: "arrays are cut after 8,192 items",
        says: "the payload",
        kills: [
            "fidelity::LOG-8::a_long_array_comes_back_in_order",
        ],
    },
    faulty! {
        MetadataIsLostFromThe11thOfABatch: "from the 11th event of a batch on, metadata is lost",
        says: "the appended event",
        kills: [
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
        ],
    },
    faulty! {
        MetadataIsLostFromThe101stOfABatch: "from the 101st event of a batch on, metadata is lost",
        says: "the appended event",
        kills: [
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
        ],
    },
    faulty! {
        KeysAreLostFromThe251stOfABatch: "from the 251st event of a batch on, keys are lost",
        says: "the appended event",
        kills: [
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
        ],
    },
    faulty! {
        ABatchHasTheTypeOfItsFirst: "all events of a batch have the type of the first",
        says: "the appended event",
        kills: [
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
            "queries::QRY-3::a_page_holds_1500_matching_events",
            "queries::QRY-3::rare_events_are_found_a_thousand_events_apart",
        ],
    },
    faulty! {
        ABatchHasTheMetadataOfItsFirst: "all metadata of a batch is that of the first",
        says: "the appended event",
        kills: [
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
        ],
    },
    faulty! {
        LargeBatchesAreAnsweredWithALaterTime: "from its 11th event on, a batch is answered with a later time than is kept",
        says: "the timestamp",
        kills: [
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
            "input::LOG-8::a_batch_of_as_many_bytes_as_allowed_is_taken_and_no_larger_one",
            "log::LOG-6::a_batch_finds_partitions_above_9",
            "queries::QRY-3::rare_events_are_found_a_thousand_events_apart",
        ],
    },
];
