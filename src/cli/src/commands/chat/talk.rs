//! A conversation, turn by turn.

use std::path::Path;
use std::pin::pin;

use client::{ChatOptions, Part, ResumingChat, RunsFilter};
use serde_json::{Map, json};
use wire::chat::{
    AttachmentRef, ChatEvent, ChatOperation, ChatRequest, InputSubmission, ItemBody, PageRequest,
    StructuredInput, ThreadItem, UserMessageInput,
};

use super::teller::TurnPrinter;
use crate::commands::signals::Interrupts;
use crate::complaint::Complaint;
use crate::options::{ServiceSession, new_key};
use crate::output::{CommandError, Output};

/// A thread with a workflow; the first message creates the thread.
pub(crate) struct Talk<'a> {
    session: &'a ServiceSession,
    workflow_id: String,
    thread: Option<String>,
    /// Files for the next message.
    attachments: Vec<AttachmentRef>,
    interrupts: Interrupts,
}

/// The result of a turn.
pub(crate) enum TurnOutcome {
    /// A reply.
    Done,
    /// The user stopped the turn; the text so far is kept.
    Stopped,
    /// An error.
    Failed(Complaint),
    /// Questions, or client tool calls meant for a web page.
    Asked(Vec<ThreadItem>),
}

impl<'a> Talk<'a> {
    pub(crate) fn new(
        session: &'a ServiceSession,
        workflow_id: String,
        thread: Option<String>,
        interrupts: Interrupts,
    ) -> Self {
        Self { session, workflow_id, thread, attachments: Vec::new(), interrupts }
    }

    /// The thread, if known.
    pub(crate) fn thread(&self) -> Option<&str> {
        self.thread.as_deref()
    }

    /// Uploads a file for the next message.
    pub(crate) async fn attach(&mut self, path: &Path) -> Result<(), CommandError> {
        let shown = path.display();
        let unreadable = |error| CommandError::usage(format!("the file {shown} cannot be read: {error}"));
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let uploaded = self.session.client.upload(&self.workflow_id, &name, &bytes).await;
        let attachment = uploaded.map_err(|error| {
            let complaint = self.session.complaint(error);
            CommandError::from(complaint.hint(format!("The file is {shown}.")))
        })?;
        self.attachments.push(AttachmentRef::Id(attachment.id));
        Ok(())
    }

    /// The thread's newest item with pending questions, and these questions.
    pub(crate) async fn pending(&self) -> Result<Option<(ThreadItem, Vec<StructuredInput>)>, CommandError> {
        let Some(thread) = &self.thread else { return Ok(None) };
        let newest = PageRequest { limit: Some(PageRequest::MOST), ..PageRequest::default() };
        let items = self.session.client.items(&self.workflow_id, thread, &newest).await;
        let items = items.map_err(|error| self.session.failed(error))?;
        let asks = |item: ThreadItem| match &item.body {
            ItemBody::StructuredInput { inputs, .. } if item.body.is_pending() => {
                let inputs = inputs.clone();
                Some((item, inputs))
            }
            _ => None,
        };
        Ok(items.data.into_iter().find_map(asks))
    }

    /// Answers an item's questions.
    pub(crate) async fn answer(
        &mut self,
        item: &ThreadItem,
        input: InputSubmission,
    ) -> Result<TurnOutcome, CommandError> {
        let (thread_id, item_id) = (item.thread_id.clone(), item.id.clone());
        self.request(ChatOperation::AddStructuredInput { thread_id, item_id, input }).await
    }

    /// Tells the workflow that a terminal cannot run a page's tools.
    pub(crate) async fn refuse_call(&mut self, item: &ThreadItem) -> Result<TurnOutcome, CommandError> {
        let (thread_id, result) =
            (item.thread_id.clone(), json!({"error": "The terminal has no tools of a page."}));
        self.request(ChatOperation::AddClientToolOutput { thread_id, result }).await
    }

    /// Sends a message and prints the reply as it arrives, across lost connections. Ctrl-C stops the turn; a second
    /// Ctrl-C leaves without waiting.
    pub(crate) async fn say(&mut self, message: &str) -> Result<TurnOutcome, CommandError> {
        let attachments = std::mem::take(&mut self.attachments);
        let mut input = UserMessageInput { attachments, ..UserMessageInput::text(message) };
        if message.is_empty() {
            input.content.clear();
        }
        let operation = match &self.thread {
            Some(thread) => ChatOperation::AddUserMessage { thread_id: thread.clone(), input },
            None => ChatOperation::CreateThread { input },
        };
        self.request(operation).await
    }

    async fn request(&mut self, operation: ChatOperation) -> Result<TurnOutcome, CommandError> {
        let request = ChatRequest { operation, metadata: Map::new() };
        // The key allows a retry if the response is lost.
        let options = ChatOptions { idempotency_key: Some(new_key()?), ..ChatOptions::default() };
        let mut stopping = false;
        let mut chat = {
            let mut begun = pin!(self.session.client.follow(&self.workflow_id, &request, &options));
            loop {
                tokio::select! {
                    chat = &mut begun => break chat.map_err(|error| self.session.failed(error))?,
                    () = self.interrupts.told() => leave_if(std::mem::replace(&mut stopping, true))?,
                }
            }
        };
        if stopping {
            self.stop(&chat).await?;
        }
        self.listen(&mut chat, stopping).await
    }

    async fn listen(
        &mut self,
        chat: &mut ResumingChat,
        mut stopping: bool,
    ) -> Result<TurnOutcome, CommandError> {
        let mut teller = TurnPrinter::new(self.session.output);
        let mut resumes = chat.resumes();
        loop {
            let told = tokio::select! {
                event = chat.next() => Some(event),
                () = self.interrupts.told() => None,
            };
            match told {
                Some(Ok(Some(event))) => {
                    if std::mem::replace(&mut resumes, chat.resumes()) != resumes {
                        teller.note("The connection was lost; resuming.");
                    }
                    teller.take(&event.event)?;
                    if let Some(thread) = teller.thread() {
                        self.thread = Some(thread.to_owned());
                    }
                    if is_parked(&event.event) {
                        self.show_how_to_answer(&mut teller).await;
                    }
                }
                Some(Ok(None)) => break,
                Some(Err(error)) => {
                    teller.finish()?;
                    let complaint = self.session.complaint(error);
                    return Err(complaint
                        .hint("The turn continues without a reader for a short time, then it is stopped.")
                        .into());
                }
                None => {
                    if std::mem::replace(&mut stopping, true) {
                        teller.finish()?;
                        return Err(CommandError::Interrupted);
                    }
                    self.stop(chat).await?;
                }
            }
        }
        teller.finish()?;
        if let Some(complaint) = teller.error() {
            return Ok(TurnOutcome::Failed(complaint));
        }
        if stopping && self.session.output == Output::Human {
            teller.note("Stopped; the text so far is kept.");
        }
        let asked = teller.asked();
        Ok(match asked.is_empty() {
            _ if stopping => TurnOutcome::Stopped,
            false => TurnOutcome::Asked(asked),
            true => TurnOutcome::Done,
        })
    }

    /// Prints commands that answer a parked turn's questions, if the user may answer: access to the thread is not
    /// enough.
    async fn show_how_to_answer(&self, teller: &mut TurnPrinter) {
        let (workflow, thread) = (Some(self.workflow_id.clone()), self.thread.clone());
        let filter = RunsFilter { workflow, thread, waits: Some(true), ..RunsFilter::default() };
        let Ok(waiting) = self.session.client.runs_of_workspace(&filter, &Part::default()).await else {
            return;
        };
        for run in waiting.data {
            teller.note(&format!("To answer: callboard answer {} <answer>", run.id));
        }
    }

    /// Stops the turn; its stream then ends.
    async fn stop(&mut self, chat: &ResumingChat) -> Result<(), CommandError> {
        tokio::select! {
            stopped = self.session.client.stop(chat.stream_id()) => match stopped {
                Ok(_) => Ok(()),
                Err(error) => {
                    let complaint = self.session.complaint(error);
                    Err(complaint.hint("The reply could not be stopped; without a reader it ends automatically.").into())
                }
            },
            () = self.interrupts.told() => Err(CommandError::Interrupted),
        }
    }
}

/// Whether the event reports a parked turn.
fn is_parked(event: &ChatEvent) -> bool {
    matches!(event, ChatEvent::ProgressUpdate { icon: Some(icon), .. } if icon == "clock")
}

fn leave_if(again: bool) -> Result<(), CommandError> {
    if again { Err(CommandError::Interrupted) } else { Ok(()) }
}
