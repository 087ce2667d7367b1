//! Deployment files as served to visitors.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Bytea, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use super::encodings::ENCODABLE;
use crate::schema::blob_chunks;
use crate::{Store, StoreError};

/// A file with all data that a response needs.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct ServedFile {
    /// The path from the root.
    #[diesel(sql_type = Text)]
    pub path: String,
    /// The content's bytes.
    #[diesel(sql_type = BigInt)]
    pub size: i64,
    /// The content type.
    #[diesel(sql_type = Text)]
    pub media_type: String,
    /// SHA-256 of the content.
    #[diesel(sql_type = Bytea)]
    pub digest: Vec<u8>,
    /// The content security policy for an HTML document.
    #[diesel(sql_type = Nullable<Text>)]
    pub policy: Option<String>,
    /// SHA-256 of the content in the encoding `br`.
    #[diesel(sql_type = Nullable<Bytea>)]
    pub br: Option<Vec<u8>>,
    /// Bytes of that encoding.
    #[diesel(sql_type = Nullable<BigInt>)]
    pub br_size: Option<i64>,
    /// SHA-256 of the content in the encoding `gzip`.
    #[diesel(sql_type = Nullable<Bytea>)]
    pub gzip: Option<Vec<u8>>,
    /// Bytes of that encoding.
    #[diesel(sql_type = Nullable<BigInt>)]
    pub gzip_size: Option<i64>,
    /// Whether encodings are still to be prepared.
    #[diesel(sql_type = Bool)]
    pub awaits_encoding: bool,
}

/// The columns of a [`ServedFile`].
fn columns() -> String {
    format!(
        "f.path, f.size, f.media_type, f.digest, f.policy, f.br, f.br_size, f.gzip, f.gzip_size,
         NOT f.is_encoded AND {ENCODABLE} AS awaits_encoding"
    )
}

impl Store {
    /// Returns all files in a deployment; empty after they were deleted.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn served_files(&self, deployment: Uuid) -> Result<Vec<ServedFile>, StoreError> {
        let sql = format!("SELECT {} FROM app_files f WHERE f.deployment_id = $1", columns());
        let files = diesel::sql_query(sql).bind::<SqlUuid, _>(deployment);
        Ok(files.load(&mut *self.connection().await?).await?)
    }

    /// Returns the file at a path from the latest release before `release` that has one and was active after
    /// `since`. Never returns an HTML document.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn earlier_file(
        &self,
        app: Uuid,
        release: Uuid,
        path: &str,
        since: DateTime<Utc>,
    ) -> Result<Option<ServedFile>, StoreError> {
        // A release is active until its app's next one, and creation times never decrease.
        let sql = format!(
            "WITH active AS (SELECT number FROM app_releases WHERE id = $2 AND app_id = $1),
             recent AS (SELECT r.number, r.deployment_id, r.created_at FROM app_releases r, active a
                     WHERE r.app_id = $1 AND r.number <= a.number AND r.created_at > $4
                 UNION ALL (SELECT r.number, r.deployment_id, r.created_at FROM app_releases r, active a
                     WHERE r.app_id = $1 AND r.number <= a.number AND r.created_at <= $4
                     ORDER BY r.number DESC LIMIT 1)),
             spans AS (SELECT number, deployment_id, lead(created_at) OVER (ORDER BY number) AS until FROM recent)
             SELECT {} FROM spans s JOIN app_files f ON f.deployment_id = s.deployment_id AND f.path = $3
             WHERE s.until > $4 AND f.policy IS NULL ORDER BY s.number DESC LIMIT 1",
            columns()
        );
        let file = diesel::sql_query(sql)
            .bind::<SqlUuid, _>(app)
            .bind::<SqlUuid, _>(release)
            .bind::<Text, _>(path)
            .bind::<Timestamptz, _>(since);
        let files: Vec<ServedFile> = file.load(&mut *self.connection().await?).await?;
        Ok(files.into_iter().next())
    }

    /// Returns a file with this content from an app's published deployments whose files are kept; prefers one
    /// with this name.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn kept_file(
        &self,
        app: Uuid,
        digest: &[u8; 32],
        name: &str,
    ) -> Result<Option<ServedFile>, StoreError> {
        let sql = format!(
            "SELECT {} FROM app_deployments d JOIN app_files f ON f.deployment_id = d.id AND f.digest = $2
             WHERE d.app_id = $1 AND d.available
                 AND EXISTS (SELECT FROM app_releases r WHERE r.app_id = $1 AND r.deployment_id = d.id)
             ORDER BY f.path = $3 OR right(f.path, length($3) + 1) = '/' || $3 DESC, d.id DESC, f.path LIMIT 1",
            columns()
        );
        let file = diesel::sql_query(sql)
            .bind::<SqlUuid, _>(app)
            .bind::<Bytea, _>(digest.as_slice())
            .bind::<Text, _>(name);
        let files: Vec<ServedFile> = file.load(&mut *self.connection().await?).await?;
        Ok(files.into_iter().next())
    }

    /// Returns a blob's bytes from a chunk on, at most `chunks` chunks with [`crate::BLOB_CHUNK`] bytes each.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn blob_part(&self, digest: &[u8; 32], first: i32, chunks: i32) -> Result<Vec<u8>, StoreError> {
        let parts: Vec<Vec<u8>> = blob_chunks::table
            .filter(blob_chunks::digest.eq(digest.as_slice()))
            .filter(blob_chunks::number.ge(first))
            .filter(blob_chunks::number.lt(first.saturating_add(chunks)))
            .order(blob_chunks::number)
            .select(blob_chunks::bytes)
            .load(&mut *self.connection().await?)
            .await?;
        Ok(parts.concat())
    }
}
