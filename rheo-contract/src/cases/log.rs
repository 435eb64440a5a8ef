//! Event log: sequences, batches, ids, routing, reading.

mod batches;
mod ids;
mod racing;
mod reading;
mod routing;
mod sequences;

use rheo_core::{Gate, Guarantee, OptionalOperation};

use self::batches::*;
use self::ids::*;
use self::racing::*;
use self::reading::*;
use self::routing::*;
use self::sequences::*;
use crate::case::{Case, case};

const BATCH_WRITES: Gate = Gate::Guarantee(Guarantee::BatchWrites);
const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);
const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const RANGE_SCAN: Gate = Gate::Guarantee(Guarantee::OrderedRangeScan);
const REPLAY: Gate = Gate::Guarantee(Guarantee::Replay);
const DEAD_LETTERS: Gate = Gate::Operation(OptionalOperation::DeadLetters);

pub(crate) const CASES: &[Case] = &[
    // Sequences and visibility
    case!(
        "LOG-1" => sequences_are_1_2_3,
        "sequences begin at 0, or come from a generator that leaves gaps; one that comes twice is of an event that was not kept"
    ),
    case!(
        "LOG-1" => each_partition_counts_on_its_own,
        "one counter numbers the events of all partitions"
    )
    .needs(&[PARTITIONS]),
    case!(
        "LOG-1" => a_taken_id_uses_up_no_sequence,
        "the sequence comes from a counter that is not rolled back when the insert is refused"
    ),
    case!(
        "LOG-1" => a_partition_out_of_range_uses_up_no_sequence,
        "the sequence is drawn before the event is checked"
    ),
    case!(
        "LOG-1" => a_refused_batch_uses_up_no_sequence,
        "the sequences of the good members are drawn before the bad one is found"
    )
    .needs(&[BATCH_WRITES]),
    case!(
        "LOG-1" => a_refused_batch_uses_up_no_sequence_of_any_partition,
        "the counters of the partitions are raised one by one, and not put back together"
    )
    .needs(&[BATCH_WRITES, PARTITIONS]),
    case!(
        "LOG-2" => a_reader_sees_no_event_before_its_predecessors,
        "reads go to a replica or a cache that has some of the events only"
    ),
    case!(
        "LOG-2" => a_group_passes_no_event,
        "the group goes on from the last event it saw, past one that was not visible yet"
    ),
    case!(
        "LOG-10" => an_appended_event_is_read_and_fetched_at_once,
        "the append answers before its transaction is committed, or reads lag behind"
    ),
    case!(
        "LOG-10" => an_appended_event_is_found_by_a_query_at_once,
        "queries go to an index or a replica that is filled later"
    )
    .needs(&[RANGE_SCAN]),
    case!(
        "LOG-10" => an_appended_event_counts_in_the_lag_at_once,
        "the high watermark is cached, or kept by a job that runs now and then"
    )
    .needs(&[FRONTIER]),
    // Batches
    case!(
        "LOG-3" => a_batch_comes_back_in_input_order,
        "the order in which the store returns inserted rows is taken for the input order"
    )
    .needs(&[BATCH_WRITES]),
    case!(
        "LOG-3" => a_batch_is_in_input_order_in_each_partition,
        "the batch is grouped by partition, and answered in that order"
    )
    .needs(&[BATCH_WRITES, PARTITIONS]),
    case!(
        "LOG-3" => a_batch_with_a_taken_id_writes_nothing,
        "the events before the bad one are written already: no transaction, or an ordered bulk write"
    )
    .needs(&[BATCH_WRITES]),
    case!(
        "LOG-3" => a_batch_with_an_id_twice_writes_nothing,
        "ids are compared with the log only, and not with each other"
    )
    .needs(&[BATCH_WRITES]),
    case!(
        "LOG-3" => a_batch_with_an_id_twice_in_two_partitions_writes_nothing,
        "the batch is divided by partition first, and ids are compared within each part"
    )
    .needs(&[BATCH_WRITES, PARTITIONS]),
    case!(
        "LOG-3" => a_batch_with_a_partition_out_of_range_writes_nothing,
        "each event is checked when its turn to be written comes"
    )
    .needs(&[BATCH_WRITES]),
    case!(
        "LOG-3" => a_refused_batch_writes_nothing_to_any_partition,
        "each partition has a transaction of its own, and the first ones are committed"
    )
    .needs(&[BATCH_WRITES, PARTITIONS]),
    case!(
        "LOG-3" => an_empty_batch_writes_nothing,
        "an INSERT without rows is a syntax error, and no documents are an error of the driver"
    ),
    case!(
        "LOG-3" => a_batch_of_one_is_an_append,
        "batch_writes is demanded of every batch, whatever its length"
    ),
    case!(
        "ERR-6" => an_empty_batch_to_a_missing_stream_is_an_error,
        "an empty batch returns early, before the stream is looked up"
    ),
    case!(
        "ERR-1" => an_append_to_a_missing_stream_makes_none,
        "the store makes a collection or a topic on the first write to it"
    ),
    // Immutability
    case!(
        "LOG-4" => settling_changes_no_event,
        "delivery state is kept in the event itself, or a settled event is deleted"
    ),
    case!(
        "LOG-4" => an_expired_lease_changes_no_event,
        "reclaiming puts the event back as a new one"
    ),
    case!(
        "LOG-4" => a_dead_letter_stays_in_the_log,
        "dead letters are moved to a place of their own"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "LOG-4" => replay_and_reset_change_no_event,
        "replay appends the events once more, or reset truncates the log"
    )
    .needs(&[REPLAY]),
    // Routing
    case!(
        "LOG-6" => keys_go_where_the_published_vectors_say,
        "another hash, another seed, or a hash of something else than the UTF-8 bytes"
    )
    .needs(&[PARTITIONS]),
    case!(
        "LOG-6" => any_key_goes_where_its_hash_says,
        "the hash is taken as a signed number, so that half of the remainders are negative"
    )
    .needs(&[PARTITIONS]),
    case!(
        "LOG-6" => a_given_partition_goes_before_the_key,
        "the key is asked first"
    )
    .needs(&[PARTITIONS]),
    case!(
        "LOG-6" => an_event_without_key_goes_to_partition_0,
        "events without a key are spread over the partitions"
    )
    .needs(&[PARTITIONS]),
    case!(
        "LOG-6" => a_single_partition_takes_every_key,
        "a hash modulo something else than the number of partitions"
    ),
    case!(
        "LOG-6" => a_batch_is_routed_as_single_events_are,
        "a batch goes to the partition of its first event"
    )
    .needs(&[BATCH_WRITES, PARTITIONS]),
    case!(
        "LOG-6" => a_batch_finds_partitions_above_9,
        "the partitions of a batch are kept as text, or as one digit"
    )
    .needs(&[BATCH_WRITES, PARTITIONS]),
    case!(
        "LOG-6" => a_long_key_is_hashed_to_its_end,
        "the key is cut to the width of a column before it is hashed"
    )
    .needs(&[PARTITIONS]),
    case!(
        "LOG-6" => a_partition_out_of_range_is_refused,
        "the partition is wrapped around, or made on the way"
    ),
    // Ids
    case!(
        "LOG-7" => a_given_id_is_kept,
        "the store's own id is used, or an id must be of a certain version"
    ),
    case!(
        "LOG-7" => a_taken_id_is_refused,
        "the insert replaces or ignores the event that is there"
    ),
    case!(
        "LOG-7" => a_taken_id_is_refused_in_every_partition,
        "the unique index includes the partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "LOG-7" => a_generated_id_is_taken_too,
        "only ids that were given are remembered"
    ),
    case!(
        "LOG-7" => a_refused_id_stays_free,
        "the id is noted before the event is written"
    ),
    case!(
        "LOG-7" => every_id_of_a_batch_is_taken,
        "ids of a batch are not noted, or just that of its first or last event"
    )
    .needs(&[BATCH_WRITES]),
    case!(
        "LOG-7" => every_id_of_a_batch_is_taken_in_every_partition,
        "the ids of a batch are noted by the partition of each event"
    )
    .needs(&[BATCH_WRITES, PARTITIONS]),
    case!(
        "LOG-7" => one_batch_may_be_in_many_streams,
        "the ids of a batch are compared with those of the whole store"
    )
    .needs(&[BATCH_WRITES]),
    case!(
        "LOG-7" => one_id_may_be_in_two_streams,
        "the unique index does not include the stream"
    ),
    case!(
        "LOG-7" => generated_ids_are_unique,
        "ids are made of the time and too little else"
    ),
    case!(
        "LOG-7" => generated_ids_hold_the_time_of_the_append,
        "ids are of version 4, or made of another clock than the backend's"
    ),
    case!(
        "LOG-7" => generated_ids_sort_by_millisecond,
        "ids are of version 4 or 1, which do not sort by time"
    ),
    // Reading
    case!(
        "LOG-9" => a_read_gives_what_is_above_after,
        "`after` is taken as inclusive"
    ),
    case!(
        "LOG-9" => a_read_gives_up_to_limit,
        "a limit of 0 is taken as no limit, or a large one is cut down"
    ),
    case!(
        "LOG-9" => a_read_gives_100_unless_told,
        "the backend has a default page size of its own"
    ),
    case!(
        "LOG-9" => a_read_gives_1500_events,
        "the backend or its driver cuts pages at a number of its own"
    ),
    case!(
        "LOG-9" => a_read_gives_3_megabytes,
        "the backend or its driver cuts pages at a number of bytes"
    ),
    case!(
        "LOG-9" => a_read_is_of_one_partition,
        "the partition is not part of the condition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "LOG-9" => reading_a_missing_stream_is_an_error,
        "a stream without rows and a missing stream look the same"
    ),
    // Races
    case!(
        "LOG-7" => of_concurrent_appends_with_one_id_one_wins,
        "whether the id is taken is looked up in one step, and the event is written in another"
    ),
    case!(
        "LOG-7" => of_concurrent_appends_of_one_id_to_many_partitions_one_wins,
        "ids are unique by an index or a lock of the partition alone"
    )
    .needs(&[PARTITIONS]),
];
