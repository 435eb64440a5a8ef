//! Dead letters that say something else than what happened.

use rheo_core::{
    DeadLetter, DeadLetterOptions, FetchOptions, GroupName, Lease, LeaseDuration, Reason, Result,
    StreamName, async_trait,
};

use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::Claims;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        LateRejectSaysItExpired: "a reject of an expired lease has the reason of a lost one",
        says: "the dead letter",
        kills: ["dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter"],
    },
    faulty! {
        LostEventDiedAtItsExpiry: "an event that was lost at its last attempt died when its lease expired",
        says: "dead_at",
        kills: ["dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed"],
    },
];

#[derive(Default)]
struct LateRejectSaysItExpired;

#[async_trait]
impl Defect for LateRejectSaysItExpired {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        if lease.expires_at <= real.now() {
            return real.backend.reject(lease, &Reason::lease_expired()).await;
        }
        real.backend.reject(lease, reason).await
    }
}

#[derive(Default)]
struct LostEventDiedAtItsExpiry(Claims);

#[async_trait]
impl Defect for LostEventDiedAtItsExpiry {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        leases.iter().for_each(|lease| self.0.note(lease));
        Ok(leases)
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = real.backend.renew(lease, duration).await?;
        self.0.note(&renewed);
        Ok(renewed)
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        let claims = self.0.all();
        for letter in &mut dead {
            let is_its =
                |claim: &&Lease| claim.event.id == letter.event.id && claim.group == letter.group;
            if let Some(claim) = claims.iter().rfind(is_its)
                && letter.reason == Reason::lease_expired()
            {
                letter.dead_at = claim.expires_at;
            }
        }
        Ok(dead)
    }
}
