//! Attachments that messages reference.

use std::collections::BTreeSet;

use actors::kinds::turn::chat::Attached;
use kernel::AttachmentId;
use store::StoredAttachment;
use wire::ErrorCode;
use wire::chat::{Attachment, AttachmentRef};

use super::super::access::ChatAccess;
use super::records::Links;
use crate::http::App;
use crate::http::error::{ApiError, ApiResult};

/// Returns a new message's attachments in order, without duplicates. Whether another thread already has one is checked
/// when the turn starts.
///
/// # Errors
/// If an attachment is unknown, belongs to another caller or workflow, or has no bytes; or if files are not accepted.
pub(in crate::http::chat) async fn of_message(
    app: &App,
    access: &ChatAccess,
    named: &[AttachmentRef],
    links: &Links<'_>,
) -> ApiResult<Vec<Attached>> {
    if named.is_empty() {
        return Ok(Vec::new());
    }
    if !access.uploads() {
        return Err(ApiError::new(ErrorCode::AttachmentUploadsOff));
    }
    let not_found = || ApiError::new(ErrorCode::AttachmentNotFound);
    let mut ids = Vec::with_capacity(named.len());
    let mut seen = BTreeSet::new();
    for one in named {
        let id = AttachmentId::parse(one.id()).map_err(|_| not_found())?;
        if seen.insert(id) {
            ids.push(id);
        }
    }
    let found = app.store().attachments_named(&ids).await?;
    let mut attached = Vec::with_capacity(ids.len());
    for id in ids {
        let stored = found.iter().find(|stored| stored.id == id).ok_or_else(not_found)?;
        access.owns_attachment(stored)?;
        if stored.digest.is_none() {
            return Err(ApiError::new(ErrorCode::AttachmentNotUploaded));
        }
        attached.push(with_preview(stored.clone(), links));
    }
    Ok(attached)
}

/// Returns the attachments of a message that is answered again.
pub(in crate::http::chat) async fn again(
    app: &App,
    attachments: &[Attachment],
    links: &Links<'_>,
) -> ApiResult<Vec<Attached>> {
    let ids: Vec<AttachmentId> =
        attachments.iter().filter_map(|one| AttachmentId::parse(&one.id).ok()).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let found = app.store().attachments_named(&ids).await?;
    let in_order = ids.iter().filter_map(|id| found.iter().find(|stored| stored.id == *id));
    Ok(in_order.map(|stored| with_preview(stored.clone(), links)).collect())
}

fn with_preview(stored: StoredAttachment, links: &Links<'_>) -> Attached {
    let preview_url = stored.is_image().then(|| links.preview(stored.id));
    Attached { stored, preview_url }
}
