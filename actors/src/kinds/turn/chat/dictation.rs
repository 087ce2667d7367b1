//! Dictation: what is said in a recording. The recording is not stored.

use std::sync::Arc;
use std::time::Duration;

use engine::NodeError;
use engine::ports::Credentials;
use models::{EndpointSettings, Model, ModelError, TranscribeRequest, Transcript, Usage};
use store::ChatUsageSum;
use uuid::Uuid;
use wire::TranscriptionSettings;

use super::Chat;
use crate::run::CredentialsOf;

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
        let (model, name) = self.transcriber(workspace, settings).await?;
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
            self.count((workflow, session), &settings.model, usage).await;
        }
        said
    }

    async fn count(&self, chat: (Uuid, &str), model: &str, usage: Usage) {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let used = ChatUsageSum {
            calls: 1,
            input_tokens: whole(usage.input_tokens),
            output_tokens: whole(usage.output_tokens),
            usd: models::cost(model, usage).unwrap_or_default(),
        };
        if let Err(error) = self.ports.store.add_chat_usage(chat, self.ports.writer, used).await {
            tracing::warn!(%error, "failed to count a transcription");
        }
    }

    async fn transcriber(
        &self,
        workspace: Uuid,
        settings: &TranscriptionSettings,
    ) -> Result<(Arc<dyn Model>, String), DictationError> {
        let models = &self.ports.models;
        if settings.credential.is_none() && settings.base_url.is_none() {
            let (model, name) = models.find(&settings.model)?;
            return Ok((Arc::clone(model), name.to_owned()));
        }
        let mut endpoint =
            EndpointSettings { base_url: settings.base_url.clone(), ..EndpointSettings::default() };
        if let Some(credential) = &settings.credential {
            let vault = CredentialsOf {
                workspace,
                store: &self.ports.store,
                reads: self.ports.reads.of(workspace),
                ring: self.ports.vault.as_ref(),
            };
            let secrets = vault.resolve(std::slice::from_ref(credential)).await;
            endpoint.api_key = secrets.map_err(DictationError::Credential)?.pop();
        }
        let (model, name) = models.find_at(&settings.model, endpoint)?;
        Ok((model, name.to_owned()))
    }
}
