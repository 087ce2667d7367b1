//! Mocks: node results that replace executions in a case.

use engine::ports::Rehearsal;
use serde_json::{Map, Value};

/// The mock member that lists one result per visit.
pub(crate) const VISITS: &str = "$visits";

/// Node results by name; the case takes precedence over the request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mocks<'a> {
    /// `metadata.mocks` in the case.
    pub case: Option<&'a Map<String, Value>>,
    /// `mocks` in the request.
    pub request: Option<&'a Map<String, Value>>,
    /// Whether nodes without a result may send data: `effects: "run"`.
    pub may_send: bool,
}

impl Rehearsal for Mocks<'_> {
    fn mock(&self, node: &str, visit: u32) -> Option<Value> {
        let names = names_of(node);
        let maps = [self.case, self.request].into_iter().flatten();
        let found = maps.flat_map(|mocks| names.iter().filter_map(|name| mocks.get(name.as_str()))).next()?;
        match found.get(VISITS).and_then(Value::as_array) {
            Some(results) => {
                results.get(usize::try_from(visit_of(node, visit)).ok()?.checked_sub(1)?).cloned()
            }
            None => Some(found.clone()),
        }
    }

    fn may_send(&self) -> bool {
        self.may_send
    }
}

/// The visit number to mock; on a nested node's first visit, the innermost repeated node's number.
pub(crate) fn visit_of(path: &str, visit: u32) -> u32 {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let outer = || path.rsplit_once('#').and_then(|(_, rest)| digits(rest).parse().ok());
    if visit > 1 { visit } else { outer().unwrap_or(visit) }
}

/// A journal node's names in a mock, most exact first: `each[3]` and `each`, `agent[0].tool[1]` and
/// `agent.tool`. Visit and attempt marks (`#2`, `~2`) are not part of a name.
pub(crate) fn names_of(path: &str) -> Vec<String> {
    let exact: Vec<String> = path.split('/').map(segment).collect();
    let exact = exact.join("/");
    let every = without_numbers(&exact);
    let mut names = vec![full_name(path), exact, every];
    names.dedup();
    names
}

/// A journal node's name with all its indexes.
pub(crate) fn full_name(path: &str) -> String {
    without_marks(path)
}

/// A path segment's name. It omits the numbers of an agent's step and its tool calls.
fn segment(text: &str) -> String {
    let text = without_marks(text);
    if text.contains("].") { without_numbers(&text) } else { text }
}

fn without_marks(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_mark = false;
    for letter in text.chars() {
        is_mark = matches!(letter, '#' | '~') || is_mark && letter.is_ascii_digit();
        if !is_mark {
            kept.push(letter);
        }
    }
    kept
}

/// Removes each `[…]`.
fn without_numbers(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_inside = false;
    for letter in text.chars() {
        match letter {
            '[' => is_inside = true,
            ']' => is_inside = false,
            letter if !is_inside => kept.push(letter),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_journal_node_matches_several_mock_names() {
        for (path, names) in [
            ("send", &["send"][..]),
            ("outer/inner", &["outer/inner"]),
            ("outer#2~3/inner", &["outer/inner"]),
            ("each[3]", &["each[3]", "each"]),
            ("each~2[3]", &["each[3]", "each"]),
            ("each[3]/send", &["each[3]/send", "each/send"]),
            ("help[0].weather[1]", &["help[0].weather[1]", "help.weather"]),
            ("each[0][1].weather[2]", &["each[0][1].weather[2]", "each.weather"]),
            ("help[0].many[1][3][0].put[0]", &["help[0].many[1][3][0].put[0]", "help.many.put"]),
            (
                "outer/help#2[4].weather[1]/send",
                &["outer/help[4].weather[1]/send", "outer/help.weather/send"],
            ),
        ] {
            assert_eq!(names_of(path), names, "{path}");
        }
    }

    #[test]
    fn the_case_has_precedence_and_the_exact_name_too() {
        let (case, request) = (
            map(json!({"each": "case", "once": {"$visits": [1, null]}})),
            map(json!({"each[1]": "request", "each": "all", "other": 2})),
        );
        let mocks = Mocks { case: Some(&case), request: Some(&request), may_send: false };
        assert_eq!(mocks.mock("each[1]", 1), Some(json!("case")));
        let mocks = Mocks { case: None, ..mocks };
        assert_eq!(mocks.mock("each[1]", 1), Some(json!("request")));
        assert_eq!(mocks.mock("each[2]", 1), Some(json!("all")));
        assert_eq!((mocks.mock("other", 7), mocks.mock("nothing", 1)), (Some(json!(2)), None));
    }

    #[test]
    fn each_visit_may_have_a_separate_result() {
        let case = map(json!({"once": {"$visits": [1, null]}}));
        let mocks = Mocks { case: Some(&case), request: None, may_send: false };
        assert_eq!((mocks.mock("once", 1), mocks.mock("once", 2)), (Some(json!(1)), Some(Value::Null)));
        // A visit without a result is executed, unless the node would send data.
        assert_eq!(mocks.mock("once", 3), None);
        assert_eq!(
            (visit_of("outer#2/once", 1), visit_of("outer#2/once", 3), visit_of("once", 1)),
            (2, 3, 1)
        );
    }
}
