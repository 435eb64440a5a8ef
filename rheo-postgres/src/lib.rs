//! Rheo on PostgreSQL 15 or later: a [`Backend`](rheo_core::Backend) with every guarantee and every
//! optional operation.
//!
//! ```no_run
//! use std::sync::Arc;
//! use rheo_core::{Backend, Error, NewEvent, Rheo, StreamOptions, SystemClock};
//! use rheo_postgres::{Config, PostgresBackend};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let config = Config::new("postgres://rheo@localhost/shop");
//! let backend = PostgresBackend::connect(config, Arc::new(SystemClock))?;
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
//! A worker, to be copied, is in `examples/postgres_worker.rs`. What to know before it goes live (bounds,
//! privileges, connections, encryption, upgrades, growth) is in the `README.md`.
//!
//! # How it is made
//!
//! Each operation is one call of one function of the schema, in a transaction that the server itself
//! begins and ends. The functions are in `sql/`, a file for each of the modules here; [`schema_sql`]
//! gives all of it. Appends to a partition take an advisory lock and the next sequence after the
//! highest, and keep the lock until their commit is visible: so the order of commits is the order of
//! sequences, no other transaction of the database holds anything back, and no row is updated at
//! every append. The state machine of deliveries is explained in the module `fetch`.
//!
//! # In the database
//!
//! Everything is in one schema, `rheo` by default. Events are in `events`, with payload and metadata
//! as `jsonb`, to be queried like any other table:
//!
//! ```sql
//! SELECT sequence, payload ->> 'customer', to_timestamp(timestamp / 1e6)
//! FROM rheo.events JOIN rheo.streams USING (stream_id)
//! WHERE name = 'orders' AND payload @> '{"currency": "EUR"}';
//! ```
//!
//! Do not change the tables by hand. A sequence that is deleted, say, is a hole that breaks the rules
//! of every reader.
//!
//! The database's encoding has to be UTF8. A pooler in between must leave a session to a client for as
//! long as the client is connected.
//!
//! # Features
//!
//! - `rustls`: encrypted connections, as the `sslmode` of the URL wants them. Without it a URL that demands
//!   them is refused.

mod append;
mod backend;
mod coalesce;
mod config;
mod error;
mod fetch;
mod inspect;
mod json;
mod lease_id;
mod migrations;
mod progress;
mod query;
mod row;
mod settle;
mod store;
mod wakeup;

pub use backend::PostgresBackend;
pub use config::{Config, Settings};
pub use migrations::schema_sql;
