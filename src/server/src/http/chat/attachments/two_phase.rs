//! Two-phase upload: announce the file in the chat, then send its bytes to a signed URL.

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use auth::link::LinkUse;
use kernel::AttachmentId;
use store::StoredAttachment;
use wire::ErrorCode;
use wire::chat::Attachment;

use super::super::access::ChatAccess;
use super::intake::{Intake, arriving};
use super::preview::signed;
use super::receive::{FilePart, Pace, check_encoding, declared, is_form, raw};
use super::records::Links;
use super::uploader::{self, network_of};
use crate::http::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Anyone;

/// Announces a file; responds with its upload URL.
pub(in crate::http::chat) async fn announce(
    app: &App,
    access: &ChatAccess,
    request: &HttpRequest,
    name: &str,
    mime_type: &str,
    size: u64,
) -> ApiResult<HttpResponse> {
    let uploader = uploader::of_chat(app, request, access)?;
    app.chat().check_room(uploader.workspace)?;
    let stored = app.uploads().announce(uploader, name, mime_type, size).await?;
    Ok(HttpResponse::Ok().json(Links::new(app, request).announced(&stored)))
}

/// Stores an announced file's bytes, sent raw or as the form part `file`.
pub(in crate::http::chat) async fn send(
    app: Anyone,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    Ok(HttpResponse::Ok().json(store(&app, &request, &id, payload).await?))
}

async fn store(app: &App, request: &HttpRequest, id: &str, body: Payload) -> ApiResult<Attachment> {
    app.chat_limits().check_address(app.client_address(request))?;
    let id = signed(app, request, id, LinkUse::Upload)?;
    check_encoding(request)?;
    let stored = app.uploads().named(id).await?;
    let stored = stored.ok_or_else(|| ApiError::new(ErrorCode::AttachmentNotFound))?;
    app.chat().check_room(stored.workspace)?;
    let is_form = is_form(request);
    if !is_form && declared(request).is_some_and(|declared| declared != stored.size) {
        return Err(ApiError::new(ErrorCode::AttachmentSizeMismatch));
    }
    let mut pace = Pace::new(&**app.clock());
    let body = arriving(body, &mut pace).await?;
    let network = network_of(app, request);
    let sender = uploader::sender(app, request, &stored.session);
    let mut intake = Intake::begin(app, sender, &stored.session, &network)?;
    let mut upload = app.uploads().begin_announced(stored, network)?;
    if is_form {
        let part = FilePart::find(request, body, &mut pace).await?;
        part.receive(&mut upload, &mut intake, &mut pace).await?;
    } else {
        raw(body, &mut upload, &mut intake, &mut pace).await?;
    }
    let stored = upload.finish().await?;
    Ok(Links::new(app, request).attachment(&stored))
}

/// Deletes an attachment that no message contains.
pub(in crate::http::chat) async fn delete(app: &App, access: &ChatAccess, id: &str) -> ApiResult<()> {
    let not_found = || ApiError::new(ErrorCode::AttachmentNotFound);
    let id = AttachmentId::parse(id).map_err(|_| not_found())?;
    let stored = app.uploads().named(id).await?.ok_or_else(not_found)?;
    access.owns_attachment(&stored)?;
    if !stored.contained && app.store().delete_attachment(id).await? {
        return Ok(());
    }
    let left: Option<StoredAttachment> = app.uploads().named(id).await?;
    Err(ApiError::new(if left.is_some() {
        ErrorCode::AttachmentInUse
    } else {
        ErrorCode::AttachmentNotFound
    }))
}
