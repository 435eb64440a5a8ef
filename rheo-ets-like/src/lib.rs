//! The in-memory reference backend: the whole state machine of consumer groups in a few small files.
//!
//! It is what to read first before writing a backend. Everything that decides something is
//! synchronous, free of locks and told what time it is:
//!
//! | file | what it is | rules |
//! |---|---|---|
//! | `log.rs` | the events of a stream | LOG |
//! | `query.rs` | pages of events in a total order | QRY |
//! | `delivery.rs` | what one group has open in one partition | LSE, DLQ, RPL, FRN |
//! | `group.rs` | a group over all partitions | DLV, RPL-5 |
//! | `stream.rs` | a log and its groups | STR, LOG-3, LOG-7 |
//!
//! Around it, `store.rs` holds the data and its locks, and `backend.rs` is the
//! [`Backend`](rheo_core::Backend): it looks whether the store is there, takes a lock, asks the
//! clock and calls the machine.
//!
//! ```
//! use std::sync::Arc;
//! use rheo_core::{Rheo, SystemClock};
//! use rheo_ets_like::MemoryBackend;
//!
//! let rheo = Rheo::new(Arc::new(MemoryBackend::new(Arc::new(SystemClock))));
//! # drop(rheo);
//! ```

mod backend;
mod delivery;
mod group;
mod log;
mod query;
mod store;
mod stream;

pub use backend::MemoryBackend;
pub use store::MemoryStore;

/// The examples of the README, which must compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
