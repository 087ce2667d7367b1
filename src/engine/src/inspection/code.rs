//! Checks a graph's code: it must parse and define the functions that nodes call.
//!
//! Parsing user code is as risky as running it, so the sandbox does it. This pass waits for the sandbox and runs
//! after the checks that do not need it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sandbox::{Language, Sandbox, SandboxError, Source, Surveyed, SyntaxProblem};
use serde_json::{Map, Value};
use wire::FieldError;

use super::Deadline;
use crate::Problems;
use crate::graph::fields::{escape, listed, nearest};
use crate::graph::modules::LONGEST;
use crate::graph::{Graph, modules};
use crate::meter;

/// Checks a graph's code until the deadline.
///
/// # Errors
/// [`SandboxError`] if no worker can check the code now.
pub(super) async fn check(
    graph: Graph,
    sandbox: &Sandbox,
    deadline: Deadline,
) -> Result<Problems, SandboxError> {
    let mut pass =
        Pass { sandbox, deadline, graph: &graph, problems: Problems::new(), names: BTreeMap::new() };
    let stopped = pass.modules().await? || pass.sources().await?;
    if stopped {
        tracing::debug!("code check stopped early; function names are not checked");
    }
    let Pass { mut problems, names, .. } = pass;
    if stopped || names.is_empty() {
        return Ok(problems);
    }
    // A module may define many functions, and many nodes may call one that is missing.
    let work = move |left| {
        meter::within(left, || {
            let missing = missing_functions(&graph, &names);
            if meter::excess().is_none() { missing } else { vec![deadline.too_slow("")] }
        })
    };
    match sandbox.compute_within(deadline.left(), work).await {
        Ok(missing) => problems.extend(missing),
        Err(SandboxError::Timeout(_)) => problems.push(deadline.too_slow("")),
        Err(error) => return Err(error),
    }
    Ok(problems)
}

struct Pass<'a> {
    sandbox: &'a Sandbox,
    deadline: Deadline,
    graph: &'a Graph,
    problems: Problems,
    names: FunctionNames,
}

/// Functions of the valid modules, by module name.
type FunctionNames = BTreeMap<String, Vec<String>>;

/// The result of checking one piece of code.
enum SurveyResult {
    Sound(Surveyed),
    Unsound,
    /// The check exceeded its limits; the next one would take as long.
    Stopped,
}

impl Pass<'_> {
    /// Checks the modules. Returns whether to skip the rest.
    async fn modules(&mut self) -> Result<bool, SandboxError> {
        for name in self.graph.modules.keys() {
            let Some(language) = Language::of_module(name) else { continue };
            let pointer = format!("/modules/{}", escape(name));
            match self.survey(language, Source::Module(name.clone()), pointer, name).await? {
                SurveyResult::Sound(surveyed) => {
                    self.names.insert(name.clone(), surveyed.names);
                }
                SurveyResult::Unsound => {}
                SurveyResult::Stopped => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Checks the nodes' own code. Returns whether it stopped early.
    async fn sources(&mut self) -> Result<bool, SandboxError> {
        for (members, pointer) in code_nodes(self.graph) {
            let Some((language, source)) = own_source(members) else { continue };
            let pointer = format!("{pointer}/source");
            let source = Source::Alone(source.to_owned());
            if let SurveyResult::Stopped = self.survey(language, source, pointer, "the source").await? {
                return Ok(true);
            }
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
        let left = self.deadline.left();
        match self.sandbox.survey_within(left, language, modules, source).await {
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
            Err(SandboxError::Timeout(_)) if self.deadline.left().is_zero() => {
                self.problems.push(self.deadline.too_slow(&pointer));
                Ok(SurveyResult::Stopped)
            }
            Err(error) => {
                let problem = FieldError::new(pointer, "load", format!("it cannot be loaded: {error}"));
                self.problems
                    .push(problem.suggest("put the work into functions; the module should only define them"));
                Ok(SurveyResult::Stopped)
            }
        }
    }
}

/// The fields of all `code` nodes, with their pointers.
fn code_nodes(graph: &Graph) -> impl Iterator<Item = (&Map<String, Value>, String)> {
    graph.nodes.iter().filter_map(|node| {
        let (kind, members, pointer) = match node.fields.get("body") {
            Some(Value::Object(body)) if node.kind == "for_each" => {
                let kind = body.get("type").and_then(Value::as_str).unwrap_or_default();
                (kind, body, format!("{}/body", node.pointer))
            }
            _ => (node.kind.as_str(), &node.fields, node.pointer.clone()),
        };
        (kind == "code").then_some((members, pointer))
    })
}

/// The code that a node contains, unless it is too long to check.
fn own_source(members: &Map<String, Value>) -> Option<(Language, &str)> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let source = text("source").filter(|source| source.len() <= LONGEST)?;
    Some((Language::named(text("language")?)?, source))
}

/// Reports nodes that call functions which their modules do not define.
fn missing_functions(graph: &Graph, names: &FunctionNames) -> Problems {
    let mut problems = Problems::new();
    for (members, pointer) in code_nodes(graph).filter(|(members, _)| own_source(members).is_none()) {
        if meter::step().is_err() {
            break;
        }
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        if let (Some(module), Some(function)) = (text("module"), text("function"))
            && let Some(names) = names.get(module)
            && !names.iter().any(|name| name == function)
        {
            let known = || names.iter().map(String::as_str);
            let message = format!("'{module}' has no function '{function}'");
            let problem = FieldError::new(format!("{pointer}/function"), "unknown_function", message);
            problems.push(match nearest(function, known()) {
                Some(near) => problem.suggest(format!("did you mean '{near}'?")),
                None if names.is_empty() && module.ends_with(".js") => {
                    problem.suggest(format!("export function {}(args) {{ … }}", simple(function)))
                }
                None if names.is_empty() => problem.suggest(format!("def {}(args): …", simple(function))),
                None => problem.suggest(listed("functions", known())),
            });
        }
    }
    problems
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
