//! Results of cases.

use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Integer, Nullable, Text};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::training_cases;
use crate::{Store, StoreError};

/// By which the result of a case is found: candidate, place in the dataset, number of the execution.
pub type CaseKey = (i32, i32, i32);

/// The result of a case.
#[derive(Debug, Clone, Queryable)]
pub struct StoredCase {
    /// Whose prompts; 0 is the seed.
    pub candidate: i32,
    /// Its place in the dataset, from 0.
    pub case_index: i32,
    /// The number of the execution, from 0.
    pub sample: i32,
    /// What it was executed for.
    pub phase: String,
    /// `train`, `val` or `test`; `None` for an evaluation.
    pub split: Option<String>,
    /// The epoch.
    pub epoch: i32,
    /// Its score; `None` if no evaluator counts.
    pub score: Option<f64>,
    /// Whether every evaluator that counts has passed.
    pub passed: bool,
    /// JSON.
    pub result: String,
    /// JSON: inputs and calls of the trace's steps; `None` if they are not kept or not asked for.
    pub details: Option<String>,
}

/// Which results of a run a list shows. Everything given must match.
#[derive(Debug, Clone, Default)]
pub struct CaseFilter {
    /// With the prompts of this candidate.
    pub candidate: Option<i32>,
    /// Of the case with this place in the dataset.
    pub case: Option<i32>,
    /// Of this split.
    pub split: Option<String>,
    /// Only those that have failed, or only those that have passed.
    pub failed: Option<bool>,
    /// Whether the list has [`StoredCase::details`], which may be megabytes of each.
    pub with_details: bool,
}

type Columns = (
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

/// The columns of [`StoredCase`].
fn columns(with_details: bool) -> Columns {
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
    /// The keys of all results of a run.
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

    /// How many calls of models the results of a run have had answered, with or without a request.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn answered_calls(&self, run: Uuid) -> Result<u64, StoreError> {
        #[derive(QueryableByName)]
        struct Sum {
            #[diesel(sql_type = diesel::sql_types::BigInt)]
            answered: i64,
        }
        let sum: Sum = diesel::sql_query(
            "SELECT coalesce(sum(answered), 0)::bigint AS answered FROM training_cases WHERE run_id = $1",
        )
        .bind::<diesel::sql_types::Uuid, _>(run)
        .get_result(&mut *self.connection().await?)
        .await?;
        Ok(u64::try_from(sum.answered).unwrap_or_default())
    }

    /// Results of a candidate on these cases. `with_details`: with [`StoredCase::details`].
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

    /// Results of a run in the order of their keys, after the key `after`, at most `limit`.
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
            // A comparison of rows is one range of the index.
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
