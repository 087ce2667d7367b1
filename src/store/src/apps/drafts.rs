//! An app's bindings and collections, which apply to deployments whose manifests declare none.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;
use wire::{MAX_BINDINGS, MAX_COLLECTIONS};

use crate::database::scalar::Scalar;
use crate::schema::app_collections;
use crate::{Changes, Store, StoreError};

/// An app binding.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct StoredBinding {
    /// Its name.
    #[diesel(sql_type = Text)]
    pub name: String,
    /// JSON.
    #[diesel(sql_type = Text)]
    pub binding: String,
    /// When it was created.
    #[diesel(sql_type = Timestamptz)]
    pub created_at: DateTime<Utc>,
    /// When it was last replaced.
    #[diesel(sql_type = Timestamptz)]
    pub updated_at: DateTime<Utc>,
}

/// An app collection that is not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable)]
#[diesel(table_name = app_collections)]
pub struct StoredCollection {
    /// UUIDv7; not reused for another collection with the same name.
    pub id: Uuid,
    /// Its app.
    pub app_id: Uuid,
    /// The app's workspace.
    pub workspace_id: Uuid,
    /// Its name.
    pub name: String,
    /// `shared` or `user`.
    pub kind: String,
    /// JSON: the permitted actions by kind of caller.
    pub capabilities: String,
    /// The JSON Schema for a record.
    pub schema: Option<String>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

/// The result of setting a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetBinding {
    /// Stored; the flag says whether the name is new.
    Set(StoredBinding, bool),
    /// The app has reached its maximum number of bindings.
    TooMany,
}

#[derive(QueryableByName)]
struct Inserted {
    #[diesel(embed)]
    binding: StoredBinding,
    #[diesel(sql_type = Bool)]
    is_new: bool,
}

impl Changes {
    /// Sets a binding in a locked app.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn set_binding(
        &mut self,
        app: Uuid,
        workspace: Uuid,
        name: &str,
        binding: &str,
    ) -> Result<SetBinding, StoreError> {
        let others: Scalar<i64> =
            diesel::sql_query("SELECT count(*) AS count FROM app_bindings WHERE app_id = $1 AND name <> $2")
                .bind::<SqlUuid, _>(app)
                .bind::<Text, _>(name)
                .get_result(&mut *self.connection)
                .await?;
        if is_full(others.0, MAX_BINDINGS) {
            return Ok(SetBinding::TooMany);
        }
        let set: Inserted = diesel::sql_query(
            "INSERT INTO app_bindings (app_id, name, workspace_id, binding, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5)
             ON CONFLICT (app_id, name) DO UPDATE SET binding = excluded.binding, updated_at = excluded.updated_at
             RETURNING name, binding, created_at, updated_at, xmax = 0 AS is_new",
        )
        .bind::<SqlUuid, _>(app)
        .bind::<Text, _>(name)
        .bind::<SqlUuid, _>(workspace)
        .bind::<Text, _>(binding)
        .bind::<Timestamptz, _>(self.store.now())
        .get_result(&mut *self.connection)
        .await?;
        Ok(SetBinding::Set(set.binding, set.is_new))
    }

    /// Deletes a binding. Returns `false` if the app has no binding with this name.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn delete_binding(&mut self, app: Uuid, name: &str) -> Result<bool, StoreError> {
        let deleted = diesel::sql_query("DELETE FROM app_bindings WHERE app_id = $1 AND name = $2")
            .bind::<SqlUuid, _>(app)
            .bind::<Text, _>(name)
            .execute(&mut *self.connection)
            .await?;
        Ok(deleted > 0)
    }

    /// Creates a collection in a locked app. Returns `None` if the app has reached its maximum.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if the app has a collection with this name.
    pub async fn create_collection(
        &mut self,
        new: StoredCollection,
    ) -> Result<Option<StoredCollection>, StoreError> {
        let known: i64 = app_collections::table
            .filter(app_collections::app_id.eq(new.app_id))
            .filter(app_collections::deleted_at.is_null())
            .filter(app_collections::name.ne(&new.name))
            .count()
            .get_result(&mut *self.connection)
            .await?;
        if is_full(known, MAX_COLLECTIONS) {
            return Ok(None);
        }
        let made = diesel::insert_into(app_collections::table)
            .values(new)
            .returning(StoredCollection::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        Ok(Some(made))
    }

    /// Deletes a collection. Returns `false` if the app has no collection with this name.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn delete_collection(&mut self, app: Uuid, name: &str) -> Result<bool, StoreError> {
        let deleted = diesel::update(app_collections::table)
            .filter(app_collections::app_id.eq(app))
            .filter(app_collections::name.eq(name))
            .filter(app_collections::deleted_at.is_null())
            .set(app_collections::deleted_at.eq(Some(self.store.now())))
            .execute(&mut *self.connection)
            .await?;
        Ok(deleted > 0)
    }
}

impl Store {
    /// Returns at most `limit` bindings of an app before this one, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn bindings(
        &self,
        app: Uuid,
        before: Option<(DateTime<Utc>, &str)>,
        limit: i64,
    ) -> Result<Vec<StoredBinding>, StoreError> {
        let (at, name) = before.unzip();
        let bindings = diesel::sql_query(
            "SELECT name, binding, created_at, updated_at FROM app_bindings
             WHERE app_id = $1 AND ($2 IS NULL OR (created_at, name) < ($2, $3))
             ORDER BY created_at DESC, name DESC LIMIT $4",
        )
        .bind::<SqlUuid, _>(app)
        .bind::<Nullable<Timestamptz>, _>(at)
        .bind::<Nullable<Text>, _>(name)
        .bind::<BigInt, _>(limit)
        .load(&mut *self.connection().await?)
        .await?;
        Ok(bindings)
    }

    /// Returns at most `limit` collections of an app before this one, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn collections(
        &self,
        app: Uuid,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<StoredCollection>, StoreError> {
        let mut rows = app_collections::table
            .filter(app_collections::app_id.eq(app))
            .filter(app_collections::deleted_at.is_null())
            .into_boxed();
        if let Some(before) = before {
            rows = rows.filter(app_collections::id.lt(before));
        }
        let rows = rows.order(app_collections::id.desc()).limit(limit).select(StoredCollection::as_select());
        Ok(rows.load(&mut *self.connection().await?).await?)
    }
}

fn is_full(count: i64, most: usize) -> bool {
    usize::try_from(count).unwrap_or_default() >= most
}
