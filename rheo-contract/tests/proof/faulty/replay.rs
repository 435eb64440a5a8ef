//! Defects that the cases of `replay` are there for.

mod after;
mod below;
mod chosen;
mod errors;
mod forward;
mod frontier;
mod old;
mod others;
mod racing;

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{GroupName, Replay, Sequence, StreamName};

use super::Faulty;
use crate::book::held;
use crate::defect::Real;

pub(super) const FAULTY: &[&[Faulty]] = &[
    chosen::FAULTY,
    after::FAULTY,
    below::FAULTY,
    frontier::FAULTY,
    forward::FAULTY,
    others::FAULTY,
    old::FAULTY,
    racing::FAULTY,
    errors::FAULTY,
];

/// The sequence of a replay after one sequence.
fn sequence_of(replay: &Replay) -> Option<Sequence> {
    match replay {
        Replay::After { sequence, .. } => Some(*sequence),
        _ => None,
    }
}

/// The start of each group, in partition 0.
type Starts = Mutex<HashMap<(StreamName, GroupName), Sequence>>;

/// Remembers where a group starts, right after it was created or reset.
async fn note_start(starts: &Starts, real: &Real, stream: &StreamName, group: &GroupName) {
    if let Ok(lag) = real.backend.lag(stream, group).await {
        let start = lag.partitions[0].frontier;
        held(starts).insert((stream.clone(), group.clone()), start);
    }
}

fn start_of(starts: &Starts, stream: &StreamName, group: &GroupName) -> Sequence {
    held(starts)
        .get(&(stream.clone(), group.clone()))
        .copied()
        .unwrap_or_default()
}
