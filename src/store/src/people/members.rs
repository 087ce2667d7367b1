//! Members of workspaces, and those who are invited.
//!
//! A mail address identifies a member. A person who has signed in before is a member at once; for all others the row is
//! an invitation, which their first sign-in accepts. Changes to one workspace's members come one after the other, so
//! that the last owner stays.

use auth::principal::Actor;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::first_id_at;
use uuid::Uuid;
use wire::AuditAction;

use crate::schema::{audit_log, users, workspace_members, workspaces};
use crate::{Changes, Store, StoreError};

/// How long an invitation may be taken up.
const INVITATION_LIFE: TimeDelta = TimeDelta::days(7);
/// How long one that has ended is still shown.
const KEPT: TimeDelta = TimeDelta::days(30);
/// What the audit trail calls those that were mailed.
const MAILED: [&str; 2] = [AuditAction::MemberAdded.as_str(), AuditAction::MemberInvited.as_str()];

/// A member of a workspace, or an invitation.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = workspace_members, check_for_backend(diesel::pg::Pg))]
pub struct StoredMember {
    /// Who.
    pub user_id: Uuid,
    /// Their address; `None` once they were erased.
    #[diesel(select_expression = users::email)]
    pub email: Option<String>,
    /// What they are called, where they said so.
    #[diesel(select_expression = users::name)]
    pub name: Option<String>,
    /// `viewer`, `editor`, `admin` or `owner`.
    pub role: String,
    /// Since when.
    pub created_at: DateTime<Utc>,
    /// Until when the invitation may be taken up; `None`: it was, or none was needed.
    pub invited_until: Option<DateTime<Utc>>,
}

/// The state of an invitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvitationState {
    /// A member.
    Active,
    /// Has still to sign in.
    Invited,
    /// Has not signed in in time.
    Expired,
}

impl InvitationState {
    /// As it is sent.
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
    /// How far they have come by this instant.
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
    /// Where.
    pub workspace: Uuid,
    /// Who.
    pub email: &'a str,
    /// As what.
    pub role: &'a str,
}

/// A user who has become a member.
#[derive(Debug, Clone, PartialEq, Eq, Queryable)]
pub struct Joined {
    /// Where.
    pub workspace: Uuid,
    /// As what.
    pub role: String,
}

/// The result of adding a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// They are new.
    New,
    /// They were invited before, and may take that up for longer now.
    Again,
    /// They are a member with this role already.
    Known,
    /// They have another role, which stays.
    OtherRole,
}

/// The member that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedMember {
    /// What came of it.
    pub added: Added,
    /// As they are now.
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
    /// Keeps others from changing the members of a workspace until this is committed; `false`: it is not there.
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

    /// The same for workspaces by their ids or slugs; returns those that are there.
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

    /// Adds a member, or invites them. See [`Changes::lock_members`].
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

    /// The account of an address, made where there is none, and whether anybody has signed in to it.
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
        // Locked, as a first sign-in locks it: it takes up what is there, or this finds that it was.
        let found = users::table
            .filter(users::email.eq(email))
            .select((users::id, users::last_sign_in_at.is_not_null()))
            .for_no_key_update()
            .first(&mut *self.connection)
            .await?;
        Ok(found)
    }

    /// A member.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn member(&mut self, workspace: Uuid, user: Uuid) -> Result<Option<StoredMember>, StoreError> {
        find(&mut self.connection, workspace, user).await
    }

    /// Whether anybody else owns the workspace: an invitation to own it does not.
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

    /// Gives a member another role; `false` when there is none any more. See [`Changes::lock_members`].
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

    /// Takes a member, or an invitation, away; `false` when there is none any more. See [`Changes::lock_members`].
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

    /// How much mail to members was sent since then, by the audit trail, which cannot be shortened: the larger of the
    /// workspace's count and this actor's count.
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

    /// How much mail this account was sent since then because a caller added it to a workspace.
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

    /// The account takes up what it was invited to; what it was invited to too long ago goes.
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
    /// Deletes invitations not accepted in a month, and accounts that were only made for one; returns how many.
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

    /// The members of a workspace, in the order of their accounts.
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
            .filter(workspace_members::user_id.gt(after.unwrap_or(Uuid::nil())))
            .order(workspace_members::user_id)
            .limit(limit)
            .select(StoredMember::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        Ok(found)
    }
}
