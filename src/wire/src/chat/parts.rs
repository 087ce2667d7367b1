//! The content of items other than messages. Source: openai-chatkit 1.6.5 (`types.py`, `widgets.py`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::content::Source;

/// Whether the client has returned a tool's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToolCallStatus {
    /// Not yet.
    Pending,
    /// The output was returned.
    Completed,
}

/// Whether the user has answered questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum InputStatus {
    /// Not yet.
    Pending,
    /// At least one was answered.
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
    /// The answer, once given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<InputAnswer>,
    /// The answer form.
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

/// A question's answer form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InputForm {
    /// A choice among some values, or a different value.
    MultipleChoice {
        /// The values to choose from.
        options: Vec<InputOption>,
        /// Whether the user may choose several.
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

/// A value in a choice.
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

/// A client's answers to an item's questions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InputSubmission {
    /// Whether the user has answered or skipped them.
    pub status: SubmissionStatus,
    /// Answers by question id.
    pub answers: BTreeMap<String, InputAnswer>,
}

/// Whether the user has answered or skipped questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SubmissionStatus {
    /// At least one was answered.
    Answered,
    /// All were skipped.
    Skipped,
}

impl InputSubmission {
    /// A submission without an answer.
    #[must_use]
    pub fn skipped() -> Self {
        Self { status: SubmissionStatus::Skipped, answers: BTreeMap::new() }
    }

    /// Adds the answers to the questions. Answers to other questions are ignored, a question without an answer is
    /// skipped, and a single-choice question keeps the first value.
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

/// A widget's root component. Components are open: a client ignores unknown members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct WidgetRoot(pub Map<String, Value>);

/// Tasks in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskList {
    /// The list's kind.
    #[serde(rename = "type")]
    pub kind: TaskListKind,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// A line above the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<TaskSummary>,
    /// Whether the list is expanded at first.
    #[serde(default)]
    pub expanded: bool,
}

/// A task list's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TaskListKind {
    /// Workflow steps.
    Custom,
    /// Model thoughts.
    Reasoning,
}

/// A line above a task list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum TaskSummary {
    /// A title.
    Title {
        /// The title.
        title: String,
        /// An icon's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        icon: Option<String>,
    },
    /// The elapsed time.
    Duration {
        /// Seconds.
        duration: u64,
    },
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Task {
    /// The task's status.
    #[serde(default)]
    pub status_indicator: TaskStatus,
    /// The task's content.
    #[serde(flatten)]
    pub body: TaskBody,
}

/// A task's status.
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

/// A task's content, by kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TaskBody {
    /// A step.
    Custom {
        /// One line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// An icon's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        icon: Option<String>,
        /// Markdown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
    },
    /// A web search.
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
        /// The results.
        #[serde(default)]
        sources: Vec<Source>,
    },
    /// A model's thought.
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
    /// An image that is being generated.
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
    /// The image address. A stored image has an attachment's id, and its address exists only in responses: it expires,
    /// so the stored item has an empty one.
    pub url: String,
}
