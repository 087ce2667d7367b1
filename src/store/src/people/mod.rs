//! Workspaces and who may enter them: members, service tokens, sign-in, and the audit log.

pub(crate) mod audit;
mod auth_failures;
mod members;
mod sign_in;
mod token_causes;
pub(crate) mod token_lookup;
pub(crate) mod tokens;
mod workspaces;

pub use audit::{AuditEntry, AuditFilter, AuditTarget, Outcome, StoredAudit};
pub use auth_failures::FailureVerdict;
pub use members::{Added, AddedMember, InvitationState, Joined, NewMember, StoredMember};
pub use sign_in::{
    BrowserSession, LinkUse, Membership, NewIdentity, NewMail, NewOidcSignIn, NewSession, NewSignIn,
    OidcReturn, OpenedSession, OutgoingMail, Proven, Refreshed, Revoked, ShownCode, StoredSession,
    StoredUser,
};
pub use token_causes::{CauseSearch, Caused, CausedSecret};
pub use token_lookup::TokenLookup;
pub use tokens::{Cause, NewServiceToken, ServiceTokenStatus, StoredServiceToken};
pub use workspaces::{DEFAULT_WORKSPACE, NewWorkspace, StoredWorkspace};
