//! Functions of a graph's modules that something beside its nodes calls: the evaluators of trainings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sandbox::{Call, Entry, Language, Limits, Modules, Sandbox, SandboxError, Source};
use serde_json::Value;
use wire::ErrorCode;

use crate::NodeError;
use crate::execute::Plan;
use crate::graph::modules;

/// A function of a module, with the modules that it may import.
#[derive(Debug, Clone)]
pub struct Function {
    language: Language,
    modules: Arc<Modules>,
    entry: Entry,
}

/// Those of these modules that have this name, with or without its extension: none, one, or one of each language.
#[must_use]
pub fn modules_named<'m>(modules: impl Iterator<Item = &'m str>, name: &str) -> Vec<&'m str> {
    let is_named =
        |module: &&str| *module == name || module.rsplit_once('.').is_some_and(|(stem, _)| stem == name);
    modules.filter(is_named).collect()
}

impl Plan {
    /// A function of the graph's modules; `module` with or without its extension. Whether the module has the function is known when it
    /// is called.
    ///
    /// # Errors
    /// No module has the name, or two modules have it.
    pub fn function(&self, module: &str, function: &str) -> Result<Function, NodeError> {
        let named = modules_named(self.modules.keys().map(String::as_str), module);
        let (&[name], Some(language)) = (&*named, named.first().and_then(|name| Language::of_module(name)))
        else {
            let message = match *named {
                [] => format!("the graph has no module '{module}'"),
                _ => format!("the graph has more than one module '{module}': {}", named.join(", ")),
            };
            return Err(NodeError::new(ErrorCode::CodeFailed, message));
        };
        let modules = match language {
            Language::Python => modules::one(&self.modules, name),
            Language::Javascript => modules::of(&self.modules, language),
        };
        let entry = Entry::Function { module: name.to_owned(), function: function.to_owned() };
        Ok(Function { language, modules, entry })
    }

    /// The functions of each module of the graph, by the module's name with its extension. A module that cannot be loaded has none.
    ///
    /// # Errors
    /// The sandbox cannot be asked now.
    pub async fn functions(&self, sandbox: &Sandbox) -> Result<BTreeMap<String, Vec<String>>, NodeError> {
        self.functions_where(|_| true, sandbox).await
    }

    /// The same for the modules that `named` has, with or without their extension. The other ones are there without their functions: to load a
    /// module takes time.
    ///
    /// # Errors
    /// The sandbox cannot be asked now.
    pub async fn functions_of(
        &self,
        named: &[&str],
        sandbox: &Sandbox,
    ) -> Result<BTreeMap<String, Vec<String>>, NodeError> {
        let is_named =
            |module: &str| named.iter().any(|name| !modules_named([module].into_iter(), name).is_empty());
        self.functions_where(is_named, sandbox).await
    }

    async fn functions_where(
        &self,
        is_wanted: impl Fn(&str) -> bool,
        sandbox: &Sandbox,
    ) -> Result<BTreeMap<String, Vec<String>>, NodeError> {
        let mut functions = BTreeMap::new();
        for name in self.modules.keys() {
            let Some(language) = Language::of_module(name) else { continue };
            let names =
                if is_wanted(name) { self.surveyed(language, name, sandbox).await? } else { Vec::new() };
            functions.insert(name.clone(), names);
        }
        Ok(functions)
    }

    /// The functions of a module. What was found is remembered with the plan.
    async fn surveyed(
        &self,
        language: Language,
        module: &str,
        sandbox: &Sandbox,
    ) -> Result<Vec<String>, NodeError> {
        let known = self.surveyed.lock().get(module).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let own = modules::of(&self.modules, language);
        match sandbox.survey(language, own, Source::Module(module.to_owned())).await {
            Ok(Ok(found)) => {
                self.surveyed.lock().insert(module.to_owned(), found.names.clone());
                Ok(found.names)
            }
            Ok(Err(_)) => Ok(Vec::new()),
            Err(
                error @ (SandboxError::Busy { .. }
                | SandboxError::QueueFull { .. }
                | SandboxError::Unavailable(_)
                | SandboxError::Crashed),
            ) => Err(fault(error)),
            Err(_) => Ok(Vec::new()),
        }
    }
}

impl Function {
    /// Calls the function with its only argument, in an interpreter of its own. `limit`: how long it may run; `most`: bytes of its result
    /// as JSON.
    ///
    /// # Errors
    /// [`NodeError`] with a code of the node `code`.
    pub async fn call(
        &self,
        args: Value,
        (limit, most): (Duration, usize),
        sandbox: &Sandbox,
    ) -> Result<Value, NodeError> {
        let Self { language, modules, entry } = self.clone();
        let limits = Limits { time: limit, output: most, ..Limits::default() };
        let outcome = sandbox.call(Call { language, modules, entry, args, limits }).await.map_err(fault)?;
        if !outcome.logs.is_empty() {
            tracing::debug!(printed = outcome.logs, "code has printed");
        }
        Ok(outcome.value)
    }

    /// Everything that its result depends on beside its argument: modules by name, with their code.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.modules.iter().map(|(name, source)| (name.as_str(), &**source))
    }
}

/// Why a call of code has no result.
pub(crate) fn fault(error: SandboxError) -> NodeError {
    let code = match &error {
        SandboxError::Failed { .. } => ErrorCode::CodeFailed,
        SandboxError::Timeout(_) => ErrorCode::CodeTimeout,
        SandboxError::Memory(_) => ErrorCode::CodeMemory,
        SandboxError::OutputTooLarge(_) => ErrorCode::CodeOutputTooLarge,
        SandboxError::Crashed => ErrorCode::CodeCrashed,
        SandboxError::Busy { .. } | SandboxError::QueueFull { .. } => ErrorCode::CodeBusy,
        // What exactly is in the log: it names the machine's own paths.
        SandboxError::Unavailable(_) => {
            return NodeError::retryable(ErrorCode::CodeUnavailable, ErrorCode::CodeUnavailable.message());
        }
    };
    NodeError { retryable: code.retry_may_help(), ..NodeError::new(code, error.to_string()) }
}
