//! Image previews, the only attachment bytes that are served.

use actix_web::body::SizedStream;
use actix_web::http::header;
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use auth::link::LinkUse;
use bytes::Bytes;
use futures_util::stream;
use kernel::AttachmentId;
use media::Media;
use wire::ErrorCode;

use crate::http::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Anyone;
use crate::http::query::Params;

/// Restricts browsers to showing an image; any page may embed it.
const HEADERS: [(&str, &str); 4] = [
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
    ("Content-Security-Policy", "default-src 'none'; sandbox"),
    ("Cache-Control", "private, max-age=86400"),
];

/// Serves the image, or a smaller version if it is large.
pub(in crate::http::chat) async fn preview(
    app: Anyone,
    request: HttpRequest,
    id: Path<String>,
) -> ApiResult<HttpResponse> {
    let not_found = || ApiError::new(ErrorCode::AttachmentNotFound);
    let id = signed(&app, &request, &id, LinkUse::Preview)?;
    let stored = app.uploads().named(id).await?.ok_or_else(not_found)?;
    if let Some(thread) = stored.thread {
        // A message may claim a file before its thread is stored.
        let is_there = app.store().is_thread_there(thread).await?.unwrap_or(!stored.contained);
        if !is_there {
            return Err(not_found());
        }
    }
    let own = Media::of_mime(&stored.mime_type).filter(|media| media.is_image()).ok_or_else(not_found)?;
    let (media, address) = match (stored.preview, stored.digest) {
        (Some(smaller), _) => (Media::Webp, smaller),
        (None, Some(digest)) => (own, digest),
        (None, None) => return Err(not_found()),
    };
    let reader = app.store().read_blob(address).await?.ok_or_else(not_found)?;
    let size = reader.size();
    let chunks = stream::unfold(Some(reader), async |reader| {
        let mut reader = reader?;
        match reader.next().await {
            Ok(Some(chunk)) => Some((Ok(Bytes::from(chunk)), Some(reader))),
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(%error, "failed to send a preview");
                Some((Err(error), None))
            }
        }
    });
    let mut response = HttpResponse::Ok();
    HEADERS.iter().for_each(|header| {
        response.insert_header(*header);
    });
    response.insert_header((header::CONTENT_TYPE, media.mime()));
    Ok(response.body(SizedStream::new(size, Box::pin(chunks))))
}

/// Returns the attachment id from a signed URL.
pub(super) fn signed(app: &App, request: &HttpRequest, id: &str, what: LinkUse) -> ApiResult<AttachmentId> {
    let mut params = Params::from_request(request);
    let (expires, signature) = (params.text("exp"), params.text("sig"));
    ApiError::refuse(params.finish())?;
    let invalid = || ApiError::new(ErrorCode::AttachmentLinkInvalid);
    let id = AttachmentId::parse(id).map_err(|_| invalid())?;
    let (expires, signature) = expires.zip(signature).ok_or_else(invalid)?;
    if app.links().verifies(id, what, &expires, &signature, app.clock().now()) {
        Ok(id)
    } else {
        Err(invalid())
    }
}
