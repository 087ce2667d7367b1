//! Archives and compressed files.

/// Extensions for archives and archive-based documents.
pub(super) const EXTENSIONS: &[&str] = &[
    "zip", "zipx", "jar", "war", "ear", "apk", "aab", "ipa", "xpi", "crx", "docx", "docm", "xlsx", "xlsm",
    "pptx", "pptm", "odt", "ods", "odp", "epub", "whl", "egg", "nupkg", "vsix", "tar", "tgz", "tbz", "tbz2",
    "txz", "tzst", "gz", "bz2", "xz", "zst", "lz", "lz4", "lzma", "z", "7z", "rar", "cab", "ar", "cpio",
    "rpm", "iso", "dmg", "pkg",
];

const MAGIC: &[(&[u8], &str)] = &[
    (b"PK\x03\x04", "ZIP"),
    (b"PK\x05\x06", "ZIP"),
    (b"PK\x07\x08", "ZIP"),
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "RAR"),
    (b"\x28\xb5\x2f\xfd", "Zstandard"),
    (b"\x04\x22\x4d\x18", "LZ4"),
    (b"!<arch>\n", "ar"),
    (b"MSCF\x00\x00\x00\x00", "CAB"),
    (b"070701", "cpio"),
    (b"070702", "cpio"),
    (b"070707", "cpio"),
    (b"\xed\xab\xee\xdb", "RPM"),
];

/// Descriptor offsets in an ISO image.
const ISO: [usize; 3] = [0x8001, 0x8801, 0x9001];
const TAR: usize = 257;

/// Detects an archive by its first bytes.
pub(super) fn by_content(head: &[u8]) -> Option<&'static str> {
    let at = |offset: usize, mark: &[u8]| head.get(offset..).is_some_and(|rest| rest.starts_with(mark));
    let known = MAGIC.iter().find(|(mark, _)| head.starts_with(mark)).map(|(_, kind)| *kind);
    if known.is_some() {
        known
    } else if is_bzip2(head) {
        Some("bzip2")
    } else if at(TAR, b"ustar") {
        Some("tar")
    } else if ISO.iter().any(|offset| at(*offset, b"CD001")) {
        Some("ISO image")
    } else if is_skippable_zstd(head) {
        Some("Zstandard")
    } else if is_binary_cpio(head) {
        Some("cpio")
    } else {
        None
    }
}

/// The mark alone could be the beginning of a text.
fn is_bzip2(head: &[u8]) -> bool {
    const BLOCK: &[u8] = b"1AY&SY";
    const END: &[u8] = b"\x17\x72\x45\x38\x50\x90";
    let Some([level, rest @ ..]) = head.strip_prefix(b"BZh") else { return false };
    level.is_ascii_digit() && (rest.starts_with(BLOCK) || rest.starts_with(END))
}

fn is_skippable_zstd(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The mark has only two bytes, so the name after the header is checked too.
fn is_binary_cpio(head: &[u8]) -> bool {
    const HEADER: usize = 26;
    let length = match head {
        [0xc7, 0x71, ..] => {
            head.get(20..22).and_then(|field| field.first_chunk()).map(|f| u16::from_le_bytes(*f))
        }
        [0x71, 0xc7, ..] => {
            head.get(20..22).and_then(|field| field.first_chunk()).map(|f| u16::from_be_bytes(*f))
        }
        _ => None,
    };
    let Some(length) = length.map(usize::from).filter(|length| (2..=1024).contains(length)) else {
        return false;
    };
    let name = head.get(HEADER..HEADER + length).unwrap_or_default();
    name.split_last().is_some_and(|(last, name)| *last == 0 && !name.contains(&0))
}
