//! Logs that delivery writes to.

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{
    Event, EventId, FetchOptions, GroupName, JsonObject, Lease, ReadOptions, Reason, Replay,
    ResetOptions, Result, RetryOptions, RetryOutcome, StreamName, async_trait,
};
use serde_json::json;

use crate::defect::{Defect, Real};

/// Ids of events that something happened to.
#[derive(Default)]
struct Marked(Mutex<HashSet<EventId>>);

impl Marked {
    fn mark(&self, event: &Event) {
        self.0.lock().expect("not poisoned").insert(event.id);
    }

    fn holds(&self, event: &Event) -> bool {
        self.0.lock().expect("not poisoned").contains(&event.id)
    }

    /// Reads without the events.
    async fn hide(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        events.retain(|event| !self.holds(event));
        Ok(events)
    }

    /// Reads with something about the events' delivery in their metadata.
    async fn show(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        for event in events.iter_mut().filter(|event| self.holds(event)) {
            event.metadata = JsonObject::metadata(json!({ "delivered": true })).expect("allowed");
        }
        Ok(events)
    }
}

#[derive(Default)]
pub(super) struct AckDeletesTheEvent(Marked);

#[async_trait]
impl Defect for AckDeletesTheEvent {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        self.0.mark(&lease.event);
        Ok(())
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        self.0.hide(real, stream, options).await
    }
}

#[derive(Default)]
pub(super) struct RetryMarksTheEvent(Marked);

#[async_trait]
impl Defect for RetryMarksTheEvent {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let outcome = real.backend.retry(lease, options).await?;
        if outcome == RetryOutcome::Retrying {
            self.0.mark(&lease.event);
        }
        Ok(outcome)
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        self.0.show(real, stream, options).await
    }
}

#[derive(Default)]
pub(super) struct RejectMarksTheEvent(Marked);

#[async_trait]
impl Defect for RejectMarksTheEvent {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(lease, reason).await?;
        self.0.mark(&lease.event);
        Ok(())
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        self.0.show(real, stream, options).await
    }
}

#[derive(Default)]
pub(super) struct LastRetryMovesTheEventOut(Marked);

#[async_trait]
impl Defect for LastRetryMovesTheEventOut {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let outcome = real.backend.retry(lease, options).await?;
        if outcome == RetryOutcome::DeadLettered {
            self.0.mark(&lease.event);
        }
        Ok(outcome)
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        self.0.hide(real, stream, options).await
    }
}

#[derive(Default)]
pub(super) struct ReclaimMarksTheEvent(Marked);

#[async_trait]
impl Defect for ReclaimMarksTheEvent {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        for lease in leases.iter().filter(|lease| lease.attempt == 2) {
            self.0.mark(&lease.event);
        }
        Ok(leases)
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        self.0.show(real, stream, options).await
    }
}

#[derive(Default)]
pub(super) struct ReplayMarksTheEvents(Marked);

#[async_trait]
impl Defect for ReplayMarksTheEvents {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        if let Replay::After { sequence, .. } = replay {
            let options = ReadOptions::new().with_after(*sequence);
            for event in real.backend.read(stream, &options).await? {
                self.0.mark(&event);
            }
        }
        Ok(())
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        self.0.show(real, stream, options).await
    }
}

#[derive(Default)]
pub(super) struct ResetEmptiesTheLog(Marked);

#[async_trait]
impl Defect for ResetEmptiesTheLog {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.reset_group(stream, group, options).await?;
        let all = ReadOptions::new().with_limit(u32::MAX);
        for event in real.backend.read(stream, &all).await? {
            self.0.mark(&event);
        }
        Ok(())
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        self.0.hide(real, stream, options).await
    }
}
