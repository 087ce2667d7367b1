//! Python on Monty.

use monty::{MontyRepl, MontyRun};
use monty_types::{
    CompileOptions, ExcType, MontyException, MontyObject, PrintWriter, ResourceLimits, ResourceTracker,
};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::json;
use super::logs::Logs;
use crate::call::{Entry, Modules, Source, Surveyed, SyntaxProblem};
use crate::frame::WorkerAnswer;

/// Limits for a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) memory: usize,
    pub(super) output: usize,
    pub(super) logs: usize,
}

/// The session's name for the first snippet.
const FIRST: &str = "<python-input-0>";
/// The optional entry function of standalone code.
const MAIN: &str = "main";
/// The global name for the argument during a call; code is unlikely to use it.
const ARGS: &str = "_callboard_args";

pub(super) fn call(entry: &Entry, modules: &Modules, args: &RawValue, bounds: Bounds) -> WorkerAnswer {
    let Ok(args) = serde_json::from_str::<Value>(args.get()) else {
        return WorkerAnswer::failed("the arguments cannot be read");
    };
    let (source, name, function) = match entry {
        Entry::Function { module, function } => match modules.get(module) {
            Some(source) => (&**source, Some(module.as_str()), Some(function.as_str())),
            None => return WorkerAnswer::failed(format!("module '{module}' not found")),
        },
        Entry::Source(source) => (source.as_str(), None, None),
    };
    let mut logs = Logs::new(bounds.logs);
    let limits = ResourceLimits::default().max_memory(bounds.memory);
    let mut session =
        MontyRepl::new(name.unwrap_or("source"), ResourceTracker::new(limits), CompileOptions::default());
    let args = json::object(args);
    let ran = run(&mut session, source, function, args, &mut logs);
    match ran {
        Ok(result) => match json::value(result) {
            Ok(value) => bounded(&value, logs, bounds.output),
            Err(what) => WorkerAnswer::failed(format!("what it returned is not JSON: {what}")),
        },
        Err(error) => failure(&error, name),
    }
}

fn run(
    session: &mut MontyRepl,
    source: &str,
    function: Option<&str>,
    args: MontyObject,
    logs: &mut Logs,
) -> Result<MontyObject, MontyException> {
    let Some(function) = function else {
        let inputs = vec![("args".to_owned(), args.clone())];
        let last = session.feed_run(source, inputs, PrintWriter::Callback(logs))?;
        if !session.has_function(MAIN) {
            return Ok(last);
        }
        return called(session, MAIN, args, logs);
    };
    session.feed_run(source, Vec::new(), PrintWriter::Callback(logs))?;
    called(session, function, args, logs)
}

/// Calls a session's function and returns the result.
///
/// Does not use `call_function`: its code has no global name table, so a builtin used as a value (`except ValueError`,
/// `isinstance(x, int)`) would not be found by name.
fn called(
    session: &mut MontyRepl,
    function: &str,
    args: MontyObject,
    logs: &mut Logs,
) -> Result<MontyObject, MontyException> {
    let is_name = function.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if !is_name {
        return Err(MontyException::new(
            ExcType::NameError,
            Some(format!("name '{function}' is not defined")),
        ));
    }
    let inputs = vec![(ARGS.to_owned(), args)];
    session.feed_run(&format!("{function}({ARGS})"), inputs, PrintWriter::Callback(logs))
}

fn bounded(value: &Value, logs: Logs, most: usize) -> WorkerAnswer {
    match to_raw_value(value) {
        Ok(value) if value.get().len() > most => WorkerAnswer::OutputTooLarge,
        Ok(value) => WorkerAnswer::Value { value, logs: logs.into_text() },
        Err(error) => WorkerAnswer::failed(error.to_string()),
    }
}

fn failure(error: &MontyException, module: Option<&str>) -> WorkerAnswer {
    let said = error.message().unwrap_or_default();
    if error.exc_type() == ExcType::MemoryError && said.starts_with("memory limit exceeded") {
        return WorkerAnswer::Memory;
    }
    let place = error.traceback().iter().rev().find(|frame| frame.filename == FIRST);
    WorkerAnswer::Failed {
        message: error.summary(),
        module: module.map(str::to_owned),
        line: place.map(|frame| frame.start.line),
        column: place.map(|frame| frame.start.column),
    }
}

pub(super) fn survey(source: &Source, modules: &Modules) -> WorkerAnswer {
    let (code, alone) = match source {
        Source::Module(name) => (modules.get(name).map(|source| &**source).unwrap_or_default(), false),
        Source::Alone(code) => (code.as_str(), true),
    };
    let inputs = if alone { vec!["args".to_owned()] } else { Vec::new() };
    if let Err(error) = MontyRun::new(code.to_owned(), "module", inputs, CompileOptions::default()) {
        let place = error.traceback().last();
        return WorkerAnswer::Unsound(SyntaxProblem {
            message: error.summary(),
            line: place.map(|frame| frame.start.line),
            column: place.map(|frame| frame.start.column),
        });
    }
    let mut names = Vec::new();
    if let Ok(parsed) = ruff_python_parser::parse_module(code) {
        let body = &parsed.syntax().body;
        if let Some((name, line)) = body.iter().find_map(|statement| inner(statement, code, modules)) {
            let message = format!("a Python module cannot import another one of the graph, '{name}.py'");
            return WorkerAnswer::Unsound(SyntaxProblem { message, line: Some(line), column: None });
        }
        bound(body, &mut names);
    }
    WorkerAnswer::Surveyed(Surveyed { names })
}

/// The graph module that a statement imports, with its line; Monty cannot import it.
fn inner(statement: &Stmt, code: &str, modules: &Modules) -> Option<(String, u32)> {
    let names: Vec<&str> = match statement {
        Stmt::Import(import) => import.names.iter().map(|alias| alias.name.as_str()).collect(),
        Stmt::ImportFrom(import) => import.module.iter().map(|name| name.as_str()).collect(),
        _ => return None,
    };
    let name = names.into_iter().find(|name| modules.contains_key(&format!("{name}.py")))?;
    let before = code.get(..statement.range().start().to_usize()).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    Some((name.to_owned(), u32::try_from(line).unwrap_or(u32::MAX)))
}

/// Collects the names that a module binds at top level.
fn bound(body: &[Stmt], names: &mut Vec<String>) {
    for statement in body {
        match statement {
            Stmt::FunctionDef(function) => names.push(function.name.to_string()),
            Stmt::ClassDef(class) => names.push(class.name.to_string()),
            Stmt::Assign(assign) => names.extend(assign.targets.iter().filter_map(name)),
            Stmt::AnnAssign(assign) => names.extend(name(&assign.target)),
            Stmt::Import(import) => {
                names.extend(
                    import.names.iter().map(|alias| alias.asname.as_ref().unwrap_or(&alias.name).to_string()),
                );
            }
            Stmt::ImportFrom(import) => {
                names.extend(
                    import.names.iter().map(|alias| alias.asname.as_ref().unwrap_or(&alias.name).to_string()),
                );
            }
            Stmt::If(branch) => {
                bound(&branch.body, names);
                for clause in &branch.elif_else_clauses {
                    bound(&clause.body, names);
                }
            }
            Stmt::Try(tried) => {
                bound(&tried.body, names);
                bound(&tried.orelse, names);
                bound(&tried.finalbody, names);
            }
            _ => {}
        }
    }
}

fn name(target: &Expr) -> Option<String> {
    match target {
        Expr::Name(name) => Some(name.id.to_string()),
        _ => None,
    }
}
