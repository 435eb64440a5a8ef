//! A lease is settled once.

use rheo_core::{Backend, ErrorKind};
use tokio::task::JoinSet;

use crate::expect::{Outcome, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::scene::at_once;
use crate::step::{Step, expect_stale};

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

/// The same answer was sent twice, and once more: it counts once.
pub(super) async fn of_concurrent_settles_of_one_kind_one_wins(t: Fixture) -> Outcome {
    for step in Step::SETTLES {
        for _ in 0..3 {
            let group = t.group_with_events(1).await?;
            let lease = group.fetch_one("a").await?;
            let settled = at_once(8, |_| {
                let (backend, lease) = (t.backend.clone(), lease.clone());
                async move { step.on(&backend, &lease).await }
            });
            let mut winners = 0;
            for result in settled.await? {
                match result {
                    Ok(()) => winners += 1,
                    lost => drop(expect_error(lost, ErrorKind::StaleLease)?),
                }
            }

            expect_eq(&format!("the winners of {step:?}"), winners, 1)?;
            let claimable: &[u64] = if step == Step::Retry { &[1] } else { &[] };
            group.expect_claimable("b", claimable).await?;
        }
    }
    Ok(())
}

/// Two tasks of one worker hand the same leases in, each in its own batch.
pub(super) async fn of_concurrent_batches_of_settles_one_wins(t: Fixture) -> Outcome {
    for step in Step::SETTLES {
        let group = t.group_with_events(6).await?;
        let leases = group.fetch_exactly("a", 6).await?;
        let settled = at_once(6, |_| {
            let (backend, leases) = (t.backend.clone(), leases.clone());
            async move { step.on_all(&backend, &leases).await }
        });
        let mut winners = vec![0; 6];
        for results in settled.await? {
            expect_eq("the number of results", results.len(), 6)?;
            for (at, result) in results.into_iter().enumerate() {
                match result {
                    Ok(()) => winners[at] += 1,
                    lost => drop(expect_error(lost, ErrorKind::StaleLease)?),
                }
            }
        }

        let what = format!("the batches of {step:?} that settled each lease");
        expect_eq(&what, winners, vec![1; 6])?;
    }
    Ok(())
}

/// A heartbeat that was under way when its event was acked must not bring the event back.
pub(super) async fn concurrent_renewals_undo_no_settle(t: Fixture) -> Outcome {
    for settle in [Step::Ack, Step::Reject] {
        let group = t.group_with_events(1).await?;
        let lease = group.fetch_one_briefly("a").await?;
        let results = at_once(8, |number| {
            let (backend, lease) = (t.backend.clone(), lease.clone());
            let brief = t.brief_lease();
            async move {
                match number {
                    4 => settle.on(&backend, &lease).await.map(|()| None),
                    _ => backend.renew(&lease, brief).await.map(Some),
                }
            }
        });
        let mut last = lease.expires_at;
        for result in results.await? {
            match result {
                Ok(Some(renewed)) => last = last.max(renewed.expires_at),
                Ok(None) => {}
                late => drop(expect_error(late.map(drop), ErrorKind::StaleLease)?),
            }
        }

        expect_stale(&t.backend, &lease).await?;
        t.until(last).await;
        group.expect_nothing("b").await?;
    }
    Ok(())
}
