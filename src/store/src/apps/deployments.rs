//! Deployments: accepted bundles with their files.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bytea, Nullable, Text, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use super::FILE_USE;
use crate::schema::app_deployments;
use crate::{Changes, Store, StoreError};

/// A deployment in a list.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable)]
#[diesel(table_name = app_deployments)]
pub struct ListedDeployment {
    /// UUIDv7.
    pub id: Uuid,
    /// Its app.
    pub app_id: Uuid,
    /// The app's workspace.
    pub workspace_id: Uuid,
    /// SHA-256 of the archive.
    pub digest: Vec<u8>,
    /// The archive's bytes.
    pub size: i64,
    /// The total bytes in its files.
    pub expanded_size: i64,
    /// The number of files.
    pub file_count: i32,
    /// Whether its files are stored.
    pub available: bool,
    /// Whether unknown page paths show the index.
    pub spa: bool,
    /// JSON: the origins that may embed the app in a frame.
    pub frame_ancestors: String,
    /// Whether a file is WebAssembly.
    pub wasm: bool,
    /// The caller who uploaded it.
    pub created_by: Option<String>,
    /// When it was uploaded.
    pub created_at: DateTime<Utc>,
}

/// A deployment without its files.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable)]
#[diesel(table_name = app_deployments)]
pub struct StoredDeployment {
    /// Its data in lists.
    #[diesel(embed)]
    pub listed: ListedDeployment,
    /// JSON: the bindings by name, as effective at the upload.
    pub bindings: String,
    /// Whether the manifest declares them.
    pub declares_bindings: bool,
    /// JSON: the collections by name, as effective at the upload.
    pub collections: String,
    /// Whether the manifest declares them.
    pub declares_collections: bool,
    /// JSON: dropped files and notes.
    pub report: String,
}

/// A deployment file.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct DeploymentFile {
    /// The path from the root.
    #[diesel(sql_type = Text)]
    pub path: String,
    /// The content's bytes.
    #[diesel(sql_type = BigInt)]
    pub size: i64,
    /// The content type for responses.
    #[diesel(sql_type = Text)]
    pub media_type: String,
    /// SHA-256 of the content.
    #[diesel(sql_type = Bytea)]
    pub digest: Vec<u8>,
}

/// A file to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Its data in lists.
    pub file: DeploymentFile,
    /// The content security policy for an HTML document.
    pub policy: Option<String>,
}

impl Changes {
    /// Stores a locked app's deployment, whose blobs are already stored.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn create_deployment(
        &mut self,
        new: StoredDeployment,
        files: &[NewFile],
    ) -> Result<StoredDeployment, StoreError> {
        let made: StoredDeployment = diesel::insert_into(app_deployments::table)
            .values(new)
            .returning(StoredDeployment::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        let of =
            |text: fn(&DeploymentFile) -> &str| files.iter().map(|new| text(&new.file)).collect::<Vec<_>>();
        let digests: Vec<&[u8]> = files.iter().map(|new| new.file.digest.as_slice()).collect();
        diesel::sql_query(
            "WITH files AS (INSERT INTO app_files (deployment_id, path, size, media_type, digest, policy)
                 SELECT $1, * FROM unnest($4, $5, $6, $7, $8)),
             used AS (SELECT DISTINCT digest FROM unnest($7) AS f (digest) ORDER BY digest)
             INSERT INTO blob_uses (digest, kind, owner, workspace_id) SELECT digest, $3, $1, $2 FROM used",
        )
        .bind::<SqlUuid, _>(made.listed.id)
        .bind::<SqlUuid, _>(made.listed.workspace_id)
        .bind::<Text, _>(FILE_USE)
        .bind::<Array<Text>, _>(of(|file| &file.path))
        .bind::<Array<BigInt>, _>(files.iter().map(|new| new.file.size).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(of(|file| &file.media_type))
        .bind::<Array<Bytea>, _>(digests)
        .bind::<Array<Nullable<Text>>, _>(files.iter().map(|new| new.policy.as_deref()).collect::<Vec<_>>())
        .execute(&mut *self.connection)
        .await?;
        Ok(made)
    }
}

impl Store {
    /// Returns at most `limit` deployments of an app before this one, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn deployments(
        &self,
        app: Uuid,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<ListedDeployment>, StoreError> {
        let mut rows = app_deployments::table.filter(app_deployments::app_id.eq(app)).into_boxed();
        if let Some(before) = before {
            rows = rows.filter(app_deployments::id.lt(before));
        }
        let rows = rows.order(app_deployments::id.desc()).limit(limit).select(ListedDeployment::as_select());
        Ok(rows.load(&mut *self.connection().await?).await?)
    }

    /// Returns an app's deployment.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn deployment(&self, app: Uuid, id: Uuid) -> Result<Option<StoredDeployment>, StoreError> {
        let found = app_deployments::table
            .find(id)
            .filter(app_deployments::app_id.eq(app))
            .select(StoredDeployment::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found)
    }

    /// Returns a deployment's files by path; empty after they were deleted.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn deployment_files(&self, deployment: Uuid) -> Result<Vec<DeploymentFile>, StoreError> {
        let sql =
            "SELECT path, size, media_type, digest FROM app_files WHERE deployment_id = $1 ORDER BY path";
        let files = diesel::sql_query(sql).bind::<SqlUuid, _>(deployment);
        Ok(files.load(&mut *self.connection().await?).await?)
    }
}
