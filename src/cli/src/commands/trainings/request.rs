//! A training or evaluation request, and its source files.

use std::path::Path;

use serde_json::{Map, Value};
use wire::StartTraining;

use super::dataset::{DatasetFile, GivenDataset, is_file};
use super::setup::TrainingSetup;
use crate::commands::workflow::file::{GraphFile, TextFile};
use crate::complaint::{Places, SourceLocation};
use crate::output::CommandError;

/// The files of a request.
pub(super) struct RequestFiles {
    graph: Option<GraphFile>,
    /// A runnable config without a graph; a graph's config is in `graph`.
    config: Option<TextFile>,
    dataset: Option<DatasetFile>,
    /// The stored dataset's name.
    stored: Option<String>,
    /// The object `training`.
    request: Option<TextFile>,
}

impl RequestFiles {
    /// Reads the files.
    pub(super) fn read(
        setup: &TrainingSetup,
        dataset: Option<&Path>,
        request: Option<&Path>,
    ) -> Result<Self, CommandError> {
        let (graph, config) = (setup.graph.as_deref(), setup.config.as_deref());
        let from_stdin =
            [graph, config, request].into_iter().flatten().filter(|path| path.as_os_str() == "-");
        if from_stdin.count() > 1 {
            return Err(CommandError::usage("only one of the files can come from standard input"));
        }
        let (graph, config) = match graph {
            Some(graph) => (Some(GraphFile::read(graph, config)?), None),
            None => (None, config.map(TextFile::read).transpose()?),
        };
        let (file, named) = match dataset {
            Some(path) if is_file(path) => (Some(DatasetFile::read(path)?), None),
            Some(name) => (None, Some(name.to_string_lossy().into_owned())),
            None => (None, None),
        };
        let request = request.map(TextFile::read).transpose()?;
        Ok(Self { graph, config, dataset: file, stored: named, request })
    }

    /// The object from `--request`; empty without one.
    pub(super) fn base(&self) -> Result<Map<String, Value>, CommandError> {
        self.request.as_ref().map_or_else(|| Ok(Map::new()), TextFile::object)
    }

    /// Takes the dataset; its cases are not kept here.
    pub(super) fn take_dataset(&mut self) -> Option<GivenDataset> {
        let cases = self.dataset.as_mut().map(|file| GivenDataset::Cases(file.take_cases()));
        cases.or_else(|| self.stored.take().map(GivenDataset::Stored))
    }

    /// Builds a request with graph, config and inputs, without training or evaluation.
    pub(super) fn start(&self, setup: &TrainingSetup) -> Result<StartTraining, CommandError> {
        let runnable_config = match (&self.graph, &self.config) {
            (Some(graph), _) => graph.runnable_config.clone(),
            (None, Some(config)) => Some(config.object()?),
            (None, None) => None,
        };
        Ok(StartTraining {
            graph_config: self.graph.as_ref().map(|file| file.graph.clone()),
            inputs: setup.inputs()?,
            runnable_config,
            ..StartTraining::default()
        })
    }

    fn place_in_workload(&self, pointer: &str) -> Option<SourceLocation> {
        match (below(pointer, "/dataset/cases"), &self.dataset) {
            (Some(case), Some(dataset)) => dataset.place_of_case(case),
            _ => {
                let request = self.request.as_ref()?;
                // Options may have set members that the file does not have.
                request.json().ok()?.pointer(pointer)?;
                Some(request.place(pointer))
            }
        }
    }
}

impl Places for RequestFiles {
    fn place(&self, pointer: &str) -> Option<SourceLocation> {
        if let Some(rest) = below(pointer, "/graph_config") {
            return self.graph.as_ref()?.place(rest);
        }
        if let Some(rest) = below(pointer, "/runnable_config") {
            return match (&self.config, &self.graph) {
                (Some(config), _) => Some(config.place(rest)),
                (None, Some(graph)) if graph.runnable_config.is_some() => graph.place(pointer),
                _ => None,
            };
        }
        if let Some(rest) = below(pointer, "/training").or_else(|| below(pointer, "/evaluation")) {
            return self.place_in_workload(rest);
        }
        // An invalid graph's pointers begin at the graph.
        self.graph.as_ref()?.place(pointer)
    }
}

/// The rest of a pointer that is equal to `place` or below it.
fn below<'a>(pointer: &'a str, place: &str) -> Option<&'a str> {
    pointer.strip_prefix(place).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn line(files: &RequestFiles, pointer: &str) -> Option<usize> {
        files.place(pointer).map(|place| place.line)
    }

    #[test]
    fn problems_are_located_in_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let setup = TrainingSetup {
            graph: Some(file("graph.json", "{\"nodes\": [\n{\"name\": \"a\"}]}")),
            config: Some(file("config.json", "{\n\n\"prompts\": {}}")),
            inputs: Some("{\"a\": 1}".into()),
            ..TrainingSetup::default()
        };
        let dataset = file("cases.jsonl", "{\"inputs\": {}}\n{\"inputs\": {}}");
        let request = file("training.json", "{\n\"optimizer\": {\n\"epochs\": 99}}");
        let mut files = RequestFiles::read(&setup, Some(&dataset), Some(&request)).unwrap();
        assert_eq!(line(&files, "/graph_config/nodes/0/name"), Some(2));
        assert_eq!(line(&files, "/nodes/0"), Some(2));
        assert_eq!(line(&files, "/runnable_config/prompts"), Some(3));
        assert_eq!(line(&files, "/training/dataset/cases/1/inputs"), Some(2));
        assert_eq!(line(&files, "/training/optimizer/epochs"), Some(3));
        assert_eq!(line(&files, "/training/evaluators/0"), None);

        let request = files.start(&setup).unwrap();
        assert_eq!(request.runnable_config.unwrap(), json!({"prompts": {}}).as_object().unwrap().clone());
        assert_eq!((request.inputs, request.graph_config.is_some()), (Some(json!({"a": 1})), true));
        assert_eq!(files.base().unwrap().len(), 1);
        let mut cases = || match files.take_dataset() {
            Some(GivenDataset::Cases(cases)) => cases.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!((cases(), cases()), (2, 0));
    }

    #[test]
    fn a_dataset_is_read_from_a_file_or_stored() {
        let of = |path: &str| RequestFiles::read(&TrainingSetup::default(), Some(Path::new(path)), None);
        let mut stored = of("refunds").unwrap();
        assert_eq!(stored.take_dataset(), Some(GivenDataset::Stored("refunds".into())));
        assert!(["refunds.csv", "folder/refunds", "./refunds"].iter().all(|path| of(path).is_err()));
    }

    #[test]
    fn a_request_without_files_has_no_locations() {
        let files = RequestFiles::read(&TrainingSetup::default(), None, None).unwrap();
        for pointer in ["/graph_config/nodes", "/runnable_config", "/training/dataset", "/evaluation", ""] {
            assert_eq!(line(&files, pointer), None, "{pointer}");
        }
        assert_eq!(files.start(&TrainingSetup::default()).unwrap(), StartTraining::default());
    }

    #[test]
    fn only_one_file_can_be_standard_input() {
        let stdin = || Some("-".into());
        let setup = TrainingSetup { graph: stdin(), config: stdin(), ..TrainingSetup::default() };
        assert!(RequestFiles::read(&setup, None, None).is_err());
    }
}
