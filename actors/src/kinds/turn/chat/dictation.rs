//! Dictation: transcribes a recording. The recording is not stored.

use std::sync::Arc;
use std::time::Duration;

use engine::NodeError;
use engine::ports::Spending;
use models::{ModelError, TranscribeRequest, Transcript};
use uuid::Uuid;
use wire::TranscriptionSettings;

use super::Chat;
use super::endpoint::EndpointError;

/// Model timeout.
const LIMIT: Duration = Duration::from_secs(60);

/// Recording bytes per token, at about ten tokens a second.
const BYTES_OF_TOKEN: usize = 400;

/// The reason why a recording was not transcribed.
#[derive(Debug, thiserror::Error)]
pub enum DictationError {
    /// The endpoint's key cannot be read.
    #[error("the key of the transcription model cannot be read: {}", .0.message)]
    Credential(NodeError),
    /// The model refused the recording, or was unreachable.
    #[error("the transcription model failed: {0}")]
    Model(#[from] ModelError),
    /// The model did not answer in time.
    #[error("the transcription model did not answer within {} s", LIMIT.as_secs())]
    Timeout,
}

impl Chat {
    /// Transcribes a recording in this media type; `session` pays for it.
    ///
    /// # Errors
    /// [`DictationError`].
    pub async fn transcribe(
        &self,
        workspace: Uuid,
        workflow: Uuid,
        session: &str,
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
        let name = &settings.binding.model;
        // An abandoned call counts with its input; some endpoints report no audio tokens either.
        let input_tokens = u64::try_from(bytes / BYTES_OF_TOKEN).unwrap_or(u64::MAX);
        let abandoned = Spending::for_call(name, input_tokens, 0);
        let (used, transcript) = match answered {
            None => (abandoned, Err(DictationError::Timeout)),
            Some(Err(error)) => (Spending::default(), Err(error.into())),
            Some(Ok(Transcript { text, usage })) => {
                (Spending::used(name, usage, &abandoned, text.len()), Ok(text))
            }
        };
        self.count(workflow, session, &used).await;
        transcript
    }
}
