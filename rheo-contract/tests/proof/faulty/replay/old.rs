//! Replays that leave something behind.

use std::sync::Mutex;

use rheo_core::{FetchOptions, GroupName, Lease, StreamName, Timestamp, async_trait};

use crate::defect::Real;
use crate::faulty::Faulty;
use crate::tweak::{Back, Claims, Place, Tweak, lock, place_of};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[faulty! {
    ReplayLeavesOldLeases: "an expired lease from before a replay hides what comes again above it",
    says: "the claimable sequences to be [2]",
    kills: [
        "replay::RPL-1::leases_from_before_a_replay_hold_up_nothing",
        "replay::RPL-1::old_deadlines_mean_nothing_after_a_replay",
        "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
        "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
        "replay::RPL-6::replay_touches_no_state_of_other_groups",
        "reset::RPL-5::old_deadlines_mean_nothing_after_a_reset",
        "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
        "reset::RPL-6::reset_touches_no_state_of_other_groups",
    ],
}];

#[derive(Default)]
struct ReplayLeavesOldLeases {
    claims: Claims,
    old: Mutex<Vec<Lease>>,
    gaps: Mutex<Vec<Place>>,
}

#[async_trait]
impl Tweak for ReplayLeavesOldLeases {
    async fn before_fetch(&self, real: &Real, _: &StreamName, _: &GroupName, _: &mut FetchOptions) {
        let mut old = lock(&self.old);
        let expired = old.extract_if(.., |lease| lease.expires_at <= real.now());
        lock(&self.gaps).extend(expired.map(|lease| place_of(&lease)));
    }
    fn keeps(&self, lease: &Lease) -> bool {
        let (stream, group, partition, sequence) = place_of(lease);
        let is_below = |gap: &Place| {
            (&gap.0, &gap.1, gap.2) == (&stream, &group, partition) && gap.3 < sequence
        };
        lease.attempt == 1 || !lock(&self.gaps).iter().any(is_below)
    }
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        self.claims.note(lease);
    }
    fn went_back(&self, _: Back<'_>) {
        *lock(&self.old) = self.claims.all();
    }
}
