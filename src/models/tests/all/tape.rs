//! Recorded and replayed model calls.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::SystemClock;
use models::{
    EmbedRequest, Embeddings, FileKind, FileRef, Message, Model, ModelAnswer, ModelError, ModelErrorKind,
    ModelRequest, Models, NoPieces, Part, Pieces, Role, TranscribeRequest, Transcript, Usage,
};
use parking_lot::Mutex;
use practice::Practice;

use crate::endpoint::CollectedPieces;

/// Counts its calls; the third fails.
#[derive(Default)]
struct Counting(Mutex<u32>);

#[async_trait]
impl Model for Counting {
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        let number = {
            let mut number = self.0.lock();
            *number += 1;
            *number
        };
        if number == 3 {
            let (kind, message) = (ModelErrorKind::RateLimited, "not now".to_owned());
            return Err(ModelError { kind, message, retry_after: Some(Duration::from_millis(1500)) });
        }
        pieces.piece(&request.model).await;
        pieces.piece(" says ").await;
        let usage = Some(Usage { input_tokens: 2, output_tokens: 3, cached_tokens: 1 });
        Ok(ModelAnswer { text: format!("{} says {number}", request.model), usage, ..ModelAnswer::default() })
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, ModelError> {
        let vectors =
            request.texts.iter().map(|text| vec![f64::from(u32::try_from(text.len()).unwrap())]).collect();
        Ok(Embeddings { vectors, ..Embeddings::default() })
    }

    async fn transcribe(&self, request: &TranscribeRequest) -> Result<Transcript, ModelError> {
        Ok(Transcript { text: format!("{} bytes", request.audio.len()), usage: None })
    }
}

fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("callboard-{}-{name}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn providers() -> Models {
    let practice = Practice::new(Arc::new(SystemClock::new()));
    Models::default().with("openai", Arc::new(Counting::default())).with("practice", Arc::new(practice))
}

async fn say(
    models: &Models,
    name: &str,
    text: &str,
    key: &str,
) -> (Result<ModelAnswer, ModelError>, Vec<String>) {
    let (provider, model) = models.find(name).unwrap();
    let request = ModelRequest {
        model: model.to_owned(),
        messages: vec![Message::text(Role::User, text)],
        idempotency_key: Some(key.to_owned()),
        ..ModelRequest::default()
    };
    let pieces = CollectedPieces::default();
    (provider.call(&request, &pieces).await, pieces.0.into_inner())
}

#[tokio::test]
async fn recorded_calls_are_replayed_in_order_without_an_endpoint() {
    let path = file("again");
    let recording = providers().recorded(&path).unwrap();
    let embedding = EmbedRequest { model: "e".into(), texts: vec!["abc".into()], ..EmbedRequest::default() };
    let mut recorded = Vec::new();
    for text in ["hi", "hi", "fails", "bye"] {
        recorded.push(say(&recording, "openai/m", text, "run_1-a-1").await);
    }
    let vectors = recording.find("openai/e").unwrap().0.embed(&embedding).await.unwrap();
    say(&recording, "practice/rewrite", "own", "k").await.0.unwrap();
    let tape = std::fs::read_to_string(&path).unwrap();
    assert_eq!(tape.lines().count(), 5, "the practice model needs no tape");
    assert!(!tape.contains("run_1-a-1"), "the key of a call is not part of the request");

    let replaying = providers().replayed(&path).unwrap();
    for (at, text) in [(3, "bye"), (0, "hi"), (2, "fails"), (1, "hi"), (1, "hi")] {
        assert_eq!(say(&replaying, "openai/m", text, "another-key").await, recorded[at], "{text}");
    }
    assert_eq!(replaying.find("openai/e").unwrap().0.embed(&embedding).await, Ok(vectors));
    assert_eq!(say(&replaying, "practice/rewrite", "own", "k").await.0.unwrap().text, "own");

    let (error, _) = say(&replaying, "openai/other", "hi", "k").await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::NotConfigured);
    assert!(
        error.message.contains("openai/other") && error.message.contains("SERVICE_MODEL_RECORD"),
        "{error}"
    );
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn recordings_and_files_are_identified_by_their_digests() {
    let path = file("digests");
    let recording = |audio: &[u8]| TranscribeRequest {
        model: "w".into(),
        audio: audio.into(),
        mime_type: "audio/webm".into(),
        language: None,
        prompt: None,
    };
    let about = |digest: &str, part: &str| {
        let file = FileRef {
            kind: FileKind::File,
            attachment: "atc_1".into(),
            name: "a.txt".into(),
            mime_type: "text/plain".into(),
            size: 1,
            digest: digest.into(),
        };
        let parts = vec![Part::Text(part.to_owned())];
        let message = Message { files: vec![file], parts, ..Message::text(Role::User, "see") };
        ModelRequest { model: "m".into(), messages: vec![message], ..ModelRequest::default() }
    };
    let models = providers().recorded(&path).unwrap();
    let (model, _) = models.find("openai/w").unwrap();
    let transcript = model.transcribe(&recording(b"canary")).await.unwrap();
    let answer = model.call(&about("aa", "canary"), &NoPieces).await.unwrap();
    assert!(
        !std::fs::read_to_string(&path).unwrap().contains("canary"),
        "contents of files are not recorded"
    );

    let models = providers().replayed(&path).unwrap();
    let (model, _) = models.find("openai/w").unwrap();
    assert_eq!(model.transcribe(&recording(b"canary")).await, Ok(transcript));
    assert_eq!(model.call(&about("aa", "other"), &NoPieces).await, Ok(answer));
    let missing = [
        model.transcribe(&recording(b"another")).await.unwrap_err(),
        model.call(&about("bb", "canary"), &NoPieces).await.unwrap_err(),
    ];
    assert!(missing.iter().all(|error| error.kind == ModelErrorKind::NotConfigured), "{missing:?}");
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn an_invalid_tape_file_is_reported() {
    let path = file("none");
    let error = providers().replayed(&path).err().unwrap().to_string();
    assert!(error.contains(path.to_str().unwrap()), "{error}");
    std::fs::write(&path, "{}\n").unwrap();
    assert!(providers().replayed(&path).err().unwrap().to_string().contains("line 1"));
    std::fs::remove_file(&path).unwrap();
    assert!(providers().recorded(std::path::Path::new("/nowhere/at/all.jsonl")).is_err());
}
