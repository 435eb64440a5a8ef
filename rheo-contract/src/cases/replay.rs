//! Replay: going back.

mod after;
mod below;
mod chosen;
mod errors;
mod forward;
mod frontier;
mod many;
mod others;
mod racing;

use rheo_core::{EventId, Gate, Guarantee, OptionalOperation, Replay, Sequence};

use self::after::*;
use self::below::*;
use self::chosen::*;
use self::errors::*;
use self::forward::*;
use self::frontier::*;
use self::many::*;
use self::others::*;
use self::racing::*;
use crate::case::{Case, case};
use crate::expect::Outcome;
use crate::fixture::Fixture;
use crate::scene::Group;

const REPLAY: Gate = Gate::Guarantee(Guarantee::Replay);
const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);
const DEAD_LETTERS: Gate = Gate::Operation(OptionalOperation::DeadLetters);

pub(crate) const CASES: &[Case] = &[
    case!(
        "RPL-1" => replay_after_a_sequence_is_exclusive,
        "the events are reopened with >= where it must be >"
    ),
    case!(
        "RPL-1" => replay_reopens_what_was_acked_and_what_is_dead,
        "only one of the two kinds of finished deliveries is deleted"
    ),
    case!(
        "RPL-1" => replay_ends_the_wait_of_a_retry,
        "the time at which the retry becomes due is kept"
    ),
    case!(
        "RPL-1" => a_replayed_lease_settles_nothing,
        "the delivery is reopened with its old lease id, or settling does not look at the state"
    ),
    case!(
        "RPL-1" => an_expired_lease_is_replayed_too,
        "expired leases are counted neither among the leased nor among the finished deliveries"
    ),
    case!(
        "RPL-1" => a_replayed_lease_is_stale_after_the_event_was_claimed_again,
        "lease ids are made of event and attempt, which are the same again after a replay"
    ),
    case!(
        "RPL-1" => leases_from_before_a_replay_hold_up_nothing,
        "the replay forgets the claims, and leaves them in the list of what expires"
    ),
    case!(
        "RPL-1" => attempts_begin_again_after_a_replay,
        "the attempt counter is kept, so that replayed events soon are dead letters"
    ),
    case!(
        "RPL-1" => what_is_at_or_below_the_sequence_stays_as_it_is,
        "the leases of the whole partition are dropped, not just those above the sequence"
    ),
    case!(
        "RPL-1" => replay_below_the_start_moves_the_start_back,
        "the sequence is bounded by the group's start"
    ),
    case!(
        "RPL-1" => a_group_that_started_at_the_end_can_go_back,
        "events from before the group was created have no delivery state that could be reopened"
    ),
    case!(
        "RPL-1" => replay_of_one_partition_leaves_the_others,
        "the selection of partitions is ignored"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-1" => each_partition_is_replayed_after_its_own_sequence,
        "one sequence is used for all partitions, or those that are not named are replayed as well"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-1" => replay_reaches_each_of_twelve_partitions,
        "partitions are replayed until one has nothing to be reopened, or up to the ninth"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-1" => replay_of_no_partition_changes_nothing,
        "an empty list of partitions becomes a query without a filter"
    ),
    case!(
        "RPL-1" => dead_letters_above_are_gone_and_those_below_stay,
        "dead letters are kept in a table of their own that replay does not touch"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "RPL-1" => a_replayed_dead_letter_that_dies_again_is_one_dead_letter,
        "the second dead letter is ignored because the first one's row is still there"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "RPL-1" => any_number_of_events_is_reopened_after_a_sequence,
        "deliveries are reopened in parts, and the parts after the first are left out"
    ),
    case!(
        "RPL-1" => old_deadlines_mean_nothing_after_a_replay,
        "when a lease or a delay ends is noted beside the delivery, and stays there"
    ),
    case!(
        "RPL-1" => a_replay_can_be_repeated,
        "replay marks events as replayed, and a mark is set only once"
    ),
    case!(
        "RPL-2" => the_frontier_falls_to_the_sequence,
        "the frontier is stored and only ever raised"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-2" => a_lower_frontier_stays_where_it_is,
        "replay sets the frontier to the sequence, also upwards over a hole"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-2" => below_the_start_the_frontier_falls_to_the_sequence,
        "the frontier is bounded by the group's start"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-2" => replays_at_random_follow_the_rules,
        "replay, reset and settling each keep their own idea of what is done"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-3" => replay_beyond_what_was_claimed_skips_nothing,
        "replay sets the group's position, also forward"
    ),
    case!(
        "RPL-3" => replay_before_anything_was_claimed_changes_nothing,
        "replay sets the group's position, although nothing was delivered yet"
    ),
    case!(
        "RPL-3" => replay_on_an_empty_stream_skips_no_later_event,
        "the position is set beyond the high watermark, so that what is appended later is skipped"
    ),
    case!(
        "RPL-3" => replay_ahead_of_the_start_skips_nothing,
        "the sequence is compared with 0 instead of the group's start where nothing was claimed"
    ),
    case!(
        "RPL-3" => replay_never_raises_the_frontier,
        "replay sets the frontier to the sequence that was given"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-4" => chosen_events_are_reopened_in_every_state,
        "only acked events are looked for, not leased, waiting and dead ones"
    ),
    case!(
        "RPL-4" => chosen_events_at_any_attempt_are_reopened,
        "what was tried more than once, or is used up, is another state, which is not looked for"
    ),
    case!(
        "RPL-4" => events_that_were_not_chosen_stay_as_they_are,
        "everything above the lowest chosen event is replayed"
    ),
    case!(
        "RPL-4" => a_chosen_event_that_was_never_claimed_stays_as_it_is,
        "the group's position jumps to the chosen event, or the event is delivered twice"
    ),
    case!(
        "RPL-4" => a_chosen_event_below_the_start_is_delivered,
        "events below the group's start are ignored"
    ),
    case!(
        "RPL-4" => chosen_events_below_the_start_are_settled_as_any_other,
        "what is below the start is looked for among the acked, or only while it was never claimed"
    ),
    case!(
        "RPL-4" => chosen_events_below_the_start_expire_as_any_other,
        "reclaiming looks above the group's start only, or attempts are not counted below it"
    ),
    case!(
        "RPL-4" => chosen_events_below_the_start_can_be_chosen_again,
        "an event below the start is marked as chosen, and a mark is set only once"
    ),
    case!(
        "RPL-4" => any_number_of_chosen_events_is_reopened,
        "the ids are looked up by a statement or a page that holds so many, and the rest is left out"
    ),
    case!(
        "RPL-4" => an_unknown_id_reopens_nothing,
        "ids are looked up one by one while events are reopened, without a transaction"
    ),
    case!(
        "RPL-4" => an_id_from_another_stream_is_unknown,
        "ids are looked up without the stream"
    ),
    case!(
        "RPL-4" => an_id_given_twice_counts_once,
        "the number of ids is compared with the number of rows found, or an insert collides"
    ),
    case!(
        "RPL-4" => no_ids_change_nothing,
        "an empty list of ids becomes a query without a filter"
    ),
    case!(
        "RPL-4" => the_frontier_falls_to_below_the_lowest_chosen_event,
        "the frontier is taken from the first id that is given, or is off by one"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-4" => below_the_start_the_frontier_falls_to_below_the_chosen_event,
        "the frontier is bounded by the group's start"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-4" => chosen_events_are_reopened_in_their_own_partitions,
        "events are reopened by their sequence, whatever the partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DLV-4" => reopened_events_come_before_later_ones_in_their_order,
        "reopened events are queued behind the rest, or in the order in which they were given"
    )
    .needs(&[REPLAY]),
    case!(
        "RPL-6" => replay_leaves_other_groups_alone,
        "delivery state is found by stream and sequence, without the group"
    ),
    case!(
        "RPL-6" => replay_leaves_the_log_alone,
        "replay appends the events again"
    ),
    case!(
        "RPL-7" => acks_that_race_a_replay_lose_no_event,
        "finished and leased deliveries are reopened in two steps, and an ack comes in between"
    ),
    case!(
        "RPL-7" => fetches_that_race_a_replay_lose_no_event,
        "the position is read, changed and written back while a fetch moves it"
    ),
    case!(
        "RPL-7" => no_batch_of_leases_from_before_settles_after,
        "settling a batch checks the deliveries' state but not their lease ids"
    ),
    case!(
        "ERR-6" => replay_looks_for_the_stream_before_the_group,
        "a missing group or stream is no row to update, which is taken for success"
    )
    .needs(&[REPLAY]),
    case!(
        "ERR-8" => replay_of_a_partition_out_of_range_reopens_nothing,
        "partitions are checked one by one while they are replayed"
    )
    .needs(&[REPLAY]),
    case!(
        "RPL-6" => replay_of_one_partition_touches_no_state_elsewhere,
        "dead letters, delays or leases are dropped by sequence, without the partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-6" => replay_of_chosen_events_touches_no_state_elsewhere,
        "chosen events are reopened by sequence, without the partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "RPL-6" => replay_touches_no_state_of_other_groups,
        "dead letters, delays or leases are dropped by event, without the group, or by group, without the stream"
    ),
];

fn sequence(number: u64) -> Outcome<Sequence> {
    Ok(Sequence::new(number)?)
}

/// A group that acked sequences 1 to `count`, which are all there are.
async fn all_acked(t: &Fixture, count: usize) -> Outcome<Group> {
    let group = t.group_with_events(count).await?;
    group.ack(&group.fetch_exactly("a", count).await?).await?;
    Ok(group)
}

/// Replays these events.
async fn replay_events(group: &Group, ids: impl IntoIterator<Item = EventId>) -> Outcome {
    group
        .replay(&Replay::Events(ids.into_iter().collect()))
        .await
}
