//! Rheo on MongoDB 4.4 or later: a [`Backend`](rheo_core::Backend) with every guarantee and every
//! optional operation, without transactions.
//!
//! ```no_run
//! use std::sync::Arc;
//! use rheo_core::{Backend, Error, NewEvent, Rheo, StreamOptions, SystemClock};
//! use rheo_mongo::{Config, MongoBackend};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let config = Config::new("mongodb://localhost").with_database("shop");
//! let backend = MongoBackend::connect(config, Arc::new(SystemClock)).await?;
//! backend.ensure_indexes().await?;
//!
//! let rheo = Rheo::new(Arc::new(backend));
//! match rheo.create_stream("orders", &StreamOptions::new()).await {
//!     Ok(()) | Err(Error::AlreadyExists(_)) => {} // an earlier start made it
//!     Err(error) => return Err(error),
//! }
//! rheo.append("orders", NewEvent::new("order.placed", json!({"total": 12.5}))?).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A worker, to be copied, is in `examples/mongo_worker.rs`. What to know before it goes live (bounds,
//! deployments, privileges, connections, upgrades, growth) is in the `README.md`.
//!
//! # How it is made
//!
//! Everything that must happen at once is one document, so it runs on a standalone server, a replica
//! set and a sharded cluster alike:
//!
//! - **Append**: the events of a batch for one partition are one document, whose key says where it
//!   begins. Its insert is the compare-and-set on the head of the log. See the module `append`.
//! - **Delivery**: what a group has open in one partition is one document, with the cursor and the
//!   leases. Each operation is a function from a state to the next, which is written on the condition
//!   that nobody wrote in between. See the module `delivery` for the state machine, which has no I/O,
//!   and `change` for the loop around it.
//! - **Dead letters**, of which there may be any number, are documents of their own, which follow the
//!   delivery state. See the module `dead`.
//!
//! Operations over several partitions (an append of a batch that is spread, a replay, a reset) are
//! atomic in each partition. All that they need is checked before the first of them is changed; should
//! the server go away in between, the outcome is `Ambiguous`.
//!
//! # In the database
//!
//! The collections are `streams`, `groups`, `log`, `deliveries` and `dead_letters`. Events are in
//! `log`, many to a document, to be queried like any other:
//!
//! ```js
//! db.log.aggregate([
//!   { $match: { "events.payload.customer": 7 } }, { $unwind: "$events" },
//!   { $match: { "events.payload.customer": 7 } } ])
//! ```
//!
//! A payload that BSON would change is kept as JSON text: one with an integer above `i64::MAX`, or a
//! key that is empty, begins with `$` or has a dot. Times are microseconds since 1970.
//!
//! Do not change the documents by hand.
//!
//! # Features
//!
//! - `srv`: URLs that begin with `mongodb+srv`.

mod append;
mod apply;
mod backend;
mod batch;
mod change;
mod coalesce;
mod config;
mod dead;
mod delivery;
mod error;
mod feed;
mod fetch;
mod inspect;
mod json;
mod lease_id;
mod log;
mod progress;
mod query;
mod record;
mod sequences;
mod settle;
mod store;
mod wakeup;

pub use backend::MongoBackend;
pub use config::Config;
