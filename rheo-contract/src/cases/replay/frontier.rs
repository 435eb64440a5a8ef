//! Where a replay leaves the frontier.

use rheo_core::{Backend, EventId, Lease, RetryOptions, RetryOutcome, Start};

use super::{all_acked, replay_events};
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;

/// Progress says what is left to do: after a replay that is everything above the sequence.
pub(super) async fn the_frontier_falls_to_the_sequence(t: Fixture) -> Outcome {
    let group = all_acked(&t, 5).await?;

    group.replay_after(2).await?;
    group.expect_frontier(2).await?;

    let leases = group.expect_claimable("a", &[3, 4, 5]).await?;
    group.ack(&leases[2..]).await?;
    group.expect_frontier(2).await?;
    group.ack(&leases[..1]).await?;
    group.expect_frontier(3).await?;
    group.ack(&leases[1..2]).await?;
    group.expect_frontier(5).await
}

/// A replay above a hole leaves the hole where it is.
pub(super) async fn a_lower_frontier_stays_where_it_is(t: Fixture) -> Outcome {
    let group = t.group_with_events(5).await?;
    let leases = group.fetch_exactly("a", 5).await?;
    group.ack(&leases[1..]).await?;

    group.replay_after(3).await?;
    group.expect_frontier(0).await?;

    group.ack(&leases[..1]).await?;
    group.expect_frontier(3).await
}

/// What is now to be delivered counts as work to do, also where it never was before.
pub(super) async fn below_the_start_the_frontier_falls_to_the_sequence(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(5).await?;
    let group = stream.group_from("billing", Start::End).await?;

    group.replay_after(1).await?;
    group.expect_frontier(1).await?;

    let leases = group.fetch_exactly("a", 4).await?;
    group.ack(&leases[..2]).await?;
    group.expect_frontier(3).await?;
    group.ack(&leases[2..]).await?;
    group.expect_frontier(5).await
}

/// What a delivery is to a group whose leases do not expire: all that the random case needs to know.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Claimable, after that many attempts.
    Open(u32),
    Leased,
    Done,
}

/// Everything at once, compared step by step with a plain list of states.
pub(super) async fn replays_at_random_follow_the_rules(t: Fixture) -> Outcome {
    let group = t.stream(1).await?.group_of_attempts("billing", 3).await?;
    let mut events: Vec<EventId> = Vec::new();
    let mut states: Vec<State> = Vec::new();
    let mut leases: Vec<Lease> = Vec::new();
    for _ in 0..150 {
        let any = t.random(states.len() as u64 + 1) as usize;
        match t.random(10) {
            0 | 1 => {
                events.extend(group.stream.append(1).await?.iter().map(|event| event.id));
                states.push(State::Open(0));
            }
            2..=4 => {
                let is_open = |state: &State| matches!(state, State::Open(_));
                let expected = states.iter().position(is_open);
                let fetched = group.fetch("a", 1).await?;
                let seen: Vec<(u64, u32)> = fetched
                    .iter()
                    .map(|lease| (lease.event.sequence.get(), lease.attempt))
                    .collect();
                let expected = match expected.map(|at| (at, states[at])) {
                    Some((at, State::Open(attempts))) => {
                        states[at] = State::Leased;
                        vec![(at as u64 + 1, attempts + 1)]
                    }
                    _ => vec![],
                };
                expect_eq(
                    "sequence and attempt of what is claimed next",
                    seen,
                    expected,
                )?;
                leases.extend(fetched);
            }
            5..=7 if !leases.is_empty() => {
                let lease = leases.swap_remove(t.random(leases.len() as u64) as usize);
                let at = lease.event.sequence.get() as usize - 1;
                states[at] = match t.random(3) {
                    0 => {
                        let outcome = t.backend.retry(&lease, &RetryOptions::new()).await?;
                        match outcome {
                            RetryOutcome::Retrying => State::Open(lease.attempt),
                            RetryOutcome::DeadLettered => State::Done,
                        }
                    }
                    1 => {
                        group.reject(&lease, "broken").await?;
                        State::Done
                    }
                    _ => {
                        t.backend.ack(&lease).await?;
                        State::Done
                    }
                };
            }
            8 => {
                group.replay_after(any as u64).await?;
                states[any..].fill(State::Open(0));
                leases.retain(|lease| lease.event.sequence.get() as usize <= any);
            }
            9 if any < states.len() => {
                replay_events(&group, [events[any]]).await?;
                states[any] = State::Open(0);
                leases.retain(|lease| lease.event.id != events[any]);
            }
            _ => {}
        }
        let done = states.iter().take_while(|state| **state == State::Done);
        group.expect_frontier(done.count() as u64).await?;
    }
    group.ack(&leases).await
}
