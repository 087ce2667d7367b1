//! Workspaces and access to them: members, service tokens, sign-in, and the audit trail.

pub(crate) mod audit;
mod auth_failures;
mod members;
mod sign_in;
mod token_causes;
pub(crate) mod token_lookup;
pub(crate) mod tokens;
mod workspaces;

pub use audit::*;
pub use auth_failures::*;
pub use members::*;
pub use sign_in::*;
pub use token_causes::*;
pub use token_lookup::*;
pub use tokens::*;
pub use workspaces::*;
