//! The service's decisions: the rules for a change, its consequences, and its audit entries.
//!
//! A function takes the change's transaction and the caller ([`Requester`]), and returns the result or a [`Refusal`].
//! It knows neither HTTP nor SQL.

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
use store::{AuditEntry, AuditOutcome, AuditTarget, StoredWorkspace};
use uuid::Uuid;
use wire::AuditAction;

pub use refusal::{Decision, Refusal};

/// The caller who makes a change.
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
    /// An audit entry for an action of the caller.
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
            outcome: AuditOutcome::Success,
            reason,
            address: Some(self.address.to_string()),
            request_id: self.request_id.map(str::to_owned),
        }
    }
}

/// The workspace reference for rights checks.
#[must_use]
pub fn place(workspace: &StoredWorkspace) -> Place<'_> {
    Place { id: workspace.id, slug: &workspace.slug }
}
