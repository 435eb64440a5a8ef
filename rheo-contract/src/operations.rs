//! Every operation with arguments that are valid, for cases about what holds for all of them.

use std::time::Duration;

use rheo_core::{
    Backend, Capabilities, DeadLetterOptions, Error, ErrorKind, FetchOptions, Gate, GroupName,
    GroupOptions, Guarantee, Lease, LeaseDuration, ListOptions, NewEvent, Operation,
    OptionalOperation, Query, ReadOptions, Reason, Replay, ResetOptions, Result, RetryOptions,
    StreamName, StreamOptions,
};
use tokio::task::JoinSet;

use crate::expect::{Outcome, broken, expect, expect_error};
use crate::recorder::Recorder;
use crate::scene::Group;

/// What operations are called on: a stream, a group on it, and leases of that group.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) stream: StreamName,
    pub(crate) group: GroupName,
    pub(crate) leases: Vec<Lease>,
    event: NewEvent,
}

impl Target {
    /// A group with two events that are leased.
    pub(crate) async fn of(group: &Group) -> Outcome<Self> {
        group.stream.append(2).await?;
        Ok(Self {
            stream: group.stream.name.clone(),
            group: group.name.clone(),
            leases: group.fetch_exactly("a", 2).await?,
            event: group.stream.t.new_event(),
        })
    }

    /// The same on another stream.
    pub(crate) fn on_stream(&self, stream: StreamName) -> Self {
        Self {
            stream,
            ..self.clone()
        }
    }

    /// The same with another group.
    pub(crate) fn with_group(&self, group: GroupName) -> Self {
        Self {
            group,
            ..self.clone()
        }
    }

    /// Calls an operation; the batch forms give one result per lease, the others one.
    pub(crate) async fn call(&self, backend: &Recorder, operation: Operation) -> Vec<Result<()>> {
        let (stream, group, lease) = (&self.stream, &self.group, &self.leases[0]);
        let duration = LeaseDuration::default();
        let fetch = FetchOptions::new(lease.consumer.clone());
        let (again, reason) = (RetryOptions::new(), Reason::new("bad"));
        let result = match operation {
            Operation::Close => backend.close().await,
            Operation::EnsureIndexes => backend.ensure_indexes().await,
            Operation::Ping => backend.ping().await,
            Operation::CreateStream => backend.create_stream(stream, &StreamOptions::new()).await,
            Operation::CreateGroup => {
                let options = GroupOptions::new();
                backend.create_group(stream, group, &options).await
            }
            Operation::Append => {
                let appended = backend.append(stream, self.event.clone()).await;
                appended.map(drop)
            }
            Operation::AppendBatch => {
                let events = vec![self.event.clone()];
                backend.append_batch(stream, events).await.map(drop)
            }
            Operation::Read => backend.read(stream, &ReadOptions::new()).await.map(drop),
            Operation::Query => backend.query(stream, &Query::new()).await.map(drop),
            Operation::Fetch => backend.fetch(stream, group, &fetch).await.map(drop),
            Operation::Renew => backend.renew(lease, duration).await.map(drop),
            Operation::Ack => backend.ack(lease).await,
            Operation::Retry => backend.retry(lease, &again).await.map(drop),
            Operation::Reject => backend.reject(lease, &reason).await,
            Operation::RenewBatch => {
                return without_values(backend.renew_batch(&self.leases, duration).await);
            }
            Operation::AckBatch => return backend.ack_batch(&self.leases).await,
            Operation::RetryBatch => {
                return without_values(backend.retry_batch(&self.leases, &again).await);
            }
            Operation::RejectBatch => return backend.reject_batch(&self.leases, &reason).await,
            Operation::Replay => {
                let replay = Replay::Events(vec![lease.event.id]);
                backend.replay(stream, group, &replay).await
            }
            Operation::ResetGroup => {
                let options = ResetOptions::new();
                backend.reset_group(stream, group, &options).await
            }
            Operation::Lag => backend.lag(stream, group).await.map(drop),
            Operation::ListStreams => backend.list_streams(&ListOptions::new()).await.map(drop),
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
                let waited = backend.wait_for_work(stream, group, Duration::ZERO).await;
                waited.map(drop)
            }
            _ => return Vec::new(),
        };
        vec![result]
    }

    /// Calls every operation but `close`, all at once, since each may take its whole timeout. What comes
    /// of it is on record.
    pub(crate) async fn call_all(&self, backend: &Recorder) -> Outcome {
        let mut calls = JoinSet::new();
        for operation in Operation::ALL.iter().copied() {
            if operation != Operation::Close {
                let (target, backend) = (self.clone(), backend.clone());
                calls.spawn(async move { target.call(&backend, operation).await });
            }
        }
        while let Some(called) = calls.join_next().await {
            called?;
        }
        Ok(())
    }

    /// Demands that each of these operations gives an error of that kind, each result of a batch
    /// form too. They are called all at once, since each may take its whole timeout; what is not
    /// declared is left out.
    pub(crate) async fn expect_each_refused(
        &self,
        backend: &Recorder,
        operations: &[Operation],
        kind: ErrorKind,
    ) -> Outcome {
        let is_such = |error: &Error| error.kind() == kind;
        self.expect_each(backend, operations, is_such, &format!("Err({kind})"))
            .await
    }

    /// As [`expect_each_refused`](Self::expect_each_refused), with just that error.
    pub(crate) async fn expect_each_gives(
        &self,
        backend: &Recorder,
        operations: &[Operation],
        expected: &Error,
    ) -> Outcome {
        let is_such = |error: &Error| error == expected;
        self.expect_each(backend, operations, is_such, &format!("Err({expected:?})"))
            .await
    }

    async fn expect_each(
        &self,
        backend: &Recorder,
        operations: &[Operation],
        is_such: impl Fn(&Error) -> bool + Send,
        expected: &str,
    ) -> Outcome {
        let declared = backend.capabilities();
        let mut calls = JoinSet::new();
        for operation in operations.iter().copied() {
            if is_declared(operation, &declared) {
                let (target, backend) = (self.clone(), backend.clone());
                calls.spawn(async move { (operation, target.call(&backend, operation).await) });
            }
        }
        while let Some(called) = calls.join_next().await {
            let (operation, results) = called?;
            let leases = if is_batch(operation) {
                self.leases.len()
            } else {
                1
            };
            expect(
                results.len() == leases,
                format!("{leases} results of {operation}"),
                results.len(),
            )?;
            for result in results {
                if !matches!(&result, Err(error) if is_such(error)) {
                    return Err(broken(
                        format!("{operation} to give {expected}"),
                        format!("{result:?}"),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Demands `Unsupported` that names the operation and what is not declared.
pub(crate) fn expect_unsupported<T: crate::describe::Brief>(
    result: Result<T>,
    operation: Operation,
    gate: Gate,
) -> Outcome {
    let error = expect_error(result, ErrorKind::Unsupported)?;
    let named = Error::Unsupported {
        operation,
        missing: gate.as_str().into(),
    };
    expect(
        error == named,
        format!("the error to name {operation} and {}", gate.as_str()),
        error,
    )
}

fn is_declared(operation: Operation, declared: &Capabilities) -> bool {
    let guarantee = match operation {
        Operation::Query => Some(Guarantee::OrderedRangeScan),
        Operation::Replay | Operation::ResetGroup => Some(Guarantee::Replay),
        Operation::Lag => Some(Guarantee::ContiguousFrontier),
        _ => None,
    };
    let mut optional = OptionalOperation::ALL.iter();
    let optional = optional.find(|optional| optional.operation() == operation);
    guarantee.is_none_or(|guarantee| declared.guarantees(guarantee))
        && optional.is_none_or(|optional| declared.offers(*optional))
}

fn is_batch(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::RenewBatch
            | Operation::AckBatch
            | Operation::RetryBatch
            | Operation::RejectBatch
    )
}

fn without_values<T>(results: Vec<Result<T>>) -> Vec<Result<()>> {
    results.into_iter().map(|result| result.map(drop)).collect()
}
