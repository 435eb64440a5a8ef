//! Data fidelity: what goes in comes out, value for value.

mod documents;
mod everywhere;
mod random;

use rheo_core::{Gate, Guarantee, OptionalOperation};

use self::documents::*;
use self::everywhere::*;
use self::random::*;
use crate::case::{Case, case};

const BATCH_WRITES: Gate = Gate::Guarantee(Guarantee::BatchWrites);
const RANGE_SCAN: Gate = Gate::Guarantee(Guarantee::OrderedRangeScan);
const DEAD_LETTERS: Gate = Gate::Operation(OptionalOperation::DeadLetters);

pub(crate) const CASES: &[Case] = &[
    // Events
    case!(
        "LOG-5" => append_read_and_fetch_give_the_same_event,
        "a column is left out of one of the statements, or the answer is made of the input"
    ),
    case!(
        "LOG-5" => a_batch_gives_the_same_events,
        "the statement for many events differs from that for one"
    )
    .needs(&[BATCH_WRITES]),
    case!(
        "LOG-5" => every_event_of_a_large_batch_is_whole,
        "a large batch is written in parts, and what the first part had is left out of the others"
    )
    .needs(&[BATCH_WRITES]),
    case!(
        "LOG-5" => a_query_gives_the_same_event,
        "queries read an index that does not hold everything"
    )
    .needs(&[RANGE_SCAN]),
    case!(
        "LOG-5" => a_renewed_and_a_redelivered_lease_hold_the_same_event,
        "a renewed or reclaimed lease is put together by another statement"
    ),
    case!(
        "LOG-5" => a_dead_letter_holds_the_same_event,
        "dead letters keep a copy of some of the fields"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "LOG-5" => a_missing_key_and_empty_metadata_stay_so,
        "no key is stored as an empty one, or no metadata as null"
    ),
    case!(
        "LOG-5" => a_timestamp_keeps_its_microseconds,
        "timestamps are stored in milliseconds, or go through a double"
    ),
    case!(
        "LOG-5" => every_append_has_its_own_time,
        "the time is taken once, for a partition, a batch or a connection, or is the first event's"
    ),
    case!(
        "LOG-5" => a_timestamp_follows_the_clock_back,
        "the log keeps its timestamps ascending, or takes the time once for a handle or a batch"
    )
    .sets_the_clock(),
    case!(
        "LOG-5" => the_first_and_the_last_timestamp_come_back,
        "timestamps are kept as nanoseconds in 64 bits, or as unsigned numbers since 1970"
    )
    .sets_the_clock(),
    case!(
        "STR-2" => any_event_type_and_key_come_back,
        "text is trimmed, folded, normalized, or cut by the width of a column"
    ),
    // Documents
    case!(
        "LOG-8" => integers_of_64_bits_come_back,
        "numbers go through a double, or u64 through i64"
    ),
    case!(
        "LOG-8" => doubles_come_back,
        "doubles are printed with too few digits, or very small ones are flushed to zero"
    ),
    case!(
        "LOG-8" => whole_doubles_and_integers_stay_what_they_are,
        "1.0 is written as 1, or 1e15 as 1000000000000000"
    ),
    case!(
        "LOG-8" => text_that_looks_like_an_escape_stays,
        "text is unescaped once too often, or `\\u0000` is searched for in the JSON text"
    ),
    case!(
        "LOG-8" => any_unicode_text_comes_back,
        "text is normalized, kept in three-byte UTF-8, or cleaned of what looks invalid"
    ),
    case!(
        "LOG-8" => control_characters_and_blanks_come_back,
        "text is trimmed, line ends are converted, or control characters are dropped"
    ),
    case!(
        "LOG-8" => any_field_name_comes_back,
        "names with dots or `$` are taken as paths or operators, or escaped and not unescaped"
    ),
    case!(
        "LOG-8" => documents_that_look_like_typed_values_stay_documents,
        "the JSON is read as the store's extended JSON, which turns `$oid` and the like into types"
    ),
    case!(
        "LOG-8" => nulls_and_empty_values_stay,
        "null fields are left out, or an empty array and an empty object are the same"
    ),
    case!(
        "LOG-8" => nesting_to_64_comes_back,
        "a driver or a parser has a lower limit of nesting"
    ),
    case!(
        "LOG-8" => a_long_array_comes_back_in_order,
        "arrays are kept as rows or sets, and put together in another order"
    ),
    case!(
        "LOG-8" => many_fields_and_long_names_come_back,
        "the store has a bound for the fields of a document, or for the length of their names"
    ),
    case!(
        "LOG-8" => the_longest_document_comes_back,
        "the limit is of the stored form, with its overhead, and not of the compact JSON"
    ),
    case!(
        "LOG-8" => random_documents_come_back,
        "a combination of the above; the document in the report says which"
    ),
];
