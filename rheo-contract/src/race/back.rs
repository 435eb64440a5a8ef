//! How the groups of a history go back.

use std::collections::BTreeMap;

use rheo_core::{Backend, Lease, Partitions, Replay, ResetOptions, Start};

use super::{Track, What};
use crate::expect::Outcome;
use crate::fixture::Fixture;

/// A way to go back.
enum Back {
    Replay(Replay),
    Reset(ResetOptions),
}

impl Track {
    /// Replays or resets the group of a lease, so that it concerns its event, or ends just before it.
    pub(super) async fn go_back(
        &self,
        t: &Fixture,
        task: usize,
        dice: &mut fastrand::Rng,
        lease: Lease,
    ) -> Outcome {
        let backend = &self.handles[task % self.handles.len()];
        let back = self.way_back(dice, &lease);
        let (stream, group) = (&lease.event.stream, &lease.group);
        let (started, now) = (self.tick(), t.now());
        let what = match back {
            Back::Replay(replay) => {
                let replayed = backend.replay(stream, group, &replay).await;
                What::Replay(replay, replayed)
            }
            Back::Reset(options) => {
                let reset = backend.reset_group(stream, group, &options).await;
                What::Reset(options, reset)
            }
        };
        self.note(started, now, Some(group), what);
        Ok(())
    }

    /// Sequences of events that somebody claimed, so that no start is beyond the high watermark.
    fn way_back(&self, dice: &mut fastrand::Rng, lease: &Lease) -> Back {
        let partition = lease.event.partition;
        let sequence = match dice.u32(0..4) {
            0 => lease.event.sequence,
            _ => lease.event.sequence.previous(),
        };
        let partitions = match dice.bool() {
            true => Partitions::from(partition),
            false => Partitions::All,
        };
        let just_here = Partitions::from(partition);
        let others = (0..dice.usize(0..3)).filter_map(|_| self.lease(dice));
        let mut leases: Vec<Lease> = others.collect();
        leases.push(lease.clone());
        match dice.u32(0..10) {
            0..2 => Back::Replay(Replay::After {
                sequence,
                partitions,
            }),
            2..4 => {
                let each = leases.iter();
                let each =
                    each.map(|lease| (lease.event.partition, lease.event.sequence.previous()));
                Back::Replay(Replay::AfterEach(each.collect()))
            }
            4..7 => Back::Replay(Replay::Events(leases.iter().map(|l| l.event.id).collect())),
            7 => Back::Reset(ResetOptions::new().with_partitions(partitions)),
            8 => {
                let start = Start::AfterSequence(sequence);
                let options = ResetOptions::new().with_partitions(just_here);
                Back::Reset(options.with_start(start))
            }
            _ if dice.bool() => {
                let start = Start::AfterSequences(BTreeMap::from([(partition, sequence)]));
                Back::Reset(ResetOptions::new().with_start(start))
            }
            _ => {
                let options = ResetOptions::new().with_partitions(just_here);
                Back::Reset(options.with_start(Start::End))
            }
        }
    }
}
