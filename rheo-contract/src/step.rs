//! What only the holder of a lease may do.

use std::time::Duration;

use rheo_core::{
    Backend, ErrorKind, Lease, LeaseDuration, Reason, Result, RetryDelay, RetryOptions,
};

use crate::expect::{Outcome, expect_error};
use crate::recorder::Recorder;

/// One of the four operations on a lease, with its usual arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Renew,
    Ack,
    Retry,
    Reject,
}

impl Step {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Renew, Self::Ack, Self::Retry, Self::Reject];
    /// Those that settle.
    pub(crate) const SETTLES: [Self; 3] = [Self::Ack, Self::Retry, Self::Reject];

    /// Does it.
    pub(crate) async fn on(self, backend: &Recorder, lease: &Lease) -> Result<()> {
        match self {
            Self::Renew => {
                let renewed = backend.renew(lease, LeaseDuration::default()).await;
                renewed.map(drop)
            }
            Self::Ack => backend.ack(lease).await,
            Self::Retry => {
                let retried = backend.retry(lease, &RetryOptions::new()).await;
                retried.map(drop)
            }
            Self::Reject => backend.reject(lease, &Reason::new("no good")).await,
        }
    }

    /// Does it with many in one call.
    pub(crate) async fn on_all(self, backend: &Recorder, leases: &[Lease]) -> Vec<Result<()>> {
        fn without_answers<T>(results: Vec<Result<T>>) -> Vec<Result<()>> {
            results.into_iter().map(|result| result.map(drop)).collect()
        }
        match self {
            Self::Renew => {
                let lasts = LeaseDuration::default();
                without_answers(backend.renew_batch(leases, lasts).await)
            }
            Self::Ack => backend.ack_batch(leases).await,
            Self::Retry => {
                let options = RetryOptions::new();
                without_answers(backend.retry_batch(leases, &options).await)
            }
            Self::Reject => backend.reject_batch(leases, &Reason::new("no good")).await,
        }
    }
}

/// Demands that each step with this lease is refused as stale.
pub(crate) async fn expect_stale(backend: &Recorder, lease: &Lease) -> Outcome {
    for step in Step::ALL {
        expect_error(step.on(backend, lease).await, ErrorKind::StaleLease)?;
    }
    Ok(())
}

/// A retry that makes the event wait.
pub(crate) fn retry_after(delay: Duration) -> Outcome<RetryOptions> {
    Ok(RetryOptions::new().with_delay(RetryDelay::new(delay)?))
}
