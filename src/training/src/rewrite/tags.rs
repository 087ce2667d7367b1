//! Template tags, which a text by a model or a visitor must not add. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

/// The delimiters of a kind of tag.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Delimiters {
    open: &'static str,
    close: &'static str,
}

const EXPRESSION: Delimiters = Delimiters { open: "{{", close: "}}" };
const BLOCK: Delimiters = Delimiters { open: "{%", close: "%}" };
const COMMENT: Delimiters = Delimiters { open: "{#", close: "#}" };
const CREDENTIAL: Delimiters = Delimiters { open: "[[", close: "]]" };
const KINDS: [Delimiters; 4] = [EXPRESSION, BLOCK, COMMENT, CREDENTIAL];

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

fn each_tag<'t>(text: &'t str, each: &mut dyn FnMut(Delimiters, &'t str)) {
    // An unclosed bracket is text.
    let last_credential = text.rfind(CREDENTIAL.close).unwrap_or_default();
    let mut place = 0;
    while let Some((at, kind)) = next(text, place, last_credential) {
        let rest = text.get(at..).unwrap_or_default();
        let tag = rest.get(..length(rest, kind)).unwrap_or(rest);
        each(kind, tag);
        place = at + tag.len();
    }
}

/// The first tag at or after `from`.
fn next(text: &str, from: usize, last_credential: usize) -> Option<(usize, Delimiters)> {
    let rest = text.get(from..)?;
    rest.match_indices(['{', '[']).find_map(|(offset, _)| {
        let at = from + offset;
        let begins = |kind: &&Delimiters| text.get(at..).is_some_and(|rest| rest.starts_with(kind.open));
        let kind = *KINDS.iter().find(begins)?;
        (kind != CREDENTIAL || at < last_credential).then_some((at, kind))
    })
}

/// The tag length at the start of a text; the whole text if the tag is unclosed.
fn length(text: &str, kind: Delimiters) -> usize {
    let after = |end: Option<usize>| end.map_or(text.len(), |at| at + kind.close.len());
    if kind == COMMENT || kind == CREDENTIAL {
        return after(text.find(kind.close));
    }
    let end = closer(text, kind.close);
    match end.and_then(|end| text.get(..end)) {
        Some(tag) if kind == BLOCK && is_block(tag, "raw") => raw_length(text, tag.len() + kind.close.len()),
        _ => after(end),
    }
}

/// The closer's position outside strings.
fn closer(text: &str, close: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    text.char_indices().skip(2).find_map(|(at, letter)| {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if letter == '\\' => escaped = true,
            Some(open) if open == letter => quote = None,
            Some(_) => {}
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None if text.get(at..).is_some_and(|rest| rest.starts_with(close)) => return Some(at),
            None => {}
        }
        None
    })
}

/// Whether a tag opens the block `name`.
fn is_block(tag: &str, name: &str) -> bool {
    tag.trim_start_matches("{%").trim_matches(|letter: char| letter.is_whitespace() || "-+".contains(letter))
        == name
}

/// The length of a `raw` block whose first tag has the length `first`.
fn raw_length(text: &str, first: usize) -> usize {
    let content = text.get(first..).unwrap_or_default();
    let end = content.match_indices(BLOCK.open).find_map(|(at, _)| {
        let rest = content.get(at..)?;
        // Only white space and a sign may be between: no need to look further.
        let name = rest
            .get(BLOCK.open.len()..)?
            .trim_start_matches(|letter: char| letter.is_whitespace() || "-+".contains(letter));
        let closed = name.starts_with("endraw").then(|| rest.find(BLOCK.close)).flatten()?;
        Some(first + at + closed + BLOCK.close.len())
    });
    end.unwrap_or(text.len())
}

/// Removes insignificant blanks from a tag.
fn compact(kind: Delimiters, tag: &str) -> String {
    if kind == BLOCK && tag.matches(BLOCK.open).count() > 1 {
        return tag.to_owned();
    }
    let has_strings = kind == EXPRESSION || kind == BLOCK;
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
