//! Data for reports.

use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Integer, Nullable, Text, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::{Store, StoreError};

/// The number of intervals in the score range.
const TENTHS: usize = 10;

/// The current names of a run's workflow and dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq, QueryableByName)]
pub struct NamesOfTraining {
    /// The workflow's name.
    #[diesel(sql_type = Nullable<Text>)]
    pub workflow: Option<String>,
    /// The dataset's name; `None` if the cases came with the request.
    #[diesel(sql_type = Nullable<Text>)]
    pub dataset: Option<String>,
}

#[derive(QueryableByName)]
struct Tenth {
    #[diesel(sql_type = Integer)]
    tenth: i32,
    #[diesel(sql_type = BigInt)]
    results: i64,
}

impl Store {
    /// Returns the names of a workflow and a dataset.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn names_of_training(
        &self,
        workflow: Uuid,
        dataset: Uuid,
    ) -> Result<NamesOfTraining, StoreError> {
        let names = "SELECT (SELECT name FROM workflows WHERE id = $1) AS workflow,
                            (SELECT name FROM datasets WHERE id = $2) AS dataset";
        Ok(diesel::sql_query(names)
            .bind::<SqlUuid, _>(workflow)
            .bind::<SqlUuid, _>(dataset)
            .get_result(&mut *self.connection().await?)
            .await?)
    }

    /// Counts an evaluation's results by tenths of the score range 0 to 1.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn score_distribution(&self, run: Uuid) -> Result<Vec<u64>, StoreError> {
        let counts = "SELECT least(greatest(floor(score * 10), 0), 9)::int AS tenth, count(*) AS results
                      FROM training_cases WHERE run_id = $1 AND candidate = 0 AND score IS NOT NULL GROUP BY 1";
        let rows: Vec<Tenth> =
            diesel::sql_query(counts).bind::<SqlUuid, _>(run).load(&mut *self.connection().await?).await?;
        let mut counts = vec![0; TENTHS];
        for Tenth { tenth, results } in rows {
            let count = usize::try_from(tenth).ok().and_then(|tenth| counts.get_mut(tenth));
            if let Some(count) = count {
                *count = u64::try_from(results).unwrap_or_default();
            }
        }
        Ok(counts)
    }
}
