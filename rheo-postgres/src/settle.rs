//! Settling and renewing leases: any number in one statement, with one result each.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::fmt::Write;

use rheo_core::{
    Error, GroupName, Lease, LeaseDuration, Operation, Reason, Result, RetryDelay, RetryOptions,
    Sequence, StreamName, Timestamp,
};
use sqlx::postgres::PgRow;
use tokio::time::Instant;
use uuid::Uuid;

use crate::error::Subject;
use crate::lease_id::Claimed;
use crate::row::column;
use crate::store::{Statement, Store};

const ACK: &str = "SELECT chunk, sequence FROM {schema}.ack($1, $2, $3, $4, $5, $6)";
const RETRY: &str =
    "SELECT chunk, sequence, is_dead FROM {schema}.retry($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const REJECT: &str = "SELECT chunk, sequence FROM {schema}.reject($1, $2, $3, $4, $5, $6, $7, $8)";
const RENEW: &str = "SELECT chunk, sequence FROM {schema}.renew($1, $2, $3, $4, $5, $6, $7)";
const IS_CURRENT: &str = "SELECT {schema}.is_current($1, $2, $3, $4, $5, $6) AS is_current";

/// What shall be done with leases.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Settle<'a> {
    Ack,
    Retry(&'a RetryOptions),
    Reject(&'a Reason),
    Renew(LeaseDuration),
}

/// What was done with a lease that was current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It is acked or rejected.
    Done,
    /// It will be handed out again.
    Retrying,
    /// It ran out of attempts.
    DeadLettered,
    /// It lasts until then.
    Until(Timestamp),
}

impl Store {
    /// Settles leases, one result each, in order (LSE-8).
    pub(crate) async fn settle(
        &self,
        leases: &[Lease],
        settle: Settle<'_>,
        deadline: Instant,
    ) -> Vec<Result<Settled>> {
        if let Err(closed) = self.check_open() {
            return leases.iter().map(|_| Err(closed.clone())).collect();
        }
        // Claims have no receipt here, so a lease with one is never settled. It still has its place
        // in the order: what comes before it may make it stale.
        if leases.len() > 1 && leases.iter().any(|lease| lease.receipt.is_some()) {
            let mut results = Vec::with_capacity(leases.len());
            for lease in leases {
                results.push(self.settle_one(lease, settle, deadline).await);
            }
            return results;
        }
        if let [lease] = leases
            && lease.receipt.is_some()
        {
            return vec![self.settle_one(lease, settle, deadline).await];
        }
        self.settle_all(leases, settle, deadline).await
    }

    async fn settle_one(
        &self,
        lease: &Lease,
        settle: Settle<'_>,
        deadline: Instant,
    ) -> Result<Settled> {
        if lease.receipt.is_none() {
            let results = self
                .settle_all(std::slice::from_ref(lease), settle, deadline)
                .await;
            return results.into_iter().next().unwrap_or(Err(Error::StaleLease));
        }
        match self.is_current(lease, deadline).await? {
            true => Err(Error::ReceiptMismatch),
            false => Err(Error::StaleLease),
        }
    }

    async fn settle_all(
        &self,
        leases: &[Lease],
        settle: Settle<'_>,
        deadline: Instant,
    ) -> Vec<Result<Settled>> {
        let chunks = Chunks::of(leases);
        if chunks.is_empty() && !leases.is_empty() {
            // No lease of this backend; but whether it is reached comes first (ERR-6).
            let refusal = self.ping(deadline).await.err().unwrap_or(Error::StaleLease);
            return leases.iter().map(|_| Err(refusal.clone())).collect();
        }
        let now = self.now();
        let rows = match settle {
            Settle::Ack => {
                self.send(deadline, Operation::Ack, ACK, &chunks, |s| s)
                    .await
            }
            Settle::Retry(options) => {
                let due = match options.delay {
                    // Due whatever the time is, also when a clock goes back.
                    RetryDelay::NONE => i64::MIN,
                    delay => now.saturating_add(delay.as_duration()).as_micros(),
                };
                let reason = options.reason.clone().unwrap_or_else(Reason::max_attempts);
                let bind = |s: Statement| {
                    s.bind(due)
                        .bind(reason.as_str().to_owned())
                        .bind(now.as_micros())
                };
                self.send(deadline, Operation::Retry, RETRY, &chunks, bind)
                    .await
            }
            Settle::Reject(reason) => {
                let bind = |s: Statement| s.bind(reason.as_str().to_owned()).bind(now.as_micros());
                self.send(deadline, Operation::Reject, REJECT, &chunks, bind)
                    .await
            }
            Settle::Renew(duration) => {
                let expires_at = now.saturating_add(duration.as_duration());
                let bind = |s: Statement| s.bind(expires_at.as_micros());
                self.send(deadline, Operation::Renew, RENEW, &chunks, bind)
                    .await
            }
        };
        let answered = rows.and_then(|rows| {
            let mut answers = HashMap::with_capacity(rows.len());
            for row in &rows {
                let chunk: i32 = column(row, "chunk")?;
                let settled = match settle {
                    Settle::Retry(_) if column(row, "is_dead")? => Settled::DeadLettered,
                    Settle::Retry(_) => Settled::Retrying,
                    Settle::Renew(duration) => {
                        Settled::Until(now.saturating_add(duration.as_duration()))
                    }
                    Settle::Ack | Settle::Reject(_) => Settled::Done,
                };
                answers.insert((chunk - 1, column::<i64>(row, "sequence")?), settled);
            }
            Ok(answers)
        });
        let foreign = match &answered {
            Err(Error::BackendUnavailable(cause)) => Error::BackendUnavailable(cause.clone()),
            _ => Error::StaleLease,
        };
        let mut results: Vec<_> = leases.iter().map(|_| Err(foreign.clone())).collect();
        for (chunk, members) in (0..).zip(&chunks.members) {
            for member in members {
                let of = (chunk, member.sequence);
                results[member.index] = match (&answered, settle) {
                    (Err(error), _) => Err(error.clone()),
                    // A lease that was acked before in this batch is stale; one that was renewed is
                    // renewed again.
                    (Ok(_), Settle::Ack | Settle::Retry(_) | Settle::Reject(_))
                        if member.is_repeated =>
                    {
                        Err(Error::StaleLease)
                    }
                    // Of an ack, the answer names those that were not current.
                    (Ok(stale), Settle::Ack) if stale.contains_key(&of) => Err(Error::StaleLease),
                    (Ok(_), Settle::Ack) => Ok(Settled::Done),
                    (Ok(current), _) => current.get(&of).copied().ok_or(Error::StaleLease),
                };
            }
        }
        results
    }

    async fn send(
        &self,
        deadline: Instant,
        operation: Operation,
        sql: &'static str,
        chunks: &Chunks,
        bind: impl Fn(Statement) -> Statement,
    ) -> Result<Vec<PgRow>> {
        self.rows_until(deadline, operation, &Subject::default(), sql, |statement| {
            let statement = statement
                .bind(chunks.streams.clone())
                .bind(chunks.groups.clone())
                .bind(chunks.partitions.clone())
                .bind(chunks.firsts.clone())
                .bind(chunks.tokens.clone())
                .bind(chunks.wanted.clone());
            bind(statement)
        })
        .await
    }

    async fn is_current(&self, lease: &Lease, deadline: Instant) -> Result<bool> {
        let (Some(claimed), Ok(partition)) = (
            Claimed::of(lease),
            i32::try_from(lease.event.partition.number()),
        ) else {
            return Ok(false);
        };
        let row = self
            .row_until(
                deadline,
                Operation::Ping,
                &Subject::default(),
                IS_CURRENT,
                |statement| {
                    statement
                        .bind(lease.event.stream.as_str().to_owned())
                        .bind(lease.group.as_str().to_owned())
                        .bind(partition)
                        .bind(claimed.first)
                        .bind(claimed.token)
                        .bind(lease.event.sequence.as_i64())
                },
            )
            .await?;
        column(&row, "is_current")
    }
}

/// Leases as they go out: those of one stream, group, partition and claim together, in an order that
/// is the same for everybody. In a partition, events with a row of their own come last: a replay and
/// a reset, too, lock claims before deliveries.
#[derive(Debug, Default)]
struct Chunks {
    streams: Vec<String>,
    groups: Vec<String>,
    partitions: Vec<i32>,
    firsts: Vec<i64>,
    tokens: Vec<Uuid>,
    /// The sequences, as `int8multirange` writes them.
    wanted: Vec<String>,
    members: Vec<Vec<Member>>,
}

/// One lease in a chunk.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    sequence: i64,
    index: usize,
    is_repeated: bool,
}

impl Chunks {
    /// Leaves out what is no lease of this backend.
    fn of(leases: &[Lease]) -> Self {
        type Key<'a> = (&'a StreamName, &'a GroupName, i32, bool, Claimed);
        let mut sorted: BTreeMap<Key<'_>, Vec<Member>> = BTreeMap::new();
        for (index, lease) in leases.iter().enumerate() {
            let event = &lease.event;
            if let Some(claimed) = Claimed::of(lease)
                && let Ok(partition) = i32::try_from(event.partition.number())
                && event.sequence < Sequence::MAX
            {
                let has_own_row = claimed.first == 0;
                let key = (&event.stream, &lease.group, partition, has_own_row, claimed);
                sorted.entry(key).or_default().push(Member {
                    sequence: event.sequence.as_i64(),
                    index,
                    is_repeated: false,
                });
            }
        }
        let mut chunks = Self::default();
        for ((stream, group, partition, _, claimed), mut members) in sorted {
            members.sort_unstable();
            for i in 1..members.len() {
                members[i].is_repeated = members[i].sequence == members[i - 1].sequence;
            }
            chunks.streams.push(stream.as_str().to_owned());
            chunks.groups.push(group.as_str().to_owned());
            chunks.partitions.push(partition);
            chunks.firsts.push(claimed.first);
            chunks.tokens.push(claimed.token);
            chunks.wanted.push(multirange(&members));
            chunks.members.push(members);
        }
        chunks
    }

    fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

/// The set of the members' sequences, which are sorted.
fn multirange(members: &[Member]) -> String {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for member in members {
        match ranges.last_mut() {
            Some((_, last)) if member.sequence <= last.saturating_add(1) => *last = member.sequence,
            _ => ranges.push((member.sequence, member.sequence)),
        }
    }
    let mut text = String::from("{");
    for (index, (first, last)) in ranges.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        match write!(text, "{comma}[{first},{last}]") {
            Ok(()) => {}
            Err(_) => unreachable!("writing to a string cannot fail"),
        }
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease_id::tests::lease;

    #[test]
    fn what_has_a_row_of_its_own_comes_last() {
        let token = Uuid::new_v4();
        let leases = [0, 7, 1].map(|first| lease(Claimed { first, token }));
        assert_eq!(Chunks::of(&leases).firsts, [1, 7, 0]);
    }

    #[test]
    fn neighbours_are_one_range() {
        let members: Vec<Member> = [1, 2, 2, 3, 7, 9, 10]
            .iter()
            .map(|sequence| Member {
                sequence: *sequence,
                index: 0,
                is_repeated: false,
            })
            .collect();
        assert_eq!(multirange(&members), "{[1,3],[7,7],[9,10]}");
    }
}
