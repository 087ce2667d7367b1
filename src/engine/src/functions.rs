//! Module functions that are called from outside the graph: training evaluators.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sandbox::{Call, Entry, Language, Limits, Modules, Sandbox, SandboxError, Source};
use serde_json::Value;
use wire::ErrorCode;

use crate::NodeError;
use crate::execute::Plan;
use crate::graph::modules;

/// A module's function, with the modules that it may import.
#[derive(Debug, Clone)]
pub struct Function {
    language: Language,
    modules: Arc<Modules>,
    entry: Entry,
}

/// Returns the modules with this name, with or without its extension: none, one, or one per language.
#[must_use]
pub fn modules_named<'m>(modules: impl Iterator<Item = &'m str>, name: &str) -> Vec<&'m str> {
    let is_named =
        |module: &&str| *module == name || module.rsplit_once('.').is_some_and(|(stem, _)| stem == name);
    modules.filter(is_named).collect()
}

impl Plan {
    /// Returns a function from the graph's modules; `module` with or without its extension. Whether the module
    /// defines the function is only known when it is called.
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
            Language::Javascript => modules::for_language(&self.modules, language),
        };
        let entry = Entry::Function { module: name.to_owned(), function: function.to_owned() };
        Ok(Function { language, modules, entry })
    }

    /// Lists the functions of each module by the module's name with its extension. The list is empty for a module
    /// that cannot be loaded.
    ///
    /// # Errors
    /// The sandbox is not available now.
    pub async fn functions(&self, sandbox: &Sandbox) -> Result<BTreeMap<String, Vec<String>>, NodeError> {
        self.functions_where(|_| true, sandbox).await
    }

    /// As [`Self::functions`], but only for the modules in `named`, with or without their extension. The others have
    /// empty lists, because loading a module takes time.
    ///
    /// # Errors
    /// The sandbox is not available now.
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

    /// Lists a module's functions. The plan caches the result.
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
        let own = modules::for_language(&self.modules, language);
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
    /// Calls the function with its only argument, in a fresh interpreter. `limit`: maximum run time; `most`: maximum
    /// result bytes as JSON.
    ///
    /// # Errors
    /// [`NodeError`] with a code of the `code` node.
    pub async fn call(
        &self,
        args: Value,
        limit: Duration,
        most: usize,
        sandbox: &Sandbox,
    ) -> Result<Value, NodeError> {
        let Self { language, modules, entry } = self.clone();
        let limits = Limits { time: limit, output: most, ..Limits::default() };
        let outcome = sandbox.call(Call { language, modules, entry, args, limits }).await.map_err(fault)?;
        if !outcome.logs.is_empty() {
            tracing::debug!(printed = outcome.logs, "code output");
        }
        Ok(outcome.value)
    }

    /// Everything besides its argument that its result depends on: modules by name, with their code.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.modules.iter().map(|(name, source)| (name.as_str(), &**source))
    }
}

/// Converts a sandbox error into a node error.
pub(crate) fn fault(error: SandboxError) -> NodeError {
    let code = match &error {
        SandboxError::Failed { .. } => ErrorCode::CodeFailed,
        SandboxError::Timeout(_) => ErrorCode::CodeTimeout,
        SandboxError::Memory(_) => ErrorCode::CodeMemory,
        SandboxError::OutputTooLarge(_) => ErrorCode::CodeOutputTooLarge,
        SandboxError::Crashed => ErrorCode::CodeCrashed,
        SandboxError::Busy { .. } | SandboxError::QueueFull { .. } => ErrorCode::CodeBusy,
        // The log has the details: they name paths on this machine.
        SandboxError::Unavailable(_) => {
            return NodeError::retryable(ErrorCode::CodeUnavailable, ErrorCode::CodeUnavailable.message());
        }
    };
    NodeError { retryable: code.retry_may_help(), ..NodeError::new(code, error.to_string()) }
}
