//! The pipe protocol: a four-byte length, then JSON.

use std::io::{self, Read, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::call::{Entry, Language, Modules, Source, Surveyed, SyntaxProblem};
use crate::document::{DocumentKind, DocumentLimits, DocumentProblem, DocumentText};
use crate::feed::Feed;
use crate::image::{ImageFacts, ImageKind, ImageLimits};

/// Maximum request bytes: an engine value plus modules.
pub(crate) const LONGEST_REQUEST: usize = 24 << 20;
/// The frame that a worker sends when it is ready.
pub(crate) const READY: &[u8] = b"callboard sandbox 1";

/// A request to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkerRequest {
    pub(crate) task: Task,
    pub(crate) modules: Arc<Modules>,
    /// Maximum bytes of memory.
    pub(crate) memory: usize,
    /// Maximum bytes of the result.
    pub(crate) output: usize,
    /// Maximum bytes of printed output.
    pub(crate) logs: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Task {
    Call {
        language: Language,
        entry: Entry,
        args: Box<RawValue>,
    },
    Survey {
        language: Language,
        source: Source,
    },
    Document {
        kind: DocumentKind,
        /// Base64.
        data: String,
        limits: DocumentLimits,
    },
    Feed {
        /// Base64.
        data: String,
        /// The feed's address, the base of its relative links.
        from: String,
        limits: DocumentLimits,
    },
    Image {
        kind: ImageKind,
        /// Base64.
        data: String,
        limits: ImageLimits,
    },
    /// Returns the arguments; measures a call's overhead.
    Echo {
        args: Box<RawValue>,
    },
}

/// A worker's response.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Response {
    pub(crate) answer: WorkerAnswer,
    /// Whether the worker should be replaced: it has grown, or has handled enough requests.
    pub(crate) spent: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerAnswer {
    Value { value: Box<RawValue>, logs: String },
    Surveyed(Surveyed),
    Unsound(SyntaxProblem),
    Document(DocumentText),
    Feed(Feed),
    Image(ImageFacts),
    Unreadable(DocumentProblem),
    Failed { message: String, module: Option<String>, line: Option<u32>, column: Option<u32> },
    Memory,
    OutputTooLarge,
}

impl WorkerAnswer {
    /// Creates a failure without a location.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), module: None, line: None, column: None }
    }
}

/// Maximum response bytes for a request. JSON encodes a printed byte in at most six bytes.
pub(crate) fn longest_answer(output: usize, logs: usize) -> usize {
    output.saturating_add(logs.saturating_mul(6)).saturating_add(64 << 10)
}

/// Wraps bytes in a frame.
pub(crate) fn framed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(bytes.len() + 4);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(bytes);
    Ok(frame)
}

/// Reads a frame of at most `longest` bytes; `None` at the end of the input.
pub(crate) fn read(from: &mut impl Read, longest: usize) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
    if length > longest {
        return Err(io::Error::other("the frame is too long"));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

/// Writes a frame.
pub(crate) fn write(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&framed(bytes)?)?;
    to.flush()
}
