//! Large batches, and long durations in them.

use rheo_core::{
    Backend, ConsumerId, Error, ErrorKind, FetchOptions, Lease, LeaseDuration, LeaseId,
};

use crate::durations::DURATIONS;
use crate::expect::{Outcome, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::scene::{Group, sequences_of};
use crate::step::{Step, retry_after};

const MANY: usize = 300;
/// A prime.
const OVER_A_THOUSAND: usize = 1_103;

/// Many leases, and that each step with all of them at once gives as many results that are Ok.
async fn settled_at_once(group: &Group, step: Step, leases: &[Lease]) -> Outcome {
    let results = step.on_all(&group.backend, leases).await;
    let done = results.iter().filter(|result| result.is_ok()).count();
    let what = format!("the results of {step:?}, and those that are Ok");
    expect_eq(&what, (results.len(), done), (leases.len(), leases.len()))
}

async fn all_briefly(group: &Group) -> Outcome<Vec<Lease>> {
    let options = FetchOptions::new(ConsumerId::new("a")?);
    let brief = options.with_lease_duration(group.stream.t.brief_lease());
    group.gather_exactly(brief, MANY).await
}

/// A worker's whole hand is renewed: none of it may expire.
pub(super) async fn hundreds_of_leases_are_renewed_in_one_batch(t: Fixture) -> Outcome {
    let group = t.group_with_events(MANY).await?;
    let leases = all_briefly(&group).await?;
    settled_at_once(&group, Step::Renew, &leases).await?;
    t.let_lease_expire(&leases[MANY - 1]).await;

    group.expect_nothing("b").await
}

/// Given back together, there together.
pub(super) async fn hundreds_of_leases_are_retried_in_one_batch(t: Fixture) -> Outcome {
    let group = t.group_with_events(MANY).await?;
    let leases = group.fetch_exactly("a", MANY).await?;
    settled_at_once(&group, Step::Retry, &leases).await?;

    let again = group.fetch_exactly("b", MANY).await?;
    expect_eq("the sequences", sequences_of(&again), sequences_of(&leases))
}

/// Acked or rejected together, over together.
pub(super) async fn hundreds_of_leases_are_over_after_one_batch(t: Fixture) -> Outcome {
    for step in [Step::Ack, Step::Reject] {
        let group = t.group_with_events(MANY).await?;
        let leases = all_briefly(&group).await?;
        settled_at_once(&group, step, &leases).await?;

        for lease in leases.iter().step_by(7) {
            expect_error(t.backend.ack(lease).await, ErrorKind::StaleLease)?;
        }
        t.let_lease_expire(&leases[MANY - 1]).await;
        group.expect_nothing("b").await?;
    }
    Ok(())
}

/// In a batch a delay is what it is by itself.
pub(super) async fn delays_in_a_batch_end_exactly_then_however_long(t: Fixture) -> Outcome {
    let group = t.group().await?;
    for delay in DURATIONS {
        let lease = group.append_and_fetch_one("a").await?;
        let due = t.now().saturating_add(delay);
        let options = retry_after(delay)?;
        for result in t.backend.retry_batch(&[lease], &options).await {
            result?;
        }

        group.expect_claimable_from(due, 2).await?;
    }
    Ok(())
}

/// In a batch a renewal lasts as long as it does by itself.
pub(super) async fn renewals_in_a_batch_end_exactly_then_however_long(t: Fixture) -> Outcome {
    let group = t.group().await?;
    for duration in DURATIONS {
        let lease = group.append_and_fetch_one("a").await?;
        let ends = t.now().saturating_add(duration);
        let lasts = LeaseDuration::new(duration)?;
        for result in t.backend.renew_batch(&[lease], lasts).await {
            result?;
        }

        group.expect_claimable_from(ends, 2).await?;
    }
    Ok(())
}

/// A hundred workers' hands in one call, in no order, with some that are not theirs: each answer is where
/// its lease was.
pub(super) async fn over_a_thousand_leases_settle_in_one_batch(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let events = (0..OVER_A_THOUSAND).map(|_| t.new_event()).collect();
    group.stream.append_all(events).await?;
    for step in [Step::Renew, Step::Retry, Step::Ack] {
        let fetch = FetchOptions::new(ConsumerId::new("a")?);
        let leases = group.gather_exactly(fetch, OVER_A_THOUSAND).await?;
        let is_made_up = |at: usize| at % 7 == 3;
        let mut mixed: Vec<Lease> = Vec::with_capacity(OVER_A_THOUSAND);
        for at in 0..OVER_A_THOUSAND {
            // 463 and 1,103 have no common divisor, so each comes once.
            let mut lease = leases[at * 463 % OVER_A_THOUSAND].clone();
            if is_made_up(at) {
                lease.lease_id = LeaseId::new("made-up");
            }
            mixed.push(lease);
        }
        let results = step.on_all(&t.backend, &mixed).await;

        let wrong = (0..OVER_A_THOUSAND).find(|at| {
            let kind = results
                .get(*at)
                .map(|result| result.as_ref().err().map(Error::kind));
            kind != Some(is_made_up(*at).then_some(ErrorKind::StaleLease))
        });
        let what = format!("the first result of {step:?} that is not that of its lease");
        expect_eq(&what, (wrong, results.len()), (None, OVER_A_THOUSAND))?;
        let rest: Vec<Lease> = (0..OVER_A_THOUSAND)
            .filter(|at| step == Step::Renew || is_made_up(*at))
            .map(|at| leases[at * 463 % OVER_A_THOUSAND].clone())
            .collect();
        let last = if step == Step::Ack {
            Step::Ack
        } else {
            Step::Retry
        };
        settled_at_once(&group, last, &rest).await?;
    }
    group.expect_nothing("b").await
}
