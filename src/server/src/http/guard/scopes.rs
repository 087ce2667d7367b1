//! Scopes as types, so that a route names its required scope.

use auth::scope::Scope;

/// A scope that a route requires.
pub(in crate::http) trait RouteScope: 'static {
    /// The scope itself.
    const SCOPE: Scope;
    /// Further scopes that the route requires.
    const ALSO: &'static [Scope] = &[];
    /// Whether the route changes data.
    const WRITES: bool;
}

/// Declares scope types; each row is `Type: whether it writes;`.
macro_rules! route_scopes {
    ($($name:ident: $writes:literal;)*) => {
        $(
            #[doc = concat!("The scope of the same name, see `auth::scope::Scope::", stringify!($name), "`.")]
            pub(in crate::http) struct $name;

            impl RouteScope for $name {
                const SCOPE: Scope = Scope::$name;
                const WRITES: bool = $writes;
            }
        )*
    };
}

/// Required to remove a member. A caller who can see a workspace may leave it; removing another member requires more.
pub(in crate::http) struct MembersRemove;

impl RouteScope for MembersRemove {
    const SCOPE: Scope = Scope::WorkspacesRead;
    const WRITES: bool = true;
}

/// Required to issue a session token, which reads the workflow and starts its turns.
pub(in crate::http) struct WorkflowsReadExecute;

impl RouteScope for WorkflowsReadExecute {
    const SCOPE: Scope = Scope::WorkflowsExecute;
    const ALSO: &'static [Scope] = &[Scope::WorkflowsRead];
    const WRITES: bool = true;
}

route_scopes! {
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
