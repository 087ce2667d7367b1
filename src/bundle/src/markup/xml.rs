//! SVG and XML: without scripts, entities and style sheet instructions.

use std::borrow::Cow;

use quick_xml::encoding::Decoder;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::MarkupKind;
use super::counters::{Counters, MAX_ATTRIBUTES};
use super::report::{Report, quoted};
use super::rules::{self, Tag};
use crate::code::Code;

/// Events between two deadline checks.
const EVENTS: u32 = 256;

/// The parse result.
pub(super) enum Parsed {
    WellFormed,
    /// Browsers stop at the error; other readers may continue.
    Broken,
    /// A limit was exceeded.
    TooComplex(String),
}

/// Checks a text by XML rules. `is_late` checks the deadline.
pub(super) fn read(
    text: &str,
    kind: MarkupKind,
    report: &mut Report<'_>,
    is_late: impl Fn() -> bool,
) -> Parsed {
    let mut reader = Reader::from_str(text);
    let mut counters = Counters::default();
    let (mut depth, mut counted, mut events) = (0_usize, 0_usize, 0_u32);
    report.line = 1;
    loop {
        let event = reader.read_event();
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX).min(text.len());
        let lines = text.as_bytes().get(counted..at).unwrap_or_default();
        let lines = lines.iter().filter(|byte| **byte == b'\n').count();
        report.line = report.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        counted = at;
        match event {
            Ok(Event::Eof) if depth == 0 => return Parsed::WellFormed,
            Ok(Event::Eof) | Err(_) => return Parsed::Broken,
            Ok(Event::Start(start)) => {
                depth += 1;
                if !tag(&start, reader.decoder(), kind, &mut counters, report) {
                    return Parsed::Broken;
                }
            }
            Ok(Event::Empty(start)) => {
                if !tag(&start, reader.decoder(), kind, &mut counters, report) {
                    return Parsed::Broken;
                }
            }
            Ok(Event::End(_)) => depth = depth.saturating_sub(1),
            Ok(Event::Decl(declaration)) => {
                if let Some(Ok(encoding)) = declaration.encoding() {
                    rules::encoding(&String::from_utf8_lossy(&encoding), report);
                }
            }
            Ok(Event::DocType(doctype)) => {
                let lower = doctype.to_ascii_lowercase();
                if lower.windows(b"<!entity".len()).any(|window| window == b"<!entity") {
                    report.find(Code::SvgScript, "The document declares an entity.");
                }
            }
            Ok(Event::PI(instruction)) if instruction.target().eq_ignore_ascii_case(b"xml-stylesheet") => {
                report.find(Code::SvgScript, "The document has an instruction `xml-stylesheet`.");
            }
            Ok(_) => {}
        }
        counters.depth(depth);
        if let Some(detail) = counters.exceeded() {
            return Parsed::TooComplex(detail);
        }
        events += 1;
        if events % EVENTS == 0 && is_late() {
            return Parsed::TooComplex("Reading the document takes too long.".to_owned());
        }
    }
}

/// Checks a tag; `false` if its attributes are not valid XML.
fn tag(
    start: &BytesStart<'_>,
    decoder: Decoder,
    kind: MarkupKind,
    counters: &mut Counters,
    report: &mut Report<'_>,
) -> bool {
    let mut attributes = Vec::new();
    let mut is_xml = true;
    for attribute in start.attributes().with_checks(false).take(MAX_ATTRIBUTES + 1) {
        match attribute {
            Ok(attribute) => {
                let name = String::from_utf8_lossy(attribute.key.as_ref()).to_ascii_lowercase();
                let value = attribute
                    .decoded_and_normalized_value(XmlVersion::Implicit1_0, decoder)
                    .map(String::from);
                attributes
                    .push((name, value.unwrap_or_else(|_| String::from_utf8_lossy(&attribute.value).into())));
            }
            Err(_) => is_xml = false,
        }
    }
    counters.element(attributes.len());
    let name = String::from_utf8_lossy(start.name().as_ref()).to_ascii_lowercase();
    let attributes =
        attributes.iter().map(|(name, value)| (Cow::Borrowed(name.as_str()), value.as_str())).collect();
    element(&Tag { name: &name, attributes }, kind, report);
    is_xml
}

/// Checks an element of a document that is not HTML.
pub(super) fn element(tag: &Tag<'_>, kind: MarkupKind, report: &mut Report<'_>) {
    let name = tag.name.rsplit(':').next().unwrap_or_default();
    if name == "script" {
        report.find(Code::SvgScript, format!("The document has the element {}.", quoted(tag.name)));
    }
    if kind != MarkupKind::Xml {
        rules::element(&Tag { name, attributes: tag.attributes.clone() }, report);
    }
}

/// The encoding in an XML declaration.
pub(super) fn declared(declaration: &str) -> Option<&str> {
    let (_, rest) = declaration.split_once("encoding")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    rest.get(1..)?.split(quote).next()
}
