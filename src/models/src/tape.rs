//! Records model calls to a file and replays them, for development.
//!
//! One JSON line per call: provider, request, its digest, and the result. Keys are not part of a request, so the file
//! contains none.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    EmbedRequest, Embeddings, Model, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, Models, PRACTICE,
    Pieces, TranscribeRequest, Transcript,
};

/// Wraps a provider.
pub(super) type Wrap = Arc<dyn Fn(&'static str, Arc<dyn Model>) -> Arc<dyn Model> + Send + Sync>;

/// A line in the file.
#[derive(Serialize, Deserialize)]
struct Line {
    provider: String,
    /// SHA-256 of the canonical provider and request; lowercase hexadecimal.
    digest: String,
    request: Value,
    came: RecordedResult,
}

/// The result of a call.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedResult {
    Answer { pieces: Vec<String>, answer: ModelAnswer },
    Embeddings(Embeddings),
    Transcript(Transcript),
    Error { kind: ModelErrorKind, message: String, retry_after_seconds: Option<f64> },
}

impl From<&ModelError> for RecordedResult {
    fn from(error: &ModelError) -> Self {
        let retry_after_seconds = error.retry_after.map(|wait| wait.as_secs_f64());
        Self::Error { kind: error.kind, message: error.message.clone(), retry_after_seconds }
    }
}

impl RecordedResult {
    fn failed<T>(self) -> Result<T, ModelError> {
        match self {
            Self::Error { kind, message, retry_after_seconds } => {
                let retry_after = retry_after_seconds.and_then(|wait| Duration::try_from_secs_f64(wait).ok());
                Err(ModelError { kind, message, retry_after })
            }
            _ => Err(not_configured("the recorded answer has another type".to_owned())),
        }
    }
}

impl Models {
    /// Appends every call and its result to a file, except for `practice`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn recorded(self, path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(|why| at(path, &why))?;
        let file = Arc::new(Mutex::new(file));
        Ok(self.wrapped(Arc::new(move |provider, inner| {
            Arc::new(Recorder { provider, inner, file: Arc::clone(&file) })
        })))
    }

    /// Answers calls from a file, except for `practice`.
    ///
    /// # Errors
    /// If the file cannot be read or is not a recording.
    pub fn replayed(self, path: &Path) -> io::Result<Self> {
        let file = File::open(path).map_err(|why| at(path, &why))?;
        let mut kept: HashMap<String, RepeatedResults> = HashMap::new();
        for (number, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(|why| at(path, &why))?;
            let read: Result<Line, _> = serde_json::from_str(&line);
            let line = read.map_err(|why| {
                at(path, &io::Error::other(format!("line {}: {why}", number.saturating_add(1))))
            })?;
            kept.entry(line.digest).or_default().came.push(line.came);
        }
        let kept = Arc::new(Mutex::new(kept));
        Ok(self.wrapped(Arc::new(move |provider, _| Arc::new(Replay { provider, kept: Arc::clone(&kept) }))))
    }

    /// Wraps all providers except `practice`, including endpoints that graphs name.
    fn wrapped(mut self, wrap: Wrap) -> Self {
        for (provider, model) in self.providers.iter_mut().filter(|(provider, _)| **provider != PRACTICE) {
            *model = wrap(provider, Arc::clone(model));
        }
        self.tape = Some(wrap);
        self
    }
}

fn at(path: &Path, why: &io::Error) -> io::Error {
    io::Error::new(why.kind(), format!("the file of recorded model calls, {}: {why}", path.display()))
}

fn not_configured(message: String) -> ModelError {
    ModelError { kind: ModelErrorKind::NotConfigured, message, retry_after: None }
}

/// A request as recorded, and its digest.
struct DigestedRequest {
    request: Value,
    digest: String,
}

/// Returns the request and its digest.
///
/// A message's `parts` are not serialised, so a tape contains no file bytes. Its `files` are serialised in order, each
/// with a content digest: the same files give the same digest, and other files give another.
fn digested(provider: &str, kind: &str, request: &impl Serialize) -> DigestedRequest {
    let request = json!({kind: request});
    let whole = json!({"provider": provider, "request": request});
    let canonical = serde_json_canonicalizer::to_vec(&whole).unwrap_or_default();
    DigestedRequest { request, digest: hex::encode(digest(&SHA256, &canonical)) }
}

/// Forwards calls and records their results.
struct Recorder {
    provider: &'static str,
    inner: Arc<dyn Model>,
    file: Arc<Mutex<File>>,
}

impl Recorder {
    fn write(&self, call: DigestedRequest, came: RecordedResult) -> Result<(), ModelError> {
        let DigestedRequest { request, digest } = call;
        let line = Line { provider: self.provider.to_owned(), digest, request, came };
        let line = serde_json::to_string(&line).map_err(io::Error::other);
        let written = line.and_then(|line| self.file.lock().write_all(format!("{line}\n").as_bytes()));
        written.map_err(|why| not_configured(format!("the answer could not be recorded: {why}")))
    }
}

/// Forwards pieces and keeps a copy.
struct Copied<'a> {
    to: &'a dyn Pieces,
    kept: Mutex<Vec<String>>,
}

#[async_trait]
impl Pieces for Copied<'_> {
    async fn piece(&self, text: &str) {
        self.kept.lock().push(text.to_owned());
        self.to.piece(text).await;
    }
}

#[async_trait]
impl Model for Recorder {
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        let copied = Copied { to: pieces, kept: Mutex::default() };
        let answer = self.inner.call(request, &copied).await;
        let came = match &answer {
            Ok(answer) => RecordedResult::Answer { pieces: copied.kept.into_inner(), answer: answer.clone() },
            Err(error) => error.into(),
        };
        self.write(digested(self.provider, "call", request), came)?;
        answer
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, ModelError> {
        let embeddings = self.inner.embed(request).await;
        let came = embeddings
            .as_ref()
            .map_or_else(RecordedResult::from, |found| RecordedResult::Embeddings(found.clone()));
        self.write(digested(self.provider, "embed", request), came)?;
        embeddings
    }

    async fn transcribe(&self, request: &TranscribeRequest) -> Result<Transcript, ModelError> {
        let transcript = self.inner.transcribe(request).await;
        let came = transcript
            .as_ref()
            .map_or_else(RecordedResult::from, |found| RecordedResult::Transcript(found.clone()));
        self.write(digested(self.provider, "transcribe", request), came)?;
        transcript
    }
}

/// The results of repeated identical calls.
#[derive(Default)]
struct RepeatedResults {
    came: Vec<RecordedResult>,
    told: usize,
}

/// Answers from a recording.
struct Replay {
    provider: &'static str,
    kept: Arc<Mutex<HashMap<String, RepeatedResults>>>,
}

impl Replay {
    /// Returns the results in recorded order and repeats the last one.
    fn find(&self, model: &str, digest: &str) -> Result<RecordedResult, ModelError> {
        let mut kept = self.kept.lock();
        let found = kept.get_mut(digest).and_then(|kept| {
            let came = kept.came.get(kept.told).or(kept.came.last())?.clone();
            kept.told = kept.told.saturating_add(1);
            Some(came)
        });
        found.ok_or_else(|| {
            let short = digest.get(..12).unwrap_or(digest);
            not_configured(format!(
                "no recorded answer to this request to {}/{model} (digest {short}…); record it with \
                 SERVICE_MODEL_RECORD",
                self.provider
            ))
        })
    }
}

#[async_trait]
impl Model for Replay {
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        match self.find(&request.model, &digested(self.provider, "call", request).digest)? {
            RecordedResult::Answer { pieces: kept, answer } => {
                for piece in &kept {
                    pieces.piece(piece).await;
                }
                Ok(answer)
            }
            other => other.failed(),
        }
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, ModelError> {
        match self.find(&request.model, &digested(self.provider, "embed", request).digest)? {
            RecordedResult::Embeddings(found) => Ok(found),
            other => other.failed(),
        }
    }

    async fn transcribe(&self, request: &TranscribeRequest) -> Result<Transcript, ModelError> {
        match self.find(&request.model, &digested(self.provider, "transcribe", request).digest)? {
            RecordedResult::Transcript(found) => Ok(found),
            other => other.failed(),
        }
    }
}
