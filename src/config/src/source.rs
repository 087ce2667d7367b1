//! The given values and their origins.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;

use crate::env_file::dropped_dollars;
use crate::problem::Problem;

/// The file that is read in the working directory.
pub(crate) const ENV_FILE: &str = ".env";

/// A value's origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The process environment.
    Environment,
    /// The `.env` file.
    EnvFile,
    /// Not set.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Environment => "environment",
            Self::EnvFile => ".env file",
            Self::Default => "default",
        })
    }
}

/// The given values, each with its origin.
///
/// The environment takes precedence over the `.env` file, even with an empty value, which means "unset". Only relevant
/// names are kept, and the `Debug` form shows no value.
#[derive(Clone, Default)]
pub struct Source {
    values: BTreeMap<String, (Origin, String)>,
    home: Option<String>,
    xdg_data_home: Option<String>,
    root: bool,
    problems: Vec<Problem>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: BTreeMap<&str, Origin> = self.set().collect();
        f.debug_struct("Source").field("set", &names).finish_non_exhaustive()
    }
}

impl Source {
    /// Reads the process environment and the working directory's `.env` file, changing neither.
    ///
    /// [`crate::Config::load`] reports unreadable input (a bad line, a value that is not UTF-8) with the other
    /// problems.
    #[must_use]
    pub fn from_env() -> Self {
        let mut source = Self { root: runs_as_root(), ..Self::default() };
        source.add_environment(std::env::vars_os());
        source.add_file(Path::new(ENV_FILE));
        source
    }

    /// Reads only the process environment: a client command may run in a folder whose `.env` file configures another
    /// service.
    #[must_use]
    pub fn from_environment() -> Self {
        let mut source = Self { root: runs_as_root(), ..Self::default() };
        source.add_environment(std::env::vars_os());
        source
    }

    /// For tests: these pairs replace the environment; without a file, and the user is not root.
    #[must_use]
    pub fn from_pairs<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut source = Self::default();
        source.add_environment(pairs.into_iter().map(|(name, value)| {
            let (name, value): (String, String) = (name.into(), value.into());
            (name.into(), value.into())
        }));
        source
    }

    /// The same source with one variable set or replaced.
    #[must_use]
    pub fn with(mut self, name: &str, value: String) -> Self {
        self.values.insert(name.to_owned(), (Origin::Environment, value));
        self
    }

    /// The value of a variable; empty counts as unset.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The origin of a variable's value.
    #[must_use]
    pub fn origin(&self, name: &str) -> Origin {
        match self.values.get(name) {
            Some((origin, value)) if !value.is_empty() => *origin,
            _ => Origin::Default,
        }
    }

    /// The names of all set variables, known or not.
    pub(crate) fn set(&self) -> impl Iterator<Item = (&str, Origin)> {
        self.values
            .iter()
            .filter(|(_, (_, value))| !value.is_empty())
            .map(|(name, (origin, _))| (name.as_str(), *origin))
    }

    /// Problems while reading.
    pub(crate) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Whether the process runs as root.
    pub(crate) fn is_root(&self) -> bool {
        self.root
    }

    /// `$HOME`.
    pub(crate) fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    /// `$XDG_DATA_HOME`.
    pub(crate) fn xdg_data_home(&self) -> Option<&str> {
        self.xdg_data_home.as_deref()
    }

    pub(crate) fn add_environment(&mut self, variables: impl Iterator<Item = (OsString, OsString)>) {
        for (name, value) in variables {
            let Ok(name) = name.into_string() else { continue };
            match (name.as_str(), value.into_string()) {
                ("HOME", Ok(value)) => self.home = Some(value).filter(|value| !value.is_empty()),
                ("XDG_DATA_HOME", Ok(value)) => {
                    self.xdg_data_home = Some(value).filter(|value| !value.is_empty())
                }
                (_, Ok(value)) => self.add(name, value, Origin::Environment),
                (_, Err(_)) if relevant(&name) => self.problems.push(Problem {
                    variable: name,
                    origin: Origin::Environment,
                    value: None,
                    wrong: "its value is not valid UTF-8".to_owned(),
                    instead: "write it in UTF-8".to_owned(),
                }),
                (_, Err(_)) => {}
            }
        }
    }

    /// Adds an optional `.env` file.
    pub(crate) fn add_file(&mut self, path: &Path) {
        match std::fs::read_to_string(path) {
            Ok(text) => self.add_env_text(&text),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => self.problems.push(file_problem(
                format!("cannot be read ({})", error.kind()),
                "make it a readable UTF-8 file, or remove it",
            )),
        }
    }

    /// Adds the text of a `.env` file; names in the environment keep their values.
    pub(crate) fn add_env_text(&mut self, text: &str) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for dropped in dropped_dollars(text, |name| std::env::var_os(name).is_some()) {
            if relevant(&dropped.variable) {
                self.problems.push(file_problem(
                    format!(
                        "the value of {} on line {} has a $ before a name that is not set",
                        dropped.variable, dropped.line
                    ),
                    "write NAME='value', with single quotes, in which a $ is kept",
                ));
            }
        }
        for item in dotenvy::from_read_iter(text.as_bytes()) {
            match item {
                Ok((name, value)) => self.add(name, value, Origin::EnvFile),
                // The error's own text repeats the line, which may contain a secret, so only its number is reported.
                Err(dotenvy::Error::LineParse(line, _)) => {
                    let at = line_number(text, &line).map_or_else(String::new, |number| format!(" {number}"));
                    self.problems.push(file_problem(
                        format!("line{at} cannot be parsed"),
                        "write NAME='value', with single quotes where there are spaces or quotes in the value",
                    ));
                }
                Err(_) => {
                    self.problems.push(file_problem("cannot be read".to_owned(), "make it a plain text file"))
                }
            }
        }
    }

    /// Keeps the first value of a name: the environment is added first.
    fn add(&mut self, name: String, value: String, origin: Origin) {
        if relevant(&name) {
            self.values.entry(name).or_insert((origin, value));
        }
    }

    #[cfg(test)]
    pub(crate) fn with_root(mut self) -> Self {
        self.root = true;
        self
    }
}

/// Whether a variable is ours, or looks like one of ours.
fn relevant(name: &str) -> bool {
    name.starts_with("SERVICE_") || name.starts_with("CHAT_TOKEN_")
}

/// The number of the only line that ends in the piece that dotenvy rejected.
fn line_number(text: &str, piece: &str) -> Option<usize> {
    let first = piece.lines().next().map(str::trim).filter(|first| !first.is_empty())?;
    let mut numbers =
        (1..).zip(text.lines()).filter(|(_, line)| line.trim_end().ends_with(first)).map(|(n, _)| n);
    let number = numbers.next()?;
    numbers.next().is_none().then_some(number)
}

fn file_problem(wrong: String, instead: &str) -> Problem {
    Problem {
        variable: ENV_FILE.to_owned(),
        origin: Origin::EnvFile,
        value: None,
        wrong,
        instead: instead.to_owned(),
    }
}

/// The owner of `/proc/self` is the effective user; asking the kernel directly would need an unsafe call.
fn runs_as_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    match std::fs::metadata("/proc/self") {
        Ok(metadata) => metadata.uid() == 0,
        Err(_) => std::env::var_os("USER").is_some_and(|user| user == "root"),
    }
}
