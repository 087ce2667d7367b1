//! Reads text from documents in all supported formats.

mod decode;
mod html;
mod kind;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernel::Clock as _;
use net::{NetErrorKind, Response};
use sandbox::{DocumentKind, DocumentLimits, DocumentProblem, DocumentText, Feed, Sandbox};
use wire::ErrorCode;

pub(crate) use kind::{Format, detect};

use crate::NodeError;
use crate::outbound;

/// Maximum document bytes.
pub(crate) const MOST_BYTES: u64 = 10 * 1024 * 1024;
/// Maximum pages.
pub(crate) const MOST_PAGES: usize = 2_000;
/// Maximum text bytes.
pub(crate) const MOST_TEXT: usize = 4 * 1024 * 1024;
/// Maximum time to read a document.
pub(crate) const TIME: Duration = Duration::from_secs(30);
const LIMITS: DocumentLimits = DocumentLimits { time: TIME, pages: MOST_PAGES, text: MOST_TEXT };

/// Reads the body of a response that is a document.
pub(crate) async fn bytes_of(answer: Response) -> Result<Vec<u8>, NodeError> {
    let bytes = answer.bytes().await.map_err(|error| match error.kind {
        NetErrorKind::TooLarge => too_large(&format!("it has more than {MOST_BYTES} bytes")),
        _ => outbound::fault(&error),
    })?;
    Ok(bytes.to_vec())
}

/// Reads a document; `charset` comes from its server.
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
            return aside(move || plain(&bytes, format, charset.as_deref())).await?;
        }
    };
    let data = aside(move || STANDARD.encode(bytes)).await?;
    sandbox.read_document(kind, data, LIMITS).await.map_err(unread)?.map_err(|problem| refused(&problem))
}

/// Reads the first items of a feed at this address, at most `most` or 2,000. Converts HTML in them to text.
pub(crate) async fn read_feed(
    bytes: Vec<u8>,
    from: String,
    most: usize,
    sandbox: &Sandbox,
) -> Result<Feed, NodeError> {
    let data = aside(move || STANDARD.encode(bytes)).await?;
    let limits = DocumentLimits { pages: most.min(MOST_PAGES), ..LIMITS };
    let read = sandbox.read_feed(data, from, limits).await.map_err(unread)?;
    let feed = read.map_err(|problem| refused(&problem))?;
    aside(move || in_words(feed)).await?
}

fn in_words(mut feed: Feed) -> Result<Feed, NodeError> {
    let items =
        feed.items.iter_mut().flat_map(|item| [&mut item.title, &mut item.summary, &mut item.content]);
    let texts = items.chain([&mut feed.title]).filter_map(Option::as_mut);
    let late = later();
    for said in texts.filter(|said| said.html) {
        said.text = words(&said.text, &late)?;
    }
    Ok(feed)
}

/// Runs slow work outside the actors.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NodeError> {
    let panicked = |_| NodeError::new(ErrorCode::Internal, "reading the document panicked");
    tokio::task::spawn_blocking(work).await.map_err(panicked)
}

/// Returns a check for whether reading has taken too long.
fn later() -> impl Fn() -> bool {
    let clock = kernel::SystemClock::new();
    let end = clock.monotonic() + TIME;
    move || clock.monotonic() > end
}

fn words(html: &str, late: &impl Fn() -> bool) -> Result<String, NodeError> {
    html::text(html, late).ok_or_else(|| unread(sandbox::SandboxError::Timeout(TIME)))
}

fn plain(bytes: &[u8], format: Format, charset: Option<&str>) -> Result<DocumentText, NodeError> {
    let text = decode::decode(bytes, format, charset)?;
    let text = if format == Format::Html { words(&text, &later())? } else { text };
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

/// Converts a sandbox error of a document that no worker has read.
pub(crate) fn unread(error: sandbox::SandboxError) -> NodeError {
    use sandbox::SandboxError as Sandboxed;
    match error {
        Sandboxed::Timeout(limit) => NodeError::new(
            ErrorCode::NodeTimeout,
            format!("reading the document took longer than {} s", limit.as_secs_f64()),
        ),
        Sandboxed::Memory(_) => too_large("reading it takes more memory than SERVICE_SANDBOX_MEMORY_BYTES"),
        Sandboxed::OutputTooLarge(limit) => too_large(&format!("its text is larger than {limit} bytes")),
        Sandboxed::Crashed => damaged("the parser process died"),
        Sandboxed::Failed { message, .. } => damaged(&message),
        busy @ (Sandboxed::Busy { .. } | Sandboxed::QueueFull { .. }) => {
            NodeError::retryable(ErrorCode::CodeBusy, busy.to_string())
        }
        // The log has the details: they name paths on this machine.
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
