//! Texts that graph nodes send to models, as far as they are known before a run. Pure.

use serde_json::{Map, Value};

/// Tokens that a call reserves for its answer if its node sets no limit.
pub(crate) const RESERVED: u64 = 1_024;

/// Text sizes for nodes that call a model.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeTexts {
    nodes: u64,
    /// Bytes of all node texts without tags, including the prompts that they read.
    pub(crate) bytes: u64,
    /// Bytes of the node with the shortest texts, without texts that depend on a condition or an expression; `None`
    /// without a node.
    pub(crate) least: Option<u64>,
    /// The nodes' answer limits, in tokens, where set.
    limits: Vec<u64>,
    /// The lowest answer reservation among the nodes.
    pub(crate) least_limit: Option<u64>,
}

impl NodeTexts {
    /// Adds a graph's nodes.
    pub(crate) fn add(&mut self, graph: &Value, config: &Map<String, Value>) {
        let prompts = config.get("prompts").and_then(Value::as_object).into_iter().flatten();
        let prompts = prompts.map(|(name, prompt)| (&**name, sent_bytes(prompt), certain_text(prompt)));
        let prompts: Vec<(&str, u64, u64)> = prompts.collect();
        graph.get("nodes").into_iter().for_each(|nodes| self.collect(nodes, &prompts));
    }

    fn collect(&mut self, value: &Value, prompts: &[(&str, u64, u64)]) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, prompts)),
            Value::Object(fields) => {
                if fields.contains_key("model") {
                    self.add_node(fields, prompts);
                }
                let inside = ["body", "tools", "node"].into_iter().filter_map(|name| fields.get(name));
                inside.for_each(|inside| self.collect(inside, prompts));
            }
            _ => {}
        }
    }

    fn add_node(&mut self, fields: &Map<String, Value>, prompts: &[(&str, u64, u64)]) {
        const UNSENT: [&str; 9] =
            ["name", "type", "model", "base_url", "api_key", "body", "tools", "node", "items"];
        const SENT: [&str; 4] = ["system", "user", "input", "instructions"];
        self.nodes += 1;
        let limit = fields.get("max_tokens").and_then(Value::as_u64);
        self.limits.extend(limit);
        let reserved = limit.unwrap_or(RESERVED);
        self.least_limit = Some(self.least_limit.map_or(reserved, |least| least.min(reserved)));
        let mut least = 0_u64;
        for (name, value) in fields.iter().filter(|(name, _)| !UNSENT.contains(&&***name)) {
            each_text(value, &mut |text| {
                let read = prompts.iter().filter(|(name, ..)| reads(text, name)).map(|(_, bytes, _)| bytes);
                let bytes = length(&untagged(text)) + read.sum::<u64>();
                self.bytes = self.bytes.saturating_add(bytes);
                if SENT.contains(&&**name) {
                    least = least.saturating_add(certain_bytes(text, prompts));
                }
            });
        }
        self.least = Some(self.least.map_or(least, |known| known.min(least)));
    }

    /// Divides a sum over all nodes by their number, rounded up.
    pub(crate) fn mean(&self, sum: u64) -> u64 {
        sum.div_ceil(self.nodes.max(1))
    }

    /// The mean answer in tokens: each answer has `usual` tokens unless its limit is lower.
    pub(crate) fn answer(&self, usual: u64) -> u64 {
        let limited: u64 = self.limits.iter().map(|limit| usual.saturating_sub(*limit)).sum();
        usual.saturating_sub(limited / self.nodes.max(1))
    }
}

/// Bytes of all texts in a value, plus 4 for each other scalar. A `data:` text counts as an image, with at most
/// 4,000.
pub(crate) fn bytes_of(value: &Value) -> u64 {
    match value {
        Value::String(text) if text.starts_with("data:") => length(text).min(4_000),
        Value::String(text) => length(text),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| length(name) + bytes_of(value)).sum(),
        _ => 4,
    }
}

/// Bytes that a config prompt adds: its text and its demos.
fn sent_bytes(prompt: &Value) -> u64 {
    let text = prompt.get("text").unwrap_or(prompt).as_str().map_or(0, |text| length(&untagged(text)));
    text + prompt.get("demos").map_or(0, bytes_of)
}

fn each_text(value: &Value, note: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => note(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, note)),
        Value::Object(fields) => fields.values().for_each(|value| each_text(value, note)),
        _ => {}
    }
}

/// Bytes that a filled template has at least: its text without tags, plus prompts whose tag is only their path. 0
/// with a condition.
fn certain_bytes(text: &str, prompts: &[(&str, u64, u64)]) -> u64 {
    if text.contains("{%") {
        return 0;
    }
    let tags = text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
    let names = tags.filter_map(|(tag, _)| tag.trim().strip_prefix("config.prompts.")?.strip_suffix(".text"));
    let read = names.filter_map(|name| prompts.iter().find(|(known, _, _)| *known == name));
    length(&untagged(text)).saturating_add(read.map(|(_, _, bytes)| bytes).sum())
}

/// [`certain_bytes`] in a config prompt's text.
fn certain_text(prompt: &Value) -> u64 {
    prompt.get("text").and_then(Value::as_str).map_or(0, |text| certain_bytes(text, &[]))
}

/// Whether a template reads this config prompt.
fn reads(text: &str, name: &str) -> bool {
    text.match_indices("prompts.").any(|(at, mark)| {
        let rest = text.get(at + mark.len()..).and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
    })
}

/// Removes the tags from a template.
fn untagged(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        kept.push_str(before);
        let end = match after.chars().next() {
            Some('{') => "}}",
            Some('%') => "%}",
            Some('#') => "#}",
            _ => {
                kept.push('{');
                rest = after;
                continue;
            }
        };
        rest = after.split_once(end).map_or("", |(_, rest)| rest);
    }
    kept.push_str(rest);
    kept
}

fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_texts_that_are_certainly_sent_count_for_the_minimum() {
        let prompts = [("p", 80, 80)];
        for (text, bytes) in [
            ("ab {{ config.prompts.p.text }}", 83),
            ("ab {{ config.prompts.p.text if inputs.n else '' }}", 3),
            ("ab {{ config.prompts.p.text | truncate }}", 3),
            ("{% if inputs.n %}{{ config.prompts.p.text }}{% endif %}", 0),
        ] {
            assert_eq!(certain_bytes(text, &prompts), bytes, "{text}");
        }
        let nodes = json!({"nodes": [
            {"type": "llm", "model": "m", "user": "12345678", "note": "123"},
            {"type": "llm", "model": "m", "user": "123"},
        ]});
        let mut texts = NodeTexts::default();
        texts.add(&nodes, &Map::new());
        assert_eq!(texts.least, Some(3));
    }

    #[test]
    fn texts_of_an_estimate_are_without_tags() {
        for (text, kept) in [
            ("a {{ b }} c", "a  c"),
            ("{% if x %}yes{% endif %}{# note #}", "yes"),
            (r#"{"json": 1}"#, r#"{"json": 1}"#),
            ("open {{ end", "open "),
        ] {
            assert_eq!(untagged(text), kept);
        }
        assert!(
            reads("{{ config.prompts.style.text }}", "style")
                && !reads("{{ config.prompts.styles }}", "style")
        );
        assert_eq!(
            bytes_of(&json!({"ab": ["cde", 1], "f": format!("data:{}", "x".repeat(9_000))})),
            10 + 4_000
        );
    }
}
