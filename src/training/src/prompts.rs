//! Config prompts: which ones a training may rewrite, and what a rewrite must keep.

use std::collections::BTreeSet;

use engine::{Plan, PromptUse, prompts_named};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wire::FieldError;

use crate::rewrite::{FrozenSpan, PromptRules};
use crate::warning::Warning;

/// A few-shot example: a node's input and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demo {
    /// The input; a single text is the user message.
    pub inputs: Value,
    /// The answer.
    pub output: Value,
}

/// Reads a config prompt's demos and ignores invalid ones; empty without demos.
#[must_use]
pub fn read_demos(demos: Option<&Value>) -> Vec<Demo> {
    let demos = demos.and_then(Value::as_array).into_iter().flatten();
    demos.filter_map(|demo| serde_json::from_value(demo.clone()).ok()).collect()
}

/// A prompt that may be rewritten.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainablePrompt {
    /// The name in `config.prompts`.
    pub name: String,
    /// The text at the start.
    pub seed: String,
    /// The prompt's purpose, in the author's words.
    pub role: Option<String>,
    /// Constraints for every rewrite, in the author's words.
    pub constraints: Vec<String>,
    /// Rules that every rewrite must satisfy.
    pub rules: PromptRules,
    /// The demos at the start.
    pub demos: Vec<Demo>,
    /// Whether demos may be replaced, which requires that a model's instructions read the prompt.
    pub demos_trainable: bool,
}

/// The prompts with `requires_grad` that a plan node may read, sorted by name. Warns about a prompt that no node
/// reads; it is a problem at `pointer`, the prompts' place, if none is left.
pub fn trainable_prompts(
    plan: &Plan,
    config: &Map<String, Value>,
    pointer: &str,
    problems: &mut Vec<FieldError>,
    warnings: &mut Vec<Warning>,
) -> Vec<TrainablePrompt> {
    let named = named_prompts(plan, config, |_| true);
    let instructing = named_prompts(plan, config, |named| named.instructs);
    let is_named =
        |names: &Option<BTreeSet<String>>, name| names.as_ref().is_none_or(|names| names.contains(name));
    let mut trainable = Vec::new();
    for (name, prompt) in prompts(config).filter(|(_, prompt)| is_trainable(prompt)) {
        if is_named(&named, name) {
            let mut found = read(name, prompt);
            found.iter_mut().for_each(|prompt| prompt.demos_trainable &= is_named(&instructing, name));
            trainable.extend(found);
        } else {
            let message = format!("no node reads the prompt '{name}', so it stays as it is");
            warnings.push(Warning::new("prompt_unread", message));
        }
    }
    if trainable.is_empty() {
        let message = "no node reads a prompt with `requires_grad: true`";
        let problem = FieldError::new(pointer, "no_trainable_prompt", message);
        problems.push(problem.suggest(
            r#""prompts": {"style": {"text": "Be brief.", "requires_grad": true}}, and in a node {{ config.prompts.style.text }}"#,
        ));
    }
    trainable
}

/// Whether a config has trainable prompts.
pub(crate) fn has_trainable(config: &Map<String, Value>) -> bool {
    prompts(config).any(|(_, prompt)| is_trainable(prompt))
}

/// The nodes that may read one of these prompts, in graph order.
pub(crate) fn readers<'a>(plan: &'a Plan, trainable: &[TrainablePrompt]) -> Vec<&'a str> {
    let reads =
        |name: Option<&str>| name.is_none_or(|name| trainable.iter().any(|prompt| prompt.name == name));
    let uses = plan.prompts_named().iter().filter(|named| reads(named.prompt.as_deref()));
    uses.filter_map(|named| named.node.as_deref()).collect()
}

fn prompts(config: &Map<String, Value>) -> impl Iterator<Item = (&String, &Map<String, Value>)> {
    let prompts = config.get("prompts").and_then(Value::as_object).into_iter().flatten();
    prompts.filter_map(|(name, prompt)| Some((name, prompt.as_object()?)))
}

fn is_trainable(prompt: &Map<String, Value>) -> bool {
    prompt.get("requires_grad") == Some(&Value::Bool(true))
}

/// The names of the prompts that the wanted uses read, directly or through another prompt's text; `None` if any
/// prompt may be read.
fn named_prompts(
    plan: &Plan,
    config: &Map<String, Value>,
    is_wanted: impl Fn(&PromptUse) -> bool,
) -> Option<BTreeSet<String>> {
    let wanted = plan.prompts_named().iter().filter(|named| is_wanted(named));
    let mut left: Vec<String> = wanted.map(|named| named.prompt.clone()).collect::<Option<_>>()?;
    let mut named = BTreeSet::new();
    while let Some(name) = left.pop() {
        let text = config.get("prompts").and_then(|prompts| prompts.get(&name)?.get("text")?.as_str());
        if named.insert(name) {
            left.extend(prompts_named(text.unwrap_or_default()).into_iter().collect::<Option<Vec<_>>>()?);
        }
    }
    Some(named)
}

fn read(name: &str, prompt: &Map<String, Value>) -> Option<TrainablePrompt> {
    let text = |member: &str| prompt.get(member).and_then(Value::as_str).map(str::to_owned);
    let list = |member: &str| prompt.get(member).and_then(Value::as_array).into_iter().flatten();
    let seed = text("text")?;
    let constraints = match text("constraints") {
        Some(one) => vec![one],
        None => list("constraints").filter_map(Value::as_str).map(str::to_owned).collect(),
    };
    let frozen: Vec<FrozenSpan> = list("frozen_spans").filter_map(span).collect();
    let max_chars = prompt.get("max_chars").and_then(Value::as_u64);
    let rules = PromptRules::from_seed(&seed, &frozen, max_chars.and_then(|most| usize::try_from(most).ok()));
    let demos = read_demos(prompt.get("demos"));
    let demos_trainable = prompt.get("demos_trainable") == Some(&Value::Bool(true));
    Some(TrainablePrompt {
        name: name.to_owned(),
        seed,
        role: text("role"),
        constraints,
        rules,
        demos,
        demos_trainable,
    })
}

fn span(span: &Value) -> Option<FrozenSpan> {
    let marker = |name: &str| span.get(name)?.as_str().map(str::to_owned);
    match span {
        Value::String(text) => Some(FrozenSpan::Text(text.clone())),
        _ => Some(FrozenSpan::Between { start: marker("start_marker")?, end: marker("end_marker")? }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(nodes: &[(&str, &str)]) -> Plan {
        let node = |(name, text): &(&str, &str)| json!({"name": name, "type": "template", "template": text});
        let names: Vec<&str> = nodes.iter().map(|(name, _)| *name).collect();
        let ends = ["START"].iter().chain(&names).zip(names.iter().chain(&["END"]));
        let edges: Vec<Value> = ends.map(|(from, to)| json!({"from": from, "to": to})).collect();
        let nodes: Vec<Value> = nodes.iter().map(node).collect();
        let graph = json!({"format": "graph/1", "nodes": nodes, "edges": edges});
        engine::check(&graph).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    fn found(plan: &Plan, prompts: Value) -> (Vec<String>, Vec<String>, Vec<&'static str>) {
        let config = Map::from_iter([("prompts".to_owned(), prompts)]);
        let (mut problems, mut warnings) = (Vec::new(), Vec::new());
        let read = trainable_prompts(plan, &config, "/at", &mut problems, &mut warnings);
        let problems =
            problems.iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect();
        (
            read.into_iter().map(|prompt| prompt.name).collect(),
            problems,
            warnings.iter().map(|it| it.code).collect(),
        )
    }

    #[test]
    fn only_prompts_that_nodes_read_are_trained() {
        let trained = |text: &str| json!({"text": text, "requires_grad": true});
        let one = plan(&[("a", "{{ config.prompts.style.text }}")]);
        let prompts = json!({"style": trained("Be {{ config.prompts.tone.text }}."), "tone": trained("kind"),
            "unread": trained("x"), "fixed": {"text": "y"}});
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(found(&one, prompts), (names(&["style", "tone"]), vec![], vec!["prompt_unread"]));
        let fixed = json!({"style": {"text": "x"}, "unread": trained("y")});
        assert_eq!(
            found(&one, fixed),
            (vec![], vec!["/at no_trainable_prompt".into()], vec!["prompt_unread"])
        );
        // The prompt's name is known only when the template is filled.
        let any = plan(&[("a", "{{ config.prompts[inputs.name].text }}")]);
        assert_eq!(found(&any, json!({"b/c": trained("x")})), (names(&["b/c"]), vec![], vec![]));
        let whole = plan(&[("a", "{{ config | length }}")]);
        assert_eq!(found(&whole, json!({"b": trained("x")})), (names(&["b"]), vec![], vec![]));
        let other = plan(&[("a", "{{ config.limit | default(1) }}")]);
        assert_eq!(found(&other, json!({"b": trained("x")})).1, ["/at no_trainable_prompt"]);
    }

    #[test]
    fn a_prompt_declares_the_parts_that_a_rewrite_keeps() {
        let prompt = json!({"text": "Keep: <b>this</b> and {{ inputs.x }}.", "requires_grad": true, "role": "sorts",
            "constraints": ["short"], "max_chars": 50, "demos_trainable": true,
            "frozen_spans": ["Keep:", {"start_marker": "<b>", "end_marker": "</b>"}, 7]});
        let read = read("p", prompt.as_object().unwrap()).unwrap();
        assert_eq!(
            (read.role.as_deref(), read.constraints, read.demos_trainable),
            (Some("sorts"), vec!["short".to_owned()], true)
        );
        let frozen = [
            FrozenSpan::Text("Keep:".into()),
            FrozenSpan::Between { start: "<b>".into(), end: "</b>".into() },
        ];
        assert_eq!(read.rules, PromptRules::from_seed(&read.seed, &frozen, Some(50)));
    }

    #[test]
    fn demos_are_for_prompts_that_instruct_a_model() {
        let node = |system: &str, user: &str| json!({"name": "a", "type": "llm", "model": "openai/m", "system": system, "user": user});
        let graph = |node: Value| {
            json!({"format": "graph/1", "nodes": [node],
            "edges": [{"from": "START", "to": "a"}, {"from": "a", "to": "END"}]})
        };
        let prompt = |text: &str| json!({"text": text, "requires_grad": true, "demos_trainable": true});
        let prompts = json!({"style": prompt("Be {{ config.prompts.tone.text }}."), "tone": prompt("kind"), "ask": prompt("x")});
        let config = Map::from_iter([("prompts".to_owned(), prompts)]);
        let found = |node: Value| -> Vec<String> {
            let plan = engine::check(&graph(node)).unwrap_or_else(|problems| panic!("{problems:?}"));
            let all = trainable_prompts(&plan, &config, "", &mut Vec::new(), &mut Vec::new());
            all.into_iter().filter(|prompt| prompt.demos_trainable).map(|prompt| prompt.name).collect()
        };
        let read = |name: &str| format!("{{{{ config.prompts.{name}.text }}}}");
        assert_eq!(found(node(&read("style"), &read("ask"))), ["style", "tone"]);
        assert_eq!(found(node("x", &read("style"))), [""; 0]);
    }

    #[test]
    fn prompt_readers_are_the_nodes_that_name_it() {
        let plan =
            plan(&[("a", "{{ config.prompts.other.text }}"), ("b", "{{ config.prompts.style.text }}")]);
        let prompt = json!({"text": "x"});
        let style = read("style", prompt.as_object().unwrap()).unwrap();
        assert_eq!(readers(&plan, &[style]), ["b"]);
    }
}
