//! A lane's connection.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use diesel::result::{DatabaseErrorKind, Error as DieselError, QueryResult};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use super::Batch;
use super::columns::BatchColumns;
use super::statement::Commit;
use crate::database::committed::committed;
use crate::database::connect::SessionKind;
use crate::database::deadline::STATEMENT_LIMIT;
use crate::system::partitions::day_of;
use crate::{Lease, Store, StoreError};

/// A connection that only commits batches.
pub struct LaneConnection {
    connection: AsyncPgConnection,
}

/// The reason why a batch was not committed.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// Another owner has acquired the lease: nothing was written, and no retry can succeed.
    #[error("this writer's lease has gone to another owner")]
    Fenced,
    /// The batch itself is invalid; some of its rows may be valid.
    #[error("the batch cannot be written: {0}")]
    Poisoned(String),
    /// The partition for a day is missing; nothing was written. [`Store::make_partitions`] creates it.
    ///
    /// [`Store::make_partitions`]: crate::Store::make_partitions
    #[error("the partition of a day is missing")]
    NoPartition(BTreeSet<NaiveDate>),
    /// The database cannot accept the batch now. It may have been committed: send the same batch again.
    #[error(transparent)]
    Unavailable(StoreError),
}

impl Store {
    /// Opens a lane connection outside the pool.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the database cannot be reached.
    pub async fn lane(&self) -> Result<LaneConnection, StoreError> {
        let connection = self.connector().open(SessionKind::Lane(self.role())).await?;
        Ok(LaneConnection { connection })
    }
}

impl LaneConnection {
    /// Commits a batch in one statement.
    ///
    /// # Errors
    /// [`LaneError`], classified by the remedy.
    pub async fn commit(&mut self, lease: Lease, batch: &Batch) -> Result<(), LaneError> {
        self.commit_all(lease, &[batch]).await
    }

    /// Commits several batches in one statement: all of them or none.
    ///
    /// # Errors
    /// [`LaneError`], classified by the remedy.
    pub async fn commit_all(&mut self, lease: Lease, batches: &[&Batch]) -> Result<(), LaneError> {
        if batches.iter().all(|batch| batch.is_empty()) {
            return Ok(());
        }
        let again = batches.iter().any(|batch| batch.steps.iter().any(|step| step.begun));
        let mut told = self.try_commit(lease, BatchColumns::from_batches(batches), again).await;
        let taken = matches!(told, Err(DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, _)));
        if taken && !again {
            // Some rows exist: the batch was committed before, and the answer was lost.
            told = self.try_commit(lease, BatchColumns::from_batches(batches), true).await;
        }
        match told {
            Ok(1) => Ok(()),
            Ok(_) => Err(LaneError::Fenced),
            Err(error) if is_no_partition(&error) => Err(LaneError::NoPartition(days(batches))),
            Err(error) => Err(sort(error)),
        }
    }

    async fn try_commit(&mut self, lease: Lease, columns: BatchColumns<'_>, again: bool) -> QueryResult<i64> {
        let commit = Commit { writer_id: lease.writer_id, epoch: lease.epoch, columns, again };
        let committing = commit.get_results::<i64>(&mut self.connection);
        match kernel::timeout(&kernel::SystemClock::new(), STATEMENT_LIMIT, committing).await {
            Some(rows) => rows.and_then(committed),
            None => Err(DieselError::DatabaseError(
                DatabaseErrorKind::ClosedConnection,
                Box::new("no answer before the statement's deadline".to_owned()),
            )),
        }
    }
}

/// Decides whether the rows or the database caused the error.
fn sort(error: DieselError) -> LaneError {
    let transient = matches!(
        &error,
        DieselError::DatabaseError(
            DatabaseErrorKind::SerializationFailure
                | DatabaseErrorKind::UnableToSendCommand
                | DatabaseErrorKind::ClosedConnection
                // The server has become a standby.
                | DatabaseErrorKind::ReadOnlyTransaction,
            _
        ) | DieselError::BrokenTransactionManager
    );
    match StoreError::from(error) {
        // A timeout, a cancelled statement, a deadlock, a server shutdown: a retry may succeed.
        StoreError::Query(inner) if transient || says_transient(&inner.to_string()) => {
            LaneError::Unavailable(StoreError::Unavailable(inner.to_string()))
        }
        StoreError::Query(inner) => LaneError::Poisoned(inner.to_string()),
        StoreError::Taken(key) => LaneError::Poisoned(format!("the unique key {key} is taken")),
        other => LaneError::Unavailable(other),
    }
}

fn says_transient(text: &str) -> bool {
    ["deadlock detected", "canceling statement", "out of memory", "connection"]
        .iter()
        .any(|known| text.contains(known))
}

fn is_no_partition(error: &DieselError) -> bool {
    let text = error.to_string();
    text.contains("stream_events") && text.contains("does not exist")
        || text.contains("no partition of relation")
}

/// The days whose partitions a commit writes.
fn days(batches: &[&Batch]) -> BTreeSet<NaiveDate> {
    batches.iter().flat_map(|batch| &batch.events).map(|events| day_of(events.stream_id)).collect()
}

#[cfg(test)]
mod tests {
    use diesel_async::SimpleAsyncConnection;
    use uuid::Uuid;

    use super::*;
    use crate::database::connect::SessionKind;
    use crate::testing::TestDatabase;

    /// The error from a commit with this setting while another session holds the lease's row.
    async fn commit_error(setting: &str) -> LaneError {
        let database = TestDatabase::create().await;
        let store = database.store().await;
        let lease = store.take_lease(Uuid::from_u128(1), Uuid::nil()).await.unwrap().0;
        let mut holder = store.connection().await.unwrap();
        holder.batch_execute("BEGIN; UPDATE leases SET epoch = epoch").await.unwrap();
        let mut connection = store.connector().open(SessionKind::Lane(None)).await.unwrap();
        connection.batch_execute(setting).await.unwrap();
        let mut batch = Batch::default();
        batch.items.push(crate::batch::ItemRow {
            thread_id: kernel::ThreadId(Uuid::nil()),
            id: kernel::ItemKey([0; 24]),
            content: String::new(),
            answers: None,
            run_id: None,
            key: None,
        });
        LaneConnection { connection }.commit(lease, &batch).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_commit_cancelled_by_the_server_may_be_repeated() {
        for setting in [
            "SET statement_timeout = '50ms'",
            "SET lock_timeout = '50ms'",
            "SET default_transaction_read_only = on",
        ] {
            let error = commit_error(setting).await;
            assert!(matches!(error, LaneError::Unavailable(_)), "{setting}: {error:?}");
        }
    }
}
