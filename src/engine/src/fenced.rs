//! JSON in a model's answer.

use kernel::json::{self, JsonError, Numbers};
use serde_json::Value;

/// Parses an answer's JSON, without the Markdown fence that models like to add.
///
/// # Errors
/// The answer contains other text, no JSON, or a number that would be rounded.
pub fn json(text: &str) -> Result<Value, JsonError> {
    let trimmed = text.trim();
    let fenced = trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inner = fenced.map_or(trimmed, |inner| inner.trim_start_matches(|c: char| c.is_ascii_alphabetic()));
    json::read(inner, Numbers::Values)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn json_is_found_in_a_code_fence() {
        for text in ["{\"a\": 1}", " ```json\n{\"a\": 1}\n``` ", "```\n{\"a\": 1}```"] {
            assert_eq!(super::json(text).unwrap(), json!({"a": 1}), "{text}");
        }
        assert!(super::json("Here you are: {}").is_err());
    }
}
