//! Rules for a single path.

use unicode_normalization::is_nfc;

use crate::code::Code;
use crate::hints;
use crate::limits::{PATH_BYTES, SEGMENT_BYTES};
use crate::unicode::{is_hidden, is_noncharacter, short_key};

/// Windows device names, reserved with any extension.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];
/// Maximum device name characters.
const DEVICE_CHARS: usize = 7;
const ENCODED: [&str; 4] = ["%2e", "%2f", "%5c", "%00"];
const RESERVED_FOLDERS: [&str; 2] = ["__service", ".well-known"];
const RESERVED_FILES: [&str; 3] = ["_headers", "_redirects", "_worker.js"];
/// Maximum reserved name characters, including the manifest's.
const RESERVED_CHARS: usize = MANIFEST.len();
const SECRET_FILES: [&str; 4] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
const SECRET_EXTENSIONS: [&str; 3] = ["pem", "p12", "pfx"];

/// The manifest, at the root of a bundle.
pub const MANIFEST: &str = "service.app.json";

/// The code and detail of a violated rule.
pub(super) type Violation = (Code, String);

/// Checks a path's length and depth. `path` has no trailing slash.
pub(super) fn too_large(path: &[u8], depth: usize) -> Option<Violation> {
    let segments = path.split(|byte| *byte == b'/');
    let names = segments.clone().count();
    if names > depth {
        return Some((
            Code::PathTooDeep,
            format!("The path has {names} names; at most {depth} are allowed."),
        ));
    }
    if path.len() > PATH_BYTES {
        let detail = format!("The path has {} bytes; at most {PATH_BYTES} are allowed.", path.len());
        return Some((Code::PathTooLong, detail));
    }
    let longest = segments.map(<[u8]>::len).max().unwrap_or_default();
    (longest > SEGMENT_BYTES).then(|| {
        let detail = format!("A name in the path has {longest} bytes; at most {SEGMENT_BYTES} are allowed.");
        (Code::PathTooLong, detail)
    })
}

/// Returns the reason if a path is unsafe. `path` has no trailing slash.
pub(super) fn unsafe_path(path: &str) -> Option<Violation> {
    let lower = path.to_ascii_lowercase();
    let wrong = if path.is_empty() {
        "The name is empty.".to_owned()
    } else if path.starts_with('/') {
        "The path is absolute.".to_owned()
    } else if path.starts_with('~') {
        "The path begins with `~`.".to_owned()
    } else if let Some(char) = path.chars().find(|char| is_forbidden(*char)) {
        format!("The path contains the character {}.", shown(char))
    } else if let Some(found) = ENCODED.iter().find(|encoded| lower.contains(*encoded)) {
        format!("The path contains `{found}`.")
    } else {
        let wrong = path.split('/').find_map(unsafe_segment)?;
        // `bsdtar -C dist .` writes such names.
        let cure = if path == "." || path.starts_with("./") { " Archive `*` instead of `.`." } else { "" };
        wrong + cure
    };
    Some((Code::UnsafePath, wrong))
}

fn is_forbidden(char: char) -> bool {
    is_hidden(char)
        || is_noncharacter(char)
        || matches!(char, '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' | char::REPLACEMENT_CHARACTER)
}

fn shown(char: char) -> String {
    if char.is_ascii_graphic() { format!("`{char}`") } else { format!("U+{:04X}", u32::from(char)) }
}

fn unsafe_segment(segment: &str) -> Option<String> {
    if segment.is_empty() {
        return Some("The path contains an empty name.".to_owned());
    }
    if segment == "." || segment == ".." {
        return Some(format!("The path contains the name `{segment}`."));
    }
    if segment.ends_with(['.', ' ']) {
        return Some("A name ends with a dot or a space.".to_owned());
    }
    is_device(segment).then(|| "A name is that of a device on Windows.".to_owned())
}

fn is_device(segment: &str) -> bool {
    // The compatibility form of a superscript digit is the digit.
    let stem = segment.split('.').next().unwrap_or_default().trim_end();
    let Some(name) = short_key(stem, DEVICE_CHARS) else { return false };
    let name = name.trim_end();
    let numbered = |device: &&str| {
        let digit = name.strip_prefix(*device).unwrap_or_default();
        digit.len() == 1 && digit.bytes().all(|byte| byte.is_ascii_digit())
    };
    DEVICES.contains(&name) || NUMBERED_DEVICES.iter().any(numbered)
}

/// Checks a safe path against the other rules.
pub(super) fn other_rules(path: &str, is_folder: bool, mut note: impl FnMut(Code, String)) {
    if !is_nfc(path) {
        note(Code::PathNotNormalized, "The path is not in the form NFC.".to_owned());
    }
    let first = path.split('/').next().unwrap_or_default();
    let folded = short_key(&decoded(first), RESERVED_CHARS).unwrap_or_default();
    let at_root = !path.contains('/');
    if RESERVED_FOLDERS.contains(&folded.as_str()) {
        note(Code::ReservedPath, format!("The service serves `/{folded}/` itself."));
    } else if RESERVED_FILES.contains(&folded.as_str()) {
        let change = hints::other_host();
        let detail = format!("`{folded}` configures other hosts and would have no effect: {change}.");
        note(Code::ReservedPath, detail);
    } else if folded == MANIFEST && (first != MANIFEST || !at_root || is_folder) {
        note(Code::ReservedPath, format!("The manifest is the file `{MANIFEST}`, in lower case."));
    } else if let Some(detail) = path.split('/').find_map(sensitive) {
        note(Code::SensitiveFile, detail);
    }
}

fn sensitive(segment: &str) -> Option<String> {
    let lower = segment.to_ascii_lowercase();
    let extension = lower.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();
    if segment.starts_with('.') {
        Some(hints::hidden(segment))
    } else if SECRET_FILES.contains(&lower.as_str()) || SECRET_EXTENSIONS.contains(&extension) {
        Some("The file has the name of a private key or certificate.".to_owned())
    } else {
        None
    }
}

/// Decodes percent escapes in a name once.
fn decoded(segment: &str) -> String {
    let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = Vec::new();
    let mut rest = segment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = match (first, after) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
