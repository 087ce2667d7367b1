//! Writes a ZIP archive of stored (uncompressed) files. Source: APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16.
//! Pure.

use anyhow::{Result, ensure};

/// The archive with these files, uncompressed.
///
/// # Errors
/// If a path is not ASCII, or a size does not fit its field.
pub(super) fn archive(files: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    let (mut entries, mut directory) = (Vec::<u8>::new(), Vec::<u8>::new());
    for (path, content) in files {
        ensure!(path.is_ascii(), "a path that is not ASCII");
        let size = u32::try_from(content.len())?.to_le_bytes();
        // Version 2.0, no flags, stored, midnight of 2026-01-01.
        let mut fields = b"\x14\0\0\0\0\0\0\0!\x5c".to_vec();
        fields.extend(crc(content).to_le_bytes());
        fields.extend(size);
        fields.extend(size);
        fields.extend(u16::try_from(path.len())?.to_le_bytes());
        fields.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&fields);
        directory.extend([0; 10]);
        directory.extend(u32::try_from(entries.len())?.to_le_bytes());
        directory.extend(path.as_bytes());
        entries.extend(b"PK\x03\x04");
        entries.extend(fields);
        entries.extend(path.as_bytes());
        entries.extend(*content);
    }
    let count = u16::try_from(files.len())?.to_le_bytes();
    let (start, size) = (u32::try_from(entries.len())?, u32::try_from(directory.len())?);
    entries.extend(directory);
    entries.extend(b"PK\x05\x06\0\0\0\0");
    entries.extend([count, count].concat());
    entries.extend(size.to_le_bytes());
    entries.extend(start.to_le_bytes());
    entries.extend([0, 0]);
    Ok(entries)
}

/// The CRC-32 that ZIP archives use.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        let mixed = crc ^ u32::from(*byte);
        (0..8).fold(mixed, |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 })
    };
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_matches_the_reference_value() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(crc(b"123456789"), 0xcbf4_3926);
    }
}
