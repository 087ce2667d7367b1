//! Training candidates, and one-time steps that trainings have completed.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::{training_candidates, training_marks};
use crate::{Store, StoreError};

impl Store {
    /// Returns at most `limit` candidate records of a run, JSON, in number order, after the number `after`.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn candidates_of_run(
        &self,
        run: Uuid,
        after: i32,
        limit: i64,
    ) -> Result<Vec<(i32, String)>, StoreError> {
        Ok(training_candidates::table
            .filter(training_candidates::run_id.eq(run))
            .filter(training_candidates::number.gt(after))
            .order(training_candidates::number)
            .limit(limit)
            .select((training_candidates::number, training_candidates::record))
            .load(&mut *self.connection().await?)
            .await?)
    }

    /// Returns the events for a run's report, JSON, ordered by step name.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn events_for_report(&self, run: Uuid) -> Result<Vec<String>, StoreError> {
        Ok(training_marks::table
            .filter(training_marks::run_id.eq(run))
            .order(training_marks::mark)
            .select(training_marks::event.assume_not_null())
            .filter(training_marks::event.is_not_null())
            .load(&mut *self.connection().await?)
            .await?)
    }

    /// Returns the names of the one-time steps that a run has completed.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn marks_of_run(&self, run: Uuid) -> Result<Vec<String>, StoreError> {
        Ok(training_marks::table
            .filter(training_marks::run_id.eq(run))
            .select(training_marks::mark)
            .load(&mut *self.connection().await?)
            .await?)
    }
}
