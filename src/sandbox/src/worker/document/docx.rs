//! Word document text: the main part, paragraph by paragraph.

use std::io::{BufReader, Cursor, Read};

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;
use zip::ZipArchive;

use super::{LimitedText, damaged};
use crate::document::{DocumentLimits, DocumentProblem, DocumentText};

const MAIN: &str = "word/document.xml";
/// Maximum bytes of the unpacked main part.
const UNPACKED: u64 = 24 << 20;
/// Maximum bytes of a tag or text run.
const PIECE: usize = 4 << 20;

pub(super) fn read(bytes: &[u8], limits: DocumentLimits) -> Result<DocumentText, DocumentProblem> {
    let archive = ZipArchive::new(Cursor::new(bytes));
    let mut archive = archive.map_err(|error| damaged(format!("it is not an archive: {error}")))?;
    let part = archive.by_name(MAIN).map_err(|error| match error {
        zip::result::ZipError::FileNotFound => damaged(format!("it has no {MAIN}")),
        zip::result::ZipError::UnsupportedArchive(why) if why.contains("assword") => {
            DocumentProblem::Protected
        }
        other => damaged(other.to_string()),
    })?;
    let mut text = LimitedText::new(limits.text);
    let mut limited = part.take(UNPACKED);
    let walked = walk(BufReader::new(&mut limited), &mut text);
    if limited.limit() == 0 {
        return Err(DocumentProblem::TooLarge(format!(
            "{MAIN} is larger than {UNPACKED} bytes after decompression"
        )));
    }
    walked?;
    Ok(text.done(None))
}

fn walk(part: impl std::io::BufRead, text: &mut LimitedText) -> Result<(), DocumentProblem> {
    let mut reader = Reader::from_reader(part);
    let (mut buffer, mut depth, mut runs, mut in_text, mut left_out) =
        (Vec::new(), 0_u32, 0_u32, false, 0_u32);
    loop {
        buffer.clear();
        let event =
            reader.read_event_into(&mut buffer).map_err(|error| damaged(format!("{MAIN}: {error}")))?;
        match event {
            Event::Eof if depth > 0 => return Err(damaged(format!("{MAIN} has no end"))),
            Event::Eof => return Ok(()),
            Event::Start(tag) => {
                depth = depth.saturating_add(1);
                match tag.local_name().as_ref() {
                    // The alternative for older programs duplicates the adjacent content.
                    b"Fallback" => left_out = left_out.saturating_add(1),
                    b"r" => runs = runs.saturating_add(1),
                    b"t" => in_text = true,
                    _ => {}
                }
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                match tag.local_name().as_ref() {
                    b"Fallback" => left_out = left_out.saturating_sub(1),
                    b"r" => runs = runs.saturating_sub(1),
                    b"t" => in_text = false,
                    b"p" if left_out == 0 => text.end_paragraph()?,
                    _ => {}
                }
            }
            // Paragraph properties use the same element names.
            Event::Empty(tag) if left_out == 0 && runs > 0 => match tag.local_name().as_ref() {
                b"tab" => text.push("\t")?,
                b"br" | b"cr" => text.push("\n")?,
                b"noBreakHyphen" => text.push("\u{2011}")?,
                _ => {}
            },
            Event::Text(piece) if in_text && left_out == 0 => {
                let piece = piece.decode().map_err(|error| damaged(format!("{MAIN}: {error}")))?;
                text.push(&piece)?;
            }
            Event::GeneralRef(reference) if in_text && left_out == 0 => {
                if let Ok(Some(letter)) = reference.resolve_char_ref() {
                    text.push(letter.encode_utf8(&mut [0; 4]))?;
                } else if let Some(known) = reference.decode().ok().and_then(|name| resolve_xml_entity(&name))
                {
                    text.push(known)?;
                }
            }
            _ => {}
        }
        if buffer.capacity() > PIECE {
            return Err(DocumentProblem::TooLarge(format!("a part of {MAIN} is larger than {PIECE} bytes")));
        }
    }
}
