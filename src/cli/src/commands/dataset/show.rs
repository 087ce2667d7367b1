//! `callboard dataset show`.

use clap::Args;
use client::Part;
use serde_json::{Value, json};
use wire::DatasetCase;

use super::{DatasetArguments, print};
use crate::options::ServiceSession;
use crate::output::{CommandError, Output, pretty, say};
use crate::table;

/// Maximum characters per cell.
const CELL: usize = 48;

#[derive(Debug, Args)]
pub(crate) struct ShowDataset {
    #[command(flatten)]
    pub(super) named: DatasetArguments,
    /// Version whose cases are shown (default: the latest)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    dataset_version: Option<u32>,
    /// Maximum number of cases to print
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
}

impl ShowDataset {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let DatasetArguments { workflow, dataset, .. } = &self.named;
        let failed = |error| CommandError::from(session.complaint(error).about(dataset));
        let record = session.client.dataset(workflow, dataset).await.map_err(failed)?;
        let part = Part { limit: Some(self.limit), cursor: None };
        let cases = session
            .client
            .dataset_cases(workflow, dataset, self.dataset_version, &part)
            .await
            .map_err(failed)?;
        if session.output == Output::Json {
            return say(pretty(&json!({"dataset": record, "cases": cases.data}))?);
        }
        print(&record)?;
        if cases.data.is_empty() {
            return Ok(());
        }
        say("")?;
        table::print(["ID", "SPLIT", "INPUTS", "EXPECTED"], cases.data.iter().map(row).collect())?;
        if cases.next_cursor.is_some() {
            let command = format!("callboard dataset export {workflow} {dataset}");
            say(format_args!("… and more. All of them: `{command}`"))?;
        }
        Ok(())
    }
}

fn row(case: &DatasetCase) -> [String; 4] {
    let split = case.metadata.get("split").and_then(Value::as_str).unwrap_or("-");
    let inputs = if case.erased { "(erased)".to_owned() } else { short(&case.inputs) };
    let expected = if case.expected_output.is_null() { "-".to_owned() } else { short(&case.expected_output) };
    [case.id.clone(), split.to_owned(), inputs, expected]
}

/// A value in one cell: plain text, or JSON.
fn short(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.char_indices().nth(CELL) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_a_row() {
        let case = |value: Value| serde_json::from_value::<DatasetCase>(value).unwrap();
        let whole = case(json!({
            "id": "a", "inputs": {"message": "Hi"}, "expected_output": "x".repeat(60), "metadata": {"split": "val"}
        }));
        let cut = format!("{}…", "x".repeat(CELL));
        assert_eq!(row(&whole), ["a", "val", r#"{"message":"Hi"}"#, cut.as_str()]);
        let erased = case(json!({"id": "b", "inputs": {}, "erased": true}));
        assert_eq!(row(&erased), ["b", "-", "(erased)", "-"]);
    }
}
