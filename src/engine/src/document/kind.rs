//! Detects a document's format: from its first bytes, else from its media type and its name.

use wire::ErrorCode;

use crate::NodeError;

/// Bytes from the beginning in which the PDF mark is searched, as PDF readers do.
const MARK: usize = 1024;

/// A document format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Unchanged text: plain text, Markdown, CSV.
    Text,
    /// HTML.
    Html,
    /// PDF.
    Pdf,
    /// Word (DOCX).
    Docx,
}

impl Format {
    /// Format names in graphs.
    pub(crate) const NAMES: [&str; 6] = ["txt", "md", "csv", "html", "pdf", "docx"];

    /// Returns the format with this name, or for this file extension.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "txt" | "text" | "md" | "markdown" | "csv" | "tsv" | "log" | "json" | "xml" | "yaml" | "yml" => {
                Some(Self::Text)
            }
            "html" | "htm" | "xhtml" => Some(Self::Html),
            "pdf" => Some(Self::Pdf),
            "docx" => Some(Self::Docx),
            _ => None,
        }
    }

    fn of_media_type(kind: &str) -> Option<Self> {
        match kind {
            "text/html" | "application/xhtml+xml" => Some(Self::Html),
            "application/pdf" | "application/x-pdf" => Some(Self::Pdf),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => Some(Self::Docx),
            "application/json" | "application/xml" | "application/yaml" | "application/csv" => {
                Some(Self::Text)
            }
            other if other.starts_with("text/") => Some(Self::Text),
            _ => None,
        }
    }
}

/// Detects a document's format. `kind` is its media type without parameters, `path` its address's path.
///
/// # Errors
/// [`ErrorCode::DocumentUnsupported`] if the format is unknown.
pub(crate) fn detect(bytes: &[u8], kind: Option<&str>, path: &str) -> Result<Format, NodeError> {
    let head = bytes.get(..bytes.len().min(MARK)).unwrap_or_default();
    if head.windows(5).any(|mark| mark == b"%PDF-") {
        return Ok(Format::Pdf);
    }
    let kind = kind.map(str::to_ascii_lowercase);
    let told = kind.as_deref().and_then(Format::of_media_type);
    let ending = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
    let named = ending.map(str::to_ascii_lowercase).and_then(|ending| Format::named(&ending));
    if head.starts_with(b"PK\x03\x04") {
        let is_docx = [told, named].contains(&Some(Format::Docx)) || has(bytes, b"word/document.xml");
        return if is_docx { Ok(Format::Docx) } else { Err(unsupported("an archive")) };
    }
    let unknown = matches!(kind.as_deref(), None | Some("application/octet-stream" | "binary/octet-stream"));
    match (told, named) {
        // Text files are often served as plain text only.
        (Some(Format::Text), Some(named)) if kind.as_deref() == Some("text/plain") => Ok(named),
        (Some(told), _) => Ok(told),
        (None, Some(named)) if unknown => Ok(named),
        (None, _) if unknown && !head.contains(&0) => Ok(Format::Text),
        _ => Err(unsupported(kind.as_deref().unwrap_or("bytes of an unknown kind"))),
    }
}

fn has(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}

fn unsupported(what: &str) -> NodeError {
    let what: String = what.chars().filter(|letter| !letter.is_control()).take(100).collect();
    let known = Format::NAMES.join(", ");
    NodeError::new(ErrorCode::DocumentUnsupported, format!("the document is {what}; supported are {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_detected_by_magic_bytes_media_type_and_name() {
        let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        for (bytes, kind, path, format) in [
            (&b"%PDF-1.7"[..], None, "/", Some(Format::Pdf)),
            (b"\n\n%PDF-1.7", Some("text/plain"), "/a.txt", Some(Format::Pdf)),
            (b"<p>", Some("Text/HTML"), "/a.pdf", Some(Format::Html)),
            (b"# A", Some("text/markdown"), "/a", Some(Format::Text)),
            (b"<p>", Some("text/plain"), "/a.HTM", Some(Format::Html)),
            (b"a,b", None, "/files/a.csv", Some(Format::Text)),
            (b"a,b", Some("application/octet-stream"), "/files/x", Some(Format::Text)),
            (b"a\0b", Some("application/octet-stream"), "/files/x", None),
            (b"", None, "", Some(Format::Text)),
            (b"\x89PNG", Some("image/png"), "/a.pdf", None),
            (b"PK\x03\x04", Some(docx), "/", Some(Format::Docx)),
            (b"PK\x03\x04..word/document.xml", Some("application/zip"), "/", Some(Format::Docx)),
            (b"PK\x03\x04", Some("application/zip"), "/a.zip", None),
        ] {
            let found = detect(bytes, kind, path);
            assert_eq!(found.as_ref().ok().copied(), format, "{kind:?} {path}: {found:?}");
            if let Err(error) = found {
                assert_eq!(error.code, ErrorCode::DocumentUnsupported);
            }
        }
    }
}
