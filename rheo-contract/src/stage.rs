//! A store in a known state, and one operation on it that may be interrupted.

use std::time::Duration;

use rheo_core::{
    Backend, Capabilities, ConsumerId, DeadLetter, DeadLetterOptions, Error, ErrorKind, Event,
    EventId, FetchOptions, GroupInfo, GroupName, GroupOptions, Guarantee, Lag, Lease,
    LeaseDuration, LeaseId, ListOptions, MaxAttempts, NewEvent, Operation, OptionalOperation,
    Partition, PartitionCount, Partitions, Query, ReadOptions, Reason, Replay, ResetOptions,
    RetryOptions, Sequence, Start, StreamName, StreamOptions, Timestamp, Wakeup,
};

use crate::expect::{Failure, Outcome, broken, expect_eq};
use crate::fixture::Fixture;
use crate::model::{Model, Settle, Settled};
use crate::recorder::Recorder;
use crate::scene::{Group, P0, P1};

/// Longer than the leases of a stage, and by far shorter than those that an operation renewed.
pub(crate) const A_MINUTE: Duration = Duration::from_secs(60);
/// Longer than any lease of a stage.
pub(crate) const HOURS: Duration = Duration::from_secs(2 * 3_600);
/// The leases of a batch.
const BATCH: u32 = 2;
/// How often an event of a stage is handed out.
const ATTEMPTS: u32 = 2;
/// The reason of the rejects that are interrupted.
const INTERRUPTED: &str = "interrupted";
/// The sequence after which the replay goes back, in every partition.
const REPLAYED_AFTER: u64 = 1;

/// A stream with a group that has an event in every state, and the model of it.
pub(crate) struct Stage {
    pub(crate) t: Fixture,
    pub(crate) stream: StreamName,
    pub(crate) group: GroupName,
    pub(crate) model: Model,
    /// Of sequences 1 to 4 of the first partition; the first two are current, and the second may have been
    /// renewed.
    leases: Vec<Lease>,
    to_append: Vec<NewEvent>,
    to_append_with_ids: Vec<NewEvent>,
    to_replay: Replay,
    /// From where the fetch that is interrupted claims.
    to_fetch: Partition,
    new_stream: StreamName,
}

/// What differs from stage to stage.
struct Kind {
    /// The second lease was renewed.
    renews: bool,
    /// In the second partition leases have expired.
    is_worn: bool,
    /// A replay is of chosen events, and not after a sequence.
    replays_events: bool,
}

impl Kind {
    fn at_random(t: &Fixture) -> Self {
        let coin = || t.random(2) == 0;
        Self {
            renews: coin(),
            is_worn: coin(),
            replays_events: coin(),
        }
    }
}

/// An operation that is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupted(pub(crate) Operation, Ids);

/// Who chooses the ids of events that are appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ids {
    Given,
    Generated,
}

/// What an operation gave.
pub(crate) enum Answer {
    /// It was done.
    Done,
    Appended(Vec<Event>),
    Claimed(Vec<Lease>),
    Settled(Settled),
    Read(Vec<Event>),
    Queried(Vec<Event>),
    Lag(Lag),
    Groups(Vec<GroupName>),
    DeadLetters(Vec<DeadLetter>),
    Info(GroupInfo),
    Woken(Wakeup),
}

/// Parts of an operation's effect, a bit for each: partitions, leases of a batch, or claims.
pub(crate) type Parts = u32;

impl Interrupted {
    /// Every operation that a backend with these capabilities has, but for `close`; appends of events with
    /// ids and without.
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
        let ways = |operation: Operation| match operation {
            Operation::Append | Operation::AppendBatch => &[Ids::Given, Ids::Generated][..],
            _ => &[Ids::Given],
        };
        let all =
            all.flat_map(|operation| ways(operation).iter().map(move |ids| (operation, *ids)));
        all.map(|(operation, ids)| Self(operation, ids)).collect()
    }

    /// Those of them that the budget lets a case try one by one.
    pub(crate) fn some(t: &Fixture, which: impl Fn(Self) -> bool) -> Vec<Self> {
        let all = Self::all(&t.capabilities())
            .into_iter()
            .filter(|this| which(*this));
        t.budget().some_of(all.collect(), |bound| t.random(bound))
    }

    /// Whether it writes.
    pub(crate) fn writes(self) -> bool {
        self.0.writes()
    }

    /// Whether it settles or renews leases.
    pub(crate) fn is_settle(self) -> bool {
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

    /// Whether it may arrive late and nothing can be wrong with that but what ERR-2 forbids: the others reopen
    /// or claim anew.
    pub(crate) fn may_come_late(self) -> bool {
        self.writes()
            && !matches!(
                self.0,
                Operation::EnsureIndexes
                    | Operation::Fetch
                    | Operation::Replay
                    | Operation::ResetGroup
            )
    }

    /// Whether it changes nothing more when it arrives after it was done already (ERR-2). A renewal counts
    /// from its own time.
    pub(crate) fn is_done_once(self) -> bool {
        self.may_come_late() && !matches!(self.0, Operation::Renew | Operation::RenewBatch)
    }

    /// How many operation timeouts it may take: a batch form of delivery has one for each lease (ERR-4).
    pub(crate) fn timeouts(self) -> u32 {
        match self.0 {
            Operation::RenewBatch
            | Operation::AckBatch
            | Operation::RetryBatch
            | Operation::RejectBatch => BATCH,
            _ => 1,
        }
    }
}

impl Stage {
    /// So many stages at once, each in a strand of its own.
    ///
    /// Two partitions where there can be: in the first 1 and 2 are leased, 3 is acked, 4 is a dead
    /// letter and 5 and 6 are open; in the second all are open, or, where the clock can be set, at random
    /// 1 and 2 have expired, 2 and 3 are at their last attempt, 4 and 5 are open, and the
    /// fetch that is interrupted claims there.
    pub(crate) async fn make(t: &Fixture, count: usize) -> Outcome<Vec<Self>> {
        let stages = (0..count).map(|_| {
            let (t, kind) = (t.clone(), Kind::at_random(t));
            async move { Self::new(&t, kind).await }
        });
        let stages = t.strands(stages).await?;
        if t.sets_the_clock() {
            t.pass(t.brief()).await;
        }
        Ok(stages)
    }

    async fn new(t: &Fixture, kind: Kind) -> Outcome<Self> {
        let partitions = if t.capabilities().guarantees(Guarantee::Partitions) {
            2
        } else {
            1
        };
        let stream = t.stream(partitions).await?;
        let group = stream.group_of_attempts("billing", ATTEMPTS).await?;
        let mut model = Model::new(t.sets_the_clock());
        let count = PartitionCount::new(partitions)?;
        let options = GroupOptions::new().with_max_attempts(MaxAttempts::new(ATTEMPTS)?);
        agreed(model.create_stream(&stream.name, count))?;
        agreed(model.create_group(&stream.name, &group.name, &options))?;
        let to_append = (0..4_u32)
            .map(|at| {
                let partition = Partition::new(at % partitions);
                t.new_event().with_partition(partition)
            })
            .collect::<Vec<_>>();
        let with_id = |event: &NewEvent| event.clone().with_id(EventId::generate(t.now()));
        let mut stage = Self {
            stream: stream.name,
            group: group.name,
            leases: Vec::new(),
            model,
            to_append_with_ids: to_append.iter().map(with_id).collect(),
            to_append,
            to_replay: Replay::after(Sequence::new(REPLAYED_AFTER)?),
            to_fetch: P0,
            new_stream: StreamName::new(format!("new-{}", t.number()))?,
            t: t.clone(),
        };
        stage.fill(partitions).await?;
        stage.leases = stage.claim(P0, 4, LeaseDuration::default()).await?;
        let (acked, rejected) = (stage.leases[2].clone(), stage.leases[3].clone());
        stage.settle(&acked, &Settle::Ack).await?;
        stage
            .settle(&rejected, &Settle::Reject(Reason::new("broken")))
            .await?;
        if kind.renews {
            let second = stage.leases[1].clone();
            let renewal = Settle::Renew(LeaseDuration::default());
            stage.settle(&second, &renewal).await?;
        }
        if kind.is_worn && partitions > 1 && t.sets_the_clock() {
            stage.wear().await?;
            stage.to_fetch = P1;
        }
        if kind.replays_events {
            let log = &stage.model.streams[&stage.stream].log;
            let chosen = log[0][2..4]
                .iter()
                .chain(log.last().and_then(|log| log.first()));
            stage.to_replay = Replay::Events(chosen.map(|event| event.id).collect());
        }
        Ok(stage)
    }

    async fn fill(&mut self, partitions: u32) -> Outcome {
        let mut events = Vec::new();
        for (partition, count) in [(P0, 6), (P1, 5)] {
            if partition.number() < partitions {
                events.extend((0..count).map(|_| self.t.new_event().with_partition(partition)));
            }
        }
        let backend = &self.t.backend;
        let mut appended = Vec::new();
        if self.t.capabilities().guarantees(Guarantee::BatchWrites) {
            appended = backend.append_batch(&self.stream, events.clone()).await?;
        } else {
            for event in &events {
                appended.push(backend.append(&self.stream, event.clone()).await?);
            }
        }
        self.model.appended(&self.stream, &events, &appended)
    }

    async fn claim(
        &mut self,
        from: Partition,
        count: u32,
        lasts: LeaseDuration,
    ) -> Outcome<Vec<Lease>> {
        let mut leases: Vec<Lease> = Vec::new();
        let group = self.group_via(&self.t.backend);
        while leases.len() < count as usize {
            let missing = count - u32::try_from(leases.len()).unwrap_or(count);
            let options = FetchOptions::new(ConsumerId::new("a")?)
                .with_limit(missing)
                .with_lease_duration(lasts)
                .with_partitions(Partitions::only([from]));
            let now = self.t.now();
            let fetched = group.fetch_with(&options).await?;
            let model = &mut self.model;
            model.fetched(&self.stream, &self.group, &options, now, &fetched)?;
            leases.extend(fetched);
        }
        Ok(leases)
    }

    async fn settle(&mut self, lease: &Lease, how: &Settle) -> Outcome {
        let backend = &self.t.backend;
        match how {
            Settle::Renew(duration) => backend.renew(lease, *duration).await.map(drop)?,
            Settle::Ack => backend.ack(lease).await?,
            Settle::Retry(options) => backend.retry(lease, options).await.map(drop)?,
            Settle::Reject(reason) => backend.reject(lease, reason).await?,
        }
        agreed(self.model.settle(lease, how, self.t.now())).map(drop)
    }

    /// In the second partition 1 and 2 are about to expire, and 2 and 3 are at their last attempt.
    async fn wear(&mut self) -> Outcome {
        let (brief, hour) = (self.t.brief_lease(), renewed_for()?);
        let claimed = self.claim(P1, 3, brief).await?;
        for lease in &claimed[1..] {
            self.settle(lease, &Settle::Retry(RetryOptions::new()))
                .await?;
        }
        self.claim(P1, 1, brief).await?;
        self.claim(P1, 1, hour).await.map(drop)
    }

    /// Calls the operation; gives a result for each lease of a batch.
    pub(crate) async fn call(
        &self,
        backend: &Recorder,
        which: Interrupted,
    ) -> Outcome<Vec<Result<Answer, Error>>> {
        let both = &self.leases[..BATCH as usize];
        let again = RetryOptions::new();
        let reason = Reason::new(INTERRUPTED);
        Ok(match which.0 {
            Operation::RenewBatch => {
                let renewed = backend.renew_batch(both, renewed_for()?).await;
                each(renewed, |lease| Settled::Renewed(Box::new(lease)))
            }
            Operation::AckBatch => each(backend.ack_batch(both).await, |()| Settled::Acked),
            Operation::RetryBatch => {
                each(backend.retry_batch(both, &again).await, Settled::Retried)
            }
            Operation::RejectBatch => each(backend.reject_batch(both, &reason).await, |()| {
                Settled::Rejected
            }),
            _ => vec![self.answer(backend, which).await?],
        })
    }

    async fn answer(
        &self,
        backend: &Recorder,
        which: Interrupted,
    ) -> Outcome<Result<Answer, Error>> {
        let (stream, group) = (&self.stream, &self.group);
        let lease = &self.leases[0];
        let reason = Reason::new(INTERRUPTED);
        Ok(match which.0 {
            Operation::Close => done(backend.close().await),
            Operation::EnsureIndexes => done(backend.ensure_indexes().await),
            Operation::Ping => done(backend.ping().await),
            Operation::CreateStream => {
                let options = StreamOptions::new();
                done(backend.create_stream(&self.new_stream, &options).await)
            }
            Operation::CreateGroup => {
                let options = GroupOptions::new();
                done(backend.create_group(stream, &new_group()?, &options).await)
            }
            Operation::Append => {
                let event = self.appends(which)[0].clone();
                let appended = backend.append(stream, event).await;
                appended.map(|event| Answer::Appended(vec![event]))
            }
            Operation::AppendBatch => {
                let appended = backend
                    .append_batch(stream, self.appends(which).to_vec())
                    .await;
                appended.map(Answer::Appended)
            }
            Operation::Read => {
                let read = backend.read(stream, &ReadOptions::new()).await;
                read.map(Answer::Read)
            }
            Operation::Query => {
                let page = backend.query(stream, &Query::new()).await;
                page.map(|page| Answer::Queried(page.events))
            }
            Operation::Fetch => {
                let fetched = backend.fetch(stream, group, &self.fetch_options()?).await;
                fetched.map(Answer::Claimed)
            }
            Operation::Renew => {
                let renewed = backend.renew(lease, renewed_for()?).await;
                renewed.map(|lease| Answer::Settled(Settled::Renewed(Box::new(lease))))
            }
            Operation::Ack => {
                let acked = backend.ack(lease).await;
                acked.map(|()| Answer::Settled(Settled::Acked))
            }
            Operation::Retry => {
                let retried = backend.retry(lease, &RetryOptions::new()).await;
                retried.map(|outcome| Answer::Settled(Settled::Retried(outcome)))
            }
            Operation::Reject => {
                let rejected = backend.reject(lease, &reason).await;
                rejected.map(|()| Answer::Settled(Settled::Rejected))
            }
            Operation::Replay => done(backend.replay(stream, group, &self.to_replay).await),
            Operation::ResetGroup => {
                let options = ResetOptions::new();
                done(backend.reset_group(stream, group, &options).await)
            }
            Operation::Lag => backend.lag(stream, group).await.map(Answer::Lag),
            // Others make streams meanwhile.
            Operation::ListStreams => {
                let listed = backend.list_streams(&ListOptions::new()).await;
                done(listed.map(drop))
            }
            Operation::ListGroups => {
                let listed = backend.list_groups(stream, &ListOptions::new()).await;
                listed.map(Answer::Groups)
            }
            Operation::DeadLetters => {
                let options = DeadLetterOptions::new();
                let letters = backend.dead_letters(stream, group, &options).await;
                letters.map(Answer::DeadLetters)
            }
            Operation::GroupInfo => backend.group_info(stream, group).await.map(Answer::Info),
            Operation::WaitForWork => {
                // There is work: this is waited for only where no answer comes.
                let timeout = Duration::from_secs(1);
                let waited = backend.wait_for_work(stream, group, timeout).await;
                waited.map(Answer::Woken)
            }
            other => {
                return Err(Failure::Undecided(format!(
                    "an operation that the suite does not know: {other}"
                )));
            }
        })
    }

    /// Takes over what a call gave, the `nth` result of a batch; demands that it could be that.
    pub(crate) fn take(
        &self,
        model: &mut Model,
        which: Interrupted,
        nth: usize,
        result: &Result<Answer, Error>,
    ) -> Outcome {
        let result = match result {
            Ok(answer) => self.taken(model, which, nth, answer),
            Err(error) => {
                let mut trial = model.clone();
                match self.predicted(&mut trial, which, nth) {
                    Err(kind) if kind == error.kind() => Ok(()),
                    Err(kind) => Err(broken(format!("Err({kind})"), seen(error))),
                    Ok(()) => Err(broken("Ok", seen(error))),
                }
            }
        };
        result.map_err(|failure| match failure {
            Failure::Broken { expected, seen } => {
                broken(format!("{expected}, of {}", which.0), seen)
            }
            other => other,
        })
    }

    fn taken(&self, model: &mut Model, which: Interrupted, nth: usize, answer: &Answer) -> Outcome {
        let (stream, group, now) = (&self.stream, &self.group, self.t.now());
        let shown = &model.streams[stream];
        match answer {
            Answer::Appended(appended) => {
                let given = self.appends(which);
                model.appended(stream, given, appended)
            }
            Answer::Claimed(leases) => {
                model.fetched(stream, group, &self.fetch_options()?, now, leases)
            }
            Answer::Settled(settled) => {
                let Some((leases, how)) = self.settles(which) else {
                    return Ok(());
                };
                settled_as(model, &leases[nth], &how, settled, now)
            }
            Answer::Done => {
                let predicted = self.predicted(model, which, nth);
                predicted.map_err(|kind| broken(format!("Err({kind})"), "Ok"))
            }
            Answer::Read(events) => expect_eq("the events read (LOG-5)", events, &shown.log[0]),
            Answer::Queried(events) => {
                let mut all: Vec<&Event> = shown.log.iter().flatten().collect();
                all.sort_by_key(|event| (event.sequence, event.partition));
                let events: Vec<&Event> = events.iter().collect();
                expect_eq("the events of a query (QRY-1)", events, all)
            }
            Answer::Lag(lag) => expect_eq("the lag (FRN-4)", lag, &shown.groups[group].lag()),
            Answer::Groups(groups) => {
                let all: Vec<GroupName> = shown.groups.keys().cloned().collect();
                expect_eq("the groups (OPS-2)", groups, &all)
            }
            Answer::DeadLetters(letters) => {
                let mut letters = letters.clone();
                let mut expected = shown.groups[group].dead_letters();
                if !model.has_exact_times() {
                    for letter in letters.iter_mut().chain(&mut expected) {
                        letter.dead_at = Timestamp::UNIX_EPOCH;
                    }
                }
                expect_eq("the dead letters (DLQ-5)", letters, expected)
            }
            Answer::Info(info) => {
                let group = &shown.groups[group];
                let expected = (group.leased(), group.dead_letters().len() as u64);
                let info = (info.leased, info.dead_letters);
                expect_eq("leases and dead letters (OPS-3)", info, expected)
            }
            Answer::Woken(wakeup) => {
                let expected = Wakeup::MaybeWork;
                expect_eq("the wakeup, since there is work (OPS-4)", *wakeup, expected)
            }
        }
    }

    /// What the operation should give, and its effect; of the `nth` lease of a batch.
    fn predicted(
        &self,
        model: &mut Model,
        which: Interrupted,
        nth: usize,
    ) -> Result<(), ErrorKind> {
        let (stream, group) = (&self.stream, &self.group);
        match which.0 {
            Operation::CreateStream => {
                model.create_stream(&self.new_stream, PartitionCount::default())
            }
            Operation::CreateGroup => {
                let name = new_group().map_err(|error| error.kind())?;
                model.create_group(stream, &name, &GroupOptions::new())
            }
            Operation::Append | Operation::AppendBatch => {
                model.route(stream, self.appends(which)).map(drop)
            }
            Operation::Replay => model.replay(stream, group, &self.to_replay),
            Operation::ResetGroup => {
                model.reset(stream, group, &Start::Beginning, &Partitions::All)
            }
            _ => match self.settles(which) {
                Some((leases, how)) => {
                    let now = self.t.now();
                    model.settle(&leases[nth], &how, now).map(drop)
                }
                None => Ok(()),
            },
        }
    }

    /// All parts of the operation's effect.
    pub(crate) fn whole(&self, which: Interrupted) -> Parts {
        let all = |count: usize| (1 << count) - 1;
        match which.0 {
            Operation::AppendBatch | Operation::Replay | Operation::ResetGroup => {
                all(self.model.streams[&self.stream].count.get() as usize)
            }
            Operation::Fetch => all(BATCH as usize),
            _ => self
                .settles(which)
                .map_or(1, |(leases, _)| all(leases.len())),
        }
    }

    /// Lets parts of the effect come to pass at a moment; false where they cannot.
    pub(crate) async fn happens(
        &self,
        model: &mut Model,
        which: Interrupted,
        parts: Parts,
        now: Timestamp,
    ) -> Outcome<bool> {
        let (stream, group) = (&self.stream, &self.group);
        let is_in = |at: u32| parts & (1 << at) != 0;
        let partitions = model.streams[stream].count.partitions();
        Ok(match which.0 {
            Operation::Append | Operation::AppendBatch => {
                let is_in = |event: &&NewEvent| is_in(event.partition.map_or(0, Partition::number));
                let events = self.appends(which).iter();
                let events: Vec<_> = match which.0 {
                    Operation::Append => events.cloned().collect(),
                    _ => events.filter(is_in).cloned().collect(),
                };
                self.append_to(model, &events, now).await
            }
            Operation::Fetch => {
                let count = parts.count_ones() as usize;
                let options = self.fetch_options()?;
                let claimable = model.claimable(stream, group, &options.partitions, now);
                let claims = claimable.into_iter().take(count);
                let claims = claims.map(|(event, attempts)| Lease {
                    // The same for the same claim, so that equal states are.
                    lease_id: LeaseId::new(format!(
                        "{now} {}/{} {attempts}",
                        event.partition, event.sequence
                    )),
                    event,
                    group: group.clone(),
                    consumer: options.consumer.clone(),
                    receipt: None,
                    attempt: attempts + 1,
                    leased_at: now,
                    expires_at: now.saturating_add(options.lease_duration.as_duration()),
                });
                let leases: Vec<Lease> = claims.collect();
                let are_all = leases.len() == count;
                are_all && model.fetched(stream, group, &options, now, &leases).is_ok()
            }
            Operation::Replay | Operation::ResetGroup => {
                let chosen = partitions.filter(|at| is_in(at.number()));
                let chosen = Partitions::only(chosen);
                let gone_back = match (which.0, &self.to_replay) {
                    (Operation::Replay, Replay::Events(ids)) => {
                        let log = model.streams[stream].log.iter().flatten();
                        let chosen =
                            log.filter(|e| chosen.contains(e.partition) && ids.contains(&e.id));
                        let replay = Replay::Events(chosen.map(|event| event.id).collect());
                        model.replay(stream, group, &replay)
                    }
                    (Operation::Replay, _) => {
                        let sequence = Sequence::new(REPLAYED_AFTER)?;
                        let replay = Replay::After {
                            sequence,
                            partitions: chosen,
                        };
                        model.replay(stream, group, &replay)
                    }
                    _ => model.reset(stream, group, &Start::Beginning, &chosen),
                };
                agreed(gone_back)?;
                true
            }
            _ => match self.settles(which) {
                Some((leases, how)) => {
                    let mut settled = (0..).zip(leases).filter(|(at, _)| is_in(*at));
                    settled.all(|(_, lease)| model.settle(lease, &how, now).is_ok())
                }
                None => self.predicted(model, which, 0).is_ok(),
            },
        })
    }

    /// Appends to the model what the store may have appended at a moment; false where that cannot be.
    pub(crate) async fn append_to(
        &self,
        model: &mut Model,
        events: &[NewEvent],
        now: Timestamp,
    ) -> bool {
        let Ok(places) = model.route(&self.stream, events) else {
            return false;
        };
        let mut appended = Vec::new();
        for (given, (partition, sequence)) in events.iter().zip(places) {
            let is_known = given.id.is_some() && self.t.sets_the_clock();
            let there = match is_known {
                true => None,
                false => self.stored(partition, sequence).await,
            };
            let id = given.id.or(there.as_ref().map(|event| event.id));
            appended.push(Event {
                id: id.unwrap_or_else(|| self.t.unknown_id()),
                stream: self.stream.clone(),
                partition,
                sequence,
                event_type: given.event_type.clone(),
                key: given.key.clone(),
                payload: given.payload.clone(),
                metadata: given.metadata.clone(),
                timestamp: match there {
                    Some(event) if !self.t.sets_the_clock() => event.timestamp,
                    _ => now,
                },
            });
        }
        model.appended(&self.stream, events, &appended).is_ok()
    }

    /// The event at a place, if it is there and the store can be reached: what the store chose is looked up.
    async fn stored(&self, partition: Partition, sequence: Sequence) -> Option<Event> {
        let options = ReadOptions::new().with_partition(partition);
        let backend = self.t.backend.unrecorded();
        let events = backend.read(&self.stream, &options).await.ok()?;
        events.into_iter().find(|event| event.sequence == sequence)
    }

    /// Whether a call that repeats the operation, of which nobody knows what became, does no harm: an append
    /// without ids happens twice then, and a fetch claims more.
    pub(crate) fn is_safe_to_repeat(&self, which: Interrupted) -> bool {
        let has_ids = self.appends(which).iter().all(|event| event.id.is_some());
        which.0 != Operation::Fetch && has_ids
    }

    /// An event for each partition to which the operation appends, if it does.
    pub(crate) fn beside(&self, which: Interrupted) -> Vec<NewEvent> {
        let mut partitions: Vec<_> = self.appends(which).iter().map(|e| e.partition).collect();
        partitions.sort_unstable();
        partitions.dedup();
        let events = partitions.into_iter().flatten().map(|partition| {
            let id = EventId::generate(self.t.now());
            self.t.new_event().with_id(id).with_partition(partition)
        });
        events.collect()
    }

    /// What the operation makes.
    pub(crate) fn makes(&self, which: Interrupted) -> Option<(StreamName, Option<GroupName>)> {
        match which.0 {
            Operation::CreateStream => Some((self.new_stream.clone(), None)),
            Operation::CreateGroup => Some((self.stream.clone(), new_group().ok())),
            _ => None,
        }
    }

    /// The events that an operation appends.
    fn appends(&self, which: Interrupted) -> &[NewEvent] {
        let events = match which.1 {
            Ids::Given => &self.to_append_with_ids,
            Ids::Generated => &self.to_append,
        };
        match which.0 {
            Operation::Append => &events[..1],
            Operation::AppendBatch => events,
            _ => &[],
        }
    }

    /// The leases that an operation settles, and how.
    fn settles(&self, which: Interrupted) -> Option<(&[Lease], Settle)> {
        let (one, both) = (&self.leases[..1], &self.leases[..BATCH as usize]);
        let reject = || Settle::Reject(Reason::new(INTERRUPTED));
        let again = || Settle::Retry(RetryOptions::new());
        let renewal = || Settle::Renew(renewed_for().unwrap_or_default());
        Some(match which.0 {
            Operation::Renew => (one, renewal()),
            Operation::RenewBatch => (both, renewal()),
            Operation::Ack => (one, Settle::Ack),
            Operation::AckBatch => (both, Settle::Ack),
            Operation::Retry => (one, again()),
            Operation::RetryBatch => (both, again()),
            Operation::Reject => (one, reject()),
            Operation::RejectBatch => (both, reject()),
            _ => return None,
        })
    }

    pub(crate) fn group_via(&self, handle: &Recorder) -> Group {
        let stream = self.t.existing_stream(self.stream.clone());
        stream.via(handle).existing_group(self.group.clone())
    }

    fn fetch_options(&self) -> Result<FetchOptions, Error> {
        let options = FetchOptions::new(ConsumerId::new("b")?).with_limit(BATCH);
        Ok(options.with_partitions(Partitions::only([self.to_fetch])))
    }

    /// Lets a fetch find the claims that are used up at a moment, as it may; false where there are none, or
    /// it is no fetch.
    pub(crate) fn buries(&self, model: &mut Model, which: Interrupted, now: Timestamp) -> bool {
        let (stream, group) = (&self.stream, &self.group);
        let from = Partitions::only([self.to_fetch]);
        let buries = which.0 == Operation::Fetch && model.has_used_up(stream, group, &from, now);
        if buries {
            model.bury_used_up(stream, group, &from, now);
        }
        buries
    }
}

/// Takes over what a settle gave; demands that it could be that.
pub(crate) fn settled_as(
    model: &mut Model,
    lease: &Lease,
    how: &Settle,
    settled: &Settled,
    now: Timestamp,
) -> Outcome {
    let predicted = model.settle(lease, how, now);
    let predicted = predicted.map_err(|kind| broken(format!("Err({kind})"), "Ok"))?;
    let mut settled = settled.clone();
    if let (Settled::Renewed(predicted), Settled::Renewed(renewed)) = (&predicted, &mut settled)
        && !model.has_exact_times()
    {
        renewed.expires_at = predicted.expires_at;
    }
    expect_eq("what settling gives (LSE-6, DLQ-2)", settled, predicted)
}

/// How long an operation renews a lease for.
fn renewed_for() -> Result<LeaseDuration, Error> {
    LeaseDuration::new(Duration::from_secs(3_600))
}

pub(crate) fn agreed<T>(predicted: Result<T, ErrorKind>) -> Outcome<T> {
    predicted.map_err(|kind| Failure::Undecided(format!("the model gives {kind}")))
}

fn new_group() -> Result<GroupName, Error> {
    GroupName::new("new")
}

fn seen(error: &Error) -> String {
    format!("Err({}): {error}", error.kind())
}

fn done(result: Result<(), Error>) -> Result<Answer, Error> {
    result.map(|()| Answer::Done)
}

fn each<T>(
    results: Vec<Result<T, Error>>,
    settled: impl Fn(T) -> Settled,
) -> Vec<Result<Answer, Error>> {
    let settled = |result: Result<T, Error>| result.map(|value| Answer::Settled(settled(value)));
    results.into_iter().map(settled).collect()
}
