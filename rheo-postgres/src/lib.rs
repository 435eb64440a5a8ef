//! Rheo on PostgreSQL 15 or later.

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
