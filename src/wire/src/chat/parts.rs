//! What items other than messages contain. Source: openai-chatkit 1.6.5 (`types.py`, `widgets.py`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::content::Source;

/// Whether the client has returned the output of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToolCallStatus {
    /// Not yet.
    Pending,
    /// It has.
    Completed,
}

/// Whether questions were answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum InputStatus {
    /// Not yet.
    Pending,
    /// At least one was.
    Answered,
    /// The user skipped all of them, or they expired.
    Skipped,
}

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StructuredInput {
    /// Its id in the item.
    pub id: String,
    /// The question.
    pub question: String,
    /// The answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<InputAnswer>,
    /// How it is answered.
    #[serde(flatten)]
    pub form: InputForm,
}

impl StructuredInput {
    /// The question and its values in one line, for models.
    pub(super) fn line(&self) -> String {
        let values = self.answer.as_ref().map(|answer| answer.values.join(", ")).unwrap_or_default();
        format!("{}: {values}", self.question)
    }
}

/// How a question is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InputForm {
    /// One or several of some values, or another one.
    MultipleChoice {
        /// The values to choose from.
        options: Vec<InputOption>,
        /// Whether several may be chosen.
        #[serde(default)]
        multiple: bool,
    },
    /// Any text.
    Freeform {
        /// A hint.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
}

/// A value to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InputOption {
    /// The value, and its label.
    pub value: String,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InputAnswer {
    /// The chosen or written values.
    #[serde(default)]
    pub values: Vec<String>,
    /// Whether the user skipped it.
    #[serde(default)]
    pub skipped: bool,
}

/// What a client submits to the questions of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InputSubmission {
    /// Whether the user has answered or skipped all of them.
    pub status: SubmissionStatus,
    /// The answers by the ids of the questions.
    pub answers: BTreeMap<String, InputAnswer>,
}

/// Whether the user has answered questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SubmissionStatus {
    /// At least one.
    Answered,
    /// None of them.
    Skipped,
}

impl InputSubmission {
    /// A submission without an answer.
    #[must_use]
    pub fn skipped() -> Self {
        Self { status: SubmissionStatus::Skipped, answers: BTreeMap::new() }
    }

    /// Puts the answers into the questions. Answers to other questions are ignored, a question without an answer is skipped, and
    /// a question with a single choice keeps the first value.
    #[must_use]
    pub fn applied_to(&self, mut inputs: Vec<StructuredInput>) -> (InputStatus, Vec<StructuredInput>) {
        for input in &mut inputs {
            let given = self.answers.get(&input.id).filter(|_| self.status == SubmissionStatus::Answered);
            let mut values = match given {
                Some(answer) if !answer.skipped => answer.values.clone(),
                _ => Vec::new(),
            };
            if matches!(input.form, InputForm::MultipleChoice { multiple: false, .. }) {
                values.truncate(1);
            }
            input.answer = Some(InputAnswer { skipped: values.is_empty(), values });
        }
        let status = match self.status {
            SubmissionStatus::Answered => InputStatus::Answered,
            SubmissionStatus::Skipped => InputStatus::Skipped,
        };
        (status, inputs)
    }
}

/// The root component of a widget. Components are open: a client ignores what it does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct WidgetRoot(pub Map<String, Value>);

/// Tasks in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskList {
    /// Kind of the list.
    #[serde(rename = "type")]
    pub kind: TaskListKind,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// A line above them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<TaskSummary>,
    /// Whether the tasks are shown at first.
    #[serde(default)]
    pub expanded: bool,
}

/// Kind of a list of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TaskListKind {
    /// Steps of the workflow.
    Custom,
    /// Thoughts of a model.
    Reasoning,
}

/// A line above a list of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum TaskSummary {
    /// A title.
    Title {
        /// The title.
        title: String,
        /// Name of an icon.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        icon: Option<String>,
    },
    /// How long it took.
    Duration {
        /// Seconds.
        duration: u64,
    },
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Task {
    /// How it stands.
    #[serde(default)]
    pub status_indicator: TaskStatus,
    /// What it is about.
    #[serde(flatten)]
    pub body: TaskBody,
}

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TaskStatus {
    /// Not shown.
    #[default]
    None,
    /// In progress.
    Loading,
    /// Done.
    Complete,
}

/// What a task is about, by its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TaskBody {
    /// A step.
    Custom {
        /// One line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Name of an icon.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        icon: Option<String>,
        /// Markdown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
    },
    /// A search of the web.
    WebSearch {
        /// One line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The query in the title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title_query: Option<String>,
        /// The queries.
        #[serde(default)]
        queries: Vec<String>,
        /// What was found.
        #[serde(default)]
        sources: Vec<Source>,
    },
    /// A thought of a model.
    Thought {
        /// One line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Markdown.
        content: String,
    },
    /// Files that were read.
    File {
        /// One line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The files.
        #[serde(default)]
        sources: Vec<Source>,
    },
    /// An image that is made.
    Image {
        /// One line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
}

/// A generated image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratedImage {
    /// Its id.
    pub id: String,
    /// Where to load it. An image that the thread keeps has the id of an attachment, and an address in what clients receive only: it
    /// expires, so the stored item has an empty one.
    pub url: String,
}
