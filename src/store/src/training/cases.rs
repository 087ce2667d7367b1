//! Case results.

use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Integer, Nullable, Text};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::training_cases;
use crate::{Store, StoreError};

/// The key of a case result: candidate, index in the dataset, execution number.
pub type CaseKey = (i32, i32, i32);

/// A case result.
#[derive(Debug, Clone, Queryable)]
pub struct StoredCase {
    /// The candidate whose prompts were used; 0 is the seed.
    pub candidate: i32,
    /// Its index in the dataset, from 0.
    pub case_index: i32,
    /// The execution number, from 0.
    pub sample: i32,
    /// The phase that executed it.
    pub phase: String,
    /// `train`, `val` or `test`; `None` for an evaluation.
    pub split: Option<String>,
    /// The epoch.
    pub epoch: i32,
    /// Its score; `None` if no scoring evaluator applies.
    pub score: Option<f64>,
    /// Whether every scoring evaluator and every guard passed.
    pub passed: bool,
    /// JSON.
    pub result: String,
    /// JSON: inputs and calls for the trace's steps; `None` if they are not stored or not requested.
    pub details: Option<String>,
}

/// Filters for a run's results. All given filters must match.
#[derive(Debug, Clone, Default)]
pub struct CaseFilter {
    /// Only this candidate.
    pub candidate: Option<i32>,
    /// Only the case with this index in the dataset.
    pub case: Option<i32>,
    /// Only this split.
    pub split: Option<String>,
    /// `true`: only failed ones; `false`: only passed ones.
    pub failed: Option<bool>,
    /// Whether to return [`StoredCase::details`], which may be megabytes each.
    pub with_details: bool,
}

type CaseColumns = (
    training_cases::candidate,
    training_cases::case_index,
    training_cases::sample,
    training_cases::phase,
    training_cases::split,
    training_cases::epoch,
    training_cases::score,
    training_cases::passed,
    training_cases::result,
    SqlLiteral<Nullable<Text>>,
);

/// The columns for [`StoredCase`].
fn columns(with_details: bool) -> CaseColumns {
    let details = diesel::dsl::sql::<Nullable<Text>>(if with_details { "details" } else { "NULL" });
    (
        training_cases::candidate,
        training_cases::case_index,
        training_cases::sample,
        training_cases::phase,
        training_cases::split,
        training_cases::epoch,
        training_cases::score,
        training_cases::passed,
        training_cases::result,
        details,
    )
}

impl Store {
    /// Returns the keys of a run's results.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn case_keys(&self, run: Uuid) -> Result<Vec<CaseKey>, StoreError> {
        Ok(training_cases::table
            .filter(training_cases::run_id.eq(run))
            .select((training_cases::candidate, training_cases::case_index, training_cases::sample))
            .load(&mut *self.connection().await?)
            .await?)
    }

    /// Returns the number of answered model calls in a run's results, with or without a request.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn answered_calls(&self, run: Uuid) -> Result<u64, StoreError> {
        let answered: Option<i64> = training_cases::table
            .filter(training_cases::run_id.eq(run))
            .select(diesel::dsl::sum(training_cases::answered))
            .first(&mut *self.connection().await?)
            .await?;
        Ok(answered.and_then(|answered| u64::try_from(answered).ok()).unwrap_or_default())
    }

    /// Returns a candidate's results for these cases. `with_details`: with [`StoredCase::details`].
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn case_results(
        &self,
        run: Uuid,
        candidate: i32,
        cases: &[i32],
        with_details: bool,
    ) -> Result<Vec<StoredCase>, StoreError> {
        Ok(training_cases::table
            .filter(training_cases::run_id.eq(run))
            .filter(training_cases::candidate.eq(candidate))
            .filter(training_cases::case_index.eq_any(cases))
            .select(columns(with_details))
            .load(&mut *self.connection().await?)
            .await?)
    }

    /// Returns at most `limit` results of a run in key order, after the key `after`.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn cases_of_run(
        &self,
        run: Uuid,
        filter: &CaseFilter,
        after: Option<CaseKey>,
        limit: i64,
    ) -> Result<Vec<StoredCase>, StoreError> {
        let mut query = training_cases::table
            .filter(training_cases::run_id.eq(run))
            .order((training_cases::candidate, training_cases::case_index, training_cases::sample))
            .limit(limit)
            .select(columns(filter.with_details))
            .into_boxed();
        if let Some(candidate) = filter.candidate {
            query = query.filter(training_cases::candidate.eq(candidate));
        }
        if let Some(case) = filter.case {
            query = query.filter(training_cases::case_index.eq(case));
        }
        if let Some(split) = &filter.split {
            query = query.filter(training_cases::split.eq(split));
        }
        if let Some(failed) = filter.failed {
            query = query.filter(training_cases::passed.ne(failed));
        }
        if let Some((candidate, case, sample)) = after {
            // A row comparison is one range in the index.
            query = query.filter(
                diesel::dsl::sql::<Bool>("(candidate, case_index, sample) > (")
                    .bind::<Integer, _>(candidate)
                    .sql(", ")
                    .bind::<Integer, _>(case)
                    .sql(", ")
                    .bind::<Integer, _>(sample)
                    .sql(")"),
            );
        }
        Ok(query.load(&mut *self.connection().await?).await?)
    }
}
