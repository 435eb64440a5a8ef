//! Random histories: generated operations on a backend, each compared with the reference model, and
//! shrunk to a few when they disagree.

mod play;
mod step;

use std::sync::mpsc as blocking;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tokio::sync::mpsc;

use crate::expect::{Failure, Outcome};
use crate::fixture::Fixture;
use crate::random::play::Play;
pub(crate) use crate::random::step::{Mix, Step};
use crate::recorder::Recorder;

/// How many steps a history has at most.
const LONGEST: usize = 80;
/// How many histories are played at least, and after how long no further one is begun, at the default
/// budget.
const LEAST: usize = 4;
const ENOUGH: Duration = Duration::from_secs(8);
/// How many histories are tried at most to make a failing one shorter, and after how long no further one is.
const MOST_SHRINKS: usize = 400;
const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// Plays random histories of this mix of operations; the budget says how many.
pub(crate) async fn play(t: &Fixture, mix: &'static Mix) -> Outcome {
    let mut handles = vec![t.backend.clone()];
    if mix.handles > 0 {
        handles.push(t.second_handle().await?);
    }
    let histories = u32::try_from(t.budget().times(40)).unwrap_or(u32::MAX);
    let (to_play, mut asked) = mpsc::channel(1);
    let (answer, answers) = blocking::channel();
    let seed = seed(t);
    // Generating and shrinking blocks, so it has a thread of its own, which ends with this future.
    let shrunk = tokio::task::spawn_blocking(move || {
        let config = Config {
            cases: histories,
            failure_persistence: None,
            // It prints a line when it comes to that: the end is said by what is answered.
            max_shrink_iters: u32::MAX - 1,
            ..Config::default()
        };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(config, rng);
        runner.run(&vec(mix.steps(), 1..=LONGEST), |steps| {
            let over = |_| TestCaseError::fail("the case is over");
            to_play
                .blocking_send(steps)
                .map_err(|_| TestCaseError::fail("the case is over"))?;
            match answers.recv().map_err(over)? {
                true => Ok(()),
                false => Err(TestCaseError::fail("it disagrees with the model")),
            }
        })
    });
    let (mut last_failure, mut found_with) = (None, 0);
    let (mut shrinks, mut found) = (0, Instant::now());
    let least = t.budget().times(LEAST);
    let (started, mut played) = (Instant::now(), 0);
    while let Some(steps) = asked.recv().await {
        // A store on a disk is slower than one in memory: a few of the histories will do there.
        let is_enough = played >= least && started.elapsed() > t.budget().time(ENOUGH);
        if last_failure.is_none() && is_enough {
            let _ = answer.send(true);
            continue;
        }
        if last_failure.is_some() {
            shrinks += 1;
            if shrinks > MOST_SHRINKS || found.elapsed() > LONG_ENOUGH {
                // The shortest one so far stays the shortest.
                let _ = answer.send(true);
                continue;
            }
        }
        played += 1;
        let outcome = once(t, &mut handles, &steps).await;
        let agrees = outcome.is_ok();
        if !agrees && last_failure.is_none() {
            (found_with, found) = (steps.len(), Instant::now());
        }
        last_failure = outcome.err().or(last_failure);
        let _ = answer.send(agrees);
    }
    match shrunk.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(TestError::Fail(_, shortest))) => {
            // Once more, so that the history of the case is that of the shortest one.
            let again = once(t, &mut handles, &shortest).await;
            t.note(format_args!(
                "a history of {found_with} steps was shortened to {}, each compared with the model",
                shortest.len()
            ));
            again?;
            let unsteady = || Failure::Undecided("a history failed only once".to_owned());
            Err(last_failure.unwrap_or_else(unsteady))
        }
        Ok(Err(TestError::Abort(why))) => Err(Failure::Undecided(format!("gave up: {why}"))),
        Err(panic) => Err(Failure::Undecided(format!("generating failed: {panic}"))),
    }
}

/// One history, on streams of its own.
async fn once(t: &Fixture, handles: &mut [Recorder], steps: &[Step]) -> Outcome {
    t.forget_history();
    let mut play = Play::new(t, handles).await?;
    for step in steps {
        play.step(step).await?;
    }
    play.finish().await?;
    t.tally().histories(1);
    Ok(())
}

/// The same for the same seed of the run.
fn seed(t: &Fixture) -> [u8; 32] {
    let mut seed = [0; 32];
    for chunk in seed.chunks_mut(8) {
        chunk.copy_from_slice(&t.random(u64::MAX).to_le_bytes());
    }
    seed
}
