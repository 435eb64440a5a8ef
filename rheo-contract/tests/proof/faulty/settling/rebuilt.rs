//! Attempts that are taken from the lease that is handed in.

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{
    DeadLetter, DeadLetterOptions, EventId, GroupName, GroupOptions, Lease, Reason, Replay, Result,
    RetryOptions, RetryOutcome, StreamName, Timestamp, async_trait,
};

use super::Maxima;
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Back, Place, Tweak, lock, place_of};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        RetryGoesByTheGivenAttempt: "a retry compares the attempt of the lease that it is given",
        says: "of leases that say 1",
        kills: [
            "leases::LSE-2::the_attempt_of_a_lease_decides_nothing",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
        ],
    },
    faulty! {
        RenewalStoresTheGivenAttempt: "a renewal stores the attempt of the lease that it is given",
        says: "renewed by a lease that said 1",
        kills: ["leases::LSE-2::the_attempt_of_a_renewed_lease_is_not_stored"],
    },
    faulty! {
        DeadLetterHasTheGivenAttempt: "a rejected event is dead at the attempt of the lease that was given",
        says: "the dead letter",
        kills: ["dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim"],
    },
];

#[derive(Default)]
struct RetryGoesByTheGivenAttempt;

#[async_trait]
impl Defect for RetryGoesByTheGivenAttempt {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let maxima = real.beside.of::<Maxima>();
        maxima.note(stream, group, options);
        real.backend.create_group(stream, group, options).await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        if real.beside.of::<Maxima>().is_used_up(lease) {
            let reason = options.reason.clone().unwrap_or_else(Reason::max_attempts);
            real.backend.reject(lease, &reason).await?;
            return Ok(RetryOutcome::DeadLettered);
        }
        if real.backend.retry(lease, options).await? == RetryOutcome::DeadLettered {
            let again = Replay::Events(vec![lease.event.id]);
            let (stream, group) = (&lease.event.stream, &lease.group);
            real.backend.replay(stream, group, &again).await?;
        }
        Ok(RetryOutcome::Retrying)
    }
}

#[derive(Default)]
struct RenewalStoresTheGivenAttempt(Mutex<HashMap<Place, u32>>);

impl Tweak for RenewalStoresTheGivenAttempt {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        if let Some(given) = lock(&self.0).remove(&place_of(lease)) {
            lease.attempt = given + 1;
        }
    }
    fn renewed(&self, _: Timestamp, lease: &mut Lease) {
        lock(&self.0).insert(place_of(lease), lease.attempt);
    }
    fn went_back(&self, _: Back<'_>) {
        lock(&self.0).clear();
    }
}

#[derive(Default)]
struct DeadLetterHasTheGivenAttempt(Mutex<HashMap<(GroupName, EventId), u32>>);

#[async_trait]
impl Defect for DeadLetterHasTheGivenAttempt {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(lease, reason).await?;
        let key = (lease.group.clone(), lease.event.id);
        lock(&self.0).insert(key, lease.attempt);
        Ok(())
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        for letter in &mut dead {
            let key = (letter.group.clone(), letter.event.id);
            letter.attempt = lock(&self.0).get(&key).copied().unwrap_or(letter.attempt);
        }
        Ok(dead)
    }
}
