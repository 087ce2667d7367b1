//! Scopes as types, for a route to name the one it asks for.

use auth::scope::Scope;

/// A scope that a route asks for.
pub(in crate::http) trait Asked: 'static {
    /// Which one.
    const SCOPE: Scope;
    /// Further scopes that the route requires.
    const ALSO: &'static [Scope] = &[];
    /// Whether it lets the caller change something.
    const WRITES: bool;
}

/// Declares them; each row is `Type: whether it writes;`.
macro_rules! asked {
    ($($name:ident: $writes:literal;)*) => {
        $(
            #[doc = concat!("The scope of the same name, see `auth::scope::Scope::", stringify!($name), "`.")]
            pub(in crate::http) struct $name;

            impl Asked for $name {
                const SCOPE: Scope = Scope::$name;
                const WRITES: bool = $writes;
            }
        )*
    };
}

/// A caller who may see a workspace may leave it; removing another member requires more.
pub(in crate::http) struct MembersRemove;

impl Asked for MembersRemove {
    const SCOPE: Scope = Scope::WorkspacesRead;
    const WRITES: bool = true;
}

/// A session token reads the workflow and starts its turns.
pub(in crate::http) struct WorkflowsReadExecute;

impl Asked for WorkflowsReadExecute {
    const SCOPE: Scope = Scope::WorkflowsExecute;
    const ALSO: &'static [Scope] = &[Scope::WorkflowsRead];
    const WRITES: bool = true;
}

asked! {
    WorkflowsRead: false;
    WorkflowsWrite: true;
    WorkflowsExecute: true;
    ChatSession: true;
    TokensRead: false;
    TokensWrite: true;
    WorkspacesRead: false;
    WorkspacesWrite: true;
    VaultRead: false;
    VaultWrite: true;
    AppsRead: false;
    AppsWrite: true;
    AppsPublish: true;
}
