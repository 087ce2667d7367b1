//! Datasets as JSON Lines.

use kernel::json::{self, Numbers};
use serde_json::Value;
use wire::FieldError;

use super::Cases;
use crate::case::{Case, LARGEST, too_large};

/// Reads one case per non-blank line. Problems contain the line number.
pub fn read_lines(text: &str, problems: &mut Vec<FieldError>) -> Vec<Case> {
    let mut cases = Cases::new(problems);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let pointer = format!("/lines/{}", number + 1);
        // Checked before parsing: a parsed line takes many times its bytes.
        if line.len() > LARGEST {
            problems.push(too_large(pointer));
            break;
        }
        match json::read::<Value>(line, Numbers::Values) {
            Ok(entry) => {
                if !cases.add(&entry, pointer, problems) {
                    break;
                }
            }
            Err(error) => {
                problems.push(FieldError::new(pointer, "json", format!("cannot be read as JSON: {error}")))
            }
        }
        if !cases.reads_on(problems) {
            break;
        }
    }
    cases.finish("", problems)
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_PROBLEMS, named};
    use super::*;

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
        assert_eq!(problems.len(), MAX_PROBLEMS);
        problems.clear();
        read_lines(&format!("[{}]\n", "0,".repeat(1 << 20)), &mut problems);
        assert_eq!(named(&problems), ["/lines/1 size"]);
        problems.clear();
        read_lines("\n", &mut problems);
        assert_eq!(named(&problems), [" dataset_empty"]);
    }
}
