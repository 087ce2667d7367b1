//! What goes over the pipes: a length of four bytes, then JSON.

use std::io::{self, Read, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::call::{Entry, Language, Modules, Source, Surveyed, SyntaxProblem};
use crate::document::{DocumentKind, DocumentLimits, DocumentProblem, DocumentText};
use crate::feed::Feed;
use crate::image::{ImageFacts, ImageKind, ImageLimits};

/// Bytes of the longest request: a value of the engine, and modules.
pub(crate) const LONGEST_REQUEST: usize = 24 << 20;
/// What a worker says when it is ready.
pub(crate) const READY: &[u8] = b"callboard sandbox 1";

/// What a worker is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) task: Task,
    pub(crate) modules: Arc<Modules>,
    /// Bytes that it may use.
    pub(crate) memory: usize,
    /// Bytes of the result.
    pub(crate) output: usize,
    /// Bytes of what is printed.
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
        /// Its address, which its links are relative to.
        from: String,
        limits: DocumentLimits,
    },
    Image {
        kind: ImageKind,
        /// Base64.
        data: String,
        limits: ImageLimits,
    },
    /// Sends it back: what a call costs without any code.
    Echo {
        args: Box<RawValue>,
    },
}

/// What a worker answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Response {
    pub(crate) answer: Answer,
    /// It does not want another request, because it has grown.
    pub(crate) spent: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
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

impl Answer {
    /// A failure without a place.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), module: None, line: None, column: None }
    }
}

/// Bytes of the longest answer that a worker may give to a request. A byte that is printed takes at most six.
pub(crate) fn longest_answer(output: usize, logs: usize) -> usize {
    output.saturating_add(logs.saturating_mul(6)).saturating_add(64 << 10)
}

/// The frame of these bytes.
pub(crate) fn framed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(bytes.len() + 4);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(bytes);
    Ok(frame)
}

/// Reads a frame of at most `longest` bytes; `None` when there is no other.
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
