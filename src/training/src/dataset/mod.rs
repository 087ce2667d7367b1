//! Dataset cases: a list in a request, JSON Lines, or CSV.

mod csv;
mod lines;
mod weakness;

use std::collections::BTreeMap;

use serde_json::Value;
use wire::FieldError;

use crate::case::{Case, read_case};

pub use self::csv::read_csv;
pub use self::lines::read_lines;
pub use self::weakness::weaknesses;

/// Maximum cases per dataset.
const MAX_CASES: usize = 100_000;
/// Problems after which reading ends: a wrong file has one in each line.
const MAX_PROBLEMS: usize = 100;

/// Reads a list of cases; `pointer` is the place of the list. Reports every problem. `most`: maximum cases to read.
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
    let mut cases = Cases::new(problems);
    for (place, entry) in entries.iter().take(most.unwrap_or(usize::MAX)).enumerate() {
        if !cases.add(entry, format!("{pointer}/{place}"), problems) {
            break;
        }
    }
    cases.finish(pointer, problems)
}

struct Cases {
    /// Problems reported before.
    noted: usize,
    read: Vec<Case>,
    /// Entries so far, including those with problems.
    entries: usize,
    /// Pointers by id.
    ids: BTreeMap<String, String>,
}

impl Cases {
    fn new(problems: &[FieldError]) -> Self {
        Self { noted: problems.len(), read: Vec::new(), entries: 0, ids: BTreeMap::new() }
    }

    /// Whether to continue reading after these problems.
    fn reads_on(&self, problems: &[FieldError]) -> bool {
        problems.len() < self.noted + MAX_PROBLEMS
    }

    /// Returns false when reading must end.
    fn add(&mut self, entry: &Value, pointer: String, problems: &mut Vec<FieldError>) -> bool {
        if self.entries >= MAX_CASES {
            problems.push(FieldError::new(
                pointer,
                "size",
                format!("a dataset has at most {MAX_CASES} cases"),
            ));
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
        self.reads_on(problems)
    }

    fn finish(self, pointer: &str, problems: &mut Vec<FieldError>) -> Vec<Case> {
        if self.entries == 0 && problems.len() == self.noted {
            problems.push(FieldError::new(pointer, "dataset_empty", "needs at least one case"));
        }
        self.read
    }
}

/// `pointer code` for each problem.
#[cfg(test)]
fn named(problems: &[FieldError]) -> Vec<String> {
    problems.iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cases_have_their_index_in_the_whole_list() {
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
}
