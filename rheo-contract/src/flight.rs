//! Several calls in flight at once over one handle, each about things of its own, so that each can be judged
//! alone.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rheo_core::{
    Backend, ConsumerId, Error, ErrorKind, Event, EventId, FetchOptions, Guarantee, Lag, Lease,
    LeaseDuration, NewEvent, Operation, ReadOptions, Reason, RetryOptions,
};

use crate::expect::{Outcome, broken, expect, expect_eq};
use crate::fixture::Fixture;
use crate::operations::Target;
use crate::recorder::Recorder;
use crate::scene::{Group, P0, Stream};
use crate::stage::A_MINUTE;

/// The default operation timeout, and room for a machine that is busy.
const WITHIN: Duration = Duration::from_secs(10);

/// A future of a flight.
type Call<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A stream of which nothing changes, and a group on it.
#[derive(Clone)]
pub(crate) struct Quiet {
    group: Group,
    log: Vec<Event>,
    lag: Option<Lag>,
}

impl Quiet {
    pub(crate) async fn of(t: &Fixture) -> Outcome<Self> {
        let group = t.group_with_events(3).await?;
        group.ack(&group.fetch_exactly("a", 1).await?).await?;
        let has_lag = t.capabilities().guarantees(Guarantee::ContiguousFrontier);
        Ok(Self {
            log: group.stream.read(P0).await?,
            lag: if has_lag {
                Some(group.lag().await?)
            } else {
                None
            },
            group,
        })
    }

    /// Demands what is there of a handle.
    pub(crate) async fn is_seen(&self, handle: &Recorder) -> Outcome {
        let group = self.group.via(handle);
        expect_eq("the events read", &group.stream.read(P0).await?, &self.log)?;
        if let Some(lag) = &self.lag {
            expect_eq("the lag", &group.lag().await?, lag)?;
        }
        Ok(())
    }
}

/// A stream with a group for every call of the flight that needs one.
pub(crate) struct Flight {
    t: Fixture,
    stream: Stream,
    quiet: Quiet,
    /// What the call is about that is interrupted.
    target: Target,
    interrupted: Group,
    /// Of a group of their own, for a settle each.
    leases: Vec<Lease>,
    /// From which one fetches.
    fetched: Group,
    event: NewEvent,
}

/// A call of the flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Append,
    Ack,
    AnotherAck,
    Renew,
    Retry,
    Reject,
    Fetch,
    Lag,
    Read,
    /// The very call that is interrupted, once more.
    Same(Operation),
}

impl Beside {
    const ALL: [Self; 9] = [
        Self::Append,
        Self::Ack,
        Self::AnotherAck,
        Self::Renew,
        Self::Retry,
        Self::Reject,
        Self::Fetch,
        Self::Lag,
        Self::Read,
    ];

    /// Which of the leases it settles.
    fn lease(self) -> Option<usize> {
        let settles = [
            Self::Ack,
            Self::AnotherAck,
            Self::Renew,
            Self::Retry,
            Self::Reject,
        ];
        settles.iter().position(|settle| *settle == self)
    }

    fn writes(self) -> bool {
        match self {
            Self::Lag | Self::Read => false,
            Self::Same(operation) => operation.writes(),
            _ => true,
        }
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(operation) => write!(f, "another {operation} of the same"),
            other => write!(f, "{other:?}"),
        }
    }
}

/// What a call gave.
enum Given {
    Nothing,
    Appended(Event),
    Claimed(Vec<Lease>),
    Lag(Lag),
    Read(Vec<Event>),
}

/// What became of the calls of a flight.
pub(crate) struct Landed(Vec<(Beside, Result<Given, Error>)>);

/// Whether calls beside the one that is interrupted may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    GoOn,
    /// The connection may be one for all.
    MayFail,
}

impl Flight {
    pub(crate) async fn of(t: &Fixture, quiet: &Quiet) -> Outcome<Self> {
        let (stream, settles) = (t.stream(1).await?, 5);
        let interrupted = stream.group("interrupted").await?;
        let settled = stream.group("settled").await?;
        let fetched = stream.group("fetched").await?;
        let target = Target::of(&interrupted).await?;
        stream.append(settles).await?;
        Ok(Self {
            leases: settled.fetch_exactly("b", settles).await?,
            event: t.new_event().with_id(EventId::generate(t.now())),
            t: t.clone(),
            stream,
            quiet: quiet.clone(),
            target,
            interrupted,
            fetched,
        })
    }

    /// Calls an operation, which is interrupted, and others beside it, which begin before it or after it.
    /// Gives what became of it, too.
    pub(crate) async fn beside<T: Send>(
        &self,
        handle: &Recorder,
        operation: Operation,
        is_ahead: bool,
        interrupted: impl Future<Output = T> + Send,
    ) -> Outcome<(Option<T>, Landed)> {
        let mut all = vec![Beside::Same(operation)];
        all.extend(self.declared());
        let mut landed: Vec<Option<Outcome<Result<Given, Error>>>> = Vec::new();
        landed.resize_with(all.len(), || None);
        let mut given = None;
        {
            let mut calls: Vec<Call<'_, ()>> = Vec::new();
            for (which, landed) in all.iter().zip(&mut landed) {
                calls.push(Box::pin(async move {
                    *landed = Some(self.call_in_time(*which, handle).await);
                }));
            }
            let given = &mut given;
            let interrupted: Call<'_, ()> = Box::pin(async move {
                *given = tokio::time::timeout(WITHIN, interrupted).await.ok();
            });
            let at = if is_ahead { 0 } else { calls.len() };
            calls.insert(at, interrupted);
            all_of(calls).await;
        }
        Ok((given, Landed::of(all, landed)?))
    }

    /// Calls all but an interrupted one.
    pub(crate) async fn all(&self, handle: &Recorder) -> Outcome<Landed> {
        let all = self.declared();
        let mut landed: Vec<Option<Outcome<Result<Given, Error>>>> = Vec::new();
        landed.resize_with(all.len(), || None);
        let calls = all.iter().zip(&mut landed).map(|(which, landed)| {
            let call: Call<'_, ()> = Box::pin(async move {
                *landed = Some(self.call_in_time(*which, handle).await);
            });
            call
        });
        all_of(calls.collect()).await;
        Landed::of(all, landed)
    }

    /// Calls the operation that is interrupted.
    pub(crate) async fn call(
        &self,
        handle: &Recorder,
        operation: Operation,
    ) -> Vec<Result<(), Error>> {
        self.target.call(handle, operation).await
    }

    fn declared(&self) -> Vec<Beside> {
        let is_there = |which: &Beside| *which != Beside::Lag || self.quiet.lag.is_some();
        Beside::ALL.into_iter().filter(is_there).collect()
    }

    async fn call_in_time(
        &self,
        which: Beside,
        handle: &Recorder,
    ) -> Outcome<Result<Given, Error>> {
        let call = tokio::time::timeout(WITHIN, self.make(which, handle));
        let call = call.await;
        call.map_err(|_| {
            broken(
                format!("{which} to end, whatever happens to a call beside it (CAN-1, ERR-4)"),
                format!("no answer within {WITHIN:?}"),
            )
        })?
    }

    async fn make(&self, which: Beside, handle: &Recorder) -> Outcome<Result<Given, Error>> {
        let (stream, group) = (&self.stream.name, &self.fetched.name);
        if let Beside::Same(operation) = which {
            let results = self.target.call(handle, operation).await;
            // It is done twice.
            let is_twice =
                |error: &Error| error.is_lost() || error.kind() == ErrorKind::AlreadyExists;
            let mut failed = results.into_iter().filter_map(Result::err);
            let failed = failed.find(|error| !is_twice(error));
            return Ok(failed.map_or(Ok(Given::Nothing), Err));
        }
        let nothing = |result: Result<(), Error>| result.map(|()| Given::Nothing);
        if let Some(lease) = which.lease().map(|at| &self.leases[at]) {
            return Ok(nothing(match which {
                Beside::Renew => handle
                    .renew(lease, LeaseDuration::default())
                    .await
                    .map(drop),
                Beside::Retry => handle.retry(lease, &RetryOptions::new()).await.map(drop),
                Beside::Reject => handle.reject(lease, &Reason::new("bad")).await,
                _ => handle.ack(lease).await,
            }));
        }
        let quiet = &self.quiet.group;
        Ok(match which {
            Beside::Append => {
                let appended = handle.append(stream, self.event.clone()).await;
                appended.map(Given::Appended)
            }
            Beside::Fetch => {
                let options = FetchOptions::new(ConsumerId::new("b")?).with_limit(2);
                let fetched = handle.fetch(stream, group, &options).await;
                fetched.map(Given::Claimed)
            }
            Beside::Lag => {
                let lag = handle.lag(&quiet.stream.name, &quiet.name).await;
                lag.map(Given::Lag)
            }
            _ => {
                let options = ReadOptions::new();
                let read = handle.read(&quiet.stream.name, &options).await;
                read.map(Given::Read)
            }
        })
    }

    /// Demands that each call was told what happened.
    pub(crate) async fn judge(&self, landed: Landed, others: Others) -> Outcome {
        // What is like the interrupted one comes last, since time may pass for it.
        for (which, told) in landed.0.into_iter().rev() {
            self.judge_one(which, told, others).await?;
        }
        Ok(())
    }

    async fn judge_one(
        &self,
        which: Beside,
        told: Result<Given, Error>,
        others: Others,
    ) -> Outcome {
        // Whether it happened, if one was told.
        let happened = match &told {
            Ok(_) => Some(true),
            Err(Error::Ambiguous(_)) => None,
            Err(_) => Some(false),
        };
        if let Err(error) = &told {
            let may_fail = match error.kind() {
                ErrorKind::BackendUnavailable | ErrorKind::Failed => true,
                kind => kind == ErrorKind::Ambiguous && which.writes(),
            };
            let expected = match others {
                Others::GoOn => {
                    format!("{which} not to fail for what happens to a call beside it (CAN-1)")
                }
                Others::MayFail => {
                    format!("{which} to be Ok, or to fail for the connection alone (ERR-2, ERR-3)")
                }
            };
            expect(
                may_fail && others == Others::MayFail,
                expected,
                format!("Err({}): {error}", error.kind()),
            )?;
        }
        let as_told = |has: bool, what: &str| {
            expect(
                happened.is_none_or(|happened| happened == has),
                format!("{which} to have happened if it was Ok, and else not (ERR-1)"),
                format!(
                    "{what}, and it was told {}",
                    if told.is_ok() { "Ok" } else { "an error" }
                ),
            )
        };
        if let Some(lease) = which.lease().map(|at| &self.leases[at]) {
            let is_current = match self.t.backend.ack(lease).await {
                Err(Error::StaleLease) => false,
                acked => acked.map(|()| true)?,
            };
            return match which {
                Beside::Renew => {
                    expect(is_current, "the renewed lease to be current", "it is stale")
                }
                _ if is_current => as_told(false, "the lease was current"),
                _ => as_told(true, "the lease was stale"),
            };
        }
        match &told {
            Ok(Given::Lag(lag)) => return expect_eq("the lag", Some(lag), self.quiet.lag.as_ref()),
            Ok(Given::Read(log)) => return expect_eq("the events read", log, &self.quiet.log),
            _ => {}
        }
        let log = self.stream.read(P0).await?;
        match which {
            Beside::Append => {
                let stored = log.iter().find(|event| Some(event.id) == self.event.id);
                if let Ok(Given::Appended(event)) = &told {
                    return expect_eq("the event appended", stored, Some(event));
                }
                as_told(stored.is_some(), "the event was there or not")
            }
            Beside::Fetch => {
                if happened.is_none() {
                    return Ok(());
                }
                let mut leases = match told {
                    Ok(Given::Claimed(leases)) => leases,
                    _ => Vec::new(),
                };
                leases.extend(self.fetched.fetch_all("z").await?);
                if self.t.sets_the_clock() {
                    let count = ids(&leases).len();
                    expect_eq("the events given, each once (DLV-7)", leases.len(), count)?;
                }
                expect_all(
                    "what one fetch gave, and what the next ones did",
                    &leases,
                    &log,
                )
            }
            Beside::Same(Operation::Fetch) if self.t.sets_the_clock() => {
                let mut leases = Vec::new();
                // Twice, since what was dropped may claim late.
                for _ in 0..2 {
                    self.t.pass(A_MINUTE).await;
                    leases.extend(self.interrupted.fetch_all("z").await?);
                }
                expect_all("what was left when the leases had ended", &leases, &log)
            }
            _ => Ok(()),
        }
    }
}

impl Landed {
    fn of(all: Vec<Beside>, landed: Vec<Option<Outcome<Result<Given, Error>>>>) -> Outcome<Self> {
        let mut told = Vec::new();
        for (which, landed) in all.into_iter().zip(landed) {
            if let Some(landed) = landed {
                told.push((which, landed?));
            }
        }
        Ok(Self(told))
    }
}

fn ids(leases: &[Lease]) -> BTreeSet<EventId> {
    leases.iter().map(|lease| lease.event.id).collect()
}

/// Demands all the events of a log.
fn expect_all(what: &str, leases: &[Lease], log: &[Event]) -> Outcome {
    let given = ids(leases);
    let missing = log.iter().filter(|event| !given.contains(&event.id));
    let missing: Vec<_> = missing.collect();
    expect(
        missing.is_empty(),
        format!("{what} to be every event (DLV-6)"),
        format!("all but {missing:?}"),
    )
}

/// Begins them in order, and goes on with each when it can go on itself, until all have ended.
async fn all_of(calls: Vec<Call<'_, ()>>) {
    let mut calls: FuturesUnordered<_> = calls.into_iter().collect();
    while calls.next().await.is_some() {}
}
