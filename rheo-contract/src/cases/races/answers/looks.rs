//! What only looks, and what waits.

use std::time::{Duration, Instant};

use rheo_core::{
    Backend, DeadLetterOptions, ErrorKind, Event, Gate, GroupName, Guarantee, Lag,
    OptionalOperation, Partition, PartitionLag, Query, ReadOptions, Sequence, Start, StreamName,
    Timestamp, Wakeup,
};

use super::{Ask, Progress, Scene, ask, offers};
use crate::expect::{Outcome, expect, expect_eq, expect_error};
use crate::scene::Group;

/// Longer than a hint about work that is there should take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Timeouts of waits for nothing.
const TIMEOUTS: [Duration; 4] = [
    Duration::from_millis(5),
    Duration::from_millis(120),
    Duration::from_millis(10),
    Duration::from_millis(60),
];

impl Scene {
    /// Reads, queries and lags, and what is missing.
    pub(super) async fn look(&self) -> Outcome {
        let mut asks = Vec::new();
        self.reads(&mut asks)?;
        self.queries(&mut asks)?;
        self.groups_looked_at(&mut asks)?;
        self.at_once(asks).await
    }

    fn reads(&self, asks: &mut Vec<Ask>) -> Outcome {
        for (stream, log) in &self.logs {
            for (at, events) in log.iter().enumerate() {
                for (after, limit) in [(0, 3), (2, 3), (2, 2)] {
                    let partition = Partition::new(u32::try_from(at).unwrap_or(u32::MAX));
                    let options = ReadOptions::new()
                        .with_partition(partition)
                        .with_after(Sequence::new(after)?)
                        .with_limit(limit);
                    let rest = events.iter().filter(|event| event.sequence.get() > after);
                    let expected: Vec<Event> = rest.take(limit as usize).cloned().collect();
                    let (handle, name) = (self.handle(asks.len()), stream.name.clone());
                    asks.push(ask(async move {
                        let seen = handle.read(&name, &options).await?;
                        expect_eq("the events that this call reads", seen, expected)
                    }));
                }
            }
        }
        let missing = StreamName::new("missing")?;
        let handle = self.handle(asks.len());
        asks.push(ask(async move {
            let read = handle.read(&missing, &ReadOptions::new()).await;
            expect_error(read, ErrorKind::StreamNotFound).map(drop)
        }));
        Ok(())
    }

    fn queries(&self, asks: &mut Vec<Ask>) -> Outcome {
        if !offers(
            &self.handle(0),
            Gate::Guarantee(Guarantee::OrderedRangeScan),
        ) {
            return Ok(());
        }
        for (stream, log) in &self.logs {
            let mut all: Vec<Event> = log.iter().flatten().cloned().collect();
            all.sort_by_key(|event| (event.sequence, event.partition));
            let whole = Query::new().with_limit(50);
            for query in [
                whole.clone().with_limit(4),
                whole.clone().with_after_sequence(Sequence::new(3)?),
                whole
                    .with_until_sequence(Sequence::new(2)?)
                    .with_partition(Partition::ZERO),
            ] {
                let found = all.iter().filter(|event| query.matches(event));
                let limit = query.limit() as usize;
                let expected: Vec<Event> = found.take(limit).cloned().collect();
                let (handle, name) = (self.handle(asks.len()), stream.name.clone());
                asks.push(ask(async move {
                    let seen = handle.query(&name, &query).await?.events;
                    expect_eq("the events that this call finds", seen, expected)
                }));
            }
        }
        Ok(())
    }

    fn groups_looked_at(&self, asks: &mut Vec<Ask>) -> Outcome {
        let frontier = Gate::Guarantee(Guarantee::ContiguousFrontier);
        let letters = Gate::Operation(OptionalOperation::DeadLetters);
        for progress in &self.groups {
            let (stream, name) = names(&progress.group);
            if offers(&self.handle(0), frontier) {
                let expected = self.lag_of(progress)?;
                let (handle, stream, name) =
                    (self.handle(asks.len()), stream.clone(), name.clone());
                asks.push(ask(async move {
                    let seen = handle.lag(&stream, &name).await?;
                    expect_eq("the lag that this call asks for", seen, expected)
                }));
            }
            for after in [0, 1] {
                if !offers(&self.handle(0), letters) {
                    continue;
                }
                let mut options = DeadLetterOptions::new().with_limit(1);
                options.after = (after > 0).then(|| progress.dead[0].event.id);
                let mut expected = vec![progress.dead[after].clone()];
                let (handle, stream, name) =
                    (self.handle(asks.len()), stream.clone(), name.clone());
                let has_exact_times = self.t.sets_the_clock();
                asks.push(ask(async move {
                    let mut seen = handle.dead_letters(&stream, &name, &options).await?;
                    if !has_exact_times {
                        let letters = seen.iter_mut().chain(&mut expected);
                        letters.for_each(|letter| letter.dead_at = Timestamp::UNIX_EPOCH);
                    }
                    expect_eq("the dead letter that this call asks for", seen, expected)
                }));
            }
        }
        if offers(&self.handle(0), frontier) {
            let (stream, _) = names(&self.groups[0].group);
            let nobody = GroupName::new("nobody")?;
            let handle = self.handle(asks.len());
            asks.push(ask(async move {
                let lag = handle.lag(&stream, &nobody).await;
                expect_error(lag, ErrorKind::GroupNotFound).map(drop)
            }));
        }
        Ok(())
    }

    fn lag_of(&self, progress: &Progress) -> Outcome<Lag> {
        let mut partitions = Vec::new();
        for (at, events) in self.logs[progress.stream].1.iter().enumerate() {
            let done = if at == 0 { progress.done() } else { 0 };
            partitions.push(PartitionLag {
                partition: Partition::new(u32::try_from(at).unwrap_or(u32::MAX)),
                frontier: Sequence::new(done as u64)?,
                high_watermark: Sequence::new(events.len() as u64)?,
            });
        }
        Ok(Lag { partitions })
    }

    /// Waits for work that is there, and for none with timeouts that differ.
    pub(super) async fn wait(&self) -> Outcome {
        let waits = Gate::Operation(OptionalOperation::WaitForWork);
        if !offers(&self.handle(0), waits) {
            return Ok(());
        }
        let mut asks = Vec::new();
        for (stream, _) in &self.logs {
            for timeout in TIMEOUTS {
                let name = format!("idle-{}", timeout.as_millis());
                let (stream, name) = names(&stream.group_from(&name, Start::End).await?);
                let handle = self.handle(asks.len() / 2);
                asks.push(ask(async move {
                    let begun = Instant::now();
                    let hint = handle.wait_for_work(&stream, &name, timeout).await?;
                    let lasted = begun.elapsed();
                    expect(
                        // It may come for nothing, but the time is not up.
                        hint == Wakeup::MaybeWork || lasted >= timeout,
                        format!("this wait to end no sooner than after {timeout:?}"),
                        format!("{hint:?} after {lasted:?}"),
                    )
                }));
            }
        }
        for progress in &self.groups {
            let (stream, name) = names(&progress.group);
            let handle = self.handle(asks.len());
            asks.push(ask(async move {
                let hint = handle.wait_for_work(&stream, &name, PATIENCE).await?;
                expect_eq("the hint of this wait", hint, Wakeup::MaybeWork)
            }));
        }
        let (stream, _) = names(&self.groups[0].group);
        let (handle, nobody) = (self.handle(asks.len()), GroupName::new("nobody")?);
        asks.push(ask(async move {
            let waited = handle.wait_for_work(&stream, &nobody, PATIENCE).await;
            expect_error(waited, ErrorKind::GroupNotFound).map(drop)
        }));
        self.all_at_once(asks).await
    }
}

fn names(group: &Group) -> (StreamName, GroupName) {
    (group.stream.name.clone(), group.name.clone())
}
