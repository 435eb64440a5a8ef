//! Waiting until there may be work: looking every so often, and at once for what this handle did or the
//! change stream tells.

use std::time::Duration;

use rheo_core::{GroupName, Partition, Result, StreamName, Wakeup};
use tokio::time::{Instant, timeout_at};

use crate::store::Store;

/// Who waits longer than that is told that the time is up.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Store {
    /// Waits until something might be claimable (OPS-4).
    pub(crate) async fn wait_for_work(
        &self,
        stream: &StreamName,
        group: &GroupName,
        patience: Duration,
    ) -> Result<Wakeup> {
        let end = Instant::now() + patience.min(LONGEST);
        let mut heard = self.feed.listen(&self.config);
        loop {
            // Hears every notification from here on, so none is lost between looking and waiting.
            let woken = self.work.notified();
            let deadline = self.deadline();
            let (stream, group) = self.group(deadline, stream, group).await?;
            let all: Vec<Partition> = stream.count.partitions().collect();
            if !self
                .with_work(deadline, &stream, &group, &all)
                .await?
                .is_empty()
            {
                return Ok(Wakeup::MaybeWork);
            }
            if Instant::now() >= end {
                return Ok(Wakeup::TimedOut);
            }
            let look_again = end.min(Instant::now() + self.config.poll_interval());
            let told = async {
                tokio::select! {
                    () = woken => {}
                    () = heard.hear_of(&stream.id) => {}
                }
            };
            let _ = timeout_at(look_again, told).await;
        }
    }
}
