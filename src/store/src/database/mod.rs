//! Connections and transactions: the pool, changes that are committed together, and databases of others.

pub(crate) mod changes;
pub(crate) mod committed;
pub(crate) mod connect;
mod foreign;
pub(crate) mod foreign_rows;
pub(crate) mod idempotency;
pub(crate) mod parameter;
pub(crate) mod pool;
mod runtime;
pub(crate) mod unreachable;

pub use changes::{Begun, Changes, RequestKey, StoredAnswer};
pub use foreign::{Foreign, ForeignError, ForeignQuery, ForeignRows};
pub use idempotency::{Reservation, Reserved};
pub use pool::{Options, Store};
pub use runtime::DatabaseRuntime;
