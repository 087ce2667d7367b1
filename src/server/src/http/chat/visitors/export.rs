//! Exports a visitor's data as JSON lines, read in pages. No database connection is held between pages.

use std::io;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::unfold;
use kernel::{Clock, ItemKey};
use store::{ChatVisitor, Slice, Store, StoreError, StoredAttachment, StoredThread, ThreadsOf};
use tokio::sync::mpsc;
use uuid::Uuid;
use wire::ExportLine;
use wire::chat::{FeedbackKind, Thread};

use crate::http::{App, time};

/// Records per query.
const PART: i64 = 100;
/// Bytes per chunk.
const SENT: usize = 32 << 10;

/// The reason why an export ends before its last line.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("a part of the data was erased during the export")]
    Erased,
    #[error("the client has disconnected")]
    Disconnected,
}

/// A chunk of the body.
enum Piece {
    Lines(Bytes),
    /// The end of the body.
    End,
}

/// Streams the data of these visitors, who are one person. `held` is released when the export ends.
pub(in crate::http) fn export(
    app: &App,
    visitors: Vec<ChatVisitor>,
    held: impl Send + 'static,
) -> HttpResponse {
    let (pieces, body) = mpsc::channel(1);
    let (store, clock) = (app.store().clone(), Arc::clone(app.clock()));
    let export =
        ExportWriter { store, clock, pieces, lines: Vec::new(), threads: 0, items: 0, attachments: 0 };
    actix_web::rt::spawn(async move {
        let _held = held;
        match export.write(&visitors).await {
            Ok(()) | Err(ExportError::Disconnected) => {}
            Err(error @ ExportError::Erased) => tracing::info!(%error, "export aborted"),
            Err(error) => tracing::warn!(%error, "export aborted"),
        }
    });
    // Without its last chunk, clients see that the body is incomplete.
    let broken = || io::Error::other("the export was aborted");
    let body = unfold(Some(body), move |body| async move {
        let mut body = body?;
        match body.recv().await {
            Some(Piece::Lines(lines)) => Some((Ok(lines), Some(body))),
            Some(Piece::End) => None,
            None => Some((Err(broken()), None)),
        }
    });
    HttpResponse::Ok()
        .content_type("application/x-ndjson")
        .insert_header(("Cache-Control", "no-store"))
        .streaming(Box::pin(body))
}

struct ExportWriter {
    store: Store,
    clock: Arc<dyn Clock>,
    pieces: mpsc::Sender<Piece>,
    /// Unsent lines.
    lines: Vec<u8>,
    threads: u64,
    items: u64,
    attachments: u64,
}

impl ExportWriter {
    async fn write(mut self, visitors: &[ChatVisitor]) -> Result<(), ExportError> {
        let begun = self.clock.now();
        for visitor in visitors {
            let at = time(self.clock.now());
            let workflow_id = visitor.workflow.to_string();
            self.line(&ExportLine::Visitor { visitor: visitor.name(), workflow_id, at }).await?;
            self.threads(visitor).await?;
            self.feedback(visitor).await?;
            self.attachments(visitor).await?;
        }
        for visitor in visitors {
            if self.store.is_erased_since(visitor, begun).await? {
                return Err(ExportError::Erased);
            }
        }
        let Self { threads, items, attachments, .. } = self;
        self.line(&ExportLine::End { threads, items, attachments }).await?;
        self.flush().await?;
        self.send(Piece::End).await
    }

    async fn threads(&mut self, visitor: &ChatVisitor) -> Result<(), ExportError> {
        let of = ThreadsOf {
            workflow: visitor.workflow,
            owner_kind: visitor.kind,
            owner_id: &visitor.id,
            user: None,
        };
        let mut after = None;
        loop {
            let slice = Slice { after, ascending: true, limit: PART };
            // If the last thread of the previous page was erased, the rest cannot be located.
            let threads = self.store.threads_of(of, slice).await?.ok_or(ExportError::Erased)?;
            let Some(last) = threads.last() else { return Ok(()) };
            after = Some(last.id);
            for thread in threads {
                self.thread(thread).await?;
            }
        }
    }

    async fn thread(&mut self, thread: StoredThread) -> Result<(), ExportError> {
        let id = thread.id;
        self.threads += 1;
        self.line(&ExportLine::Thread { thread: Thread::from(thread) }).await?;
        let mut after: Option<ItemKey> = None;
        loop {
            let items = self.store.items_of(id, Slice { after, ascending: true, limit: PART }).await?;
            let Some(last) = items.last() else { break };
            let unreadable = |_| StoreError::Corrupt(format!("the id of item {}", last.id()));
            after = Some(ItemKey::parse(last.id()).map_err(unreadable)?);
            for item in items.into_iter().filter(|item| !item.is_hidden()) {
                self.items += 1;
                self.line(&ExportLine::Item { item }).await?;
            }
        }
        Ok(())
    }

    async fn feedback(&mut self, visitor: &ChatVisitor) -> Result<(), ExportError> {
        let mut after = None;
        loop {
            let part = self.store.feedback_of_visitor(visitor, after, PART).await?;
            let Some(last) = part.last() else { return Ok(()) };
            after = Some((last.thread, last.item));
            for given in part {
                let line = ExportLine::Feedback {
                    thread_id: given.thread.to_string(),
                    item_id: given.item.wire(&given.prefix),
                    kind: FeedbackKind::from_name(&given.kind)
                        .ok_or_else(|| StoreError::Corrupt(format!("feedback {}", given.kind)))?,
                    comment: given.comment,
                    at: time(given.created_at),
                };
                self.line(&line).await?;
            }
        }
    }

    async fn attachments(&mut self, visitor: &ChatVisitor) -> Result<(), ExportError> {
        let mut after: Option<Uuid> = None;
        loop {
            let attachments = self.store.attachments_of_visitor(visitor, after, PART).await?;
            let Some(last) = attachments.last() else { return Ok(()) };
            after = Some(last.id.0);
            for attachment in attachments {
                self.attachment(attachment).await?;
            }
        }
    }

    async fn attachment(&mut self, attachment: StoredAttachment) -> Result<(), ExportError> {
        let id = attachment.id.to_string();
        self.attachments += 1;
        let line = ExportLine::Attachment {
            id: id.clone(),
            thread_id: attachment.thread.filter(|_| attachment.contained).map(|thread| thread.to_string()),
            name: attachment.name,
            mime_type: attachment.mime_type,
            size: attachment.size,
            sha256: attachment.digest.map(hex::encode),
            at: time(attachment.created_at),
        };
        self.line(&line).await?;
        let Some(digest) = attachment.digest else { return Ok(()) };
        let mut bytes = self.store.read_blob(digest).await?.ok_or(ExportError::Erased)?;
        let mut number = 0;
        while let Some(chunk) = bytes.next().await? {
            let base64 = STANDARD.encode(chunk);
            self.line(&ExportLine::AttachmentChunk { id: id.clone(), number, base64 }).await?;
            number += 1;
        }
        Ok(())
    }

    async fn line(&mut self, line: &ExportLine) -> Result<(), ExportError> {
        serde_json::to_writer(&mut self.lines, line)?;
        self.lines.push(b'\n');
        if self.lines.len() < SENT { Ok(()) } else { self.flush().await }
    }

    async fn flush(&mut self) -> Result<(), ExportError> {
        let mut lines: Bytes = std::mem::take(&mut self.lines).into();
        while !lines.is_empty() {
            let piece = lines.split_to(lines.len().min(SENT));
            self.send(Piece::Lines(piece)).await?;
        }
        Ok(())
    }

    async fn send(&self, piece: Piece) -> Result<(), ExportError> {
        // A client that does not read is disconnected, which ends the body.
        self.pieces.send(piece).await.map_err(|_| ExportError::Disconnected)
    }
}
