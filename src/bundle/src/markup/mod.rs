//! A bundle's documents: HTML, SVG and XML.
//!
//! HTML is parsed by html5ever as in a browser with scripts, into a sink without a tree. The parser receives small
//! parts, and the counters and the clock are checked after each part, because a few bytes of a document can be
//! expensive.

mod counters;
mod import_map;
mod report;
mod rules;
mod scripts;
mod sink;
mod urls;
mod xml;

use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, parse_document};

use crate::code::Code;
use crate::deadline::Deadline;
use crate::error::CheckError;
use crate::finding::Findings;
use crate::kinds::extension;
use counters::{Counters, MAX_BYTES, MAX_NESTED, MAX_TIME};
pub(crate) use report::Notes;
use report::Report;
use sink::{DeferredText, ParseState, Sink, What};
use xml::Parsed;

const PART_BYTES: usize = 4 * 1024;
/// A larger document gets a note.
const LARGE_BYTES: u64 = 1024 * 1024;

/// The rules for reading a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkupKind {
    Html,
    Svg,
    /// XHTML, served as text.
    Xhtml,
    Xml,
}

impl MarkupKind {
    /// The document kind of a file by its extension; `None` if it is not a document.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        match extension(path).as_str() {
            "html" | "htm" => Some(Self::Html),
            "svg" => Some(Self::Svg),
            "xhtml" => Some(Self::Xhtml),
            "xml" | "xsl" | "rss" | "atom" => Some(Self::Xml),
            _ => None,
        }
    }
}

/// Whether a document of this size is read.
pub(crate) fn is_readable(path: &str, size: u64, findings: &mut Findings) -> bool {
    if size > MAX_BYTES {
        let detail = format!("The document has more than {MAX_BYTES} bytes.");
        findings.line(Code::HtmlParseLimit, path, None, detail);
    }
    size <= MAX_BYTES
}

/// Checks a document; returns the script hashes for its policy.
pub(crate) fn read(
    path: &str,
    kind: MarkupKind,
    bytes: &[u8],
    deadline: &Deadline<'_>,
    findings: &mut Findings,
    notes: &mut Notes,
) -> Result<Vec<String>, CheckError> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let detail = "The document has bytes that are not UTF-8.";
            findings.line(Code::NotUtf8, path, u32::try_from(line).ok(), detail);
            return Ok(Vec::new());
        }
    };
    if kind == MarkupKind::Html && u64::try_from(text.len()).is_ok_and(|size| size > LARGE_BYTES) {
        let detail = "Visitors wait for a document of more than 1 MiB.".to_owned();
        notes.add("large_html", path, None, detail);
    }
    let own = deadline.part(MAX_TIME);
    let mut report = Report { path, line: 1, findings, notes };
    let mut counts = true;
    if kind != MarkupKind::Html {
        match xml::read(text, kind, &mut report, || own.has_passed()) {
            // Readers agree about well-formed XML.
            Parsed::WellFormed if kind != MarkupKind::Svg => return Ok(Vec::new()),
            Parsed::WellFormed => counts = false,
            Parsed::Broken => {}
            Parsed::TooComplex(detail) => {
                deadline.check()?;
                report.findings.line(Code::HtmlParseLimit, path, None, detail);
                return Ok(Vec::new());
            }
        }
    }
    let scripting = kind == MarkupKind::Html;
    let (scripts, kept) = (Vec::new(), Vec::new());
    let counters = Counters::default();
    let state = ParseState { report, kind, first_line: 1, scripting, counts, counters, scripts, kept };
    let mut state = html(text, 0, state, &own)?;
    deadline.check()?;
    let scripts = std::mem::take(&mut state.scripts);
    Ok(scripts::judge(scripts, &mut state.report))
}

/// Parses a text and its nested documents.
fn html<'a>(
    text: &str,
    level: usize,
    state: ParseState<'a>,
    deadline: &Deadline<'_>,
) -> Result<ParseState<'a>, CheckError> {
    let tree_builder = TreeBuilderOpts { scripting_enabled: state.scripting, ..TreeBuilderOpts::default() };
    let mut parser = parse_document(Sink::new(state), ParseOpts { tree_builder, ..ParseOpts::default() });
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.floor_char_boundary(PART_BYTES));
        parser.process(StrTendril::from_slice(part));
        rest = after;
        let state = &mut *parser.tokenizer.sink.sink.state.borrow_mut();
        if let Some(detail) = state.counters.exceeded() {
            state.too_complex(detail);
            break;
        }
        if deadline.has_passed() {
            state.too_complex("Reading the document takes too long.".to_owned());
            break;
        }
    }
    if !rest.is_empty() || parser.tokenizer.sink.sink.state.borrow().counters.exceeded().is_some() {
        // `finish` would parse the remaining text.
        return Ok(parser.tokenizer.sink.sink.state.into_inner());
    }
    let mut state = parser.finish();
    for DeferredText { line, text, what } in std::mem::take(&mut state.kept) {
        state.report.line = line;
        match what {
            What::Style => {
                rules::style_sheet(&text, &mut state.report);
                if urls::runs_in_style(&text) {
                    state
                        .report
                        .find(Code::JavascriptUrl, "A style sheet has an address that runs a script.");
                }
            }
            What::NoScript | What::SourceDocument if level >= MAX_NESTED => {
                state.too_complex(format!(
                    "The document has documents inside each other, more than {MAX_NESTED} deep."
                ));
            }
            What::NoScript | What::SourceDocument => {
                state.first_line = line;
                state.scripting = what == What::SourceDocument;
                state = html(&text, level + 1, state, deadline)?;
            }
        }
    }
    Ok(state)
}
