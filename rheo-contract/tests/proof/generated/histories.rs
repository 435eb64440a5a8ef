//! Defects that need an interplay which no plain case has: two features that meet, or the fifth time.

use std::collections::BTreeMap;
use std::sync::Mutex;

use rheo_core::{
    FetchOptions, GroupName, Lease, LeaseDuration, Replay, ResetOptions, Result, StreamName,
    async_trait,
};

use crate::book::held;
use crate::defect::{Defect, Real};
use crate::faulty::{Faulty, faulty};

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        ReplayRightAfterResetIsLost: "a replay of a group whose last change was a reset does nothing",
        says: "the lag of",
        kills: ["histories::RPL-1::random_replays_and_resets_agree_with_the_model"],
    },
    faulty! {
        FifthAckIsForgotten: "every fifth ack of a handle is Ok and is not written",
        says: "of",
        kills: ["histories::DLV-6::random_deliveries_agree_with_the_model"],
    },
];

type Key = (StreamName, GroupName);

#[derive(Default)]
struct ReplayRightAfterResetIsLost(Mutex<BTreeMap<Key, bool>>);

#[async_trait]
impl Defect for ReplayRightAfterResetIsLost {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.reset_group(stream, group, options).await?;
        held(&self.0).insert((stream.clone(), group.clone()), true);
        Ok(())
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let key = (stream.clone(), group.clone());
        if held(&self.0).remove(&key) == Some(true) && matches!(replay, Replay::After { .. }) {
            return real.backend.lag(stream, group).await.map(drop);
        }
        real.backend.replay(stream, group, replay).await
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        if !leases.is_empty() {
            held(&self.0).remove(&(stream.clone(), group.clone()));
        }
        Ok(leases)
    }
}

#[derive(Default)]
struct FifthAckIsForgotten(Mutex<u64>);

#[async_trait]
impl Defect for FifthAckIsForgotten {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let fifth = {
            let mut acks = held(&self.0);
            *acks += 1;
            acks.is_multiple_of(5)
        };
        if fifth {
            let kept = lease.expires_at.saturating_since(real.now());
            let kept = LeaseDuration::new(kept).unwrap_or_default();
            return real.backend.renew(lease, kept).await.map(drop);
        }
        real.backend.ack(lease).await
    }
}
