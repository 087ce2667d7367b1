//! The `modules` of a graph: user code by name. Only the sandbox parses it (`inspection/code.rs`).

use std::sync::Arc;

use sandbox::{Language, Modules};
use serde_json::Value;
use wire::FieldError;

use super::fields::{Fields, escape};
use crate::Problems;

/// Maximum code bytes per module, and for a node's `source`.
pub(crate) const LONGEST: usize = 256 << 10;
/// Maximum bytes of all modules in a graph.
const ALL: usize = 1 << 20;
/// Maximum modules per graph.
const MOST: usize = 64;

pub(super) fn read(fields: &mut Fields<'_>, problems: &mut Problems) -> Modules {
    let pointer = fields.at("modules");
    let members = match fields.value("modules") {
        Some(Value::Object(members)) => members,
        Some(_) => {
            let problem = FieldError::new(pointer, "type", "must be an object");
            problems.push(problem.suggest(r#"{"<name>.py": "def …"}"#));
            return Modules::new();
        }
        None => return Modules::new(),
    };
    let mut modules = Modules::new();
    for (name, source) in members {
        let at = format!("{pointer}/{}", escape(name));
        if !is_name(name) {
            let message = "a module's name is letters, digits and '_', and ends in '.py' or '.js'";
            problems.push(FieldError::new(&at, "name", message).suggest(suggested(name)));
        }
        match source {
            Value::String(source) if source.len() > LONGEST => {
                problems.push(too_long(&at, source.len()));
            }
            Value::String(source) => {
                modules.insert(name.clone(), Arc::from(source.as_str()));
            }
            _ => {
                let problem = FieldError::new(&at, "type", "must be a string, the code");
                problems.push(problem.suggest(r#""def main(args):\n    return args""#));
            }
        }
    }
    let size: usize = modules.values().map(|source| source.len()).sum();
    if size > ALL {
        let message = format!("{size} bytes of code; at most {ALL}");
        problems.push(FieldError::new(&pointer, "size", message).suggest("remove data from the code"));
    }
    if members.len() > MOST {
        let message = format!("{} modules; at most {MOST}", members.len());
        problems.push(FieldError::new(&pointer, "size", message).suggest("combine some of them"));
    }
    modules
}

/// Returns the modules in one language.
pub(crate) fn for_language(modules: &Modules, language: Language) -> Arc<Modules> {
    let own = modules.iter().filter(|(name, _)| Language::of_module(name) == Some(language));
    Arc::new(own.map(|(name, source)| (name.clone(), Arc::clone(source))).collect())
}

/// Returns only this module.
pub(crate) fn one(modules: &Modules, name: &str) -> Arc<Modules> {
    let one = modules.get_key_value(name);
    Arc::new(one.map(|(name, source)| (name.clone(), Arc::clone(source))).into_iter().collect())
}

pub(crate) fn too_long(pointer: &str, length: usize) -> FieldError {
    let message = format!("{length} bytes of code; at most {LONGEST}");
    FieldError::new(pointer, "size", message).suggest("move parts of it into modules")
}

/// Other modules import them by name, so names are identifiers.
fn is_name(name: &str) -> bool {
    let Some((stem, _)) = name.rsplit_once('.') else { return false };
    let begins = stem.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    let goes_on = stem.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    begins && goes_on && name.len() <= 64 && Language::of_module(name).is_some()
}

fn suggested(name: &str) -> String {
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending @ ("py" | "js"))) => (stem, ending),
        _ => (name, "py"),
    };
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let stem: String = stem.chars().take(40).map(plain).collect();
    let stem = stem.trim_start_matches(|letter: char| letter.is_ascii_digit());
    format!("\"{}.{ending}\"", if stem.is_empty() { "module" } else { stem })
}
