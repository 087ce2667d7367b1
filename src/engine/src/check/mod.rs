//! Problems and template names, collected while a graph is compiled.

mod calls;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use sandbox::Modules;
use serde_json::Value;
use wire::FieldError;

pub use calls::{FILTERS as TEMPLATE_FILTERS, TESTS as TEMPLATE_TESTS};

use crate::Problems;
use crate::credentials::{Segment, has_secrets, segments};
use crate::graph::fields::{MOST_NOTED, escape};
use crate::{meter, tags, template};

/// Maximum bytes of all recorded problems: a member with a long name makes long pointers.
const LARGEST_NOTED: usize = 4 << 20;
/// Maximum bytes of all names in templates, with their pointers.
const LARGEST_NAMES: usize = 32 << 20;
/// Bytes charged per name, besides its text.
const NAME: usize = 64;

/// Findings collected while a graph is compiled.
#[derive(Default)]
pub(crate) struct Check {
    pub(crate) problems: Problems,
    /// Problems that are checked only on save: stored versions keep running.
    pub(crate) at_saving: Problems,
    pub(crate) names: Vec<NameUse>,
    pub(crate) owner: Arc<Owner>,
    pub(crate) locals: Locals,
    /// The graph's own code.
    pub(crate) modules: Arc<Modules>,
    /// The JavaScript modules among them, which may import one another.
    pub(crate) scripts: Arc<Modules>,
    /// Bytes of the recorded problems.
    noted: usize,
    /// Bytes of the names, including those that were not recorded because there are too many.
    named: usize,
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
    /// All names of a template share it.
    pub(crate) pointer: Arc<str>,
    pub(crate) owner: Arc<Owner>,
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
    /// Records a problem, unless there are too many.
    pub(crate) fn note(&mut self, problem: FieldError) {
        if self.problems.is_empty() || !self.is_full(self.problems.len()) {
            self.noted = self.noted.saturating_add(size(&problem));
            self.problems.push(problem);
        }
    }

    /// Records a problem that prevents saving, but does not prevent stored versions from running.
    pub(crate) fn note_at_saving(&mut self, problem: FieldError) {
        if self.at_saving.is_empty() || !self.is_full(self.at_saving.len()) {
            self.noted = self.noted.saturating_add(size(&problem));
            self.at_saving.push(problem);
        }
    }

    /// Whether further problems are not recorded.
    pub(crate) fn has_many_problems(&self) -> bool {
        self.is_full(self.problems.len())
    }

    fn is_full(&self, count: usize) -> bool {
        count >= MOST_NOTED || self.noted >= LARGEST_NOTED
    }

    /// Reports a problem if the names in the templates need too much memory. Not all of them are recorded then.
    pub(crate) fn refuse_many_names(&mut self) {
        if self.named > LARGEST_NAMES {
            let message = "the names in its templates, with their pointers, need too much memory";
            let problem = FieldError::new("", "too_large", message);
            self.note(problem.suggest("shorten the names of members, or split the workflow"));
        }
    }

    /// Sets the owner of the templates that follow.
    pub(crate) fn set_owner(&mut self, owner: Owner) {
        self.owner = Arc::new(owner);
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
        self.each_text(value, &mut pointer.to_owned(), Self::template)
    }

    /// Checks every template in a value that may name secrets. Returns whether all parse.
    pub(crate) fn templates_with_secrets(&mut self, value: &Value, pointer: &str) -> bool {
        self.each_text(value, &mut pointer.to_owned(), Self::template_with_secrets)
    }

    /// Reads every text in a value. Returns whether all are good. The pointer is extended in place: a long one is not
    /// copied for each value.
    fn each_text(
        &mut self,
        value: &Value,
        pointer: &mut String,
        read: fn(&mut Self, &str, &str) -> bool,
    ) -> bool {
        let (end, mut good) = (pointer.len(), true);
        match value {
            Value::String(text) => good = read(self, text, pointer),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let _ = write!(pointer, "/{index}");
                    good &= self.each_text(item, pointer, read);
                    pointer.truncate(end);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let _ = write!(pointer, "/{}", escape(name));
                    good &= self.each_text(member, pointer, read);
                    pointer.truncate(end);
                }
            }
            _ => {}
        }
        good
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
        let fits = if is_expression { tags::check_length(text) } else { tags::check(text) };
        // The parser reports a text that is too long.
        if fits.is_err() || self.is_full(self.at_saving.len()) {
            return;
        }
        let most = MOST_NOTED.saturating_sub(self.at_saving.len());
        for unknown in calls::unknown(text, is_expression, most) {
            self.note_at_saving(
                FieldError::new(pointer, unknown.code, unknown.message).suggest(unknown.suggestion),
            );
        }
    }

    fn parsed(&mut self, names: Result<BTreeSet<String>, String>, code: &'static str, pointer: &str) -> bool {
        match names {
            Ok(names) if names.is_empty() => true,
            Ok(names) => {
                let bytes = names.iter().map(|name| NAME + name.len()).sum::<usize>();
                self.named = self.named.saturating_add(bytes + pointer.len());
                if self.named <= LARGEST_NAMES {
                    let pointer: Arc<str> = pointer.into();
                    let (owner, locals) = (Arc::clone(&self.owner), self.locals);
                    let named = |name| NameUse {
                        name,
                        pointer: Arc::clone(&pointer),
                        owner: Arc::clone(&owner),
                        locals,
                    };
                    self.names.extend(names.into_iter().map(named));
                }
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

/// Bytes of a problem's texts.
fn size(problem: &FieldError) -> usize {
    problem.pointer.len() + problem.message.len() + problem.suggestion.as_ref().map_or(0, String::len)
}
