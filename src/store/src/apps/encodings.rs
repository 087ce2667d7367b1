//! Compressed forms of files. They are prepared for published deployments.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bytea, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, RunQueryDsl};
use uuid::Uuid;

use super::FILE_USE;
use crate::blobs::records::put;
use crate::blobs::uses::{BlobUse, insert};
use crate::database::scalar::Scalar;
use crate::schema::app_deployments;
use crate::{Store, StoreError};

/// SQL condition for files `f` to compress: texts of at least 1 KiB. The index `app_files_to_encode` has the
/// same condition.
pub(super) const ENCODABLE: &str =
    "f.size >= 1024 AND f.media_type ~ '^text/|[/+](json|xml|yaml|x-ndjson|rtf)(;|$)'";

/// A file that is not compressed yet.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct UnencodedFile {
    /// SHA-256 of the content.
    #[diesel(sql_type = Bytea)]
    pub digest: Vec<u8>,
    /// Its bytes.
    #[diesel(sql_type = BigInt)]
    pub size: i64,
}

/// The compressed forms of a content; `None`: the saving is too small.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodedContent {
    /// The encoding `br`.
    pub br: Option<Vec<u8>>,
    /// The encoding `gzip`.
    pub gzip: Option<Vec<u8>>,
}

impl Store {
    /// Returns at most `limit` deployments of active releases with files to compress: the oldest in each
    /// workspace first, then the next ones.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn deployments_to_encode(&self, limit: i64) -> Result<Vec<Uuid>, StoreError> {
        let sql = format!(
            "SELECT r.deployment_id AS id FROM apps a JOIN app_releases r ON r.id = a.active_release
             WHERE a.deleted_at IS NULL AND EXISTS (SELECT FROM app_files f
                 WHERE f.deployment_id = r.deployment_id AND NOT f.is_encoded AND {ENCODABLE})
             ORDER BY row_number() OVER (PARTITION BY a.workspace_id ORDER BY r.id), r.id LIMIT $1"
        );
        let rows: Vec<Scalar<Uuid>> =
            diesel::sql_query(sql).bind::<BigInt, _>(limit).load(&mut *self.connection().await?).await?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }

    /// Returns a deployment's contents to compress, smallest first. Reuses the results from other deployments.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn files_to_encode(&self, deployment: Uuid) -> Result<Vec<UnencodedFile>, StoreError> {
        let mut connection = self.connection().await?;
        let sql = format!(
            "WITH kept AS MATERIALIZED (SELECT id, workspace_id FROM app_deployments WHERE id = $1 AND available FOR SHARE),
             known AS MATERIALIZED (SELECT DISTINCT ON (f.digest) f.digest, e.br, e.br_size, e.gzip, e.gzip_size
                 FROM kept d JOIN app_files f ON f.deployment_id = d.id
                     JOIN app_files e ON e.digest = f.digest AND e.is_encoded
                 WHERE NOT f.is_encoded AND {ENCODABLE}),
             found AS MATERIALIZED (SELECT digest FROM blobs
                 WHERE digest IN (SELECT br FROM known UNION SELECT gzip FROM known) ORDER BY digest FOR UPDATE),
             -- Young again: a deletion that has chosen it leaves it.
             young AS (UPDATE blobs b SET created_at = $3 FROM found WHERE b.digest = found.digest RETURNING b.digest),
             whole AS MATERIALIZED (SELECT * FROM known k
                 WHERE (k.br IS NULL OR k.br IN (SELECT digest FROM young))
                     AND (k.gzip IS NULL OR k.gzip IN (SELECT digest FROM young))),
             used AS (INSERT INTO blob_uses (digest, kind, owner, workspace_id)
                 SELECT b.digest, $2, d.id, d.workspace_id FROM kept d, whole k
                     CROSS JOIN LATERAL (VALUES (k.br), (k.gzip)) b (digest)
                 WHERE b.digest IS NOT NULL ON CONFLICT DO NOTHING)
             UPDATE app_files f SET br = k.br, br_size = k.br_size, gzip = k.gzip, gzip_size = k.gzip_size,
                 is_encoded = true FROM whole k WHERE f.deployment_id = $1 AND f.digest = k.digest AND {ENCODABLE}"
        );
        diesel::sql_query(sql)
            .bind::<SqlUuid, _>(deployment)
            .bind::<Text, _>(FILE_USE)
            .bind::<Timestamptz, _>(self.now())
            .execute(&mut *connection)
            .await?;
        let sql = format!(
            "SELECT DISTINCT f.digest, f.size FROM app_files f
             WHERE f.deployment_id = $1 AND NOT f.is_encoded AND {ENCODABLE} ORDER BY f.size, f.digest"
        );
        Ok(diesel::sql_query(sql).bind::<SqlUuid, _>(deployment).load(&mut *connection).await?)
    }

    /// Stores the compressed forms of a deployment's content, with the same retention as its files. Stores
    /// nothing if the files have been deleted.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn store_encodings(
        &self,
        deployment: Uuid,
        digest: &[u8],
        encodings: &EncodedContent,
    ) -> Result<(), StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                // The files are deleted under a lock on this row.
                let kept: Option<Uuid> = app_deployments::table
                    .find(deployment)
                    .filter(app_deployments::available)
                    .select(app_deployments::workspace_id)
                    .for_share()
                    .first(connection)
                    .await
                    .optional()?;
                let Some(workspace) = kept else { return Ok(()) };
                let mut stored = [None, None];
                for (stored, bytes) in stored.iter_mut().zip([&encodings.br, &encodings.gzip]) {
                    let Some(bytes) = bytes else { continue };
                    let address = put(connection, bytes, now).await?;
                    insert(connection, &address, BlobUse { kind: FILE_USE, owner: deployment, workspace })
                        .await?;
                    *stored = Some((address.to_vec(), i64::try_from(bytes.len()).unwrap_or(i64::MAX)));
                }
                let [br, gzip] = stored;
                let (br, br_size) = br.unzip();
                let (gzip, gzip_size) = gzip.unzip();
                diesel::sql_query(format!(
                    "UPDATE app_files f SET br = $3, br_size = $4, gzip = $5, gzip_size = $6, is_encoded = true
                     WHERE f.deployment_id = $1 AND f.digest = $2 AND {ENCODABLE}"
                ))
                .bind::<SqlUuid, _>(deployment)
                .bind::<Bytea, _>(digest)
                .bind::<Nullable<Bytea>, _>(br)
                .bind::<Nullable<BigInt>, _>(br_size)
                .bind::<Nullable<Bytea>, _>(gzip)
                .bind::<Nullable<BigInt>, _>(gzip_size)
                .execute(connection)
                .await?;
                Ok(())
            })
            .await
    }
}
