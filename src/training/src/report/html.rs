//! Renders a report as one HTML page.

use wire::TrainingKind;

use super::diff::{DiffRow, rows};
use super::facts::{self, Fact, MAX_NAME, MAX_RATIONALE};
use super::model::{PromptReport, Report, curve_result, curve_title, seed_score};
use super::number::score;
use super::style::page_style;
use super::svg;
use super::visible::{escaped, line, visible};

/// Also protects a saved page: nothing runs and nothing is loaded, whatever its content.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Renders the report as a self-contained page: no script, no request, light or dark as the reader's system.
///
/// It has one `style` element, with the content from `page_style`, and no `style` attribute.
#[must_use]
pub fn html(report: &Report) -> String {
    let title = escaped(&line(&format!("Training report: {}", report.run), MAX_NAME));
    let class = if report.outcome.as_deref() == Some("improved") { "verdict improved" } else { "verdict" };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"referrer\" content=\"no-referrer\"/>\n\
         <title>{title}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n\
         <h1>Training report</h1>\n<p class=\"{class}\">{}</p>\n",
        page_style(),
        escaped(&visible(&report.verdict))
    );
    section(&mut page, "run", "Run", &list("Training and outcome", &facts::run(report)));
    if report.kind == TrainingKind::Training {
        section(&mut page, "scores", "Seed against best", &scores(report));
        section(&mut page, "curve", "Curve", &curve(report));
        section(&mut page, "prompts", "Prompts", &prompts(&report.prompts));
        section(&mut page, "checkpoints", "Checkpoints", &checkpoints(report));
    }
    if report.kind == TrainingKind::Evaluation {
        let svg = svg::inline_scores(&report.distribution, report.score, &curve_title(report));
        section(&mut page, "scores", "Scores", &format!("<figure>\n{svg}</figure>\n"));
    }
    section(&mut page, "usage", "Usage", &list("Model usage", &facts::usage(report)));
    section(&mut page, "warnings", "Warnings", &warnings(report));
    section(&mut page, "judges", "Judges", &judges(report));
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn section(page: &mut String, id: &str, title: &str, content: &str) {
    page.push_str(&format!(
        "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{title}</h2>\n{content}</section>\n"
    ));
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escaped(text))
}

/// A table with labels and values.
fn list(caption: &str, facts: &[Fact]) -> String {
    let row = |(label, value): &Fact| {
        format!("<tr><th scope=\"row\">{label}</th><td>{}</td></tr>\n", escaped(value))
    };
    let rows: String = facts.iter().map(row).collect();
    format!("<table class=\"facts\">\n<caption>{caption}</caption>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

/// A table with a head. The first cell names the row; the others are numbers.
fn table<const N: usize>(
    caption: &str,
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let class = |place: usize| if place == 0 { "" } else { " class=\"number\"" };
    let head =
        head.iter().enumerate().map(|(place, cell)| format!("<th scope=\"col\"{}>{cell}</th>", class(place)));
    let head: String = head.collect();
    let cell = |(place, cell): (usize, &String)| match place {
        0 => format!("<th scope=\"row\">{}</th>", escaped(cell)),
        _ => format!("<td{}>{}</td>", class(place), escaped(cell)),
    };
    let row =
        |cells: [String; N]| format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>());
    let rows: String = rows.into_iter().map(row).collect();
    format!(
        "<table>\n<caption>{caption}</caption>\n<thead>\n<tr>{head}</tr>\n</thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
    )
}

fn scores(report: &Report) -> String {
    let rows = facts::scores(report);
    let notes: String = facts::score_notes(report).iter().map(|note| paragraph(note)).collect();
    if rows.is_empty() {
        return notes;
    }
    let rows = rows.into_iter().map(|row| [row.label.to_owned(), row.seed, row.best, row.difference]);
    table("Mean scores, from 0 to 1", ["Cases", "Seed", "Best", "Difference"], rows) + &notes
}

fn curve(report: &Report) -> String {
    let svg = svg::inline(&report.curve, seed_score(report), curve_result(report), &curve_title(report));
    let figure = format!("<figure>\n{svg}</figure>\n");
    if report.curve.is_empty() {
        return figure;
    }
    let rows = report.curve.iter().map(|it| [it.epoch.to_string(), score(it.score), score(it.best_score)]);
    let numbers = table("Scores by epoch", ["Epoch", "Score", "Best so far"], rows);
    format!("{figure}<details>\n<summary>The curve in numbers</summary>\n{numbers}</details>\n")
}

fn prompts(prompts: &[PromptReport]) -> String {
    if prompts.is_empty() {
        return paragraph("No prompt was trained.");
    }
    prompts.iter().map(prompt).collect()
}

fn prompt(prompt: &PromptReport) -> String {
    let name = escaped(&line(&prompt.name, MAX_NAME));
    let whole = |title: &str, text: &Option<String>| {
        let text = text.as_deref().map(|text| escaped(&visible_lines(text)));
        text.map(|text| {
            format!("<details>\n<summary>{title} of {name}</summary>\n<pre>{text}</pre>\n</details>\n")
        })
        .unwrap_or_default()
    };
    let content = match (&prompt.best, &prompt.diff) {
        (None, _) => paragraph("Not returned.") + &whole("Seed text", &prompt.seed),
        (Some(_), None) => paragraph("Unchanged.") + &whole("Text", &prompt.seed),
        (Some(_), Some(diff)) => {
            let rows: String = rows(diff).into_iter().map(diff_row).collect();
            let said = prompt.rationale.as_deref().map(|said| line(said, MAX_RATIONALE));
            let said = said.map(|said| paragraph(&format!("Rationale: {said}"))).unwrap_or_default();
            format!(
                "{said}<pre aria-label=\"Changed lines of {name}\">{rows}</pre>\n{}{}",
                whole("Seed text", &prompt.seed),
                whole("Returned text", &prompt.best)
            )
        }
    };
    format!("<h3>{name}</h3>\n{content}")
}

/// Makes a text visible and keeps its line feeds.
fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// The signs are text, so that screen readers and copies include them.
fn diff_row(row: DiffRow<'_>) -> String {
    let shown = |line: &str| escaped(&visible(line));
    match row {
        DiffRow::Removed(line) => format!("<del>- {}</del>", shown(line)),
        DiffRow::Added(line) => format!("<ins>+ {}</ins>", shown(line)),
        DiffRow::Equal(line) => format!("<span>  {}</span>", shown(line)),
        DiffRow::Skipped(count) => format!("<span class=\"skipped\">  … {count} equal lines</span>"),
    }
}

fn checkpoints(report: &Report) -> String {
    if report.checkpoints.is_empty() {
        return paragraph("No checkpoint was written.");
    }
    let head = ["Checkpoint", "Number", "Epoch", "Score", "Best when written"];
    table("Checkpoints in their order", head, report.checkpoints.iter().map(facts::checkpoint))
}

fn warnings(report: &Report) -> String {
    if report.warnings.is_empty() {
        return paragraph("None.");
    }
    let item = |(code, message): (String, String)| {
        format!("<li><code>{}</code>: {}</li>\n", escaped(&code), escaped(&message))
    };
    let items: String = facts::warnings(&report.warnings).into_iter().map(item).collect();
    format!("<ul>\n{items}</ul>\n")
}

fn judges(report: &Report) -> String {
    if report.judges.is_empty() {
        return paragraph("No judge was compared with verdicts of people.");
    }
    let items = report.judges.iter().map(|judge| format!("<li>{}</li>\n", escaped(&facts::judge(judge))));
    format!("<ul>\n{}</ul>\n", items.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, elements};
    use super::*;

    const ELEMENTS: [&str; 35] = [
        "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "section", "table",
        "caption", "thead", "tbody", "tr", "th", "td", "figure", "svg", "desc", "rect", "path", "circle",
        "text", "g", "details", "summary", "pre", "ins", "del", "span", "ul", "li",
    ];

    /// Asserts every page's invariants.
    fn assert_sound(page: &str) {
        let inside = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
        for element in elements(inside) {
            assert!(ELEMENTS.contains(&element.as_str()) || element == "code", "{element}");
        }
        assert_eq!(page.matches("<style").count(), 1);
        assert!(page.contains(&format!("<style>{}</style>", page_style())));
        for word in ["<script", " style=\"", "src=\"", "href=\"", "onload=\"", "@import", "url("] {
            assert!(!page.contains(word), "{word}");
        }
        let without_names = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(!without_names.contains("http://") && !without_names.contains("https://"));
        assert!(page.chars().all(|letter| letter == '\n' || !letter.is_control() && letter != '\u{202e}'));
        let ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let mut unique = ids.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), ids.len(), "{ids:?}");
        assert_eq!(page.matches("<caption>").count(), page.matches("<table").count());
    }

    #[test]
    fn a_page_is_self_contained() {
        let page = html(&Report::from(samples::improved()));
        assert_sound(&page);
        assert_eq!(page.matches("<h1>").count(), 1);
        assert_eq!(page.matches("<section aria-labelledby=").count(), 8);
        assert!(page.contains("<p class=\"verdict improved\">The returned prompts are better"));
        assert!(page.contains("<tr><th scope=\"row\">Scoring cases</th><td class=\"number\">.52</td><td class=\"number\">.64</td>"));
        assert!(page.contains("<span>  You answer.</span><del>- Be nice.</del><ins>+ Be brief.</ins>"));
        assert!(page.contains("<h3>greeting</h3>\n<p>Unchanged.</p>"));
        assert!(page.contains("<svg ") && page.contains("<caption>Scores by epoch</caption>"));
        assert!(page.contains("<li><code>prompt_unread</code>: No node reads &quot;footer&quot;.</li>"));
        assert_eq!(page, html(&Report::from(samples::improved())));
    }

    #[test]
    fn a_run_in_progress_and_an_empty_one_have_pages() {
        let running = html(&Report::from(samples::running()));
        assert_sound(&running);
        assert!(
            running.contains("<p class=\"verdict\">The run is in progress.")
                && running.contains("Not returned.")
        );
        let mut data = samples::running();
        data.epochs.clear();
        data.checkpoints.clear();
        data.seed_prompts.clear();
        data.warnings.clear();
        let empty = html(&Report::from(data));
        assert_sound(&empty);
        assert!(empty.contains("No prompt was trained.") && empty.contains("No epoch has ended."));
    }

    #[test]
    fn hostile_texts_stay_text() {
        let page = html(&Report::from(samples::hostile()));
        assert_sound(&page);
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("␛[31m"));
    }

    #[test]
    fn a_line_feed_is_kept_and_other_control_characters_are_shown() {
        assert_eq!(visible_lines("a\n\n\tb\r\n"), "a\n\n␉b␍\n");
    }
}
