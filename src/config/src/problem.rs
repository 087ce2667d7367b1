//! Configuration problems, described so that the operator can fix them.

use std::fmt;

use crate::source::Origin;

/// Maximum characters of a value that a problem repeats.
const SHOWN: usize = 60;

/// A problem that prevents the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The variable, or `.env` for the file itself.
    pub variable: String,
    /// The value's origin.
    pub origin: Origin,
    /// The given value, short, and masked if secret; `None` if a value is missing.
    pub value: Option<String>,
    /// The problem.
    pub wrong: String,
    /// The value to write instead.
    pub instead: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.variable)?;
        if self.origin == Origin::EnvFile && self.variable.as_str() != crate::source::ENV_FILE {
            f.write_str(" (.env file)")?;
        }
        f.write_str(": ")?;
        if let Some(value) = &self.value {
            write!(f, "{value} ")?;
        }
        write!(f, "{}; {}", self.wrong, self.instead)
    }
}

/// All problems, one line each when displayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// A parser's objection to a value. For a secret, neither text may repeat any part of it.
#[derive(Debug)]
pub(crate) struct Invalid {
    pub(crate) wrong: String,
    pub(crate) instead: String,
    pub(crate) hide_value: bool,
}

impl Invalid {
    pub(crate) fn new(wrong: impl Into<String>, instead: impl Into<String>) -> Self {
        Self { wrong: wrong.into(), instead: instead.into(), hide_value: false }
    }

    /// Hides a value that may be secret although its variable is not.
    pub(crate) fn hidden(mut self) -> Self {
        self.hide_value = true;
        self
    }
}

/// Formats a value for a problem: quoted, one line, short.
///
/// Also masks a text that looks like `user:password@host` or mentions a password: an address with a password may be in
/// the wrong variable.
pub(crate) fn shown(value: &str, secret: bool) -> String {
    if secret || (value.contains('@') && value.contains(':')) || value.to_lowercase().contains("password") {
        return kernel::mask(value).to_owned();
    }
    let mut text: String = value.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if value.chars().nth(SHOWN).is_some() {
        text.push('…');
    }
    format!("\"{text}\"")
}
