//! User consents to reveal their identity to an app, and the check for apps that need a sign-in.

use diesel::sql_types::{Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::database::scalar::Scalar;
use crate::{Changes, Store, StoreError};

impl Changes {
    /// Whether a user is a workspace member: signed in, and neither invited nor erased.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn is_active_member(&mut self, workspace: Uuid, user: Uuid) -> Result<bool, StoreError> {
        let found: Scalar<bool> = diesel::sql_query(
            "SELECT EXISTS (SELECT FROM workspace_members m JOIN workspaces w ON w.id = m.workspace_id
                 JOIN users u ON u.id = m.user_id
                 WHERE m.workspace_id = $1 AND m.user_id = $2 AND m.invited_until IS NULL AND w.deleted_at IS NULL
                     AND u.email IS NOT NULL) AS yes",
        )
        .bind::<SqlUuid, _>(workspace)
        .bind::<SqlUuid, _>(user)
        .get_result(&mut *self.connection)
        .await?;
        Ok(found.0)
    }

    /// Whether a user has consented to sign in to an app.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn has_app_consent(&mut self, app: Uuid, user: Uuid) -> Result<bool, StoreError> {
        let found: Scalar<bool> = diesel::sql_query(
            "SELECT EXISTS (SELECT FROM app_consents WHERE app_id = $1 AND user_id = $2) AS yes",
        )
        .bind::<SqlUuid, _>(app)
        .bind::<SqlUuid, _>(user)
        .get_result(&mut *self.connection)
        .await?;
        Ok(found.0)
    }

    /// Stores a user's consent to sign in to an app. Returns `false` if it already exists.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn add_app_consent(&mut self, app: Uuid, user: Uuid) -> Result<bool, StoreError> {
        let now = self.store.now();
        let added = diesel::sql_query(
            "INSERT INTO app_consents (app_id, user_id, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        )
        .bind::<SqlUuid, _>(app)
        .bind::<SqlUuid, _>(user)
        .bind::<Timestamptz, _>(now)
        .execute(&mut *self.connection)
        .await?;
        Ok(added > 0)
    }
}

impl Store {
    /// Whether any published app is open only to members, or has bindings or collections only for them.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn needs_app_sign_in(&self) -> Result<bool, StoreError> {
        let found: Scalar<bool> = diesel::sql_query(
            "SELECT EXISTS (SELECT FROM apps a JOIN app_releases r ON r.id = a.active_release
                 WHERE a.deleted_at IS NULL AND (a.access = 'members'
                     OR EXISTS (SELECT FROM json_each(r.bindings::json) b WHERE b.value ->> 'access_mode' = 'authenticated')
                     OR EXISTS (SELECT FROM json_each(r.collections::json) c
                         WHERE coalesce(json_array_length(c.value -> 'capabilities' -> 'member'), 0) > 0))) AS yes",
        )
        .get_result(&mut *self.connection().await?)
        .await?;
        Ok(found.0)
    }
}
