//! Defects in the handling of leases, said in one or two hooks each.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rheo_core::{
    Error, FetchOptions, GroupName, GroupOptions, Lease, LeaseDuration, LeaseId, Reason, Replay,
    ResetOptions, Result, RetryOptions, RetryOutcome, StreamName, Timestamp, async_trait,
};

use crate::defect::{Defect, Real};
pub(crate) use crate::journal::{Place, place_of};

/// What is done with a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Renew,
    Ack,
    Retry,
    Reject,
}

/// How a group goes back.
pub(crate) enum Back<'a> {
    Replay(&'a Replay),
    Reset,
}

/// Hooks around the operations on leases; each does nothing unless it is overridden.
#[async_trait]
pub(crate) trait Tweak: Send + Sync + 'static {
    /// Changes how a group is made.
    fn creating(&self, _: &StreamName, _: &GroupName, _: &mut GroupOptions) {}
    /// Changes what is fetched.
    fn asked(&self, _now: Timestamp, _: &mut FetchOptions) {}
    /// Does something else before a fetch.
    async fn before_fetch(&self, _: &Real, _: &StreamName, _: &GroupName, _: &mut FetchOptions) {}
    /// Whether a lease is handed out; one that is not is acked instead, so that its event is missed.
    fn keeps(&self, _: &Lease) -> bool {
        true
    }
    /// Changes a lease that is handed out.
    fn claimed(&self, _now: Timestamp, _: &mut Lease) {}
    /// Changes all that a fetch hands out.
    fn fetched(&self, _: &FetchOptions, _: &mut Vec<Lease>) {}
    /// Changes a lease that comes back.
    fn presented(&self, _now: Timestamp, _: Step, _: &mut Lease) {}
    /// Changes for how long a lease is renewed.
    fn renewing(&self, _now: Timestamp, _: &Lease, _: &mut Duration) {}
    /// Changes the answer to a renewal.
    fn renewed(&self, _now: Timestamp, _: &mut Lease) {}
    /// Changes a retry.
    fn retrying(&self, _now: Timestamp, _: &Lease, _: &mut RetryOptions) {}
    /// Learns of a settle or renewal that was done.
    fn done(&self, _now: Timestamp, _: Step, _: &Lease) {}
    /// Whether a stale lease is answered with Ok.
    fn forgives(&self, _now: Timestamp, _: Step, _: &Lease) -> bool {
        false
    }
    /// Learns of a replay or a reset.
    fn went_back(&self, _: Back<'_>) {}
}

/// A lease as the hooks present it.
fn back<T: Tweak>(tweak: &T, now: Timestamp, step: Step, lease: &Lease) -> Lease {
    let mut presented = lease.clone();
    tweak.presented(now, step, &mut presented);
    presented
}

/// An answer as the hooks have it.
fn answer<T: Tweak, A>(
    tweak: &T,
    now: Timestamp,
    step: Step,
    lease: &Lease,
    result: Result<A>,
    forgiven: A,
) -> Result<A> {
    match result {
        Ok(answer) => {
            tweak.done(now, step, lease);
            Ok(answer)
        }
        Err(Error::StaleLease) if tweak.forgives(now, step, lease) => Ok(forgiven),
        Err(error) => Err(error),
    }
}

#[async_trait]
impl<T: Tweak> Defect for T {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let mut options = options.clone();
        self.creating(stream, group, &mut options);
        real.backend.create_group(stream, group, &options).await
    }

    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut options = options.clone();
        self.before_fetch(real, stream, group, &mut options).await;
        self.asked(real.now(), &mut options);
        let mut leases = Vec::new();
        for mut lease in real.backend.fetch(stream, group, &options).await? {
            if self.keeps(&lease) {
                self.claimed(real.now(), &mut lease);
                leases.push(lease);
            } else {
                real.backend.ack(&lease).await?;
            }
        }
        self.fetched(&options, &mut leases);
        Ok(leases)
    }

    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let now = real.now();
        let mut duration = duration.as_duration();
        self.renewing(now, lease, &mut duration);
        let duration = LeaseDuration::new(duration.max(Duration::from_micros(1)))?;
        let presented = back(self, now, Step::Renew, lease);
        let result = real.backend.renew(&presented, duration).await;
        let renewed = answer(self, now, Step::Renew, lease, result, lease.clone())?;
        let mut renewed = Lease {
            expires_at: renewed.expires_at,
            ..lease.clone()
        };
        self.renewed(now, &mut renewed);
        Ok(renewed)
    }

    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let now = real.now();
        let result = real.backend.ack(&back(self, now, Step::Ack, lease)).await;
        answer(self, now, Step::Ack, lease, result, ())
    }

    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let now = real.now();
        let mut options = options.clone();
        self.retrying(now, lease, &mut options);
        let presented = back(self, now, Step::Retry, lease);
        let result = real.backend.retry(&presented, &options).await;
        answer(
            self,
            now,
            Step::Retry,
            lease,
            result,
            RetryOutcome::Retrying,
        )
    }

    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        let now = real.now();
        let presented = back(self, now, Step::Reject, lease);
        let result = real.backend.reject(&presented, reason).await;
        answer(self, now, Step::Reject, lease, result, ())
    }

    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        self.went_back(Back::Replay(replay));
        Ok(())
    }

    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.reset_group(stream, group, options).await?;
        self.went_back(Back::Reset);
        Ok(())
    }
}

/// What is locked, whoever panicked meanwhile.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a lease one that nobody holds.
pub(crate) fn void(lease: &mut Lease) {
    lease.lease_id = LeaseId::new("void");
}

/// The claims that were handed out, in their order.
#[derive(Default)]
pub(crate) struct Claims(Mutex<Vec<Lease>>);

impl Claims {
    pub(crate) fn note(&self, lease: &Lease) {
        lock(&self.0).push(lease.clone());
    }

    pub(crate) fn all(&self) -> Vec<Lease> {
        lock(&self.0).clone()
    }

    /// The last claim of what a lease names.
    pub(crate) fn last_of(&self, lease: &Lease) -> Option<Lease> {
        let place = place_of(lease);
        let claims = lock(&self.0);
        claims
            .iter()
            .rfind(|claim| place_of(claim) == place)
            .cloned()
    }

    /// As it was noted last.
    pub(crate) fn by_id(&self, id: &LeaseId) -> Option<Lease> {
        lock(&self.0)
            .iter()
            .rfind(|claim| claim.lease_id == *id)
            .cloned()
    }

    /// The claims of a group whose leases have ended by then.
    pub(crate) fn expired(
        &self,
        stream: &StreamName,
        group: &GroupName,
        now: Timestamp,
    ) -> Vec<Lease> {
        let mut claims = self.all();
        claims.retain(|claim| {
            claim.expires_at <= now && claim.event.stream == *stream && claim.group == *group
        });
        claims
    }
}

/// Lease ids that are not the real ones.
#[derive(Default)]
pub(crate) struct Aliases(Mutex<HashMap<(Place, LeaseId), LeaseId>>);

impl Aliases {
    /// Gives a lease another id.
    pub(crate) fn rename(&self, lease: &mut Lease, alias: LeaseId) {
        let key = (place_of(lease), alias.clone());
        let real = std::mem::replace(&mut lease.lease_id, alias);
        lock(&self.0).insert(key, real);
    }

    /// Gives a lease its real id.
    pub(crate) fn restore(&self, lease: &mut Lease) {
        let key = (place_of(lease), lease.lease_id.clone());
        if let Some(real) = lock(&self.0).get(&key) {
            lease.lease_id = real.clone();
        }
    }
}
