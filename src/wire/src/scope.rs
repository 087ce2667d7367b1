//! Scopes, the rights of callers, and sets of scopes.

use std::fmt;

/// Declares the table; each row is `Variant, "text", "what it grants";`.
macro_rules! scopes {
    ($($variant:ident, $text:literal, $grants:literal;)*) => {
        /// A right that a credential carries. Source: `interface.md`, "Scopes".
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Scope {
            $(#[doc = $grants] $variant,)*
        }

        impl Scope {
            /// Every scope, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The text in tokens.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Its rights, in a few words.
            #[must_use]
            pub const fn grants(self) -> &'static str {
                match self { $(Self::$variant => $grants,)* }
            }

            const fn bit(self) -> u32 {
                let mut bit = 1;
                $(if matches!(self, Self::$variant) { return bit; } bit <<= 1;)*
                bit
            }
        }
    };
}

scopes! {
    WorkflowsRead, "workflows:read", "List and view workflows and their runs.";
    WorkflowsWrite, "workflows:write", "Create, change, publish and archive workflows.";
    WorkflowsExecute, "workflows:execute", "Start and stop runs.";
    VaultRead, "vault:read", "List the credentials of the vault.";
    VaultWrite, "vault:write", "Manage the credential vault.";
    TokensRead, "admin:tokens:read", "View service tokens and the audit trail.";
    TokensWrite, "admin:tokens:write", "Create, rotate and revoke service tokens.";
    WorkspacesRead, "admin:workspaces:read", "View workspaces and their members.";
    WorkspacesWrite, "admin:workspaces:write", "Manage workspaces and their members.";
    ChatSession, "chat:session", "Issue session tokens of the chat.";
    AppsRead, "apps:read", "View hosted apps.";
    AppsWrite, "apps:write", "Upload and change hosted apps.";
    AppsPublish, "apps:publish", "Publish hosted apps and roll them back.";
}

impl Scope {
    /// Parses a scope.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|scope| scope.as_str() == text)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A scope set.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopeSet(u32);

impl ScopeSet {
    /// No scope.
    pub const NONE: Self = Self(0);

    /// Every scope.
    #[must_use]
    pub fn all() -> Self {
        Scope::ALL.iter().copied().collect()
    }

    /// The known scopes among these texts; an unknown text grants nothing.
    #[must_use]
    pub fn of_texts<T: AsRef<str>>(texts: &[T]) -> Self {
        texts.iter().filter_map(|text| Scope::parse(text.as_ref())).collect()
    }

    /// Whether the set contains the scope.
    #[must_use]
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Those of `others` that this set lacks.
    #[must_use]
    pub const fn missing(self, others: Self) -> Self {
        Self(others.0 & !self.0)
    }

    /// The union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The scopes, in table order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.iter().copied().filter(move |scope| self.contains(*scope))
    }

    /// The texts, in table order.
    #[must_use]
    pub fn texts(self) -> Vec<String> {
        self.iter().map(|scope| scope.as_str().to_owned()).collect()
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl fmt::Debug for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Scope::as_str)).finish()
    }
}

impl fmt::Display for ScopeSet {
    /// A comma-separated list, as in `Missing required scopes: a, b`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.texts().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_is_found_by_its_text_and_has_a_unique_bit() {
        let mut seen = 0;
        for scope in Scope::ALL {
            assert_eq!(Scope::parse(scope.as_str()), Some(*scope));
            assert_eq!(seen & scope.bit(), 0, "{scope}");
            seen |= scope.bit();
        }
        for unknown in ["", "workflows", "Workflows:Read", "workflows:read ", "*", "admin:*"] {
            assert_eq!(Scope::parse(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn missing_scopes_are_listed_in_table_order() {
        let some = ScopeSet::of_texts(&["workflows:execute", "workflows:read", "no:such"]);
        assert_eq!(some.texts(), ["workflows:read", "workflows:execute"]);
        assert_eq!(
            some.missing(ScopeSet::of_texts(&["vault:write", "workflows:read", "vault:read"])).to_string(),
            "vault:read, vault:write"
        );
        assert!(ScopeSet::all().missing(ScopeSet::all()).is_empty());
        assert!(Scope::ALL.iter().all(|scope| ScopeSet::all().contains(*scope)));
        assert!(!ScopeSet::NONE.contains(Scope::WorkflowsRead));
    }
}
