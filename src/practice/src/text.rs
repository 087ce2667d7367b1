//! Words, sentences and quotes: all that the practice model sees of a text.

use std::collections::BTreeSet;

/// Empty words, which say nothing about a text's topic.
const EMPTY: &[&str] = &[
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "does", "for", "from", "get", "give", "had", "has", "have", "he", "hello", "her", "hi",
    "his", "how", "i", "if", "im", "in", "is", "it", "its", "just", "know", "like", "me", "my", "no", "not",
    "of", "on", "or", "our", "out", "please", "she", "should", "so", "some", "tell", "than", "that", "the",
    "their", "them", "then", "there", "they", "this", "to", "too", "up", "us", "want", "was", "we", "were",
    "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// A sentence part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A word or number, in lower case, without apostrophes.
    Word(String),
    /// Text between quotation marks or backticks, unchanged.
    Quote(String),
    /// A comma, colon or equals sign.
    Mark(char),
}

impl Token {
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn quote(&self) -> Option<&str> {
        match self {
            Self::Quote(text) => Some(text),
            _ => None,
        }
    }
}

/// Maximum bytes per quote, and per instruction.
pub(super) const LONGEST: usize = 600;

/// The end position of a quote that is open before `rest`.
fn end_of_quote(rest: &str, end: char) -> Option<usize> {
    rest.get(..rest.floor_char_boundary(LONGEST))?.find(end)
}

/// The closing sign for an opening quotation mark.
fn closing(open: char) -> Option<char> {
    match open {
        '"' | '`' => Some(open),
        '“' | '„' => Some('”'),
        '«' => Some('»'),
        _ => None,
    }
}

/// Splits a sentence into tokens. An unclosed quote is read as words.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text.chars();
    let mut word = String::new();
    let flush = |word: &mut String, found: &mut Vec<Token>| {
        if !word.is_empty() {
            found.push(Token::Word(std::mem::take(word)));
        }
    };
    while let Some(letter) = rest.next() {
        if letter.is_alphanumeric() || matches!(letter, '_' | '-') && !word.is_empty() {
            word.extend(letter.to_lowercase());
            continue;
        }
        if matches!(letter, '\'' | '’') {
            continue;
        }
        // Inside a number: 12.50, 18:00, 1,000.
        if matches!(letter, '.' | ':' | ',')
            && word.ends_with(|last: char| last.is_ascii_digit())
            && rest.as_str().starts_with(|next: char| next.is_ascii_digit())
        {
            word.push(letter);
            continue;
        }
        flush(&mut word, &mut found);
        if let Some(end) = closing(letter)
            && let Some(at) = end_of_quote(rest.as_str(), end)
            && let Some((inside, behind)) = rest.as_str().split_at_checked(at)
        {
            found.push(Token::Quote(inside.to_owned()));
            rest = behind.strip_prefix(end).unwrap_or(behind).chars();
        } else if matches!(letter, ',' | ':' | '=') {
            found.push(Token::Mark(letter));
        }
    }
    flush(&mut word, &mut found);
    for token in &mut found {
        if let Token::Word(word) = token {
            word.truncate(word.trim_end_matches('-').len());
        }
    }
    found
}

/// The words of a text, including those inside quotes.
pub(super) fn words(text: &str) -> Vec<String> {
    let plain: String =
        text.chars().map(|c| if closing(c).is_some() || c == '”' { ' ' } else { c }).collect();
    tokens(&plain).into_iter().filter_map(|token| token.word().map(str::to_owned)).collect()
}

/// A word without its ending, so that `refund`, `refunds` and `refunded` are equal.
pub(super) fn stem(word: &str) -> String {
    for ending in ["ings", "ing", "edly", "ied", "ies", "ed", "es", "ly", "s", "e", "y"] {
        if let Some(start) = word.strip_suffix(ending)
            && start.chars().count() >= 3
            && !word.ends_with("ss")
        {
            return start.to_owned();
        }
    }
    word.to_owned()
}

/// The words of a text without their endings, in order.
pub(super) fn stems(text: &str) -> Vec<String> {
    words(text).iter().map(|word| stem(word)).collect()
}

/// A text's topics: its words without endings and without empty words.
pub(super) fn topics(text: &str) -> BTreeSet<String> {
    words(text).iter().filter(|word| !EMPTY.contains(&word.as_str())).map(|word| stem(word)).collect()
}

/// Whether a word says nothing about a text's topic.
pub(super) fn is_empty_word(word: &str) -> bool {
    EMPTY.contains(&word) || word.chars().count() < 3
}

/// Whether `text` contains `phrase`, ignoring word endings.
pub(super) fn mentions(text: &str, phrase: &str) -> bool {
    stands_in(&stems(text), phrase)
}

/// Like [`mentions`], for a text whose words are already stemmed.
pub(super) fn stands_in(text: &[String], phrase: &str) -> bool {
    let phrase = stems(phrase);
    !phrase.is_empty() && text.windows(phrase.len()).any(|part| part == phrase)
}

/// The sentences of a text: lines, and parts that end with a full stop, question or exclamation mark outside quotes.
/// List marks are removed.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut rest = unlisted(line);
        while !rest.is_empty() {
            let (sentence, behind) = first_sentence(rest);
            if sentence.chars().any(char::is_alphanumeric) {
                found.push(sentence.trim().to_owned());
            }
            rest = behind;
        }
    }
    found
}

/// A line without its list mark: `- `, `* `, `• `, `# `, `1. `, `1) `.
fn unlisted(line: &str) -> &str {
    let line = line.trim();
    let bare = line.trim_start_matches(['-', '*', '•', '#', '>']);
    if bare.len() < line.len() && bare.starts_with(' ') {
        return bare.trim();
    }
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match number.strip_prefix(['.', ')']) {
        Some(rest) if number.len() < line.len() && rest.starts_with(' ') => rest.trim(),
        _ => line,
    }
}

fn first_sentence(text: &str) -> (&str, &str) {
    let mut inside = None;
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        let behind = text.get(at + letter.len_utf8()..).unwrap_or_default();
        let ends = match inside {
            Some(end) if end == letter => {
                inside = None;
                // A quote may contain the sentence's end: `Say "No." Then stop.`
                matches!(before, '.' | '!' | '?')
                    && behind.starts_with(char::is_whitespace)
                    && behind.trim_start().starts_with(char::is_uppercase)
            }
            Some(_) => false,
            None => {
                inside = closing(letter).filter(|end| end_of_quote(behind, *end).is_some());
                matches!(letter, '.' | '!' | '?')
                    && (behind.is_empty() || behind.starts_with(char::is_whitespace))
            }
        };
        if ends {
            return (text.get(..at + letter.len_utf8()).unwrap_or(text), behind.trim_start());
        }
        before = letter;
    }
    (text, "")
}

/// A text without its final punctuation.
pub(super) fn unended(text: &str) -> &str {
    text.trim().trim_end_matches(['.', '!', '?', ',', ';', ':']).trim_end()
}

/// A number in digits, or as a word up to twelve.
pub(super) fn number(word: &str) -> Option<usize> {
    const NAMES: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    word.parse().ok().or_else(|| NAMES.iter().position(|name| *name == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_outside_of_quotes_only() {
        let text = "- Say \"Hi. Bye.\" first. Then stop!\n2) It costs 12.50 euros. Why?\n\n---\n* `a. b`";
        assert_eq!(
            sentences(text),
            ["Say \"Hi. Bye.\" first.", "Then stop!", "It costs 12.50 euros.", "Why?", "`a. b`"]
        );
    }

    #[test]
    fn tokens_are_words_quotes_and_marks() {
        let word = |text: &str| Token::Word(text.to_owned());
        assert_eq!(
            tokens("Don't say “No way”, order-id: 1,000."),
            [word("dont"), word("say"), Token::Quote("No way".into()), Token::Mark(','), word("order-id")]
                .into_iter()
                .chain([Token::Mark(':'), word("1,000")])
                .collect::<Vec<_>>()
        );
        assert_eq!(words("a \"b c\" d"), ["a", "b", "c", "d"]);
    }

    #[test]
    fn word_endings_make_no_difference() {
        assert!(mentions("They refunded me.", "refunds"));
        assert!(mentions("I want my MONEY  back!", "money back"));
        assert!(!mentions("My back and my money", "money back"));
        assert!(!mentions("anything", ""));
        assert_eq!(number("three"), Some(3));
    }
}
