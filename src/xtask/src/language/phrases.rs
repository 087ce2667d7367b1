//! Phrases that hide who acts or what happens.

/// In lower case, at word boundaries. Split, so that this file does not find itself.
const PHRASES: &[&str] = &[
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("any", "body"),
    concat!("every", "body"),
    concat!("who", "ever"),
    concat!("it is", " looked"),
    concat!("it was", " looked"),
    concat!("is", " told"),
    concat!("are", " told"),
    concat!("was", " told"),
    concat!("were", " told"),
    concat!("be", " told"),
    concat!("told", " of"),
    concat!("tells", " of"),
    concat!("what it comes", " to"),
    concat!("came", " of"),
    concat!("comes", " of"),
    concat!("became", " of"),
    concat!("becomes", " of"),
    concat!("has come", " to"),
    concat!("stands", " for"),
    concat!("stands", " in"),
    concat!("stands", " on"),
    concat!("stands", " there"),
    concat!("in", " hand"),
    concat!("at", " hand"),
    concat!("goes", " on"),
    concat!("go", " on"),
    concat!("went", " on"),
    concat!("is", " none"),
    concat!("are", " none"),
    concat!("that of", " the"),
    concat!("of its", " own"),
    concat!("of their", " own"),
    concat!("as often", " as"),
    concat!("asked", " for"),
    concat!("besi", "de"),
];
/// Before a noun: a negation that belongs to the verb.
const NEGATIONS: &[&str] = &[concat!("is", " no "), concat!("are", " no ")];
/// A subject that makes a negation an ordinary one.
const ORDINARY: &str = "there ";

/// The phrases of a text.
pub(super) fn count(text: &str) -> usize {
    let text = text.to_lowercase();
    let phrases: usize = PHRASES.iter().map(|phrase| occurrences(&text, phrase)).sum();
    phrases + NEGATIONS.iter().map(|negation| negated(&text, negation)).sum::<usize>()
}

/// The phrases in the string literals of a code line. Shorter literals than a sentence are names.
pub(super) fn count_in_literals(line: &str) -> usize {
    let literals = line.split('"').skip(1).step_by(2);
    literals.filter(|literal| literal.split(' ').count() > 2).map(count).sum()
}

fn occurrences(text: &str, phrase: &str) -> usize {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    let at_edges = |at: &usize| {
        let (before, after) = (text.get(..*at), text.get(at + phrase.len()..));
        is_edge(before.and_then(|text| text.chars().next_back()))
            && is_edge(after.and_then(|text| text.chars().next()))
    };
    text.match_indices(phrase).filter(|(at, _)| at_edges(at)).count()
}

fn negated(text: &str, negation: &str) -> usize {
    let before = |at: usize| text.get(..at).unwrap_or_default();
    let counts = |at: usize| before(at).ends_with(' ') && !before(at).ends_with(ORDINARY);
    text.match_indices(negation).filter(|(at, _)| counts(*at)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_at_word_boundaries() {
        assert_eq!(count(concat!("No", "body waits; it go", "es on besi", "de the queue.")), 3);
        assert_eq!(count("Cargo once, besides the at handler."), 0);
        assert_eq!(count(concat!("A blank is", " no name, and there is", " no limit.")), 1);
    }

    #[test]
    fn short_literals_are_names() {
        assert_eq!(count_in_literals(concat!("let a = \"besi", "de\"; let b = \"wait besi", "de it\";")), 1);
    }
}
