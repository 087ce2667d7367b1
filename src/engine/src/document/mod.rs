//! What a document says, whatever it is written in.

mod decode;
mod html;
mod kind;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernel::Clock as _;
use sandbox::{DocumentKind, DocumentLimits, DocumentProblem, DocumentText, Sandbox};
use wire::ErrorCode;

pub(crate) use kind::{Format, of};

use crate::NodeError;

/// Bytes of a document.
pub(crate) const MOST_BYTES: u64 = 10 * 1024 * 1024;
/// Its pages.
pub(crate) const MOST_PAGES: usize = 2_000;
/// Bytes of its text.
pub(crate) const MOST_TEXT: usize = 4 * 1024 * 1024;
/// How long reading it may take.
pub(crate) const TIME: Duration = Duration::from_secs(30);

/// Reads a document; `charset` is what its server says of it.
pub(crate) async fn read(
    bytes: Vec<u8>,
    format: Format,
    charset: Option<String>,
    sandbox: &Sandbox,
) -> Result<DocumentText, NodeError> {
    let kind = match format {
        Format::Pdf => DocumentKind::Pdf,
        Format::Docx => DocumentKind::Docx,
        Format::Html | Format::Text => {
            // A page of 10 MiB takes a while: away from the actors.
            let reading = tokio::task::spawn_blocking(move || plain(&bytes, format, charset.as_deref()));
            let panicked = |_| NodeError::new(ErrorCode::Internal, "reading the document panicked");
            return reading.await.map_err(panicked)?;
        }
    };
    let limits = DocumentLimits { time: TIME, pages: MOST_PAGES, text: MOST_TEXT };
    let data = tokio::task::spawn_blocking(move || STANDARD.encode(bytes)).await;
    let data = data.map_err(|_| NodeError::new(ErrorCode::Internal, "reading the document panicked"))?;
    sandbox.read_document(kind, data, limits).await.map_err(unread)?.map_err(|problem| refused(&problem))
}

fn plain(bytes: &[u8], format: Format, charset: Option<&str>) -> Result<DocumentText, NodeError> {
    let text = decode::decode(bytes, format, charset)?;
    let text = if format == Format::Html {
        let clock = kernel::SystemClock::new();
        let end = clock.monotonic() + TIME;
        html::text(&text, || clock.monotonic() > end)
            .ok_or_else(|| unread(sandbox::SandboxError::Timeout(TIME)))?
    } else {
        text
    };
    if text.len() > MOST_TEXT {
        return Err(too_large(&format!("its text is larger than {MOST_TEXT} bytes")));
    }
    Ok(DocumentText { text, pages: None })
}

fn refused(problem: &DocumentProblem) -> NodeError {
    match problem {
        DocumentProblem::Damaged(why) => damaged(why),
        DocumentProblem::Protected => damaged(&problem.to_string()),
        DocumentProblem::Pages(_) => too_large(&format!("{problem}; at most {MOST_PAGES}")),
        DocumentProblem::TooLarge(why) => too_large(why),
    }
}

/// Why no worker has read it.
fn unread(error: sandbox::SandboxError) -> NodeError {
    use sandbox::SandboxError as Sandboxed;
    match error {
        Sandboxed::Timeout(limit) => NodeError::new(
            ErrorCode::NodeTimeout,
            format!("reading the document took longer than {} s", limit.as_secs_f64()),
        ),
        Sandboxed::Memory(_) => too_large("reading it takes more memory than SERVICE_SANDBOX_MEMORY_BYTES"),
        Sandboxed::OutputTooLarge(limit) => too_large(&format!("its text is larger than {limit} bytes")),
        Sandboxed::Crashed => damaged("its reader died of it"),
        Sandboxed::Failed { message, .. } => damaged(&message),
        Sandboxed::Busy => NodeError::retryable(ErrorCode::CodeBusy, ErrorCode::CodeBusy.message()),
        // What exactly is in the log: it names the machine's own paths.
        Sandboxed::Unavailable(_) => {
            NodeError::retryable(ErrorCode::CodeUnavailable, ErrorCode::CodeUnavailable.message())
        }
    }
}

fn damaged(why: &str) -> NodeError {
    NodeError::new(ErrorCode::DocumentDamaged, format!("the document cannot be read: {why}"))
}

pub(crate) fn too_large(why: &str) -> NodeError {
    NodeError::new(ErrorCode::DocumentTooLarge, format!("the document is too large: {why}"))
}
