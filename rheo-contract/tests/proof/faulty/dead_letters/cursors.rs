//! Pages of dead letters that are cut, or go on from what is not the group's.

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, Event, EventId, GroupName, ListOptions, NewEvent,
    Partition, Result, Sequence, StreamName, async_trait,
};

use crate::book::{all_dead, held, log_of};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        PagesOfTheDeadAreCutAt1000: "a page holds at most a thousand dead letters",
        says: "the page of dead letters",
        kills: [
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
        ],
    },
    faulty! {
        LongPagesOfTheDeadEndWithTheirPartition: "a page of more than a hundred is of one partition",
        says: "the page of dead letters",
        kills: ["dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions"],
    },
    faulty! {
        AfterMayBeOfANamesake: "the event given as after may be dead in a group of that name elsewhere",
        says: "Err(CursorNotFound)",
        kills: [
            "dead_letters::DLQ-5::an_after_of_a_namesake_is_cursor_not_found",
            "dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream",
        ],
    },
    faulty! {
        AfterMayBeAnyEventOfLaterPartitions: "in partitions after the first, after may be any event",
        says: "Err(CursorNotFound)",
        kills: ["dead_letters::DLQ-5::an_after_that_is_not_dead_is_found_in_no_partition"],
    },
    faulty! {
        AfterIsWhereItWasFirst: "the place of after is that in the first stream with such an event",
        says: "the sequences above `after`",
        kills: ["dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream"],
    },
];

#[derive(Default)]
struct PagesOfTheDeadAreCutAt1000;

#[async_trait]
impl Defect for PagesOfTheDeadAreCutAt1000 {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        dead.truncate(1_000);
        Ok(dead)
    }
}

#[derive(Default)]
struct LongPagesOfTheDeadEndWithTheirPartition;

#[async_trait]
impl Defect for LongPagesOfTheDeadEndWithTheirPartition {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        if dead.len() > 100 {
            let partition = dead[0].event.partition;
            dead.retain(|letter| letter.event.partition == partition);
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct AfterMayBeOfANamesake;

#[async_trait]
impl Defect for AfterMayBeOfANamesake {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let found = real.backend.dead_letters(stream, group, options).await;
        let Err(Error::CursorNotFound { after }) = found else {
            return found;
        };
        let all = ListOptions::new().with_limit(u32::MAX);
        for other in real.backend.list_streams(&all).await? {
            let dead = all_dead(real, &other.stream, group).await;
            let is_there = |letter: &DeadLetter| letter.event.id == after;
            if dead.unwrap_or_default().iter().any(is_there) {
                return Ok(Vec::new());
            }
        }
        found
    }
}

#[derive(Default)]
struct AfterIsWhereItWasFirst(Mutex<HashMap<EventId, (Partition, Sequence)>>);

#[async_trait]
impl Defect for AfterIsWhereItWasFirst {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let appended = real.backend.append_batch(stream, events).await?;
        for event in &appended {
            let place = (event.partition, event.sequence);
            held(&self.0).entry(event.id).or_insert(place);
        }
        Ok(appended)
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let page = real.backend.dead_letters(stream, group, options).await?;
        let first = options.after.and_then(|id| held(&self.0).get(&id).copied());
        let Some(first) = first else {
            return Ok(page);
        };
        let mut dead = all_dead(real, stream, group).await?;
        dead.retain(|letter| (letter.event.partition, letter.event.sequence) > first);
        dead.truncate(options.limit as usize);
        Ok(dead)
    }
}

#[derive(Default)]
struct AfterMayBeAnyEventOfLaterPartitions;

#[async_trait]
impl Defect for AfterMayBeAnyEventOfLaterPartitions {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let found = real.backend.dead_letters(stream, group, options).await;
        let Err(Error::CursorNotFound { after }) = found else {
            return found;
        };
        let log = log_of(real, stream).await;
        let is_there = |event: &Event| event.id == after && event.partition > Partition::ZERO;
        match log.iter().any(is_there) {
            true => Ok(Vec::new()),
            false => found,
        }
    }
}
