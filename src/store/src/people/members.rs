//! Workspace members and invitations.
//!
//! A mail address identifies a member. A person who has signed in before becomes a member at once; for all
//! others the row is an invitation, which their first sign-in accepts. Changes to one workspace's members are
//! serialized, so that the last owner stays.

use auth::principal::Actor;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::first_id_at;
use uuid::Uuid;
use wire::AuditAction;

use crate::schema::{audit_log, users, workspace_members, workspaces};
use crate::{Changes, Store, StoreError};

/// Validity of an invitation.
const INVITATION_LIFE: TimeDelta = TimeDelta::days(7);
/// Retention of expired invitations.
const KEPT: TimeDelta = TimeDelta::days(30);
/// The audit actions that send mail to a member.
const MAILED: [&str; 2] = [AuditAction::MemberAdded.as_str(), AuditAction::MemberInvited.as_str()];

/// A member of a workspace, or an invitation.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = workspace_members, check_for_backend(diesel::pg::Pg))]
pub struct StoredMember {
    /// The user.
    pub user_id: Uuid,
    /// Their address; `None` after erasure.
    #[diesel(select_expression = users::email)]
    pub email: Option<String>,
    /// Their name, if given.
    #[diesel(select_expression = users::name)]
    pub name: Option<String>,
    /// `viewer`, `editor`, `admin` or `owner`.
    pub role: String,
    /// When they were added.
    pub created_at: DateTime<Utc>,
    /// Until when the invitation is valid; `None`: accepted, or not needed.
    pub invited_until: Option<DateTime<Utc>>,
}

/// The state of an invitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvitationState {
    /// A member.
    Active,
    /// Has not signed in yet.
    Invited,
    /// Has not signed in in time.
    Expired,
}

impl InvitationState {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Invited => "invited",
            Self::Expired => "expired",
        }
    }
}

impl StoredMember {
    /// The state at this instant.
    #[must_use]
    pub fn state(&self, now: DateTime<Utc>) -> InvitationState {
        match self.invited_until {
            None => InvitationState::Active,
            Some(until) if now < until => InvitationState::Invited,
            Some(_) => InvitationState::Expired,
        }
    }
}

/// A member to add.
#[derive(Debug, Clone, Copy)]
pub struct NewMember<'a> {
    /// The workspace.
    pub workspace: Uuid,
    /// The mail address.
    pub email: &'a str,
    /// The role.
    pub role: &'a str,
}

/// A membership that a user has gained.
#[derive(Debug, Clone, PartialEq, Eq, Queryable)]
pub struct Joined {
    /// The workspace.
    pub workspace: Uuid,
    /// The role.
    pub role: String,
}

/// The result of adding a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// A new member or invitation.
    New,
    /// Already invited; the invitation is extended.
    Again,
    /// Already a member with this role.
    Known,
    /// They have another role, which stays.
    OtherRole,
}

/// The result of adding a member, with the member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedMember {
    /// The result.
    pub added: Added,
    /// The member's current row.
    pub member: StoredMember,
}

async fn find(
    connection: &mut AsyncPgConnection,
    workspace: Uuid,
    user: Uuid,
) -> Result<Option<StoredMember>, StoreError> {
    let found = workspace_members::table
        .inner_join(users::table.on(users::id.eq(workspace_members::user_id)))
        .filter(workspace_members::workspace_id.eq(workspace))
        .filter(workspace_members::user_id.eq(user))
        .select(StoredMember::as_select())
        .first(connection)
        .await
        .optional()?;
    Ok(found)
}

impl Changes {
    /// Locks a workspace's members against other changes until the commit; `false`: the workspace is not found.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn lock_members(&mut self, workspace: Uuid) -> Result<bool, StoreError> {
        let found: Option<Uuid> = workspaces::table
            .find(workspace)
            .filter(workspaces::deleted_at.is_null())
            .select(workspaces::id)
            .for_no_key_update()
            .first(&mut *self.connection)
            .await
            .optional()?;
        Ok(found.is_some())
    }

    /// The same for workspaces by ids or slugs; returns those found.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn lock_members_of(&mut self, names: &[String]) -> Result<Vec<Uuid>, StoreError> {
        let ids: Vec<Uuid> = names.iter().filter_map(|name| Uuid::parse_str(name).ok()).collect();
        let slugs: Vec<&String> = names.iter().filter(|name| !name.contains('\0')).collect();
        let locked = workspaces::table
            .filter(workspaces::deleted_at.is_null())
            .filter(workspaces::id.eq_any(ids).or(workspaces::slug.eq_any(slugs)))
            .order(workspaces::id)
            .select(workspaces::id)
            .for_no_key_update()
            .load(&mut *self.connection)
            .await?;
        Ok(locked)
    }

    /// Adds or invites a member. See [`Changes::lock_members`].
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn add_member(&mut self, new: NewMember<'_>) -> Result<AddedMember, StoreError> {
        let now = self.store.now();
        let (user, has_signed_in) = self.account(new.email).await?;
        let earlier = find(&mut self.connection, new.workspace, user).await?;
        let added = match &earlier {
            None => Added::New,
            Some(earlier) => match earlier.state(now) {
                InvitationState::Expired => Added::New,
                _ if earlier.role != new.role => Added::OtherRole,
                InvitationState::Invited => Added::Again,
                InvitationState::Active => Added::Known,
            },
        };
        if matches!(added, Added::New | Added::Again) {
            let invited_until = (!has_signed_in).then_some(now + INVITATION_LIFE);
            let row = (
                workspace_members::role.eq(new.role),
                workspace_members::created_at.eq(now),
                workspace_members::invited_until.eq(invited_until),
            );
            diesel::insert_into(workspace_members::table)
                .values((
                    workspace_members::workspace_id.eq(new.workspace),
                    workspace_members::user_id.eq(user),
                    row,
                ))
                .on_conflict((workspace_members::workspace_id, workspace_members::user_id))
                .do_update()
                .set(row)
                .execute(&mut *self.connection)
                .await?;
        }
        let member = find(&mut self.connection, new.workspace, user).await?;
        let member = member.ok_or_else(|| StoreError::from(diesel::result::Error::NotFound))?;
        Ok(AddedMember { added, member })
    }

    /// Returns the account for an address, created if necessary, and whether it has ever signed in.
    async fn account(&mut self, email: &str) -> Result<(Uuid, bool), StoreError> {
        diesel::insert_into(users::table)
            .values((
                users::id.eq(self.store.ids().uuid()?),
                users::email.eq(email),
                users::created_at.eq(self.store.now()),
            ))
            .on_conflict(users::email)
            .do_nothing()
            .execute(&mut *self.connection)
            .await?;
        // A first sign-in takes the same lock: either it accepts this invitation, or this call sees the
        // sign-in.
        let found = users::table
            .filter(users::email.eq(email))
            .select((users::id, users::last_sign_in_at.is_not_null()))
            .for_no_key_update()
            .first(&mut *self.connection)
            .await?;
        Ok(found)
    }

    /// Returns a member.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn member(&mut self, workspace: Uuid, user: Uuid) -> Result<Option<StoredMember>, StoreError> {
        find(&mut self.connection, workspace, user).await
    }

    /// Whether the workspace has another owner; an invitation as owner does not count.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn has_owner_beside(&mut self, workspace: Uuid, user: Uuid) -> Result<bool, StoreError> {
        let others = workspace_members::table
            .filter(workspace_members::workspace_id.eq(workspace))
            .filter(workspace_members::user_id.ne(user))
            .filter(workspace_members::role.eq("owner"))
            .filter(workspace_members::invited_until.is_null());
        Ok(diesel::select(diesel::dsl::exists(others)).get_result(&mut *self.connection).await?)
    }

    /// Changes a member's role; `false` if the member is not found. See [`Changes::lock_members`].
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn change_role(&mut self, workspace: Uuid, user: Uuid, role: &str) -> Result<bool, StoreError> {
        let changed = diesel::update(workspace_members::table.find((workspace, user)))
            .set(workspace_members::role.eq(role))
            .execute(&mut *self.connection)
            .await?;
        Ok(changed > 0)
    }

    /// Removes a member or an invitation; `false` if it is not found. See [`Changes::lock_members`].
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn remove_member(&mut self, workspace: Uuid, user: Uuid) -> Result<bool, StoreError> {
        let removed = diesel::delete(workspace_members::table.find((workspace, user)))
            .execute(&mut *self.connection)
            .await?;
        self.end_app_sessions_of(workspace, user).await?;
        Ok(removed > 0)
    }

    /// Counts the mails sent to members since then, from the audit trail, which cannot be shortened: the larger
    /// of the workspace's count and this actor's count.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn invitations_since(
        &mut self,
        workspace: Uuid,
        actor: &Actor,
        at: DateTime<Utc>,
    ) -> Result<i64, StoreError> {
        let mailed = audit_log::id.ge(first_id_at(at)).and(audit_log::action.eq_any(MAILED));
        let by_workspace: i64 = audit_log::table
            .filter(mailed.clone())
            .filter(audit_log::workspace_id.eq(workspace))
            .count()
            .get_result(&mut *self.connection)
            .await?;
        let by_actor: i64 = audit_log::table
            .filter(mailed)
            .filter(audit_log::actor_kind.eq(actor.kind))
            .filter(audit_log::actor_id.is_not_distinct_from(actor.id.as_deref()))
            .count()
            .get_result(&mut *self.connection)
            .await?;
        Ok(by_workspace.max(by_actor))
    }

    /// Counts the mails that this account received since then because a caller added it to a workspace.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn invitations_of(&mut self, user: Uuid, at: DateTime<Utc>) -> Result<i64, StoreError> {
        let count = audit_log::table
            .filter(audit_log::id.ge(first_id_at(at)))
            .filter(audit_log::action.eq_any(MAILED))
            .filter(audit_log::target_id.eq(user.to_string()))
            .count()
            .get_result(&mut *self.connection)
            .await?;
        Ok(count)
    }

    /// Accepts the account's invitations and deletes its expired ones.
    pub(crate) async fn take_up_invitations(&mut self, user: Uuid) -> Result<Vec<Joined>, StoreError> {
        let now = self.store.now();
        diesel::delete(workspace_members::table)
            .filter(workspace_members::user_id.eq(user))
            .filter(workspace_members::invited_until.le(now).assume_not_null())
            .filter(workspace_members::invited_until.is_not_null())
            .execute(&mut *self.connection)
            .await?;
        diesel::update(workspace_members::table)
            .filter(workspace_members::user_id.eq(user))
            .filter(workspace_members::invited_until.is_not_null())
            .set(workspace_members::invited_until.eq(None::<DateTime<Utc>>))
            .returning((workspace_members::workspace_id, workspace_members::role))
            .get_results(&mut *self.connection)
            .await
            .map_err(StoreError::from)
    }
}

impl Store {
    /// Deletes invitations that were not accepted within a month, and accounts created only for one; returns
    /// their number.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_invitations(&self, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let mut connection = self.connection().await?;
        let long_ago = now - KEPT;
        let invitations = diesel::delete(workspace_members::table)
            .filter(workspace_members::invited_until.is_not_null())
            .filter(workspace_members::invited_until.lt(long_ago).assume_not_null())
            .execute(&mut *connection)
            .await?;
        let member = workspace_members::table.filter(workspace_members::user_id.eq(users::id));
        let accounts = diesel::delete(users::table)
            .filter(users::last_sign_in_at.is_null())
            .filter(users::created_at.lt(long_ago))
            .filter(diesel::dsl::not(diesel::dsl::exists(member)))
            .execute(&mut *connection)
            .await?;
        Ok(invitations + accounts)
    }

    /// Returns a workspace's members, ordered by user id.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn members(
        &self,
        workspace: Uuid,
        after: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<StoredMember>, StoreError> {
        let found = workspace_members::table
            .inner_join(users::table.on(users::id.eq(workspace_members::user_id)))
            .filter(workspace_members::workspace_id.eq(workspace))
            .filter(workspace_members::user_id.gt(after.unwrap_or_default()))
            .order(workspace_members::user_id)
            .limit(limit)
            .select(StoredMember::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        Ok(found)
    }
}
