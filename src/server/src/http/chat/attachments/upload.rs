//! Direct upload: a single request with the file.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};

use super::intake::{Intake, arriving};
use super::receive::{FilePart, Pace, check_encoding, declared};
use super::records::Links;
use super::uploader;
use crate::http::error::ApiResult;
use crate::http::guard::Anyone;

/// Maximum bytes of a form besides the file.
const AROUND: u64 = 128 << 10;

/// Stores the file from a form.
pub(in crate::http::chat) async fn upload(
    app: Anyone,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    check_encoding(&request)?;
    let uploader = uploader::judge(&app, &request).await?;
    app.chat().check_room(uploader.workspace)?;
    let mut pace = Pace::new(&**app.clock());
    let body = arriving(payload, &mut pace).await?;
    let sender = uploader::sender(&app, &request, &uploader.session);
    let mut intake = Intake::begin(&app, sender, &uploader.session, &uploader.network)?;
    let least = declared(&request).map(|bytes| bytes.saturating_sub(AROUND).max(1));
    let part = FilePart::find(&request, body, &mut pace).await?;
    let mut upload = app.uploads().begin(uploader, &part.name(), least).await?;
    part.receive(&mut upload, &mut intake, &mut pace).await?;
    let stored = upload.finish().await?;
    Ok(HttpResponse::Ok().json(Links::new(&app, &request).attachment(&stored)))
}
