//! Batches that are neither whole nor in order.

use std::collections::HashSet;

use rheo_core::{
    Cause, Error, Event, Guarantee, NewEvent, Operation, Partition, Result, StreamName,
    StreamOptions, async_trait,
};

use crate::defect::{Defect, Real};

macro_rules! appends {
    ($type:ident, |$real:ident, $stream:ident, $events:pat_param| $append:block) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn append_batch(
                &self,
                $real: &Real,
                $stream: &StreamName,
                $events: Vec<NewEvent>,
            ) -> Result<Vec<Event>> {
                $append
            }
        }
    };
}

appends!(BatchIsAnsweredFromTheEnd, |real, stream, events| {
    let mut appended = real.backend.append_batch(stream, events).await?;
    appended.reverse();
    Ok(appended)
});

appends!(BatchIsAnsweredByPartition, |real, stream, events| {
    let mut appended = real.backend.append_batch(stream, events).await?;
    appended.sort_by_key(|event| (event.partition, event.sequence));
    Ok(appended)
});

appends!(BatchIsWrittenBackwards, |real, stream, mut events| {
    events.reverse();
    let mut appended = real.backend.append_batch(stream, events).await?;
    appended.reverse();
    Ok(appended)
});

appends!(BatchIsWrittenOneByOne, |real, stream, events| {
    let mut appended = real.backend.append_batch(stream, vec![]).await?;
    for event in events {
        appended.push(real.backend.append(stream, event).await?);
    }
    Ok(appended)
});

appends!(BatchTakesAnIdTwice, |real, stream, mut events| {
    let mut seen = HashSet::new();
    for event in &mut events {
        if event.id.is_some_and(|id| !seen.insert(id)) {
            event.id = None;
        }
    }
    real.backend.append_batch(stream, events).await
});

appends!(
    BatchIsCommittedPartitionByPartition,
    |real, stream, events| {
        let partition = |event: &NewEvent| event.partition.unwrap_or_default();
        let numbers: Vec<Partition> = events.iter().map(partition).collect();
        let mut by_partition = numbers.clone();
        by_partition.sort();
        by_partition.dedup();
        let mut appended: Vec<Option<Event>> = vec![None; events.len()];
        if by_partition.len() < 2 {
            return real.backend.append_batch(stream, events).await;
        }
        for of in by_partition {
            let places: Vec<usize> = (0..events.len()).filter(|at| numbers[*at] == of).collect();
            let part = places.iter().map(|at| events[*at].clone()).collect();
            for (at, event) in places
                .iter()
                .zip(real.backend.append_batch(stream, part).await?)
            {
                appended[*at] = Some(event);
            }
        }
        Ok(appended.into_iter().flatten().collect())
    }
);

appends!(EmptyBatchIsAnError, |real, stream, events| {
    let is_empty = events.is_empty();
    let appended = real.backend.append_batch(stream, events).await?;
    if is_empty {
        return Err(Error::Failed(Cause::new(
            "a syntax error at or near VALUES",
        )));
    }
    Ok(appended)
});

appends!(EmptyBatchAsksForNoStream, |real, stream, events| {
    if events.is_empty() {
        return Ok(vec![]);
    }
    real.backend.append_batch(stream, events).await
});

appends!(AppendMakesTheStream, |real, stream, events| {
    match real.backend.append_batch(stream, events.clone()).await {
        Err(Error::StreamNotFound { .. }) if !events.is_empty() => {
            real.backend
                .create_stream(stream, &StreamOptions::new())
                .await?;
            real.backend.append_batch(stream, events).await
        }
        appended => appended,
    }
});

#[derive(Default)]
pub(super) struct BatchOfOneNeedsBatchWrites;

#[async_trait]
impl Defect for BatchOfOneNeedsBatchWrites {
    async fn append(&self, real: &Real, stream: &StreamName, event: NewEvent) -> Result<Event> {
        real.backend.append(stream, event).await
    }
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        if events.len() == 1 {
            crate::defect::without(&real.backend.capabilities(), &[Guarantee::BatchWrites])
                .require(Operation::AppendBatch, Guarantee::BatchWrites)?;
        }
        real.backend.append_batch(stream, events).await
    }
}
