//! A state of a store that is possible while something may still happen to it.

use rheo_core::{Operation, Timestamp};

use crate::expect::Outcome;
use crate::model::Model;
use crate::stage::{Interrupted, Parts, Stage};

/// A state that is possible.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    /// What has happened of the effect.
    pub(crate) done: Parts,
    /// What may still happen, for each call that nobody knows the end of.
    pub(crate) on_its_way: Vec<Parts>,
    pub(crate) model: Model,
}

impl State {
    /// A call was made that may have done these parts, or may do them later.
    pub(crate) fn expects(&mut self, parts: Parts) {
        if parts != 0 {
            self.on_its_way.push(parts);
        }
    }

    /// The same after some parts of one of the calls came to pass at a moment; nothing where they cannot.
    async fn after(
        &self,
        stage: &Stage,
        which: Interrupted,
        call: usize,
        parts: Parts,
        moment: Timestamp,
    ) -> Outcome<Option<Self>> {
        let done = self.done | parts;
        // Claims come in order.
        let passes_over = which.0 == Operation::Fetch && done & (done + 1) != 0;
        if passes_over {
            return Ok(None);
        }
        let mut later = self.clone();
        later.done = done;
        later.on_its_way[call] &= !parts;
        later.on_its_way.retain(|parts| *parts != 0);
        let happens = stage.happens(&mut later.model, which, parts, moment);
        Ok(happens.await?.then_some(later))
    }
}

/// Every state that states may have become, by what may have come to pass of the operation at any of some
/// moments.
pub(crate) async fn reachable(
    states: &[State],
    stage: &Stage,
    which: Interrupted,
    moments: &[Timestamp],
) -> Outcome<Vec<State>> {
    let mut reachable = states.to_vec();
    let mut next = 0;
    while let Some(state) = reachable.get(next).cloned() {
        next += 1;
        for (call, may_come) in state.on_its_way.iter().enumerate() {
            let is_repeated = state.on_its_way[..call].contains(may_come);
            let chosen = (1..=*may_come).filter(|parts| parts & !may_come == 0);
            for parts in chosen.filter(|_| !is_repeated) {
                for moment in moments {
                    let later = state.after(stage, which, call, parts, *moment).await?;
                    if let Some(later) = later.filter(|later| !reachable.contains(later)) {
                        reachable.push(later);
                    }
                }
            }
        }
    }
    Ok(reachable)
}
