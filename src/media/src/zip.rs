//! ZIP: detects office documents by their entry names.

use crate::kinds::Media;

const LOCAL: u32 = u32::from_be_bytes(*b"PK\x03\x04");
const CENTRAL: u32 = u32::from_be_bytes(*b"PK\x01\x02");
const END: u32 = u32::from_be_bytes(*b"PK\x05\x06");

/// Maximum bytes read from a name.
const MAX_NAME: usize = 64;

const ODT: &[u8] = b"application/vnd.oasis.opendocument.text";

/// Names found in one directory.
#[derive(Debug, Clone, Copy, Default)]
struct PartNames {
    content_types: bool,
    word: bool,
    excel: bool,
    slides: bool,
    macros: bool,
}

impl PartNames {
    fn add(&mut self, name: &[u8]) {
        match name {
            b"[Content_Types].xml" => self.content_types = true,
            b"word/vbaProject.bin" | b"xl/vbaProject.bin" | b"ppt/vbaProject.bin" => self.macros = true,
            _ => {
                self.word |= is_part(name, b"word/document");
                self.excel |= is_part(name, b"xl/workbook");
                self.slides |= is_part(name, b"ppt/presentation");
            }
        }
    }

    const fn media(self) -> Option<Media> {
        match self {
            Self { content_types: false, .. } | Self { macros: true, .. } => None,
            Self { word: true, excel: false, slides: false, .. } => Some(Media::Docx),
            Self { word: false, excel: true, slides: false, .. } => Some(Media::Xlsx),
            Self { word: false, excel: false, slides: true, .. } => Some(Media::Pptx),
            Self { .. } => None,
        }
    }
}

/// Whether the name belongs to this part: some programs number it, as in `word/document2.xml`.
fn is_part(name: &[u8], part: &[u8]) -> bool {
    let number = name.strip_prefix(part).and_then(|rest| rest.strip_suffix(b".xml"));
    number.is_some_and(|number| number.iter().all(u8::is_ascii_digit))
}

/// A header with a name, as far as it has been read.
#[derive(Debug)]
struct ZipHeader {
    central: bool,
    /// Bytes since the signature.
    bytes: Vec<u8>,
}

impl ZipHeader {
    /// Returns the name; `Err` if it is incomplete, `Ok(None)` if it is too long to matter.
    fn name(&self) -> Result<Option<&[u8]>, ()> {
        let (fixed, at) = if self.central { (46, 28) } else { (30, 26) };
        let size = number(&self.bytes, at).map(usize::from);
        let name = self.bytes.get(fixed..).ok_or(())?;
        match size {
            Some(size) if size <= MAX_NAME => name.get(..size).map(Some).ok_or(()),
            _ => Ok(None),
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let number = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_le_bytes(*number))
}

/// Collects entry names.
///
/// The last directory decides, because programs open that one, and because a ZIP that contains a stored DOCX also
/// contains all the DOCX's headers. Headers before the data count only without a directory.
#[derive(Debug, Default)]
pub(crate) struct ZipScan {
    last: u32,
    header: Option<ZipHeader>,
    local: PartNames,
    central: Option<PartNames>,
    ended: bool,
}

impl ZipScan {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(header) = &mut self.header {
                header.bytes.push(*byte);
                self.read_name();
                continue;
            }
            self.last = (self.last << 8) | u32::from(*byte);
            match self.last {
                LOCAL | CENTRAL => {
                    let mut bytes = Vec::with_capacity(46 + MAX_NAME);
                    bytes.extend_from_slice(&self.last.to_be_bytes());
                    self.header = Some(ZipHeader { central: self.last == CENTRAL, bytes });
                    self.last = 0;
                }
                END => self.ended = true,
                _ => {}
            }
        }
    }

    fn read_name(&mut self) {
        let Some(header) = &self.header else { return };
        let Ok(name) = header.name() else { return };
        if header.central {
            if std::mem::take(&mut self.ended) {
                self.central = None;
            }
            self.central.get_or_insert_default().add(name.unwrap_or_default());
        } else {
            self.local.add(name.unwrap_or_default());
        }
        self.header = None;
    }

    /// Returns the document type; `head` is the beginning of the file.
    pub(crate) fn media(&self, head: &[u8]) -> Option<Media> {
        if is_marked(head) {
            return is_odt(head).then_some(Media::Odt);
        }
        self.central.unwrap_or(self.local).media()
    }
}

/// Whether the first entry is `mimetype`, as in OpenDocument and EPUB.
fn is_marked(head: &[u8]) -> bool {
    number(head, 26) == Some(8) && head.get(30..38) == Some(b"mimetype".as_slice())
}

fn is_odt(head: &[u8]) -> bool {
    let (Some(flags), Some(method), Some(size), Some(extra)) =
        (number(head, 6), number(head, 8), number(head, 22), number(head, 28))
    else {
        return false;
    };
    let data = head.get(38 + usize::from(extra)..).unwrap_or_default();
    let Some(rest) = data.strip_prefix(ODT) else { return false };
    // Template and master document types are longer, so the end matters.
    let ends = if flags & 8 == 0 { usize::from(size) == ODT.len() } else { rest.starts_with(b"PK") };
    method == 0 && ends
}
