//! Token counts: a token is a run of at most six letters or digits, or one other non-blank sign. Blanks belong to the
//! token before them and do not count.

use serde_json::Value;

use models::{Message, ModelRequest, Part, Role, ToolCall, Usage};

/// Maximum letters per token.
const LONGEST: u32 = 6;
/// Tokens per message in addition to its text.
const MESSAGE: u64 = 4;
/// Tokens per picture.
const PICTURE: u64 = 85;

/// Counts the tokens in a text.
pub(super) fn count(text: &str) -> u64 {
    ends(text).fold(0, |count, _| count + 1)
}

/// Each token's end position, including blanks after it.
fn ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    let mut letters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let mut run = 0_u32;
        let mut begun = false;
        loop {
            let &(at, letter) = match letters.peek() {
                Some(next) => next,
                None => return begun.then_some(text.len()),
            };
            let ends = if letter.is_whitespace() {
                run = LONGEST;
                false
            } else if letter.is_alphanumeric() {
                run += 1;
                begun && run > LONGEST
            } else {
                let ends = begun;
                run = LONGEST;
                ends
            };
            if ends {
                return Some(at);
            }
            begun |= !letter.is_whitespace();
            letters.next();
        }
    })
}

/// The first `most` tokens in a text, and whether there are more.
pub(super) fn cut(text: &str, most: u32) -> (&str, bool) {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    match ends(text).nth(most.saturating_sub(1)) {
        Some(at) if at < text.len() => (text.get(..at).unwrap_or(text).trim_end(), true),
        _ => (text, false),
    }
}

/// Counts the tokens in a message.
fn message(message: &Message) -> u64 {
    let parts = message.parts.iter().filter(|_| message.role == Role::User).map(|part| match part {
        Part::Text(text) => count(text),
        Part::Image(_) => PICTURE,
    });
    count(&message.content) + parts.sum::<u64>() + MESSAGE
}

/// A call's usage.
pub(super) fn usage(request: &ModelRequest, text: &str, calls: &[ToolCall]) -> Usage {
    let json = |value: &Value| count(&value.to_string());
    let messages: u64 = request.messages.iter().map(message).sum();
    let schema = request.response_schema.as_ref().map_or(0, json);
    let tools: u64 = request
        .tools
        .iter()
        .map(|tool| count(&tool.name) + count(&tool.description) + json(&tool.parameters))
        .sum();
    let calls: u64 = calls.iter().map(|call| count(&call.name) + json(&call.arguments)).sum();
    Usage { input_tokens: messages + schema + tools, output_tokens: count(text) + calls, cached_tokens: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_short_runs_and_single_signs() {
        for (text, tokens) in
            [("", 0), ("  ", 0), ("hi", 1), ("hi there", 2), ("refund", 1), ("refunds", 2), ("a, b.", 4)]
                .into_iter()
                .chain([
                    ("internationalisation", 4),
                    ("Grüße!", 2),
                    ("日本", 1),
                    ("{\"a\":1}", 7),
                    (" x ", 1),
                ])
        {
            assert_eq!(count(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn a_text_is_cut_between_tokens() {
        assert_eq!(cut("one two three", 2), ("one two", true));
        assert_eq!(cut("one two three", 3), ("one two three", false));
        assert_eq!(cut("one two three ", 3), ("one two three ", false));
        assert_eq!(cut("abcdefgh", 1), ("abcdef", true));
        assert_eq!(cut("Grüße", 1), ("Grüße", false));
    }
}
