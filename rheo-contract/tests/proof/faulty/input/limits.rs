//! Limits that are not the declared ones.

use rheo_core::{
    Capabilities, Cause, Error, Event, Guarantee, Limits, MAX_JSON_BYTES, Mechanism, NewEvent,
    OptionalOperation, Result, StreamName, async_trait,
};

use crate::defect::{Defect, Real, of_a_server};

fn limited(real: &Real, limits: Limits) -> Capabilities {
    let declared = of_a_server(&real.backend.capabilities());
    Capabilities::builder()
        .guarantees(
            Guarantee::ALL
                .iter()
                .copied()
                .filter(|g| declared.guarantees(*g)),
        )
        .mechanisms(Mechanism::ALL.iter().copied().filter(|m| declared.uses(*m)))
        .operations(OptionalOperation::ALL.iter().copied())
        .limits(limits)
        .build()
        .expect("a valid declaration")
}

#[derive(Default)]
pub(super) struct DeclaredJsonLimitIsUnchecked;

impl Defect for DeclaredJsonLimitIsUnchecked {
    fn capabilities(&self, real: &Real) -> Capabilities {
        limited(real, Limits::new().with_json_bytes(20_000))
    }
}

#[derive(Default)]
pub(super) struct JsonLimitIsOneLess;

#[async_trait]
impl Defect for JsonLimitIsOneLess {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        real.backend.ping().await?;
        if let Some(long) = events
            .iter()
            .find(|event| event.payload.byte_len() >= MAX_JSON_BYTES)
        {
            let bytes = long.payload.byte_len();
            return Err(Error::invalid("payload", bytes, "fewer bytes"));
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
pub(super) struct DeclaredBatchLimitIsUnchecked;

impl Defect for DeclaredBatchLimitIsUnchecked {
    fn capabilities(&self, real: &Real) -> Capabilities {
        limited(real, Limits::new().with_batch_events(60))
    }
}

#[derive(Default)]
pub(super) struct BatchesHaveABoundOfTheirOwn;

#[async_trait]
impl Defect for BatchesHaveABoundOfTheirOwn {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        if events.len() > 500 {
            return Err(Error::invalid("events", events.len(), "at most 500"));
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
pub(super) struct LimitsAreCheckedWhileWriting;

#[async_trait]
impl Defect for LimitsAreCheckedWhileWriting {
    fn capabilities(&self, real: &Real) -> Capabilities {
        limited(real, Limits::new().with_json_bytes(20_000))
    }
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let limits = *self.capabilities(real).limits();
        if let Err(beyond) = limits.check(&events) {
            for event in events {
                limits.check(std::slice::from_ref(&event))?;
                real.backend.append(stream, event).await?;
            }
            return Err(beyond);
        }
        real.backend.append_batch(stream, events).await
    }
}

/// Refuses batches that take more bytes than it declares.
macro_rules! bounded {
    ($type:ident, $most:expr, |$bytes:ident| $error:expr) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn append_batch(
                &self,
                real: &Real,
                stream: &StreamName,
                events: Vec<NewEvent>,
            ) -> Result<Vec<Event>> {
                let bytes = |event: &NewEvent| event.payload.byte_len() + event.metadata.byte_len();
                let $bytes: usize = events.iter().map(bytes).sum();
                if $bytes > $most {
                    return Err($error);
                }
                real.backend.append_batch(stream, events).await
            }
        }
    };
}

bounded!(BatchesOf4MegabytesFail, 4 << 20, |_bytes| {
    Error::Failed(Cause::new("the message is too large"))
});

bounded!(BatchesOf16MegabytesAreInvalid, 16 << 20, |bytes| {
    Error::invalid("events", bytes, "at most 16777216 bytes")
});

#[derive(Default)]
pub(super) struct DeclaredBatchBytesAreUnchecked;

impl Defect for DeclaredBatchBytesAreUnchecked {
    fn capabilities(&self, real: &Real) -> Capabilities {
        limited(real, Limits::new().with_batch_bytes(4 << 20))
    }
}
