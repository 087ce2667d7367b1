//! Detects truncated JPEG files.

const START: u8 = 0xd8;
const END: u8 = 0xd9;

/// Whether a file contains its end marker. More bytes may follow it.
pub(super) fn is_complete(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some((marker, after)) = next_marker(rest) {
        rest = match marker {
            END => return true,
            START => after,
            // Segments are skipped whole, because metadata often contains a small JPEG with its own end marker.
            _ => match after {
                [high, low, ..] => {
                    let length = usize::from(u16::from_be_bytes([*high, *low]));
                    after.get(length.max(2)..).unwrap_or_default()
                }
                _ => return false,
            },
        };
    }
    false
}

/// The next marker outside the coded pixels, and the bytes after it.
fn next_marker(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let mut rest = bytes;
    loop {
        let start = rest.iter().position(|byte| *byte == 0xff)?;
        rest = rest.get(start.saturating_add(1)..)?;
        match rest {
            // An escaped 0xff, a restart marker or padding.
            [0x00 | 0x01 | 0xd0..=0xd7 | 0xff, ..] => {}
            [marker, after @ ..] => return Some((*marker, after)),
            [] => return None,
        }
    }
}
