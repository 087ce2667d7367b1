//! `input.transcribe`: transcribes a recording.

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actors::kinds::turn::chat::DictationError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wire::chat::ChatAnswer;
use wire::{ErrorCode, FieldError};

use super::access::ChatAccess;
use super::attachments::{PER_PARTY, network_of};
use crate::http::App;
use crate::http::error::{ApiError, ApiResult};

/// Media types for recordings, without parameters.
const TYPES: [&str; 5] = ["audio/webm", "audio/mp4", "audio/ogg", "audio/mpeg", "audio/wav"];

/// Maximum concurrent transcriptions, for authenticated callers and for strangers separately.
const PER_STANDING: usize = 8;

/// Transcribes a base64 recording.
pub(super) async fn transcribe(
    app: &App,
    access: &ChatAccess,
    request: &HttpRequest,
    audio: &str,
    mime_type: &str,
) -> ApiResult<ChatAnswer> {
    let settings = access.transcription().ok_or_else(|| ApiError::new(ErrorCode::ChatTranscriptionOff))?;
    let base = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !TYPES.contains(&base.as_str()) {
        return Err(ApiError::new(ErrorCode::AttachmentTypeNotAllowed));
    }
    let audio = STANDARD.decode(audio).ok().filter(|audio| !audio.is_empty()).ok_or_else(|| {
        let problem = FieldError::new("/params/audio_base64", "format", "must be a recording in base64");
        ApiError::problems(ErrorCode::ChatInvalidRequest, vec![problem])
    })?;
    let session = access.budget_session(None);
    access.check_budget(app, session.as_deref()).await?;
    let standing = if access.is_stranger() { "strangers" } else { "known" };
    let permit = app.transcription_permits().acquire(vec![
        (standing.to_owned(), PER_STANDING),
        (format!("{standing}:{}", network_of(app, request)), PER_PARTY),
        (format!("{standing}:workspace:{}", access.workspace()), PER_PARTY),
    ])?;
    // The call keeps its permit and is still counted if the client disconnects.
    let (chat, settings) = (app.chat().clone(), settings.clone());
    let (workspace, workflow) = (access.workspace(), access.workflow());
    let transcribing = actix_web::rt::spawn(async move {
        let _permit = permit;
        let session = session.as_deref().unwrap_or_default();
        chat.transcribe(workspace, workflow, session, &settings, Arc::from(audio), &base).await
    });
    let said = transcribing.await.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    let text = said.map_err(|error| {
        let failed = ApiError::new(ErrorCode::ChatTranscriptionFailed);
        match error {
            DictationError::Timeout => failed.with_status(StatusCode::GATEWAY_TIMEOUT),
            _ => failed,
        }
        .with_cause(error)
    })?;
    Ok(ChatAnswer::Transcript { text })
}
