//! A document's scripts: executable scripts are hashed, data is ignored, other types are refused.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{Context, SHA256};

use super::import_map;
use super::report::{Report, quoted};
use super::rules::Tag;
use super::urls::{self, Url};
use crate::code::Code;
use crate::hints;

/// Maximum inline scripts in a document's policy.
const MAX_HASHES: usize = 100;
/// Maximum import map bytes.
const MAP_BYTES: usize = 256 * 1024;

const JAVASCRIPT: [&str; 16] = [
    "application/ecmascript",
    "application/javascript",
    "application/x-ecmascript",
    "application/x-javascript",
    "text/ecmascript",
    "text/javascript",
    "text/javascript1.0",
    "text/javascript1.1",
    "text/javascript1.2",
    "text/javascript1.3",
    "text/javascript1.4",
    "text/javascript1.5",
    "text/jscript",
    "text/livescript",
    "text/x-ecmascript",
    "text/x-javascript",
];
const DATA: [&str; 5] =
    ["application/json", "application/ld+json", "text/plain", "text/template", "text/x-template"];
const TEMPLATES: &str = "text/x-handlebars";

/// A script's purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ScriptKind {
    JavaScript,
    Module,
    ImportMap,
    Data,
    Unsupported(Box<str>),
}

impl ScriptKind {
    fn from_tag(tag: &Tag<'_>) -> Self {
        let written = match (tag.get("type"), tag.get("language")) {
            (Some(""), _) | (None, None | Some("")) => return Self::JavaScript,
            (Some(kind), _) => kind.to_owned(),
            (None, Some(language)) => format!("text/{language}"),
        };
        let kind = written.trim_matches(|char: char| char.is_ascii_whitespace()).to_ascii_lowercase();
        match kind.as_str() {
            "module" => Self::Module,
            "importmap" => Self::ImportMap,
            kind if JAVASCRIPT.contains(&kind) => Self::JavaScript,
            kind if DATA.contains(&kind) || kind.starts_with(TEMPLATES) => Self::Data,
            _ => Self::Unsupported(kind.into()),
        }
    }
}

/// A script while its text is parsed. A document can have very many scripts, most of them without text.
pub(super) struct Script {
    line: u32,
    kind: ScriptKind,
    source: Option<Box<str>>,
    text: Option<Box<ScriptText>>,
}

/// Data kept for a non-empty text.
struct ScriptText {
    digest: Context,
    is_blank: bool,
    /// An import map's text; `None` if it is too long.
    map: Option<String>,
}

impl Script {
    /// Starts an HTML script, or an SVG script in HTML: they name their files by different attributes, and browsers
    /// ignore the other one.
    pub(super) fn new(tag: &Tag<'_>, is_svg: bool, line: u32) -> Self {
        let source = if is_svg { tag.get("href").or_else(|| tag.get("xlink:href")) } else { tag.get("src") };
        Self { line, kind: ScriptKind::from_tag(tag), source: source.map(Box::from), text: None }
    }

    pub(super) fn add(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let kept = self.text.get_or_insert_with(|| {
            Box::new(ScriptText { digest: Context::new(&SHA256), is_blank: true, map: Some(String::new()) })
        });
        kept.digest.update(text.as_bytes());
        kept.is_blank &= text.trim_ascii().is_empty();
        if self.kind == ScriptKind::ImportMap {
            let fits = kept.map.as_ref().is_some_and(|map| map.len() + text.len() <= MAP_BYTES);
            match &mut kept.map {
                Some(map) if fits => map.push_str(text),
                map => *map = None,
            }
        }
    }

    /// Whether the script's text is in the document.
    pub(super) fn is_inline(&self) -> bool {
        self.source.is_none()
    }
}

/// Checks a document's scripts; returns the sorted hashes for its policy.
pub(super) fn judge(scripts: Vec<Script>, report: &mut Report<'_>) -> Vec<String> {
    let mut hashes = BTreeSet::new();
    let mut maps = 0_usize;
    for script in scripts {
        let mut find = |code, detail: String| report.find_at(script.line, code, detail);
        if let ScriptKind::Unsupported(kind) = &script.kind {
            let change = hints::script_type(kind).map(|change| format!(" {change}")).unwrap_or_default();
            find(Code::UnsupportedScriptType, format!("The type {} is not supported.{change}", quoted(kind)));
            continue;
        }
        if let Some(source) = &script.source {
            if script.text.is_some_and(|text| !text.is_blank) {
                let detail = "The script has an address and a text, which browsers ignore.";
                find(Code::UnsupportedScriptType, detail.to_owned());
            }
            match (&script.kind, urls::classify(source)) {
                (ScriptKind::ImportMap, _) => {
                    find(Code::UnsupportedScriptType, "An import map cannot have an address.".to_owned());
                }
                (ScriptKind::Data, _) | (_, Url::Relative | Url::Script) => {}
                _ => find(Code::ExternalScript, format!("The script comes from {}.", quoted(source))),
            }
            continue;
        }
        if script.kind == ScriptKind::ImportMap {
            maps += 1;
            if maps > 1 {
                let detail = "A document can have only one import map.";
                find(Code::UnsupportedScriptType, detail.to_owned());
            }
            let map = script.text.as_ref().map_or(Some(""), |text| text.map.as_deref());
            import_map::check(map, find);
        }
        if let Some(text) = script.text.filter(|_| script.kind != ScriptKind::Data) {
            hashes.insert(STANDARD.encode(text.digest.finish()));
        }
    }
    if hashes.len() > MAX_HASHES {
        let detail =
            format!("The document has {} inline scripts; at most {MAX_HASHES} are allowed.", hashes.len());
        report.findings.line(Code::CspTooLarge, report.path, None, detail);
    }
    hashes.into_iter().collect()
}
