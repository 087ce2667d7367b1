//! JSONPath (RFC 9535) within bounds: queries have no built-in step limit, so a path that could run forever is
//! refused.

use std::sync::Arc;

use serde_json::Value;
use serde_json_path::JsonPath;

use crate::NodeError;

/// Maximum path bytes.
const LONGEST: usize = 1_024;
/// Maximum `..` per path: each may visit a deep value once per level above it.
const MOST_DESCENTS: usize = 2;
/// Maximum times that a path may reach the same location, by several selectors in one pair of brackets.
const MOST_WAYS: usize = 100;

/// A parsed path.
pub struct Path {
    path: Arc<JsonPath>,
    /// Whether it leads to at most one location.
    single: bool,
}

impl Path {
    /// Parses a path.
    ///
    /// # Errors
    /// One line if it is not a path, or if its query could run forever.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("is longer than {LONGEST} bytes"));
        }
        let path = JsonPath::parse(text).map_err(|error| format!("is not a JSONPath: {error}"))?;
        let bare = without_names(text);
        if bare.matches("..").count() > MOST_DESCENTS {
            return Err(format!("has more than {MOST_DESCENTS} '..'"));
        }
        if ways(&bare) > MOST_WAYS {
            return Err("has too many consecutive selectors in brackets".to_owned());
        }
        if begins_wide_again(&bare) {
            return Err("has a '$' path inside a filter that selects more than one value".to_owned());
        }
        let single = !is_wide(&bare);
        Ok(Self { path: Arc::new(path), single })
    }

    /// Returns the first match.
    #[must_use]
    pub fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.path.query(value).first()
    }

    /// Returns the single location's value or null, or else the list of all matches.
    pub(crate) async fn query(&self, value: Value) -> Result<Value, NodeError> {
        if self.single {
            return Ok(self.path.query(&value).first().cloned().unwrap_or_default());
        }
        let path = Arc::clone(&self.path);
        // A filter over a large value is slow, so it runs outside the actors.
        let found = tokio::task::spawn_blocking(move || {
            Value::Array(path.query(&value).iter().map(|found| (*found).clone()).collect())
        });
        found.await.map_err(|_| NodeError::new(wire::ErrorCode::Internal, "a path's query panicked"))
    }
}

/// Removes quoted names from a path.
fn without_names(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match quote {
            Some(_) if letter == '\\' => {
                letters.next();
            }
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None => bare.push(letter),
        }
    }
    bare
}

fn is_wide(bare: &str) -> bool {
    ["*", "..", "?", ":", ","].iter().any(|many| bare.contains(many))
}

/// Multiplies the selector counts of all brackets.
fn ways(bare: &str) -> usize {
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut ways = 1_usize;
    for letter in bare.chars() {
        match letter {
            '[' | '(' => open.push((letter, 1)),
            ',' => {
                if let Some((_, selectors)) = open.last_mut() {
                    *selectors += 1;
                }
            }
            ']' | ')' => {
                if let Some(('[', selectors)) = open.pop() {
                    ways = ways.saturating_mul(selectors);
                }
            }
            _ => {}
        }
    }
    ways
}

/// Whether a filter starts at the root again and matches several locations: for each entry, all the others.
fn begins_wide_again(bare: &str) -> bool {
    bare.match_indices('$').skip(1).any(|(at, _)| {
        let rest = bare.get(at..).unwrap_or_default();
        let mut depth = 0_i32;
        let end = rest.find(|letter| {
            match letter {
                '[' | '(' => depth += 1,
                ']' | ')' => depth -= 1,
                _ => {}
            }
            depth < 0
        });
        is_wide(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_unbounded_cost_are_rejected() {
        for good in [
            "$",
            "$..a..b",
            "$['..']['..']['..'].a",
            "$.a[?@.b == $.c].d",
            "$[0,1,2,3,4,5,6,7,8,9]['a','b','c']",
            "$[?search(@.a, 'x,y,z')]",
        ] {
            assert_eq!(Path::read(good).err(), None, "{good}");
        }
        for evil in [
            "$..*..*..*".to_owned(),
            format!("${}", "[0,0]".repeat(30)),
            "$[?$..a]".to_owned(),
            "$[?$[*]]".to_owned(),
            "$[?@.a && $.b[?@.c]]".to_owned(),
            format!("$.{}", "a".repeat(LONGEST)),
        ] {
            assert!(Path::read(&evil).is_err(), "{evil:.60}");
        }
    }
}
