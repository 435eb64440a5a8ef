//! Many events at once, in as few calls as a backend's declaration allows.

use rheo_core::{Backend, Event, Guarantee, NewEvent};
use serde_json::json;

use crate::expect::Outcome;
use crate::fixture::Fixture;
use crate::scene::Stream;

impl Stream {
    /// Appends all of them in this order: in batches where the backend takes them, else one by one.
    pub(crate) async fn append_all(&self, events: Vec<NewEvent>) -> Outcome<Vec<Event>> {
        let declared = self.backend.capabilities();
        let limits = *declared.limits();
        let most = match declared.guarantees(Guarantee::BatchWrites) {
            true => limits.batch_events.unwrap_or(usize::MAX),
            false => 1,
        };
        let mut appended = Vec::with_capacity(events.len());
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for event in events {
            let more = byte_len(&event);
            let is_full = bytes + more > limits.batch_bytes.unwrap_or(usize::MAX);
            if batch.len() == most || (is_full && !batch.is_empty()) {
                appended.extend(self.append_batch(std::mem::take(&mut batch)).await?);
                bytes = 0;
            }
            bytes += more;
            batch.push(event);
        }
        appended.extend(self.append_batch(batch).await?);
        Ok(appended)
    }

    async fn append_batch(&self, mut events: Vec<NewEvent>) -> Outcome<Vec<Event>> {
        match events.len() {
            1 => Ok(vec![self.append_event(events.remove(0)).await?]),
            _ => Ok(self.backend.append_batch(&self.name, events).await?),
        }
    }
}

/// What an event takes of a batch's limit.
pub(crate) fn byte_len(event: &NewEvent) -> usize {
    event.payload.byte_len() + event.metadata.byte_len()
}

/// An event of 500,000 bytes, or of as many as the declaration allows.
pub(crate) fn long_event(t: &Fixture) -> Outcome<NewEvent> {
    let limits = *t.capabilities().limits();
    let most = limits
        .json_bytes
        .min(limits.batch_bytes.unwrap_or(usize::MAX));
    of_bytes(most.min(500_000))
}

/// An event whose payload and metadata have that many bytes together.
pub(crate) fn of_bytes(bytes: usize) -> Outcome<NewEvent> {
    let around = r#"{"text":""}{}"#.len();
    let text = "x".repeat(bytes.saturating_sub(around));
    Ok(NewEvent::new("order.placed", json!({ "text": text }))?)
}
