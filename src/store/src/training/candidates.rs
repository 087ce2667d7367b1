//! Candidates of trainings, and what trainings have done once.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::{training_candidates, training_marks};
use crate::{Store, StoreError};

impl Store {
    /// The records of candidates of a run, JSON, in the order of their numbers, after the number `after`, at most `limit`.
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

    /// The events of a run that its report needs, JSON, in the order of their marks.
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

    /// What a run has done once.
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
