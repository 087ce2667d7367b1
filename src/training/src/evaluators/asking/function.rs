//! `<module>:<function>`: a function of the graph's modules judges, in the sandbox.

use std::collections::BTreeMap;

use async_trait::async_trait;
use engine::modules_named;
use serde_json::Value;
use wire::{FieldError, nearest};

use crate::evaluators::bench::Executed;
use crate::evaluators::builtin::known_evaluators;
use crate::evaluators::judge::{Ask, Asking, VerdictResult};
use crate::evaluators::subject::Subject;
use crate::evaluators::verdict::normalized;

/// Maximum functions listed in an error.
const MOST_LISTED: usize = 50;

/// A graph function that an evaluator names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionName {
    /// The JSON pointer to the entrypoint.
    pub pointer: String,
    /// The module, with or without its extension.
    pub module: String,
    /// The function name.
    pub function: String,
}

impl FunctionName {
    /// Parses an entrypoint; `None` if it has another form.
    pub(in crate::evaluators) fn read(entrypoint: &str, pointer: &str) -> Option<Self> {
        let is_plain =
            |name: &str| name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '$'));
        let (module, function) = entrypoint.split_once(':')?;
        let stem = module.strip_suffix(".py").or_else(|| module.strip_suffix(".js")).unwrap_or(module);
        let is_name = !stem.is_empty() && is_plain(stem) && !function.is_empty() && is_plain(function);
        let named =
            || Self { pointer: pointer.to_owned(), module: module.to_owned(), function: function.to_owned() };
        is_name.then(named)
    }
}

/// Reports missing functions. `known`: the functions of each graph module, by the module's name with its extension.
pub fn check_functions(
    wanted: &[FunctionName],
    known: &BTreeMap<String, Vec<String>>,
    problems: &mut Vec<FieldError>,
) {
    let entrypoints = || {
        known.iter().flat_map(|(module, functions)| {
            let stem = module.rsplit_once('.').map_or(module.as_str(), |(stem, _)| stem);
            let is_only = modules_named(known.keys().map(String::as_str), stem).len() == 1;
            let name = if is_only { stem } else { module.as_str() };
            functions.iter().map(move |function| format!("{name}:{function}"))
        })
    };
    for FunctionName { pointer, module, function } in wanted {
        let named = modules_named(known.keys().map(String::as_str), module);
        let why = match *named {
            [name] if known.get(name).is_some_and(|functions| functions.contains(function)) => continue,
            [name] => format!("'{name}' has no function '{function}'"),
            [] => format!("the graph has no module '{module}'"),
            _ => format!("the graph has {}; write the extension", named.join(" and ")),
        };
        let listed: Vec<String> = entrypoints().take(MOST_LISTED).collect();
        let message = format!("{why}; {}", known_evaluators(&listed));
        let problem = FieldError::new(pointer, "evaluator_not_found", message);
        let near =
            nearest(&format!("{module}:{function}"), listed.iter().map(String::as_str)).map(str::to_owned);
        problems.push(match near {
            Some(near) => problem.suggest(format!("did you mean '{near}'?")),
            None => problem,
        });
    }
}

pub(in crate::evaluators) struct FunctionJudge {
    pub(in crate::evaluators) name: FunctionName,
    pub(in crate::evaluators) config: Value,
}

#[async_trait]
impl Asking for FunctionJudge {
    async fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>, ask: Ask<'_>) -> VerdictResult {
        let said = ask.execute(Executed::Function(&self.name), subject.context(&self.config), 0).await?;
        Ok(normalized(&said, threshold.unwrap_or(0.5))?)
    }

    fn function(&self) -> Option<&FunctionName> {
        Some(&self.name)
    }
}
