//! The only place with SQL: queries, pool, migrations and the embedded PostgreSQL.
//!
//! A folder for each aggregate, in it one file for each noun. Reads and rare writes go through [`Store`] and its pool;
//! everything on the path of a turn goes through the lanes, which commit a [`batch::Batch`] in one statement on a
//! connection of their own.
//!
//! A statement is written in diesel's DSL unless it needs what the DSL cannot say: a common table expression that writes,
//! `unnest` of arrays, `SKIP LOCKED` in a subquery that is updated, advisory locks, catalogue views, partitions, or a
//! comparison of rows. On the path of a request its text is `prepared` once for each connection.

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
