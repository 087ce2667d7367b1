//! Reads the cases in a dataset version.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Text, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::dataset_versions;
use crate::{Store, StoreError};

/// Selects a version's cases; a condition follows.
const SELECT: &str = "SELECT e.place, c.content FROM dataset_entries e JOIN datasets d ON d.id = e.dataset_id
     JOIN dataset_cases c ON c.digest = e.digest AND c.workspace_id = d.workspace_id
     WHERE e.dataset_id = $1 AND e.number <= $2 AND (e.until IS NULL OR e.until > $2)";

#[derive(QueryableByName)]
struct CaseRow {
    #[diesel(sql_type = Integer)]
    place: i32,
    #[diesel(sql_type = Text)]
    content: String,
}

impl Store {
    /// Returns the number of cases in a dataset version; `None` if the version does not exist.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn dataset_size(&self, dataset: Uuid, number: i32) -> Result<Option<i32>, StoreError> {
        Ok(dataset_versions::table
            .find((dataset, number))
            .select(dataset_versions::n_cases)
            .first(&mut *self.connection().await?)
            .await
            .optional()?)
    }

    /// Returns the first `limit` case contents in a dataset version, JSON, in order.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn cases_of_version(
        &self,
        dataset: Uuid,
        number: i32,
        limit: i64,
    ) -> Result<Vec<String>, StoreError> {
        let page = self.page_of_version(dataset, number, -1, limit).await?;
        Ok(page.into_iter().map(|(_, content)| content).collect())
    }

    /// Returns at most `limit` case indexes and contents in a dataset version, JSON, after the index `after`.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn page_of_version(
        &self,
        dataset: Uuid,
        number: i32,
        after: i32,
        limit: i64,
    ) -> Result<Vec<(i32, String)>, StoreError> {
        let found: Vec<CaseRow> =
            diesel::sql_query(format!("{SELECT} AND e.place > $3 ORDER BY e.place LIMIT $4"))
                .bind::<SqlUuid, _>(dataset)
                .bind::<Integer, _>(number)
                .bind::<Integer, _>(after)
                .bind::<BigInt, _>(limit)
                .load(&mut *self.connection().await?)
                .await?;
        Ok(found.into_iter().map(|found| (found.place, found.content)).collect())
    }

    /// Returns one case's content in a dataset version, JSON.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn case_of_version(
        &self,
        dataset: Uuid,
        number: i32,
        place: i32,
    ) -> Result<Option<String>, StoreError> {
        let found: Option<CaseRow> = diesel::sql_query(format!("{SELECT} AND e.place = $3"))
            .bind::<SqlUuid, _>(dataset)
            .bind::<Integer, _>(number)
            .bind::<Integer, _>(place)
            .get_result(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found.map(|found| found.content))
    }
}
