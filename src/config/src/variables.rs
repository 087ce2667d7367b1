//! The embedded description of every variable.

use std::sync::LazyLock;

use serde::Deserialize;

/// A variable's description in `variables.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// Its name in the environment.
    pub name: String,
    /// The id of its group in the output.
    pub group: String,
    /// The default, as a user would write it.
    pub default: Option<String>,
    /// The default in words, if it is computed at the start.
    pub computed_default: Option<String>,
    /// One or two sentences, with the unit.
    pub meaning: String,
    /// Whether the value is hidden and only its presence shown.
    #[serde(default)]
    pub secret: bool,
    /// The reason why setting it has no effect yet.
    pub pending: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    group: Vec<Group>,
    variable: Vec<Variable>,
}

/// A heading of `callboard config show`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    pub(crate) id: String,
    pub(crate) title: String,
}

/// The text itself, for tests.
pub(crate) const TEXT: &str = include_str!("variables.toml");

// The file is part of the binary and a test parses it. If it were broken all the same, every variable would be reported
// as undocumented and nothing would start.
static FILE: LazyLock<File> = LazyLock::new(|| toml::from_str(TEXT).unwrap_or_default());

/// Every variable, in display order.
#[must_use]
pub fn variables() -> &'static [Variable] {
    &FILE.variable
}

/// The headings, in order.
pub(crate) fn groups() -> &'static [Group] {
    &FILE.group
}

/// The description of one variable.
pub(crate) fn find(name: &str) -> Option<&'static Variable> {
    variables().iter().find(|variable| variable.name == name)
}
