//! Transcription by an audio-capable model: it receives the recording and an instruction.

use std::fmt::Write as _;

use serde_json::Value;

use crate::encoded::{base64, object};
use crate::{ModelAnswer, TranscribeRequest, Transcript};

const INSTRUCTION: &str = "Transcribe this recording verbatim, in the language that is spoken. Answer with the \
                           transcript only: no comments, no translation, no time stamps, no names of speakers. \
                           If there is no speech in it, answer with an empty text.";

/// Builds a request body.
pub(super) fn write(request: &TranscribeRequest) -> Value {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let mut instruction = INSTRUCTION.to_owned();
    // Writing to a `String` cannot fail.
    if let Some(language) = given(&request.language) {
        let _ = write!(instruction, "\nThe language is: {language}");
    }
    if let Some(prompt) = given(&request.prompt) {
        let _ = write!(instruction, "\nThese words and names may occur: {prompt}");
    }
    // The endpoint's name for this type.
    let mime_type = if request.mime_type == "audio/mpeg" { "audio/mp3" } else { &request.mime_type };
    let data = [("mimeType", mime_type.into()), ("data", base64(&request.audio))];
    let parts = vec![object([("inlineData", object(data))]), object([("text", instruction.into())])];
    let turn = object([("role", "user".into()), ("parts", Value::Array(parts))]);
    object([("contents", Value::Array(vec![turn]))])
}

/// Reads the transcript from an answer that ended normally.
pub(super) fn read(answer: ModelAnswer) -> Result<Transcript, String> {
    match answer.finish_reason.as_deref() {
        None | Some("stop") => Ok(Transcript { text: answer.text.trim().to_owned(), usage: answer.usage }),
        Some(reason) => Err(format!("the transcript is incomplete ({reason})")),
    }
}
