//! `POST <base>/audio/transcriptions`.

use serde::Deserialize;
use serde_json::Value;

use super::answer::usage;
use crate::transport::{Form, FormFile};
use crate::{ModelError, ModelErrorKind, TranscribeRequest, Transcript};

/// The accepted media types. The endpoint distinguishes them by file name.
const TYPES: [(&str, &str); 7] = [
    ("audio/webm", "audio.webm"),
    ("audio/mp4", "audio.mp4"),
    ("audio/x-m4a", "audio.m4a"),
    ("audio/ogg", "audio.ogg"),
    ("audio/mpeg", "audio.mp3"),
    ("audio/wav", "audio.wav"),
    ("audio/flac", "audio.flac"),
];

#[derive(Deserialize)]
struct Document {
    text: String,
    #[serde(default)]
    usage: Value,
}

/// Builds a request body.
///
/// # Errors
/// [`ModelErrorKind::Rejected`] if the endpoint does not accept the media type.
pub(super) fn write(request: &TranscribeRequest) -> Result<Form, ModelError> {
    let found = TYPES.into_iter().find(|(mime_type, _)| *mime_type == request.mime_type);
    let Some((mime_type, file_name)) = found else {
        let known = TYPES.map(|(mime_type, _)| mime_type).join(", ");
        let message = format!("'{}' cannot be transcribed; use one of {known}", request.mime_type);
        return Err(ModelError { kind: ModelErrorKind::Rejected, message, retry_after: None });
    };
    let mut fields = vec![("model", request.model.as_str()), ("response_format", "json")];
    for (name, value) in [("language", &request.language), ("prompt", &request.prompt)] {
        fields.extend(value.as_deref().filter(|value| !value.trim().is_empty()).map(|value| (name, value)));
    }
    Ok(Form::new(&fields, &FormFile { field: "file", file_name, mime_type, bytes: &request.audio }))
}

/// Reads the transcript.
pub(super) fn read(document: Value) -> Result<Transcript, String> {
    let document: Document =
        serde_json::from_value(document).map_err(|why| format!("the answer cannot be read: {why}"))?;
    Ok(Transcript { text: document.text.trim().to_owned(), usage: usage(&document.usage) })
}
