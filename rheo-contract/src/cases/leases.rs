//! Leases and fencing: only the current claim settles.

use std::collections::BTreeSet;
use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, ErrorKind, EventType, FetchOptions, Gate, GroupName, Guarantee,
    JsonObject, Lease, LeaseDuration, LeaseId, OptionalOperation, Partition, Partitions, Replay,
    ResetOptions, Sequence, Start, StreamName, Timestamp,
};
use tokio::task::JoinSet;

use crate::case::{Case, case};
use crate::expect::{Outcome, expect, expect_empty, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::scene::{Group, P0, P1};
use crate::step::{Step, expect_stale, retry_after};

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
        "LSE-4" => a_clock_that_goes_back_ends_no_lease,
        "the time is compared for equality or kept as a duration that underflows"
    ),
    case!(
        "LSE-5" => reclaiming_gives_a_new_lease_and_the_next_attempt,
        "the reclaim extends the old claim instead of making a new one"
    ),
    case!(
        "LSE-5" => the_same_consumer_reclaims_like_any_other,
        "a consumer that comes back gets its old lease again"
    ),
    case!(
        "LSE-5" => every_claim_counts_as_an_attempt,
        "only retries are counted, or only expiries"
    ),
    case!(
        "LSE-5" => attempts_are_counted_per_event_and_group,
        "one counter serves the group, or all the groups of a stream"
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
        "LSE-6" => a_copy_from_before_a_renewal_still_settles,
        "the renewal makes a new lease id, or the expiry is part of the comparison"
    ),
    case!(
        "LSE-6" => a_renewal_is_no_attempt,
        "the renewal goes through the code of a claim and raises the attempt"
    ),
    case!(
        "LSE-7" => a_lease_is_settled_once,
        "the settle does not end the claim, or ends it after answering"
    ),
    case!(
        "LSE-7" => of_concurrent_settles_one_wins,
        "the lease is checked in one step and settled in another"
    ),
];

const FEWEST_SECRET_CHARACTERS: usize = 8;

/// A fencing token that is used twice fences nothing.
async fn every_claim_has_a_lease_id_of_its_own(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let groups = [
        stream.group("billing").await?,
        stream.group("shipping").await?,
    ];
    stream.append(3).await?;
    let mut leases = Vec::new();
    for group in &groups {
        leases.extend(group.fetch_exactly("a", 2).await?);
        for _ in 0..4 {
            let lease = group.fetch_one("a").await?;
            Step::Retry.on(&t.backend, &lease).await?;
            leases.push(lease);
        }
    }

    let ids: BTreeSet<&LeaseId> = leases.iter().map(|lease| &lease.lease_id).collect();
    expect_eq("the number of lease ids", ids.len(), leases.len())
}

/// A replay and a reset count attempts from 1 again; the tokens from before must not come again.
async fn a_replayed_event_gets_a_new_lease_id(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let mut ids = BTreeSet::from([group.fetch_one("a").await?.lease_id]);
    group.replay_after(0).await?;
    ids.insert(group.fetch_one("a").await?.lease_id);
    group.reset(&ResetOptions::new()).await?;
    ids.insert(group.fetch_one("a").await?.lease_id);

    expect_eq("the number of lease ids of three claims", ids.len(), 3)
}

/// Whoever held an event once must not be able to work out what its next holder has.
async fn a_lease_id_cannot_be_guessed_from_another(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group_of_attempts("billing", 100).await?;
    stream.append(1).await?;
    let mut ids: Vec<LeaseId> = Vec::new();
    for _ in 0..8 {
        let lease = group.fetch_one("a").await?;
        ids.push(lease.lease_id.clone());
        Step::Retry.on(&t.backend, &lease).await?;
    }

    for (at, one) in ids.iter().enumerate() {
        for other in &ids[at + 1..] {
            let secret = characters_apart(one.as_str(), other.as_str());
            expect(
                secret >= FEWEST_SECRET_CHARACTERS,
                format!(
                    "two claims to have lease ids that differ in at least {FEWEST_SECRET_CHARACTERS} \
                     characters between what they share at their ends"
                ),
                format!("{one} and {other}, which differ in {secret}"),
            )?;
        }
    }
    Ok(())
}

/// How many characters of the longer text are left without the common beginning and end.
fn characters_apart(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let shorter = one.len().min(other.len());
    let same = |pair: &(&char, &char)| pair.0 == pair.1;
    let head = one.iter().zip(&other).take_while(same).count();
    let backwards = one.iter().rev().zip(other.iter().rev());
    let tail = backwards.take(shorter - head).take_while(same).count();
    one.len().max(other.len()) - head - tail
}

/// Two leases of one event: the first expired and was replaced.
async fn replaced(group: &Group) -> Outcome<(Lease, Lease)> {
    let stale = group.fetch_one_briefly("a").await?;
    group.stream.t.let_lease_expire(&stale).await;
    let current = group.fetch_one("b").await?;
    expect_eq("the reclaimed event", &current.event, &stale.event)?;
    Ok((stale, current))
}

/// The classic pause: `a` sleeps past its lease, `b` takes over, `a` wakes up.
async fn a_replaced_lease_settles_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let (stale, current) = replaced(&group).await?;

    expect_stale(&t.backend, &stale).await?;
    group.expect_nothing("c").await?;
    t.backend.ack(&current).await?;
    expect_stale(&t.backend, &stale).await
}

/// A zombie that keeps renewing must not keep the new holder's event from being reclaimed.
async fn a_replaced_lease_moves_no_expiry(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let stale = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&stale).await;
    let current = group.fetch_one_briefly("b").await?;
    let long = LeaseDuration::new(Duration::from_secs(3_600))?;
    let renewal = t.backend.renew(&stale, long).await;
    t.let_lease_expire(&current).await;

    expect_error(renewal, ErrorKind::StaleLease)?;
    expect_eq("the attempt", group.fetch_one("c").await?.attempt, 3)
}

/// A consumer that repeats its ack after a lost answer is told that the lease is over.
async fn an_acked_lease_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let lease = group.fetch_one("a").await?;
    t.backend.ack(&lease).await?;

    expect_stale(&t.backend, &lease).await?;
    group.expect_claimable("b", &[2]).await?;
    Ok(())
}

/// Who gave an event back must not settle it for the next one.
async fn a_retried_lease_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    Step::Retry.on(&t.backend, &lease).await?;

    expect_stale(&t.backend, &lease).await?;
    let next = group.fetch_one("b").await?;
    expect_eq("the attempt", next.attempt, 2)?;
    expect_stale(&t.backend, &lease).await?;
    t.backend.ack(&next).await?;
    Ok(())
}

/// An event that waits for its retry is nobody's, not even for who sent it there.
async fn a_lease_whose_event_waits_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    let retried_at = t.now();
    t.backend.retry(&lease, &retry_after(t.brief())?).await?;

    expect_stale(&t.backend, &lease).await?;
    group.expect_nothing("b").await?;
    t.until(retried_at.saturating_add(t.brief())).await;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 2)
}

/// What was given up on stays so.
async fn a_rejected_lease_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let lease = group.fetch_one("a").await?;
    group.reject(&lease, "no good").await?;

    expect_stale(&t.backend, &lease).await?;
    group.expect_claimable("b", &[2]).await?;
    Ok(())
}

/// A refused reject must leave nothing for an operator to puzzle over.
async fn a_stale_lease_makes_no_dead_letter(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    t.backend.ack(&leases[0]).await?;
    Step::Retry.on(&t.backend, &leases[1]).await?;
    let mut made_up = leases[2].clone();
    made_up.lease_id = LeaseId::generate();
    for lease in [&leases[0], &leases[1], &made_up] {
        let rejected = Step::Reject.on(&t.backend, lease).await;
        expect_error(rejected, ErrorKind::StaleLease)?;
    }

    expect_empty("dead letters", &group.dead_letters().await?)
}

/// A replay takes events back from whoever is at them.
async fn a_lease_from_before_a_replay_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let before = group.fetch_exactly("a", 2).await?;
    group.replay_after(1).await?;

    expect_stale(&t.backend, &before[1]).await?;
    let again = group.expect_claimable("b", &[2]).await?;
    expect_stale(&t.backend, &before[1]).await?;
    t.backend.ack(&before[0]).await?;
    group.ack(&again).await
}

/// As above, for events that were chosen one by one.
async fn a_lease_of_a_chosen_event_that_was_replayed_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let before = group.fetch_exactly("a", 3).await?;
    let chosen = Replay::Events(vec![before[1].event.id]);
    group.replay(&chosen).await?;

    expect_stale(&t.backend, &before[1]).await?;
    let again = group.expect_claimable("b", &[2]).await?;
    expect_stale(&t.backend, &before[1]).await?;
    group.ack(&[before[0].clone(), before[2].clone()]).await?;
    group.ack(&again).await
}

/// A reset drops the claims too, wherever it starts again.
async fn a_lease_from_before_a_reset_is_stale(t: Fixture) -> Outcome {
    for (start, after) in [
        (Start::Beginning, &[1, 2][..]),
        (Start::AfterSequence(Sequence::new(1)?), &[2]),
        (Start::End, &[]),
    ] {
        let group = t.group_with_events(2).await?;
        let before = group.fetch_exactly("a", 2).await?;
        group.reset(&ResetOptions::new().with_start(start)).await?;

        for lease in &before {
            expect_stale(&t.backend, lease).await?;
        }
        let again = group.expect_claimable("b", after).await?;
        for lease in &before {
            expect_stale(&t.backend, lease).await?;
        }
        group.ack(&again).await?;
    }
    Ok(())
}

/// Demands that each lease is stale with the place of the other, and then settles as it is.
async fn expect_no_exchange(t: &Fixture, one: &Lease, other: &Lease) -> Outcome {
    for (at, id) in [(one, other), (other, one)] {
        let forged = Lease {
            lease_id: id.lease_id.clone(),
            receipt: id.receipt.clone(),
            ..at.clone()
        };
        expect_stale(&t.backend, &forged).await?;
    }
    t.backend.ack(one).await?;
    t.backend.ack(other).await?;
    Ok(())
}

/// Two groups hold the same event; neither settles for the other.
async fn a_lease_is_of_its_group_alone(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let billing = stream.group("billing").await?;
    let shipping = stream.group("shipping").await?;
    stream.append(1).await?;
    let one = billing.fetch_one("a").await?;
    let other = shipping.fetch_one("a").await?;

    expect_no_exchange(&t, &one, &other).await?;
    billing.expect_nothing("a").await?;
    shipping.expect_nothing("a").await
}

/// Groups of one name on two streams hold the same sequence.
async fn a_lease_is_of_its_stream_alone(t: Fixture) -> Outcome {
    let one = t.group_with_events(1).await?;
    let other = t.group_with_events(1).await?;
    let of_one = one.fetch_one("a").await?;
    let of_other = other.fetch_one("a").await?;

    expect_no_exchange(&t, &of_one, &of_other).await?;
    one.expect_nothing("a").await?;
    other.expect_nothing("a").await
}

/// A holder of one event must not settle its neighbour.
async fn a_lease_is_of_its_sequence_alone(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    let mut never_claimed = leases[0].clone();
    never_claimed.event.sequence = Sequence::new(3)?;

    expect_stale(&t.backend, &never_claimed).await?;
    expect_no_exchange(&t, &leases[0], &leases[1]).await?;
    let third = group.expect_claimable("a", &[3]).await?;
    expect_eq("the attempt", third[0].attempt, 1)
}

/// Sequence 1 is there once per partition.
async fn a_lease_is_of_its_partition_alone(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    let group = stream.group("billing").await?;
    stream.append_to(P0, 1).await?;
    stream.append_to(P1, 1).await?;
    let leases = group.fetch_exactly("a", 2).await?;

    expect_no_exchange(&t, &leases[0], &leases[1]).await?;
    group.expect_nothing("a").await
}

/// Ids from outside: of a wrong form, a pattern, a piece of the right one.
async fn a_made_up_lease_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    let id = lease.lease_id.as_str();
    let beginning: String = id.chars().take(id.chars().count() / 2).collect();
    for made_up in [
        "",
        " ",
        "%",
        "*",
        "_",
        "0",
        "null",
        "' OR '1'='1",
        "not-a-uuid",
        "a\0b",
        "00000000-0000-0000-0000-000000000000",
        &*LeaseId::generate().to_string(),
        &*beginning,
        &*format!("{id}0"),
        &*"x".repeat(10_000),
    ] {
        let mut forged = lease.clone();
        forged.lease_id = LeaseId::new(made_up);
        expect_stale(&t.backend, &forged).await?;
    }

    group.expect_nothing("b").await?;
    t.backend.ack(&lease).await?;
    Ok(())
}

/// An event that nobody claimed yet can be settled by nobody.
async fn a_made_up_lease_claims_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let mut made_up = group.fetch_one("a").await?;
    made_up.event.sequence = Sequence::new(2)?;
    made_up.lease_id = LeaseId::generate();

    expect_stale(&t.backend, &made_up).await?;
    let lease = group.fetch_one("b").await?;
    expect_eq("the sequence", lease.event.sequence.get(), 2)?;
    expect_eq("the attempt", lease.attempt, 1)
}

/// A consumer with a lease of something that was never there hears one thing: it is not yours.
async fn a_lease_of_something_that_is_not_there_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    let mut forged = vec![lease.clone(); 7];
    forged[0].event.stream = StreamName::new("missing")?;
    forged[1].group = GroupName::new("missing")?;
    forged[2].event.partition = P1;
    forged[3].event.partition = Partition::new(u32::MAX);
    forged[4].event.sequence = Sequence::ZERO;
    forged[5].event.sequence = lease.event.sequence.next();
    forged[6].event.sequence = Sequence::MAX;
    for lease in &forged {
        expect_stale(&t.backend, lease).await?;
    }

    t.backend.ack(&lease).await?;
    Ok(())
}

/// A lease may be passed on, stripped of what settling does not need.
async fn the_other_fields_of_a_lease_are_not_compared(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    for (step, lease) in Step::ALL.iter().zip(group.fetch_exactly("a", 4).await?) {
        let mut stripped = lease.clone();
        stripped.consumer = ConsumerId::new("somebody-else")?;
        stripped.attempt += 3;
        stripped.leased_at = Timestamp::UNIX_EPOCH;
        stripped.expires_at = Timestamp::UNIX_EPOCH;
        stripped.event.id = t.unknown_id();
        stripped.event.event_type = EventType::new("stripped")?;
        stripped.event.payload = JsonObject::default();
        stripped.event.timestamp = Timestamp::UNIX_EPOCH;

        step.on(&t.backend, &stripped).await?;
        if *step != Step::Renew {
            expect_stale(&t.backend, &lease).await?;
        }
    }
    Ok(())
}

/// The holder has every microsecond that it was promised.
async fn a_lease_is_not_reclaimable_before_its_expiry(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.until_just_before(lease.expires_at).await;

    group.expect_nothing("a").await?;
    group.expect_nothing("b").await?;
    t.backend.ack(&lease).await?;
    Ok(())
}

/// And not one more, or a dead consumer's events would wait for nobody.
async fn a_lease_is_reclaimable_at_its_expiry(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.until(lease.expires_at).await;

    let reclaimed = group.fetch_one("b").await?;
    expect_eq("the event", reclaimed.event, lease.event)
}

/// Work that took too long but that nobody else has begun need not be done again.
async fn an_expired_lease_still_settles(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_briefly("a", 3).await?;
    t.let_lease_expire(&leases[2]).await;
    for (step, lease) in Step::SETTLES.iter().zip(&leases) {
        step.on(&t.backend, lease).await?;
    }

    let retried = group.expect_claimable("b", &[2]).await?;
    expect_eq("the attempt", retried[0].attempt, 2)
}

/// A heartbeat that comes late, but before anybody else, keeps the event.
async fn an_expired_lease_can_be_renewed(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;
    let renewed = t.backend.renew(&lease, LeaseDuration::default()).await?;

    group.expect_nothing("b").await?;
    expect_eq("the lease id", &renewed.lease_id, &lease.lease_id)?;
    t.backend.ack(&lease).await?;
    Ok(())
}

/// Three leases expired, one is reclaimed: the other two are as good as before.
async fn an_expired_lease_holds_until_it_is_reclaimed_itself(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_briefly("a", 3).await?;
    t.let_lease_expire(&leases[2]).await;
    let reclaimed = group.fetch_one("b").await?;

    expect_eq("the sequence", reclaimed.event.sequence.get(), 1)?;
    expect_error(t.backend.ack(&leases[0]).await, ErrorKind::StaleLease)?;
    group.ack(&leases[1..]).await?;
    group.expect_nothing("c").await
}

/// A fetch that hands the event to nobody takes it from nobody.
async fn a_fetch_that_claims_nothing_takes_no_lease_away(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group("billing").await?;
    let other = stream.group("shipping").await?;
    stream.append(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;
    let none = FetchOptions::new(ConsumerId::new("b")?).with_limit(0);
    expect_empty("lease", &group.fetch_with(&none).await?)?;
    let nowhere = FetchOptions::new(ConsumerId::new("b")?).with_partitions(Partitions::only([]));
    expect_empty("lease", &group.fetch_with(&nowhere).await?)?;
    other.fetch_one("b").await?;

    t.backend.ack(&lease).await?;
    group.expect_nothing("b").await
}

/// A worker that serves other partitions leaves this one's leases alone.
async fn a_fetch_from_elsewhere_takes_no_lease_away(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    let group = stream.group("billing").await?;
    stream.append_to(P0, 1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;
    stream.append_to(P1, 1).await?;
    let from_p1 = FetchOptions::new(ConsumerId::new("b")?).with_partitions(P1);
    let fetched = group.gather(from_p1, 2).await?;

    expect_eq("the number of leases", fetched.len(), 1)?;
    t.backend.ack(&lease).await?;
    Ok(())
}

/// Clocks are set back; the holder still has its event, and only until the expiry.
async fn a_clock_that_goes_back_ends_no_lease(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.turn_back(Duration::from_secs(3_600));

    group.expect_nothing("b").await?;
    t.until(lease.expires_at).await;
    let reclaimed = group.fetch_one("b").await?;
    expect_eq("the attempt", reclaimed.attempt, 2)
}

/// The reclaim is a claim like any other, of its own consumer and with its own times.
async fn reclaiming_gives_a_new_lease_and_the_next_attempt(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let (old, new) = replaced(&group).await?;

    expect(
        new.lease_id != old.lease_id,
        "a new lease id",
        format!("{} again", old.lease_id),
    )?;
    expect_eq("the attempt", new.attempt, old.attempt + 1)?;
    expect_eq("the consumer", new.consumer.as_str(), "b")?;
    t.expect_now("leased_at", new.leased_at)?;
    expect_eq(
        "expires_at",
        new.expires_at,
        new.leased_at.saturating_add(Duration::from_secs(30)),
    )
}

/// A consumer that restarts under its old name is fenced off from its former self.
async fn the_same_consumer_reclaims_like_any_other(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let old = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&old).await;
    let new = group.fetch_one("a").await?;

    expect_eq("the attempt", new.attempt, 2)?;
    expect_stale(&t.backend, &old).await?;
    t.backend.ack(&new).await?;
    Ok(())
}

/// Given back or lost, each claim brings the event nearer to being given up on.
async fn every_claim_counts_as_an_attempt(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let mut attempts = Vec::new();
    for is_lost in [false, true, false, false] {
        let lease = group.fetch_one_briefly("a").await?;
        attempts.push(lease.attempt);
        if is_lost {
            t.let_lease_expire(&lease).await;
        } else {
            Step::Retry.on(&t.backend, &lease).await?;
        }
    }
    attempts.push(group.fetch_one("a").await?.attempt);

    expect_eq("the attempts", attempts, vec![1, 2, 3, 4, 5])
}

/// One event that fails again and again costs no other its attempts.
async fn attempts_are_counted_per_event_and_group(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group("billing").await?;
    let other = stream.group("shipping").await?;
    stream.append(2).await?;
    for _ in 0..3 {
        let lease = group.fetch_one("a").await?;
        expect_eq("the sequence", lease.event.sequence.get(), 1)?;
        Step::Retry.on(&t.backend, &lease).await?;
    }

    let attempts = |leases: Vec<Lease>| -> Vec<u32> {
        leases.into_iter().map(|lease| lease.attempt).collect()
    };
    let here = group.fetch_exactly("a", 2).await?;
    expect_eq("the attempts", attempts(here), vec![4, 1])?;
    let there = other.fetch_exactly("a", 2).await?;
    expect_eq("the other group's attempts", attempts(there), vec![1, 1])
}

/// A heartbeat buys time from now on, and changes nothing else.
async fn a_renewal_counts_from_now(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    t.pass(Duration::from_millis(20)).await;
    let hour = Duration::from_secs(3_600);
    let renewed = t.backend.renew(&lease, LeaseDuration::new(hour)?).await?;

    t.expect_now(
        "expires_at less the duration",
        renewed.expires_at.saturating_sub(hour),
    )?;
    let expected = Lease {
        expires_at: renewed.expires_at,
        ..lease.clone()
    };
    expect_eq("the renewed lease", &renewed, &expected)?;
    let longest = Duration::from_secs(365 * 24 * 60 * 60);
    let renewed = t
        .backend
        .renew(&lease, LeaseDuration::new(longest)?)
        .await?;
    t.expect_now(
        "expires_at less the duration",
        renewed.expires_at.saturating_sub(longest),
    )
}

/// What the answer says is what the others see.
async fn a_renewed_lease_holds_until_its_new_expiry(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.until_just_before(lease.expires_at).await;
    let renewed = t.backend.renew(&lease, t.brief_lease()).await?;
    t.until_just_before(renewed.expires_at).await;

    expect(
        renewed.expires_at > lease.expires_at,
        format!("an expiry after {}", lease.expires_at),
        renewed.expires_at,
    )?;
    group.expect_nothing("b").await?;
    t.until(renewed.expires_at).await;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 2)
}

/// A holder that knows it is nearly done may say so.
async fn a_renewal_may_shorten(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
    let lease = group.fetch_one_for("a", hour).await?;
    let renewed = t.backend.renew(&lease, t.brief_lease()).await?;

    let counted_from = renewed.expires_at.saturating_sub(t.brief());
    t.expect_now("expires_at less the duration", counted_from)?;
    group.expect_nothing("b").await?;
    t.until(renewed.expires_at).await;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 2)
}

/// The worker that settles need not be the thread that renews.
async fn a_copy_from_before_a_renewal_still_settles(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    for (step, copy) in Step::ALL.iter().zip(group.fetch_exactly("a", 4).await?) {
        let minute = LeaseDuration::new(Duration::from_secs(60))?;
        let renewed = t.backend.renew(&copy, minute).await?;

        step.on(&t.backend, &copy).await?;
        if *step != Step::Renew {
            expect_stale(&t.backend, &renewed).await?;
        }
    }
    Ok(())
}

/// Long work with many heartbeats is one attempt.
async fn a_renewal_is_no_attempt(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group_of_attempts("billing", 2).await?;
    stream.append(1).await?;
    let lease = group.fetch_one("a").await?;
    for _ in 0..3 {
        let renewed = t.backend.renew(&lease, LeaseDuration::default()).await?;
        expect_eq("the attempt", renewed.attempt, 1)?;
    }
    Step::Retry.on(&t.backend, &lease).await?;

    expect_eq("the attempt", group.fetch_one("a").await?.attempt, 2)
}

/// Whatever came first stands.
async fn a_lease_is_settled_once(t: Fixture) -> Outcome {
    for first in Step::SETTLES {
        for second in Step::SETTLES {
            let group = t.group_with_events(1).await?;
            let lease = group.fetch_one("a").await?;
            first.on(&t.backend, &lease).await?;
            let again = second.on(&t.backend, &lease).await;

            expect_error(again, ErrorKind::StaleLease)?;
            let claimable: &[u64] = if first == Step::Retry { &[1] } else { &[] };
            group.expect_claimable("b", claimable).await?;
        }
    }
    Ok(())
}

/// Two threads of one worker finish at once; one of them has done it, and knows.
async fn of_concurrent_settles_one_wins(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    for lease in group.fetch_exactly("a", 5).await? {
        let mut settling = JoinSet::new();
        for step in Step::SETTLES.iter().cycle().take(9) {
            let (backend, lease) = (t.backend.clone(), lease.clone());
            settling.spawn(async move { (*step, step.on(&backend, &lease).await) });
        }
        let mut winners = Vec::new();
        for (step, result) in settling.join_all().await {
            match result {
                Ok(()) => winners.push(step),
                lost => drop(expect_error(lost, ErrorKind::StaleLease)?),
            }
        }

        expect_eq("the number of settles that won", winners.len(), 1)?;
        let claimable = group.fetch("b", 1).await?;
        let is_retried = winners == [Step::Retry];
        expect_eq("the number of claims", claimable.len(), is_retried.into())?;
    }
    Ok(())
}
