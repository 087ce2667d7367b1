//! Data that an app change reads under the app's row lock and keeps unchanged until the commit.

use std::collections::BTreeMap;

use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use super::{StoredApp, StoredBinding, StoredCollection};
use crate::schema::{app_collections, app_deployments, workflows};
use crate::{Changes, Store, StoreError};

/// An app's bindings and collections, which apply to deployments whose manifests declare none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drafts {
    /// The bindings as JSON by name.
    pub bindings: BTreeMap<String, String>,
    /// The collections by name.
    pub collections: BTreeMap<String, StoredCollection>,
}

impl Drafts {
    async fn read(connection: &mut AsyncPgConnection, app: Uuid) -> Result<Self, StoreError> {
        let sql = "SELECT name, binding, created_at, updated_at FROM app_bindings WHERE app_id = $1";
        let bindings: Vec<StoredBinding> =
            diesel::sql_query(sql).bind::<diesel::sql_types::Uuid, _>(app).load(&mut *connection).await?;
        let collections: Vec<StoredCollection> = app_collections::table
            .filter(app_collections::app_id.eq(app))
            .filter(app_collections::deleted_at.is_null())
            .select(StoredCollection::as_select())
            .load(&mut *connection)
            .await?;
        Ok(Self {
            bindings: bindings.into_iter().map(|row| (row.name, row.binding)).collect(),
            collections: collections.into_iter().map(|row| (row.name.clone(), row)).collect(),
        })
    }
}

impl Store {
    /// Returns an app's bindings and collections.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn drafts(&self, app: Uuid) -> Result<Drafts, StoreError> {
        Drafts::read(&mut *self.connection().await?, app).await
    }
}

impl Changes {
    /// Returns a locked app's bindings and collections.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn drafts(&mut self, app: Uuid) -> Result<Drafts, StoreError> {
        Drafts::read(&mut self.connection, app).await
    }

    /// Locks an app deployment's files until the commit. Returns whether they are available.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn hold_deployment(&mut self, app: Uuid, id: Uuid) -> Result<bool, StoreError> {
        let available: Option<bool> = app_deployments::table
            .find(id)
            .filter(app_deployments::app_id.eq(app))
            .select(app_deployments::available)
            .for_share()
            .first(&mut *self.connection)
            .await
            .optional()?;
        Ok(available.unwrap_or_default())
    }

    /// Locks workflows against archiving until the commit. Returns whether all of them exist and are not
    /// archived.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn hold_workflows(&mut self, ids: &[Uuid]) -> Result<bool, StoreError> {
        let held: Vec<Uuid> = workflows::table
            .filter(workflows::id.eq_any(ids))
            .filter(workflows::archived_at.is_null())
            .order(workflows::id)
            .select(workflows::id)
            .for_share()
            .load(&mut *self.connection)
            .await?;
        Ok(ids.iter().all(|id| held.contains(id)))
    }

    /// Creates a collection in a locked app, with a kind, capabilities and a schema. Returns `None` if the app
    /// has reached its maximum.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if the app has a collection with this name.
    pub async fn declare_collection(
        &mut self,
        app: &StoredApp,
        name: &str,
        kind: &str,
        capabilities: &str,
        schema: Option<String>,
    ) -> Result<Option<StoredCollection>, StoreError> {
        let new = StoredCollection {
            id: self.store.ids().uuid()?,
            app_id: app.id,
            workspace_id: app.workspace_id,
            name: name.to_owned(),
            kind: kind.to_owned(),
            capabilities: capabilities.to_owned(),
            schema,
            created_at: self.store.now(),
        };
        self.create_collection(new).await
    }

    /// Applies a manifest's declaration to a collection in a locked app.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn change_collection(
        &mut self,
        id: Uuid,
        capabilities: &str,
        schema: Option<&str>,
    ) -> Result<(), StoreError> {
        diesel::update(app_collections::table.find(id))
            .set((app_collections::capabilities.eq(capabilities), app_collections::schema.eq(schema)))
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }
}
