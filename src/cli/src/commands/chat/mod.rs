//! `callboard chat`: chats with a published workflow.

mod questions;
mod talk;
mod teller;

use std::collections::{BTreeMap, VecDeque};
use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
pub(crate) use talk::{Talk, TurnOutcome};
pub(crate) use teller::lines;
use tokio::runtime::Runtime;
use uuid::Uuid;
use wire::chat::{ItemBody, ThreadItem};

use super::signals::Interrupts;
use crate::complaint::Complaint;
use crate::options::{ClientOptions, ServiceSession, WorkspaceOptions, runtime};
use crate::output::{CommandError, Output, complain};
use crate::terminal::{Paint, harmless, stdout_is_seen};

#[derive(Debug, Args)]
#[command(
    after_help = "Ctrl-C during a reply stops it and keeps its text; a second Ctrl-C, or Ctrl-D, exits.\n\
                        The reply goes to standard output; everything else goes to standard error."
)]
pub(crate) struct Chat {
    /// Handle or id of the workflow.
    workflow: String,
    /// Message to send; prompted for unless given. `-`, or standard input that is not a terminal, is read as the message.
    message: Option<String>,
    /// Attach a file to the message; may be given up to 10 times.
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Answer a question that the thread ends with: the question's id and the number of an option or a text; may be repeated.
    #[arg(long, value_name = "ID=ANSWER", requires = "thread", conflicts_with_all = ["message", "attach"])]
    answer: Vec<String>,
    /// Continue this thread.
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    #[command(flatten)]
    options: WorkspaceOptions,
}

/// The published workflow's id and name.
struct Partner {
    id: String,
    name: String,
}

impl Chat {
    /// Returns the outcome, and the output format for errors.
    pub(crate) fn run(self, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
        let options = self.options.clone().or(outer);
        (options.output(), self.chat(&options))
    }

    fn chat(self, options: &WorkspaceOptions) -> Result<(), CommandError> {
        let session = options.session()?;
        let says = self.message.is_some() || !self.attach.is_empty() || !self.answer.is_empty();
        let asks = !says && std::io::stdin().is_terminal() && stdout_is_seen();
        if asks && session.output == Output::Json {
            return Err(CommandError::usage(
                "--output json needs a message, as an argument or on standard input",
            ));
        }
        let message = if asks || !self.answer.is_empty() { None } else { Some(self.message()?) };
        let runtime = runtime()?;
        let partner = runtime.block_on(self.partner(&session))?;
        let interrupts = runtime.block_on(async { Interrupts::listen() })?;
        let mut talk = Talk::new(&session, partner.id, self.thread.clone(), interrupts);
        for path in &self.attach {
            runtime.block_on(talk.attach(path))?;
        }
        let ended = match message {
            Some(message) => runtime.block_on(talk.say(&message)),
            None if !self.answer.is_empty() => runtime.block_on(self.give_answers(&mut talk)),
            None => {
                let name = harmless(&partner.name);
                let told = format!("{name}: enter a message. Ctrl-C stops a reply, Ctrl-D exits.");
                complain(Paint::stderr().dim(told));
                converse(&runtime, &mut talk)
            }
        };
        // A user who named the thread knows it, and the thread may be the reason for the failure.
        let knows = ended.is_err() && self.thread.is_some();
        if let (Some(thread), Output::Human, false) = (talk.thread(), session.output, knows) {
            let next = format!("To continue: callboard chat {} --thread {thread}", self.workflow);
            complain(Paint::stderr().dim(next));
        }
        match ended.map_err(|failure| about(failure, &self.workflow))? {
            TurnOutcome::Done => Ok(()),
            TurnOutcome::Asked(items) => {
                for item in items.iter().filter(|_| session.output == Output::Human) {
                    self.show_how_to_answer(item);
                }
                Ok(())
            }
            TurnOutcome::Stopped => Err(CommandError::Interrupted),
            TurnOutcome::Failed(complaint) => Err(complaint.about(&self.workflow).into()),
        }
    }

    fn show_how_to_answer(&self, item: &ThreadItem) {
        let ItemBody::StructuredInput { inputs, .. } = &item.body else { return };
        let answers: Vec<String> = inputs.iter().map(|input| format!("--answer {}=…", input.id)).collect();
        let (workflow, thread) = (&self.workflow, &item.thread_id);
        let next = format!("To answer: callboard chat {workflow} --thread {thread} {}", answers.join(" "));
        complain(Paint::stderr().dim(harmless(&next)));
    }

    /// Answers the thread's newest questions.
    async fn give_answers(&self, talk: &mut Talk<'_>) -> Result<TurnOutcome, CommandError> {
        let Some((item, inputs)) = talk.pending().await? else {
            return Err(CommandError::usage(
                "no question of the thread waits for an answer; send a message instead",
            ));
        };
        let submission = questions::given(&inputs, &self.answer).map_err(CommandError::usage)?;
        talk.answer(&item, submission).await
    }

    fn message(&self) -> Result<String, CommandError> {
        let message = match self.message.as_deref() {
            Some(message) if message != "-" => message.to_owned(),
            None if !self.attach.is_empty() => String::new(),
            _ => {
                let mut message = String::new();
                std::io::stdin().lock().read_to_string(&mut message).map_err(|error| {
                    CommandError::usage(format!("standard input cannot be read: {error}"))
                })?;
                message.trim_end_matches(['\n', '\r']).to_owned()
            }
        };
        if message.trim().is_empty() && self.attach.is_empty() {
            Err(CommandError::usage("there is no message to send"))
        } else {
            Ok(message)
        }
    }

    /// Finds the workflow. Anyone can find a published workflow.
    async fn partner(&self, session: &ServiceSession) -> Result<Partner, CommandError> {
        let error = match session.client.public_workflow(&self.workflow).await {
            Ok(public) => return Ok(Partner { id: public.id, name: public.name }),
            Err(error) if matches!(error.status(), Some(401 | 403 | 404)) => error,
            Err(error) => return Err(session.failed(error)),
        };
        match session.client.workflow(&self.workflow).await {
            Ok(workflow) if !workflow.is_public => {
                let name = harmless(&workflow.name).into_owned();
                let complaint = Complaint::told(
                    format!("\"{name}\" is not published."),
                    Some("chat.not_published".into()),
                );
                Err(complaint.refused().about(&self.workflow).into())
            }
            Ok(workflow) => Ok(Partner { id: workflow.id, name: workflow.name }),
            // The chat may accept a session that the rest of the service does not know.
            Err(_) if Uuid::try_parse(&self.workflow).is_ok() => {
                Ok(Partner { id: self.workflow.clone(), name: "The workflow".to_owned() })
            }
            Err(closer) => {
                let is_closer =
                    closer.status() == Some(404) || closer.code() == Some("auth.workspace_forbidden");
                let error = if is_closer { closer } else { error };
                Err(session.failed(error))
            }
        }
    }
}

fn about(failure: CommandError, workflow: &str) -> CommandError {
    match failure {
        CommandError::Told(complaint) => complaint.about(workflow).into(),
        other => other,
    }
}

/// Reads messages and sends them until the user leaves. Prints a failed turn and continues.
fn converse(runtime: &Runtime, talk: &mut Talk<'_>) -> Result<TurnOutcome, CommandError> {
    let mut editor =
        DefaultEditor::new().map_err(|error| CommandError::from(format!("cannot read lines: {error}")))?;
    loop {
        let Some(line) = line(&mut editor, "you ›")? else { return Ok(TurnOutcome::Done) };
        if line.trim().is_empty() {
            continue;
        }
        // Fails only if the entry already exists.
        let _ = editor.add_history_entry(&line);
        let mut ended = runtime.block_on(talk.say(&line));
        let mut open = VecDeque::new();
        loop {
            match ended {
                Ok(TurnOutcome::Asked(items)) => open.extend(items),
                Ok(TurnOutcome::Done | TurnOutcome::Stopped) => {}
                Ok(TurnOutcome::Failed(complaint)) => complain(complaint.for_people()),
                Err(CommandError::Told(complaint)) => complain(complaint.for_people()),
                Err(leave) => return Err(leave),
            }
            let Some(item) = open.pop_front() else { break };
            ended = match answered(runtime, talk, &item, &mut editor)? {
                Some(next) => next,
                None => return Ok(TurnOutcome::Done),
            };
        }
    }
}

/// Asks an item's questions and sends the answers; `None` if the user leaves.
fn answered(
    runtime: &Runtime,
    talk: &mut Talk<'_>,
    item: &ThreadItem,
    editor: &mut DefaultEditor,
) -> Result<Option<Result<TurnOutcome, CommandError>>, CommandError> {
    let ItemBody::StructuredInput { inputs, .. } = &item.body else {
        return Ok(Some(runtime.block_on(talk.refuse_call(item))));
    };
    let mut answers = BTreeMap::new();
    for question in inputs {
        // The item was shown as a whole, so among several questions the current one is printed again.
        if inputs.len() > 1 {
            complain(Paint::stderr().dim(harmless(&question.question)));
        }
        let Some(line) = line(editor, "answer ›")? else { return Ok(None) };
        answers.insert(question.id.clone(), questions::answer(question, &line));
    }
    Ok(Some(runtime.block_on(talk.answer(item, questions::submission(answers)))))
}

/// Reads a line from the user; `None` if they leave.
fn line(editor: &mut DefaultEditor, prompt: &str) -> Result<Option<String>, CommandError> {
    match editor.readline(&format!("{} ", Paint::stdout().name(prompt))) {
        Ok(line) => Ok(Some(line)),
        Err(ReadlineError::Eof | ReadlineError::Interrupted) => Ok(None),
        Err(error) => Err(format!("cannot read a line: {error}").into()),
    }
}
