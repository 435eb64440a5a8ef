//! Queries and paging: filters, order, cursors.

mod combined;
mod cursors;
mod filters;
mod json;
mod long;
mod order;
mod paging;
mod ranges;
mod several;
mod texts;

use rheo_core::{Gate, Guarantee};

use self::combined::*;
use self::cursors::*;
use self::filters::*;
use self::json::*;
use self::long::*;
use self::order::*;
use self::paging::*;
use self::ranges::*;
use self::several::*;
use self::texts::*;
use crate::case::{Case, case};

const DISTRIBUTED: Gate = Gate::Guarantee(Guarantee::Distributed);
const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const RANGE_SCAN: Gate = Gate::Guarantee(Guarantee::OrderedRangeScan);
const INDEXES: Gate = Gate::Guarantee(Guarantee::SecondaryIndexes);

pub(crate) const CASES: &[Case] = &[
    // Filters
    case!(
        "QRY-1" => a_query_by_type_gives_that_type_alone,
        "the type is folded, trimmed, or compared with LIKE or a regular expression"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => a_query_by_key_gives_that_key_alone,
        "the key is folded, trimmed, or compared with LIKE or a regular expression"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => a_query_by_partition_gives_that_partition_alone,
        "partition 0 is taken for no partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "QRY-1" => payload_and_metadata_are_not_mixed_up,
        "both are searched in one document"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => all_filters_must_match,
        "one of the conditions is joined with OR, or only the first one is used"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => any_number_of_fields_must_match,
        "there is room for two fields in the statement, and the others are left out"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => every_filter_holds_beside_all_others,
        "the conditions are put together by hand for the combinations that somebody thought of"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => a_time_range_may_be_anywhere,
        "a time before 1970 is negative or huge in the store's own form, or far ones are cut to what it holds"
    ),
    case!(
        "QRY-1" => a_time_range_includes_both_ends,
        "one end is exclusive, or the range is rounded to milliseconds"
    ),
    case!(
        "QRY-1" => a_sequence_range_is_exclusive_below_and_inclusive_above,
        "both ends are treated alike"
    ),
    case!(
        "QRY-1" => bounds_that_leave_nothing_give_an_empty_page,
        "bounds that contradict each other are refused, swapped or panic"
    ),
    case!(
        "QRY-1" => a_query_gives_up_to_limit,
        "a limit of 0 is taken as no limit, or a large one overflows"
    ),
    case!(
        "QRY-1" => a_query_gives_100_unless_told,
        "the backend has a default page size of its own"
    ),
    case!(
        "QRY-1" => filters_come_before_the_limit,
        "the page is cut first and filtered afterwards"
    )
    .needs(&[INDEXES]),
    case!(
        "STR-4" => a_query_sees_its_own_stream_alone,
        "an index is searched without the stream"
    )
    .needs(&[RANGE_SCAN, INDEXES]),
    case!(
        "ERR-6" => querying_a_missing_stream_is_an_error,
        "a stream without rows and a missing stream look the same, or limit 0 returns early"
    )
    .needs(&[RANGE_SCAN]),
    case!(
        "QRY-1" => ranges_hold_on_every_page_in_every_order,
        "the cursor takes the place of a bound, or an order has a statement of its own without it"
    ),
    case!(
        "QRY-1" => filters_hold_on_every_page_in_every_order,
        "the statement for later pages, for an order or for two filters lacks one of the conditions"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => long_types_are_compared_to_their_end,
        "an index or a column keeps the first bytes of a type only"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => long_keys_are_compared_to_their_end,
        "an index or a column keeps the first bytes of a key only"
    )
    .needs(&[INDEXES]),
    // JSON
    case!(
        "QRY-1" => long_texts_in_fields_are_compared_to_their_end,
        "an index keeps the first bytes of a value only"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => long_field_names_are_compared_to_their_end,
        "field names are cut to the length of an identifier"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => escapes_and_wildcards_in_texts_are_letters,
        "texts are escaped once too often or once too few, or are taken for patterns"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => an_empty_value_is_neither_null_nor_absent,
        "the store takes an empty text for null, or a default stands in for a missing field"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => what_is_nested_is_compared_exactly_too,
        "values are compared exactly at the top, and by text, as sets or as doubles inside"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => values_of_different_types_differ,
        "values are compared as text"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => null_is_not_absent,
        "the store treats a missing field as null"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => numbers_are_compared_by_their_exact_value,
        "1 and 1.0 are compared as text, or large integers as doubles"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => objects_are_equal_in_any_order_and_as_a_whole,
        "objects are compared as text, or by containment"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-1" => arrays_are_compared_in_order_and_as_a_whole,
        "an array matches its items, or is compared by containment"
    )
    .needs(&[INDEXES]),
    case!(
        "STR-3" => values_are_not_operators,
        "the value goes into the store's query document as it is"
    )
    .needs(&[RANGE_SCAN, INDEXES]),
    case!(
        "STR-3" => field_names_are_not_paths,
        "a dot in the name descends into the document"
    )
    .needs(&[RANGE_SCAN, INDEXES]),
    // Order
    case!(
        "QRY-2" => order_by_sequence_is_then_by_partition,
        "ties of the sequence come in the order of the index or of arrival"
    )
    .needs(&[PARTITIONS]),
    case!(
        "QRY-2" => order_by_timestamp_is_then_by_sequence_and_partition,
        "ties of the timestamp come in no order, or by partition first"
    )
    .needs(&[PARTITIONS]),
    case!(
        "QRY-2" => timestamps_that_go_back_are_ordered_too,
        "the order of the log is taken for the order of time"
    )
    .sets_the_clock(),
    case!(
        "QRY-2" => partitions_above_9_are_ordered_by_number,
        "partitions are kept or put into the cursor as text"
    )
    .needs(&[PARTITIONS]),
    // Paging
    case!(
        "QRY-3" => paging_by_sequence_gives_every_event_once,
        "the cursor holds the sequence alone, so that a page that ends inside a run loses the rest"
    )
    .needs(&[PARTITIONS]),
    case!(
        "QRY-3" => paging_by_timestamp_gives_every_event_once,
        "the cursor holds the timestamp alone, so that a page that ends inside a run loses the rest"
    )
    .needs(&[PARTITIONS]),
    case!(
        "QRY-3" => paging_one_partition_gives_every_event_once,
        "the page goes on at the last event instead of after it"
    ),
    case!(
        "QRY-3" => pages_are_full,
        "each partition gives its share of the limit"
    )
    .needs(&[PARTITIONS]),
    case!(
        "QRY-3" => pages_of_rare_events_are_full,
        "a page ends after so many events were looked at"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-3" => events_appended_meanwhile_disturb_no_page,
        "the cursor is an offset, which shifts when events come in before it"
    )
    .needs(&[PARTITIONS]),
    case!(
        "QRY-3" => timestamps_that_go_back_disturb_no_page,
        "the cursor is an offset, or pages by time go on by sequence"
    )
    .sets_the_clock(),
    case!(
        "QRY-3" => a_page_holds_1500_events,
        "the backend or its driver cuts pages at a number of its own"
    ),
    case!(
        "QRY-3" => pages_join_up_beyond_a_thousand_events,
        "the cursor is an offset that is bounded, or a page begins with a scan that is"
    ),
    case!(
        "QRY-3" => rare_events_are_found_a_thousand_events_apart,
        "a page ends after so many events were looked at"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-3" => a_page_holds_1500_matching_events,
        "pages by an index are cut at a number of their own"
    )
    .needs(&[INDEXES]),
    case!(
        "QRY-3" => a_page_holds_3_megabytes,
        "the backend or its driver cuts pages at a number of bytes"
    ),
    // Cursors
    case!(
        "QRY-3" => a_cursor_survives_serialization,
        "the cursor refers to something that the handle remembers"
    ),
    case!(
        "QRY-3" => a_cursor_is_valid_on_every_handle,
        "the cursor refers to something that the handle remembers"
    )
    .needs(&[DISTRIBUTED]),
    case!(
        "QRY-3" => a_cursor_may_be_used_again,
        "the cursor is a cursor of the store, which moves on"
    ),
    case!(
        "QRY-3" => a_cursor_goes_on_under_other_filters,
        "the cursor remembers the filters, or is refused for another query"
    ),
    case!(
        "QRY-3" => a_damaged_cursor_is_invalid,
        "a cursor that cannot be read is ignored, or there is no checksum in it"
    ),
    case!(
        "QRY-3" => a_cursor_of_another_order_is_invalid,
        "the order is not part of the cursor"
    ),
    case!(
        "ERR-6" => a_limit_of_0_excuses_no_damaged_cursor,
        "limit 0 returns early, before the cursor is read"
    )
    .needs(&[RANGE_SCAN]),
    // Groups
    case!(
        "QRY-4" => queries_change_nothing_for_groups,
        "queries and fetches share a position, a cursor or a connection's state"
    ),
];
