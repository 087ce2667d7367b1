//! Prints a turn as it arrives: the reply to standard output, the rest to standard error.

use std::io::IsTerminal;

use wire::chat::{ChatEvent, ItemBody, Task, TaskBody, TaskStatus, ThreadItem};

use super::questions;
use crate::complaint::Complaint;
use crate::output::{CommandError, Output, compact, complain, piece, say};
use crate::terminal::{Paint, harmless, notice, stdout_is_seen};

/// The printed part of a turn.
pub(super) struct TurnPrinter {
    output: Output,
    /// Whether standard output is a terminal.
    seen: bool,
    /// Whether both outputs are terminals; then other output must not be mixed into a line of the reply.
    mixed: bool,
    /// Whether a line of the reply is incomplete.
    open: bool,
    /// Item id and text of each reply.
    replies: Vec<(String, String)>,
    thread: Option<String>,
    error: Option<Complaint>,
    /// The final items that wait for an answer.
    asked: Vec<ThreadItem>,
}

impl TurnPrinter {
    pub(super) fn new(output: Output) -> Self {
        let seen = stdout_is_seen();
        let mixed = seen && std::io::stderr().is_terminal();
        Self {
            output,
            seen,
            mixed,
            open: false,
            replies: Vec::new(),
            thread: None,
            error: None,
            asked: Vec::new(),
        }
    }

    /// The thread, after an event has named it.
    pub(super) fn thread(&self) -> Option<&str> {
        self.thread.as_deref()
    }

    /// The error that ended the turn.
    pub(super) fn error(&mut self) -> Option<Complaint> {
        self.error.take()
    }

    /// The items that wait for an answer.
    pub(super) fn asked(&mut self) -> Vec<ThreadItem> {
        std::mem::take(&mut self.asked)
    }

    pub(super) fn take(&mut self, event: &ChatEvent) -> Result<(), CommandError> {
        if let ChatEvent::ThreadCreated { thread } = event {
            self.thread = Some(thread.id.clone());
        }
        if let ChatEvent::Error { message, error_code, allow_retry, .. } = event {
            let message = message.clone().unwrap_or_else(|| "The turn failed.".to_owned());
            let complaint = Complaint::told(message, error_code.clone());
            self.error = Some(complaint.hint(if *allow_retry {
                "The same message may succeed if you send it again."
            } else {
                "`callboard run <workflow> --input message=…` shows which step failed, and why."
            }));
        }
        if let ChatEvent::ItemDone { item } = event
            && item.body.is_pending()
        {
            self.asked.push(item.clone());
        }
        if self.output == Output::Json {
            return say(compact(event)?);
        }
        match event {
            ChatEvent::ItemUpdated { item_id, update } => {
                update.appended_text().map_or(Ok(()), |text| self.append(item_id, text))
            }
            ChatEvent::ItemDone { item } | ChatEvent::ItemReplaced { item } => self.settle(item),
            ChatEvent::ProgressUpdate { text, .. } => {
                self.note(&format!("… {text}"));
                Ok(())
            }
            ChatEvent::Notice { level, message, title } => {
                self.end_line();
                complain(notice(*level, title.as_deref(), message));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Prints a line that is not part of the reply.
    pub(super) fn note(&mut self, text: &str) {
        if self.output == Output::Human {
            self.end_line();
            complain(Paint::stderr().dim(harmless(text)));
        }
    }

    /// Ends an incomplete line.
    pub(super) fn finish(&mut self) -> Result<(), CommandError> {
        if std::mem::take(&mut self.open) { say("") } else { Ok(()) }
    }

    fn end_line(&mut self) {
        if self.mixed && std::mem::take(&mut self.open) {
            // The next write notices if the reader has gone.
            let _ = say("");
        }
    }

    fn append(&mut self, item_id: &str, text: &str) -> Result<(), CommandError> {
        if text.is_empty() {
            return Ok(());
        }
        if !self.replies.iter().any(|(id, _)| id == item_id) {
            self.begin(item_id)?;
        }
        if let Some((_, whole)) = self.replies.iter_mut().find(|(id, _)| id == item_id) {
            whole.push_str(text);
        }
        self.open = !text.ends_with('\n');
        self.write(text)
    }

    /// An empty line separates replies.
    fn begin(&mut self, item_id: &str) -> Result<(), CommandError> {
        self.finish()?;
        if !self.replies.is_empty() {
            say("")?;
        }
        self.replies.push((item_id.to_owned(), String::new()));
        Ok(())
    }

    /// A complete item is authoritative: prints the part that was not streamed.
    fn settle(&mut self, item: &ThreadItem) -> Result<(), CommandError> {
        for line in lines(&item.body) {
            self.note(&line);
        }
        let Some(whole) = item.body.text() else { return Ok(()) };
        let shown = self.replies.iter().find(|(id, _)| id == item.id()).map(|(_, text)| text.clone());
        let shown = shown.unwrap_or_default();
        match whole.strip_prefix(shown.as_str()) {
            Some(rest) => self.append(item.id(), rest)?,
            None => {
                self.finish()?;
                self.note("The reply was restarted; it reads:");
                if let Some((_, text)) = self.replies.iter_mut().find(|(id, _)| id == item.id()) {
                    text.clear();
                }
                self.append(item.id(), &whole)?;
            }
        }
        self.finish()
    }

    fn write(&self, text: &str) -> Result<(), CommandError> {
        if self.seen { piece(harmless(text)) } else { piece(text) }
    }
}

/// Lines for items other than messages: one per task, a widget's text, an image's URL.
pub(crate) fn lines(body: &ItemBody) -> Vec<String> {
    match body {
        ItemBody::Task { task } => vec![line(task)],
        ItemBody::Workflow { workflow } => workflow.tasks.iter().map(line).collect(),
        ItemBody::Widget { copy_text, .. } => {
            vec![copy_text.clone().unwrap_or_else(|| "[a widget]".to_owned())]
        }
        ItemBody::GeneratedImage { image: Some(image), .. } => vec![image.url.clone()],
        ItemBody::StructuredInput { inputs, .. } if body.is_pending() => {
            inputs.iter().flat_map(questions::lines).collect()
        }
        ItemBody::ClientToolCall { name, .. } if body.is_pending() => {
            vec![format!("The workflow calls the tool \"{name}\" of the page; a terminal cannot run it.")]
        }
        _ => Vec::new(),
    }
}

fn line(task: &Task) -> String {
    let mark = match task.status_indicator {
        TaskStatus::None => "•",
        TaskStatus::Loading => "…",
        TaskStatus::Complete => "✓",
    };
    let text = match &task.body {
        TaskBody::Custom { title, content, .. } => title.as_ref().or(content.as_ref()).cloned(),
        TaskBody::WebSearch { title, title_query, queries, .. } => {
            title.as_ref().or(title_query.as_ref()).cloned().or_else(|| Some(queries.join(", ")))
        }
        TaskBody::Thought { title, content } => Some(title.as_ref().unwrap_or(content).clone()),
        TaskBody::File { title, sources } => title.clone().or_else(|| {
            Some(sources.iter().map(|source| source.title.as_str()).collect::<Vec<_>>().join(", "))
        }),
        TaskBody::Image { title } => title.clone(),
    };
    format!("{mark} {}", text.unwrap_or_else(|| "Task".to_owned()))
}
