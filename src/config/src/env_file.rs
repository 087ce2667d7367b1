//! Finds `$` characters in a `.env` file. The parser replaces `$NAME` and `${NAME}` outside single quotes, and an unset
//! name by nothing, so a password with a `$` would be shortened silently.

use std::collections::BTreeSet;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

/// A `$` that the parser would drop.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DroppedDollar {
    pub(crate) line: usize,
    /// The variable with the `$` in its value.
    pub(crate) variable: String,
}

/// Finds references to unset names. `is_set`: whether the environment has a name.
pub(crate) fn dropped_dollars(text: &str, is_set: impl Fn(&str) -> bool) -> Vec<DroppedDollar> {
    let (mut dropped, mut defined) = (Vec::new(), BTreeSet::new());
    let (mut quotes, mut variable) = (Quotes::None, "");
    for (line, content) in (1..).zip(text.lines()) {
        let mut value = content;
        if quotes == Quotes::None {
            let content = content.trim_start();
            let assigned = content.split_once('=').filter(|_| !content.starts_with('#'));
            let Some((name, assigned)) = assigned else { continue };
            let name = name.trim();
            (variable, value) =
                (name.strip_prefix("export ").unwrap_or(name).trim_start(), assigned.trim_start());
        }
        let mut names = Vec::new();
        quotes = scan(value, quotes, &mut names);
        if !names.iter().all(|name| is_set(name) || defined.contains(name.as_str())) {
            dropped.push(DroppedDollar { line, variable: variable.to_owned() });
        }
        defined.insert(variable);
    }
    dropped
}

/// Collects the names to which a line refers. Returns the quotes that stay open.
fn scan(value: &str, mut quotes: Quotes, names: &mut Vec<String>) -> Quotes {
    let mut rest = value.chars().peekable();
    while let Some(char) = rest.next() {
        match (char, quotes) {
            ('\'', Quotes::Single) | ('"', Quotes::Double) => quotes = Quotes::None,
            (_, Quotes::Single) => {}
            ('\'', Quotes::None) => quotes = Quotes::Single,
            ('"', Quotes::None) => quotes = Quotes::Double,
            ('\\', _) => _ = rest.next(),
            ('$', _) if rest.next_if_eq(&'{').is_some() => {
                names.push(rest.by_ref().take_while(|char| *char != '}').collect());
            }
            ('$', _) => {
                let name = std::iter::from_fn(|| rest.next_if(|char| char.is_alphanumeric()));
                names.push(name.collect());
            }
            // A comment follows.
            (' ' | '\t', Quotes::None) => break,
            _ => {}
        }
    }
    quotes
}
