//! Addresses in documents.

use std::borrow::Cow;

/// The kind of target that an address has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Url {
    /// Runs a script.
    Script,
    /// A document in the address (a data URL), which may contain scripts.
    Document,
    /// Other data in the address, or a page's own data.
    Data,
    /// Another origin.
    External,
    /// The app itself.
    Relative,
    /// A visitor's program, such as `mailto:`.
    Other,
}

const DOCUMENTS: [&str; 5] =
    ["text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "application/xml"];

/// Schemes that run scripts.
const SCRIPTS: [&str; 2] = ["javascript", "vbscript"];
/// Maximum bytes read after `@import`.
const IMPORT_BYTES: usize = 256;
/// Characters that browsers remove from addresses.
const IGNORED: [char; 3] = ['\t', '\n', '\r'];

/// Normalises an address as browsers do: without surrounding blanks, tabs and line ends.
fn stripped(address: &str) -> Cow<'_, str> {
    let trimmed = address.trim_matches(|char: char| char <= ' ');
    if trimmed.contains(IGNORED) { Cow::Owned(trimmed.replace(IGNORED, "")) } else { Cow::Borrowed(trimmed) }
}

/// Classifies an address by its target.
pub(super) fn classify(address: &str) -> Url {
    let address = stripped(address);
    let Some((scheme, rest)) = scheme(&address) else {
        let slash = |char: Option<char>| matches!(char, Some('/' | '\\'));
        let mut chars = address.chars();
        return if slash(chars.next()) && slash(chars.next()) { Url::External } else { Url::Relative };
    };
    match scheme.to_ascii_lowercase().as_str() {
        scheme if SCRIPTS.contains(&scheme) => Url::Script,
        "data" => {
            let kind = rest.split([',', ';']).next().unwrap_or_default().trim().to_ascii_lowercase();
            if DOCUMENTS.contains(&kind.as_str()) { Url::Document } else { Url::Data }
        }
        "blob" => Url::Data,
        "http" | "https" | "ws" | "wss" | "ftp" => Url::External,
        _ => Url::Other,
    }
}

fn scheme(address: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = address.split_once(':')?;
    let mut chars = scheme.chars();
    let starts = chars.next().is_some_and(|first| first.is_ascii_alphabetic());
    let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.');
    (starts && chars.all(plain)).then_some((scheme, rest))
}

/// Whether a `<base>` keeps the app's addresses within the app.
pub(super) fn is_base(address: &str) -> bool {
    let address = stripped(address);
    let mut chars = address.chars();
    match chars.next() {
        Some('/') => !matches!(chars.next(), Some('/' | '\\')),
        Some('.') => chars.next() == Some('/'),
        _ => false,
    }
}

/// The addresses in `srcset`.
pub(super) fn of_set(set: &str) -> impl Iterator<Item = &str> {
    set.split_ascii_whitespace().map(|part| part.trim_matches(','))
}

/// Whether a `url(…)` in a style sheet runs a script. Takes linear time: the text read after a `url(` contains no other
/// `url(`.
pub(super) fn runs_in_style(style: &str) -> bool {
    let starts = style.match_indices('(').filter_map(|(at, _)| {
        let name = style.get(at.checked_sub(3)?..at)?;
        name.eq_ignore_ascii_case("url").then(|| style.get(at + 1..)).flatten()
    });
    starts.into_iter().any(|rest| {
        let blank = |char: char| char <= ' ' || char.is_whitespace() || matches!(char, '"' | '\'');
        let address = rest.trim_start_matches(blank);
        SCRIPTS.iter().any(|scheme| {
            let mut chars = address.chars().filter(|char| !IGNORED.contains(char));
            scheme
                .chars()
                .chain([':'])
                .all(|char| chars.next().is_some_and(|c| c.eq_ignore_ascii_case(&char)))
        })
    })
}

/// A style sheet's truncated `@import` addresses. Takes linear time: each read is limited.
pub(super) fn of_imports(style: &str) -> impl Iterator<Item = &str> {
    const IMPORT: &str = "import";
    style.match_indices('@').filter_map(|(at, _)| {
        let rest = style.get(at + 1..)?;
        rest.get(..IMPORT.len()).filter(|name| name.eq_ignore_ascii_case(IMPORT))?;
        let rest = rest.get(IMPORT.len()..)?;
        let rest = rest.get(..rest.floor_char_boundary(IMPORT_BYTES))?.trim_start();
        let inner =
            rest.get(..4).filter(|name| name.eq_ignore_ascii_case("url(")).and_then(|_| rest.get(4..));
        let address = inner.unwrap_or(rest).trim_start();
        match address.chars().next()? {
            quote @ ('"' | '\'') => address.get(1..)?.split(quote).next(),
            _ => inner.and_then(|_| address.split(')').next()).map(str::trim_end),
        }
    })
}

/// A style's truncated `url(…)` addresses, except for `@import`. Takes linear time: each read is limited.
pub(super) fn of_style(style: &str) -> impl Iterator<Item = &str> {
    const IMPORT: &str = "@import";
    style.match_indices('(').filter_map(|(at, _)| {
        let before = style.get(..at)?;
        let name = before.get(before.len().checked_sub(3)?..)?;
        name.eq_ignore_ascii_case("url").then_some(())?;
        let before = before
            .get(before.floor_char_boundary(before.len().saturating_sub(IMPORT_BYTES))..before.len() - 3)?;
        let before = before.trim_end();
        let last = before.get(before.len().saturating_sub(IMPORT.len())..).unwrap_or_default();
        (!last.eq_ignore_ascii_case(IMPORT)).then_some(())?;
        let rest = style.get(at + 1..)?;
        let address = rest.get(..rest.floor_char_boundary(IMPORT_BYTES))?.trim_start();
        match address.chars().next()? {
            quote @ ('"' | '\'') => address.get(1..)?.split(quote).next(),
            _ => address.split(')').next().map(str::trim_end),
        }
    })
}

/// The address in `<meta http-equiv=refresh>`.
pub(super) fn of_refresh(content: &str) -> Option<&str> {
    let rest = content.trim_start().trim_start_matches(|char: char| char.is_ascii_digit() || char == '.');
    let rest = rest.trim_start().trim_start_matches([';', ',']).trim_start();
    let named = rest.get(..3).filter(|name| name.eq_ignore_ascii_case("url"));
    let named = named.and_then(|_| rest.get(3..)?.trim_start().strip_prefix('='));
    let address = named.unwrap_or(rest).trim_start();
    let address = match address.chars().next() {
        Some(quote @ ('"' | '\'')) => address.get(1..)?.split(quote).next()?,
        _ => address,
    };
    (!address.is_empty()).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_as_in_browsers() {
        for address in [
            "javascript:alert(1)",
            " \u{1}JavaScript:x",
            "java\tscript:x",
            "java\r\nscript:x",
            "vbscript:x",
            "javascript:",
        ] {
            assert_eq!(classify(address), Url::Script, "{address:?}");
        }
        for address in
            ["data:text/html,x", "DATA: text/HTML;base64,x", "data:image/svg+xml,x", "data:application/xml,"]
        {
            assert_eq!(classify(address), Url::Document, "{address:?}");
        }
        for address in
            ["//a.example", "/\\a.example", "\\\\a", "https://a", "HTTP:a", "h\nttps://a", "/\t/a", "wss://a"]
        {
            assert_eq!(classify(address), Url::External, "{address:?}");
        }
        for address in
            ["a.js", "/a.js", "./a:b", "?javascript:x", "#javascript:", "", "1a:b", "javascript%3Ax", "a/b:c"]
        {
            assert_eq!(classify(address), Url::Relative, "{address:?}");
        }
        assert_eq!(classify("data:image/png;base64,x"), Url::Data);
        assert_eq!(classify("mailto:a@example.com"), Url::Other);
    }

    #[test]
    fn urls_are_found_in_other_texts() {
        assert_eq!(
            of_set("a.png 1x, b.png 2x").filter(|part| part.contains("png")).collect::<Vec<_>>(),
            ["a.png", "b.png"]
        );
        assert_eq!(of_refresh("0; URL = 'a b'c"), Some("a b"));
        assert_eq!(of_refresh(" 1.5,javascript:x"), Some("javascript:x"));
        assert_eq!(of_refresh("30"), None);
    }

    #[test]
    fn script_urls_in_a_style_sheet_are_found() {
        for style in [
            "a{b:URL( 'javascript:x' )}",
            "a{b:url(x)} c{d:url(java\tscript:y)}",
            "url(\"vbscript:",
            "url(url(javascript:x)",
            "url(\u{a0}' JAVASCRIPT\n:x')",
        ] {
            assert!(runs_in_style(style), "{style}");
        }
        for style in
            ["", "url(", "(javascript:x)", "url(/javascript:x)", "url()javascript:x", "\u{20ac}(url(x:"]
        {
            assert!(!runs_in_style(style), "{style}");
        }
    }

    #[test]
    fn a_style_sheet_is_read_in_linear_time() {
        // 5 MiB, which took hours in quadratic time.
        for part in ["url(", "url(\t", "url('java", "url(javascript", "(", "url(j\n\n\n"] {
            assert!(!runs_in_style(&part.repeat(5 * 1024 * 1024 / part.len())), "{part}");
        }
    }

    #[test]
    fn imports_of_a_style_sheet_are_found() {
        let style = "@import url(https://a.example/a.css); @IMPORT 'b.css' screen;\n@import\turl( \"//c\" ) layer;\
                     @import\"d\"; @media print{} a@import @import x; @import url(e";
        assert_eq!(
            of_imports(style).collect::<Vec<_>>(),
            ["https://a.example/a.css", "b.css", "//c", "d", "e"]
        );
        for part in ["@import", "@import url(", "@import '", "@import url( '", "@import url(\u{20ac}"] {
            assert!(
                of_imports(&part.repeat(5 * 1024 * 1024 / part.len())).count() < 2 * 1024 * 1024,
                "{part}"
            );
        }
    }

    #[test]
    fn urls_in_a_style_are_found() {
        let style = "a{background:url(https://a.example/a.png)} @import url(x.css); b{src:URL( 'b.woff' )}\n@IMPORT\turl('y');\
                     c{background:url(data:,x),url(\"//c\")} d{e:durl(f)} ä@url(g) url(";
        assert_eq!(
            of_style(style).collect::<Vec<_>>(),
            ["https://a.example/a.png", "b.woff", "data:,x", "//c", "f", "g"]
        );
        for part in ["url(", "url( '", "@import url(", "url(\u{20ac}", "("] {
            assert!(of_style(&part.repeat(5 * 1024 * 1024 / part.len())).count() < 2 * 1024 * 1024, "{part}");
        }
    }

    #[test]
    fn a_base_url_stays_in_the_app() {
        assert!(["/", "/sub/", "./", "./a/"].iter().all(|base| is_base(base)));
        assert!(
            !["", "//a.example/", "/\\a", "https://a.example/", "a/", "../", ".", "/\t/a"]
                .iter()
                .any(|base| is_base(base))
        );
    }
}
