//! The checks' findings, and their output.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::json;

use crate::output::{CommandError, Output, say};
use crate::terminal::Paint;

/// Severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    /// Not checked, for the reason in the message.
    Skipped,
    Warning,
    Problem,
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }

    fn painted(self, paint: Paint, word: String) -> String {
        match self {
            Self::Ok => paint.good(word),
            Self::Skipped => paint.dim(word),
            Self::Warning => paint.warning(word),
            Self::Problem => paint.bad(word),
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) message: String,
    /// The remedy.
    pub(super) remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, message: message.into(), remedy: None }
    }

    pub(super) fn skipped(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Skipped, message: message.into(), remedy: None }
    }

    pub(super) fn warning(
        check: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { check, level: Level::Warning, message: message.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn problem(
        check: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { check, level: Level::Problem, message: message.into(), remedy: Some(remedy.into()) }
    }

    /// Splits a start error: the text after its last semicolon is the remedy. A sentence without a semicolon contains
    /// both.
    pub(super) fn refusal(check: &'static str, sentence: &str) -> Self {
        let (message, remedy) = match sentence.rsplit_once("; ") {
            Some((message, remedy)) => (message, Some(remedy.to_owned())),
            None => (sentence, None),
        };
        Self { check, level: Level::Problem, message: message.to_owned(), remedy }
    }
}

/// All findings, in the order of the checks.
pub(super) struct Report(pub(super) Vec<Finding>);

impl Report {
    pub(super) fn problems(&self) -> usize {
        self.count(Level::Problem)
    }

    fn count(&self, level: Level) -> usize {
        self.0.iter().filter(|finding| finding.level == level).count()
    }

    pub(super) fn print(&self, output: Output) -> Result<(), CommandError> {
        match output {
            Output::Human => say(self.text(Paint::stdout()).trim_end()),
            Output::Json => {
                say(serde_json::to_string_pretty(&self.json()).map_err(|error| error.to_string())?)
            }
        }
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "status": if self.problems() == 0 { "ok" } else { "problem" },
            "problems": self.problems(),
            "warnings": self.count(Level::Warning),
            "checks": self.0,
        })
    }

    fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        for Finding { check, level, message, remedy } in &self.0 {
            let word = format!("{:<8}", level.word());
            let word = level.painted(paint, word);
            // One line each, whatever the error contains. Writing to a String cannot fail.
            let _ = writeln!(text, "{word} {check:<16} {}", message.replace('\n', " | "));
            if let Some(remedy) = remedy {
                let _ = writeln!(text, "         {:<16} -> {}", "", remedy.replace('\n', " | "));
            }
        }
        let (problems, warnings) = (self.problems(), self.count(Level::Warning));
        let _ = match (problems, warnings) {
            (0, 0) => writeln!(text, "\nNo problems found."),
            _ => writeln!(text, "\n{}, {}.", counted(problems, "problem"), counted(warnings, "warning")),
        };
        text
    }
}

fn counted(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_line_for_each_finding_with_its_remedy_and_a_summary() {
        let report = Report(vec![
            Finding::ok("configuration", "it can be read"),
            Finding::refusal("database", "nothing listens there; start it, or name another"),
            Finding::warning("clock", "off", "set it"),
            Finding::skipped("readiness", "no service"),
        ]);
        let expected = "ok       configuration    it can be read\n\
                        problem  database         nothing listens there\n\
                        \x20                         -> start it, or name another\n\
                        warning  clock            off\n\
                        \x20                         -> set it\n\
                        skipped  readiness        no service\n\n\
                        1 problem, 1 warning.\n";
        assert_eq!(report.text(Paint::plain()), expected);
        let json = report.json();
        assert_eq!((&json["status"], &json["problems"]), (&json!("problem"), &json!(1)));
        assert_eq!(
            json["checks"][0],
            json!({"check": "configuration", "level": "ok",
                   "message": "it can be read", "remedy": null})
        );
        assert_eq!(
            Report(vec![Finding::ok("a", "b")]).text(Paint::plain()).lines().last(),
            Some("No problems found.")
        );
    }
}
