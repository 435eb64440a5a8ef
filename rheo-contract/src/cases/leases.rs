//! Leases and fencing: only the current claim settles.

mod attempts;
mod expiry;
mod fencing;
mod ids;
mod renewal;
mod winners;

use rheo_core::{Gate, Guarantee, Lease, OptionalOperation};

use self::attempts::*;
use self::expiry::*;
use self::fencing::*;
use self::ids::*;
use self::renewal::*;
use self::winners::*;
use crate::case::{Case, case};
use crate::expect::{Outcome, expect_eq};
use crate::scene::Group;

pub(crate) const CASES: &[Case] = &[
    case!(
        "LSE-1" => every_claim_has_a_lease_id_of_its_own,
        "the lease id is made of the event, the group and the attempt, or is kept across claims"
    ),
    case!(
        "LSE-1" => a_replayed_event_gets_a_new_lease_id,
        "the lease id is derived from event and attempt, which begin again after a replay or a reset"
    ).needs(&[Gate::Guarantee(Guarantee::Replay)]),
    case!(
        "LSE-1" => a_lease_id_cannot_be_guessed_from_another,
        "the lease id is a counter or ends in one, instead of holding enough random bits"
    ),
    case!(
        "LSE-2" => a_replaced_lease_settles_nothing,
        "the settle finds the delivery by event and group, and does not compare the lease id"
    ),
    case!(
        "LSE-2" => a_replaced_lease_moves_no_expiry,
        "the renewal updates the delivery first, or without the lease id in its condition"
    ),
    case!(
        "LSE-2" => an_acked_lease_is_stale,
        "an ack of what is gone already counts as Ok, since it changes nothing"
    ),
    case!(
        "LSE-2" => a_retried_lease_is_stale,
        "the retry leaves the old lease id on the delivery"
    ),
    case!(
        "LSE-2" => a_lease_whose_event_waits_is_stale,
        "a delayed retry is kept as the old lease with a later expiry"
    ),
    case!(
        "LSE-2" => a_rejected_lease_is_stale,
        "the dead letter keeps the lease id, and the settle does not look at the state"
    ),
    case!(
        "LSE-2" => a_stale_lease_makes_no_dead_letter,
        "the dead letter is written before the lease is checked"
    ).needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "LSE-2" => a_lease_from_before_a_replay_is_stale,
        "the replay moves the position back and leaves the claims as they are"
    ).needs(&[Gate::Guarantee(Guarantee::Replay)]),
    case!(
        "LSE-2" => a_lease_of_a_chosen_event_that_was_replayed_is_stale,
        "the replay of chosen events leaves those alone that are leased"
    ).needs(&[Gate::Guarantee(Guarantee::Replay)]),
    case!(
        "LSE-2" => a_lease_from_before_a_reset_is_stale,
        "the reset moves the position and forgets to drop the claims"
    ).needs(&[Gate::Guarantee(Guarantee::Replay)]),
    case!(
        "LSE-2" => a_lease_is_of_its_group_alone,
        "the settle looks the claim up by its lease id and does not compare the group"
    ),
    case!(
        "LSE-2" => a_lease_is_of_its_stream_alone,
        "the settle looks the claim up by its lease id and does not compare the stream"
    ),
    case!(
        "LSE-2" => a_lease_is_of_its_sequence_alone,
        "the settle checks the lease id anywhere in the group and then settles the named sequence"
    ),
    case!(
        "LSE-2" => a_lease_is_of_its_partition_alone,
        "deliveries are found by sequence, without the partition"
    ).needs(&[Gate::Guarantee(Guarantee::Partitions)]),
    case!(
        "LSE-2" => a_made_up_lease_is_stale,
        "the lease id is matched as a pattern or a prefix, or one of another form is a driver error"
    ),
    case!(
        "LSE-2" => a_made_up_lease_claims_nothing,
        "a settle inserts the delivery when there is none, so that the event is never delivered"
    ),
    case!(
        "LSE-2" => a_lease_of_something_that_is_not_there_is_stale,
        "a settle of a missing stream or group gives its own error, or a partition out of range Invalid"
    ),
    case!(
        "LSE-2" => the_other_fields_of_a_lease_are_not_compared,
        "the settle also compares the consumer, the attempt or the expiry"
    ),
    case!(
        "LSE-2" => the_attempt_of_a_lease_decides_nothing,
        "a retry compares max_attempts with the attempt of the lease that it is given"
    ),
    case!(
        "LSE-2" => the_attempt_of_a_renewed_lease_is_not_stored,
        "the renewal writes the whole lease back that it is given"
    ),
    case!(
        "LSE-4" => a_lease_is_not_reclaimable_before_its_expiry,
        "times are kept in milliseconds or seconds, or the expiry is off by one"
    ),
    case!(
        "LSE-4" => a_lease_is_reclaimable_at_its_expiry,
        "the expiry is compared with < where it has to be <="
    ),
    case!(
        "LSE-4" => an_expired_lease_still_settles,
        "the condition of the settle says that the lease must not have expired"
    ),
    case!(
        "LSE-4" => an_expired_lease_can_be_renewed,
        "the renewal is refused after the expiry, or does not take the event back from the others"
    ),
    case!(
        "LSE-4" => an_expired_lease_holds_until_it_is_reclaimed_itself,
        "a fetch takes back everything that expired, also what it does not hand out"
    ),
    case!(
        "LSE-4" => a_fetch_that_claims_nothing_takes_no_lease_away,
        "expired leases are taken back before the limit and the group are looked at"
    ),
    case!(
        "LSE-4" => a_fetch_from_elsewhere_takes_no_lease_away,
        "expired leases are taken back in all partitions, whichever were selected"
    ).needs(&[Gate::Guarantee(Guarantee::Partitions)]),
    case!(
        "LSE-4" => leases_of_one_fetch_end_each_on_its_own,
        "one expiry is kept for all leases of a fetch or of a consumer, or only the first has it"
    ),
    case!(
        "LSE-4" => what_was_settled_late_holds_up_nothing,
        "what a fetch found expired is kept in a list of its own, which a late settle forgets"
    ),
    case!(
        "LSE-4" => a_clock_that_goes_back_ends_no_lease,
        "the time is compared for equality or kept as a duration that underflows"
    )
    .sets_the_clock(),
    case!(
        "LSE-4" => what_was_found_expired_is_leased_when_the_clock_goes_back,
        "what a fetch found expired and did not hand out is claimable from then on, whatever the time"
    )
    .sets_the_clock(),
    case!(
        "LSE-4" => a_lease_ends_exactly_then_however_long_it_lasts,
        "the duration is rounded, cut, or kept in a number of milliseconds that is too small"
    ),
    case!(
        "LSE-4" => at_the_highest_timestamp_every_lease_has_ended,
        "the sum of now and the duration is kept as it is, or the expiry is compared with < at the end of time"
    )
    .sets_the_clock(),
    case!(
        "LSE-5" => reclaiming_gives_a_new_lease_and_the_next_attempt,
        "the reclaim extends the old claim instead of making a new one, or a new one begins at attempt 1 again"
    ),
    case!(
        "LSE-5" => the_same_consumer_reclaims_like_any_other,
        "a consumer that comes back gets its old lease again, or begins at attempt 1"
    ),
    case!(
        "LSE-5" => every_claim_counts_as_an_attempt,
        "attempts are not counted, or only retries, or only expiries"
    ),
    case!(
        "LSE-5" => attempts_are_counted_per_event_and_group,
        "attempts are not counted, or one counter serves the group, or all the groups of a stream"
    ),
    case!(
        "LSE-6" => a_renewal_counts_from_now,
        "the duration is added to the old expiry, or the times of the claim are replaced"
    ),
    case!(
        "LSE-6" => a_renewed_lease_holds_until_its_new_expiry,
        "the renewed lease is returned but not stored"
    ),
    case!(
        "LSE-6" => a_renewal_may_shorten,
        "the later of both expiries is kept"
    ),
    case!(
        "LSE-6" => a_later_attempt_is_renewed_like_the_first,
        "the renewal finds the first claim of the event, or goes by the expiry of an earlier one"
    ),
    case!(
        "LSE-6" => a_renewal_counts_from_a_clock_that_went_back,
        "the renewal counts from the latest time that was seen, or never shortens below the claim"
    )
    .sets_the_clock(),
    case!(
        "LSE-6" => a_copy_from_before_a_renewal_still_settles,
        "the renewal makes a new lease id, or the expiry is part of the comparison"
    ),
    case!(
        "LSE-6" => a_renewal_is_no_attempt,
        "the renewal goes through the code of a claim and raises the attempt"
    ),
    case!(
        "LSE-6" => a_renewed_lease_ends_exactly_then_however_long_it_lasts,
        "the duration of a renewal is rounded, cut, or kept in a number that is too small"
    ),
    case!(
        "LSE-6" => concurrent_renewals_undo_no_settle,
        "the renewal reads the claim and writes it back, over a settle that came in between"
    ),
    case!(
        "LSE-7" => a_lease_is_settled_once,
        "the settle does not end the claim, or ends it after answering"
    ),
    case!(
        "LSE-7" => of_concurrent_settles_one_wins,
        "the lease is checked in one step and settled in another"
    ),
    case!(
        "LSE-7" => of_concurrent_settles_of_one_kind_one_wins,
        "the same settle once more counts as Ok, or the lease is checked in one step and settled in another"
    ),
    case!(
        "LSE-7" => of_concurrent_batches_of_settles_one_wins,
        "the leases of a batch are checked in one step and settled in another"
    ),
];

/// Two leases of one event: the first expired and was replaced.
async fn replaced(group: &Group) -> Outcome<(Lease, Lease)> {
    let stale = group.fetch_one_briefly("a").await?;
    group.stream.t.let_lease_expire(&stale).await;
    let current = group.fetch_one("b").await?;
    expect_eq("the reclaimed event", &current.event, &stale.event)?;
    Ok((stale, current))
}
