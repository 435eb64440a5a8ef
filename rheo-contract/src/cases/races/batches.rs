//! Batches at once that share some of their ids, and partitions, each in an order of its own.

use std::collections::BTreeMap;

use rheo_core::{
    Backend, Error, ErrorKind, Event, EventId, Gate, Guarantee, NewEvent, Partition, Sequence,
    StreamName,
};

use crate::expect::{Outcome, expect, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::recorder::Recorder;
use crate::scene::at_once;

const WRITERS: usize = 8;
const ROUNDS: usize = 15;
/// The ids of a round: so few that hardly two batches have none in common.
const IDS: usize = 5;
/// The most of them that a batch has.
const MOST: u64 = 4;

/// Producers that repeat what got no answer, and put it together anew: who is refused was refused for an
/// event that is there, not for another one that was refused as well.
pub(super) async fn batches_at_once_that_share_ids_are_whole_or_refused(t: Fixture) -> Outcome {
    let declares = |guarantee| Gate::Guarantee(guarantee).is_declared(&t.capabilities());
    let mut handles = vec![t.backend.clone()];
    if declares(Guarantee::Distributed) {
        handles.push(t.second_handle().await?);
    }
    let partitions = if declares(Guarantee::Partitions) {
        3
    } else {
        1
    };
    for _ in 0..t.budget().times(ROUNDS) {
        t.forget_history();
        let stream = t.stream(partitions).await?;
        let ids: Vec<EventId> = (0..IDS).map(|_| t.unknown_id()).collect();
        let batches: Vec<Vec<NewEvent>> =
            (0..WRITERS).map(|_| batch(&t, partitions, &ids)).collect();
        let results = at_once(WRITERS, |writer| {
            let (name, batch) = (stream.name.clone(), batches[writer].clone());
            let handle = handles[writer % handles.len()].clone();
            async move { (appended(&handle, &name, &batch).await, batch) }
        });
        let results = results.await?;
        t.tally().interleaved_operations(WRITERS as u64);

        let mut log = Vec::new();
        for partition in (0..partitions).map(Partition::new) {
            log.extend(stream.read(partition).await?);
        }
        let mut written: Vec<Event> = Vec::new();
        let (mut answers, mut refused) = (Vec::new(), Vec::new());
        for (result, batch) in results {
            match result {
                Ok(events) => {
                    written.extend(events.iter().cloned());
                    answers.push((batch, events));
                }
                // LOG-3: it may be there in some of its partitions.
                Err(Error::Ambiguous(_)) if is_spread(&batch) => {
                    written.extend(parts_in(&log, &batch)?);
                }
                lost => {
                    expect_error(lost, ErrorKind::AlreadyExists)?;
                    refused.push(batch);
                }
            }
        }
        written.sort_by_key(|event| (event.partition, event.sequence));
        expect_eq("the log: the batches that were written", &log, &written)?;
        for (batch, events) in answers {
            expect_answer(&batch, &events)?;
        }
        for batch in refused {
            let is_there = |new: &NewEvent| log.iter().any(|event| Some(event.id) == new.id);
            expect(
                batch.iter().any(is_there),
                "Err(AlreadyExists) only where one of the ids is in the log",
                "none of them is, in a batch that was refused",
            )?;
        }
    }
    Ok(())
}

/// What appending comes to in the end: a store that gave up on one of two transactions says so by an error
/// after which the same call may be made again.
async fn appended(
    handle: &Recorder,
    stream: &StreamName,
    batch: &[NewEvent],
) -> Result<Vec<Event>, Error> {
    const CALLS: usize = 20;
    let mut calls = 1;
    loop {
        match handle.append_batch(stream, batch.to_vec()).await {
            Err(Error::Failed(_)) if calls < CALLS => calls += 1,
            result => return result,
        }
    }
}

/// Events with some of the ids, in any order and any partitions.
fn batch(t: &Fixture, partitions: u32, ids: &[EventId]) -> Vec<NewEvent> {
    let mut left = ids.to_vec();
    let count = 2 + t.random(MOST - 1);
    let event = |_| {
        let at = usize::try_from(t.random(left.len() as u64)).unwrap_or(0);
        let partition = t.random(partitions.into());
        let partition = Partition::new(u32::try_from(partition).unwrap_or(0));
        let event = t.new_event().with_id(left.remove(at));
        event.with_partition(partition)
    };
    (0..count).map(event).collect()
}

/// Whether a batch is for several partitions.
fn is_spread(batch: &[NewEvent]) -> bool {
    batch.iter().any(|new| new.partition != batch[0].partition)
}

/// What the log has of a batch of which it is not known where it was written: in each partition all or
/// nothing, in input order and without a gap (LOG-3).
fn parts_in(log: &[Event], batch: &[NewEvent]) -> Outcome<Vec<Event>> {
    let mut parts: BTreeMap<Option<Partition>, Vec<&NewEvent>> = BTreeMap::new();
    for new in batch {
        parts.entry(new.partition).or_default().push(new);
    }
    let mut found = Vec::new();
    for part in parts.into_values() {
        // No two events of a case have the same payload.
        let is_of = |event: &&Event| part.iter().any(|new| new.payload == event.payload);
        let there: Vec<Event> = log.iter().filter(is_of).cloned().collect();
        if !there.is_empty() {
            let part: Vec<NewEvent> = part.into_iter().cloned().collect();
            expect_answer(&part, &there)?;
        }
        found.extend(there);
    }
    Ok(found)
}

/// LOG-3: the events in input order, one after the other in each partition.
fn expect_answer(batch: &[NewEvent], events: &[Event]) -> Outcome {
    let asked: Vec<_> = batch.iter().map(|new| (new.id, new.partition)).collect();
    let given = events.iter();
    let given: Vec<_> = given.map(|it| (Some(it.id), Some(it.partition))).collect();
    expect_eq("the ids and partitions of a batch (LOG-3)", given, asked)?;
    let mut last: BTreeMap<Partition, Sequence> = BTreeMap::new();
    for event in events {
        let before = last.insert(event.partition, event.sequence);
        let follows = before.is_none_or(|before| before.get() + 1 == event.sequence.get());
        expect(
            follows,
            "sequences without a gap in each partition of a batch (LOG-3)",
            format!("{before:?}, then {:?}", event.sequence),
        )?;
    }
    Ok(())
}
