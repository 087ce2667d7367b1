//! `transform`: makes one value of another, by an expression or a JSONPath.

use async_trait::async_trait;
use minijinja::Value as View;
use minijinja::value::Serde;
use serde_json::{Value, json};
use serde_json_path::JsonPath;
use wire::FieldError;

use super::{Call, Effect, Failure, Node, NodeType, expression_field};
use crate::NodeError;
use crate::check::Check;
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::template::{evaluate, fill};

pub(super) const TYPE: NodeType = NodeType {
    name: "transform",
    group: "logic",
    summary: "Makes one value of another, by an expression or a JSONPath.",
    effect: Effect::Pure,
    schema,
    result: "The value itself. A path to one place yields what is there or null, any other path the list of matches.",
    example: || {
        json!({"name": "total", "type": "transform", "input": "{{ inputs.lines }}",
               "expression": "input | map(attribute='price') | sum"})
    },
    build,
};

struct Transform {
    input: Option<Value>,
    how: How,
}

enum How {
    Expression(String),
    Path { path: Box<JsonPath>, single: bool },
}

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "input": {"description": "What it works on; texts inside are templates. `input` in the expression."},
        "expression": {"type": "string", "description": "An expression of the template language."},
        "path": {"type": "string", "description": "A JSONPath (RFC 9535) into `input`."}},
        "oneOf": [{"required": ["expression"]}, {"required": ["path", "input"]}]})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let input = fields.value("input").cloned();
    let good = input.as_ref().is_none_or(|input| check.templates(input, &fields.at("input")));
    let how = match (fields.value("expression").is_some(), fields.value("path").is_some()) {
        (true, false) => How::Expression(expression_field(fields, "expression", &["input"], check)?),
        (false, true) => {
            if input.is_none() {
                check.note(FieldError::new(fields.at("input"), "required", "a path needs an input"));
            }
            read_path(fields, check)?
        }
        (both, _) => {
            let (code, message) = if both {
                ("exclusive", "has either 'expression' or 'path'")
            } else {
                ("required", "needs 'expression' or 'path'")
            };
            let problem = FieldError::new(fields.at("expression"), code, message);
            check.note(problem.suggest(r#""expression": "inputs.list | length""#));
            return None;
        }
    };
    if good { Some(Box::new(Transform { input, how })) } else { None }
}

fn read_path(fields: &mut Fields<'_>, check: &mut Check) -> Option<How> {
    let text = fields.text("path", &mut check.problems)?;
    match JsonPath::parse(text) {
        Ok(path) => {
            let single = !["*", "..", "?", ":", ","].iter().any(|many| text.contains(many));
            Some(How::Path { path: Box::new(path), single })
        }
        Err(error) => {
            let problem = FieldError::new(fields.at("path"), "path", format!("is no JSONPath: {error}"));
            check.note(problem.suggest("$.orders[0].id"));
            None
        }
    }
}

#[async_trait]
impl Node for Transform {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let input = self.input.as_ref().map(|input| fill(input, scope)).transpose()?;
        match &self.how {
            How::Expression(expression) => {
                let input = View::from_pairs([("input", View::from(Serde(&input)))]);
                evaluate(expression, &minijinja::value::merge_maps([input, scope.clone()]))
            }
            How::Path { .. } => Ok(input.unwrap_or_default()),
        }
    }

    async fn run(&self, input: Value, _call: &Call<'_>) -> Result<Value, Failure> {
        let How::Path { path, single } = &self.how else { return Ok(input) };
        let found = path.query(&input);
        Ok(if *single {
            found.first().cloned().unwrap_or_default()
        } else {
            Value::Array(found.iter().map(|found| (*found).clone()).collect())
        })
    }
}
