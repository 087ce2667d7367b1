//! The names visible in templates.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use minijinja::value::{Enumerator, Object, ObjectRepr, Serde};
use minijinja::{Error, ErrorKind, Value as View};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::frame::Frame;
use super::reads::PromptReads;
use crate::channel::Channel;
use crate::limits::{LARGEST, size, too_large};
use crate::template::functions::{date, ids};
use crate::template::{as_text, fill, has_holes, overlay};
use crate::{NodeError, Plan, meter};

/// Scope bytes above which templates are filled outside the actors.
const HEAVY: usize = 256 << 10;

/// The names visible in one graph's templates.
pub(super) struct Scope {
    fixed: BTreeMap<&'static str, View>,
    config: View,
    /// Config prompts whose text is itself a template.
    prompts: Option<View>,
    results: BTreeMap<String, View>,
    channels: Vec<ChannelState>,
    bytes: usize,
    /// The value of `now()`: the end of the last step. It comes from the journal, so it is the same after a resume.
    now: DateTime<Utc>,
}

/// A channel and its value.
struct ChannelState {
    channel: Channel,
    value: Value,
    view: View,
}

impl Scope {
    pub(super) fn new(plan: &Plan, frame: &Frame) -> Self {
        let input = &frame.input;
        let messages = input.messages_at(frame.step.unwrap_or(1));
        let fixed = BTreeMap::from([
            ("inputs", View::from(Serde(&input.inputs))),
            ("messages", View::from(Serde(messages))),
            ("run", View::from(Serde(&input.run))),
        ]);
        let held = |channel: &Channel| {
            let (channel, value) = (channel.clone(), channel.initial.clone());
            ChannelState { channel, view: View::from(Serde(&value)), value }
        };
        let channels = plan.channels.iter().map(held).collect();
        let configured = input.config.iter().map(|(name, value)| name.len() + size(value)).sum::<usize>();
        let bytes = size(frame.inputs()) + messages.iter().map(size).sum::<usize>() + configured;
        let (config, prompts) = (View::from(Serde(&input.config)), live_prompts(&input.config));
        Self { fixed, config, prompts, results: BTreeMap::new(), channels, bytes, now: frame.now }
    }

    /// Sets the thread as all further steps read it.
    pub(super) fn set_messages(&mut self, messages: &[Value]) {
        self.bytes += messages.iter().map(size).sum::<usize>();
        self.fixed.insert("messages", View::from(Serde(messages)));
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        self.now
    }

    /// Moves the clock to the end of an attempt, if that is later.
    pub(super) fn ended(&mut self, at: DateTime<Utc>) {
        self.now = self.now.max(at);
    }

    pub(super) fn insert(&mut self, node: &str, result: &Value) {
        self.bytes += size(result);
        self.results.insert(node.to_owned(), View::from(Serde(result)));
    }

    pub(super) fn result(&self, node: &str) -> Option<Value> {
        self.results.get(node).and_then(|view| serde_json::to_value(view).ok())
    }

    /// Writes to a channel by its rule.
    pub(super) fn write(&mut self, channel: &str, write: Value) -> Result<(), NodeError> {
        self.change(channel, write, |channel, before, write| channel.write(before, write))
    }

    /// Sets a channel's value, regardless of its rule.
    pub(super) fn set(&mut self, channel: &str, value: Value) -> Result<(), NodeError> {
        self.change(channel, value, |_, _, value| Ok(value))
    }

    fn change(
        &mut self,
        channel: &str,
        write: Value,
        rule: impl FnOnce(&Channel, Value, Value) -> Result<Value, String>,
    ) -> Result<(), NodeError> {
        let found = self.channels.iter_mut().find(|held| held.channel.name == channel);
        let Some(held) = found else {
            return Err(NodeError::failed(format!("unknown channel 'state.{channel}'")));
        };
        self.bytes += size(&write);
        let before = std::mem::take(&mut held.value);
        held.value = rule(&held.channel, before, write).map_err(NodeError::failed)?;
        let size = size(&held.value);
        if size > LARGEST {
            return Err(too_large(&format!("state.{channel} would hold {size} bytes")));
        }
        held.view = View::from(Serde(&held.value));
        Ok(())
    }

    /// Whether filling a template may take long.
    pub(super) fn is_heavy(&self) -> bool {
        self.bytes > HEAVY
    }

    pub(super) fn view(&self) -> View {
        let results = View::from_pairs(self.results.iter().map(|(name, view)| (name.as_str(), view.clone())));
        let state = self.channels.iter().map(|held| (held.channel.name.as_str(), held.view.clone()));
        let state = View::from_pairs(state);
        let fixed = self.fixed.iter().map(|(name, view)| (*name, view.clone()));
        let named = [
            ("results", results),
            ("state", state),
            ("config", self.config.clone()),
            ("now", date::now(self.now)),
            ("today", date::today(self.now)),
            ("uuid", ids::refused()),
        ];
        let plain = View::from_pairs(fixed.chain(named));
        let Some(prompts) = &self.prompts else { return plain };
        // A prompt's text is filled with the whole scope, once: inside it, prompts are unfilled.
        let filled = Mutex::default();
        let prompts = View::from_object(Prompts { written: prompts.clone(), scope: plain.clone(), filled });
        let config = overlay(&self.config, View::from_pairs([("prompts", prompts)]));
        overlay(&plain, View::from_pairs([("config", config)]))
    }
}

fn live_prompts(config: &Map<String, Value>) -> Option<View> {
    let prompts = config.get("prompts")?;
    let texts = prompts.as_object()?.values().filter_map(|prompt| prompt.get("text")?.as_str());
    texts.into_iter().any(has_holes).then(|| View::from(Serde(prompts)))
}

/// `config.prompts`, whose texts are filled on first read.
#[derive(Debug)]
pub(super) struct Prompts {
    written: View,
    scope: View,
    /// Prompts already read: each is filled once, however often a template reads it.
    filled: Mutex<BTreeMap<String, Filled>>,
}

/// A prompt with a filled text.
#[derive(Debug, Clone)]
struct Filled {
    text: View,
    /// The prompts that the text reads.
    reads: Vec<String>,
}

impl Prompts {
    fn fill(&self, name: &str, text: &str) -> Filled {
        let reads = PromptReads::default();
        let text = match fill(&Value::String(text.to_owned()), &reads.recording(&self.scope)) {
            Ok(filled) => View::from(as_text(&filled)),
            // The error fails the node that uses the prompt.
            Err(error) => {
                let message = format!("the prompt '{name}': {}", error.message);
                View::from(Error::new(ErrorKind::InvalidOperation, message))
            }
        };
        Filled { text, reads: reads.names() }
    }

    /// Returns the prompts that this prompt's text has read.
    pub(super) fn read_by(&self, name: &View) -> Vec<String> {
        let filled = self.filled.lock();
        name.as_str().and_then(|name| filled.get(name)).map(|filled| filled.reads.clone()).unwrap_or_default()
    }
}

impl Object for Prompts {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, name: &View) -> Option<View> {
        let prompt = self.written.get_item(name).ok().filter(|prompt| !prompt.is_undefined())?;
        let Some(text) = prompt.get_attr("text").ok().filter(|text| text.as_str().is_some_and(has_holes))
        else {
            return Some(prompt);
        };
        let name = name.as_str().unwrap_or_default();
        let known = self.filled.lock().get(name).cloned();
        let filled = known.unwrap_or_else(|| {
            let filled = self.fill(name, text.as_str().unwrap_or_default());
            // Interrupted work is repeated.
            if meter::excess().is_none() {
                self.filled.lock().insert(name.to_owned(), filled.clone());
            }
            filled
        });
        Some(overlay(&prompt, View::from_pairs([("text", filled.text)])))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.written.try_iter() {
            Ok(names) => Enumerator::Values(names.collect()),
            Err(_) => Enumerator::Empty,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{RunInfo, RunInput};

    #[test]
    fn a_large_config_makes_the_scope_heavy() {
        let graph = json!({"format": "graph/1", "nodes": [{"name": "n", "type": "template", "template": "x"}],
                           "edges": [{"from": "START", "to": "n"}, {"from": "n", "to": "END"}]});
        let plan = crate::check(&graph).unwrap_or_else(|problems| panic!("{problems:?}"));
        let is_heavy = |bytes: usize| {
            let (id, workflow_id) = ("run_1".to_owned(), "wf_1".to_owned());
            let run = RunInfo { id, workflow_id, thread_id: None, trigger: "api".to_owned() };
            let config = Map::from_iter([("big".to_owned(), json!("x".repeat(bytes)))]);
            let (messages, lives) = (Vec::new(), Vec::new());
            let input =
                RunInput { inputs: json!({}), messages, config, run, lives, deadline: None, patch: None };
            Scope::new(&plan, &Frame::outermost(DateTime::UNIX_EPOCH, input)).is_heavy()
        };
        assert!(!is_heavy(1_000));
        assert!(is_heavy(HEAVY));
    }
}
