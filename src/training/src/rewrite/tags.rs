//! Template tags, which a text by a model or a visitor must not add. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

/// A kind of tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Expression,
    Block,
    Comment,
    Credential,
}

const OPENERS: [(&str, Kind); 4] =
    [("{{", Kind::Expression), ("{%", Kind::Block), ("{#", Kind::Comment), ("[[", Kind::Credential)];

/// Maximum bytes of a credential's name with surrounding blanks, as in a graph.
const LONGEST_NAME: usize = 256;

/// The tags in a text, including comments. Insignificant blanks are removed. A `raw` block is one tag, including its
/// content.
pub(super) fn tags(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    each_tag(text, &mut |kind, tag| _ = found.insert(compact(kind, tag)));
    found
}

/// Whether any text or name inside a value contains a tag.
pub(crate) fn contains_tags(value: &Value) -> bool {
    match value {
        Value::String(text) => has_tags(text),
        Value::Array(entries) => entries.iter().any(contains_tags),
        Value::Object(members) => {
            members.iter().any(|(name, member)| has_tags(name) || contains_tags(member))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn has_tags(text: &str) -> bool {
    let mut found = false;
    each_tag(text, &mut |_, _| found = true);
    found
}

fn each_tag<'t>(text: &'t str, each: &mut dyn FnMut(Kind, &'t str)) {
    let (mut from, mut balance) = (0, 0);
    while let Some((at, kind)) = next(text, from) {
        let rest = text.get(at..).unwrap_or_default();
        let length = match kind {
            Kind::Credential => credential_length(rest),
            Kind::Expression | Kind::Block | Kind::Comment => Some(engine::tag_length(rest, &mut balance)),
        };
        if let Some(tag) = length.and_then(|length| rest.get(..length)) {
            each(kind, tag);
        }
        // An unclosed bracket is text.
        from = at + length.unwrap_or(1);
    }
}

/// The first opener at or after `from`.
fn next(text: &str, from: usize) -> Option<(usize, Kind)> {
    let rest = text.get(from..)?;
    rest.match_indices(['{', '[']).find_map(|(offset, _)| {
        let opened = rest.get(offset..)?;
        let opener = OPENERS.iter().find(|(open, _)| opened.starts_with(open))?;
        Some((from + offset, opener.1))
    })
}

/// The length of the `[[name]]` at the start of a text. A name contains no other tag, whose end would then differ from
/// the parser's.
fn credential_length(text: &str) -> Option<usize> {
    let pairs = text.as_bytes().windows(2).enumerate().skip(2).take(LONGEST_NAME);
    let mut ends = pairs.filter(|(_, pair)| matches!(*pair, b"]]" | b"{{" | b"{%" | b"{#"));
    ends.next().filter(|(_, pair)| *pair == b"]]").map(|(at, pair)| at + pair.len())
}

/// Removes insignificant blanks from a tag.
fn compact(kind: Kind, tag: &str) -> String {
    if kind == Kind::Block && tag.matches("{%").count() > 1 {
        return tag.to_owned();
    }
    let has_strings = matches!(kind, Kind::Expression | Kind::Block);
    let (mut text, mut blank, mut quote, mut escaped) = (String::new(), false, None, false);
    for letter in tag.chars() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if letter == '\\' => escaped = true,
            Some(open) if open == letter => quote = None,
            Some(_) => {}
            None if letter.is_whitespace() => {
                blank = true;
                continue;
            }
            None if has_strings && (letter == '"' || letter == '\'') => quote = Some(letter),
            None => {}
        }
        if std::mem::take(&mut blank) && text.chars().last().is_some_and(|last| separates(last, letter)) {
            text.push(' ');
        }
        text.push(letter);
    }
    text
}

/// Whether a blank between these two is significant: it ends a word, or keeps a sign from belonging to the delimiter.
fn separates(last: char, next: char) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
    let is_sign = |letter: char| letter == '-' || letter == '+';
    let is_edge = |letter: char| "{}%".contains(letter);
    is_word(last) && is_word(next) || is_edge(last) && is_sign(next) || is_sign(last) && is_edge(next)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kernel::Clock as _;
    use serde_json::json;

    use super::*;

    fn found(text: &str) -> Vec<String> {
        tags(text).into_iter().collect()
    }

    #[test]
    fn every_kind_of_tag_is_found() {
        assert_eq!(
            found("a {{ x }} {%- if y or z -%} [[ shop ]] {% endif %} {# note #} {{x}} } ] { [ }} ]]"),
            ["[[shop]]", "{#note#}", "{%-if y or z-%}", "{%endif%}", "{{x}}"]
        );
        assert_eq!(found("a { {b} [c] [[d"), [""; 0]);
        assert_eq!(found("{{ x"), ["{{x"]);
    }

    #[test]
    fn strings_inside_tags_are_kept_unchanged() {
        assert_eq!(found(r#"{{ "a }} \" b"  ~ x }} c }}"#), [r#"{{"a }} \" b"~x}}"#]);
        assert_ne!(tags("{{ 'a b' }}"), tags("{{ 'ab' }}"));
        assert_ne!(tags("{{ a or b }}"), tags("{{ aorb }}"));
        assert_ne!(tags("{{ -x }}"), tags("{{- x }}"));
        assert_eq!(tags("{{ a|upper }}"), tags("{{\n a | upper }}"));
    }

    #[test]
    fn tags_end_where_the_template_parser_ends_them() {
        let nested = "{{{'a':{'b':1}}}}";
        assert_eq!(found("{{ {'a': {'b': 1}} }} x }}"), [nested]);
        assert_ne!(found("{{ {'a': {'b': 1}} ~ config.secret }}"), [nested]);
        assert_eq!(found("[[ {{ x[y[0]] ~ z }}"), ["{{x[y[0]]~z}}"]);
        assert_eq!(found("{#} {{ x }} #}"), ["{#}{{x}}#}"]);
    }

    #[test]
    fn tags_are_found_in_linear_time() {
        let clock = kernel::SystemClock::new();
        for text in [format!("{{% raw %}}{}", "{%endraw ".repeat(120_000)), "[[".repeat(10_000) + "{{ x"] {
            assert_eq!(tags(&text).len(), 1);
        }
        assert!(clock.monotonic() < Duration::from_secs(10), "{:?}", clock.monotonic());
    }

    #[test]
    fn a_tag_inside_a_comment_or_raw_block_is_a_part_of_it() {
        assert_eq!(found("{# {{ x }} #}"), ["{#{{x}}#}"]);
        let raw = "{%- raw %}{{ x }} {% if %}{% endraw -%}";
        assert_eq!(found(&format!("{raw}{{{{ y }}}}")), [raw, "{{y}}"]);
    }

    #[test]
    fn tags_are_found_in_texts_and_names_of_values() {
        for plain in [json!("{x}"), json!([[1, 2], [{"a": {"b": {}}}]]), json!({"a": null})] {
            assert!(!contains_tags(&plain), "{plain}");
        }
        for tagged in
            [json!("x {{ 1 }}"), json!([["{# x #}"]]), json!({"{% if %}": 1}), json!({"a": "[[key]]"})]
        {
            assert!(contains_tags(&tagged), "{tagged}");
        }
    }
}
