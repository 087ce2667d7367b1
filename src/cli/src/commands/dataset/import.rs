//! `callboard dataset import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::Value;
use wire::chat::FeedbackKind;
use wire::{CreateDataset, CreateDatasetVersion, DatasetOrigin, FeedbackOrigin, RunsOrigin, SavedDataset};

use super::{DatasetArguments, print};
use crate::commands::trainings::DatasetFile;
use crate::options::ServiceSession;
use crate::output::{CommandError, Output, complain, pretty, say};

/// The feedback that becomes cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rating {
    Positive,
    Negative,
    All,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  callboard dataset import support refunds cases.csv\n  \
                  callboard dataset import support complaints --from-feedback negative\n  \
                  callboard dataset import support recent --from-runs 100\n\n\
                  If the dataset exists, it gets a new version with these cases.")]
pub(crate) struct Import {
    #[command(flatten)]
    pub(super) named: DatasetArguments,
    /// File with the cases: .json, .jsonl, .ndjson or .csv
    #[arg(required_unless_present_any = ["from_feedback", "from_runs"], conflicts_with_all = ["from_feedback", "from_runs"])]
    file: Option<PathBuf>,
    /// Take the cases from feedback of visitors
    #[arg(long, value_enum, value_name = "RATING", conflicts_with = "from_runs")]
    from_feedback: Option<Rating>,
    /// Take the cases from this number of the newest succeeded runs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    from_runs: Option<u32>,
}

impl Import {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let DatasetArguments { workflow, dataset, .. } = &self.named;
        let mut file = self.file.as_deref().map(DatasetFile::read).transpose()?;
        let cases = file.as_mut().map(DatasetFile::take_cases);
        let saved = self.save(session, cases).await.map_err(|error| match (&file, error) {
            (Some(file), error) => session.complaint(error).located(file).about(dataset),
            (None, error) => session.complaint(error).about(workflow),
        })?;
        if session.output == Output::Json {
            return say(pretty(&saved)?);
        }
        print(&saved.dataset)?;
        if let Some(line) = compared(&saved) {
            complain(line);
        }
        if saved.skipped > 0 {
            complain(format_args!(
                "{} skipped: without a copy of the turn, erased, or too large.",
                if saved.skipped == 1 {
                    "1 entry was".to_owned()
                } else {
                    format!("{} entries were", saved.skipped)
                }
            ));
        }
        Ok(())
    }

    async fn save(
        &self,
        session: &ServiceSession,
        cases: Option<Vec<Value>>,
    ) -> Result<SavedDataset, client::ClientError> {
        let DatasetArguments { workflow, dataset, .. } = &self.named;
        let mut new = CreateDataset { name: dataset.clone(), cases, from: self.origin() };
        match session.client.create_dataset(workflow, &new).await {
            Err(error) if error.code() == Some("dataset.name_taken") => {
                let version = CreateDatasetVersion { cases: new.cases.take(), from: new.from.take() };
                let saved = session.client.create_dataset_version(workflow, dataset, &version).await;
                saved.map(|(saved, _)| saved)
            }
            created => created,
        }
    }

    fn origin(&self) -> Option<DatasetOrigin> {
        let feedback = self.from_feedback.map(|rating| FeedbackOrigin {
            kind: match rating {
                Rating::Positive => Some(FeedbackKind::Positive),
                Rating::Negative => Some(FeedbackKind::Negative),
                Rating::All => None,
            },
            ..FeedbackOrigin::default()
        });
        let runs = self.from_runs.map(|limit| RunsOrigin { limit: Some(limit), ..RunsOrigin::default() });
        (feedback.is_some() || runs.is_some()).then_some(DatasetOrigin { feedback, runs })
    }
}

/// The difference from the previous version's cases; `None` without a previous version or common cases.
fn compared(saved: &SavedDataset) -> Option<String> {
    let SavedDataset { dataset, unchanged, is_new, .. } = saved;
    let cases = |count: usize| if count == 1 { "1 case".to_owned() } else { format!("{count} cases") };
    match (*is_new, *unchanged) {
        (false, _) => Some(format!(
            "No new version: version {} has exactly these {}.",
            dataset.version,
            cases(*unchanged)
        )),
        (true, 0) => None,
        (true, unchanged) => {
            let before = dataset.version - 1;
            Some(format!("New version: {} of {} are also in version {before}.", unchanged, dataset.n_cases))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Parser, error::ErrorKind};
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        import: Import,
    }

    fn parse(arguments: &[&str]) -> Result<Import, ErrorKind> {
        let line = ["import", "w", "d"].iter().chain(arguments);
        Line::try_parse_from(line).map(|line| line.import).map_err(|error| error.kind())
    }

    #[test]
    fn unchanged_cases_are_reported() {
        let line = |version: i32, is_new: bool, unchanged: usize| {
            let saved = json!({"id": "i", "workflow_id": "w", "name": "d", "version": version, "n_cases": 3,
                               "fingerprint": "f", "created_at": "t", "updated_at": "t", "skipped": 0,
                               "is_new": is_new, "unchanged": unchanged});
            compared(&serde_json::from_value(saved).unwrap())
        };
        assert_eq!(line(1, true, 0), None);
        assert_eq!(
            line(1, false, 3).as_deref(),
            Some("No new version: version 1 has exactly these 3 cases.")
        );
        assert_eq!(line(2, true, 2).as_deref(), Some("New version: 2 of 3 are also in version 1."));
    }

    #[test]
    fn cases_have_exactly_one_source() {
        let origin = |arguments: &[&str]| serde_json::to_value(parse(arguments).unwrap().origin()).unwrap();
        assert_eq!(origin(&["a.csv"]), Value::Null);
        assert_eq!(origin(&["--from-feedback", "negative"]), json!({"feedback": {"kind": "negative"}}));
        assert_eq!(origin(&["--from-feedback", "all"]), json!({"feedback": {}}));
        assert_eq!(origin(&["--from-runs", "7"]), json!({"runs": {"limit": 7}}));
        assert_eq!(parse(&[]).err(), Some(ErrorKind::MissingRequiredArgument));
        let both: [&[&str]; 2] =
            [&["a.csv", "--from-runs", "7"], &["--from-runs", "7", "--from-feedback", "all"]];
        assert!(both.iter().all(|arguments| parse(arguments).err() == Some(ErrorKind::ArgumentConflict)));
    }
}
