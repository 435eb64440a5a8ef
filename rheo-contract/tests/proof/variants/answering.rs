//! Variants that do not always know what they did.

use std::sync::atomic::{AtomicUsize, Ordering};

use rheo_core::{
    Cause, Error, FetchOptions, GroupName, Lease, Reason, Result, RetryOptions, RetryOutcome,
    StreamName, async_trait,
};

use super::{Differing, Variant};
use crate::defect::{Defect, Real};

pub(super) const ALL: &[&dyn Variant] = &[&Differing(
    "AnswersAreLostInHistories",
    AnswersAreLost::default,
)];

/// Now and then the connection is lost before a fetch or a settle, or after it. It is so in concurrent
/// histories alone: other cases demand an answer.
#[derive(Default)]
struct AnswersAreLost(AtomicUsize);

impl AnswersAreLost {
    async fn lose<T>(
        &self,
        consumer: &str,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        const OF_A_HISTORY: &str = "task-";
        if !consumer.starts_with(OF_A_HISTORY) {
            return call.await;
        }
        let lost = Err(Error::Ambiguous(Cause::new("the connection was lost")));
        match self.0.fetch_add(1, Ordering::Relaxed) % 20 {
            7 => lost,
            14 => call.await.and(lost),
            _ => call.await,
        }
    }
}

#[async_trait]
impl Defect for AnswersAreLost {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let call = real.backend.fetch(stream, group, options);
        self.lose(options.consumer.as_str(), call).await
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        self.lose(lease.consumer.as_str(), real.backend.ack(lease))
            .await
    }
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let call = real.backend.retry(lease, options);
        self.lose(lease.consumer.as_str(), call).await
    }
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        let call = real.backend.reject(lease, reason);
        self.lose(lease.consumer.as_str(), call).await
    }
}
