//! Detects a file's type in one pass over its pieces.

use crate::kinds::Media;
use crate::magic;
use crate::markup::Markup;
use crate::mp4::Mp4Scan;
use crate::name::{extension, file_name};
use crate::text::TextScan;
use crate::webm::WebmScan;
use crate::zip::ZipScan;

/// Bytes kept from the beginning.
const HEAD_BYTES: usize = 4_096;

/// Bytes needed to recognise the container.
const CONTAINER_BYTES: usize = 12;

/// A format whose type depends on more than the beginning.
#[derive(Debug)]
enum Container {
    /// Too few bytes so far.
    Unknown,
    None,
    Zip(ZipScan),
    Mp4(Mp4Scan),
    Webm(WebmScan),
}

impl Container {
    fn from_start(start: &[u8]) -> Self {
        match start {
            [b'P', b'K', 3, 4, ..] => Self::Zip(ZipScan::default()),
            [0x1a, 0x45, 0xdf, 0xa3, ..] => Self::Webm(WebmScan::default()),
            [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] => Self::Mp4(Mp4Scan::new(brand)),
            _ => Self::None,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Unknown | Self::None => {}
            Self::Zip(zip) => zip.push(bytes),
            Self::Mp4(mp4) => mp4.push(bytes),
            Self::Webm(webm) => webm.push(bytes),
        }
    }
}

/// Detects a file's type by its content, in pieces of any size. Keeps at most a few KiB.
#[derive(Debug)]
pub struct Detector {
    head: Vec<u8>,
    text: TextScan,
    container: Container,
}

impl Default for Detector {
    fn default() -> Self {
        Self::new()
    }
}

impl Detector {
    /// Creates an empty detector.
    #[must_use]
    pub fn new() -> Self {
        Self {
            head: Vec::with_capacity(HEAD_BYTES),
            text: TextScan::default(),
            container: Container::Unknown,
        }
    }

    /// Reads the next piece of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.text.push(bytes);
        let start = CONTAINER_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        let (start, rest) = bytes.split_at_checked(start).unwrap_or_default();
        self.keep(start);
        if matches!(self.container, Container::Unknown) && self.head.len() >= CONTAINER_BYTES {
            self.container = Container::from_start(&self.head);
            self.container.push(&self.head);
        }
        self.keep(rest);
        self.container.push(rest);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(bytes.get(..room).unwrap_or_default());
    }

    /// Whether [`Detector::finish`] returns `None` regardless of the remaining input. Once `true`, it stays `true`.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.text.markup() == Markup::Document || (self.text.is_invalid() && !self.may_be_binary())
    }

    fn may_be_binary(&self) -> bool {
        match &self.container {
            Container::Unknown => true,
            Container::None => self.head.len() < HEAD_BYTES || magic::binary(&self.head).is_some(),
            // The last directory in a ZIP decides.
            Container::Zip(_) => true,
            Container::Mp4(mp4) => !mp4.is_refused(),
            Container::Webm(webm) => !webm.is_refused(),
        }
    }

    /// Returns the type of the whole file; `None` if it is empty or its type is not accepted.
    ///
    /// `name` only distinguishes text types. It may be raw.
    #[must_use]
    pub fn finish(self, name: &str) -> Option<Media> {
        let markup = self.text.final_markup();
        if self.head.is_empty() || self.text.markup() == Markup::Document {
            return None;
        }
        // Text comes first: every other accepted format contains bytes that are invalid in text, and a text may begin
        // with a mark.
        if !self.text.is_complete() {
            return self.binary();
        }
        if magic::is_text_pdf(&self.head) {
            return Some(Media::Pdf);
        }
        let media = Media::of_text(extension(&file_name(name)));
        match markup {
            Markup::None => Some(media),
            Markup::Fragment => (media == Media::Markdown).then_some(media),
            Markup::Document => None,
        }
    }

    fn binary(&self) -> Option<Media> {
        match &self.container {
            Container::Unknown | Container::None => magic::binary(&self.head),
            Container::Zip(zip) => zip.media(&self.head),
            Container::Mp4(mp4) => mp4.is_audio().then_some(Media::Mp4),
            Container::Webm(webm) => webm.is_audio().then_some(Media::Webm),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_constant() {
        let beginnings: [&[u8]; 7] = [
            b"PK\x03\x04",
            b"\x1a\x45\xdf\xa3",
            b"\0\0\0\x18ftypM4A ",
            b"<!--",
            b"<",
            b"",
            b"\xff\xfb\x90\x64",
        ];
        for filler in [b"aPK\x01\x02\x03".as_slice(), b"-", b"\xc3", b"\0"] {
            for beginning in beginnings {
                let mut detector = Detector::new();
                detector.push(beginning);
                let piece = filler.repeat(65_536 / filler.len());
                for _ in 0..16 {
                    detector.push(&piece);
                }
                assert_eq!(detector.head.capacity(), HEAD_BYTES);
                assert!(format!("{:?}{:?}", detector.text, detector.container).len() < 4_096);
            }
        }
        assert!(size_of::<Detector>() < 512);
    }
}
