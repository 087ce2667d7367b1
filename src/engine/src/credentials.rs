//! `[[name]]`: references to vault secrets in a graph's text.
//!
//! Only references in the graph itself count. A text is split at its references before anything is filled, and
//! template output is never searched for references: a visitor who chats with a workflow cannot name its secrets.
//! Until a call is made, only the name and its position in the filled text exist.

use std::fmt::Write as _;

use minijinja::Value as View;
use secrecy::ExposeSecret as _;
use secrecy::zeroize::Zeroizing;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wire::is_credential_name;

use crate::NodeError;
use crate::graph::fields::escape;
use crate::tags;
use crate::template::Filling;

/// Maximum bytes of a name with surrounding blanks.
const LONGEST_REFERENCE: usize = 256;

/// A part of a graph's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segment<'a> {
    /// A template.
    Text(&'a str),
    /// The name of a secret.
    Secret(&'a str),
}

/// Splits a text at its references. `{{ … }}`, `{% … %}` and raw blocks contain none.
pub(crate) fn segments(text: &str) -> Vec<Segment<'_>> {
    let mut found = Vec::new();
    let (mut begun, mut at, mut balance) = (0, 0, 0);
    while let Some(rest) = text.get(at..) {
        let Some(next) = tags::next_opener(rest, true) else { break };
        let here = at + next;
        let tag = text.get(here..).unwrap_or_default();
        if !tag.starts_with("[[") {
            at = here + tags::length(tag, &mut balance).max(1);
            continue;
        }
        match reference(tag) {
            Some((name, length)) => {
                found.push(Segment::Text(text.get(begun..here).unwrap_or_default()));
                found.push(Segment::Secret(name));
                at = here + length;
                begun = at;
            }
            None => at = here + 1,
        }
    }
    found.push(Segment::Text(text.get(begun..).unwrap_or_default()));
    found.retain(|segment| *segment != Segment::Text(""));
    found
}

/// Parses `[[name]]` at the beginning of a text. Returns the name and the reference's length.
fn reference(text: &str) -> Option<(&str, usize)> {
    let inside = text.strip_prefix("[[")?;
    // Bounded: otherwise a text of brackets would be searched again from each bracket.
    let end = inside.as_bytes().windows(2).take(LONGEST_REFERENCE).position(|pair| pair == b"]]")?;
    let inside = inside.get(..end)?;
    let name = inside.trim_matches(' ');
    is_credential_name(name).then_some((name, inside.len() + 4))
}

pub(crate) fn has_secrets(segments: &[Segment<'_>]) -> bool {
    segments.iter().any(|segment| matches!(segment, Segment::Secret(_)))
}

/// The position for a secret: replaces `[[name]]` at byte offset `at` in the text at `pointer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SecretPosition {
    pub(crate) pointer: String,
    pub(crate) at: usize,
    pub(crate) name: String,
}

impl SecretPosition {
    /// The placeholder until the call fills it.
    pub(crate) fn text(&self) -> String {
        format!("[[{}]]", self.name)
    }
}

/// Builds the input of a node that calls out: its filled fields and, separately, the positions of secrets in them.
/// Template output that looks like a reference is not one, because no position points to it.
pub(crate) fn fill_fields<'a>(
    fields: impl IntoIterator<Item = (&'static str, Option<&'a Value>)>,
    scope: &View,
) -> Result<Value, NodeError> {
    let (mut filling, mut positions, mut filled) = (Filling::new(scope), Vec::new(), Map::new());
    for (name, value) in fields {
        if let Some(value) = value {
            let value = fill(value, &format!("/{name}"), &mut filling, &mut positions)?;
            filled.insert(name.to_owned(), value);
        }
    }
    Ok(json!({"fields": filled, "secrets": positions}))
}

fn fill(
    value: &Value,
    pointer: &str,
    filling: &mut Filling<'_>,
    positions: &mut Vec<SecretPosition>,
) -> Result<Value, NodeError> {
    Ok(match value {
        Value::String(text) => {
            let segments = segments(text);
            if !has_secrets(&segments) {
                return filling.fill(value);
            }
            let mut filled = String::new();
            for segment in segments {
                match segment {
                    Segment::Text(text) => filled.push_str(&filling.fill_as_text(text)?),
                    Segment::Secret(name) => {
                        let position = SecretPosition {
                            pointer: pointer.to_owned(),
                            at: filled.len(),
                            name: name.to_owned(),
                        };
                        let _ = write!(filled, "{}", position.text());
                        positions.push(position);
                    }
                }
            }
            Value::String(filled)
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let items =
                items.map(|(index, item)| fill(item, &format!("{pointer}/{index}"), filling, positions));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(members) => {
            let mut filled = Map::new();
            for (name, member) in members {
                let member = fill(member, &format!("{pointer}/{}", escape(name)), filling, positions)?;
                filled.insert(name.clone(), member);
            }
            Value::Object(filled)
        }
        other => other.clone(),
    })
}

/// Splits an input into its fields and the positions of secrets in them.
pub(crate) fn read_input(mut input: Value) -> Result<(Value, Vec<SecretPosition>), NodeError> {
    let fields = input.get_mut("fields").map(Value::take).unwrap_or_default();
    let positions = input.get_mut("secrets").map(Value::take).unwrap_or_default();
    let positions = serde_json::from_value(positions)
        .map_err(|error| NodeError::failed(format!("the input cannot be read: {error}")))?;
    Ok((fields, positions))
}

/// Inserts secrets at their positions. `spelt` encodes a secret for its position.
pub(crate) fn put_in(
    fields: &mut Value,
    positions: &[SecretPosition],
    secret: impl Fn(&str) -> Option<kernel::Secret>,
    spelt: impl Fn(&SecretPosition, &str) -> String,
) -> Result<(), NodeError> {
    let gone = || NodeError::failed("the position of a secret no longer exists");
    // Last to first, so that earlier positions stay valid.
    for position in positions.iter().rev() {
        let Some(Value::String(text)) = fields.pointer_mut(&position.pointer) else { return Err(gone()) };
        let end = position.at.saturating_add(position.text().len());
        if text.get(position.at..end) != Some(position.text().as_str()) {
            return Err(gone());
        }
        let secret = secret(&position.name).ok_or_else(gone)?;
        let spelt = Zeroizing::new(spelt(position, secret.expose_secret()));
        text.replace_range(position.at..end, &spelt);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use minijinja::value::Serde;

    use super::*;

    fn cut(text: &str) -> Vec<String> {
        let shown = |segment| match segment {
            Segment::Text(text) => text.to_owned(),
            Segment::Secret(name) => format!("<{name}>"),
        };
        segments(text).into_iter().map(shown).collect()
    }

    #[test]
    fn text_is_split_only_at_its_references() {
        for (text, parts) in [
            ("Bearer [[stripe]]", vec!["Bearer ", "<stripe>"]),
            ("[[a]][[ My key 2 ]]!", vec!["<a>", "<My key 2>", "!"]),
            ("[[[a]]]", vec!["[", "<a>", "]"]),
            ("{{ x }}[[a]]{{ y }}", vec!["{{ x }}", "<a>", "{{ y }}"]),
            ("[[1,2],[3,4]]", vec!["[[1,2],[3,4]]"]),
            ("[[]] [[ ]] [[a\nb]] [[a", vec!["[[]] [[ ]] [[a\nb]] [[a"]),
            ("[[true]] [[null]]", vec!["[[true]] [[null]]"]),
            ("{{ [[a]] }}", vec!["{{ [[a]] }}"]),
            ("{{ '}} [[a]]' }}", vec!["{{ '}} [[a]]' }}"]),
            ("{{ \"[[a]]\" }}", vec!["{{ \"[[a]]\" }}"]),
            ("{% raw %}[[a]]{% endraw %}", vec!["{% raw %}[[a]]{% endraw %}"]),
            ("{# [[a]] #}[[b]]", vec!["{# [[a]] #}", "<b>"]),
            ("plain", vec!["plain"]),
            ("", vec![]),
        ] {
            assert_eq!(cut(text), parts, "{text}");
        }
    }

    #[test]
    fn template_output_is_not_read_as_a_reference() {
        let inputs = json!({"message": "[[stripe]]", "half": "[[stri", "rest": "pe]]", "name": "stripe"});
        let scope = View::from(Serde(json!({"inputs": inputs})));
        let field = json!({
            "a": "{{ inputs.message }}",
            "b": "x {{ inputs.message }} y",
            "c": "{{ inputs.half }}{{ inputs.rest }}",
            "d": "[[{{ inputs.name }}]]",
            "e": ["{{ inputs.message }}[[other]]{{ inputs.message }}"],
            "f": "{{ inputs.half }}pe]]",
        });
        let input = fill_fields([("json", Some(&field))], &scope).unwrap();
        assert_eq!(input["secrets"], json!([{"pointer": "/json/e/0", "at": 10, "name": "other"}]));
        let (mut fields, positions) = read_input(input).unwrap();
        let secret = |name: &str| Some(kernel::Secret::from(format!("SECRET of {name}")));
        put_in(&mut fields, &positions, secret, |_, secret| secret.to_owned()).unwrap();
        assert_eq!(
            fields["json"],
            json!({"a": "[[stripe]]", "b": "x [[stripe]] y", "c": "[[stripe]]", "d": "[[stripe]]",
                   "e": ["[[stripe]]SECRET of other[[stripe]]"], "f": "[[stripe]]"})
        );
    }

    #[test]
    fn secrets_that_look_like_references_and_templates_stay_as_they_are() {
        let field = json!("[[a]] and [[b]] and [[a]]");
        let input = fill_fields([("body", Some(&field))], &View::from(())).unwrap();
        let (mut fields, positions) = read_input(input).unwrap();
        let secret = |name: &str| {
            Some(kernel::Secret::from(if name == "a" { "[[b]]{{ inputs }}" } else { "ö" }.to_owned()))
        };
        put_in(&mut fields, &positions, secret, |_, secret| secret.to_owned()).unwrap();
        assert_eq!(fields["body"], "[[b]]{{ inputs }} and ö and [[b]]{{ inputs }}");
    }
}
