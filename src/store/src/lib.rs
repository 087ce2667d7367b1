//! The only place with SQL: queries, pool, migrations and the embedded PostgreSQL.
//!
//! One folder for each aggregate, one file in it for each noun. Reads and rare writes use [`Store`] and its
//! pool; everything on the path of a turn uses the lanes, which commit a [`batch::Batch`] in one statement on a
//! dedicated connection.
//!
//! Statements use diesel's DSL unless the DSL cannot express them: a common table expression that writes,
//! `unnest` for arrays, `SKIP LOCKED` in a subquery that is updated, advisory locks, catalogue views,
//! partitions, or row comparisons. On the path of a request each connection prepares the text once
//! (`prepared`).

mod apps;
pub mod batch;
mod blobs;
mod chat;
pub mod data_dir;
mod database;
pub mod embedded;
mod error;
mod people;
mod rollouts;
mod runs;
mod schema;
mod search;
mod system;
#[cfg(feature = "test-util")]
pub mod testing;
mod training;
mod triggers;
mod vault;
mod workflows;

pub use apps::*;
pub use batch::{LaneConnection, LaneError};
pub use blobs::*;
pub use chat::*;
pub use database::*;
pub use error::StoreError;
pub use people::*;
pub use rollouts::*;
pub use runs::*;
pub use search::*;
pub use system::*;
pub use training::*;
pub use triggers::*;
pub use vault::*;
pub use workflows::*;
