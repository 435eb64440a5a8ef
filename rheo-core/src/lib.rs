//! Consumer-group semantics for databases that people already run: the [`Backend`] trait, its
//! values and its errors, and the facade [`Rheo`] that applications call.
//!
//! A **stream** is an append-only log with partitions. An **event** has a **sequence** in its
//! partition. A **consumer group** reads a whole stream independently of other groups: fetching
//! claims events as **leases** with a fencing token; a lease is **settled** by ack, retry or
//! reject. What was rejected, or ran out of attempts, is a **dead letter**. The **frontier** is how
//! far everything is done, the **lag** is what is left.
//!
//! This crate has no runtime, no driver and no I/O. Rules are named by their ids, as in `LSE-2`;
//! [`RULES`] holds them all, as `docs/specification.md` publishes them.
//!
//! # Features
//!
//! - `stream` (default): [`Rheo::query_stream`], all events of a query as a `futures_core::Stream`.

mod backend;
mod capabilities;
mod clock;
mod cursor;
mod error;
mod event;
mod group;
mod json;
mod lease;
mod names;
mod operation;
mod partition;
mod progress;
mod query;
mod rheo;
mod rule;
mod time;

pub use async_trait::async_trait;

pub use backend::Backend;
pub use capabilities::{
    Capabilities, CapabilitiesBuilder, Guarantee, Limits, Mechanism, OptionalOperation,
};
pub use clock::{Clock, ManualClock, SystemClock};
pub use cursor::{Cursor, Position};
pub use error::{Cause, Error, ErrorKind, Existing, Invalid, Result};
pub use event::{Event, EventId, NewEvent};
pub use group::{
    DeadLetterOptions, GroupInfo, GroupOptions, ListOptions, MaxAttempts, Start, StreamInfo,
    StreamOptions,
};
pub use json::{JsonObject, MAX_JSON_BYTES, MAX_JSON_DEPTH, json_equal};
pub use lease::{
    DeadLetter, FetchOptions, Lease, LeaseId, Reason, Receipt, RetryOptions, RetryOutcome,
};
pub use names::{ConsumerId, EventKey, EventType, GroupName, StreamName};
pub use operation::Operation;
pub use partition::{PARTITION_TEST_VECTORS, Partition, PartitionCount, Partitions, Sequence};
pub use progress::{Confirm, Lag, PartitionLag, Replay, ResetOptions, Wakeup};
pub use query::{DEFAULT_LIMIT, Direction, Order, OrderBy, Page, Query, ReadOptions};
pub use rheo::Rheo;
pub use rule::{Gate, Level, RULES, Rule, rule_set_hash};
pub use time::{LeaseDuration, RetryDelay, Timestamp};
