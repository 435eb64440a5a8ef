//! A double of a native stream store, for those who write an adapter for one and for tests that need
//! a store to misbehave on command.
//!
//! # The native shape
//!
//! Some stores, Redis Streams above all, have consumer groups of their own. They are not Rheo's, so
//! an adapter builds on what is there and keeps the rest beside it. This crate shows how, in two
//! layers: [`server`] is a small imitation of such a store, which knows nothing of Rheo, and all
//! other modules are the adapter, with the files that every adapter has.
//!
//! | Rheo | native | kept beside it |
//! |---|---|---|
//! | partition | a stream | |
//! | sequence | an entry's id, which increases and has gaps | a list: sequence → id |
//! | event id, unique in the stream | | a hash: event id → partition and id |
//! | fetch | reclaim from the pending list, then read what is new | |
//! | lease | a pending entry, with consumer and delivery time | its claim: lease id, expiry |
//! | receipt | the entry's id | |
//! | attempt | the delivery count | |
//! | ack | ack | |
//! | retry | the entry stays pending | its claim: waiting until some time |
//! | what is due, from retries and expired leases | | a sorted set of due times |
//! | reject | ack | a list of dead letters per group |
//! | frontier | below the lowest pending id, else the last delivered id | |
//! | replay after a sequence, reset | the last delivered id is set back | |
//! | replay of chosen events | forced back onto the pending list, with a count of 0 | |
//!
//! Every operation is one script of the server, whole and alone, as a Lua script would be: see
//! [`Server::script`](server::Server::script). Delivery state is one claim per pending entry and one
//! entry per dead letter, whatever the length of the log.
//!
//! # What it is not
//!
//! The server lives in this process and forgets everything when it is dropped: it is neither durable
//! nor distributed, and declares neither. What handles share is the [`DoubleServer`].
//!
//! # Faults
//!
//! [`Faults`] scripts what the next calls meet; [`DoubleServer::stop`] takes the whole server away.

mod append;
mod backend;
mod config;
mod deliveries;
mod error;
mod faults;
mod fetch;
mod group_partition;
mod keyspace;
mod progress;
mod query;
pub mod server;
mod settle;

pub use backend::DoubleBackend;
pub use config::DoubleServer;
pub use faults::{Fault, Faults};

/// The examples of the README, which must compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
