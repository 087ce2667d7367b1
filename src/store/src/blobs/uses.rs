//! Blob uses: a blob is kept while a use or a step names it.

use diesel::sql_types::{Array, Bytea, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::{Store, StoreError};

/// A blob use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobUse {
    /// The kind of owner, such as `attachment`.
    pub kind: &'static str,
    /// The row that needs it.
    pub owner: Uuid,
    /// The workspace whose storage it counts toward.
    pub workspace: Uuid,
}

impl Store {
    /// Adds a use to a blob. Returns `false` if the blob does not exist.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn use_blob(&self, address: &[u8; 32], wanted: BlobUse) -> Result<bool, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                // Resets the age, so that a concurrent deletion spares it.
                let found = diesel::sql_query("UPDATE blobs SET created_at = $2 WHERE digest = $1")
                    .bind::<Bytea, _>(address.as_slice())
                    .bind::<Timestamptz, _>(now)
                    .execute(connection)
                    .await?;
                if found == 0 {
                    return Ok(false);
                }
                insert(connection, address, wanted).await?;
                Ok(true)
            })
            .await
    }

    /// Deletes all uses with this kind and owner.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_uses(&self, kind: &str, owner: Uuid) -> Result<(), StoreError> {
        diesel::sql_query("DELETE FROM blob_uses WHERE owner = $1 AND kind = $2")
            .bind::<SqlUuid, _>(owner)
            .bind::<Text, _>(kind)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }
}

/// Adds a use to an existing blob.
pub(crate) async fn insert(
    connection: &mut AsyncPgConnection,
    address: &[u8; 32],
    wanted: BlobUse,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO blob_uses (digest, kind, owner, workspace_id) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    diesel::sql_query(sql)
        .bind::<Bytea, _>(address.as_slice())
        .bind::<Text, _>(wanted.kind)
        .bind::<SqlUuid, _>(wanted.owner)
        .bind::<SqlUuid, _>(wanted.workspace)
        .execute(connection)
        .await?;
    Ok(())
}

/// Deletes all uses by these attachments.
pub(crate) async fn forget_all(
    connection: &mut AsyncPgConnection,
    owners: &[Uuid],
) -> Result<(), StoreError> {
    diesel::sql_query("DELETE FROM blob_uses WHERE owner = ANY($1)")
        .bind::<Array<SqlUuid>, _>(owners)
        .execute(connection)
        .await?;
    Ok(())
}
