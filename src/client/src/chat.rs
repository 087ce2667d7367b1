//! Chat turns: start, resume, stop.

use reqwest::header::ACCEPT;
use serde_json::{Map, Value};
use wire::StopAnswer;
use wire::chat::{ChatOperation, ChatRequest, Dialect, UserMessageInput};
use wire::operations::chat;

use crate::client::{Bearer, Client};
use crate::events::{EVENT_STREAM, LAST_EVENT_ID};
use crate::follow::chat_source;
use crate::{ChatStream, ClientError, ResumingChat, Turn};

/// Options for a chat request besides the message.
#[derive(Debug, Clone, Default)]
pub struct ChatOptions {
    /// Sent as `Idempotency-Key`: the same key and body return the same stream again.
    pub idempotency_key: Option<String>,
    /// The dialect for streamed text; by default, the service chooses.
    pub dialect: Option<Dialect>,
    /// Sent as `Last-Event-ID`: with a repeated key, the event after which to resume.
    pub last_event_id: Option<String>,
}

impl Client {
    /// `POST /api/chat`: begins a turn and reads its stream.
    ///
    /// # Errors
    /// As [`crate::Answer::ok`], before the first event; [`ClientError::Protocol`] if the response is not an event
    /// stream.
    pub async fn chat(
        &self,
        workflow_id: &str,
        request: &ChatRequest,
        options: &ChatOptions,
    ) -> Result<ChatStream, ClientError> {
        self.chat_raw(&chat_body(workflow_id, request)?, options).await
    }

    /// Like [`Client::chat`], with any JSON as the body.
    ///
    /// # Errors
    /// As [`Client::chat`].
    pub async fn chat_raw(&self, body: &Value, options: &ChatOptions) -> Result<ChatStream, ClientError> {
        let accept = match options.dialect {
            Some(Dialect::Chatkit) => "text/event-stream;dialect=chatkit",
            Some(Dialect::Interface) | None => EVENT_STREAM,
        };
        let mut request = self.operation(&chat::CHAT, &[], Bearer::Session)?;
        request = request.header(ACCEPT, accept).json(body);
        if let Some(key) = &options.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        if let Some(last) = &options.last_event_id {
            request = request.header(LAST_EVENT_ID, last);
        }
        let stream = self.open(request, None).await?;
        stream.ok_or_else(|| ClientError::protocol("the chat was answered without a stream (HTTP 204)"))
    }

    /// `GET /api/chat/streams/{id}`: resumes after an event, or from the first one. `None` if all were received.
    ///
    /// # Errors
    /// As [`Client::chat`].
    pub async fn resume(
        &self,
        stream_id: &str,
        last_event_id: Option<&str>,
    ) -> Result<Option<ChatStream>, ClientError> {
        self.read_stream(&chat_source(stream_id), stream_id, last_event_id).await
    }

    /// `GET /api/chat/threads/{id}/stream`: the stream of a thread's running turn, from its first event or after the
    /// given one. `None` if no turn is running.
    ///
    /// # Errors
    /// As [`Client::chat`].
    pub async fn running_stream(
        &self,
        thread_id: &str,
        last_event_id: Option<&str>,
    ) -> Result<Option<ChatStream>, ClientError> {
        let mut request =
            self.operation(&chat::JOIN, &[thread_id], Bearer::Session)?.header(ACCEPT, EVENT_STREAM);
        if let Some(last) = last_event_id {
            request = request.header(LAST_EVENT_ID, last);
        }
        self.open(request, None).await
    }

    /// `POST /api/chat/streams/{id}/stop`: stops a turn; its reply so far is kept.
    ///
    /// # Errors
    /// As [`crate::Answer::ok`].
    pub async fn stop(&self, stream_id: &str) -> Result<StopAnswer, ClientError> {
        self.answer(self.operation(&chat::STOP, &[stream_id], Bearer::Session)?).await?.ok()
    }

    /// Starts a turn and follows it to its end over broken connections.
    ///
    /// With an idempotency key, it also repeats the request itself after a lost response.
    ///
    /// # Errors
    /// As [`Client::chat`].
    pub async fn follow(
        &self,
        workflow_id: &str,
        request: &ChatRequest,
        options: &ChatOptions,
    ) -> Result<ResumingChat, ClientError> {
        ResumingChat::begin(self, &chat_body(workflow_id, request)?, options).await
    }

    /// Follows a started turn, after the given event or from the first one.
    #[must_use]
    pub fn follow_stream(&self, stream_id: &str, last_event_id: Option<&str>) -> ResumingChat {
        ResumingChat::rejoin(self, chat_source(stream_id), stream_id, last_event_id)
    }

    /// Sends a text to a new thread and waits for the complete turn.
    ///
    /// # Errors
    /// As [`ResumingChat::collect`].
    pub async fn say(&self, workflow_id: &str, text: &str) -> Result<Turn, ClientError> {
        self.converse(workflow_id, ChatOperation::CreateThread { input: UserMessageInput::text(text) }).await
    }

    /// Sends a text to a thread and waits for the complete turn.
    ///
    /// # Errors
    /// As [`ResumingChat::collect`].
    pub async fn say_in(&self, workflow_id: &str, thread_id: &str, text: &str) -> Result<Turn, ClientError> {
        let (thread_id, input) = (thread_id.to_owned(), UserMessageInput::text(text));
        self.converse(workflow_id, ChatOperation::AddUserMessage { thread_id, input }).await
    }

    /// `threads.retry_after_item`: has a message answered again, without the items after it, and waits for the complete
    /// turn.
    ///
    /// # Errors
    /// As [`ResumingChat::collect`].
    pub async fn say_again(
        &self,
        workflow_id: &str,
        thread_id: &str,
        item_id: &str,
    ) -> Result<Turn, ClientError> {
        let (thread_id, item_id) = (thread_id.to_owned(), item_id.to_owned());
        let again = ChatOperation::RetryAfterItem { thread_id: thread_id.clone(), item_id };
        let mut turn = self.converse(workflow_id, again).await?;
        if turn.thread_id.is_empty() {
            // Only reply events name the thread, and the turn ended without a reply.
            turn.thread_id = thread_id;
        }
        Ok(turn)
    }

    async fn converse(&self, workflow_id: &str, operation: ChatOperation) -> Result<Turn, ClientError> {
        let request = ChatRequest { operation, metadata: Map::new() };
        self.follow(workflow_id, &request, &ChatOptions::default()).await?.collect().await
    }
}

/// A chat request with its workflow at the top level.
pub(crate) fn chat_body(workflow_id: &str, request: &ChatRequest) -> Result<Value, ClientError> {
    let wrong = || ClientError::Usage("the chat request cannot be written as JSON".to_owned());
    let mut body = serde_json::to_value(request).map_err(|_| wrong())?;
    let object = body.as_object_mut().ok_or_else(wrong)?;
    object.insert("workflow_id".to_owned(), Value::String(workflow_id.to_owned()));
    Ok(body)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_workflow_is_a_top_level_member() {
        let operation =
            ChatOperation::AddUserMessage { thread_id: "thr_1".into(), input: UserMessageInput::text("hi") };
        let body = chat_body("w", &ChatRequest { operation, metadata: Map::new() }).unwrap();
        assert_eq!(
            body,
            json!({"type": "threads.add_user_message", "workflow_id": "w", "metadata": {},
                   "params": {"thread_id": "thr_1",
                              "input": {"content": [{"type": "input_text", "text": "hi"}], "attachments": [],
                                        "quoted_text": null, "inference_options": {}}}})
        );
    }
}
