//! Checks a graph's code: it must parse and define the functions that nodes call.
//!
//! Parsing user code is as risky as running it, so the sandbox does it. This pass waits for the sandbox and runs
//! after the checks that do not need it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sandbox::{Language, Sandbox, SandboxError, Source, Surveyed, SyntaxProblem};
use serde_json::{Map, Value};
use wire::FieldError;

use super::{Plan, place, providers};
use crate::Problems;
use crate::graph::fields::{escape, listed, nearest};
use crate::graph::modules::LONGEST;
use crate::graph::parse::read_graph;
use crate::graph::{Graph, modules};
use crate::meter;

/// Maximum time of a check without the code.
const TIME: Duration = Duration::from_secs(5);

/// As [`super::check`], but also checks code and model providers.
///
/// # Errors
/// [`SandboxError`] if no worker can check the code now.
pub async fn check_all(document: &Value, sandbox: &Sandbox) -> Result<Result<Plan, Problems>, SandboxError> {
    let own = Arc::new(document.clone());
    let checked = sandbox.compute(move || meter::within(TIME, || super::check(&own))).await;
    let Some(checked) = checked else { return Err(SandboxError::Crashed) };
    let found = check_code(document, sandbox).await?;
    Ok(match checked {
        Ok(plan) if found.is_empty() => Ok(plan),
        checked => {
            let mut problems = checked.err().unwrap_or_default();
            problems.extend(found);
            problems.sort_by_cached_key(|problem| (place(&problem.pointer), problem.code.clone()));
            Err(problems)
        }
    })
}

async fn check_code(document: &Value, sandbox: &Sandbox) -> Result<Problems, SandboxError> {
    // Other problems have been reported already.
    let Some(graph) = read_graph(document, &mut Vec::new()) else { return Ok(Vec::new()) };
    let mut pass = Pass { sandbox, graph: &graph, problems: Vec::new(), names: BTreeMap::new() };
    let stopped = pass.modules().await? || pass.nodes().await?;
    pass.problems.extend(providers::check(&graph));
    if stopped {
        tracing::debug!("failed to check the code of a graph completely");
    }
    Ok(pass.problems)
}

struct Pass<'a> {
    sandbox: &'a Sandbox,
    graph: &'a Graph,
    problems: Problems,
    /// Functions of the valid modules, by module name.
    names: BTreeMap<&'a str, Vec<String>>,
}

/// The result of checking one piece of code.
enum SurveyResult {
    Sound(Surveyed),
    Unsound,
    /// The check exceeded its limits; the next one would take as long.
    Stopped,
}

impl<'a> Pass<'a> {
    /// Checks the modules. Returns whether to skip the rest.
    async fn modules(&mut self) -> Result<bool, SandboxError> {
        for name in self.graph.modules.keys() {
            let Some(language) = Language::of_module(name) else { continue };
            let pointer = format!("/modules/{}", escape(name));
            match self.survey(language, Source::Module(name.clone()), pointer, name).await? {
                SurveyResult::Sound(surveyed) => {
                    self.names.insert(name, surveyed.names);
                }
                SurveyResult::Unsound => {}
                SurveyResult::Stopped => return Ok(true),
            }
        }
        Ok(false)
    }

    async fn nodes(&mut self) -> Result<bool, SandboxError> {
        for node in &self.graph.nodes {
            let (kind, members, pointer) = match node.fields.get("body") {
                Some(Value::Object(body)) if node.kind == "for_each" => {
                    let kind = body.get("type").and_then(Value::as_str).unwrap_or_default();
                    (kind, body, format!("{}/body", node.pointer))
                }
                _ => (node.kind.as_str(), &node.fields, node.pointer.clone()),
            };
            if kind == "code" && self.node(members, &pointer).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn node(&mut self, members: &Map<String, Value>, pointer: &str) -> Result<bool, SandboxError> {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        if let (Some(source), Some(language)) = (text("source"), text("language").and_then(Language::named))
            && source.len() <= LONGEST
        {
            let pointer = format!("{pointer}/source");
            let found =
                self.survey(language, Source::Alone(source.to_owned()), pointer, "the source").await?;
            return Ok(matches!(found, SurveyResult::Stopped));
        }
        if let (Some(module), Some(function)) = (text("module"), text("function"))
            && let Some(names) = self.names.get(module)
            && !names.iter().any(|name| name == function)
        {
            let known = || names.iter().map(String::as_str);
            let message = format!("'{module}' has no function '{function}'");
            let problem = FieldError::new(format!("{pointer}/function"), "unknown_function", message);
            self.problems.push(match nearest(function, known()) {
                Some(near) => problem.suggest(format!("did you mean '{near}'?")),
                None if names.is_empty() && module.ends_with(".js") => {
                    problem.suggest(format!("export function {}(args) {{ … }}", simple(function)))
                }
                None if names.is_empty() => problem.suggest(format!("def {}(args): …", simple(function))),
                None => problem.suggest(listed("functions", known())),
            });
        }
        Ok(false)
    }

    async fn survey(
        &mut self,
        language: Language,
        source: Source,
        pointer: String,
        what: &str,
    ) -> Result<SurveyResult, SandboxError> {
        let modules = match language {
            Language::Javascript => modules::for_language(&self.graph.modules, language),
            // The list of other modules shows which ones it cannot import.
            Language::Python => match &source {
                Source::Module(_) => modules::for_language(&self.graph.modules, language),
                Source::Alone(_) => Arc::default(),
            },
        };
        match self.sandbox.survey(language, modules, source).await {
            Ok(Ok(surveyed)) => Ok(SurveyResult::Sound(surveyed)),
            Ok(Err(problem)) => {
                self.problems.push(said(pointer, problem, what));
                Ok(SurveyResult::Unsound)
            }
            Err(
                error @ (SandboxError::Busy { .. }
                | SandboxError::QueueFull { .. }
                | SandboxError::Unavailable(_)),
            ) => Err(error),
            Err(error) => {
                let problem = FieldError::new(pointer, "load", format!("it cannot be loaded: {error}"));
                self.problems
                    .push(problem.suggest("put the work into functions; the module should only define them"));
                Ok(SurveyResult::Stopped)
            }
        }
    }
}

fn said(pointer: String, problem: SyntaxProblem, what: &str) -> FieldError {
    let SyntaxProblem { message, line, column } = problem;
    let place = match (line, column) {
        (Some(line), Some(column)) => format!(" (line {line}, column {column})"),
        (Some(line), None) => format!(" (line {line})"),
        (None, _) => String::new(),
    };
    let message = message.replace('\n', " ");
    let hint = match line {
        Some(line) => format!("fix line {line} of {what}"),
        None => format!("fix {what}"),
    };
    FieldError::new(pointer, "syntax", format!("{message}{place}")).suggest(hint)
}

/// A function name that is safe to show in a suggestion.
fn simple(name: &str) -> &str {
    let plain =
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if plain { name } else { "main" }
}
