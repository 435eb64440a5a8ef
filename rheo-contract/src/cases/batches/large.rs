//! Large batches, and long durations in them.

use rheo_core::{Backend, ConsumerId, ErrorKind, FetchOptions, Lease, LeaseDuration};

use crate::durations::DURATIONS;
use crate::expect::{Outcome, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::scene::{Group, sequences_of};
use crate::step::{Step, retry_after};

const MANY: usize = 300;

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
