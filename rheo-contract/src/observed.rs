//! The whole state that a backend shows, beside what a model says it should be.

use std::collections::BTreeMap;

use rheo_core::{
    Backend, Capabilities, DeadLetter, DeadLetterOptions, Event, Gate, GroupName, Guarantee, Lag,
    ListOptions, MaxAttempts, OptionalOperation, Partition, PartitionCount, Query, ReadOptions,
    Sequence, StreamInfo, StreamName, Timestamp,
};

use crate::expect::{Outcome, expect_eq};
use crate::model::{self, Model};

/// What can be seen of some streams without changing anything.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Observed {
    streams: BTreeMap<StreamName, Stream>,
}

#[derive(Debug, Clone, PartialEq)]
struct Stream {
    log: Vec<Vec<Event>>,
    queried: Option<Vec<Event>>,
    /// The partitions that it has where streams are listed, as often as it is.
    listed: Option<Vec<PartitionCount>>,
    listed_groups: Option<Vec<GroupName>>,
    groups: BTreeMap<GroupName, Group>,
}

#[derive(Debug, Clone, PartialEq)]
struct Group {
    lag: Option<Lag>,
    dead_letters: Option<Vec<DeadLetter>>,
    info: Option<Info>,
}

/// What is told of a group beside its names.
#[derive(Debug, Clone, PartialEq)]
struct Info {
    max_attempts: MaxAttempts,
    leased: u64,
    dead_letters: u64,
    lag: Lag,
}

/// More than any log here holds.
const ALL: u32 = 10_000;

/// What a backend with these capabilities shows of them.
struct Sight {
    queries: bool,
    streams: bool,
    groups: bool,
    lag: bool,
    dead_letters: bool,
    info: bool,
}

impl Sight {
    fn of(declared: &Capabilities) -> Self {
        let guarantee = |guarantee| Gate::Guarantee(guarantee).is_declared(declared);
        let operation = |operation| Gate::Operation(operation).is_declared(declared);
        Self {
            queries: guarantee(Guarantee::OrderedRangeScan),
            streams: operation(OptionalOperation::ListStreams),
            groups: operation(OptionalOperation::ListGroups),
            lag: guarantee(Guarantee::ContiguousFrontier),
            dead_letters: operation(OptionalOperation::DeadLetters),
            info: operation(OptionalOperation::GroupInfo),
        }
    }
}

impl Observed {
    /// What a backend shows of the streams and groups of a model.
    pub(crate) async fn of(backend: &dyn Backend, model: &Model) -> Outcome<Self> {
        Self::of_some(backend, model, |_| true).await
    }

    /// The same at one moment, though something may arrive while one looks: looks until two in a row show the
    /// same, since what arrives is not taken back.
    pub(crate) async fn of_a_moment(backend: &dyn Backend, model: &Model) -> Outcome<Self> {
        // More than what may arrive.
        const LOOKS: usize = 100;
        let mut last = Self::of(backend, model).await?;
        for _ in 0..LOOKS {
            let seen = Self::of(backend, model).await?;
            if seen == last {
                break;
            }
            last = seen;
        }
        Ok(last)
    }

    /// The same of some of the streams alone.
    pub(crate) async fn of_some(
        backend: &dyn Backend,
        model: &Model,
        which: impl Fn(&StreamName) -> bool,
    ) -> Outcome<Self> {
        let sight = Sight::of(&backend.capabilities());
        let mut streams = BTreeMap::new();
        let all_listed = if sight.streams {
            Some(list(backend).await?)
        } else {
            None
        };
        for (name, stream) in model.streams.iter().filter(|(name, _)| which(name)) {
            let mut log = Vec::new();
            for partition in stream.count.partitions() {
                log.push(read(backend, name, partition).await?);
            }
            let queried = if sight.queries {
                Some(query(backend, name).await?)
            } else {
                None
            };
            let listed = all_listed.as_ref().map(|all| {
                let of_it = all.iter().filter(|info| info.stream == *name);
                of_it.map(|info| info.partition_count).collect()
            });
            let listed_groups = if sight.groups {
                let options = ListOptions::new().with_limit(ALL);
                Some(backend.list_groups(name, &options).await?)
            } else {
                None
            };
            let mut groups = BTreeMap::new();
            for group in stream.groups.keys() {
                let mut shown = Group::shown(backend, &sight, name, group).await?;
                if !model.has_exact_times() {
                    shown.forget_times();
                }
                groups.insert(group.clone(), shown);
            }
            let stream = Stream {
                log,
                queried,
                listed,
                listed_groups,
                groups,
            };
            streams.insert(name.clone(), stream);
        }
        Ok(Self { streams })
    }

    /// What the model says.
    pub(crate) fn by(model: &Model, declared: &Capabilities) -> Self {
        let sight = Sight::of(declared);
        let stream = |stream: &model::Stream| {
            let queried = || {
                let mut events: Vec<Event> = stream.log.iter().flatten().cloned().collect();
                events.sort_by_key(|event| (event.sequence, event.partition));
                events
            };
            let group = |group: &model::Group| {
                let mut shown = Group {
                    lag: sight.lag.then(|| group.lag()),
                    dead_letters: sight.dead_letters.then(|| group.dead_letters()),
                    info: sight.info.then(|| Info {
                        max_attempts: group.max_attempts,
                        leased: group.leased(),
                        dead_letters: group.dead_letters().len() as u64,
                        lag: if sight.lag {
                            group.lag()
                        } else {
                            Lag::default()
                        },
                    }),
                };
                if !model.has_exact_times() {
                    shown.forget_times();
                }
                shown
            };
            Stream {
                log: stream.log.clone(),
                queried: sight.queries.then(queried),
                listed: sight.streams.then(|| vec![stream.count]),
                listed_groups: sight
                    .groups
                    .then(|| stream.groups.keys().cloned().collect()),
                groups: mapped(&stream.groups, group),
            }
        };
        Self {
            streams: mapped(&model.streams, stream),
        }
    }

    /// Demands that this is what the model says.
    pub(crate) fn expect(&self, model: &Model, declared: &Capabilities) -> Outcome {
        let expected = Self::by(model, declared);
        for (name, seen) in &self.streams {
            let expected = &expected.streams[name];
            for (at, (seen, expected)) in seen.log.iter().zip(&expected.log).enumerate() {
                let what = format!("the events of {name:?}, partition {at} (LOG-1, LOG-4)");
                expect_eq(&what, seen, expected)?;
            }
            let what = format!("the events of {name:?} by a query (QRY-1, QRY-2)");
            expect_eq(&what, &seen.queried, &expected.queried)?;
            let what = format!("the partitions of {name:?} in the list of streams (OPS-1)");
            expect_eq(&what, &seen.listed, &expected.listed)?;
            let what = format!("the list of groups of {name:?} (OPS-2)");
            expect_eq(&what, &seen.listed_groups, &expected.listed_groups)?;
            for (group, seen) in &seen.groups {
                let expected = &expected.groups[group];
                let of = format!("of {group:?} on {name:?}");
                expect_eq(&format!("the lag {of} (FRN-1)"), &seen.lag, &expected.lag)?;
                let what = format!("the dead letters {of} (DLQ-5)");
                expect_eq(&what, &seen.dead_letters, &expected.dead_letters)?;
                let what = format!("attempts at most, leases, dead letters and lag {of} (OPS-3)");
                expect_eq(&what, &seen.info, &expected.info)?;
            }
        }
        Ok(())
    }
}

impl Group {
    async fn shown(
        backend: &dyn Backend,
        sight: &Sight,
        stream: &StreamName,
        group: &GroupName,
    ) -> Outcome<Self> {
        let mut shown = Self {
            lag: None,
            dead_letters: None,
            info: None,
        };
        if sight.lag {
            shown.lag = Some(backend.lag(stream, group).await?);
        }
        if sight.dead_letters {
            let options = DeadLetterOptions::new().with_limit(ALL);
            shown.dead_letters = Some(backend.dead_letters(stream, group, &options).await?);
        }
        if sight.info {
            let info = backend.group_info(stream, group).await?;
            shown.info = Some(Info {
                max_attempts: info.max_attempts,
                leased: info.leased,
                dead_letters: info.dead_letters,
                lag: info.lag,
            });
        }
        Ok(shown)
    }
}

/// Where the store's clock is its own.
impl Group {
    fn forget_times(&mut self) {
        for dead in self.dead_letters.iter_mut().flatten() {
            dead.dead_at = Timestamp::UNIX_EPOCH;
        }
    }
}

async fn list(backend: &dyn Backend) -> Outcome<Vec<StreamInfo>> {
    let options = ListOptions::new().with_limit(ALL);
    Ok(backend.list_streams(&options).await?)
}

async fn read(
    backend: &dyn Backend,
    stream: &StreamName,
    partition: Partition,
) -> Outcome<Vec<Event>> {
    let options = ReadOptions::new().with_partition(partition);
    let options = options.with_after(Sequence::ZERO).with_limit(ALL);
    Ok(backend.read(stream, &options).await?)
}

async fn query(backend: &dyn Backend, stream: &StreamName) -> Outcome<Vec<Event>> {
    let query = Query::new().with_limit(ALL);
    Ok(backend.query(stream, &query).await?.events)
}

fn mapped<K: Ord + Clone, V, T>(map: &BTreeMap<K, V>, to: impl Fn(&V) -> T) -> BTreeMap<K, T> {
    map.iter()
        .map(|(key, value)| (key.clone(), to(value)))
        .collect()
}
