//! What the service decides: the rules of a change, what ends or begins with it, and its rows of the audit trail.
//!
//! A function takes the transaction of the change and who makes it ([`Requester`]), and returns what was made or why it is refused
//! ([`Refusal`]). It knows neither HTTP nor SQL.

pub mod app_sign_in;
pub mod apps;
pub mod handle;
pub mod members;
mod refusal;
mod rights;
pub mod rollouts;
pub mod sign_in;
pub mod slug;
pub mod tokens;
pub mod triggers;
pub mod uploads;
pub mod vault;
pub mod versions;
pub mod visitors;
pub mod workflows;
pub mod workspaces;

use std::net::IpAddr;

use auth::principal::{Place, Principal};
use store::{AuditEntry, AuditTarget, Outcome, StoredWorkspace};
use uuid::Uuid;
use wire::AuditAction;

pub use refusal::{Decision, Refusal};

/// Who makes a change.
#[derive(Clone, Copy)]
pub struct Requester<'a> {
    /// The caller.
    pub principal: &'a Principal,
    /// The client's address.
    pub address: IpAddr,
    /// The id of the request, if there is one.
    pub request_id: Option<&'a str>,
}

impl Requester<'_> {
    /// A row of the audit trail for something that the caller does.
    #[must_use]
    pub fn audit(
        &self,
        action: AuditAction,
        target: AuditTarget,
        workspace: Option<Uuid>,
        reason: Option<String>,
    ) -> AuditEntry {
        AuditEntry {
            actor: self.principal.actor().clone(),
            action,
            target: Some(target),
            workspace,
            outcome: Outcome::Success,
            reason,
            address: Some(self.address.to_string()),
            request_id: self.request_id.map(str::to_owned),
        }
    }
}

/// A workspace as rights name it.
#[must_use]
pub fn place(workspace: &StoredWorkspace) -> Place<'_> {
    Place { id: workspace.id, slug: &workspace.slug }
}
