//! Connections and transactions: the pool, changes that are committed together, and foreign databases.

pub(crate) mod changes;
pub(crate) mod committed;
pub(crate) mod connect;
pub(crate) mod deadline;
mod foreign;
pub(crate) mod foreign_rows;
pub(crate) mod idempotency;
pub(crate) mod parameter;
pub(crate) mod pool;
pub(crate) mod prepared;
mod runtime;
pub(crate) mod scalar;
pub(crate) mod unreachable;

pub use changes::*;
pub use deadline::with_statement_limit;
pub use foreign::*;
pub use idempotency::*;
pub use pool::*;
pub use runtime::*;
