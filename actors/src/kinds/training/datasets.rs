//! Dataset cases as rows.

use engine::digest;
use kernel::ThreadId;
use ring::digest::{Context, SHA256};
use serde_json::Value;
use store::{NewCase, StoreError};
use training::{Case, read_cases, read_csv, read_lines};
use uuid::Uuid;
use wire::FieldError;

/// The format of a dataset's cases.
#[derive(Debug)]
pub enum DatasetContent {
    /// A JSON list.
    List(Value),
    /// One JSON object per line.
    Lines(String),
    /// CSV with a header.
    Csv(String),
}

/// The cases in a dataset version.
#[derive(Debug)]
pub struct ReadDataset {
    /// In order.
    pub cases: Vec<NewCase>,
    /// SHA-256 over the ordered case digests.
    pub fingerprint: Vec<u8>,
}

impl ReadDataset {
    /// Reads and checks cases. `at`: pointer to a JSON list in the request.
    ///
    /// # Errors
    /// All problems, at most about a hundred.
    pub fn read(content: DatasetContent, at: &str) -> Result<Self, Vec<FieldError>> {
        let mut problems = Vec::new();
        // A dataset may start without cases.
        if matches!(&content, DatasetContent::List(Value::Array(list)) if list.is_empty()) {
            return Ok(Self::from_rows(Vec::new()));
        }
        let cases = match content {
            DatasetContent::List(list) => read_cases(&list, at, None, &mut problems),
            DatasetContent::Lines(text) => read_lines(&text, &mut problems),
            DatasetContent::Csv(text) => read_csv(&text, &mut problems),
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let cases = as_rows(&cases, at, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self::from_rows(cases))
    }

    /// Wraps cases that are rows already.
    #[must_use]
    pub fn from_rows(cases: Vec<NewCase>) -> Self {
        Self { fingerprint: fingerprint(&cases), cases }
    }
}

/// Processes all cases in a dataset on a blocking thread, which delays no actor: there may be 100,000.
///
/// # Errors
/// [`StoreError`] if the process ends, or if the work panics.
pub(super) async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Corrupt(format!("the cases of a dataset: {error}")))
}

/// Converts cases to rows. A case without a canonical form is a problem. `at`: pointer to their list.
pub(super) fn as_rows(cases: &[Case], at: &str, problems: &mut Vec<FieldError>) -> Vec<NewCase> {
    let mut stored = Vec::with_capacity(cases.len());
    for (place, case) in cases.iter().enumerate() {
        match as_row(case) {
            Ok(row) => stored.push(row),
            Err(message) => {
                let problem = FieldError::new(format!("{at}/{place}"), "canonical", message);
                problems.push(problem.suggest("write such a number as a string"));
            }
        }
    }
    stored
}

/// Converts a case to a row; the error is the reason why it has no canonical form.
pub(super) fn as_row(case: &Case) -> Result<NewCase, String> {
    let content = case.stored();
    let digest = digest(&content).map_err(|error| error.to_string())?;
    let of = |name: &str| case.metadata.get(name).and_then(Value::as_str);
    let run = of("run_id").and_then(|run| Uuid::parse_str(run).ok());
    let thread = of("thread_id").and_then(|thread| ThreadId::parse(thread).ok());
    Ok(NewCase { digest, content: content.to_string(), run, thread })
}

/// SHA-256 over the ordered case digests.
pub(super) fn fingerprint(cases: &[NewCase]) -> Vec<u8> {
    fingerprint_of(cases.iter().map(|case| &case.digest[..]))
}

/// The same from digests.
pub fn fingerprint_of<'d>(digests: impl Iterator<Item = &'d [u8]>) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    digests.for_each(|digest| context.update(digest));
    context.finish().as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_cases_have_the_same_fingerprint_in_every_form() {
        let list =
            json!([{"id": "a", "inputs": {"message": "Hi"}}, {"id": "b", "inputs": {"message": "Bye"}}]);
        let lines = "{\"id\":\"a\",\"inputs\":{\"message\":\"Hi\"}}\n{\"inputs\":{\"message\":\"Bye\"},\"id\":\"b\"}\n";
        let csv = "id,message\na,Hi\nb,Bye\n";
        let read = |content| ReadDataset::read(content, "/cases").unwrap();
        let of_list = read(DatasetContent::List(list));
        for other in [DatasetContent::Lines(lines.into()), DatasetContent::Csv(csv.into())] {
            assert_eq!(read(other).fingerprint, of_list.fingerprint);
        }
        let turned =
            json!([{"id": "b", "inputs": {"message": "Bye"}}, {"id": "a", "inputs": {"message": "Hi"}}]);
        assert_ne!(read(DatasetContent::List(turned)).fingerprint, of_list.fingerprint);
    }

    #[test]
    fn a_copied_case_keeps_the_id_of_its_run() {
        let run = "0198c2f4-0000-7c88-9d21-3f4a5b6c7d8e";
        let list = json!([
            {"inputs": {}, "metadata": {"run_id": run}}, {"inputs": {}, "metadata": {"run_id": "x"}}, {"inputs": {}}
        ]);
        let read = ReadDataset::read(DatasetContent::List(list), "/cases").unwrap();
        let runs: Vec<Option<String>> =
            read.cases.iter().map(|case| case.run.map(|run| run.to_string())).collect();
        assert_eq!(runs, [Some(run.to_owned()), None, None]);
    }

    #[test]
    fn dataset_problems_have_pointers() {
        let problems_of = |content| {
            let problems = ReadDataset::read(content, "/cases").unwrap_err();
            problems
                .into_iter()
                .map(|problem| format!("{} {}", problem.pointer, problem.code))
                .collect::<Vec<_>>()
        };
        assert_eq!(problems_of(DatasetContent::List(json!([{"inputs": {}}, 7]))), ["/cases/1 type"]);
        assert_eq!(
            problems_of(DatasetContent::List(json!([{"inputs": {}}, {}]))),
            ["/cases/1/inputs required"]
        );
        assert_eq!(problems_of(DatasetContent::Lines("{\n".into())), ["/lines/1 json"]);
        assert_eq!(problems_of(DatasetContent::Csv("a,b\n1\n".into())).len(), 1);
    }
}
