//! Groups and delivery: who gets which event, and when.

mod bounds;
mod claims;
mod exclusion;
mod groups;
mod limits;
mod missing;
mod order;
mod starts;
mod turns;

use rheo_core::{ConsumerId, FetchOptions, Gate, Guarantee, Lease, Partition};

use self::bounds::*;
use self::claims::*;
use self::exclusion::*;
use self::groups::*;
use self::limits::*;
use self::missing::*;
use self::order::*;
use self::starts::*;
use self::turns::*;
use crate::case::{Case, case};
use crate::expect::Outcome;
use crate::fixture::Fixture;
use crate::scene::{Group, Stream};

const PARTITIONS: &[Gate] = &[Gate::Guarantee(Guarantee::Partitions)];

pub(crate) const CASES: &[Case] = &[
    case!(
        "DLV-1" => each_group_gets_every_event,
        "the groups share one position, or a claim hides the event from all"
    ),
    case!(
        "DLV-1" => what_one_group_does_concerns_no_other,
        "delivery state is kept with the event instead of with the group"
    ),
    case!(
        "DLV-1" => groups_are_ready_at_different_times,
        "a group is told of new events only, or an event is removed once every group of its time has it"
    ),
    case!(
        "DLV-2" => a_group_starts_at_the_beginning_by_default,
        "the default start is the end, as in some native consumer groups"
    ),
    case!(
        "DLV-2" => a_start_after_a_sequence_is_exclusive,
        "the start is taken for the first event to deliver, or for a count from 0"
    ),
    case!(
        "DLV-2" => a_start_after_a_sequence_is_for_every_partition,
        "the start is applied to partition 0 alone"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-2" => a_start_may_name_a_sequence_per_partition,
        "a partition that the start does not name begins at its end, or where another one does"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-2" => a_start_beyond_the_high_watermark_is_invalid,
        "the start is stored unchecked, and the group misses what is appended up to it"
    ),
    case!(
        "DLV-2" => a_start_beyond_one_partitions_high_watermark_is_invalid,
        "the start is compared with the largest partition's high watermark"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-2" => a_start_at_a_time_is_before_the_first_event_of_that_time,
        "the time is compared with > where it has to be >=, or loses its microseconds"
    ),
    case!(
        "DLV-2" => a_start_at_a_time_goes_by_the_lowest_sequence,
        "timestamps are taken to ascend: the start is found by bisection, or the last earlier event is taken"
    )
    .sets_the_clock(),
    case!(
        "DLV-2" => a_start_at_a_time_is_found_per_partition,
        "the place that was found in one partition is used for all"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-2" => a_start_that_names_no_sequence_is_the_beginning,
        "an empty list of sequences is taken for the end, or for no start at all"
    ),
    case!(
        "DLV-2" => a_start_at_a_time_may_be_a_thousand_events_back,
        "the time is looked for among the first or the last events only"
    ),
    case!(
        "DLV-2" => a_group_starts_in_each_of_twelve_partitions,
        "the start is found in the partitions up to the ninth"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-2" => a_start_is_fixed_when_the_group_is_made,
        "the time is kept and compared at every fetch instead of once"
    ),
    case!(
        "DLV-2" => a_start_at_the_end_gets_all_that_comes_later,
        "the end is looked up at the first fetch instead of when the group is made"
    ),
    case!(
        "DLV-2" => a_group_can_start_on_an_empty_stream,
        "without any event there is no position to store"
    ),
    case!(
        "DLV-2" => a_duplicate_group_changes_nothing,
        "the group is written with an upsert"
    ),
    case!(
        "DLV-2" => of_concurrent_creators_of_a_group_one_wins,
        "whether the group is there is looked up in one step, and it is written in another"
    ),
    case!(
        "DLV-3" => a_fetch_gives_no_more_than_its_limit,
        "the limit applies to each partition, or is off by one"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-3" => a_limit_of_0_gives_and_claims_nothing,
        "0 means no limit in the store"
    ),
    case!(
        "DLV-3" => the_largest_limit_is_a_limit_too,
        "the limit overflows when it is added to or turned into a signed number"
    ),
    case!(
        "DLV-3" => one_lease_is_the_default,
        "a batch size of the backend's own is the default"
    ),
    case!(
        "DLV-3" => nothing_claimable_gives_nothing,
        "events that are acked, leased or dead are handed out again when nothing else is there"
    ),
    case!(
        "DLV-3" => a_fetch_finds_the_only_claimable_event,
        "the limit is applied to what is looked at, and what is leased or done is sorted out afterwards"
    ),
    case!(
        "DLV-3" => a_fetch_stays_in_its_partitions,
        "the selection of partitions is ignored"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-3" => a_selection_is_looked_through_and_no_other,
        "the limit is applied before the selection of partitions"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-3" => a_partition_without_work_holds_no_other,
        "a fetch looks into one partition, and is empty when what is open there is not claimable"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-3" => no_partitions_give_and_claim_nothing,
        "an empty selection means all partitions"
    ),
    case!(
        "DLV-3" => ten_thousand_events_may_be_open,
        "the number of leases is bounded by the size of a page, or by a limit of the store"
    ),
    case!(
        "DLV-4" => the_lowest_sequences_come_first,
        "the rows are claimed in no order, or returned in the order of the update"
    ),
    case!(
        "DLV-4" => each_partition_comes_in_order,
        "the events are ordered by time or id over all partitions, or in no order"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-4" => what_comes_again_goes_before_what_is_new,
        "new events are fetched first, and expired or retried ones only when there are none"
    ),
    case!(
        "DLV-4" => retried_events_come_by_sequence_and_not_by_turn,
        "retried events queue up in the order of their retries"
    ),
    case!(
        "DLV-4" => delayed_events_come_by_sequence_and_not_by_due_time,
        "what is due is ordered by when it became due"
    ),
    case!(
        "DLV-4" => replayed_events_go_before_what_is_new,
        "replayed events are put behind the new ones"
    )
    .needs(&[Gate::Guarantee(Guarantee::Replay)]),
    case!(
        "DLV-5" => every_partition_is_served,
        "the first partition that has something is always taken"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-5" => a_busy_partition_starves_no_other,
        "the partition with the oldest or the newest event is always taken"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-5" => a_retried_event_starves_no_other_partition,
        "retried events go before those of all other partitions"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-5" => every_selected_partition_is_served,
        "the turn passes over partitions that are not selected, or stands still with them"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-6" => events_that_come_while_others_are_leased_are_delivered,
        "the position was put to the end when the group had caught up"
    ),
    case!(
        "DLV-6" => an_ack_settles_no_lower_event,
        "an ack moves the position, as in a log without acks of single events"
    ),
    case!(
        "DLV-6" => nothing_is_missed_whatever_happens_to_it,
        "some way through losing, retrying and delaying leaves an event in no state"
    ),
    case!(
        "DLV-6" => a_lease_that_nobody_heard_of_comes_again,
        "what was handed out counts as done"
    ),
    case!(
        "DLV-6" => events_of_a_lower_partition_are_not_passed_over,
        "one position over all partitions is kept, by time or id"
    )
    .needs(PARTITIONS),
    case!(
        "DLV-6" => events_with_earlier_times_are_not_passed_over,
        "the position is a timestamp or a time-ordered id"
    )
    .sets_the_clock(),
    case!(
        "DLV-7" => two_consumers_never_hold_the_same_event,
        "each consumer has its own position, or the claim is made without a condition"
    ),
    case!(
        "DLV-7" => a_holder_does_not_get_its_own_event_again,
        "a fetch begins with what the consumer already holds"
    ),
    case!(
        "DLV-7" => an_acked_event_never_comes_again,
        "the ack leaves the claim, which then expires"
    ),
    case!(
        "DLV-7" => concurrent_fetches_share_no_event,
        "the events are chosen in one step and claimed in another"
    ),
    case!(
        "DLV-7" => concurrent_fetches_give_one_event_once,
        "the event is chosen in one step and claimed in another"
    ),
    case!(
        "DLV-7" => concurrent_fetches_reclaim_each_event_once,
        "expired leases are found in one step and taken over in another, without comparing the lease id"
    ),
    case!(
        "DLV-8" => a_lease_is_whole,
        "the lease is made of the request, or the event without its key, metadata or time"
    ),
    case!(
        "DLV-8" => a_lease_lasts_as_long_as_was_asked_for,
        "the duration is ignored, rounded to seconds or milliseconds, or capped"
    ),
    case!(
        "DLV-8" => no_lease_outlasts_the_highest_timestamp,
        "the sum of now and the duration overflows, or does not fit the column"
    )
    .sets_the_clock(),
    case!(
        "DLV-8" => a_claim_follows_the_clock_back,
        "the times of a claim count from the latest time that was seen, or from the append"
    )
    .sets_the_clock(),
    case!(
        "DLV-8" => each_claim_has_its_own_time_and_consumer,
        "a reclaim keeps the consumer or the times of the first claim"
    ),
    case!(
        "ERR-6" => a_missing_stream_is_noticed_before_its_group,
        "only the group is looked up, by stream and name"
    ),
];

fn options(consumer: &str) -> Outcome<FetchOptions> {
    Ok(FetchOptions::new(ConsumerId::new(consumer)?))
}

/// Everything claimable, as (partition, sequence), sorted.
async fn claimable(group: &Group, consumer: &str) -> Outcome<Vec<(u32, u64)>> {
    let place = |lease: &Lease| (lease.event.partition.number(), lease.event.sequence.get());
    let mut places: Vec<_> = group.fetch_all(consumer).await?.iter().map(place).collect();
    places.sort_unstable();
    Ok(places)
}

/// A stream with that many events in each partition.
async fn filled(t: &Fixture, partitions: u32, events: usize) -> Outcome<Stream> {
    let stream = t.stream(partitions).await?;
    for partition in 0..partitions {
        stream.append_to(Partition::new(partition), events).await?;
    }
    Ok(stream)
}
