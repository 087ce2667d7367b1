//! Rows of the audit trail about people who sign in and out.

use actix_web::HttpRequest;
use auth::principal::Actor;
use store::{AuditEntry, AuditTarget, Outcome};
use uuid::Uuid;

use crate::http::{App, request_id};

/// Something that a user does with a sign-in.
pub(super) fn entry(
    app: &App,
    request: &HttpRequest,
    action: &'static str,
    user: Uuid,
    session: Uuid,
) -> AuditEntry {
    AuditEntry {
        actor: Actor { kind: "user", id: Some(user.to_string()) },
        action,
        target: Some(AuditTarget { kind: "session", id: session.to_string() }),
        workspace: None,
        outcome: Outcome::Success,
        reason: None,
        address: Some(app.client_address(request).to_string()),
        request_id: request_id::current(),
    }
}
