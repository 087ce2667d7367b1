//! Decodes bytes to text. The encoding comes from the byte order mark, else the server, else the page itself.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::{Format, damaged};
use crate::NodeError;

/// Bytes from the beginning in which a page may declare its charset.
const SAID_WITHIN: usize = 1024;

/// Decodes the bytes and removes the byte order mark.
///
/// # Errors
/// The bytes are not text.
pub(super) fn decode(bytes: &[u8], format: Format, charset: Option<&str>) -> Result<String, NodeError> {
    let said = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let said = said.or_else(|| charset.and_then(|label| Encoding::for_label(label.as_bytes())));
    let said = said.or_else(|| if format == Format::Html { said_inside(bytes) } else { None });
    let (text, wrong) = said.unwrap_or(UTF_8).decode_with_bom_removal(bytes);
    let text = match (wrong, said, format) {
        (false, ..) => text,
        // Browsers read pages without a declared encoding this way.
        (true, None, Format::Html) => WINDOWS_1252.decode_without_bom_handling(bytes).0,
        // With a declared encoding, invalid characters are shown as replacement characters.
        (true, Some(_), _) if !bytes.contains(&0) => text,
        _ => return Err(damaged("it is not UTF-8 text, and no other encoding is stated")),
    };
    // PostgreSQL cannot store NUL.
    if text.contains('\0') {
        return Err(damaged("it is not text: it contains U+0000"));
    }
    Ok(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// Finds the page's own declaration, in `<meta charset=…>` or `http-equiv`.
fn said_inside(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..bytes.len().min(SAID_WITHIN)).unwrap_or_default().to_ascii_lowercase();
    let head = String::from_utf8_lossy(&head);
    let (_, behind) = head.split_once("charset")?;
    let value = behind.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label = value.split(|letter: char| letter.is_whitespace() || "\"';>/".contains(letter)).next()?;
    match Encoding::for_label(label.as_bytes())? {
        // A page that declares its charset in ASCII is not in UTF-16.
        utf_16 if utf_16 == encoding_rs::UTF_16LE || utf_16 == encoding_rs::UTF_16BE => Some(UTF_8),
        encoding => Some(encoding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_decoded_in_their_charset() {
        let text =
            |bytes: &[u8], charset| decode(bytes, Format::Text, charset).map_err(|error| error.message);
        let html = |bytes: &[u8]| decode(bytes, Format::Html, None).map_err(|error| error.message);
        assert_eq!(text("\u{feff}größe\r\n".as_bytes(), None).as_deref(), Ok("größe\n"));
        assert_eq!(text(b"gr\xf6\xdfe", Some("iso-8859-1")).as_deref(), Ok("größe"));
        assert_eq!(text(b"\xff\xfeg\0\xf6\0", Some("utf-8")).as_deref(), Ok("gö"));
        assert_eq!(text(b"g\xf6", Some("utf-8")).as_deref(), Ok("g\u{fffd}"));
        assert_eq!(
            html(b"<meta charset='windows-1251'>\xf6").as_deref(),
            Ok("<meta charset='windows-1251'>ц")
        );
        assert_eq!(html(b"<p>\xf6").as_deref(), Ok("<p>ö"));
        for garbage in [&b"g\xf6"[..], b"\0\xff\xfe\x01", b"a\0b"] {
            assert!(text(garbage, None).is_err_and(|error| error.contains("text")), "{garbage:?}");
        }
    }
}
