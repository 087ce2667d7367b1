//! Assembles an answer from content blocks: events open, fill and close them.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::transport::{Assembly, Call, DocumentError, MOST_CALLS, read_part};
use crate::{ModelAnswer, Usage};

/// Maximum content blocks per answer.
const MOST_BLOCKS: usize = 1_024;

/// A partially received answer.
pub(super) struct AnthropicAnswer {
    /// The tool whose arguments are the answer.
    answers_by: Option<String>,
    blocks: Vec<Block>,
    usage: Option<TokenCounts>,
    stop_reason: Option<String>,
    model: Option<String>,
    begun: bool,
    over: bool,
}

/// A content block.
struct Block {
    index: u64,
    /// The block as opened; `filled` and `signature` collect its content.
    opened: Value,
    filled: String,
    signature: String,
}

/// A stream event. A complete answer has the type `message` and its fields at the top level.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    index: u64,
    #[serde(default)]
    message: Option<AnswerMessage>,
    #[serde(default)]
    content_block: Option<Box<RawValue>>,
    #[serde(default)]
    delta: Delta,
    #[serde(default)]
    usage: Option<TokenCounts>,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct AnswerMessage {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    content: Vec<Box<RawValue>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Option<TokenCounts>,
}

#[derive(Deserialize, Default)]
struct Delta {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    partial_json: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
    #[serde(default)]
    stop_reason: Option<String>,
}

/// Later counts replace earlier ones, field by field.
#[derive(Deserialize, Default, Clone, Copy)]
struct TokenCounts {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
}

impl AnthropicAnswer {
    pub(super) fn new(answers_by: Option<String>) -> Self {
        let (blocks, usage, stop_reason, model) = (Vec::new(), None, None, None);
        Self { answers_by, blocks, usage, stop_reason, model, begun: false, over: false }
    }

    fn read_message(&mut self, message: AnswerMessage) -> Result<String, DocumentError> {
        self.begun = true;
        self.model = message.model.or(self.model.take());
        self.stop_reason = message.stop_reason.or(self.stop_reason.take());
        self.count(message.usage);
        let mut text = String::new();
        for (index, block) in (0_u64..).zip(message.content) {
            text.push_str(&self.open(index, Some(&block))?);
        }
        Ok(text)
    }

    fn count(&mut self, counted: Option<TokenCounts>) {
        let Some(counted) = counted else { return };
        let before = self.usage.unwrap_or_default();
        self.usage = Some(TokenCounts {
            input_tokens: counted.input_tokens.or(before.input_tokens),
            output_tokens: counted.output_tokens.or(before.output_tokens),
            cache_read_input_tokens: counted.cache_read_input_tokens.or(before.cache_read_input_tokens),
            cache_creation_input_tokens: counted
                .cache_creation_input_tokens
                .or(before.cache_creation_input_tokens),
        });
    }

    /// Opens a block. In a complete answer, the block already has its content.
    fn open(&mut self, index: u64, opened: Option<&RawValue>) -> Result<String, DocumentError> {
        let opened = opened.map_or(Ok(Value::Null), |opened| read_part(opened, called))?;
        if self.blocks.len() >= MOST_BLOCKS {
            return Err(DocumentError::Garbage(format!("the answer has more than {MOST_BLOCKS} parts")));
        }
        let filled = match opened.get("type").and_then(Value::as_str) {
            Some("text") => opened.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
            Some("thinking") => opened.get("thinking").and_then(Value::as_str).unwrap_or_default().to_owned(),
            // A stream opens a call with an empty object and sends the input in pieces.
            Some("tool_use") => match opened.get("input") {
                Some(Value::Object(input)) if !input.is_empty() => json!(input).to_string(),
                _ => String::new(),
            },
            _ => String::new(),
        };
        let signature = opened.get("signature").and_then(Value::as_str).unwrap_or_default().to_owned();
        let block = Block { index, opened, filled, signature };
        let said = if self.speaks(&block) { block.filled.clone() } else { String::new() };
        self.blocks.push(block);
        Ok(said)
    }

    fn fill(&mut self, index: u64, delta: &Delta) -> Result<String, DocumentError> {
        let Some(at) = self.blocks.iter().rposition(|block| block.index == index) else {
            return Err(DocumentError::Garbage(
                "the answer writes to a part that it has not opened".to_owned(),
            ));
        };
        let piece = match delta.kind.as_str() {
            "text_delta" => &delta.text,
            "input_json_delta" => &delta.partial_json,
            "thinking_delta" => &delta.thinking,
            _ => "",
        };
        if let Some(block) = self.blocks.get_mut(at) {
            block.filled.push_str(piece);
            block.signature.push_str(&delta.signature);
        }
        let speaks = self.blocks.get(at).is_some_and(|block| self.speaks(block));
        Ok(if speaks { piece.to_owned() } else { String::new() })
    }

    /// Whether the block's content is the answer's text.
    fn speaks(&self, block: &Block) -> bool {
        match block.kind() {
            "text" => self.answers_by.is_none(),
            "tool_use" => self.answers_by.as_deref() == Some(block.name()),
            _ => false,
        }
    }
}

/// The name of the tool that a block calls.
fn called(block: &Value) -> Option<&str> {
    let is_call = block.get("type").is_some_and(|kind| kind == "tool_use");
    block.get("name").filter(|_| is_call)?.as_str()
}

impl Block {
    fn member(&self, name: &str) -> &str {
        self.opened.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn kind(&self) -> &str {
        self.member("type")
    }

    fn name(&self) -> &str {
        self.member("name")
    }

    /// The block as a complete answer would contain it.
    fn whole(&self) -> Value {
        let mut whole = self.opened.clone();
        let Some(members) = whole.as_object_mut() else { return whole };
        let filled = Value::String(self.filled.clone());
        match self.kind() {
            "text" => members.insert("text".to_owned(), filled),
            "thinking" => {
                members.insert("signature".to_owned(), json!(self.signature));
                members.insert("thinking".to_owned(), filled)
            }
            "tool_use" => {
                let input = serde_json::from_str(&self.filled).unwrap_or_else(|_| json!({}));
                members.insert("input".to_owned(), input)
            }
            _ => None,
        };
        whole
    }
}

impl Assembly for AnthropicAnswer {
    fn take(&mut self, data: &str) -> Result<String, DocumentError> {
        let event: Event = serde_json::from_str(data).map_err(DocumentError::unreadable)?;
        match event.kind.as_str() {
            "message_start" => {
                event.message.map_or_else(|| Ok(String::new()), |message| self.read_message(message))
            }
            "message" => {
                self.over = true;
                self.read_message(serde_json::from_str(data).map_err(DocumentError::unreadable)?)
            }
            "content_block_start" => self.open(event.index, event.content_block.as_deref()),
            "content_block_delta" => self.fill(event.index, &event.delta),
            "message_delta" => {
                self.stop_reason = event.delta.stop_reason.or(self.stop_reason.take());
                self.count(event.usage);
                Ok(String::new())
            }
            "message_stop" => {
                self.over = true;
                Ok(String::new())
            }
            "error" => Err(DocumentError::reported(&event.error)),
            // `ping`, and future event types, which the protocol requires clients to ignore.
            _ => Ok(String::new()),
        }
    }

    fn is_complete(&self) -> bool {
        self.stop_reason.is_some()
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn is_empty(&self) -> bool {
        !self.begun
    }

    fn finish(self) -> Result<ModelAnswer, String> {
        if !self.begun {
            return Err("the answer is empty".to_owned());
        }
        let mut text = String::new();
        let mut tool_calls = Vec::new();
        let mut answered = None;
        for block in &self.blocks {
            match block.kind() {
                "text" if self.answers_by.is_none() => text.push_str(&block.filled),
                "tool_use" if self.speaks(block) => answered = Some(block.filled.clone()),
                "tool_use" => {
                    let call = Call {
                        index: None,
                        id: block.member("id").to_owned(),
                        name: block.name().to_owned(),
                        arguments: block.filled.clone(),
                    };
                    tool_calls.push(call.finish(tool_calls.len())?);
                }
                _ => {}
            }
            if tool_calls.len() > MOST_CALLS {
                return Err(format!("the answer calls more than {MOST_CALLS} tools"));
            }
        }
        let answered_by_tool = answered.is_some() && tool_calls.is_empty();
        if let Some(answered) = answered {
            text = answered;
        } else if self.answers_by.is_some() && tool_calls.is_empty() {
            // The model wrote text instead of calling the tool; the caller detects that the text is not JSON.
            text = self.blocks.iter().filter(|b| b.kind() == "text").map(|b| b.filled.as_str()).collect();
        }
        let thought = self.blocks.iter().any(|b| matches!(b.kind(), "thinking" | "redacted_thinking"));
        let carry = thought.then(|| self.blocks.iter().map(Block::whole).collect());
        let finish_reason = self.stop_reason.map(|reason| match reason.as_str() {
            "end_turn" | "stop_sequence" => "stop".to_owned(),
            "tool_use" if answered_by_tool => "stop".to_owned(),
            "tool_use" => "tool_calls".to_owned(),
            "max_tokens" | "model_context_window_exceeded" => "length".to_owned(),
            "refusal" => "content_filter".to_owned(),
            _ => reason,
        });
        let usage = self.usage.map(|counted| {
            let cached = counted.cache_read_input_tokens.unwrap_or(0);
            let kept = counted.cache_creation_input_tokens.unwrap_or(0);
            Usage {
                input_tokens: counted.input_tokens.unwrap_or(0).saturating_add(cached).saturating_add(kept),
                output_tokens: counted.output_tokens.unwrap_or(0),
                cached_tokens: cached,
            }
        });
        Ok(ModelAnswer { text, tool_calls, usage, finish_reason, model: self.model, carry })
    }
}
