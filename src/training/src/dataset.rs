//! The cases of a dataset: a list in a request, or lines of JSON.

use std::collections::BTreeMap;

use serde_json::Value;
use wire::FieldError;

use crate::case::{Case, read_case};

/// Most cases.
const MOST: usize = 100_000;
/// Problems after which reading ends: a wrong file has one in each line.
const TOLD: usize = 100;

/// Reads a list of cases, which stands at `pointer`; every problem is noted. `most`: the first ones alone.
pub fn read_cases(
    list: &Value,
    pointer: &str,
    most: Option<usize>,
    problems: &mut Vec<FieldError>,
) -> Vec<Case> {
    let Some(entries) = list.as_array() else {
        problems.push(FieldError::new(pointer, "type", "must be a list of cases"));
        return Vec::new();
    };
    let mut cases = Cases::default();
    for (place, entry) in entries.iter().take(most.unwrap_or(usize::MAX)).enumerate() {
        if !cases.add(entry, format!("{pointer}/{place}"), problems) {
            break;
        }
    }
    cases.finish(pointer, problems)
}

/// Reads one case from each line that is not blank. Problems have the number of their line.
pub fn read_lines(text: &str, problems: &mut Vec<FieldError>) -> Vec<Case> {
    let mut cases = Cases::default();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let pointer = format!("/lines/{}", number + 1);
        match serde_json::from_str::<Value>(line) {
            Ok(entry) => {
                if !cases.add(&entry, pointer, problems) {
                    break;
                }
            }
            Err(error) => problems.push(FieldError::new(pointer, "json", format!("is not JSON: {error}"))),
        }
        if problems.len() >= TOLD {
            break;
        }
    }
    cases.finish("", problems)
}

#[derive(Default)]
struct Cases {
    read: Vec<Case>,
    /// Entries so far, those with problems included.
    entries: usize,
    /// Where each id stands.
    ids: BTreeMap<String, String>,
}

impl Cases {
    /// Returns false if no more are read.
    fn add(&mut self, entry: &Value, pointer: String, problems: &mut Vec<FieldError>) -> bool {
        if self.entries >= MOST {
            problems.push(FieldError::new(pointer, "size", format!("a dataset has at most {MOST} cases")));
            return false;
        }
        let index = u32::try_from(self.entries).unwrap_or(u32::MAX);
        self.entries += 1;
        if let Some(case) = read_case(entry, index, &pointer, problems) {
            match self.ids.get(&case.id) {
                Some(first) => {
                    let message = format!("duplicate '{}', the id of {first}", case.id);
                    problems.push(FieldError::new(format!("{pointer}/id"), "duplicate", message));
                }
                None => {
                    self.ids.insert(case.id.clone(), pointer);
                    self.read.push(case);
                }
            }
        }
        problems.len() < TOLD
    }

    fn finish(self, pointer: &str, problems: &mut Vec<FieldError>) -> Vec<Case> {
        if self.entries == 0 && problems.is_empty() {
            problems.push(FieldError::new(pointer, "dataset_empty", "needs at least one case"));
        }
        self.read
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(problems: &[FieldError]) -> Vec<String> {
        problems.iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect()
    }

    #[test]
    fn cases_have_their_places_in_the_whole_list() {
        let mut problems = Vec::new();
        let list = json!([{"inputs": {"n": 1}}, {"id": "b", "inputs": {}}, {"inputs": {}}]);
        let cases = read_cases(&list, "/cases", None, &mut problems);
        let read: Vec<(&str, u32)> = cases.iter().map(|case| (case.id.as_str(), case.index)).collect();
        assert_eq!((read, problems.len()), (vec![("0", 0), ("b", 1), ("2", 2)], 0));
        assert_eq!(read_cases(&list, "/cases", Some(1), &mut problems).len(), 1);
    }

    #[test]
    fn bad_lists_are_named() {
        for (list, expected) in [
            (json!({}), &["/cases type"][..]),
            (json!([]), &["/cases dataset_empty"]),
            (
                json!([{"inputs": {}}, 7, {"id": "0", "inputs": {}}]),
                &["/cases/1 type", "/cases/2/id duplicate"],
            ),
        ] {
            let mut problems = Vec::new();
            read_cases(&list, "/cases", None, &mut problems);
            assert_eq!(named(&problems), expected, "{list}");
        }
    }

    #[test]
    fn each_line_is_a_case() {
        let mut problems = Vec::new();
        let cases =
            read_lines("{\"inputs\": {}}\n\n  \r\n{\"id\": \"x\", \"inputs\": {}}\r\n", &mut problems);
        assert_eq!((cases.len(), cases[1].index, problems.len()), (2, 1, 0));
        read_lines("{\"inputs\": {}}\n{\n{\"inputs\": 1}", &mut problems);
        assert_eq!(named(&problems), ["/lines/2 json", "/lines/3/inputs type"]);
        problems.clear();
        assert!(read_lines(&"x\n".repeat(1_000), &mut problems).is_empty());
        assert_eq!(problems.len(), TOLD);
        problems.clear();
        read_lines("\n", &mut problems);
        assert_eq!(named(&problems), [" dataset_empty"]);
    }
}
