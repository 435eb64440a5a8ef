//! What a dead letter says, however its event died.

use std::time::Duration;

use rheo_core::{Backend, DeadLetter, Lease, LeaseDuration, Reason, RetryOptions, RetryOutcome};

use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::Group;

/// Demands that the dead letters of a group are those of just these leases, with these reasons, and that
/// all have died now.
pub(in crate::cases) async fn expect_letters(group: &Group, died: &[(&Lease, &Reason)]) -> Outcome {
    let dead = group.dead_letters().await?;
    expect_eq("the number of dead letters", dead.len(), died.len())?;
    for (letter, (lease, reason)) in dead.iter().zip(died) {
        let expected = DeadLetter {
            event: lease.event.clone(),
            group: group.name.clone(),
            attempt: lease.attempt,
            reason: Reason::clone(reason),
            dead_at: letter.dead_at,
        };
        expect_eq("the dead letter", letter, &expected)?;
        group.stream.t.expect_now("dead_at", letter.dead_at)?;
    }
    Ok(())
}

/// Rejects the first lease and retries the second, which is at its last attempt.
async fn end_both(group: &Group, leases: &[Lease], reason: &Reason) -> Outcome {
    group.backend.reject(&leases[0], reason).await?;
    let options = RetryOptions::new().with_reason(reason.clone());
    let outcome = group.backend.retry(&leases[1], &options).await?;
    expect_eq("the outcome", outcome, RetryOutcome::DeadLettered)
}

/// Late or kept alive for long: it is given up on like any other.
pub(super) async fn a_late_or_renewed_lease_makes_a_whole_dead_letter(t: Fixture) -> Outcome {
    let reason = Reason::new("no such customer");
    let (late, leases) = t.second_attempts(2, 2, t.brief_lease()).await?;
    t.let_lease_expire(&leases[1]).await;
    t.pass(Duration::from_micros(1_501)).await;
    end_both(&late, &leases, &reason).await?;
    expect_letters(&late, &[(&leases[0], &reason), (&leases[1], &reason)]).await?;

    let (renewed, leases) = t.second_attempts(2, 2, LeaseDuration::default()).await?;
    let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
    for lease in &leases {
        t.backend.renew(lease, hour).await?;
    }
    t.pass(Duration::from_micros(1_501)).await;
    end_both(&renewed, &leases, &reason).await?;
    expect_letters(&renewed, &[(&leases[0], &reason), (&leases[1], &reason)]).await
}

/// Whoever rebuilds a lease from what settling needs need not know how often the event was tried.
pub(super) async fn a_dead_letter_has_the_attempt_of_the_claim(t: Fixture) -> Outcome {
    let reason = Reason::new("no such customer");
    for given in [1, 77] {
        let (group, leases) = t.second_attempts(2, 2, LeaseDuration::default()).await?;
        let mut rebuilt = leases.clone();
        for lease in &mut rebuilt {
            lease.attempt = given;
        }
        end_both(&group, &rebuilt, &reason).await?;

        expect_letters(&group, &[(&leases[0], &reason), (&leases[1], &reason)]).await?;
    }
    Ok(())
}

/// Nobody was there for a while; the event was given up on by whoever came then.
pub(super) async fn what_was_lost_long_ago_dies_when_it_is_reclaimed(t: Fixture) -> Outcome {
    let (group, leases) = t.second_attempts(2, 2, t.brief_lease()).await?;
    t.let_lease_expire(&leases[1]).await;
    t.pass(Duration::from_micros(20_501)).await;
    group.expect_nothing("b").await?;

    let reason = Reason::lease_expired();
    expect_letters(&group, &[(&leases[0], &reason), (&leases[1], &reason)]).await
}

/// Now is now, also when it was later before.
pub(super) async fn a_death_follows_the_clock_back(t: Fixture) -> Outcome {
    let (group, leases) = t.second_attempts(2, 2, LeaseDuration::default()).await?;
    t.turn_back(Duration::from_secs(3_600));
    let reason = Reason::new("no such customer");
    end_both(&group, &leases, &reason).await?;

    expect_letters(&group, &[(&leases[0], &reason), (&leases[1], &reason)]).await
}
