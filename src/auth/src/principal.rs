//! Callers and their rights.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::role::Role;
use crate::scope::{Scope, ScopeSet};
use crate::service_token::TokenDigest;

/// An identity for the audit trail and authorship: only a kind and an id without meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// `anonymous`, `bootstrap`, `service_token`, `jwt` or `user`.
    pub kind: &'static str,
    /// Distinguishes callers of the same kind.
    pub id: Option<String>,
}

impl Actor {
    /// A caller without a credential.
    pub const ANONYMOUS: Self = Self { kind: "anonymous", id: None };

    /// A stored service token.
    #[must_use]
    pub fn service_token(id: Uuid) -> Self {
        Self { kind: "service_token", id: Some(id.to_string()) }
    }

    /// `kind`, or `kind:id`.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.id {
            Some(id) => format!("{}:{id}", self.kind),
            None => self.kind.to_owned(),
        }
    }
}

/// A caller's rights, by workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Grants {
    /// The scopes, in every workspace.
    Everywhere(ScopeSet),
    /// The scopes, in the workspaces with these ids or slugs.
    Within(ScopeSet, Vec<String>),
    /// The role in each workspace.
    Roles(BTreeMap<Uuid, Role>),
}

/// Reasons to deny a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// These scopes are missing.
    Scopes(ScopeSet),
    /// The workspace is closed to the caller.
    Workspace,
}

/// A workspace in which rights are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// Its id.
    pub id: Uuid,
    /// Its slug.
    pub slug: &'a str,
}

/// A caller whose credentials were verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    actor: Actor,
    grants: Grants,
    /// The presented secret of a service token.
    secret: Option<TokenDigest>,
}

impl Principal {
    /// Any caller of a service without authentication; has every right.
    #[must_use]
    pub fn open() -> Self {
        Self { actor: Actor::ANONYMOUS, grants: Grants::Everywhere(ScopeSet::all()), secret: None }
    }

    /// The holder of the bootstrap token.
    #[must_use]
    pub fn bootstrap(scopes: ScopeSet) -> Self {
        let actor = Actor { kind: "bootstrap", id: None };
        Self { actor, grants: Grants::Everywhere(scopes), secret: None }
    }

    /// The holder of this service token secret; empty `workspaces`: all of them.
    #[must_use]
    pub fn service_token(id: Uuid, secret: TokenDigest, scopes: ScopeSet, workspaces: Vec<String>) -> Self {
        let actor = Actor::service_token(id);
        let unrestricted = workspaces.is_empty();
        let grants =
            if unrestricted { Grants::Everywhere(scopes) } else { Grants::Within(scopes, workspaces) };
        Self { actor, grants, secret: Some(secret) }
    }

    /// The subject of another issuer's access token; `workspaces: None`: all of them.
    #[must_use]
    pub fn jwt(subject: &str, scopes: ScopeSet, workspaces: Option<Vec<String>>) -> Self {
        let grants = match workspaces {
            Some(workspaces) => Grants::Within(scopes, workspaces),
            None => Grants::Everywhere(scopes),
        };
        Self { actor: Actor { kind: "jwt", id: Some(subject.to_owned()) }, grants, secret: None }
    }

    /// A user who has signed in here.
    #[must_use]
    pub fn user(id: Uuid, roles: BTreeMap<Uuid, Role>) -> Self {
        let actor = Actor { kind: "user", id: Some(id.to_string()) };
        Self { actor, grants: Grants::Roles(roles), secret: None }
    }

    /// The caller's identity.
    #[must_use]
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// The service token secret that the caller used: a token may have several, with different holders.
    #[must_use]
    pub fn secret(&self) -> Option<&TokenDigest> {
        self.secret.as_ref()
    }

    /// Whether the caller was not authenticated.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.actor == Actor::ANONYMOUS
    }

    /// Whether the caller holds the scope in any workspace.
    ///
    /// # Errors
    /// [`Denied::Scopes`].
    pub fn may(&self, scope: Scope) -> Result<(), Denied> {
        let held = match &self.grants {
            Grants::Everywhere(scopes) | Grants::Within(scopes, _) => scopes.contains(scope),
            Grants::Roles(roles) => roles.values().any(|role| role.scopes().contains(scope)),
        };
        if held { Ok(()) } else { Err(Denied::Scopes([scope].into_iter().collect())) }
    }

    /// Whether the caller holds the scope in this workspace.
    ///
    /// # Errors
    /// [`Denied::Workspace`] if the caller holds no scope there, else [`Denied::Scopes`].
    pub fn may_in(&self, scope: Scope, place: Place<'_>) -> Result<(), Denied> {
        let missing = || Denied::Scopes([scope].into_iter().collect());
        match self.scopes_in(place) {
            None => Err(Denied::Workspace),
            Some(scopes) if scopes.contains(scope) => Ok(()),
            Some(_) => Err(missing()),
        }
    }

    /// The scopes in this workspace; `None` if it is closed to the caller.
    #[must_use]
    pub fn scopes_in(&self, place: Place<'_>) -> Option<ScopeSet> {
        match &self.grants {
            Grants::Everywhere(scopes) => Some(*scopes),
            Grants::Within(scopes, workspaces) => {
                let id = place.id.to_string();
                let named = |name: &String| name.eq_ignore_ascii_case(&id) || name == place.slug;
                workspaces.iter().any(named).then_some(*scopes)
            }
            Grants::Roles(roles) => roles.get(&place.id).map(|role| role.scopes()),
        }
    }

    /// Whether a holder of the scope may publish workflows of this workspace.
    #[must_use]
    pub fn may_publish_in(&self, workspace: Uuid) -> bool {
        match &self.grants {
            Grants::Roles(roles) => roles.get(&workspace).is_some_and(|role| role.may_publish()),
            Grants::Everywhere(_) | Grants::Within(..) => true,
        }
    }

    /// Whether the caller may grant a user this role in a workspace, or revoke it: callers grant only rights that they
    /// have.
    #[must_use]
    pub fn may_give(&self, role: Role, place: Place<'_>) -> bool {
        match &self.grants {
            Grants::Everywhere(scopes) => scopes.missing(role.scopes()).is_empty(),
            // An admin created this caller, and an admin cannot make a user an owner.
            Grants::Within(..) => {
                let held = self.scopes_in(place).unwrap_or_default();
                role < Role::Owner && held.missing(role.scopes()).is_empty()
            }
            Grants::Roles(roles) => roles.get(&place.id).is_some_and(|own| *own >= role),
        }
    }

    /// Whether a holder of the scope may create workspaces: not if restricted to some workspaces.
    #[must_use]
    pub fn may_make_workspaces(&self) -> bool {
        !matches!(self.grants, Grants::Within(..))
    }

    /// Whether a holder of the scope may delete a workspace.
    #[must_use]
    pub fn may_delete_workspace(&self, workspace: Uuid) -> bool {
        match &self.grants {
            Grants::Everywhere(scopes) => scopes.missing(Role::Owner.scopes()).is_empty(),
            Grants::Within(..) => false,
            Grants::Roles(roles) => roles.get(&workspace).is_some_and(|role| *role == Role::Owner),
        }
    }

    /// A user's role in a workspace; `None` if the caller is not a user or not a member.
    #[must_use]
    pub fn role_in(&self, workspace: Uuid) -> Option<Role> {
        match &self.grants {
            Grants::Roles(roles) => roles.get(&workspace).copied(),
            Grants::Everywhere(_) | Grants::Within(..) => None,
        }
    }

    /// Scopes that the caller may grant in at least one workspace.
    #[must_use]
    pub fn scopes(&self) -> ScopeSet {
        match &self.grants {
            Grants::Everywhere(scopes) | Grants::Within(scopes, _) => *scopes,
            Grants::Roles(roles) => roles.values().fold(ScopeSet::NONE, |all, role| all.union(role.scopes())),
        }
    }

    /// Ids or slugs of the workspaces to which the caller is restricted; `None`: all of them.
    #[must_use]
    pub fn workspaces(&self) -> Option<Vec<String>> {
        match &self.grants {
            Grants::Everywhere(_) => None,
            Grants::Within(_, workspaces) => Some(workspaces.clone()),
            Grants::Roles(roles) => Some(roles.keys().map(Uuid::to_string).collect()),
        }
    }

    /// The user id, if the caller is a user.
    #[must_use]
    pub fn user_id(&self) -> Option<Uuid> {
        let id = self.actor.id.as_deref().filter(|_| self.actor.kind == "user");
        id.and_then(|id| Uuid::parse_str(id).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place<'static> = Place { id: Uuid::from_u128(7), slug: "here" };
    const THERE: Place<'static> = Place { id: Uuid::from_u128(8), slug: "there" };

    fn read() -> ScopeSet {
        [Scope::WorkflowsRead].into_iter().collect()
    }

    #[test]
    fn a_token_is_valid_only_in_its_workspaces() {
        for name in [HERE.id.to_string(), HERE.id.to_string().to_uppercase(), "here".to_owned()] {
            let token = Principal::service_token(
                Uuid::nil(),
                TokenDigest::from_token(""),
                read(),
                vec!["gone".to_owned(), name],
            );
            assert_eq!(token.may_in(Scope::WorkflowsRead, HERE), Ok(()));
            assert_eq!(token.may_in(Scope::WorkflowsRead, THERE), Err(Denied::Workspace));
            let missing = [Scope::VaultRead].into_iter().collect();
            assert_eq!(token.may_in(Scope::VaultRead, HERE), Err(Denied::Scopes(missing)));
            assert_eq!(token.may(Scope::VaultRead), Err(Denied::Scopes(missing)));
        }
        let unrestricted =
            Principal::service_token(Uuid::nil(), TokenDigest::from_token(""), read(), Vec::new());
        assert_eq!(unrestricted.may_in(Scope::WorkflowsRead, THERE), Ok(()));
        assert_eq!(unrestricted.workspaces(), None);
    }

    #[test]
    fn an_empty_workspaces_claim_grants_no_workspace() {
        let none = Principal::jwt("somebody", ScopeSet::all(), Some(Vec::new()));
        assert_eq!(none.may_in(Scope::WorkflowsRead, HERE), Err(Denied::Workspace));
        let all = Principal::jwt("somebody", ScopeSet::all(), None);
        assert_eq!(all.may_in(Scope::WorkflowsRead, HERE), Ok(()));
    }

    #[test]
    fn a_user_acts_by_the_role_in_each_workspace() {
        let roles = BTreeMap::from([(HERE.id, Role::Editor), (THERE.id, Role::Viewer)]);
        let user = Principal::user(Uuid::from_u128(1), roles);
        assert_eq!(user.may(Scope::WorkflowsWrite), Ok(()), "somewhere");
        assert_eq!(user.may_in(Scope::WorkflowsWrite, HERE), Ok(()));
        assert!(matches!(user.may_in(Scope::WorkflowsWrite, THERE), Err(Denied::Scopes(_))));
        let elsewhere = Place { id: Uuid::from_u128(9), slug: "elsewhere" };
        assert_eq!(user.may_in(Scope::WorkflowsRead, elsewhere), Err(Denied::Workspace));
        assert!(!user.may_publish_in(HERE.id), "an editor does not publish");
        assert_eq!(user.user_id(), Some(Uuid::from_u128(1)));
        assert_eq!(user.actor().name(), "user:00000000-0000-0000-0000-000000000001");
    }

    #[test]
    fn users_cannot_grant_a_role_above_theirs() {
        let grantable = |principal: &Principal, place| Role::ALL.map(|role| principal.may_give(role, place));
        for (own, gives) in [
            (Role::Admin, [true, true, true, false]),
            (Role::Owner, [true; 4]),
            (Role::Editor, [true, true, false, false]),
        ] {
            let user = Principal::user(Uuid::from_u128(1), BTreeMap::from([(HERE.id, own)]));
            assert_eq!(grantable(&user, HERE), gives, "{own}");
            assert_eq!(grantable(&user, THERE), [false; 4], "{own} elsewhere");
            assert_eq!(user.may_delete_workspace(HERE.id), own == Role::Owner);
            assert!(user.may_make_workspaces() && !user.may_delete_workspace(THERE.id));
            assert_eq!((user.role_in(HERE.id), user.role_in(THERE.id)), (Some(own), None));
        }
        assert_eq!(grantable(&Principal::bootstrap(ScopeSet::all()), HERE), [true; 4]);
        let few: ScopeSet = Role::Viewer.scopes().union([Scope::WorkspacesWrite].into_iter().collect());
        assert_eq!(grantable(&Principal::bootstrap(few), HERE), [true, false, false, false]);
        assert!(!Principal::bootstrap(few).may_delete_workspace(HERE.id));
        let token = Principal::service_token(
            Uuid::nil(),
            TokenDigest::from_token(""),
            ScopeSet::all(),
            vec!["here".to_owned()],
        );
        assert_eq!(grantable(&token, HERE), [true, true, true, false]);
        assert_eq!(grantable(&token, THERE), [false; 4]);
        assert!(!token.may_make_workspaces() && !token.may_delete_workspace(HERE.id));
        assert!(Principal::open().may_delete_workspace(HERE.id));
    }

    #[test]
    fn only_an_open_principal_is_anonymous() {
        assert!(Principal::open().is_anonymous() && Principal::open().user_id().is_none());
        assert!(!Principal::bootstrap(ScopeSet::all()).is_anonymous());
        assert!(Principal::bootstrap(ScopeSet::all()).may_publish_in(HERE.id));
    }
}
