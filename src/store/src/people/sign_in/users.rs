//! Users and their workspaces.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::{users, workspace_members, workspaces};
use crate::{Changes, DEFAULT_WORKSPACE, Joined, Store, StoreError};

/// A person with an account.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = users, check_for_backend(diesel::pg::Pg))]
pub struct StoredUser {
    /// Their id.
    pub id: Uuid,
    /// Their address; `None` after erasure.
    pub email: Option<String>,
    /// Their name, if given.
    pub name: Option<String>,
}

/// A user's role in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Queryable)]
pub struct Membership {
    /// The workspace.
    pub workspace_id: Uuid,
    /// Its slug.
    pub slug: String,
    /// `viewer`, `editor`, `admin` or `owner`.
    pub role: String,
}

impl Changes {
    /// Returns the account for an address that signs in now; created at the first sign-in, unless only members
    /// may sign in.
    ///
    /// `owner`: the first sign-in becomes owner of the workspace `default`. Also returns the gained
    /// memberships.
    pub(super) async fn user_signing_in(
        &mut self,
        email: &str,
        owner: bool,
        members_only: bool,
    ) -> Result<Option<(StoredUser, Vec<Joined>)>, StoreError> {
        let now = self.store.now();
        if members_only && !owner && !is_member(&mut self.connection, email, now).await? {
            return Ok(None);
        }
        diesel::insert_into(users::table)
            .values((
                users::id.eq(self.store.ids().uuid()?),
                users::email.eq(email),
                users::created_at.eq(now),
            ))
            .on_conflict(users::email)
            .do_nothing()
            .execute(&mut *self.connection)
            .await?;
        // Locked, so that only one of two concurrent first sign-ins counts as the first.
        let (user, earlier) = users::table
            .filter(users::email.eq(email))
            .select((StoredUser::as_select(), users::last_sign_in_at.is_not_null()))
            .for_update()
            .first::<(StoredUser, bool)>(&mut *self.connection)
            .await?;
        diesel::update(users::table.find(user.id))
            .set(users::last_sign_in_at.eq(now))
            .execute(&mut *self.connection)
            .await?;
        let mut joined = self.take_up_invitations(user.id).await?;
        if owner && !earlier {
            joined.push(self.make_owner(user.id).await?);
        }
        Ok(Some((user, joined)))
    }

    async fn make_owner(&mut self, user: Uuid) -> Result<Joined, StoreError> {
        let workspace: Uuid = workspaces::table
            .filter(workspaces::slug.eq(DEFAULT_WORKSPACE))
            .select(workspaces::id)
            .first(&mut *self.connection)
            .await?;
        diesel::insert_into(workspace_members::table)
            .values((
                workspace_members::workspace_id.eq(workspace),
                workspace_members::user_id.eq(user),
                workspace_members::role.eq("owner"),
                workspace_members::created_at.eq(self.store.now()),
            ))
            .on_conflict((workspace_members::workspace_id, workspace_members::user_id))
            .do_update()
            .set((
                workspace_members::role.eq("owner"),
                workspace_members::invited_until.eq(None::<DateTime<Utc>>),
            ))
            .execute(&mut *self.connection)
            .await?;
        Ok(Joined { workspace, role: "owner".to_owned() })
    }
}

async fn is_member(
    connection: &mut diesel_async::AsyncPgConnection,
    email: &str,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let in_time = workspace_members::invited_until.gt(now).assume_not_null();
    let member = users::table
        .inner_join(workspace_members::table.on(workspace_members::user_id.eq(users::id)))
        .inner_join(workspaces::table.on(workspaces::id.eq(workspace_members::workspace_id)))
        .filter(users::email.eq(email))
        .filter(workspaces::deleted_at.is_null())
        .filter(workspace_members::invited_until.is_null().or(in_time));
    Ok(diesel::select(diesel::dsl::exists(member)).get_result(connection).await?)
}

impl Store {
    /// Whether the address belongs to a workspace member, or is invited to a workspace.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn is_member(&self, email: &str) -> Result<bool, StoreError> {
        is_member(&mut *self.connection().await?, email, self.now()).await
    }

    /// Returns a user's workspaces, by slug.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn memberships(&self, user: Uuid) -> Result<Vec<Membership>, StoreError> {
        let found = workspace_members::table
            .inner_join(workspaces::table.on(workspaces::id.eq(workspace_members::workspace_id)))
            .filter(workspace_members::user_id.eq(user))
            .filter(workspaces::deleted_at.is_null())
            .select((workspaces::id, workspaces::slug, workspace_members::role))
            .order(workspaces::slug)
            .load(&mut *self.connection().await?)
            .await?;
        Ok(found)
    }
}
