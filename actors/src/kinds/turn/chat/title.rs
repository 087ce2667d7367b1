//! Titles for new threads, written by a model while the first turn executes.

use std::time::Duration;

use engine::ports::{ModelBudget, Spending};
use kernel::ThreadId;
use models::{Message, ModelRequest, NoPieces, Role};
use store::StoreError;
use tokio::sync::oneshot;
use uuid::Uuid;
use wire::TitleModel;
use wire::chat::{UserMessageContent, title_of, title_of_message};

use super::Chat;
use super::endpoint::EndpointError;
use crate::run::budget::BudgetAccount;

/// Model timeout.
const LIMIT: Duration = Duration::from_secs(10);
/// Maximum tokens per title.
const TOKENS: u32 = 30;
/// Characters of the message that the model reads.
const MAX_MESSAGE_CHARS: usize = 4_000;
/// Maximum characters per title.
const MAX_TITLE_CHARS: usize = 120;
/// Maximum lookups of the thread, whose start may not be stored yet.
const LOOKUPS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(250);

const PROMPT: &str = "Write a title for a conversation that begins with the user's message: at most six words, in the language \
                      of the message, without quotation marks. Answer with the title alone.";

/// Settings for generating a thread's title.
#[derive(Debug, Clone)]
pub struct NewTitle {
    /// The model.
    pub settings: TitleModel,
    /// The session that pays; `None`: the thread.
    pub session: Option<String>,
}

/// A thread's first message, for its title.
pub(super) struct FirstMessage {
    pub(super) workspace: Uuid,
    pub(super) workflow: Uuid,
    pub(super) thread: ThreadId,
    pub(super) content: Vec<UserMessageContent>,
}

impl Chat {
    /// Generates a new thread's title with a model; signals `stored` when it is stored. If the model fails, the title
    /// remains the first words of the message.
    pub(super) fn write_title(&self, title: NewTitle, first: FirstMessage, stored: oneshot::Sender<()>) {
        let chat = self.clone();
        tokio::spawn(async move {
            match chat.generate_and_store(&title, &first).await {
                // The turn may have ended.
                Ok(true) => drop(stored.send(())),
                Ok(false) => {}
                Err(error) => tracing::warn!(thread = %first.thread, %error, "failed to store a title"),
            }
        });
    }

    async fn generate_and_store(&self, title: &NewTitle, first: &FirstMessage) -> Result<bool, StoreError> {
        let session = title.session.clone().unwrap_or_else(|| format!("thread:{}", first.thread));
        let Some(text) = self.ask_for_title(title, first, &session).await else { return Ok(false) };
        let words = title_of_message(&first.content);
        for _ in 0..LOOKUPS {
            if self.ports.store.retitle_thread(first.thread, words.as_deref(), &text).await? {
                return Ok(true);
            }
            // A title set meanwhile is never overwritten.
            if self.ports.store.thread(first.thread).await?.is_some() {
                return Ok(false);
            }
            self.ports.clock.sleep(PAUSE).await;
        }
        tracing::info!(thread = %first.thread, "title not stored: thread not found");
        Ok(false)
    }

    async fn ask_for_title(&self, title: &NewTitle, first: &FirstMessage, session: &str) -> Option<String> {
        let TitleModel { binding, prompt } = &title.settings;
        let model = &binding.model;
        let (endpoint, name) = match self.model(first.workspace, binding).await {
            Ok(found) => found,
            Err(EndpointError::Credential(error)) => {
                let cause = error.code.as_str();
                kernel::warn_once_a_minute!(
                    "title.no_credential",
                    cause,
                    "failed to read the credential of the title model"
                );
                return None;
            }
            Err(EndpointError::Model(error)) => {
                kernel::warn_once_a_minute!("title.model_invalid", %error, "failed to configure the title model");
                return None;
            }
        };
        let message = text_of(&first.content);
        if message.trim().is_empty() {
            return None;
        }
        let prompt = prompt.as_deref().unwrap_or(PROMPT);
        let request = ModelRequest {
            model: name,
            messages: vec![Message::text(Role::System, prompt), Message::text(Role::User, message)],
            max_tokens: Some(TOKENS),
            idempotency_key: Some(format!("{}-title", first.thread)),
            ..ModelRequest::default()
        };
        let expected = Spending::expected(model, &request);
        let account = BudgetAccount::without_turn(first.workflow, session.to_owned());
        let budget = self.ports.budget(Some(account.clone()));
        if budget.reserve(&expected).await.is_err() {
            return None;
        }
        let answered = kernel::timeout(&*self.ports.clock, LIMIT, endpoint.call(&request, &NoPieces)).await;
        let (used, title) = match answered {
            // An abandoned call counts with its input.
            None => (Spending::for_call(model, expected.input_tokens, 0), None),
            Some(Err(error)) => {
                kernel::warn_once_a_minute!("title.failed", %error, "failed to generate a title");
                (Spending::default(), None)
            }
            Some(Ok(answer)) => {
                (Spending::used(model, answer.usage, &expected, answer.text.len()), cleaned(&answer.text))
            }
        };
        budget.release(&expected, &used);
        self.count(first.workflow, session, &used).await;
        self.ports.budgets.recorded(&account, &used);
        title
    }
}

/// The user's text.
fn text_of(content: &[UserMessageContent]) -> String {
    let texts = content.iter().map(|part| match part {
        UserMessageContent::InputText { text } | UserMessageContent::InputTag { text, .. } => text.as_str(),
    });
    texts.collect::<Vec<_>>().join(" ").chars().take(MAX_MESSAGE_CHARS).collect()
}

/// The first non-empty line, without the quotation marks and markup that models put around titles.
fn cleaned(answer: &str) -> Option<String> {
    let line = answer.lines().map(str::trim).find(|line| !line.is_empty())?;
    let is_mark = |letter: char| {
        matches!(letter, '"' | '\'' | '“' | '”' | '„' | '«' | '»' | '*' | '#' | '`') || letter.is_whitespace()
    };
    let title: String = title_of(line.trim_matches(is_mark)).chars().take(MAX_TITLE_CHARS).collect();
    Some(title.trim_end().to_owned()).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_line_without_marks() {
        for (answer, title) in [
            ("Order 7", Some("Order 7")),
            ("\n\n\"Order 7\"\nIt is about an order.", Some("Order 7")),
            ("**# Order 7**", Some("Order 7")),
            ("„Bestellung 7“", Some("Bestellung 7")),
            ("a\u{7}b", Some("a b")),
            ("\"\"", None),
            (" \n ", None),
        ] {
            assert_eq!(cleaned(answer).as_deref(), title, "{answer:?}");
        }
        assert_eq!(cleaned(&"x".repeat(500)).unwrap().len(), MAX_TITLE_CHARS);
    }
}
