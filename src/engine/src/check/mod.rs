//! Problems and template names, collected while a graph is compiled.

mod calls;

use std::collections::BTreeSet;
use std::sync::Arc;

use sandbox::Modules;
use serde_json::Value;
use wire::FieldError;

pub use calls::{FILTERS as TEMPLATE_FILTERS, TESTS as TEMPLATE_TESTS};

use crate::Problems;
use crate::credentials::{Segment, has_secrets, segments};
use crate::graph::fields::escape;
use crate::{meter, template};

/// Findings collected while a graph is compiled.
#[derive(Default)]
pub(crate) struct Check {
    pub(crate) problems: Problems,
    /// Problems that are checked only on save: stored versions keep running.
    pub(crate) at_saving: Problems,
    pub(crate) names: Vec<NameUse>,
    pub(crate) owner: Owner,
    pub(crate) locals: Locals,
    /// The graph's own code.
    pub(crate) modules: Arc<Modules>,
    /// The JavaScript modules among them, which may import one another.
    pub(crate) scripts: Arc<Modules>,
}

/// Names that are visible here in addition to the global ones.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Locals {
    /// Inside a `for_each` body: `item` and `index`.
    pub(crate) items: bool,
    /// Inside a tool's node: `args`.
    pub(crate) args: bool,
}

/// A name that a template or a condition uses.
pub(crate) struct NameUse {
    /// Dotted name: `results.classify.kind`.
    pub(crate) name: String,
    pub(crate) pointer: String,
    pub(crate) owner: Owner,
    pub(crate) locals: Locals,
}

/// The owner of a template; determines which results it may read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Fields of this node: may read results of earlier nodes.
    Node(String),
    /// A condition after these nodes: may read their results as well.
    After(Vec<String>),
    /// The output: may read everything.
    #[default]
    Output,
}

impl Check {
    /// Records a problem.
    pub(crate) fn note(&mut self, problem: FieldError) {
        self.problems.push(problem);
    }

    /// Records a problem that prevents saving, but does not prevent stored versions from running.
    pub(crate) fn note_at_saving(&mut self, problem: FieldError) {
        self.at_saving.push(problem);
    }

    /// Sets the owner of the templates that follow.
    pub(crate) fn set_owner(&mut self, owner: Owner) {
        self.owner = owner;
    }

    /// Runs `read` with the names of a `for_each` body visible.
    pub(crate) fn with_items<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.locals;
        self.locals.items = true;
        let result = read(self);
        self.locals = outer;
        result
    }

    /// Runs `read` with the names of a tool's node visible.
    pub(crate) fn with_args<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.locals;
        self.locals.args = true;
        let result = read(self);
        self.locals = outer;
        result
    }

    /// Checks a template. Returns whether it parses.
    pub(crate) fn template(&mut self, text: &str, pointer: &str) -> bool {
        if meter::step().is_err() {
            return false;
        }
        self.calls(text, false, pointer);
        self.parsed(template::names_of_template(text), "template", pointer)
    }

    /// Checks a condition or another bare expression. Returns whether it parses.
    pub(crate) fn expression(&mut self, text: &str, pointer: &str, locals: &[&str]) -> bool {
        if meter::step().is_err() {
            return false;
        }
        self.calls(text, true, pointer);
        let names = template::names_of_expression(text);
        let names = names.map(|names| {
            let local = |name: &String| locals.contains(&name.split('.').next().unwrap_or_default());
            names.into_iter().filter(|name| !local(name)).collect()
        });
        self.parsed(names, "condition", pointer)
    }

    /// Checks every template in a value. Returns whether all parse.
    pub(crate) fn templates(&mut self, value: &Value, pointer: &str) -> bool {
        match value {
            Value::String(text) => self.template(text, pointer),
            // Not `all`, which would stop at the first problem.
            Value::Array(items) => items.iter().enumerate().fold(true, |good, (index, item)| {
                self.templates(item, &format!("{pointer}/{index}")) && good
            }),
            Value::Object(members) => members.iter().fold(true, |good, (name, member)| {
                self.templates(member, &format!("{pointer}/{}", escape(name))) && good
            }),
            _ => true,
        }
    }

    /// Checks every template in a value that may name secrets. Returns whether all parse.
    pub(crate) fn templates_with_secrets(&mut self, value: &Value, pointer: &str) -> bool {
        match value {
            Value::String(text) => self.template_with_secrets(text, pointer),
            Value::Array(items) => items.iter().enumerate().fold(true, |good, (index, item)| {
                self.templates_with_secrets(item, &format!("{pointer}/{index}")) && good
            }),
            Value::Object(members) => members.iter().fold(true, |good, (name, member)| {
                self.templates_with_secrets(member, &format!("{pointer}/{}", escape(name))) && good
            }),
            _ => true,
        }
    }

    /// The text between secrets is filled separately, so a block cannot span a secret.
    fn template_with_secrets(&mut self, text: &str, pointer: &str) -> bool {
        let segments = segments(text);
        let mut good = true;
        for segment in &segments {
            let Segment::Text(part) = segment else { continue };
            if meter::step().is_err() {
                return false;
            }
            self.calls(part, false, pointer);
            let names = template::names_of_template(part);
            if names.is_err() && has_secrets(&segments) && template::names_of_template(text).is_ok() {
                let message = "[[name]] is inside a block, where it is not replaced";
                let problem = FieldError::new(pointer, "credential_in_block", message);
                self.note(
                    problem.suggest(
                        "choose between two nodes with an edge; write literal text as {{ \"[[…]]\" }}",
                    ),
                );
                return false;
            }
            good = self.parsed(names, "template", pointer) && good;
        }
        good
    }

    fn calls(&mut self, text: &str, is_expression: bool, pointer: &str) {
        for unknown in calls::unknown(text, is_expression) {
            self.note_at_saving(
                FieldError::new(pointer, unknown.code, unknown.message).suggest(unknown.suggestion),
            );
        }
    }

    fn parsed(&mut self, names: Result<BTreeSet<String>, String>, code: &'static str, pointer: &str) -> bool {
        match names {
            Ok(names) => {
                let (owner, locals) = (self.owner.clone(), self.locals);
                let named =
                    |name| NameUse { name, pointer: pointer.to_owned(), owner: owner.clone(), locals };
                self.names.extend(names.into_iter().map(named));
                true
            }
            Err(message) => {
                let example = if code == "condition" {
                    "an expression, such as results.check.ok and inputs.n > 3"
                } else {
                    "text with {{ expressions }}, such as Good day, {{ inputs.name }}"
                };
                self.note(FieldError::new(pointer, code, message).suggest(example));
                false
            }
        }
    }
}
