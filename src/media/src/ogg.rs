//! Ogg: stream types from the first pages.

/// Flag on the first page of a logical stream.
const FIRST_PAGE: u8 = 2;

/// Whether every logical stream that begins in `head` is audio. All first pages precede everything else.
pub(crate) fn is_audio(head: &[u8]) -> bool {
    let (mut rest, mut audio) = (head, false);
    while let Some((flags, packet, next)) = page(rest) {
        if flags & FIRST_PAGE == 0 {
            break;
        }
        if starts(packet, &[b"OpusHead", b"\x01vorbis", b"\x7fFLAC", b"Speex   "]) {
            audio = true;
        } else if !starts(packet, &[b"fishead\0"]) {
            return false;
        }
        rest = next;
    }
    audio
}

fn starts(packet: &[u8], marks: &[&[u8]]) -> bool {
    marks.iter().any(|mark| packet.starts_with(mark))
}

/// Splits a page into its flags, its data as far as present, and the remaining bytes.
fn page(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (header, rest) = bytes.split_at_checked(27)?;
    let (flags, count) = (*header.get(5)?, *header.get(26)?);
    if !header.starts_with(b"OggS\0") {
        return None;
    }
    let (sizes, rest) = rest.split_at_checked(usize::from(count))?;
    let size: usize = sizes.iter().copied().map(usize::from).sum();
    let (data, next) = rest.split_at_checked(size).unwrap_or((rest, &[]));
    Some((flags, data, next))
}
