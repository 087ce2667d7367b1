//! Workspace member roles.

use std::fmt;

use crate::scope::{Scope, ScopeSet};

/// A member's role. Each role includes the rights of the preceding ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Also writes and executes workflows, and writes the vault.
    Editor,
    /// Also publishes, and manages apps, members and tokens.
    Admin,
    /// Also deletes the workspace.
    Owner,
}

impl Role {
    /// Every role, in ascending order.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Editor, Self::Admin, Self::Owner];

    /// The stored and sent name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }

    /// Parses a role name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// The scopes of a member with this role. Publishing also requires [`Role::may_publish`].
    #[must_use]
    pub fn scopes(self) -> ScopeSet {
        let own: &[Scope] = match self {
            Self::Viewer => &[Scope::WorkflowsRead, Scope::VaultRead, Scope::AppsRead, Scope::WorkspacesRead],
            Self::Editor => {
                &[Scope::WorkflowsWrite, Scope::WorkflowsExecute, Scope::VaultWrite, Scope::ChatSession]
            }
            Self::Admin => &[
                Scope::AppsWrite,
                Scope::AppsPublish,
                Scope::TokensRead,
                Scope::TokensWrite,
                Scope::WorkspacesWrite,
            ],
            Self::Owner => &[],
        };
        let lesser = Self::ALL.into_iter().rev().find(|role| *role < self);
        own.iter().copied().collect::<ScopeSet>().union(lesser.map_or(ScopeSet::NONE, Self::scopes))
    }

    /// Whether a member with this role may publish workflows.
    #[must_use]
    pub fn may_publish(self) -> bool {
        self >= Self::Admin
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_includes_the_scopes_of_lesser_roles() {
        for pair in Role::ALL.windows(2) {
            assert!(pair[1].scopes().missing(pair[0].scopes()).is_empty(), "{}", pair[1]);
        }
        let has = |role: Role, scope| role.scopes().contains(scope);
        assert!(has(Role::Viewer, Scope::WorkflowsRead) && !has(Role::Viewer, Scope::WorkflowsExecute));
        assert!(has(Role::Editor, Scope::VaultWrite) && !has(Role::Editor, Scope::TokensRead));
        assert!(has(Role::Admin, Scope::TokensWrite) && has(Role::Admin, Scope::AppsPublish));
        assert_eq!(Role::Owner.scopes(), ScopeSet::all());
        let publish = Role::ALL.map(Role::may_publish);
        assert_eq!(publish, [false, false, true, true]);
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert_eq!(Role::parse("root"), None);
    }
}
