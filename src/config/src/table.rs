//! The table of `callboard config show`.

use std::borrow::Cow;
use std::fmt::Write;

use serde::Serialize;
use textwrap::WordSplitter;

use crate::problem::{Problem, Problems};
use crate::source::{Origin, Source};
use crate::variables::{Variable, groups, variables};
use crate::{Config, dsn};

const WIDTH: usize = 100;
/// The longest name has 39 characters.
const NAME: usize = 40;
/// `environment` is the longest origin.
const ORIGIN: usize = 11;
const VALUE_INDENT: usize = 2 + NAME + 1 + ORIGIN + 2;
const TEXT_INDENT: usize = 6;

/// One variable with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The variable.
    pub name: &'static str,
    /// The id of its group.
    pub group: &'static str,
    /// Its purpose.
    pub meaning: &'static str,
    /// The default, as a value or in words.
    pub default: Option<&'static str>,
    /// The effective value; a secret is `********`, and so is the password in a DSN. `None` if unset and without a
    /// plain default.
    pub value: Option<String>,
    /// The value's origin.
    pub source: Origin,
    /// Whether it is a secret.
    pub secret: bool,
    /// The reason why setting it has no effect yet.
    pub pending: Option<&'static str>,
    /// The problem with the value, and the allowed values.
    pub problem: Option<String>,
}

/// The reader for whom [`render()`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A terminal: names are emphasised, and no line is longer than 100 columns.
    Terminal,
    /// Like [`Look::Terminal`], without emphasis.
    Plain,
    /// A pipe or a file: each variable's name, source and whole value are on one line.
    Lines,
}

/// All variables in group order.
#[must_use]
pub fn table(source: &Source, config: &Config) -> Vec<Row> {
    rows(source, Some(config), &[])
}

/// The same for an unusable configuration: the operator who repairs it needs the table most.
#[must_use]
pub fn table_of_problems(source: &Source, problems: &Problems) -> Vec<Row> {
    rows(source, None, &problems.0)
}

fn rows(source: &Source, config: Option<&Config>, problems: &[Problem]) -> Vec<Row> {
    let row = |variable: &'static Variable| {
        let ours = || problems.iter().filter(|problem| problem.variable == variable.name);
        let wrong = ours().map(|problem| format!("{}; {}", problem.wrong, problem.instead));
        Row {
            name: &variable.name,
            group: &variable.group,
            meaning: &variable.meaning,
            default: variable.default.as_deref().or(variable.computed_default.as_deref()),
            // Formatted by the problem: a secret may be in the wrong variable.
            value: match ours().find_map(|problem| problem.value.clone()) {
                Some(refused) => Some(refused),
                None => value(variable, source, config),
            },
            source: source.origin(&variable.name),
            secret: variable.secret,
            pending: variable.pending.as_deref(),
            problem: wrong.reduce(|all, next| format!("{all}; {next}")),
        }
    };
    variables().iter().map(row).collect()
}

fn value(variable: &Variable, source: &Source, config: Option<&Config>) -> Option<String> {
    match source.get(&variable.name) {
        // The database's location helps the reader; the password stays hidden in every variable.
        Some(given) if variable.name == "SERVICE_POSTGRES_DSN" || dsn::is_url(given.trim()) => {
            Some(dsn::shown(given.trim()))
        }
        Some(given) if variable.secret => Some(kernel::mask(given).to_owned()),
        Some(given) => Some(given.trim().to_owned()).filter(|given| !given.is_empty()),
        None => None,
    }
    .or_else(|| variable.default.clone())
    .or_else(|| worked_out(&variable.name, config?))
}

/// Defaults that depend on the machine or on other values.
fn worked_out(name: &str, config: &Config) -> Option<String> {
    match name {
        "SERVICE_DATA_DIR" => Some(config.data.dir.display().to_string()),
        "SERVICE_DATABASE_WRITERS" => Some(config.database.writers.to_string()),
        "SERVICE_SANDBOX_WORKERS" => Some(config.sandbox.workers.to_string()),
        "SERVICE_HTTP_WORKERS" => Some(config.http.workers.to_string()),
        _ => None,
    }
}

/// Formats the table as text for people.
#[must_use]
pub fn render(rows: &[Row], look: Look) -> String {
    let mut text = String::new();
    for group in groups() {
        let mut rows = rows.iter().filter(|row| row.group == group.id).peekable();
        if rows.peek().is_none() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&strong(&group.title, look));
        text.push('\n');
        for row in rows {
            render_row(&mut text, row, look);
        }
    }
    text
}

fn strong(text: &str, look: Look) -> String {
    if look == Look::Terminal { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

fn render_row(text: &mut String, row: &Row, look: Look) {
    let value = one_line(row.value.as_deref().unwrap_or("(not set)"));
    let mut lines = match look {
        Look::Lines => vec![Cow::Borrowed(value.as_str())],
        Look::Terminal | Look::Plain => textwrap::wrap(&value, width(VALUE_INDENT)),
    }
    .into_iter();
    let first = lines.next().unwrap_or_default();
    // Aligned before it is emphasised, because the emphasis adds characters too.
    let name = strong(&format!("{:<NAME$}", row.name), look);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n  {name} {:<ORIGIN$}  {first}", row.source);
    for line in lines {
        let _ = writeln!(text, "{:VALUE_INDENT$}{line}", "");
    }
    let mut meaning = row.meaning.to_owned();
    if let Some(default) = row.default.filter(|default| row.value.as_deref() != Some(default)) {
        let _ = write!(meaning, " Default: {default}.");
    }
    let wrong = row.problem.as_ref().map(|problem| format!("Wrong: {problem}."));
    let pending = row.pending.map(|pending| format!("No effect yet: {pending}."));
    for said in [wrong, Some(meaning), pending].into_iter().flatten() {
        for line in textwrap::wrap(&said, width(TEXT_INDENT)) {
            let _ = writeln!(text, "{:TEXT_INDENT$}{line}", "");
        }
    }
}

/// The line width after an indent; words are not split at hyphens.
fn width(indent: usize) -> textwrap::Options<'static> {
    textwrap::Options::new(WIDTH.saturating_sub(indent)).word_splitter(WordSplitter::NoHyphenation)
}

/// A value cannot break out of its line or colour the terminal.
fn one_line(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        if letter.is_control() { text.extend(letter.escape_debug()) } else { text.push(letter) }
    }
    text
}
