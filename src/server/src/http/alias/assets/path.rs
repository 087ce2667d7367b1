//! The path of a file in the target of a request.

/// Decodes a path once, without the slash at its start; `None` if two programs could read it differently.
pub(super) fn decode(raw: &str) -> Option<String> {
    let raw = raw.strip_prefix('/').unwrap_or(raw);
    if !raw.contains(['%', '\\']) {
        return Some(raw.to_owned());
    }
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'\\' => return None,
            b'%' => match (hex(rest.next()?)? << 4) | hex(rest.next()?)? {
                0 | b'\\' | b'/' => return None,
                byte => byte,
            },
            byte => byte,
        };
        decoded.push(byte);
    }
    String::from_utf8(decoded).ok()
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_decoded_once() {
        for (raw, path) in [
            ("", ""),
            ("/", ""),
            ("/a.js", "a.js"),
            ("//a.js", "/a.js"),
            ("/dir/", "dir/"),
            ("/%61%2Ejs", "a.js"),
            ("/a%20b+c", "a b+c"),
            ("/%C3%A4", "ä"),
            ("/%252e", "%2e"),
            ("/%25252f", "%252f"),
        ] {
            assert_eq!(decode(raw).as_deref(), Some(path), "{raw}");
        }
    }

    #[test]
    fn a_path_that_is_ambiguous_is_refused() {
        for raw in [
            "/%", "/%2", "/%2g", "/%zz", "/a%2fb", "/a%2Fb", "/a%5cb", "/a\\b", "/a%00", "/%ff", "/%C3",
            "/%c0%af",
        ] {
            assert_eq!(decode(raw), None, "{raw}");
        }
    }
}
