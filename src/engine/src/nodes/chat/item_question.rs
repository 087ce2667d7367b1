//! Shared parts of `ask` and `client_tool`: a chat item asks, and its answer is the result.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::chat::ItemBody;

use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::{Answer, Question};
use crate::execute::{Call, Failure, Node};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::questions::{AnswerKey, Expiry, expired};

/// An item that asks.
pub(super) trait ItemQuestion: Send + Sync + 'static {
    /// Returns the input members that make up the item.
    fn input(&self, scope: &View) -> Result<Value, NodeError>;

    /// Returns the pending item.
    fn item(input: &Value) -> Result<ItemBody, NodeError>;

    /// Returns one line that describes the question.
    fn message(input: &Value) -> Result<Option<String>, NodeError>;

    /// Returns the JSON Schema of the answer's body, if any.
    fn answer_schema(input: &Value) -> Result<Option<Value>, NodeError>;

    /// Returns the node's result.
    fn result(answer: Answer) -> Value;

    /// Returns the part of the result that a model receives.
    fn for_model(result: Value) -> Value {
        result
    }
}

/// A node that asks with an item and waits for the answer.
pub(super) struct AsksWithItem<Q> {
    question: Q,
    key: AnswerKey,
    expiry: Expiry,
}

/// Builds the node: reads the common fields, then the question's.
pub(super) fn build<Q: ItemQuestion>(
    fields: &mut Fields<'_>,
    spec: &NodeSpec,
    check: &mut Check,
    question: impl FnOnce(&mut Fields<'_>, &mut Check) -> Option<Q>,
) -> Option<Box<dyn Node>> {
    let (key, expiry) = (AnswerKey::read(fields, spec, check), Expiry::read(fields, check));
    Some(Box::new(AsksWithItem { question: question(fields, check)?, key, expiry }))
}

#[async_trait]
impl<Q: ItemQuestion> Node for AsksWithItem<Q> {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut input = self.question.input(scope)?;
        if let Some(members) = input.as_object_mut() {
            members.insert("key".to_owned(), json!(self.key.filled(scope)?));
        }
        Ok(input)
    }

    async fn begin(&self, input: &Value, call: &Call<'_>) -> Result<Option<Value>, Failure> {
        call.count_item(&Q::item(input)?)?;
        Ok(None)
    }

    fn question(&self, input: &Value, started_at: DateTime<Utc>) -> Result<Option<Question>, NodeError> {
        Ok(Some(Question {
            key: input.get("key").and_then(Value::as_str).unwrap_or_default().to_owned(),
            message: Q::message(input)?,
            schema: Q::answer_schema(input)?,
            audience: Vec::new(),
            expires_at: self.expiry.deadline(started_at),
            item: Some(Q::item(input)?),
            continues_without: false,
        }))
    }

    async fn run(&self, _input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let answer = call.answer_to_item(self.expiry.deadline(call.started_at)).await?;
        Ok(Q::result(answer.ok_or_else(expired)?))
    }

    fn records_start(&self) -> bool {
        true
    }

    fn keeps_time(&self) -> bool {
        true
    }

    /// Later text belongs to another message.
    fn streams(&self) -> bool {
        true
    }

    async fn say_again(
        &self,
        _result: &Value,
        call: &Call<'_>,
        _input: &Result<Value, NodeError>,
    ) -> Result<(), Failure> {
        call.new_message().await;
        Ok(())
    }

    fn for_model(&self, result: Value) -> Value {
        Q::for_model(result)
    }
}
