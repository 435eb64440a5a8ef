//! A lease is settled once.

use rheo_core::ErrorKind;
use tokio::task::JoinSet;

use crate::expect::{Outcome, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::step::Step;

/// Whatever came first stands.
pub(super) async fn a_lease_is_settled_once(t: Fixture) -> Outcome {
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
pub(super) async fn of_concurrent_settles_one_wins(t: Fixture) -> Outcome {
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
