//! `transform`: converts a value by an expression or a JSONPath.

use async_trait::async_trait;
use minijinja::Value as View;
use minijinja::value::Serde;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::expression_field;
use crate::nodes::logic::path::Path;
use crate::template::{Expression, fill, overlay};

pub(crate) const TYPE: NodeType = NodeType {
    name: "transform",
    group: "logic",
    summary: "Transforms a value with an expression or a JSONPath.",
    effect: Effect::Pure,
    secrets: &[],
    schema,
    result: "The value. A path to a single location returns its value or null, any other path the list of matches.",
    members: &[],
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
    Path(Path),
}

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "input": {"description": "The input; strings inside are templates. The expression refers to it as `input`."},
        "expression": {"type": "string", "description": "An expression of the template language."},
        "path": {"type": "string", "description": "A JSONPath (RFC 9535) into `input`; at most two `..`."}},
        "oneOf": [{"required": ["expression"]}, {"required": ["path", "input"]}]})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let input = fields.value("input").cloned();
    let good = input.as_ref().is_none_or(|input| check.templates(input, &fields.at("input")));
    let how = match (fields.value("expression").is_some(), fields.value("path").is_some()) {
        (true, false) => How::Expression(expression_field(fields, "expression", &["input"], check)?),
        (false, true) => {
            if input.is_none() {
                let problem = FieldError::new(fields.at("input"), "required", "a path needs an input");
                check.note(problem.suggest(r#""input": "{{ inputs }}""#));
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
    match Path::read(text) {
        Ok(path) => Some(How::Path(path)),
        Err(message) => {
            check.note(FieldError::new(fields.at("path"), "path", message).suggest("$.orders[0].id"));
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
                Expression::compile(expression)?.value(&overlay(scope, input))
            }
            How::Path(_) => Ok(input.unwrap_or_default()),
        }
    }

    async fn run(&self, input: Value, _call: &Call<'_>) -> Result<Value, Failure> {
        match &self.how {
            How::Expression(_) => Ok(input),
            How::Path(path) => Ok(path.query(input).await?),
        }
    }
}
