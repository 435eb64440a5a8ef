//! Only the current claim settles.

use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, ErrorKind, EventType, GroupName, JsonObject, Lease, LeaseDuration,
    LeaseId, Partition, Replay, ResetOptions, RetryOptions, RetryOutcome, Sequence, Start,
    StreamName, Timestamp,
};

use super::replaced;
use crate::expect::{Outcome, expect_empty, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::scene::{P0, P1};
use crate::step::{Step, expect_stale, retry_after};

/// The classic pause: `a` sleeps past its lease, `b` takes over, `a` wakes up.
pub(super) async fn a_replaced_lease_settles_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let (stale, current) = replaced(&group).await?;

    expect_stale(&t.backend, &stale).await?;
    group.expect_nothing("c").await?;
    t.backend.ack(&current).await?;
    expect_stale(&t.backend, &stale).await
}

/// A zombie that keeps renewing must not keep the new holder's event from being reclaimed.
pub(super) async fn a_replaced_lease_moves_no_expiry(t: Fixture) -> Outcome {
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
pub(super) async fn an_acked_lease_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let lease = group.fetch_one("a").await?;
    t.backend.ack(&lease).await?;

    expect_stale(&t.backend, &lease).await?;
    group.expect_claimable("b", &[2]).await?;
    Ok(())
}

/// Who gave an event back must not settle it for the next one.
pub(super) async fn a_retried_lease_is_stale(t: Fixture) -> Outcome {
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
pub(super) async fn a_lease_whose_event_waits_is_stale(t: Fixture) -> Outcome {
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
pub(super) async fn a_rejected_lease_is_stale(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let lease = group.fetch_one("a").await?;
    group.reject(&lease, "no good").await?;

    expect_stale(&t.backend, &lease).await?;
    group.expect_claimable("b", &[2]).await?;
    Ok(())
}

/// A refused reject must leave nothing for an operator to puzzle over.
pub(super) async fn a_stale_lease_makes_no_dead_letter(t: Fixture) -> Outcome {
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
pub(super) async fn a_lease_from_before_a_replay_is_stale(t: Fixture) -> Outcome {
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
pub(super) async fn a_lease_of_a_chosen_event_that_was_replayed_is_stale(t: Fixture) -> Outcome {
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
pub(super) async fn a_lease_from_before_a_reset_is_stale(t: Fixture) -> Outcome {
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
pub(super) async fn a_lease_is_of_its_group_alone(t: Fixture) -> Outcome {
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
pub(super) async fn a_lease_is_of_its_stream_alone(t: Fixture) -> Outcome {
    let one = t.group_with_events(1).await?;
    let other = t.group_with_events(1).await?;
    let of_one = one.fetch_one("a").await?;
    let of_other = other.fetch_one("a").await?;

    expect_no_exchange(&t, &of_one, &of_other).await?;
    one.expect_nothing("a").await?;
    other.expect_nothing("a").await
}

/// A holder of one event must not settle its neighbour.
pub(super) async fn a_lease_is_of_its_sequence_alone(t: Fixture) -> Outcome {
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
pub(super) async fn a_lease_is_of_its_partition_alone(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    let group = stream.group("billing").await?;
    stream.append_to(P0, 1).await?;
    stream.append_to(P1, 1).await?;
    let leases = group.fetch_exactly("a", 2).await?;

    expect_no_exchange(&t, &leases[0], &leases[1]).await?;
    group.expect_nothing("a").await
}

/// Ids from outside: of a wrong form, a pattern, a piece of the right one.
pub(super) async fn a_made_up_lease_is_stale(t: Fixture) -> Outcome {
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
pub(super) async fn a_made_up_lease_claims_nothing(t: Fixture) -> Outcome {
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
pub(super) async fn a_lease_of_something_that_is_not_there_is_stale(t: Fixture) -> Outcome {
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
pub(super) async fn the_other_fields_of_a_lease_are_not_compared(t: Fixture) -> Outcome {
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

/// What a rebuilt lease may say that was claimed for the second time.
const OTHER_ATTEMPTS: [u32; 2] = [1, 77];

/// Whoever rebuilds a lease from what settling needs does not know how often the event was tried.
pub(super) async fn the_attempt_of_a_lease_decides_nothing(t: Fixture) -> Outcome {
    for given in OTHER_ATTEMPTS {
        for (most, outcome) in [(2, RetryOutcome::DeadLettered), (3, RetryOutcome::Retrying)] {
            let lasts = LeaseDuration::default();
            let (group, mut leases) = t.second_attempts(most, 2, lasts).await?;
            for lease in &mut leases {
                lease.attempt = given;
            }
            let options = RetryOptions::new();
            let mut outcomes = vec![t.backend.retry(&leases[0], &options).await];
            outcomes.extend(t.backend.retry_batch(&leases[1..], &options).await);

            let what = format!("the outcomes at attempt 2 of {most}, of leases that say {given}");
            expect_eq(&what, outcomes, vec![Ok(outcome); 2])?;
            let again = group.fetch("b", 2).await?;
            let attempts: Vec<u32> = again.iter().map(|lease| lease.attempt).collect();
            let expected: &[u32] = if most == 2 { &[] } else { &[3, 3] };
            expect_eq("the attempts that follow", &*attempts, expected)?;
        }
    }
    Ok(())
}

/// A heartbeat needs no more than the id of its lease.
pub(super) async fn the_attempt_of_a_renewed_lease_is_not_stored(t: Fixture) -> Outcome {
    let mut groups = Vec::new();
    let mut last = t.now();
    for given in OTHER_ATTEMPTS {
        for (most, expected) in [(2, None), (3, Some(3))] {
            let (group, leases) = t.second_attempts(most, 1, LeaseDuration::default()).await?;
            let mut rebuilt = leases[0].clone();
            rebuilt.attempt = given;
            last = t.backend.renew(&rebuilt, t.brief_lease()).await?.expires_at;
            groups.push((group, given, most, expected));
        }
    }
    t.until(last).await;

    for (group, given, most, expected) in groups {
        let again = group.fetch("b", 1).await?;
        let attempt = again.first().map(|lease| lease.attempt);
        let what = format!(
            "the attempt after the second of {most}, renewed by a lease that said {given},"
        );
        expect_eq(&what, attempt, expected)?;
    }
    Ok(())
}
