//! Requests and results of transcription models.

use std::fmt;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize, Serializer};

use super::{PRACTICE, Usage};

/// A recording to transcribe.
///
/// Its serialised form, which a tape stores, contains the audio's digest instead of the audio.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct TranscribeRequest {
    /// The model's name without the provider prefix.
    pub model: String,
    /// The recording.
    #[serde(rename = "audio_sha256", serialize_with = "as_digest")]
    pub audio: Arc<[u8]>,
    /// The media type without parameters, for example `audio/webm`.
    pub mime_type: String,
    /// The spoken language, as an ISO 639-1 code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Words and names that may occur in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

impl fmt::Debug for TranscribeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TranscribeRequest")
            .field("model", &self.model)
            .field("bytes", &self.audio.len())
            .field("mime_type", &self.mime_type)
            .field("language", &self.language)
            .field("prompt", &self.prompt)
            .finish()
    }
}

fn as_digest<S: Serializer>(audio: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex::encode(digest(&SHA256, audio)))
}

/// The transcript of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// The words, trimmed; empty if nothing is said.
    pub text: String,
    /// Token counts; `None` if the endpoint does not report them.
    pub usage: Option<Usage>,
}

/// Whether the provider of `<provider>/<model>` supports transcription: `openai/*`, `gemini/*` and
/// `practice/transcribe`. Only a call shows whether the endpoint has the model.
#[must_use]
pub fn can_transcribe(name: &str) -> bool {
    match name.split_once('/') {
        Some(("openai" | "gemini", model)) => !model.is_empty(),
        Some((PRACTICE, model)) => model == "transcribe",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_providers_transcribe() {
        for (name, can) in [
            ("openai/whisper-1", true),
            ("gemini/gemini-2.5-flash", true),
            ("practice/transcribe", true),
            ("practice/assistant", false),
            ("anthropic/claude-sonnet-4-5", false),
            ("openai/", false),
            ("openai", false),
            ("mistral/x", false),
        ] {
            assert_eq!(can_transcribe(name), can, "{name}");
        }
    }

    #[test]
    fn the_audio_is_neither_written_nor_shown() {
        let request = TranscribeRequest {
            model: "m".into(),
            audio: Arc::from(*b"abc"),
            mime_type: "audio/webm".into(),
            language: None,
            prompt: None,
        };
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            serde_json::to_value(&request).unwrap(),
            serde_json::json!({"model": "m", "audio_sha256": digest, "mime_type": "audio/webm"})
        );
        assert!(format!("{request:?}").contains("bytes: 3"));
    }
}
