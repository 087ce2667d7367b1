//! Lists and deletes search indexes.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel::{OptionalExtension, QueryableByName};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::database::scalar::Scalar;
use crate::{Changes, Store, StoreError};

/// Documents erased per batch, until they have that many chunks.
const DOCUMENTS: i64 = 20;
const CHUNKS: i64 = 2_000;
/// Retention of a deleted index's row: a document may still be on its way into it.
const GRACE: TimeDelta = TimeDelta::hours(1);

/// A workspace's index.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct NamedIndex {
    /// Its name in workflows.
    #[diesel(sql_type = Text)]
    pub name: String,
    /// The number of documents.
    #[diesel(sql_type = BigInt)]
    pub documents: i64,
    /// The number of chunks in them.
    #[diesel(sql_type = BigInt)]
    pub chunks: i64,
    /// The number of chunks with a vector.
    #[diesel(sql_type = BigInt)]
    pub vectors: i64,
    /// The vectors' dimensions.
    #[diesel(sql_type = Nullable<Integer>)]
    pub dimensions: Option<i32>,
}

#[derive(QueryableByName)]
struct OrphanedDocument {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = BigInt)]
    chunks: i64,
}

impl Store {
    /// Returns a workspace's indexes after a name, in name order.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn search_indexes(
        &self,
        workspace: Uuid,
        after: Option<&str>,
        most: i64,
    ) -> Result<Vec<NamedIndex>, StoreError> {
        let found = diesel::sql_query(
            "SELECT i.name, i.chunks, i.vectors, i.dimensions,
                 (SELECT count(*) FROM search_documents d WHERE d.index_id = i.id) AS documents
             FROM search_indexes i WHERE i.workspace_id = $1 AND i.deleted_at IS NULL AND ($2 IS NULL OR i.name > $2)
             ORDER BY i.name LIMIT $3",
        )
        .bind::<SqlUuid, _>(workspace)
        .bind::<Nullable<Text>, _>(after)
        .bind::<BigInt, _>(most)
        .load(&mut *self.connection().await?)
        .await?;
        Ok(found)
    }

    /// Erases a batch of data from deleted indexes; `true` if more may be left.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn erase_deleted_indexes(&self, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let mut connection = self.connection().await?;
        if connection.transaction(async |connection| erased(connection).await).await? {
            return Ok(true);
        }
        diesel::sql_query(
            "DELETE FROM search_indexes i WHERE i.deleted_at < $1
                 AND NOT EXISTS (SELECT FROM search_documents d WHERE d.index_id = i.id)",
        )
        .bind::<Timestamptz, _>(now - GRACE)
        .execute(&mut *connection)
        .await?;
        Ok(false)
    }
}

/// Erases some documents. They are locked first, so that the second statement sees all data written into them.
async fn erased(connection: &mut AsyncPgConnection) -> Result<bool, StoreError> {
    let found: Vec<OrphanedDocument> = diesel::sql_query(
        "SELECT d.id, d.chunks FROM search_documents d JOIN search_indexes i ON i.id = d.index_id
         WHERE i.deleted_at IS NOT NULL LIMIT $1 FOR UPDATE OF d SKIP LOCKED",
    )
    .bind::<BigInt, _>(DOCUMENTS)
    .load(connection)
    .await?;
    let mut chunks = 0_i64;
    let some = found.iter().take_while(|document| {
        let before = chunks;
        chunks = chunks.saturating_add(document.chunks);
        before < CHUNKS
    });
    let some: Vec<i64> = some.map(|document| document.id).collect();
    let erased = diesel::sql_query(
        "WITH part AS MATERIALIZED (SELECT id, index_id, terms FROM search_documents WHERE id = ANY($1)),
         words AS (SELECT id, index_id, unnest(terms) AS term FROM part),
         postings AS (DELETE FROM search_postings p USING words w
             WHERE p.index_id = w.index_id AND p.term = w.term AND p.document_id = w.id),
         chunks AS (DELETE FROM search_chunks c USING part WHERE c.index_id = part.index_id AND c.document_id = part.id)
         DELETE FROM search_documents d USING part WHERE d.id = part.id",
    )
    .bind::<Array<BigInt>, _>(some)
    .execute(connection)
    .await?;
    Ok(erased > 0)
}

impl Changes {
    /// Deletes an index by giving it a name that no workflow can use; its data is erased later. Returns its id,
    /// `None` if it is not found.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn delete_search_index(
        &mut self,
        workspace: Uuid,
        name: &str,
    ) -> Result<Option<i32>, StoreError> {
        let deleted: Option<Scalar<i32>> = diesel::sql_query(
            "UPDATE search_indexes SET deleted_at = $3, name = chr(1) || id
             WHERE workspace_id = $1 AND name = $2 AND deleted_at IS NULL RETURNING id",
        )
        .bind::<SqlUuid, _>(workspace)
        .bind::<Text, _>(name)
        .bind::<Timestamptz, _>(self.store.now())
        .get_result(&mut *self.connection)
        .await
        .optional()?;
        Ok(deleted.map(|deleted| deleted.0))
    }
}
