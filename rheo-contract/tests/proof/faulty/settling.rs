//! Defects that the cases of `settling` are there for.

mod attempts;
mod lost;
mod rebuilt;
mod rejects;
mod retries;

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use rheo_core::{
    DeadLetter, DeadLetterOptions, GroupName, GroupOptions, Lag, Lease, MaxAttempts, Result,
    RetryDelay, RetryOptions, StreamName,
};

use super::Faulty;
use crate::defect::Real;
use crate::tweak::lock;

pub(super) const FAULTY: &[&[Faulty]] = &[
    retries::FAULTY,
    attempts::FAULTY,
    lost::FAULTY,
    rebuilt::FAULTY,
    rejects::FAULTY,
];

/// Changes the delay of a retry that has one.
fn delay(options: &mut RetryOptions, change: impl FnOnce(Duration) -> Duration) {
    if options.delay != RetryDelay::NONE {
        let changed = RetryDelay::new(change(options.delay.as_duration()));
        options.delay = changed.unwrap_or(options.delay);
    }
}

/// Changes the number of attempts that a group is made with.
fn attempts(options: &mut GroupOptions, change: impl FnOnce(u32) -> u32) {
    let changed = MaxAttempts::new(change(options.max_attempts.get()));
    options.max_attempts = changed.unwrap_or(options.max_attempts);
}

/// The `max_attempts` of each group.
#[derive(Default)]
struct Maxima(Mutex<HashMap<(StreamName, GroupName), u32>>);

impl Maxima {
    fn note(&self, stream: &StreamName, group: &GroupName, options: &GroupOptions) {
        let group = (stream.clone(), group.clone());
        let attempts = options.max_attempts.get();
        lock(&self.0).entry(group).or_insert(attempts);
    }
    fn is_used_up(&self, lease: &Lease) -> bool {
        let group = (lease.event.stream.clone(), lease.group.clone());
        lock(&self.0)
            .get(&group)
            .is_some_and(|max| lease.attempt >= *max)
    }
}

/// Puts the frontiers of a group below its dead letters for which that holds.
async fn hold_frontiers(
    real: &Real,
    stream: &StreamName,
    group: &GroupName,
    holds: impl Fn(&DeadLetter) -> bool,
) -> Result<Lag> {
    let mut lag = real.backend.lag(stream, group).await?;
    let all = DeadLetterOptions::new().with_limit(u32::MAX);
    let dead = real.backend.dead_letters(stream, group, &all).await?;
    for letter in dead.iter().filter(|letter| holds(letter)) {
        for progress in &mut lag.partitions {
            if progress.partition == letter.event.partition {
                progress.frontier = progress.frontier.min(letter.event.sequence.previous());
            }
        }
    }
    Ok(lag)
}
