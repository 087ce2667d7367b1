//! Dictation: what is said in a recording. The recording is not stored.

use std::sync::Arc;
use std::time::Duration;

use engine::NodeError;
use models::{ModelError, TranscribeRequest, Transcript, Usage};
use uuid::Uuid;
use wire::TranscriptionSettings;

use super::Chat;
use super::endpoint::EndpointError;

/// How long a model may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Bytes of a recording that count as a token: about ten tokens a second.
const BYTES_OF_TOKEN: usize = 400;

/// Why a recording was not transcribed.
#[derive(Debug, thiserror::Error)]
pub enum DictationError {
    /// The key of the endpoint cannot be read.
    #[error("the key of the transcription model cannot be read: {}", .0.message)]
    Credential(NodeError),
    /// The model refused it, or could not be reached.
    #[error("the transcription model failed: {0}")]
    Model(#[from] ModelError),
    /// The model did not answer in time.
    #[error("the transcription model did not answer within {} s", LIMIT.as_secs())]
    Timeout,
}

impl Chat {
    /// Returns what is said in a recording of this media type; `session` pays for it.
    ///
    /// # Errors
    /// [`DictationError`].
    pub async fn transcribe(
        &self,
        (workspace, workflow, session): (Uuid, Uuid, &str),
        settings: &TranscriptionSettings,
        audio: Arc<[u8]>,
        mime_type: &str,
    ) -> Result<String, DictationError> {
        let (model, name) = self.model(workspace, &settings.binding).await.map_err(|error| match error {
            EndpointError::Credential(error) => DictationError::Credential(error),
            EndpointError::Model(error) => DictationError::Model(error),
        })?;
        let bytes = audio.len();
        let request = TranscribeRequest {
            model: name,
            audio,
            mime_type: mime_type.to_owned(),
            language: settings.language.clone(),
            prompt: settings.prompt.clone(),
        };
        let asking = model.transcribe(&request);
        let answered = kernel::timeout(&*self.ports.clock, LIMIT, asking).await;
        let tokens = |bytes: usize, size: usize| u64::try_from(bytes / size).unwrap_or(u64::MAX);
        // What a call counts as that is given up; some endpoints report no tokens of audio either.
        let heard = Usage { input_tokens: tokens(bytes, BYTES_OF_TOKEN), ..Usage::default() };
        let (usage, said) = match answered {
            None => (Some(heard), Err(DictationError::Timeout)),
            Some(Err(error)) => (None, Err(error.into())),
            Some(Ok(Transcript { text, usage })) => {
                let estimated = Usage { output_tokens: tokens(text.len(), 4), ..heard };
                (Some(usage.unwrap_or(estimated)), Ok(text))
            }
        };
        if let Some(usage) = usage {
            self.count((workflow, session), &settings.binding.model, usage).await;
        }
        said
    }
}
