//! `code`: calls a function in one of the graph's modules, or runs a short piece of code, in the sandbox.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use sandbox::{Entry, Language, Limits, Modules};
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::functions::fault;
use crate::graph::NodeSpec;
use crate::graph::fields::{Fields, listed, nearest};
use crate::graph::modules;
use crate::template::fill;

pub(crate) const TYPE: NodeType = NodeType {
    name: "code",
    group: "code",
    summary: "Runs Python or JavaScript in a sandbox: a function of one of the graph's modules, or a short piece of code.",
    effect: Effect::Pure,
    secrets: &[],
    schema,
    result: "The value that the code returned.",
    members: &[],
    example: || {
        json!({"name": "total", "type": "code", "language": "python",
               "source": "sum([line['price'] for line in args['lines']])", "args": {"lines": "{{ inputs.lines }}"}})
    },
    build,
};

struct Code {
    language: Language,
    modules: Arc<Modules>,
    entry: Entry,
    args: Value,
    limits: Limits,
}

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "module": {"type": "string", "description": "A module of the graph, with its extension: `metrics.py`, `shape.js`."},
        "function": {"type": "string", "description": "The function of `module` to call, with `args` as its only argument."},
        "source": {"type": "string", "description": "Standalone code, at most 256 KiB. The result is the return value of its function `main` for `args`, or, without `main`, the value of its last expression, which may use `args`."},
        "language": {"enum": Language::NAMES, "description": "The language of `source`."},
        "args": {"description": "The argument of the code; strings inside are templates.", "default": {}}},
        "oneOf": [{"required": ["module", "function"]}, {"required": ["source", "language"]}]})
}

fn build(fields: &mut Fields<'_>, spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let args = fields.value("args").cloned().unwrap_or_else(|| json!({}));
    let good = check.templates(&args, &fields.at("args"));
    let limits = limits(spec, check);
    let has = |fields: &mut Fields<'_>, name| fields.value(name).is_some();
    let (named, alone) =
        (has(fields, "module") | has(fields, "function"), has(fields, "source") | has(fields, "language"));
    let (language, entry) = match (named, alone) {
        (true, false) => of_module(fields, check)?,
        (false, true) => of_source(fields, check)?,
        (both, _) => {
            let (code, message) = if both {
                ("exclusive", "has either 'module' and 'function', or 'source' and 'language'")
            } else {
                ("required", "needs 'module' and 'function', or 'source' and 'language'")
            };
            let problem = FieldError::new(fields.at("source"), code, message);
            check.note(problem.suggest(r#""module": "metrics.py", "function": "exact""#));
            return None;
        }
    };
    let modules = match (&entry, language) {
        (Entry::Function { module, .. }, Language::Python) => modules::one(&check.modules, module),
        (Entry::Source(_), Language::Python) => Arc::default(),
        (_, Language::Javascript) => Arc::clone(&check.scripts),
    };
    if good { Some(Box::new(Code { language, modules, entry, args, limits: limits? })) } else { None }
}

/// A node may extend the default run time, but only up to a maximum.
fn limits(spec: &NodeSpec, check: &mut Check) -> Option<Limits> {
    let usual = Limits::default();
    let time = spec.common.timeout.unwrap_or(usual.time);
    if time <= Limits::LONGEST {
        return Some(Limits { time, ..usual });
    }
    let longest = Limits::LONGEST.as_secs();
    let message = format!("code runs for at most {longest} s");
    let problem = FieldError::new(format!("{}/timeout_seconds", spec.pointer), "range", message);
    check.note(problem.suggest(format!("\"timeout_seconds\": {longest}")));
    None
}

fn of_module(fields: &mut Fields<'_>, check: &mut Check) -> Option<(Language, Entry)> {
    let module = fields.text("module", &mut check.problems);
    let function = fields.text("function", &mut check.problems);
    let (module, function) = (module?, function?);
    if !check.modules.contains_key(module) {
        let names = || check.modules.keys().map(String::as_str);
        let problem =
            FieldError::new(fields.at("module"), "unknown_module", format!("unknown module '{module}'"));
        let problem = match nearest(module, names()) {
            Some(near) => problem.suggest(format!("did you mean '{near}'?")),
            None if check.modules.is_empty() => {
                problem.suggest(format!("\"modules\": {{\"{}\": \"…\"}}", module.replace(['"', '\\'], "")))
            }
            None => problem.suggest(listed("modules", names())),
        };
        check.note(problem);
        return None;
    }
    let entry = Entry::Function { module: module.to_owned(), function: function.to_owned() };
    Some((Language::of_module(module)?, entry))
}

fn of_source(fields: &mut Fields<'_>, check: &mut Check) -> Option<(Language, Entry)> {
    let source = fields.text("source", &mut check.problems);
    if fields.value("language").is_none() {
        let problem = FieldError::new(fields.at("language"), "required", "is required");
        check.note(problem.suggest(r#""language": "python""#));
    }
    let language = fields.word("language", &Language::NAMES, &mut check.problems).and_then(Language::named);
    let source = source?;
    if source.len() > modules::LONGEST {
        check.note(modules::too_long(&fields.at("source"), source.len()));
        return None;
    }
    Some((language?, Entry::Source(source.to_owned())))
}

#[async_trait]
impl Node for Code {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        fill(&self.args, scope)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let wanted = sandbox::Call {
            language: self.language,
            modules: Arc::clone(&self.modules),
            entry: self.entry.clone(),
            args: input,
            limits: self.limits,
        };
        let outcome = call.sandbox().call(wanted).await.map_err(fault)?;
        if !outcome.logs.is_empty() {
            tracing::debug!(node = call.path(), printed = outcome.logs, "code output");
        }
        Ok(outcome.value)
    }

    /// The sandbox counts from the start of the code; the wait for a worker does not count against it.
    fn keeps_time(&self) -> bool {
        true
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.limits.time)
    }
}
