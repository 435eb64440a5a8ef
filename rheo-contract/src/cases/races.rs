//! Races: many tasks at once, over one handle and over two, checked for what cannot have been.

mod answers;
mod batches;

use rheo_core::{Gate, GroupOptions, Guarantee, Lease, Replay, ResetOptions, Sequence};
use tokio::task::JoinSet;

use self::answers::calls_at_once_are_answered_each_for_itself;
use self::batches::batches_at_once_that_share_ids_are_whole_or_refused;
use crate::case::{Case, case};
use crate::expect::{Outcome, expect, expect_eq};
use crate::fixture::Fixture;
use crate::race::{play, play_back_and_forth, play_skewed};
use crate::recorder::Recorder;
use crate::scene::{Group, finished, places_of};
use crate::step::Step;

const DISTRIBUTED: Gate = Gate::Guarantee(Guarantee::Distributed);
const BATCHES: Gate = Gate::Guarantee(Guarantee::BatchWrites);
const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);

pub(crate) const CASES: &[Case] = &[
    case!(
        "DLV-7" => concurrent_histories_of_one_handle_have_no_anomaly,
        "something is read, decided and written in steps between which others get in"
    ),
    case!(
        "DST-1" => concurrent_histories_of_two_handles_have_no_anomaly,
        "a lock inside the handle stands in for one in the store"
    )
    .needs(&[DISTRIBUTED]),
    case!(
        "DST-1" => concurrent_histories_of_skewed_clocks_lose_nothing,
        "a claim or a settle is decided by comparing times instead of the lease id"
    )
    .needs(&[DISTRIBUTED]),
    case!(
        "RPL-7" => a_reset_racing_with_settles_leaves_nothing_settled,
        "a settle finds its lease, the reset goes by, and the settle writes its result over it"
    )
    .needs(&[FRONTIER]),
    case!(
        "RPL-7" => a_replay_racing_with_settles_leaves_nothing_settled,
        "a settle finds its lease, the replay goes by, and the settle writes its result over it"
    )
    .needs(&[FRONTIER]),
    case!(
        "LOG-7" => batches_at_once_that_share_ids_are_whole_or_refused,
        "ids or partitions are taken one by one, in the order of the batch, so that two batches stand in each \
         other's way"
    )
    .needs(&[BATCHES]),
    case!(
        "RPL-7" => concurrent_histories_with_replays_and_resets_have_no_anomaly,
        "a replay or reset goes event by event, and what is claimed or settled meanwhile is left as it was, or \
         written over it"
    ),
    case!(
        "STR-4" => calls_at_once_are_answered_each_for_itself,
        "calls under way are put together, or share an answer, by too little of what they ask for"
    ),
];

/// Workers, readers and those who watch the lag, on one handle.
async fn concurrent_histories_of_one_handle_have_no_anomaly(t: Fixture) -> Outcome {
    play(&t, vec![t.backend.clone()]).await
}

/// The same on two, which share nothing but the store.
async fn concurrent_histories_of_two_handles_have_no_anomaly(t: Fixture) -> Outcome {
    let second = t.second_handle().await?;
    play(&t, vec![t.backend.clone(), second]).await
}

/// Two machines whose clocks differ, and are put right now and then: leases end early or late, but
/// nothing is lost, and no settle has two winners.
async fn concurrent_histories_of_skewed_clocks_lose_nothing(t: Fixture) -> Outcome {
    play_skewed(&t).await
}

/// The operator resets a group while its consumers are at work.
async fn a_reset_racing_with_settles_leaves_nothing_settled(t: Fixture) -> Outcome {
    go_back_racing_with_settles(&t, |group| async move {
        group.reset(&ResetOptions::new()).await
    })
    .await
}

/// The same with a replay of everything.
async fn a_replay_racing_with_settles_leaves_nothing_settled(t: Fixture) -> Outcome {
    let replay = Replay::after(Sequence::ZERO);
    go_back_racing_with_settles(&t, move |group| {
        let replay = replay.clone();
        async move { group.replay(&replay).await }
    })
    .await
}

/// Operators who go back while the consumers of two groups are at work, on as many handles as there may be.
async fn concurrent_histories_with_replays_and_resets_have_no_anomaly(t: Fixture) -> Outcome {
    let mut handles = vec![t.backend.clone()];
    if t.capabilities().guarantees(Guarantee::Distributed) {
        handles.push(t.second_handle().await?);
    }
    play_back_and_forth(&t, handles).await
}

/// A settle that wins was before, one that loses is stale: either way everything is open afterwards.
async fn go_back_racing_with_settles<F>(t: &Fixture, go_back: impl Fn(Group) -> F) -> Outcome
where
    F: Future<Output = Outcome> + Send + 'static,
{
    const EVENTS: usize = 6;
    let stream = t.stream(1).await?;
    stream.append(EVENTS).await?;
    for _ in 0..t.budget().times(30) {
        t.forget_history();
        let name = format!("billing-{}", t.number());
        let group = stream.group_with(&name, GroupOptions::new()).await?;
        let leases = group.fetch_exactly("a", EVENTS).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(go_back(group.clone()));
        for (at, lease) in leases.into_iter().enumerate() {
            tasks.spawn(settle(t.backend.clone(), lease, at));
        }
        finished(tasks).await?;
        t.tally().interleaved_operations(EVENTS as u64 + 1);

        group.expect_frontier(0).await?;
        let again = group.fetch_all("b").await?;
        let all: Vec<(u32, u64)> = (1..=EVENTS as u64).map(|sequence| (0, sequence)).collect();
        expect_eq("the events that are open again", places_of(&again), all)?;
        let attempts: Vec<u32> = again.iter().map(|lease| lease.attempt).collect();
        expect_eq("their attempts", attempts, vec![1; EVENTS])?;
    }
    Ok(())
}

async fn settle(backend: Recorder, lease: Lease, at: usize) -> Outcome {
    let step = Step::SETTLES[at % Step::SETTLES.len()];
    match step.on(&backend, &lease).await {
        Ok(()) => Ok(()),
        Err(error) => expect(error.is_lost(), "Ok or Err(StaleLease)", error.kind()),
    }
}
