//! Plays steps on a backend and on the model at the same time.

mod pages;
mod queries;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, Error, Event, EventId, EventKey, FetchOptions, Gate, GroupName,
    GroupOptions, Guarantee, JsonObject, Lease, LeaseDuration, MaxAttempts, NewEvent,
    OptionalOperation, Partition, PartitionCount, Partitions, Reason, Replay, ResetOptions,
    RetryDelay, RetryOptions, Sequence, Start, StreamName, StreamOptions,
};
use serde_json::json;

use self::queries::nth_extra;
use super::step::{Choice, From, How, Place, Span, Step, Time};
use crate::expect::{Outcome, broken, expect, expect_eq};
use crate::fixture::{Fixture, new_event};
use crate::model::{Model, Settle, Settled};
use crate::observed::Observed;
use crate::recorder::Recorder;

const HOUR: Duration = Duration::from_secs(3_600);
/// How many of the latest leases a step chooses from.
const HELD: usize = 12;

/// One history while it is played.
pub(super) struct Play<'a> {
    t: &'a Fixture,
    handles: &'a mut [Recorder],
    handle: usize,
    model: Model,
    streams: Vec<StreamName>,
    groups: Vec<(StreamName, GroupName)>,
    leases: Vec<Lease>,
    /// The events that are or were dead letters of a group.
    died: BTreeMap<(StreamName, GroupName), BTreeSet<EventId>>,
}

impl<'a> Play<'a> {
    /// Two streams with two groups each.
    pub(super) async fn new(t: &'a Fixture, handles: &'a mut [Recorder]) -> Outcome<Self> {
        let mut play = Self {
            t,
            handles,
            handle: 0,
            model: Model::new(t.sets_the_clock()),
            streams: Vec::new(),
            groups: Vec::new(),
            leases: Vec::new(),
            died: BTreeMap::new(),
        };
        let most = if play.declares(Guarantee::Partitions) {
            3
        } else {
            1
        };
        for partitions in [1, most] {
            play.create_stream(partitions).await?;
        }
        for stream in 0..2 {
            play.create_group(stream, 1, From::Beginning).await?;
            play.create_group(stream, 0, From::Beginning).await?;
        }
        Ok(play)
    }

    /// Plays a step and compares everything.
    pub(super) async fn step(&mut self, step: &Step) -> Outcome {
        let played = self.play(step).await;
        self.t.tally().operations(1);
        played?;
        self.remember_dead();
        let touched = self.touched(step);
        self.compare(|stream| touched.as_ref().is_none_or(|touched| touched == stream))
            .await
    }

    /// The stream that a step is about, if it is about one alone: the others are looked at in the end.
    fn touched(&self, step: &Step) -> Option<StreamName> {
        match step {
            Step::Append { stream, .. }
            | Step::CreateGroup { stream, .. }
            | Step::Query { stream, .. }
            | Step::Read { stream, .. } => Some(self.stream(*stream).clone()),
            Step::Fetch { group, .. }
            | Step::ReplayAfter { group, .. }
            | Step::ReplayAfterEach { group, .. }
            | Step::ReplayEvents { group, .. }
            | Step::Reset { group, .. }
            | Step::DeadLetters { group, .. }
            | Step::Ask { group } => Some(self.group(*group).0.clone()),
            Step::Settle { .. }
            | Step::Pass(_)
            | Step::EnsureIndexes
            | Step::ChangeHandle
            | Step::Reopen => None,
        }
    }

    /// Lets everything expire, and gives every group what is left: all of it, and nothing else.
    pub(super) async fn finish(&mut self) -> Outcome {
        if self.t.sets_the_clock() {
            self.t.pass(2 * HOUR).await;
        }
        for at in 0..self.groups.len() {
            let at = u8::try_from(at).unwrap_or(u8::MAX);
            loop {
                let held = self.leases.len();
                self.fetch(at, 0, 50, false, Choice::All).await?;
                if self.leases.len() == held {
                    break;
                }
                let fresh = self.leases[held..].to_vec();
                for lease in &fresh {
                    self.settle_one(lease, &Settle::Ack).await?;
                }
            }
        }
        self.compare(|_| true).await
    }

    async fn compare(&self, which: impl Fn(&StreamName) -> bool) -> Outcome {
        let backend = self.backend();
        let seen = Observed::of_some(&**backend.unrecorded(), &self.model, which).await?;
        seen.expect(&self.model, &backend.capabilities())
    }

    async fn play(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Append {
                stream,
                count,
                place,
                taken_id,
            } => self.append(*stream, *count, *place, *taken_id).await,
            Step::CreateGroup {
                stream,
                name,
                start,
            } => self.create_group(*stream, *name, *start).await,
            Step::Fetch {
                group,
                consumer,
                limit,
                briefly,
                partitions,
            } => {
                self.fetch(*group, *consumer, *limit, *briefly, *partitions)
                    .await
            }
            Step::Settle { leases, how, lies } => self.settle(leases, *how, *lies).await,
            Step::ReplayAfter {
                group,
                after,
                partitions,
            } => {
                let replay = Replay::After {
                    sequence: Sequence::new((*after).into())?,
                    partitions: self.partitions(self.group(*group), *partitions),
                };
                self.replay(*group, replay).await
            }
            Step::ReplayAfterEach { group, after } => {
                let count = self.model.streams[&self.group(*group).0].count;
                let mut each = BTreeMap::new();
                for (partition, after) in count.partitions().zip(after) {
                    if let Some(after) = after {
                        each.insert(partition, Sequence::new((*after).into())?);
                    }
                }
                self.replay(*group, Replay::AfterEach(each)).await
            }
            Step::ReplayEvents { group, events } => {
                let all = self.events_of(&self.group(*group).0);
                let chosen = events.iter().filter_map(|event| nth(&all, *event));
                let replay = Replay::Events(chosen.map(|event| event.id).collect());
                self.replay(*group, replay).await
            }
            Step::Reset {
                group,
                start,
                partitions,
            } => self.reset(*group, *start, *partitions).await,
            Step::Pass(time) => {
                self.pass(*time).await;
                Ok(())
            }
            Step::Query {
                stream,
                filter,
                fields,
                order,
                page,
            } => {
                let query = self.filtered(*stream, *filter, *fields)?;
                self.query(*stream, query, *order, *page).await
            }
            Step::Read {
                stream,
                partition,
                after,
                limit,
            } => self.read(*stream, *partition, *after, *limit).await,
            Step::DeadLetters {
                group,
                page,
                behind,
            } => self.dead_letters(*group, *page, *behind).await,
            Step::Ask { group } => self.ask(*group).await,
            Step::EnsureIndexes => Ok(self.backend().ensure_indexes().await?),
            Step::ChangeHandle => {
                self.handle = (self.handle + 1) % self.handles.len();
                Ok(())
            }
            Step::Reopen => {
                let is_only = self.handles.len() == 1;
                self.handles[self.handle] = self.t.replaced(self.backend(), is_only).await?;
                Ok(())
            }
        }
    }

    async fn create_stream(&mut self, partitions: u32) -> Outcome {
        let name = StreamName::new(format!("random-{}", self.t.number()))?;
        let count = PartitionCount::new(partitions)?;
        let options = StreamOptions::new().with_partition_count(count);
        let predicted = self.model.create_stream(&name, count);
        let created = self.backend().create_stream(&name, &options).await;
        agree(predicted, created)?;
        self.streams.push(name);
        Ok(())
    }

    async fn create_group(&mut self, stream: u8, name: u8, start: From) -> Outcome {
        let stream = self.stream(stream).clone();
        let number = name % 4;
        let name = GroupName::new(["billing", "mail", "audit", "search"][usize::from(number)])?;
        let there = self.model.streams[&stream].groups.contains_key(&name);
        // Which error comes first of a bad start and a taken name is free (ERR-6).
        let start = if there { From::Beginning } else { start };
        let options = GroupOptions::new()
            .with_start(self.start(&stream, start)?)
            .with_max_attempts(MaxAttempts::new(u32::from(number) + 1)?);
        let predicted = self.model.create_group(&stream, &name, &options);
        let created = self.backend().create_group(&stream, &name, &options).await;
        let made = predicted.is_ok();
        agree(predicted, created)?;
        if made {
            self.groups.push((stream, name));
        }
        Ok(())
    }

    async fn append(&mut self, stream: u8, count: u8, place: Place, taken_id: bool) -> Outcome {
        let name = self.stream(stream).clone();
        let partitions = self.model.streams[&name].count.get();
        let count = if self.declares(Guarantee::BatchWrites) {
            count
        } else {
            1
        };
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(self.new_event(place, partitions)?);
        }
        let taken: Option<EventId> = self.events_of(&name).first().map(|event| event.id);
        if let Some(id) = taken.filter(|_| taken_id)
            && let Some(event) = events.pop()
        {
            events.push(event.with_id(id));
        }
        let predicted = self.model.route(&name, &events);
        let appended = match &events[..] {
            [one] => {
                let appended = self.backend().append(&name, one.clone()).await;
                appended.map(|event| vec![event])
            }
            _ => self.backend().append_batch(&name, events.clone()).await,
        };
        match (predicted, appended) {
            (Ok(_), Ok(appended)) => {
                for event in &appended {
                    self.t
                        .expect_now("the timestamp (LOG-5)", event.timestamp)?;
                }
                self.model.appended(&name, &events, &appended)
            }
            (predicted, appended) => agree(predicted.map(drop), appended.map(drop)),
        }
    }

    fn new_event(&self, place: Place, partitions: u32) -> Outcome<NewEvent> {
        let number = self.t.number();
        let kind = ["placed", "paid", "sent"][usize::try_from(number % 3).unwrap_or(0)];
        let mut payload = json!({ "number": number, "third": number % 3 });
        let extra = usize::try_from(number)
            .ok()
            .and_then(|at| nth_extra(at % 7));
        if let Some(extra) = extra {
            payload["extra"] = extra;
        }
        let mut metadata = json!({ "even": number.is_multiple_of(2) });
        if number.is_multiple_of(4) {
            metadata["trace"] = json!({ "span": [number % 8], "sampled": null });
        }
        let metadata = JsonObject::metadata(metadata)?;
        let event = new_event(kind, payload).with_metadata(metadata);
        Ok(match place {
            Place::Partition(at) => {
                event.with_partition(Partition::new(u32::from(at) % partitions))
            }
            Place::Key(key) => event.with_key(EventKey::new(format!("customer-{}", key % 5))?),
        })
    }

    async fn fetch(
        &mut self,
        group: u8,
        consumer: u8,
        limit: u8,
        briefly: bool,
        partitions: Choice,
    ) -> Outcome {
        let (stream, group) = self.group(group).clone();
        let partitions = self.partitions(&(stream.clone(), group.clone()), partitions);
        let consumer = ConsumerId::new(["a", "b", "c"][usize::from(consumer % 3)])?;
        let mut options = FetchOptions::new(consumer)
            .with_limit(limit.into())
            .with_partitions(partitions);
        if !self.t.sets_the_clock() {
            options = options.with_lease_duration(self.t.lasting_lease());
        } else if briefly {
            options = options.with_lease_duration(self.t.brief_lease());
        }
        loop {
            let now = self.t.now();
            let leases = self.backend().fetch(&stream, &group, &options).await?;
            let model = &mut self.model;
            model.fetched(&stream, &group, &options, now, &leases)?;
            let (none, partitions) = (leases.is_empty(), &options.partitions);
            self.leases.extend(leases);
            if none || !self.model.has_used_up(&stream, &group, partitions, now) {
                return Ok(());
            }
        }
    }

    async fn settle(&mut self, leases: &[u8], how: How, lies: bool) -> Outcome {
        let mut leases: Vec<Lease> = leases.iter().filter_map(|at| self.lease(*at)).collect();
        for lease in leases.iter_mut().filter(|_| lies) {
            lease.attempt = lease.attempt % 7 + 1;
        }
        let how = self.how(how)?;
        match &leases[..] {
            [] => Ok(()),
            [one] => self.settle_one(one, &how).await,
            many => {
                let given = settle_batch(self.backend(), many, &how).await;
                expect_eq("the number of results (LSE-8)", given.len(), many.len())?;
                for (lease, given) in many.iter().zip(given) {
                    self.settled(lease, &how, given)?;
                }
                Ok(())
            }
        }
    }

    async fn settle_one(&mut self, lease: &Lease, how: &Settle) -> Outcome {
        let backend = self.backend();
        let given = match how {
            Settle::Renew(duration) => {
                let renewed = backend.renew(lease, *duration).await;
                renewed.map(|lease| Settled::Renewed(Box::new(lease)))
            }
            Settle::Ack => backend.ack(lease).await.map(|()| Settled::Acked),
            Settle::Retry(options) => backend.retry(lease, options).await.map(Settled::Retried),
            Settle::Reject(reason) => {
                let rejected = backend.reject(lease, reason).await;
                rejected.map(|()| Settled::Rejected)
            }
        };
        self.settled(lease, how, given)
    }

    fn settled(&mut self, lease: &Lease, how: &Settle, given: Result<Settled, Error>) -> Outcome {
        let predicted = self.model.settle(lease, how, self.t.now());
        match (predicted, given) {
            (Ok(Settled::Renewed(predicted)), Ok(Settled::Renewed(mut renewed))) => {
                if !self.t.sets_the_clock() {
                    renewed.expires_at = predicted.expires_at;
                }
                // What is not compared may come back as it was handed in.
                if renewed.attempt == lease.attempt {
                    renewed.attempt = predicted.attempt;
                }
                expect_eq("the renewed lease (LSE-6)", renewed, predicted)
            }
            (Ok(predicted), Ok(given)) => {
                expect_eq("what settling gives (DLQ-2)", given, predicted)
            }
            (predicted, given) => agree(predicted.map(drop), given.map(drop)),
        }
    }

    async fn replay(&mut self, group: u8, replay: Replay) -> Outcome {
        if !self.declares(Guarantee::Replay) {
            return Ok(());
        }
        let (stream, group) = self.group(group).clone();
        let predicted = self.model.replay(&stream, &group, &replay);
        let replayed = self.backend().replay(&stream, &group, &replay).await;
        agree(predicted, replayed)
    }

    async fn reset(&mut self, group: u8, start: From, partitions: Choice) -> Outcome {
        if !self.declares(Guarantee::Replay) {
            return Ok(());
        }
        let (stream, group) = self.group(group).clone();
        let start = self.start(&stream, start)?;
        let partitions = self.partitions(&(stream.clone(), group.clone()), partitions);
        let predicted = self.model.reset(&stream, &group, &start, &partitions);
        let options = ResetOptions::new()
            .with_start(start)
            .with_partitions(partitions);
        let reset = self.backend().reset_group(&stream, &group, &options).await;
        agree(predicted, reset)
    }

    async fn pass(&self, time: Time) {
        if !self.t.sets_the_clock() {
            return;
        }
        match time {
            Time::On(span) => self.t.pass(self.duration(span)).await,
            Time::Back(span) => {
                self.t.turn_back(self.duration(span));
            }
        }
    }

    fn duration(&self, span: Span) -> Duration {
        match span {
            Span::Moment => Duration::from_micros(1),
            Span::Half => self.t.brief() / 2,
            Span::Brief => self.t.brief(),
            Span::Hour => HOUR,
        }
    }

    /// Whatever it says, it must change nothing (OPS-4).
    async fn ask(&self, group: u8) -> Outcome {
        if Gate::Operation(OptionalOperation::WaitForWork).is_declared(&self.t.capabilities()) {
            let (stream, group) = self.group(group);
            let asked = self.backend().wait_for_work(stream, group, Duration::ZERO);
            asked.await?;
        }
        Ok(())
    }

    fn start(&self, stream: &StreamName, from: From) -> Outcome<Start> {
        Ok(match from {
            From::Beginning => Start::Beginning,
            From::End => Start::End,
            From::After(sequence) => Start::AfterSequence(Sequence::new(u64::from(sequence % 6))?),
            From::AfterEach(each) => {
                let mut starts = BTreeMap::new();
                for (at, events) in self.model.streams[stream].log.iter().enumerate() {
                    let number = each[at % each.len()];
                    if number < From::UNNAMED {
                        let sequence = u64::from(number) % (events.len() as u64 + 1);
                        let partition = Partition::new(u32::try_from(at).unwrap_or(u32::MAX));
                        starts.insert(partition, Sequence::new(sequence)?);
                    }
                }
                Start::AfterSequences(starts)
            }
            From::Event(event) => match nth(&self.events_of(stream), event) {
                Some(event) => Start::AtTime(event.timestamp),
                None => Start::AtTime(self.t.now()),
            },
        })
    }

    /// Where the time cannot be set, nothing ends before the history does.
    fn how(&self, how: How) -> Outcome<Settle> {
        let sets = self.t.sets_the_clock();
        Ok(match how {
            How::Ack => Settle::Ack,
            How::Retry { delay, reason } => {
                let mut options = RetryOptions::new();
                if let Some(span) = delay {
                    let delay = if sets { self.duration(span) } else { HOUR };
                    options = options.with_delay(RetryDelay::new(delay)?);
                }
                let reason = nth_reason(reason);
                Settle::Retry(match reason {
                    Some(reason) => options.with_reason(reason),
                    None => options,
                })
            }
            How::Reject { reason } => {
                Settle::Reject(nth_reason(reason).unwrap_or_else(|| Reason::new("no good")))
            }
            How::Renew(Some(span)) if sets => {
                Settle::Renew(LeaseDuration::new(self.duration(span))?)
            }
            How::Renew(_) if sets => Settle::Renew(LeaseDuration::default()),
            How::Renew(_) => Settle::Renew(self.t.lasting_lease()),
        })
    }

    fn partitions(&self, (stream, _): &(StreamName, GroupName), choice: Choice) -> Partitions {
        let count = self.model.streams[stream].count.get();
        match choice {
            Choice::All => Partitions::All,
            Choice::One(at) => Partitions::only([Partition::new(u32::from(at) % count)]),
        }
    }

    fn events_of(&self, stream: &StreamName) -> Vec<Event> {
        let log = &self.model.streams[stream].log;
        log.iter().flatten().cloned().collect()
    }

    fn stream(&self, number: u8) -> &StreamName {
        &self.streams[usize::from(number) % self.streams.len()]
    }

    /// Every other one is the first: what is to meet has to meet somewhere.
    fn group(&self, number: u8) -> &(StreamName, GroupName) {
        let at = usize::from(number / 2) % self.groups.len();
        &self.groups[if number.is_multiple_of(2) { 0 } else { at }]
    }

    /// One of the latest leases: three of four times one that still is a current claim.
    fn lease(&self, number: u8) -> Option<Lease> {
        let is_current = |lease: &&Lease| self.model.is_current(lease);
        let current: Vec<&Lease> = self.leases.iter().filter(is_current).collect();
        let all: Vec<&Lease> = self.leases.iter().collect();
        let among = if number < 192 && !current.is_empty() {
            current
        } else {
            all
        };
        let from = among.len().saturating_sub(HELD);
        nth(&among[from..], number).cloned()
    }

    fn backend(&self) -> &Recorder {
        &self.handles[self.handle]
    }

    fn declares(&self, guarantee: Guarantee) -> bool {
        Gate::Guarantee(guarantee).is_declared(&self.t.capabilities())
    }
}

async fn settle_batch(
    backend: &Recorder,
    leases: &[Lease],
    how: &Settle,
) -> Vec<Result<Settled, Error>> {
    fn each<T>(
        results: Vec<Result<T, Error>>,
        to: impl Fn(T) -> Settled,
    ) -> Vec<Result<Settled, Error>> {
        results.into_iter().map(|one| one.map(&to)).collect()
    }
    match how {
        Settle::Renew(duration) => each(backend.renew_batch(leases, *duration).await, |lease| {
            Settled::Renewed(Box::new(lease))
        }),
        Settle::Ack => each(backend.ack_batch(leases).await, |()| Settled::Acked),
        Settle::Retry(options) => {
            each(backend.retry_batch(leases, options).await, Settled::Retried)
        }
        Settle::Reject(reason) => each(backend.reject_batch(leases, reason).await, |()| {
            Settled::Rejected
        }),
    }
}

/// Demands the predicted success or kind of error.
fn agree(predicted: Result<(), rheo_core::ErrorKind>, seen: Result<(), Error>) -> Outcome {
    match (predicted, seen) {
        (Ok(()), Err(error)) => Err(error.into()),
        (Err(kind), Ok(())) => Err(broken(format!("Err({kind})"), "Ok")),
        (Err(kind), Err(error)) => expect(
            error.kind() == kind,
            format!("Err({kind})"),
            format!("Err({}): {error}", error.kind()),
        ),
        (Ok(()), Ok(())) => Ok(()),
    }
}

/// The one of that number, around and around.
fn nth<T: Clone>(among: &[T], number: u8) -> Option<T> {
    let at = usize::from(number).checked_rem(among.len())?;
    among.get(at).cloned()
}

/// None, or one of a few.
fn nth_reason(number: u8) -> Option<Reason> {
    match number % 6 {
        0 => Some(Reason::new("")),
        1 => Some(Reason::new("no \0 good")),
        2 => Some(Reason::new("\u{fc}".repeat(600))),
        3 | 4 => Some(Reason::new("later")),
        _ => None,
    }
}
