//! Pages of a partition and of dead letters, from any place on, and what the model says is on them.

use rheo_core::{
    Backend, DeadLetter, DeadLetterOptions, ErrorKind, Event, EventId, Gate, GroupName,
    OptionalOperation, Partition, ReadOptions, Sequence, StreamName, Timestamp,
};

use super::{Play, agree, nth};
use crate::expect::{Outcome, expect_eq};
use crate::random::step::Behind;

impl Play<'_> {
    pub(super) async fn read(&self, stream: u8, partition: u8, after: u8, limit: u8) -> Outcome {
        let name = self.stream(stream);
        let stream = &self.model.streams[name];
        let partition = u32::from(partition) % stream.count.get();
        let options = ReadOptions::new()
            .with_partition(Partition::new(partition))
            .with_after(Sequence::new(after.into())?)
            .with_limit(limit.into());
        let rest = stream.log[partition as usize].iter().skip(after.into());
        let expected: Vec<Event> = rest.take(limit.into()).cloned().collect();
        let seen = self.backend().read(name, &options).await?;
        expect_eq("the events read (LOG-9)", seen, expected)
    }

    /// Notes which events are dead letters, so that they are known when they are none any more.
    pub(super) fn remember_dead(&mut self) {
        for key in &self.groups {
            let dead = letters_of(self, key);
            let dead = dead.into_iter().map(|letter| letter.event.id);
            self.died.entry(key.clone()).or_default().extend(dead);
        }
    }

    /// Page after page, as long as there is something on them.
    pub(super) async fn dead_letters(&self, group: u8, page: u8, behind: Behind) -> Outcome {
        let pages = Gate::Operation(OptionalOperation::DeadLetters);
        if !pages.is_declared(&self.t.capabilities()) {
            return Ok(());
        }
        let key = self.group(group);
        let (stream, name) = key;
        let dead = letters_of(self, key);
        let mut options = DeadLetterOptions::new().with_limit(page.into());
        options.after = self.behind(key, &dead, behind);
        let is_after = |letter: &DeadLetter| Some(letter.event.id) == options.after;
        let mut rest = match options.after.map(|_| dead.iter().position(is_after)) {
            None => &dead[..],
            Some(Some(at)) => &dead[at + 1..],
            Some(None) => {
                let paged = self.backend().dead_letters(stream, name, &options).await;
                return agree(Err(ErrorKind::CursorNotFound), paged.map(drop));
            }
        };
        loop {
            let mut seen = self.backend().dead_letters(stream, name, &options).await?;
            let (expected, others) = rest.split_at(rest.len().min(page.into()));
            let mut expected = expected.to_vec();
            options.after = seen.last().map(|letter| letter.event.id);
            if !self.model.has_exact_times() {
                let letters = seen.iter_mut().chain(&mut expected);
                letters.for_each(|letter| letter.dead_at = Timestamp::UNIX_EPOCH);
            }
            expect_eq("the page of dead letters (DLQ-5)", seen, expected)?;
            if options.after.is_none() {
                return Ok(());
            }
            rest = others;
        }
    }

    fn behind(
        &self,
        key: &(StreamName, GroupName),
        dead: &[DeadLetter],
        behind: Behind,
    ) -> Option<EventId> {
        let id_of = |event: Event| event.id;
        match behind {
            Behind::Nothing => None,
            Behind::Dead(number) => nth(dead, number).map(|letter| letter.event.id),
            Behind::Once(number) => {
                let is_dead = |id: &EventId| dead.iter().any(|letter| letter.event.id == *id);
                let died = self.died.get(key).into_iter().flatten().copied();
                let once: Vec<EventId> = died.filter(|id| !is_dead(id)).collect();
                nth(&once, number).or_else(|| nth(&self.events_of(&key.0), number).map(id_of))
            }
        }
    }
}

fn letters_of(play: &Play<'_>, (stream, group): &(StreamName, GroupName)) -> Vec<DeadLetter> {
    play.model.streams[stream].groups[group].dead_letters()
}
