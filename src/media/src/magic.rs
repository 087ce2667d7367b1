//! Types recognised by a file's first bytes.

use infer::{audio, get, image};

use crate::kinds::Media;
use crate::ogg;

/// Bytes in which a PDF's mark is searched, as in Acrobat.
const PDF_BYTES: usize = 1_024;

/// An OLE file.
const OLE: &[u8] = b"\xd0\xcf\x11\xe0";

/// Detects the type of a file that is not text. `infer` knows the marks; the checks here are stricter, because some
/// marks are only two or three bytes long.
pub(crate) fn binary(head: &[u8]) -> Option<Media> {
    let found = if image::is_png(head) {
        head.starts_with(b"\x89PNG\r\n\x1a\n").then_some(Media::Png)
    } else if image::is_jpeg(head) {
        Some(Media::Jpeg)
    } else if image::is_gif(head) {
        (head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a")).then_some(Media::Gif)
    } else if image::is_webp(head) && head.starts_with(b"RIFF") {
        Some(Media::Webp)
    } else if audio::is_wav(head) {
        Some(Media::Wav)
    } else if audio::is_flac(head) {
        is_stream_info(head).then_some(Media::Flac)
    } else if audio::is_ogg(head) {
        ogg::is_audio(head).then_some(Media::Ogg)
    } else if is_id3(head) || is_mp3(head) {
        Some(Media::Mp3)
    } else {
        None
    };
    found.or_else(|| is_pdf(head).then_some(Media::Pdf))
}

/// Whether a text is a PDF: it begins with the mark.
pub(crate) fn is_text_pdf(head: &[u8]) -> bool {
    let Some(before) = pdf_mark(head).and_then(|at| head.get(..at)) else { return false };
    before.strip_prefix(b"\xef\xbb\xbf").unwrap_or(before).trim_ascii().is_empty()
}

/// Whether the first bytes contain the PDF mark. The bytes before it must not make the file something else: a
/// program, an archive, a web page.
fn is_pdf(head: &[u8]) -> bool {
    let Some(before) = pdf_mark(head).and_then(|at| head.get(..at)) else { return false };
    let is_tag = before.trim_ascii_start().starts_with(b"<");
    before.is_empty() || !(is_tag || before.starts_with(OLE) || get(before).is_some())
}

/// Finds the offset of `%PDF-1.` or a later version.
fn pdf_mark(head: &[u8]) -> Option<usize> {
    head.windows(7).take(PDF_BYTES - 4).position(
        |window| matches!(window, [b'%', b'P', b'D', b'F', b'-', version, b'.'] if version.is_ascii_digit()),
    )
}

/// Whether the first block is the fixed-size one that FLAC requires.
fn is_stream_info(head: &[u8]) -> bool {
    matches!(head, [_, _, _, _, kind, 0, 0, 34, ..] if kind & 0x7f == 0)
}

fn is_id3(head: &[u8]) -> bool {
    matches!(head, [b'I', b'D', b'3', 2..=4, revision, _, a, b, c, d, ..]
        if *revision < 0xff && [a, b, c, d].into_iter().all(|size| *size < 0x80))
}

/// Whether the file begins with a frame and another one follows, unless the file ends before.
fn is_mp3(head: &[u8]) -> bool {
    let Some(size) = frame_bytes(head) else { return false };
    match head.get(size..) {
        Some(next) if next.len() >= 4 => frame_bytes(next).is_some(),
        _ => true,
    }
}

/// Bytes per frame of MPEG audio, layer III (ISO 11172-3, 13818-3). The UTF-16 mark `ff fe` would be layer I.
fn frame_bytes(header: &[u8]) -> Option<usize> {
    const RATES_1: [usize; 14] = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
    const RATES_2: [usize; 14] = [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
    let [0xff, second, third, fourth, ..] = header else { return None };
    if second & 0xe6 != 0xe2 || fourth & 3 == 2 {
        return None;
    }
    // Divisor for the MPEG 1 sampling rates.
    let (divisor, rates, samples) = match second & 0x18 {
        0x18 => (1, RATES_1, 144),
        0x10 => (2, RATES_2, 72),
        0x00 => (4, RATES_2, 72),
        _ => return None,
    };
    let sampling = match third & 0x0c {
        0x00 => 44_100,
        0x04 => 48_000,
        0x08 => 32_000,
        _ => return None,
    };
    let rate = rates.get(usize::from(third >> 4).checked_sub(1)?)?;
    Some(samples * rate * 1_000 / (sampling / divisor) + usize::from(third >> 1 & 1))
}
