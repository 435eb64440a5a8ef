//! A store in a known state, one operation on it that may be interrupted, and every state that is
//! allowed to come of that.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rheo_core::{
    Backend, Capabilities, ConsumerId, DeadLetterOptions, Error, ErrorKind, Event, EventId,
    FetchOptions, GroupName, GroupOptions, Guarantee, Lease, LeaseDuration, LeaseId, ListOptions,
    MaxAttempts, NewEvent, Operation, OptionalOperation, Partition, PartitionCount, Partitions,
    Query, ReadOptions, Reason, Replay, ResetOptions, RetryOptions, Sequence, Start, StreamName,
    StreamOptions, Timestamp,
};
use serde_json::json;

use crate::expect::{Failure, Outcome, broken, expect, expect_error};
use crate::fixture::{Fixture, new_event};
use crate::model::{Model, Settle};
use crate::observed::Observed;
use crate::recorder::Recorder;
use crate::scene::{Group, P0, P1};

/// Longer than any lease of a stage.
pub(crate) const HOURS: Duration = Duration::from_secs(2 * 3_600);
/// The leases of a batch.
const BATCH: u32 = 2;
/// How long what was interrupted may still be on its way through the store, in real time: the
/// default operation timeout (ERR-4). A right state is seen at once; only a wrong one waits so long.
const ON_ITS_WAY: Duration = Duration::from_secs(5);

/// A stream with a group that has an event in every state, and the model of it.
pub(crate) struct Stage {
    t: Fixture,
    stream: StreamName,
    group: GroupName,
    /// Of sequences 1 to 4 of the first partition; the first two are current.
    leases: Vec<Lease>,
    model: Model,
    to_append: Vec<NewEvent>,
    new_stream: StreamName,
    made_at: Timestamp,
}

/// An operation that is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupted(pub(crate) Operation);

/// How much of an operation's effect is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    None,
    /// In some partitions, or for some leases of a batch, and not in others.
    Part,
    Whole,
}

/// What is known of an operation's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// It was dropped, or its outcome is ambiguous: any effect, also one that is still on its way.
    Nothing,
    /// It failed: no effect (ERR-1).
    Failed,
    /// Some leases of a batch failed, and the others did not.
    Mixed,
    /// It succeeded.
    Succeeded,
}

/// A state that is allowed.
struct Allowed {
    effect: Effect,
    model: Model,
}

impl Interrupted {
    /// Every operation that a backend with these capabilities has, but for `close`.
    pub(crate) fn all(declared: &Capabilities) -> Vec<Self> {
        let is_there = |operation: &Operation| match operation {
            Operation::Close => false,
            Operation::AppendBatch => declared.guarantees(Guarantee::BatchWrites),
            Operation::Query => declared.guarantees(Guarantee::OrderedRangeScan),
            Operation::Lag => declared.guarantees(Guarantee::ContiguousFrontier),
            Operation::Replay | Operation::ResetGroup => declared.guarantees(Guarantee::Replay),
            other => OptionalOperation::ALL
                .iter()
                .find(|optional| optional.operation() == *other)
                .is_none_or(|optional| declared.offers(*optional)),
        };
        let all = Operation::ALL.iter().copied().filter(is_there);
        all.map(Self).collect()
    }

    /// Those of them that the budget lets a case try one by one.
    pub(crate) fn some(t: &Fixture, which: impl Fn(&Self) -> bool) -> Vec<Self> {
        let all = Self::all(&t.capabilities()).into_iter().filter(which);
        t.budget().some_of(all.collect(), |bound| t.random(bound))
    }

    /// Whether it writes.
    pub(crate) fn writes(&self) -> bool {
        self.0.writes()
    }

    /// Whether it settles or renews leases.
    pub(crate) fn is_settle(&self) -> bool {
        matches!(
            self.0,
            Operation::Renew
                | Operation::RenewBatch
                | Operation::Ack
                | Operation::AckBatch
                | Operation::Retry
                | Operation::RetryBatch
                | Operation::Reject
                | Operation::RejectBatch
        )
    }

    /// Whether it changes nothing more when it happens once more, after it was repeated (ERR-2).
    pub(crate) fn can_be_repeated(&self) -> bool {
        self.writes()
            && !matches!(
                self.0,
                Operation::EnsureIndexes
                    | Operation::Fetch
                    | Operation::Replay
                    | Operation::ResetGroup
            )
    }
}

impl Stage {
    /// Two partitions where there can be: in the first 1 and 2 are leased, 3 is acked, 4 is a dead
    /// letter and 5 and 6 are open; in the second 1 and 2 are open.
    pub(crate) async fn new(t: &Fixture) -> Outcome<Self> {
        let partitions = if t.capabilities().guarantees(Guarantee::Partitions) {
            2
        } else {
            1
        };
        let stream = t.stream(partitions).await?;
        let group = stream.group_of_attempts("billing", 2).await?;
        let mut model = Model::new(t.sets_the_clock());
        let count = PartitionCount::new(partitions)?;
        let options = GroupOptions::new().with_max_attempts(MaxAttempts::new(2)?);
        agreed(model.create_stream(&stream.name, count))?;
        agreed(model.create_group(&stream.name, &group.name, &options))?;
        for (partition, events) in [(P0, 6), (P1, 2)] {
            if partition.number() < partitions {
                for event in stream.append_to(partition, events).await? {
                    let given = given(&event);
                    model.appended(&stream.name, &[given], std::slice::from_ref(&event))?;
                }
            }
        }
        let mut leases: Vec<Lease> = Vec::new();
        while leases.len() < 4 {
            let limit = u32::try_from(4 - leases.len()).unwrap_or(1);
            let options = FetchOptions::new(ConsumerId::new("a")?)
                .with_limit(limit)
                .with_partitions(Partitions::only([P0]));
            let now = t.now();
            let fetched = group.fetch_with(&options).await?;
            model.fetched(&stream.name, &group.name, &options, now, &fetched)?;
            leases.extend(fetched);
        }
        let reject = Settle::Reject(Reason::new("broken"));
        group.backend.ack(&leases[2]).await?;
        agreed(model.settle(&leases[2], &Settle::Ack, t.now()))?;
        group.reject(&leases[3], "broken").await?;
        agreed(model.settle(&leases[3], &reject, t.now()))?;
        let to_append = (0..4_u32)
            .map(|at| {
                let id = EventId::generate(t.now());
                let partition = Partition::new(at % partitions);
                t.new_event().with_id(id).with_partition(partition)
            })
            .collect();
        Ok(Self {
            stream: stream.name,
            group: group.name,
            leases,
            model,
            to_append,
            new_stream: StreamName::new(format!("new-{}", t.number()))?,
            made_at: t.now(),
            t: t.clone(),
        })
    }

    /// When the operation is called: where the clock can be set, it stands still meanwhile.
    fn now(&self) -> Timestamp {
        if self.t.sets_the_clock() {
            self.made_at
        } else {
            self.t.now()
        }
    }

    /// How many operation timeouts it may take: a batch form of delivery has one for each lease (ERR-4).
    pub(crate) fn timeouts_of(&self, which: Interrupted) -> u32 {
        match which.0 {
            Operation::RenewBatch
            | Operation::AckBatch
            | Operation::RetryBatch
            | Operation::RejectBatch => BATCH,
            _ => 1,
        }
    }

    /// Calls the operation, and says what is known then of its effect; the error is one that says
    /// nothing of it, or none that a fault may cause.
    pub(crate) async fn outcome(
        &self,
        backend: &Recorder,
        which: Interrupted,
    ) -> Result<Known, Error> {
        let results = self.results(backend, which).await;
        let mut known = None;
        for result in results {
            let this = match result {
                Ok(()) => Known::Succeeded,
                Err(error) if error.kind() == ErrorKind::Ambiguous && which.0.writes() => {
                    Known::Nothing
                }
                Err(Error::BackendUnavailable(_) | Error::Failed(_)) => Known::Failed,
                Err(error) => return Err(error),
            };
            known = Some(match known {
                None => this,
                Some(known) if known == this => this,
                Some(Known::Nothing) => Known::Nothing,
                Some(_) if this == Known::Nothing => Known::Nothing,
                Some(_) => Known::Mixed,
            });
        }
        Ok(known.unwrap_or(Known::Succeeded))
    }

    /// Calls the operation; gives the first error of a batch.
    pub(crate) async fn call(&self, backend: &Recorder, which: Interrupted) -> Result<(), Error> {
        self.results(backend, which).await.into_iter().collect()
    }

    /// Calls the operation; gives a result for each lease of a batch.
    async fn results(&self, backend: &Recorder, which: Interrupted) -> Vec<Result<(), Error>> {
        let both = &self.leases[..BATCH as usize];
        let duration = LeaseDuration::default();
        let (again, reason) = (RetryOptions::new(), Reason::new(INTERRUPTED));
        match which.0 {
            Operation::RenewBatch => each(backend.renew_batch(both, duration).await),
            Operation::AckBatch => each(backend.ack_batch(both).await),
            Operation::RetryBatch => each(backend.retry_batch(both, &again).await),
            Operation::RejectBatch => each(backend.reject_batch(both, &reason).await),
            _ => vec![self.result(backend, which).await],
        }
    }

    async fn result(&self, backend: &Recorder, which: Interrupted) -> Result<(), Error> {
        let (stream, group) = (&self.stream, &self.group);
        let lease = &self.leases[0];
        let duration = LeaseDuration::default();
        let (again, reason) = (RetryOptions::new(), Reason::new(INTERRUPTED));
        match which.0 {
            Operation::Close => backend.close().await,
            Operation::EnsureIndexes => backend.ensure_indexes().await,
            Operation::Ping => backend.ping().await,
            Operation::CreateStream => {
                let options = StreamOptions::new();
                backend.create_stream(&self.new_stream, &options).await
            }
            Operation::CreateGroup => {
                let options = GroupOptions::new();
                backend.create_group(stream, &new_group()?, &options).await
            }
            Operation::Append => {
                let event = self.to_append[0].clone();
                backend.append(stream, event).await.map(drop)
            }
            Operation::AppendBatch => {
                let events = self.to_append.clone();
                backend.append_batch(stream, events).await.map(drop)
            }
            Operation::Read => backend.read(stream, &ReadOptions::new()).await.map(drop),
            Operation::Query => backend.query(stream, &Query::new()).await.map(drop),
            Operation::Fetch => {
                let fetched = backend.fetch(stream, group, &self.fetch_options()?).await;
                fetched.map(drop)
            }
            Operation::Renew => backend.renew(lease, duration).await.map(drop),
            Operation::Ack => backend.ack(lease).await,
            Operation::Retry => backend.retry(lease, &again).await.map(drop),
            Operation::Reject => backend.reject(lease, &reason).await,
            Operation::Replay => {
                let replay = Replay::after(Sequence::new(REPLAYED_AFTER)?);
                backend.replay(stream, group, &replay).await
            }
            Operation::ResetGroup => {
                let options = ResetOptions::new();
                backend.reset_group(stream, group, &options).await
            }
            Operation::Lag => backend.lag(stream, group).await.map(drop),
            Operation::ListStreams => {
                let listed = backend.list_streams(&ListOptions::new()).await;
                listed.map(drop)
            }
            Operation::ListGroups => {
                let options = ListOptions::new();
                backend.list_groups(stream, &options).await.map(drop)
            }
            Operation::DeadLetters => {
                let options = DeadLetterOptions::new();
                backend
                    .dead_letters(stream, group, &options)
                    .await
                    .map(drop)
            }
            Operation::GroupInfo => backend.group_info(stream, group).await.map(drop),
            Operation::WaitForWork => {
                let timeout = Duration::from_millis(50);
                backend
                    .wait_for_work(stream, group, timeout)
                    .await
                    .map(drop)
            }
            other => Err(Error::invalid(
                "operation",
                other,
                "one that the suite knows",
            )),
        }
    }

    /// Demands that `handles` show the state before the operation or the one after it, as is known;
    /// then repeats what has no whole effect, as a client would.
    pub(crate) async fn expect_whole_or_none(
        &self,
        which: Interrupted,
        known: Known,
        handles: &[&Recorder],
    ) -> Outcome<&'static [Effect]> {
        let mut allowed: &'static [Effect] = match known {
            Known::Nothing => &[Effect::None, Effect::Part, Effect::Whole],
            Known::Failed => &[Effect::None],
            Known::Mixed if self.settles(which).is_some() => &[Effect::Part],
            // Of a renewal nothing can be seen.
            Known::Mixed => &[Effect::None, Effect::Whole],
            Known::Succeeded => &[Effect::Whole],
        };
        let mut seen = Effect::None;
        for handle in handles {
            seen = self.expect_any(handle, which, allowed).await?;
        }
        // A fetch that is repeated claims more: what is left tells enough.
        if seen < Effect::Whole && which.0 != Operation::Fetch {
            let repeated = self.call(handles[0], which).await;
            allowed = match repeated.map_err(|error| error.kind()) {
                Ok(()) => &[Effect::Whole],
                // Some of it was there already, or has come meanwhile.
                Err(ErrorKind::AlreadyExists | ErrorKind::StaleLease)
                    if matches!(known, Known::Nothing | Known::Mixed) =>
                {
                    &[Effect::Part, Effect::Whole]
                }
                Err(kind) => {
                    return Err(broken(
                        format!("{} to succeed when it is repeated", which.0),
                        format!("Err({kind})"),
                    ));
                }
            };
            self.expect_any(handles[0], which, allowed).await?;
        }
        Ok(allowed)
    }

    /// As [`expect_whole_or_none`](Self::expect_whole_or_none); then every lease ends, and everything
    /// that is left is delivered. This moves the clock.
    pub(crate) async fn expect_whole_or_none_and_the_rest(
        &self,
        which: Interrupted,
        known: Known,
        handles: &[&Recorder],
    ) -> Outcome {
        let effects = self.expect_whole_or_none(which, known, handles).await?;
        self.expect_the_rest(handles[0], which, effects).await
    }

    /// Demands that a handle shows one of the states with this much of the effect, now.
    pub(crate) async fn expect_still(
        &self,
        handle: &Recorder,
        which: Interrupted,
        effects: &[Effect],
    ) -> Outcome {
        let (_, differences) = self.look_for(handle, which, effects).await?;
        expect(
            differences.is_empty(),
            format!("still an effect of {}, of {effects:?}", which.0),
            format!("another state{differences}"),
        )
    }

    /// Looks until one of the allowed states is there; says how much of the effect is.
    async fn expect_any(
        &self,
        handle: &Recorder,
        which: Interrupted,
        effects: &[Effect],
    ) -> Outcome<Effect> {
        let started = Instant::now();
        loop {
            let (effect, differences) = self.look_for(handle, which, effects).await?;
            if differences.is_empty() {
                return Ok(effect);
            }
            if started.elapsed() > ON_ITS_WAY {
                let operation = which.0;
                return Err(broken(
                    format!("an effect of the interrupted {operation}, of {effects:?}"),
                    format!("another state{differences}"),
                ));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The effect that a handle shows, and how it differs from each of the allowed ones, if from all.
    async fn look_for(
        &self,
        handle: &Recorder,
        which: Interrupted,
        effects: &[Effect],
    ) -> Outcome<(Effect, String)> {
        let mut differences = String::new();
        for allowed in self.allowed(which, effects).await? {
            match self.look(handle, which, &allowed).await {
                Ok(()) => return Ok((allowed.effect, String::new())),
                Err(difference) => {
                    let effect = allowed.effect;
                    differences.push_str(&format!("\nnot {effect:?}: {difference}"));
                }
            }
        }
        Ok((Effect::None, differences))
    }

    /// Demands that a handle shows just that state.
    async fn look(&self, handle: &Recorder, which: Interrupted, allowed: &Allowed) -> Outcome {
        let backend = &**handle.unrecorded();
        let made = match which.0 {
            Operation::CreateStream => {
                let read = backend.read(&self.new_stream, &ReadOptions::new()).await;
                Some((read.map(drop), ErrorKind::StreamNotFound))
            }
            Operation::CreateGroup => {
                let options = FetchOptions::new(ConsumerId::new("a")?).with_limit(0);
                let fetched = backend.fetch(&self.stream, &new_group()?, &options).await;
                Some((fetched.map(drop), ErrorKind::GroupNotFound))
            }
            _ => None,
        };
        match (made, allowed.effect) {
            (Some((made, _)), Effect::Whole) => made?,
            (Some((made, missing)), _) => {
                expect_error(made, missing)?;
            }
            (None, _) => {}
        }
        let seen = Observed::of(backend, &allowed.model).await?;
        seen.expect(&allowed.model, &backend.capabilities())
    }

    /// The states that are allowed, with this much of the effect.
    async fn allowed(&self, which: Interrupted, effects: &[Effect]) -> Outcome<Vec<Allowed>> {
        let before = || Allowed {
            effect: Effect::None,
            model: self.model.clone(),
        };
        let mut all = Vec::new();
        let partitions = self.model.streams[&self.stream].count;
        let subsets = 1..1_u32 << partitions.get();
        match which.0 {
            Operation::Append => all.push(self.with_appended(&self.to_append[..1]).await?),
            Operation::AppendBatch => {
                for subset in subsets {
                    let is_in = |event: &&NewEvent| {
                        let at = event.partition.map_or(0, Partition::number);
                        subset & (1 << at) != 0
                    };
                    let events: Vec<_> = self.to_append.iter().filter(is_in).cloned().collect();
                    let mut allowed = self.with_appended(&events).await?;
                    allowed.effect = part_of(events.len(), self.to_append.len());
                    all.push(allowed);
                }
            }
            Operation::Fetch => {
                for claimed in 1..=2 {
                    all.push(self.with_claimed(claimed)?);
                }
            }
            Operation::Replay | Operation::ResetGroup => {
                for subset in subsets {
                    let is_in = |at: &Partition| subset & (1 << at.number()) != 0;
                    let chosen: Vec<_> = partitions.partitions().filter(is_in).collect();
                    let mut allowed = before();
                    allowed.effect = part_of(chosen.len(), partitions.get() as usize);
                    self.go_back(which, &mut allowed.model, Partitions::only(chosen))?;
                    all.push(allowed);
                }
            }
            _ => match self.settles(which) {
                Some((leases, how)) => {
                    for subset in 1..1_u32 << leases.len() {
                        let mut allowed = before();
                        allowed.effect = part_of(subset.count_ones() as usize, leases.len());
                        for (at, lease) in leases.iter().enumerate() {
                            if subset & (1 << at) != 0 {
                                let settled = allowed.model.settle(lease, &how, self.now());
                                agreed(settled.map(drop))?;
                            }
                        }
                        all.push(allowed);
                    }
                }
                // Nothing that could be seen changes, or only whether it is there.
                None => all.push(Allowed {
                    effect: Effect::Whole,
                    model: self.model.clone(),
                }),
            },
        }
        all.push(before());
        all.retain(|allowed| effects.contains(&allowed.effect));
        Ok(all)
    }

    /// The leases that an operation settles, and how.
    fn settles(&self, which: Interrupted) -> Option<(&[Lease], Settle)> {
        let (one, both) = (&self.leases[..1], &self.leases[..BATCH as usize]);
        let reject = || Settle::Reject(Reason::new(INTERRUPTED));
        let again = || Settle::Retry(RetryOptions::new());
        Some(match which.0 {
            Operation::Ack => (one, Settle::Ack),
            Operation::AckBatch => (both, Settle::Ack),
            Operation::Retry => (one, again()),
            Operation::RetryBatch => (both, again()),
            Operation::Reject => (one, reject()),
            Operation::RejectBatch => (both, reject()),
            _ => return None,
        })
    }

    async fn with_appended(&self, events: &[NewEvent]) -> Outcome<Allowed> {
        let mut model = self.model.clone();
        let places = agreed(model.route(&self.stream, events))?;
        let mut appended = Vec::new();
        for (given, (partition, sequence)) in events.iter().zip(places) {
            let id = given.id.unwrap_or_else(|| self.t.unknown_id());
            appended.push(Event {
                id,
                stream: self.stream.clone(),
                partition,
                sequence,
                event_type: given.event_type.clone(),
                key: given.key.clone(),
                payload: given.payload.clone(),
                metadata: given.metadata.clone(),
                timestamp: self.time_of(partition, id).await?,
            });
        }
        model.appended(&self.stream, events, &appended)?;
        Ok(Allowed {
            effect: Effect::Whole,
            model,
        })
    }

    /// When an event was appended: now, or as the store says where the clock is its own.
    async fn time_of(&self, partition: Partition, id: EventId) -> Outcome<Timestamp> {
        if self.t.sets_the_clock() {
            return Ok(self.made_at);
        }
        let options = ReadOptions::new().with_partition(partition);
        let backend = self.t.backend.unrecorded();
        let events = backend.read(&self.stream, &options).await?;
        let found = events.iter().find(|event| event.id == id);
        Ok(found.map_or(self.t.now(), |event| event.timestamp))
    }

    fn with_claimed(&self, count: usize) -> Outcome<Allowed> {
        let mut model = self.model.clone();
        let (options, now) = (self.fetch_options()?, self.now());
        let claim = |event: &Event| Lease {
            event: event.clone(),
            group: self.group.clone(),
            consumer: options.consumer.clone(),
            lease_id: LeaseId::generate(),
            receipt: None,
            attempt: 1,
            leased_at: now,
            expires_at: now.saturating_add(options.lease_duration.as_duration()),
        };
        let log = &model.streams[&self.stream].log[0];
        let leases: Vec<Lease> = log[4..4 + count].iter().map(claim).collect();
        model.fetched(&self.stream, &self.group, &options, now, &leases)?;
        Ok(Allowed {
            effect: Effect::Whole,
            model,
        })
    }

    fn go_back(&self, which: Interrupted, model: &mut Model, partitions: Partitions) -> Outcome {
        let (stream, group) = (&self.stream, &self.group);
        agreed(match which.0 {
            Operation::Replay => {
                let sequence = Sequence::new(REPLAYED_AFTER)?;
                let replay = Replay::After {
                    sequence,
                    partitions,
                };
                model.replay(stream, group, &replay)
            }
            _ => model.reset(stream, group, &Start::Beginning, &partitions),
        })
    }

    /// Where the clock can be set, lets all leases end, twice, since a claim may have come late, and gives
    /// everything to one consumer: each event that is not terminal comes once, with its next attempt.
    pub(crate) async fn expect_the_rest(
        &self,
        handle: &Recorder,
        which: Interrupted,
        effects: &[Effect],
    ) -> Outcome {
        if !self.t.sets_the_clock() {
            return Ok(());
        }
        let group = self.group_via(handle);
        let mut states = Vec::new();
        for allowed in self.allowed(which, effects).await? {
            let unfinished = allowed.model.streams[&self.stream].groups[&self.group].unfinished();
            let next = unfinished
                .into_iter()
                .map(|(at, attempts)| (at, attempts + 1));
            states.push(next.collect::<BTreeMap<_, _>>());
        }
        let mut delivered = BTreeMap::new();
        for _ in 0..2 {
            self.t.pass(HOURS).await;
            for lease in group.fetch_all("z").await? {
                let at = (lease.event.partition.number(), lease.event.sequence.get());
                let again = delivered.insert(at, lease.attempt);
                expect(
                    again.is_none(),
                    "each event once (DLV-7)",
                    format!("{at:?} again"),
                )?;
                group.ack(&[lease]).await?;
            }
        }
        expect(
            states.contains(&delivered),
            format!("what is left, with its attempts, to be one of {states:?} (DLV-6)"),
            format!("{delivered:?}"),
        )
    }

    /// Claims everything that can be claimed, for another consumer.
    pub(crate) async fn claim_the_rest(&self, handle: &Recorder) -> Outcome<Vec<Lease>> {
        self.group_via(handle).fetch_all("z").await
    }

    fn group_via(&self, handle: &Recorder) -> Group {
        let stream = self.t.existing_stream(self.stream.clone());
        stream.via(handle).existing_group(self.group.clone())
    }

    fn fetch_options(&self) -> Result<FetchOptions, Error> {
        let options = FetchOptions::new(ConsumerId::new("b")?).with_limit(2);
        Ok(options.with_partitions(Partitions::only([P0])))
    }
}

/// The reason of the rejects that are interrupted.
const INTERRUPTED: &str = "interrupted";
/// The sequence after which the replay goes back, in every partition.
const REPLAYED_AFTER: u64 = 1;

fn part_of(some: usize, all: usize) -> Effect {
    if some == all {
        Effect::Whole
    } else {
        Effect::Part
    }
}

fn agreed<T>(predicted: Result<T, ErrorKind>) -> Outcome<T> {
    predicted.map_err(|kind| Failure::Undecided(format!("the model gives {kind}")))
}

fn new_group() -> Result<GroupName, Error> {
    GroupName::new("new")
}

/// The event as it was given.
fn given(event: &Event) -> NewEvent {
    let given = new_event(event.event_type.as_str(), json!({}));
    let mut given = given.with_id(event.id).with_partition(event.partition);
    given.payload = event.payload.clone();
    given
}

fn each<T>(results: Vec<Result<T, Error>>) -> Vec<Result<(), Error>> {
    let results = results.into_iter();
    results.map(|result| result.map(drop)).collect()
}
