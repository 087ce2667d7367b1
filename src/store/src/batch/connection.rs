//! A lane's connection.

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use super::Batch;
use super::statement::Commit;
use crate::{Lease, StoreError};

/// A connection that only commits batches.
pub struct LaneConnection {
    connection: AsyncPgConnection,
}

/// Why a batch was not committed.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// The lease has gone to another owner: nothing was written, and nothing ever will be.
    #[error("this writer's lease has gone to another owner")]
    Fenced,
    /// The batch itself cannot be written; a part of it may.
    #[error("the batch cannot be written: {0}")]
    Poisoned(String),
    /// The database cannot take it now. It may have taken it: send the same batch again.
    #[error(transparent)]
    Unavailable(StoreError),
}

impl LaneConnection {
    pub(crate) fn new(connection: AsyncPgConnection) -> Self {
        Self { connection }
    }

    /// Commits a batch in one statement.
    ///
    /// # Errors
    /// [`LaneError`] sorts what the database said by what helps.
    pub async fn commit(&mut self, lease: Lease, batch: &Batch) -> Result<(), LaneError> {
        if batch.is_empty() {
            return Ok(());
        }
        let commit = Commit { writer_id: lease.writer_id, epoch: lease.epoch, columns: batch.into() };
        match commit.get_result::<i64>(&mut self.connection).await {
            Ok(1) => Ok(()),
            Ok(_) => Err(LaneError::Fenced),
            Err(error) => Err(sort(error)),
        }
    }
}

/// Whether it is the rows' fault or the database's.
fn sort(error: DieselError) -> LaneError {
    let transient = matches!(
        &error,
        DieselError::DatabaseError(
            DatabaseErrorKind::SerializationFailure
                | DatabaseErrorKind::UnableToSendCommand
                | DatabaseErrorKind::ClosedConnection,
            _
        ) | DieselError::BrokenTransactionManager
    );
    match StoreError::from(error) {
        // A statement that ran into its time limit, a deadlock, a server that goes down: the same again may do.
        StoreError::Query(inner) if transient || says_transient(&inner.to_string()) => {
            LaneError::Unavailable(StoreError::Unavailable(inner.to_string()))
        }
        StoreError::Query(inner) => LaneError::Poisoned(inner.to_string()),
        StoreError::Taken(key) => LaneError::Poisoned(format!("the unique key {key} is taken")),
        other => LaneError::Unavailable(other),
    }
}

fn says_transient(text: &str) -> bool {
    ["deadlock detected", "statement timeout", "lock timeout", "out of memory", "connection"]
        .iter()
        .any(|known| text.contains(known))
}
