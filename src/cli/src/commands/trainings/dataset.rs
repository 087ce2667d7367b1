//! `--dataset`: a file with cases.

use std::ffi::OsStr;
use std::path::Path;

use client::ClientError;
use serde_json::{Map, Value};
use training::{Case, read_cases, read_csv, read_lines};

use crate::commands::workflow::file::TextFile;
use crate::complaint::{Complaint, Places, SourceLocation};
use crate::options::ServiceSession;
use crate::output::CommandError;

/// The format of a dataset file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DatasetForm {
    /// A JSON list, or an object with the list `cases`.
    List,
    /// A JSON object on each line.
    Lines,
    /// CSV with a header.
    Csv,
}

impl DatasetForm {
    /// The format by file extension.
    fn from_path(path: &Path) -> Option<Self> {
        let ending = path.extension().and_then(OsStr::to_str)?.to_ascii_lowercase();
        match ending.as_str() {
            "json" => Some(Self::List),
            "jsonl" | "ndjson" => Some(Self::Lines),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// The dataset of a request.
#[derive(Debug, PartialEq)]
pub(super) enum GivenDataset {
    /// Cases within the request.
    Cases(Vec<Value>),
    /// A stored dataset with this name or id.
    Stored(String),
}

/// Completes the prefix of a stored dataset's id, as in paths. Leaves names and unknown datasets to the request.
pub(super) async fn completed(
    given: Option<GivenDataset>,
    session: &ServiceSession,
    workflow: &str,
) -> Result<Option<GivenDataset>, CommandError> {
    let Some(GivenDataset::Stored(named)) = &given else { return Ok(given) };
    match session.client.dataset(workflow, named).await {
        Ok(found) if found.id.starts_with(named.as_str()) => Ok(Some(GivenDataset::Stored(found.id))),
        Err(error @ ClientError::Usage(_)) => Err(session.failed(error)),
        _ => Ok(given),
    }
}

/// Whether `--dataset` names a file rather than a stored dataset.
pub(super) fn is_file(path: &Path) -> bool {
    DatasetForm::from_path(path).is_some() || path.components().count() > 1 || path.exists()
}

/// A file with cases.
pub(crate) struct DatasetFile {
    text: TextFile,
    form: DatasetForm,
    /// The list's JSON pointer within the file.
    list_at: &'static str,
    cases: Vec<Value>,
}

impl DatasetFile {
    /// Reads a file; its extension determines the format.
    pub(crate) fn read(path: &Path) -> Result<Self, CommandError> {
        let form = DatasetForm::from_path(path).ok_or_else(|| {
            CommandError::usage(format!(
                "{} is not a dataset file; use a name that ends with .json, .jsonl, .ndjson or .csv",
                path.display()
            ))
        })?;
        Self::parse(TextFile::read(path)?, form)
    }

    fn parse(text: TextFile, form: DatasetForm) -> Result<Self, CommandError> {
        let mut problems = Vec::new();
        let (cases, list_at) = match form {
            DatasetForm::List => {
                let content = text.json()?;
                let (list, at) = content.get("cases").map_or((&content, ""), |cases| (cases, "/cases"));
                (read_cases(list, at, None, &mut problems), at)
            }
            DatasetForm::Lines => (read_lines(text.text(), &mut problems), ""),
            DatasetForm::Csv => (read_csv(text.text(), &mut problems), ""),
        };
        let file = Self { text, form, list_at, cases: cases.into_iter().map(as_value).collect() };
        if problems.is_empty() {
            return Ok(file);
        }
        let message = match problems.len() {
            1 => "The dataset is not valid: 1 problem.".to_owned(),
            count => format!("The dataset is not valid: {count} problems."),
        };
        Err(Complaint::failed(message)
            .coded("client.dataset_invalid")
            .problems(problems)
            .located(&file)
            .into())
    }

    /// Takes the cases for a request and leaves the file without cases.
    pub(crate) fn take_cases(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.cases)
    }

    /// Locates a case, or a part of it, by its pointer below a request's list. CSV records may span several lines, so
    /// their locations are unknown.
    pub(super) fn place_of_case(&self, pointer: &str) -> Option<SourceLocation> {
        match self.form {
            DatasetForm::List => Some(self.text.place(&format!("{}{pointer}", self.list_at))),
            DatasetForm::Lines => {
                let index = pointer.split('/').nth(1)?.parse().ok()?;
                let lines = self.text.text().lines().enumerate();
                let (before, _) = lines.filter(|(_, line)| !line.trim().is_empty()).nth(index)?;
                Some(self.line(before.saturating_add(1)))
            }
            DatasetForm::Csv => None,
        }
    }

    fn line(&self, line: usize) -> SourceLocation {
        SourceLocation { file: self.text.name().to_owned(), line }
    }
}

/// Locates problems found by the CLI: by JSON pointer, or by `/lines/<number>` for other formats.
impl Places for DatasetFile {
    fn place(&self, pointer: &str) -> Option<SourceLocation> {
        if self.form == DatasetForm::List {
            return Some(self.text.place(pointer));
        }
        let number = pointer.strip_prefix("/lines/")?.split('/').next()?;
        Some(self.line(number.parse().ok()?))
    }
}

/// Converts a case to its request format.
fn as_value(case: Case) -> Value {
    let mut members = Map::from_iter([
        ("id".to_owned(), Value::String(case.id)),
        ("inputs".to_owned(), Value::Object(case.inputs)),
    ]);
    if !case.expected_output.is_null() {
        members.insert("expected_output".to_owned(), case.expected_output);
    }
    if !case.metadata.is_empty() {
        members.insert("metadata".to_owned(), Value::Object(case.metadata));
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(form: DatasetForm, text: &str) -> Result<DatasetFile, CommandError> {
        DatasetFile::parse(TextFile::new("cases", text), form)
    }

    fn cases(form: DatasetForm, text: &str) -> Vec<Value> {
        parse(form, text).unwrap().take_cases()
    }

    #[test]
    fn the_file_extension_selects_the_format() {
        for (name, form) in [
            ("a.json", Some(DatasetForm::List)),
            ("a.b.JSONL", Some(DatasetForm::Lines)),
            ("a.ndjson", Some(DatasetForm::Lines)),
            ("./x/a.csv", Some(DatasetForm::Csv)),
            ("a.txt", None),
            ("-", None),
        ] {
            assert_eq!(DatasetForm::from_path(Path::new(name)), form, "{name}");
        }
    }

    #[test]
    fn every_format_has_the_same_cases() {
        let expected = [
            json!({"id": "a", "inputs": {"message": "Hi"}, "expected_output": "Hello"}),
            json!({"id": "1", "inputs": {"message": "Bye"}, "metadata": {"split": "val"}}),
        ];
        let list = r#"[{"id": "a", "inputs": {"message": "Hi"}, "expected_output": "Hello"},
            {"inputs": {"message": "Bye"}, "metadata": {"split": "val"}}]"#;
        assert_eq!(cases(DatasetForm::List, list), expected);
        assert_eq!(cases(DatasetForm::List, &format!(r#"{{"name": "x", "cases": {list}}}"#)), expected);
        let lines = "{\"id\": \"a\", \"inputs\": {\"message\": \"Hi\"}, \"expected_output\": \"Hello\"}\n\n\
                     {\"inputs\": {\"message\": \"Bye\"}, \"metadata\": {\"split\": \"val\"}}\n";
        assert_eq!(cases(DatasetForm::Lines, lines), expected);
        assert_eq!(
            cases(DatasetForm::Csv, "id,message,expected_output,split\na,Hi,Hello,\n,Bye,,val\n"),
            expected
        );
    }

    #[test]
    fn problems_have_line_numbers() {
        let problems = |form, text: &str| match parse(form, text) {
            Err(CommandError::Told(complaint)) => complaint.for_programs(),
            _ => String::new(),
        };
        let lines = problems(DatasetForm::Lines, "{\"inputs\": {}}\n{\"inputs\": 1}\n");
        assert!(lines.contains(r#""file":"cases","line":2"#), "{lines}");
        let list = problems(DatasetForm::List, "{\"cases\": [\n{\"inputs\": {}},\n7]}");
        assert!(list.contains(r#""line":3"#), "{list}");
        let csv = problems(DatasetForm::Csv, "a,b\n1,2\n3\n");
        assert!(csv.contains(r#""line":3"#), "{csv}");
        assert!(problems(DatasetForm::Lines, "").contains("dataset_empty"));
        assert!(problems(DatasetForm::List, "{").contains("cases:1:"));
    }

    #[test]
    fn a_case_in_a_request_has_its_line() {
        let line = |form, text: &str, pointer: &str| {
            parse(form, text).unwrap().place_of_case(pointer).map(|place| place.line)
        };
        let lines = "\n{\"inputs\": {}}\n\n{\"inputs\": {\"a\": 1}}\n";
        assert_eq!(line(DatasetForm::Lines, lines, "/1/metadata"), Some(4));
        assert_eq!(line(DatasetForm::Lines, lines, "/2"), None);
        assert_eq!(line(DatasetForm::List, "{\"cases\":\n[\n{\"inputs\": {}}]}", "/0/inputs"), Some(3));
        assert_eq!(line(DatasetForm::Csv, "a\n1\n", "/0"), None);
    }
}
