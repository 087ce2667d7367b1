//! Parses training and evaluation requests, except the objects `training` and `evaluation`. Pure.

use actors::kinds::training::request_problems;
use ring::digest::{Context, SHA256};
use serde_json::{Map, Value, json};
use uuid::Uuid;
use wire::{FieldError, TrainingKind};

use crate::http::fields::Fields;

/// A parsed request.
#[derive(Debug, PartialEq)]
pub(in crate::http) struct TrainingRequest {
    pub(super) kind: TrainingKind,
    /// A graph to run instead of the workflow's live version.
    pub(super) graph: Option<Value>,
    pub(super) inputs: Map<String, Value>,
    /// Overrides for the version's runnable config.
    pub(super) config: Map<String, Value>,
    /// The object `training` or `evaluation`.
    pub(super) asked: Value,
    /// The run id chosen by the client.
    pub(super) run: Option<Uuid>,
}

impl TrainingRequest {
    /// The request's SHA-256. It is the same over HTTP and WebSocket, and independent of the run id.
    pub(super) fn digest(&self) -> Vec<u8> {
        let Self { kind, graph, inputs, config, asked, .. } = self;
        let mut context = Context::new(&SHA256);
        for part in [&json!([kind.as_str(), graph, inputs, config]), asked] {
            // Members are sorted by name.
            context.update(&serde_json::to_vec(part).unwrap_or_default());
        }
        context.finish().as_ref().to_vec()
    }
}

#[cfg(test)]
impl TrainingRequest {
    pub(in crate::http) fn kind(&self) -> TrainingKind {
        self.kind
    }
}

/// Parses the members and moves the large one out. `kind` is the only allowed kind, if set.
pub(in crate::http) fn read(
    members: &mut Map<String, Value>,
    kind: Option<TrainingKind>,
    passed_over: &[&'static str],
) -> Result<TrainingRequest, Vec<FieldError>> {
    let kinds = [TrainingKind::Training, TrainingKind::Evaluation];
    let given = |kind: &TrainingKind| members.get(kind.as_str()).is_some_and(|asked| !asked.is_null());
    let allowed: Vec<TrainingKind> =
        kinds.into_iter().filter(|one| kind.is_none_or(|kind| kind == *one)).collect();
    let asked: Vec<TrainingKind> = allowed.iter().copied().filter(given).collect();
    let taken = asked.first().and_then(|kind| members.shift_remove(kind.as_str()));
    let mut fields = Fields::new(members);
    fields.pass_over(passed_over);
    let names: Vec<&'static str> = allowed.iter().map(|kind| kind.as_str()).collect();
    fields.pass_over(&names);
    let graph = fields.object("graph_config").filter(|graph| !graph.is_empty()).cloned().map(Value::Object);
    let inputs = fields.object("inputs").cloned().unwrap_or_default();
    let config = fields.object("runnable_config").cloned().unwrap_or_default();
    let id = fields.text("run_id");
    let run = id.and_then(|id| Uuid::parse_str(id).ok()).filter(|id| id.get_version_num() == 7);
    if id.is_some() && run.is_none() {
        fields.note(FieldError::new("/run_id", "format", "must be a UUIDv7"));
    }
    match asked[..] {
        [_] => {}
        [] => {
            let pointer = format!("/{}", names.first().copied().unwrap_or_default());
            let message = format!("needs {}", names.join(" or "));
            fields.note(FieldError::new(pointer, "required", message));
        }
        _ => fields.note(FieldError::new("/evaluation", "conflict", "cannot be combined with 'training'")),
    }
    let mut problems = fields.finish();
    if !problems.is_empty()
        && let ([kind], Some(asked)) = (&asked[..], &taken)
    {
        problems.extend(request_problems(*kind, asked));
    }
    match (asked.first(), taken) {
        (Some(kind), Some(asked)) if problems.is_empty() => {
            Ok(TrainingRequest { kind: *kind, graph, inputs, config, asked, run })
        }
        _ => Err(problems),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "01890000-0000-7000-8000-000000000001";

    fn parse(body: Value, kind: Option<TrainingKind>) -> Result<TrainingRequest, Vec<String>> {
        let mut members = body.as_object().unwrap().clone();
        let line = |problem: FieldError| format!("{} {}", problem.pointer, problem.code);
        read(&mut members, kind, &["type"]).map_err(|problems| problems.into_iter().map(line).collect())
    }

    #[test]
    fn a_request_is_a_training_or_an_evaluation() {
        let read =
            parse(json!({"training": {"a": 1}, "graph_config": {}, "run_id": RUN, "type": 1}), None).unwrap();
        assert_eq!((read.kind, read.graph, read.asked), (TrainingKind::Training, None, json!({"a": 1})));
        assert_eq!(read.run, Some(Uuid::parse_str(RUN).unwrap()));
        let read =
            parse(json!({"evaluation": 7, "inputs": {"x": 1}}), Some(TrainingKind::Evaluation)).unwrap();
        assert_eq!((read.kind, read.inputs["x"].clone()), (TrainingKind::Evaluation, json!(1)));
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        for (body, kind, expected) in [
            (json!({}), None, &["/training required"][..]),
            (json!({}), Some(TrainingKind::Evaluation), &["/evaluation required"]),
            (json!({"training": {}, "evaluation": {}}), None, &["/evaluation conflict"]),
            (
                json!({"training": {}}),
                Some(TrainingKind::Evaluation),
                &["/evaluation required", "/training unknown_field"],
            ),
            (
                json!({"training": {"dataset": {}, "optimizer": {"epochs": 0}}, "inputs": 1, "runnable_config": [], "graph_config": "", "run_id": "x", "config": {}}),
                None,
                &[
                    "/graph_config type",
                    "/inputs type",
                    "/runnable_config type",
                    "/run_id format",
                    "/config unknown_field",
                    "/training/dataset/cases required",
                    "/training/evaluators required",
                    "/training/optimizer/epochs range",
                ],
            ),
            (
                json!({"evaluation": 7, "run_id": "7d444840-9dc0-41d1-b245-5ffdce74fad2"}),
                None,
                &["/run_id format", "/evaluation type"],
            ),
        ] {
            assert_eq!(parse(body.clone(), kind).unwrap_err(), expected, "{body}");
        }
    }
}
