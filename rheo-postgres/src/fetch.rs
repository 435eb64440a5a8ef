//! Claiming events for a consumer.
//!
//! # The state machine
//!
//! A group has, in each partition, three kinds of rows. An event goes from left to right and never
//! back, but for a replay or a reset, which remove what they reopen:
//!
//! ```text
//!                  fetch                  ack
//!  never claimed ─────────▶ claims ──────────────────────────────▶ nothing is kept
//!                             │                                        ▲
//!          retry, expiry, or  │                                        │ ack
//!          a renewal or reject│ of a part                              │
//!                             ▼                                        │
//!                         deliveries ──────────────────────────────────┘
//!                          │ ▲   │ reject; retry or expiry with the attempts used up
//!            retry, fetch, └─┘   ▼
//!            renew            dead_letters
//! ```
//!
//! - **`claims`** One row for what one fetch claimed in one partition: the range `first..=last`, the
//!   set of what is still `open` in it, a token, an expiry. An ack takes sequences out of `open`; a
//!   row with nothing left goes away. So a hundred events that are fetched and acked together cost
//!   an insert, an update and a delete of one short row.
//! - **`deliveries`** One row for an event that left the ordinary way: its attempts, when it is due,
//!   and its token while it is leased. The row is made when the event is retried, when its expired
//!   claim is broken up, or when it is renewed apart from the rest of its claim; the lease stays
//!   what it was. From then on it is changed in place until it is acked or dead.
//! - **`dead_letters`** One row for an event that was given up on.
//!
//! Whatever has no row is done if it is at or below the *cursor*, the `last` of the claim with the
//! highest `first`, and was never claimed if it is above. That claim is the only row that is kept
//! with nothing open in it, and the next fetch removes it. There is no cursor row that every fetch
//! updates: such a row collects dead versions when some old transaction elsewhere in the database
//! keeps them from being removed, while claims are inserted at new keys. For the same reason each
//! claim carries a `floor`, below which there is none, so that no search has to pass what was there.
//!
//! The *frontier* is the lowest open sequence of both tables, less one; with nothing open, the
//! cursor.
//!
//! # Who waits for whom
//!
//! Fetches of a group in a partition, replay and reset hold an advisory lock until their commit is
//! visible, so that each sees the claims before it. Settles hold none. They wait only for rows, and
//! when a row was changed while they waited, they look into the next table: there is where it went.
//! A fetch never waits for a row: an expired claim that is just being settled is not its to take.

use rheo_core::{
    FetchOptions, GroupName, Lease, Operation, Partition, Partitions, Result, StreamName,
};
use uuid::Uuid;

use crate::error::Subject;
use crate::lease_id::Claimed;
use crate::row::{self, column, small};
use crate::store::Store;

const FETCH: &str = "SELECT * FROM {schema}.fetch($1, $2, $3, $4, $5, $6, $7, $8)";

/// A fetch gives no more than this, whatever its limit: what it gives has to arrive in time.
const MOST: u32 = 10_000;

impl Store {
    /// Claims events, from partition `from` on and then from the others in turn.
    pub(crate) async fn fetch(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
        from: Partition,
    ) -> Result<Vec<Lease>> {
        let now = self.now();
        let expires_at = now.saturating_add(options.lease_duration.as_duration());
        // One token is enough: with it, a lease id has partition and sequence.
        let token = Uuid::new_v4();
        let rows = self
            .rows(
                Operation::Fetch,
                &Subject::of_group(stream, group),
                FETCH,
                |statement| {
                    statement
                        .bind(stream.as_str().to_owned())
                        .bind(group.as_str().to_owned())
                        .bind(numbers(&options.partitions))
                        .bind(from.number().cast_signed())
                        .bind(options.limit.min(MOST).cast_signed())
                        .bind(token)
                        .bind(now.as_micros())
                        .bind(expires_at.as_micros())
                },
            )
            .await?;
        let mut leases = Vec::with_capacity(rows.len());
        for row in &rows {
            let event = row::event(stream, row)?;
            let first = column(row, "first")?;
            let claimed = Claimed { first, token };
            leases.push(Lease {
                lease_id: claimed.lease_id(event.partition.number(), event.sequence.as_i64()),
                event,
                group: group.clone(),
                consumer: options.consumer.clone(),
                receipt: None,
                attempt: small(row, "attempt")?,
                leased_at: now,
                expires_at,
            });
        }
        Ok(leases)
    }
}

/// The selected partitions as an array; none for all of them.
pub(crate) fn numbers(partitions: &Partitions) -> Option<Vec<i64>> {
    match partitions {
        Partitions::All => None,
        Partitions::Only(only) => Some(only.iter().map(|p| i64::from(p.number())).collect()),
    }
}
