//! Checks template filters, tests and methods. An unknown one fails every run that reaches it, so a graph that uses
//! one is not saved.

use minijinja::ErrorKind;
use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use crate::graph::fields::nearest;
use crate::template::functions;
use crate::template::{ENVIRONMENT, has_holes};

/// Template filters, without aliases.
pub const FILTERS: [&str; 43] = [
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "count",
    "default",
    "dictsort",
    "escape",
    "first",
    "float",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
    "zip",
];
/// Template tests, without aliases.
pub const TESTS: [&str; 24] = [
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "even",
    "false",
    "float",
    "ge",
    "gt",
    "in",
    "integer",
    "iterable",
    "le",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sequence",
    "string",
    "true",
];

/// Methods of `loop`.
const LOOP: [&str; 2] = ["cycle", "changed"];

/// A problem with a call, and a suggestion.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) suggestion: String,
}

/// Finds up to `most` unknown filters, tests and methods in a text. If the text does not parse, checks the part before
/// the error.
pub(super) fn unknown(text: &str, is_expression: bool, most: usize) -> Vec<Unknown> {
    if !is_expression && !has_holes(text) {
        return Vec::new();
    }
    let tokens: Vec<Token<'_>> = tokenize(text, is_expression, SyntaxConfig::default())
        .map_while(Result::ok)
        .map(|(token, _)| token)
        .collect();
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        if found.len() >= most {
            break;
        }
        let (next, after) = (tokens.get(index + 1), tokens.get(index + 2));
        let before = index.checked_sub(1).and_then(|before| tokens.get(before));
        // A member with this name.
        if matches!((before, token), (Some(Token::Dot), Token::Ident("is"))) {
            continue;
        }
        match (token, next, after) {
            (Token::Pipe, Some(Token::Ident(name)), _) => found.extend(filter(name)),
            (Token::Ident("is"), Some(Token::Ident("not")), Some(Token::Ident(name))) => {
                found.extend(test(name))
            }
            (Token::Ident("is"), Some(Token::Ident(name)), _) if *name != "not" => found.extend(test(name)),
            (Token::Dot, Some(Token::Ident(name)), Some(Token::ParenOpen)) if !LOOP.contains(name) => {
                found.push(method(name));
            }
            _ => {}
        }
    }
    found
}

fn filter(name: &str) -> Option<Unknown> {
    let error = ENVIRONMENT.empty_state().apply_filter(name, &[]).err()?;
    if error.kind() != ErrorKind::UnknownFilter {
        return None;
    }
    let filters: Vec<&str> = FILTERS.into_iter().chain(functions::FILTERS).collect();
    let suggestion = near(name, &filters, "filters");
    Some(Unknown { code: "unknown_filter", message: format!("unknown filter '{name}'"), suggestion })
}

fn test(name: &str) -> Option<Unknown> {
    let error = ENVIRONMENT.empty_state().perform_test(name, &[]).err()?;
    if error.kind() != ErrorKind::UnknownTest {
        return None;
    }
    let suggestion = near(name, &TESTS, "tests");
    Some(Unknown { code: "unknown_test", message: format!("unknown test '{name}'"), suggestion })
}

/// Values have no methods; a Python method often exists as a filter.
fn method(name: &str) -> Unknown {
    let filter = match name {
        "strip" => Some("trim"),
        "get" => Some("default"),
        "splitlines" => Some("lines"),
        name => FILTERS.contains(&name).then_some(name),
    };
    let suggestion = match filter {
        Some(filter) => format!("use the filter: value | {filter}"),
        None => format!("use a filter; there are {}", FILTERS.join(", ")),
    };
    let message = format!("unknown method '{name}': values of templates have no methods");
    Unknown { code: "unknown_method", message, suggestion }
}

fn near(name: &str, known: &[&str], what: &str) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("{what}: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<String> {
        unknown(text, false, 9)
            .into_iter()
            .map(|found| format!("{} {}", found.code, found.suggestion))
            .collect()
    }

    #[test]
    fn listed_filters_and_tests_are_known() {
        assert!(FILTERS.into_iter().all(|name| filter(name).is_none()));
        assert!(TESTS.into_iter().all(|name| test(name).is_none()));
    }

    #[test]
    fn unknown_calls_are_found_with_suggestions() {
        assert_eq!(codes("{{ inputs.a | uper }}"), ["unknown_filter did you mean 'upper'?"]);
        assert_eq!(codes("a {% if x is defnied %}b{% endif %}"), ["unknown_test did you mean 'defined'?"]);
        assert_eq!(codes("{{ x is not nonee }}"), ["unknown_test did you mean 'none'?"]);
        assert_eq!(codes("{{ inputs.a.strip() }}"), ["unknown_method use the filter: value | trim"]);
        assert_eq!(codes("{{ a | upper }}{{ b | shout }}{{ c.foo(1) }}").len(), 2);
        let found = unknown("results.a.text | uper == 'X'", true, 9);
        assert_eq!(found.len(), 1);
        assert_eq!(unknown(&"{{ a | shout }}".repeat(20), false, 9).len(), 9, "up to the maximum");
    }

    #[test]
    fn plain_text_and_known_calls_are_accepted() {
        for text in [
            "a | b, x is y, z.foo()",
            "{{ 'a | b is c.foo()' }}",
            "{{ a | upper | default('x | y') }}",
            "{% for a in b %}{{ loop.cycle('a', 'b') }}{% endfor %}",
            "{{ a is not none and b is in [1] }}",
            "{# a | b #}",
            "{{ inputs.is and x }}",
            "{% raw %}{{ a | b }}{% endraw %}",
            "{{ 1 + }}",
            "{{ a is divisibleby 3 }} {{ a is eq(1) }}",
        ] {
            assert_eq!(codes(text), Vec::<String>::new(), "{text}");
        }
    }
}
