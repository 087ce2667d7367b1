//! Chat visitor data, for the workflow owner.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use kernel::Clock;
use wire::chat::ThreadItem;
use wire::operations::visitors;
use wire::{Erased, ExportLine, Listed, ThreadRecord, UpdateThread};

use crate::client::Bearer;
use crate::error::Cause;
use crate::sse::Body;
use crate::{Client, ClientError, Part, TransportFault};

/// Maximum bytes per export line: a file chunk, or an item.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// A filter for threads.
#[derive(Debug, Clone, Default)]
pub struct ThreadsFilter {
    /// Only threads of this visitor, as the list names it.
    pub visitor: Option<String>,
    /// Only threads with this status: `active`, `locked` or `closed`.
    pub status: Option<String>,
}

/// Calls fail as [`crate::Answer::ok`] does.
impl Client {
    /// `GET /api/workflows/{ref}/chat/threads`: a list page, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn threads_of_workflow(
        &self,
        workflow: &str,
        filter: &ThreadsFilter,
        part: &Part,
    ) -> Result<Listed<ThreadRecord>, ClientError> {
        let mut query = part.query();
        for (name, text) in [("visitor", &filter.visitor), ("status", &filter.status)] {
            query.extend(text.clone().map(|text| (name, text)));
        }
        self.read(&visitors::LIST_WORKFLOW_THREADS, &[workflow], &query).await?.ok()
    }

    /// `GET /api/workflows/{ref}/chat/threads/{id}/items`: a list page, oldest first.
    ///
    /// # Errors
    /// See above.
    pub async fn items_of_workflow(
        &self,
        workflow: &str,
        thread: &str,
        part: &Part,
    ) -> Result<Listed<ThreadItem>, ClientError> {
        self.read(&visitors::LIST_WORKFLOW_ITEMS, &[workflow, thread], &part.query()).await?.ok()
    }

    /// `PATCH /api/workflows/{ref}/chat/threads/{id}`: changes a thread's title or status.
    ///
    /// # Errors
    /// See above.
    pub async fn change_thread(
        &self,
        workflow: &str,
        thread: &str,
        change: &UpdateThread,
    ) -> Result<ThreadRecord, ClientError> {
        self.change(&visitors::CHANGE_WORKFLOW_THREAD, &[workflow, thread], Some(change)).await?.ok()
    }

    /// `GET /api/workflows/{ref}/chat/visitors/{visitor}/export`: all visitor data, as a stream.
    ///
    /// # Errors
    /// See above.
    pub async fn export_visitor(&self, workflow: &str, visitor: &str) -> Result<VisitorExport, ClientError> {
        let request = self.operation(&visitors::EXPORT_VISITOR, &[workflow, visitor], Bearer::Service)?;
        let head = async {
            let response = self.head(request).await?;
            if response.status().as_u16() == 200 {
                self.show_head(&response);
                return Ok(response);
            }
            Err(self.whole(response).await?.error())
        };
        let response = self.in_time(head).await?;
        let parts = self.parts();
        let body = response.bytes_stream().map_err(|error| -> Cause { Box::new(error) });
        Ok(VisitorExport {
            body: body.boxed(),
            clock: Arc::clone(&parts.clock),
            idle_limit: parts.idle_limit,
            rest: Vec::new(),
            end: None,
        })
    }

    /// `DELETE /api/workflows/{ref}/chat/visitors/{visitor}`: erases all data of a visitor. `None`: the service has
    /// accepted the erasure and completes it later.
    ///
    /// # Errors
    /// See above.
    pub async fn erase_visitor(&self, workflow: &str, visitor: &str) -> Result<Option<Erased>, ClientError> {
        let answer = self.change(&visitors::ERASE_VISITOR, &[workflow, visitor], None::<&()>).await?;
        if answer.status == 202 { Ok(None) } else { answer.ok().map(Some) }
    }
}

/// An export, read line by line.
pub struct VisitorExport {
    body: Body,
    clock: Arc<dyn Clock>,
    idle_limit: Duration,
    rest: Vec<u8>,
    end: Option<ExportLine>,
}

impl VisitorExport {
    /// The next line: an [`ExportLine`] as JSON, without its line ending; `None` after the last line of a complete
    /// export.
    ///
    /// # Errors
    /// [`ClientError::Transport`] if the export breaks off or lacks its last line; [`ClientError::Protocol`] if it is
    /// not an export.
    pub async fn next(&mut self) -> Result<Option<String>, ClientError> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.rest.drain(..=end).collect();
                line.pop();
                return self.line(line).map(Some);
            }
            if self.rest.len() > MAX_LINE {
                return Err(ClientError::protocol("a line of the export is too long"));
            }
            let piece = kernel::timeout(&*self.clock, self.idle_limit, self.body.next()).await;
            match piece.ok_or_else(|| ClientError::fault(TransportFault::Timeout))? {
                Some(Ok(bytes)) => self.rest.extend_from_slice(&bytes),
                Some(Err(cause)) => return Err(ClientError::cut(cause)),
                None if self.end.is_some() && self.rest.is_empty() => return Ok(None),
                None => return Err(ClientError::fault(TransportFault::Cut)),
            }
        }
    }

    /// The last line, after it was read: [`ExportLine::End`].
    #[must_use]
    pub fn end(&self) -> Option<&ExportLine> {
        self.end.as_ref()
    }

    fn line(&mut self, line: Vec<u8>) -> Result<String, ClientError> {
        let line = String::from_utf8(line).map_err(|_| ClientError::protocol("the export is not UTF-8"))?;
        // A newer service's line may have another shape.
        if line.starts_with("{\"type\":\"end\"") {
            self.end = serde_json::from_str(&line).ok();
        }
        Ok(line)
    }
}
