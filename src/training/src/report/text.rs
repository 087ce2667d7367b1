//! Renders a report as plain text with 80 columns.

use wire::TrainingKind;

use super::diff::{DiffRow, rows};
use super::facts::{self, Fact, MAX_NAME, MAX_RATIONALE};
use super::model::{PromptReport, Report, seed_score};
use super::plot::plot;
use super::visible::{line, visible};
use super::wrap::{paragraph, pieces};

const WIDTH: usize = 80;
/// Columns per label.
const LABEL: usize = 16;

/// Renders the report for people, in lines of at most 80 columns.
///
/// A longer prompt line continues after `↪`. Invisible characters are shown as signs, such as `␛`.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut text = heading("Training report", '=');
    text.push('\n');
    text.push_str(&paragraph(&report.verdict, "", WIDTH));
    text.push('\n');
    text.push_str(&list(&facts::run(report)));
    if report.kind == TrainingKind::Training {
        section(&mut text, "Seed against best", &scores(report));
        section(&mut text, "Curve", &lines(plot(&report.curve, seed_score(report))));
        section(&mut text, "Prompts", &prompts(&report.prompts));
        section(&mut text, "Checkpoints", &checkpoints(report));
    }
    section(&mut text, "Usage", &list(&facts::usage(report)));
    section(&mut text, "Warnings", &warnings(report));
    section(&mut text, "Judges", &judges(report));
    text
}

fn heading(title: &str, under: char) -> String {
    let line: String = title.chars().map(|_| under).collect();
    format!("{title}\n{line}\n")
}

fn section(text: &mut String, title: &str, content: &str) {
    text.push('\n');
    text.push_str(&heading(title, '-'));
    text.push_str(content);
}

fn lines(lines: Vec<String>) -> String {
    lines.into_iter().map(|line| format!("{line}\n")).collect()
}

fn list(facts: &[Fact]) -> String {
    facts.iter().map(|(label, value)| paragraph(value, &format!("{label:<LABEL$}"), WIDTH)).collect()
}

fn scores(report: &Report) -> String {
    let rows = facts::scores(report);
    let mut table = String::new();
    if !rows.is_empty() {
        table.push_str(&format!("{:<24}{:>8}{:>8}{:>12}\n", "", "seed", "best", "difference"));
    }
    for row in rows {
        table.push_str(&format!("{:<24}{:>8}{:>8}{:>12}\n", row.label, row.seed, row.best, row.difference));
    }
    let notes = facts::score_notes(report);
    table + &notes.iter().map(|note| paragraph(note, "", WIDTH)).collect::<String>()
}

fn prompts(prompts: &[PromptReport]) -> String {
    if prompts.is_empty() {
        return "No prompt was trained.\n".to_owned();
    }
    prompts.iter().map(prompt).collect::<Vec<_>>().join("\n")
}

fn prompt(prompt: &PromptReport) -> String {
    let name = line(&prompt.name, MAX_NAME);
    let state = match (&prompt.seed, &prompt.best, &prompt.diff) {
        (_, None, _) => "not returned",
        (None, Some(_), _) => "new",
        (_, _, None) => "unchanged",
        (_, _, Some(_)) => "changed",
    };
    let head = paragraph(&format!("{name} ({state})"), "", WIDTH);
    let diff =
        prompt.diff.as_deref().map(|diff| rows(diff).iter().map(|row| diff_row(*row)).collect::<String>());
    let said = prompt.rationale.as_deref().map(|said| line(said, MAX_RATIONALE));
    let said = said.map(|said| paragraph(&format!("Rationale: {said}"), "", WIDTH));
    head + &said.unwrap_or_default() + &diff.unwrap_or_default()
}

/// A line with its sign; a long one continues after the sign and `↪`.
fn diff_row(row: DiffRow<'_>) -> String {
    let (sign, line) = match row {
        DiffRow::Removed(line) => ('-', line),
        DiffRow::Added(line) => ('+', line),
        DiffRow::Equal(line) => (' ', line),
        DiffRow::Skipped(count) => return format!("  … {count} equal lines\n"),
    };
    let mut text = String::new();
    for (number, piece) in pieces(&visible(line), WIDTH - 2).iter().enumerate() {
        let mark = if number == 0 { ' ' } else { '↪' };
        text.push_str(&format!("{sign}{mark}{piece}\n"));
    }
    text
}

fn checkpoints(report: &Report) -> String {
    if report.checkpoints.is_empty() {
        return "No checkpoint was written.\n".to_owned();
    }
    let row = |[id, number, epoch, score, best]: [String; 5]| {
        paragraph(&format!("{id:<36} {number:>8} {epoch:>7} {score:>8}  {best}"), "", WIDTH)
    };
    let head = ["checkpoint", "number", "epoch", "score", "best"].map(str::to_owned);
    row(head)
        + &report.checkpoints.iter().map(|checkpoint| row(facts::checkpoint(checkpoint))).collect::<String>()
}

fn warnings(report: &Report) -> String {
    if report.warnings.is_empty() {
        return "None.\n".to_owned();
    }
    let warnings = facts::warnings(&report.warnings);
    warnings.iter().map(|(code, message)| paragraph(&format!("{code}: {message}"), "* ", WIDTH)).collect()
}

fn judges(report: &Report) -> String {
    if report.judges.is_empty() {
        return "No judge was compared with verdicts of people.\n".to_owned();
    }
    report.judges.iter().map(|judge| paragraph(&facts::judge(judge), "* ", WIDTH)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::wrap::columns;
    use super::*;

    fn assert_fits(text: &str) {
        for line in text.lines() {
            assert!(columns(line) <= WIDTH, "{} columns: {line}", columns(line));
            assert!(line.chars().all(|letter| !letter.is_control()), "{line:?}");
        }
    }

    #[test]
    fn a_report_of_a_gain_is_complete() {
        let report = text(&Report::from(samples::improved()));
        let expected = "\
Training report
===============

The returned prompts are better than the seed by .12 (95 % interval .04 to .20)
on 24 cases.

Run             0197a000-0000-7000-8000-000000000001
Workflow        0197a000-0000-7000-8000-0000000000aa, version 3
Status          succeeded
Optimizer       textgrad (epochs 3, seed 0)
Cases           6 cases: 3 for training, 2 for scoring, 1 for the test
Fingerprint     abababababababababababababababababababababababababababababababab
Candidates      2 accepted, 1 rejected
Outcome         improved
Stop reason     epochs: all epochs are done
Created         2026-01-01T00:00:00Z
Started         2026-01-01T00:00:01Z
Finished        2026-01-01T00:10:00Z

Seed against best
-----------------
                            seed    best  difference
Scoring cases                .52     .64        +.12
95 % interval of the difference: .04 to .20; z 3.0 (over 1.9 is more than
chance); 24 cases.
The final comparison uses fresh samples if the budget allows; the curve can
show other scores.

Curve
-----
1.00 │
     │
     │
     │
     │    ●───●───
 .50 │●───┈┈┈┈┈┈┈┈
";
        assert!(report.starts_with(expected), "{report}");
        let end = "
Prompts
-------
greeting (unchanged)

system (changed)
  You answer.
- Be nice.
+ Be brief.
+ Quote the source.

Checkpoints
-----------
checkpoint                             number   epoch    score  best
0197a000-0000-7000-8000-0000000000cc        7       3      .64  yes

Usage
-----
Cost            1.23 USD
Requests        1,240 (workflow 1,000, evaluators 200, optimizer 40)
Retries         2
From the cache  310
Tokens          1,048,576 read, 65,536 written (estimated in part)

Warnings
--------
* prompt_unread: No node reads \"footer\".

Judges
------
No judge was compared with verdicts of people.
";
        assert!(report.ends_with(end), "{report}");
        assert_fits(&report);
        assert_eq!(report, text(&Report::from(samples::improved())));
    }

    #[test]
    fn a_run_in_progress_and_an_empty_one_have_reports() {
        let running = text(&Report::from(samples::running()));
        assert!(
            running.contains("The run is in progress.") && running.contains("system (not returned)"),
            "{running}"
        );
        let mut data = samples::running();
        data.epochs.clear();
        data.checkpoints.clear();
        data.seed_prompts.clear();
        data.warnings.clear();
        data.splits = None;
        let empty = text(&Report::from(data));
        for part in ["No epoch has ended.", "No prompt was trained.", "No checkpoint was written.", "None."] {
            assert!(empty.contains(part), "{part}: {empty}");
        }
        assert_fits(&running);
        assert_fits(&empty);
    }

    #[test]
    fn hostile_texts_and_long_lines_fit_and_stay_visible() {
        let report = text(&Report::from(samples::hostile()));
        assert_fits(&report);
        assert!(report.contains("␛[31m[U+202E]") && report.contains("\n+↪"), "{report}");
    }

    #[test]
    fn a_wrapped_line_is_marked_as_a_continuation() {
        let long = format!("{} end", "word ".repeat(20));
        let shown = diff_row(DiffRow::Added(&long));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("+ word") && lines[1].starts_with("+↪word"), "{shown}");
        assert_eq!(
            lines.iter().map(|line| line.chars().skip(2).collect::<String>()).collect::<String>(),
            long
        );
        assert_eq!(
            (diff_row(DiffRow::Removed("")), diff_row(DiffRow::Skipped(7))),
            ("- \n".into(), "  … 7 equal lines\n".into())
        );
    }
}
