//! Defects that the cases of `input` are there for.

pub(super) mod fields;
mod limits;
mod missing;
mod nothing;
mod ranges;
mod starts;

use rheo_core::{ErrorKind, Result};

use self::limits::*;
use self::missing::*;
use self::nothing::*;
use self::ranges::*;
use self::starts::*;
use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        PartitionModuloCount: "an explicit partition that is out of range goes to partition 0",
        says: "Err(Invalid)",
        kills: [
            "input::ERR-8::an_append_out_of_range_is_invalid",
            "input::ERR-8::a_batch_with_one_out_of_range_is_invalid",
            "log::LOG-1::a_partition_out_of_range_uses_up_no_sequence",
            "log::LOG-3::a_batch_with_a_partition_out_of_range_writes_nothing",
            "log::LOG-6::a_partition_out_of_range_is_refused",
            "log::LOG-7::a_refused_id_stays_free",
        ],
    },
    faulty! {
        BatchIsWrittenUntilTheBadOne: "a batch is written event by event until one is refused",
        says: "no event",
        kills: [
            "input::ERR-8::a_batch_with_one_out_of_range_is_invalid",
            "log::LOG-3::a_batch_with_a_partition_out_of_range_writes_nothing",
        ],
    },
    faulty! {
        ReadOutOfRangeIsEmpty: "a partition that is not there reads as an empty one",
        says: "Err(Invalid)",
        kills: [
            "input::ERR-8::a_read_out_of_range_is_invalid",
            "durability::DUR-1::partitions_survive",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
            "streams::STR-1::a_duplicate_does_not_change_the_partitions",
            "streams::STR-1::a_stream_has_one_partition_by_default",
            "streams::STR-1::a_stream_has_the_partitions_it_was_made_with",
            "streams::STR-1::a_stream_has_up_to_1024_partitions",
        ],
    },
    faulty! {
        QueryOutOfRangeIsEmpty: "a query of a partition that is not there is empty",
        says: "Err(Invalid)",
        kills: [
            "input::ERR-8::a_query_out_of_range_is_invalid",
            "input::ERR-6::querying_nothing_excuses_no_bad_input",
        ],
    },
    faulty! {
        FetchLeavesUnknownPartitionsOut: "fetch leaves partitions out that are not there",
        says: "Err(Invalid)",
        kills: [
            "input::ERR-8::a_fetch_out_of_range_is_invalid",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
        ],
    },
    faulty! {
        FetchClaimsBeforeItChecks: "fetch claims from the first partitions and then finds a bad one",
        says: "one lease",
        kills: ["input::ERR-8::a_fetch_out_of_range_is_invalid"],
    },
    faulty! {
        GroupStartLeavesUnknownPartitionsOut: "a start leaves partitions out that are not there",
        says: "Err(Invalid)",
        kills: [
            "input::ERR-8::a_group_start_out_of_range_is_invalid",
        ],
    },
    faulty! {
        InvalidNamesAnotherArgument: "a bad start of a group is said to be a bad partition",
        says: "for the argument `start`",
        kills: [
            "input::ERR-8::a_group_start_out_of_range_is_invalid",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
        ],
    },
    faulty! {
        ReplaysUntilTheBadPartition: "replay goes from partition to partition until one is refused",
        says: "no claimable event",
        kills: [
            "input::ERR-8::a_replay_out_of_range_is_invalid",
            "replay::ERR-8::replay_of_a_partition_out_of_range_reopens_nothing",
        ],
    },
    faulty! {
        ResetsUntilTheBadPartition: "reset goes from partition to partition until one is refused",
        says: "no claimable event",
        kills: [
            "input::ERR-8::a_reset_out_of_range_is_invalid",
            "reset::ERR-8::reset_of_a_partition_out_of_range_drops_nothing",
            "reset::RPL-5::a_start_for_a_partition_that_is_not_selected_is_invalid",
        ],
    },
    faulty! {
        StartBeyondIsTheEnd: "a start beyond the high watermark is the end",
        says: "Err(Invalid)",
        kills: [
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
        ],
    },
    faulty! {
        StartIsComparedWithPartitionZero: "a start is compared with the high watermark of partition 0",
        says: "Err(Invalid)",
        kills: [
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
        ],
    },
    faulty! {
        ResetDropsBeforeItLooksAtTheStart: "reset drops the state before it finds the start beyond the end",
        says: "no claimable event",
        kills: [
            "input::RPL-5::a_reset_beyond_the_end_is_invalid",
            "reset::RPL-5::a_start_beyond_one_partition_drops_nothing_in_any",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
        ],
    },
    faulty! {
        MissingStreamIsMissingGroup: "without the stream, fetch says that the group is missing",
        says: "to give Err(StreamNotFound)",
        kills: [
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
            "delivery::ERR-6::a_missing_stream_is_noticed_before_its_group",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::a_missing_stream_comes_before_bad_input",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
        ],
    },
    faulty! {
        MissingGroupIsMade: "fetch makes a group that is not there",
        says: "to give Err(GroupNotFound)",
        kills: [
            "input::ERR-6::a_missing_group_is_named",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "delivery::ERR-6::a_missing_stream_is_noticed_before_its_group",
            "distribution::DST-1::a_group_made_elsewhere_is_there",
            "input::ERR-10::a_missing_group_is_named_with_its_stream",
            "input::ERR-6::a_missing_group_comes_before_bad_input",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
        ],
    },
    faulty! {
        MissingStreamHasOnePartition: "partitions of a stream that is not there are checked all the same",
        says: "Err(StreamNotFound)",
        kills: ["input::ERR-6::a_missing_stream_comes_before_bad_input"],
    },
    faulty! {
        PartitionsBeforeTheGroup: "fetch checks the partitions before it looks the group up",
        says: "Err(GroupNotFound)",
        kills: ["input::ERR-6::a_missing_group_comes_before_bad_input"],
    },
    faulty! {
        NoPartitionsReturnEarly: "a fetch from no partitions is Ok before the group is looked up",
        says: "Err(StreamNotFound)",
        kills: [
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
            "delivery::ERR-6::a_missing_stream_is_noticed_before_its_group",
        ],
    },
    faulty! {
        DeadLettersOfNoneCheckNoCursor: "dead_letters with limit 0 looks no cursor up",
        says: "Err(CursorNotFound)",
        kills: [
            "input::ERR-6::listing_nothing_excuses_no_missing_group",
            "dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream",
            "dead_letters::DLQ-5::an_after_of_a_namesake_is_cursor_not_found",
            "dead_letters::DLQ-5::an_after_that_is_no_dead_letter_is_cursor_not_found",
            "dead_letters::DLQ-5::an_after_that_is_not_dead_is_found_in_no_partition",
            "dead_letters::DLQ-5::an_after_that_was_replayed_is_cursor_not_found",
            "dead_letters::DLQ-5::an_unknown_after_is_cursor_not_found",
            "input::ERR-10::a_cursor_that_is_not_found_is_named",
        ],
    },
    faulty! {
        ResetOfNoneReturnsEarly: "a reset of no partitions is Ok before the group is looked up",
        says: "Err(GroupNotFound)",
        kills: [
            "input::ERR-6::nothing_to_replay_excuses_no_missing_group",
            "reset::ERR-6::reset_looks_for_the_stream_before_the_group",
        ],
    },
    faulty! {
        ReadOfNoneChecksNoPartition: "a read with limit 0 checks no partition",
        says: "Err(Invalid)",
        kills: ["input::ERR-6::nothing_to_do_excuses_no_bad_input"],
    },
    faulty! {
        QueryOfNoneChecksNothing: "a query with limit 0 checks neither partition nor cursor",
        says: "Err(Invalid)",
        kills: [
            "input::ERR-6::querying_nothing_excuses_no_bad_input",
            "queries::ERR-6::a_limit_of_0_excuses_no_damaged_cursor",
        ],
    },
    faulty! {
        DeclaredJsonLimitIsUnchecked: "a limit of 200 bytes is declared and checked by nobody",
        says: "Err(Invalid)",
        kills: [
            "input::LOG-8::the_longest_payload_is_taken_and_no_longer_one",
            "input::LOG-8::a_batch_with_one_payload_too_long_is_refused_whole",
        ],
    },
    faulty! {
        JsonLimitIsOneLess: "a payload of just the longest length is refused",
        says: "the last operation to succeed",
        kills: [
            "input::LOG-8::the_longest_payload_is_taken_and_no_longer_one",
            "fidelity::LOG-8::the_longest_document_comes_back",
        ],
    },
    faulty! {
        DeclaredBatchLimitIsUnchecked: "a limit of 60 events is declared and checked by nobody",
        says: "Err(Invalid)",
        kills: ["input::LOG-8::a_batch_up_to_the_limits_is_taken_and_no_longer_one"],
    },
    faulty! {
        BatchesHaveABoundOfTheirOwn: "batches of more than 500 events fail, and no limit is declared",
        says: "the last operation to succeed",
        kills: [
            "input::LOG-8::a_batch_up_to_the_limits_is_taken_and_no_longer_one",
            "batches::LSE-8::over_a_thousand_leases_settle_in_one_batch",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
            "delivery::DLV-2::a_start_at_a_time_may_be_a_thousand_events_back",
            "delivery::DLV-3::ten_thousand_events_may_be_open",
            "inspect::OPS-3::group_info_counts_any_number_of_leases_and_dead_letters",
            "log::LOG-9::a_read_gives_1500_events",
            "progress::FRN-1::a_hole_below_a_thousand_acks_holds_the_frontier",
            "progress::FRN-1::holes_hold_the_frontier_however_far_up",
            "queries::QRY-3::a_page_holds_1500_events",
            "queries::QRY-3::a_page_holds_1500_matching_events",
            "queries::QRY-3::pages_join_up_beyond_a_thousand_events",
            "queries::QRY-3::rare_events_are_found_a_thousand_events_apart",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-4::any_number_of_chosen_events_is_reopened",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
        ],
    },
    faulty! {
        LimitsAreCheckedWhileWriting: "each event of a batch is checked when it is written",
        says: "no event",
        kills: [
            "input::LOG-8::a_batch_with_one_payload_too_long_is_refused_whole",
        ],
    },
    faulty! {
        MissingStreamReadsEmpty: "a stream that is not there reads as an empty one",
        says: "Err(StreamNotFound)",
        kills: [
            "input::LOG-9::a_missing_stream_is_not_an_empty_one",
            "distribution::DST-1::a_stream_made_elsewhere_is_there",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::a_missing_stream_comes_before_bad_input",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
            "log::LOG-9::reading_a_missing_stream_is_an_error",
        ],
    },
    faulty! {
        MissingGroupHasNoLag: "the lag of a group that is not there is nothing",
        says: "Err(GroupNotFound)",
        kills: [
            "input::FRN-4::a_missing_group_has_no_lag",
            "input::ERR-10::a_missing_group_is_named_with_its_stream",
            "input::ERR-6::a_missing_group_is_named",
            "progress::ERR-6::lag_looks_for_the_stream_before_the_group",
        ],
    },
    faulty! {
        MissingGroupHasZeros: "the numbers of a group that is not there are zeros",
        says: "Err(GroupNotFound)",
        kills: [
            "input::OPS-3::a_missing_group_has_no_info",
            "input::ERR-10::a_missing_group_is_named_with_its_stream",
            "input::ERR-6::a_missing_group_is_named",
            "inspect::ERR-6::group_info_looks_for_the_stream_before_the_group",
        ],
    },
    faulty! {
        BatchesOf4MegabytesFail: "batches above 4 MiB fail, and no limit is declared",
        says: "the last operation to succeed",
        kills: [
            "input::LOG-8::a_batch_of_as_many_bytes_as_allowed_is_taken_and_no_larger_one",
        ],
    },
    faulty! {
        BatchesOf16MegabytesAreInvalid: "batches above 16 MiB are invalid, and no limit is declared",
        says: "the last operation to succeed",
        kills: [
            "input::LOG-8::a_batch_of_as_many_bytes_as_allowed_is_taken_and_no_larger_one",
        ],
    },
    faulty! {
        DeclaredBatchBytesAreUnchecked: "a declared limit of bytes in a batch is not checked",
        says: "Err(Invalid)",
        kills: [
            "input::LOG-8::a_batch_of_as_many_bytes_as_allowed_is_taken_and_no_larger_one",
        ],
    },
];

fn is<T>(result: &Result<T>, kind: ErrorKind) -> bool {
    matches!(result, Err(error) if error.kind() == kind)
}
