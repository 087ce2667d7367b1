//! What is wrong with a configuration, said so that it can be put right.

use std::fmt;

use crate::source::Origin;

/// Longest piece of a value that a problem repeats.
const SHOWN: usize = 60;

/// One thing that stops the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The variable, or `.env` for the file itself.
    pub variable: String,
    /// Where the value came from.
    pub origin: Origin,
    /// The given value, short and masked where it is secret; none where a value is missing.
    pub value: Option<String>,
    /// What is wrong with it.
    pub wrong: String,
    /// What to write instead.
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

/// All that is wrong, one line each when displayed.
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

/// What a parser has against a value. For a secret neither text may repeat any part of it.
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

    /// The value may hold something secret although its variable is not one.
    pub(crate) fn hidden(mut self) -> Self {
        self.hide_value = true;
        self
    }
}

/// A value as a problem repeats it: quoted, one line, short.
///
/// A text that looks like `user:password@host` or speaks of a password is masked too: an address with a password may
/// have ended up in the wrong variable.
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
