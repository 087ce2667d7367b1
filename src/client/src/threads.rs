//! Chat threads: pages, titles, deletion and feedback.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Map;
use wire::chat::{ChatOperation, ChatRequest, FeedbackKind, Page, PageRequest, Thread, ThreadItem};
use wire::operations::chat;

use crate::ClientError;
use crate::chat::chat_body;
use crate::client::{Bearer, Client};

/// Each call uses `POST /api/chat` and fails as [`crate::Answer::ok`] does.
impl Client {
    /// `threads.get_by_id`: a thread with its first 20 items.
    ///
    /// # Errors
    /// See above.
    pub async fn thread(&self, workflow_id: &str, thread_id: &str) -> Result<Thread, ClientError> {
        self.operate(workflow_id, ChatOperation::GetThread { thread_id: thread_id.to_owned() }).await
    }

    /// `threads.list`: the visitor's threads with a workflow, without their items.
    ///
    /// # Errors
    /// See above.
    pub async fn threads(&self, workflow_id: &str, page: &PageRequest) -> Result<Page<Thread>, ClientError> {
        self.operate(workflow_id, ChatOperation::ListThreads(page.clone())).await
    }

    /// `items.list`: a page with a thread's items.
    ///
    /// # Errors
    /// See above.
    pub async fn items(
        &self,
        workflow_id: &str,
        thread_id: &str,
        page: &PageRequest,
    ) -> Result<Page<ThreadItem>, ClientError> {
        let (thread_id, page) = (thread_id.to_owned(), page.clone());
        self.operate(workflow_id, ChatOperation::ListItems { thread_id, page }).await
    }

    /// `threads.update`: changes a thread's title.
    ///
    /// # Errors
    /// See above.
    pub async fn rename_thread(
        &self,
        workflow_id: &str,
        thread_id: &str,
        title: &str,
    ) -> Result<Thread, ClientError> {
        let (thread_id, title) = (thread_id.to_owned(), title.to_owned());
        self.operate(workflow_id, ChatOperation::UpdateThread { thread_id, title }).await
    }

    /// `threads.delete`: deletes a thread and stops its turns.
    ///
    /// # Errors
    /// See above.
    pub async fn delete_thread(&self, workflow_id: &str, thread_id: &str) -> Result<(), ClientError> {
        let operation = ChatOperation::DeleteThread { thread_id: thread_id.to_owned() };
        self.operate::<IgnoredAny>(workflow_id, operation).await.map(drop)
    }

    /// `items.feedback`: records the visitor's opinion about items, with a reason; the latest one counts.
    ///
    /// # Errors
    /// See above.
    pub async fn feedback(
        &self,
        workflow_id: &str,
        thread_id: &str,
        item_ids: &[String],
        kind: FeedbackKind,
        comment: Option<&str>,
    ) -> Result<(), ClientError> {
        let (thread_id, item_ids) = (thread_id.to_owned(), item_ids.to_vec());
        let comment = comment.map(str::to_owned);
        let operation = ChatOperation::ItemFeedback { thread_id, item_ids, kind, comment };
        self.operate::<IgnoredAny>(workflow_id, operation).await.map(drop)
    }

    async fn operate<T: DeserializeOwned>(
        &self,
        workflow_id: &str,
        operation: ChatOperation,
    ) -> Result<T, ClientError> {
        let body = chat_body(workflow_id, &ChatRequest { operation, metadata: Map::new() })?;
        let request = self.operation(&chat::CHAT, &[], Bearer::Session)?.json(&body);
        self.answer(request).await?.ok()
    }
}
