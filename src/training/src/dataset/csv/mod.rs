//! Datasets as CSV (RFC 4180): the first record names the columns, each other record is a case.

mod columns;
mod records;

use serde_json::{Map, Value};
use wire::FieldError;

use self::columns::{Column, ColumnTarget, JSON, read_columns};
use self::records::{CsvRecord, Records};
use super::{Cases, MAX_PROBLEMS};
use crate::case::Case;

/// Members of `metadata` that are texts or numbers; the others with a meaning are lists and objects.
const SIMPLE: [&str; 3] = ["split", "weight", "group"];

/// Reads one case per record after the first one. Problems contain the line number at which their record begins, and
/// the column name.
///
/// The columns are `id`, `expected_output`, `split`, `metadata.<name>`, and inputs: `inputs.<name>` and every other
/// name. Cells in a column `<name>:json` are JSON, all others are texts; `metadata.weight` becomes a number. An empty
/// cell is an empty text in an input column without `:json`; in all other columns the value is absent.
pub fn read_csv(text: &str, problems: &mut Vec<FieldError>) -> Vec<Case> {
    let mut cases = Cases::new(problems);
    let mut records = Records::new(text);
    let columns = match records.next() {
        None => Vec::new(),
        Some(Ok(header)) => {
            if let Some(problem) = other_delimiter(&header) {
                problems.push(problem);
                return Vec::new();
            }
            let before = problems.len();
            let columns = read_columns(&header, problems);
            if columns.is_empty() && problems.len() > before {
                return Vec::new();
            }
            columns
        }
        Some(Err(problem)) => {
            problems.push(problem);
            return Vec::new();
        }
    };
    for record in records {
        if !cases.reads_on(problems) {
            break;
        }
        match record {
            Ok(record) => {
                if !add(&mut cases, &columns, record, problems) {
                    break;
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    cases.finish("", problems)
}

/// The problem if a header uses a delimiter other than the comma.
fn other_delimiter(header: &CsvRecord) -> Option<FieldError> {
    let only = header.cells.get(0).filter(|_| header.cells.len() == 1)?;
    let (delimiter, name) =
        [(';', "semicolons"), ('\t', "tabs")].into_iter().find(|(it, _)| only.contains(*it))?;
    let columns = only.split(delimiter).count();
    let message = format!("is one column with {name} in it; columns are separated by commas");
    let problem = FieldError::new(&header.pointer, "delimiter", message);
    Some(
        problem
            .suggest(format!("save the file with commas instead of {name}: it would have {columns} columns")),
    )
}

/// Returns false when reading must end.
fn add(
    cases: &mut Cases,
    columns: &[Option<Column>],
    record: CsvRecord,
    problems: &mut Vec<FieldError>,
) -> bool {
    let before = problems.len();
    let Some(entry) = entry(columns, &record, problems) else { return true };
    let reads_more = cases.add(&entry, record.pointer.clone(), problems);
    for problem in problems.iter_mut().skip(before) {
        let member = problem.pointer.strip_prefix(&format!("{}/metadata/", record.pointer));
        let is_named = |column: &&Column| {
            column.part == ColumnTarget::Metadata && Some(column.member.as_str()) == member
        };
        if let Some(column) = columns.iter().flatten().find(is_named) {
            problem.pointer = column.at(&record.pointer);
            if !column.is_json && !SIMPLE.contains(&column.member.as_str()) {
                problem.suggestion = Some(format!("{}{JSON}", column.name));
            }
        }
    }
    reads_more
}

/// A record's case, as JSON.
fn entry(columns: &[Option<Column>], record: &CsvRecord, problems: &mut Vec<FieldError>) -> Option<Value> {
    let before = problems.len();
    if record.cells.len() != columns.len() {
        let message = format!("has {} cells, the header has {}", record.cells.len(), columns.len());
        problems.push(FieldError::new(&record.pointer, "cells", message));
        return None;
    }
    let (mut case, mut inputs, mut metadata) = (Map::new(), Map::new(), Map::new());
    for (column, cell) in columns.iter().zip(&record.cells) {
        let Some(column) = column else { continue };
        let value = match column.value(cell) {
            Ok(value) => value,
            Err(error) => {
                let message = format!("is not JSON: {error}");
                problems.push(FieldError::new(column.at(&record.pointer), "json", message));
                if problems.len() >= MAX_PROBLEMS {
                    return None;
                }
                None
            }
        };
        let members = match column.part {
            ColumnTarget::Case => &mut case,
            ColumnTarget::Inputs => &mut inputs,
            ColumnTarget::Metadata => &mut metadata,
        };
        members.extend(value.map(|value| (column.member.clone(), value)));
    }
    case.insert("inputs".to_owned(), Value::Object(inputs));
    case.insert("metadata".to_owned(), Value::Object(metadata));
    (problems.len() == before).then_some(Value::Object(case))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{MAX_CASES, named};
    use super::*;

    fn read(text: &str) -> (Vec<Case>, Vec<String>) {
        let mut problems = Vec::new();
        let cases = read_csv(text, &mut problems);
        (cases, named(&problems))
    }

    /// Id, inputs, expected output and metadata for each case in a valid text.
    fn good(text: &str) -> Vec<Value> {
        let (cases, problems) = read(text);
        assert_eq!(problems, Vec::<String>::new(), "{text}");
        let shown =
            |case: Case| json!([case.id, case.inputs, case.expected_output, Value::Object(case.metadata)]);
        cases.into_iter().map(shown).collect()
    }

    #[test]
    fn columns_are_parts_of_a_case() {
        let text = "id,message,expected_output,split,metadata.group,metadata.weight,inputs.id\n\
                    a,Hi,Hello,val,g,0.5,7\n";
        let metadata = json!({"split": "val", "group": "g", "weight": 0.5});
        assert_eq!(good(text), [json!(["a", {"message": "Hi", "id": "7"}, "Hello", metadata])]);
    }

    #[test]
    fn json_is_read_in_columns_marked_by_the_header() {
        let text = "n,n2:json,expected_output:json,metadata.answers:json,metadata.weight:json\n\
                    1,1,\"{\"\"a\"\": [null]}\",\"{\"\"ok\"\": true}\",2\n";
        let metadata = json!({"answers": {"ok": true}, "weight": 2});
        assert_eq!(good(text), [json!(["0", {"n": "1", "n2": 1}, {"a": [null]}, metadata])]);
    }

    #[test]
    fn other_delimiters_are_named() {
        for text in
            ["message;expected_output\nHi;Hello\n", "message\texpected_output\nHi\tHello\n", "\"a;b\"\n1\n"]
        {
            assert_eq!(read(text), (Vec::new(), vec!["/lines/1 delimiter".to_owned()]), "{text}");
        }
        assert_eq!(good("message,a;b\nHi,1\n").len(), 1, "one of several columns may be named so");
    }

    #[test]
    fn empty_cells_are_empty_inputs_and_absent_values() {
        let text = "id,message,n:json,expected_output,split,metadata.weight\n,,,,,\n";
        assert_eq!(good(text), [json!(["0", {"message": ""}, null, {}])]);
    }

    #[test]
    fn cells_may_be_quoted() {
        let text = "\u{feff}\"id\", say \r\na,\"one, \"\"two\"\"\r\nthree\"\r\n\r\nb, x \r\n";
        let says = |text: &str| json!({"say": text});
        assert_eq!(
            good(text),
            [json!(["a", says("one, \"two\"\r\nthree"), null, {}]), json!(["b", says(" x "), null, {}])]
        );
        assert_eq!(good("say\nx"), good("say\r\nx\r\n"));
    }

    #[test]
    fn problems_have_the_line_of_their_record() {
        for (text, expected) in [
            ("", &[" dataset_empty"][..]),
            ("id,message\n", &[" dataset_empty"]),
            (
                "a,a,inputs.a,a:json,split,metadata.split,id,inputs.id\n",
                &[
                    "/lines/1/a duplicate",
                    "/lines/1/inputs.a duplicate",
                    "/lines/1/a duplicate",
                    "/lines/1/metadata.split duplicate",
                ],
            ),
            (
                "\n\na,,inputs.,:json\n1,2,3\n",
                &["/lines/3/2 required", "/lines/3/3 required", "/lines/3/4 required", "/lines/4 cells"],
            ),
            ("a,b\r\n\"1\r\n2\",3\r\n4\r\n\r\n5,6,7\r\n", &["/lines/4 cells", "/lines/6 cells"]),
            (
                "a:json,b/c:json\n1,2\n{,\n{,}\n",
                &["/lines/3/a json", "/lines/4/a json", "/lines/4/b~1c json"],
            ),
            (
                "id,split,metadata.weight,metadata.group:json\nx,dev,heavy,1\ny,,-1,\nx,,,\n",
                &[
                    "/lines/2/split type",
                    "/lines/2/metadata.weight type",
                    "/lines/2/metadata.group type",
                    "/lines/3/metadata.weight type",
                ],
            ),
            ("id\nx\ny\nx\n", &["/lines/4/id duplicate"]),
            ("a,b\n1,\"2\n3,4\n", &["/lines/2 quote"]),
            ("a,b\n1,2\" 3\n4,5,6\n", &["/lines/2 quote", "/lines/3 cells"]),
            ("a,\"b\n1,2\n", &["/lines/1 quote"]),
        ] {
            assert_eq!(read(text).1, expected, "{text}");
        }
    }

    #[test]
    fn a_json_column_is_suggested() {
        let mut problems = Vec::new();
        read_csv("metadata.mocks,metadata.split\n{},dev\n", &mut problems);
        let suggested: Vec<Option<&str>> =
            problems.iter().map(|problem| problem.suggestion.as_deref()).collect();
        assert_eq!(suggested, [None, Some("metadata.mocks:json")]);
    }

    #[test]
    fn reading_ends_after_many_problems_or_cases() {
        let (cases, problems) = read(&format!("a\n{}", "1,2\n".repeat(1_000)));
        assert_eq!((cases.len(), problems.len()), (0, MAX_PROBLEMS));
        assert_eq!(read(&format!("{}\n1\n", "a,".repeat(900))).1.len(), MAX_PROBLEMS);
        assert_eq!(read(&format!("{}\n1\n", "a,".repeat(1_001))).1, ["/lines/1 size"]);
        let long = "x".repeat(1 << 20);
        assert_eq!(read(&format!("a\n1\n{long}\n2\n")).1, ["/lines/3 size"]);
        let (cases, problems) = read(&format!("a\n{}", "1\n".repeat(MAX_CASES + 5)));
        assert_eq!((cases.len(), problems), (MAX_CASES, vec![format!("/lines/{} size", MAX_CASES + 2)]));
    }
}
