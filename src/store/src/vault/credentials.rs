//! Sealed workspace credentials. Each row also stores the context that its secret is bound to.

use std::fmt;

use auth::envelope::{Envelope, Place, WrappedKey};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::{credentials, workspaces};
use crate::{Changes, Store, StoreError};

/// The name of a credential's only secret in its seal context.
const FIELD: &str = "secret";

/// A credential without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = credentials)]
pub struct StoredCredential {
    /// UUIDv7.
    pub id: Uuid,
    /// Its workspace.
    pub workspace_id: Uuid,
    /// Its name in graphs; unique in the workspace.
    pub name: String,
    /// The service that it is for.
    pub provider: Option<String>,
    /// Its description for people.
    pub description: Option<String>,
    /// A preview: a few letters of the secret at most.
    pub preview: String,
    /// Its secret's version number, from 1.
    pub version: i32,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
    /// The caller who created it.
    pub created_by: Option<String>,
}

impl StoredCredential {
    /// The seal context for a version of its secret.
    #[must_use]
    pub fn place(&self, version: i32) -> Place<'static> {
        Place { workspace: self.workspace_id, credential: self.id, field: FIELD, version }
    }
}

/// The seal context for a new credential's first secret.
#[must_use]
pub fn first_place(workspace: Uuid, credential: Uuid) -> Place<'static> {
    Place { workspace, credential, field: FIELD, version: 1 }
}

/// A sealed secret and its preview.
#[derive(Clone)]
pub struct SealedSecret {
    /// The secret, sealed for its context.
    pub envelope: Envelope,
    /// A preview: a few letters of the secret at most.
    pub preview: String,
}

/// A credential to create.
#[derive(Clone)]
pub struct NewCredential {
    /// Its id, to which its secret's seal is bound.
    pub id: Uuid,
    /// Its workspace.
    pub workspace_id: Uuid,
    /// Its name in graphs.
    pub name: String,
    /// The service that it is for.
    pub provider: Option<String>,
    /// Its description for people.
    pub description: Option<String>,
    /// Its secret, version 1.
    pub secret: SealedSecret,
    /// The caller who creates it.
    pub created_by: Option<String>,
}

/// Changes to a credential; `None` leaves a member unchanged.
#[derive(Clone, Default)]
pub struct CredentialChange {
    /// The service that it is for.
    pub provider: Option<Option<String>>,
    /// Its description for people.
    pub description: Option<Option<String>>,
    /// Its next secret, sealed for the next version.
    pub secret: Option<SealedSecret>,
}

/// A sealed secret with everything but the key ring needed to open it.
#[derive(Clone)]
pub struct SealedCredential {
    /// Its name in graphs.
    pub name: String,
    /// Its row's id.
    pub id: Uuid,
    /// Its workspace.
    pub workspace_id: Uuid,
    /// Its version number.
    pub version: i32,
    /// The secret.
    pub envelope: Envelope,
}

impl fmt::Debug for SealedCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedCredential").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SealedCredential {
    /// The seal context of its secret.
    #[must_use]
    pub fn place(&self) -> Place<'static> {
        Place { workspace: self.workspace_id, credential: self.id, field: FIELD, version: self.version }
    }
}

/// The columns in [`SEALED`].
#[derive(Queryable)]
struct SealedRow {
    id: Uuid,
    workspace_id: Uuid,
    name: String,
    version: i32,
    key_id: String,
    wrapped_key: Vec<u8>,
    nonce: Vec<u8>,
    ciphertext: Vec<u8>,
}

impl From<SealedRow> for SealedCredential {
    fn from(row: SealedRow) -> Self {
        let SealedRow { id, workspace_id, name, version, key_id, wrapped_key: bytes, nonce, ciphertext } =
            row;
        let envelope = Envelope { key: WrappedKey { key_id, bytes }, nonce, ciphertext };
        Self { name, id, workspace_id, version, envelope }
    }
}

const SEALED: (
    credentials::id,
    credentials::workspace_id,
    credentials::name,
    credentials::version,
    credentials::key_id,
    credentials::wrapped_key,
    credentials::nonce,
    credentials::ciphertext,
) = (
    credentials::id,
    credentials::workspace_id,
    credentials::name,
    credentials::version,
    credentials::key_id,
    credentials::wrapped_key,
    credentials::nonce,
    credentials::ciphertext,
);

impl Changes {
    /// Creates a credential.
    ///
    /// # Errors
    /// [`StoreError::Taken`] when the workspace has a credential with this name.
    pub async fn create_credential(&mut self, new: NewCredential) -> Result<StoredCredential, StoreError> {
        let now = self.store.now();
        let NewCredential { id, workspace_id, name, provider, description, secret, created_by } = new;
        let Envelope { key, nonce, ciphertext } = secret.envelope;
        let made = diesel::insert_into(credentials::table)
            .values((
                credentials::id.eq(id),
                credentials::workspace_id.eq(workspace_id),
                credentials::name.eq(name),
                credentials::provider.eq(provider),
                credentials::description.eq(description),
                credentials::preview.eq(secret.preview),
                (
                    credentials::key_id.eq(key.key_id),
                    credentials::wrapped_key.eq(key.bytes),
                    credentials::nonce.eq(nonce),
                    credentials::ciphertext.eq(ciphertext),
                ),
                credentials::version.eq(1),
                credentials::created_at.eq(now),
                credentials::updated_at.eq(now),
                credentials::created_by.eq(created_by),
            ))
            .returning(StoredCredential::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        Ok(made)
    }

    /// Locks a credential against other changes until the commit; `None` if it no longer exists.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn lock_credential(&mut self, id: Uuid) -> Result<Option<StoredCredential>, StoreError> {
        let found = credentials::table
            .find(id)
            .select(StoredCredential::as_select())
            .for_update()
            .first(&mut *self.connection)
            .await
            .optional()?;
        Ok(found)
    }

    /// Changes a locked credential.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn change_credential(
        &mut self,
        locked: &StoredCredential,
        change: CredentialChange,
    ) -> Result<StoredCredential, StoreError> {
        let CredentialChange { provider, description, secret } = change;
        let secret = secret.map(|SealedSecret { envelope: Envelope { key, nonce, ciphertext }, preview }| {
            (
                credentials::preview.eq(preview),
                credentials::key_id.eq(key.key_id),
                credentials::wrapped_key.eq(key.bytes),
                credentials::nonce.eq(nonce),
                credentials::ciphertext.eq(ciphertext),
                credentials::version.eq(locked.version.saturating_add(1)),
            )
        });
        let changed = diesel::update(credentials::table.find(locked.id))
            .set((
                provider.map(|provider| credentials::provider.eq(provider)),
                description.map(|description| credentials::description.eq(description)),
                secret,
                credentials::updated_at.eq(self.store.now()),
            ))
            .returning(StoredCredential::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        Ok(changed)
    }

    /// Permanently deletes a credential; `false` if it is not found.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn delete_credential(&mut self, id: Uuid) -> Result<bool, StoreError> {
        let deleted = diesel::delete(credentials::table.find(id)).execute(&mut *self.connection).await?;
        Ok(deleted > 0)
    }
}

impl Store {
    /// Returns a workspace's credentials, newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn credentials(
        &self,
        workspace: Uuid,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<StoredCredential>, StoreError> {
        let mut rows = credentials::table.filter(credentials::workspace_id.eq(workspace)).into_boxed();
        if let Some(before) = before {
            rows = rows.filter(credentials::id.lt(before));
        }
        let rows = rows.order(credentials::id.desc()).limit(limit).select(StoredCredential::as_select());
        Ok(rows.load(&mut *self.connection().await?).await?)
    }

    /// Returns a credential in a workspace that is not deleted.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn credential(&self, id: Uuid) -> Result<Option<StoredCredential>, StoreError> {
        let there = workspaces::table.filter(workspaces::deleted_at.is_null()).select(workspaces::id);
        let found = credentials::table
            .find(id)
            .filter(credentials::workspace_id.eq_any(there))
            .select(StoredCredential::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found)
    }

    /// Returns a workspace's credential names in order.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn credential_names(&self, workspace: Uuid) -> Result<Vec<String>, StoreError> {
        let names = credentials::table
            .filter(credentials::workspace_id.eq(workspace))
            .order(credentials::name)
            .select(credentials::name)
            .load(&mut *self.connection().await?)
            .await?;
        Ok(names)
    }

    /// Returns a workspace's secrets with these names; omits unknown names.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn sealed_credentials(
        &self,
        workspace: Uuid,
        names: &[String],
    ) -> Result<Vec<SealedCredential>, StoreError> {
        let rows: Vec<SealedRow> = credentials::table
            .filter(credentials::workspace_id.eq(workspace))
            .filter(credentials::name.eq_any(names))
            .select(SEALED)
            .load(&mut *self.connection().await?)
            .await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }

    /// Returns secrets whose data keys are wrapped by a key other than this one, in id order.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn credentials_not_under(
        &self,
        key_id: &str,
        after: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<SealedCredential>, StoreError> {
        let rows: Vec<SealedRow> = credentials::table
            .filter(credentials::key_id.ne(key_id))
            .filter(credentials::id.gt(after.unwrap_or_default()))
            .order(credentials::id)
            .limit(limit)
            .select(SEALED)
            .load(&mut *self.connection().await?)
            .await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }

    /// Replaces a data key's wrapping, if it is still the one that was read; `false` if the row has changed in
    /// the meantime.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn rewrap_credential(
        &self,
        was: &SealedCredential,
        key: WrappedKey,
    ) -> Result<bool, StoreError> {
        let changed = diesel::update(credentials::table.find(was.id))
            .filter(credentials::version.eq(was.version))
            .filter(credentials::wrapped_key.eq(&was.envelope.key.bytes))
            .set((credentials::key_id.eq(key.key_id), credentials::wrapped_key.eq(key.bytes)))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(changed > 0)
    }

    /// Returns the ids of the ring's keys that stored secrets need, each with the number of secrets.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn credential_keys(&self) -> Result<Vec<(String, i64)>, StoreError> {
        let keys = credentials::table
            .group_by(credentials::key_id)
            .order(credentials::key_id)
            .select((credentials::key_id, diesel::dsl::count_star()))
            .load(&mut *self.connection().await?)
            .await?;
        Ok(keys)
    }
}
