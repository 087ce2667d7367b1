//! Templates and conditions: minijinja with fuel, an output limit and strict undefined names.

use std::io;
use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior, Value as View};
use serde_json::Value;

use crate::NodeError;

/// Steps of the template machine for one rendering.
const FUEL: u64 = 200_000;
/// Bytes that one rendering may produce.
const OUTPUT_LIMIT: usize = 8 << 20;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment
});

/// What a template or condition is, once its text has been looked at.
pub(crate) enum Shape<'a> {
    /// Exactly one `{{ expression }}`: keeps the value's type.
    Expression(&'a str),
    /// Text with holes.
    Mixed(&'a str),
    /// Text without holes.
    Plain(&'a str),
}

pub(crate) fn shape(text: &str) -> Shape<'_> {
    if !text.contains("{{") && !text.contains("{%") && !text.contains("{#") {
        return Shape::Plain(text);
    }
    let inner = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    match inner {
        Some(inner) if !inner.contains("{{") && !inner.contains("}}") && !inner.contains("{%") => {
            Shape::Expression(inner.trim_start_matches('-').trim_end_matches('-'))
        }
        _ => Shape::Mixed(text),
    }
}

/// Whether a text parses as a template.
pub(crate) fn check(text: &str) -> Result<(), String> {
    match shape(text) {
        Shape::Plain(_) => Ok(()),
        Shape::Expression(expression) => check_condition(expression),
        Shape::Mixed(text) => ENVIRONMENT.template_from_str(text).map(|_| ()).map_err(|e| one_line(&e)),
    }
}

/// Whether a text parses as a condition.
pub(crate) fn check_condition(text: &str) -> Result<(), String> {
    ENVIRONMENT.compile_expression(text).map(|_| ()).map_err(|e| one_line(&e))
}

/// Whether a condition holds.
pub(crate) fn holds(condition: &str, scope: &View) -> Result<bool, NodeError> {
    let expression = ENVIRONMENT.compile_expression(condition).map_err(failed)?;
    Ok(expression.eval(scope.clone()).map_err(failed)?.is_true())
}

/// Fills every text inside `value`.
pub(crate) fn fill(value: &Value, scope: &View) -> Result<Value, NodeError> {
    Ok(match value {
        Value::String(text) => fill_text(text, scope)?,
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill(item, scope)).collect::<Result<_, _>>()?)
        }
        Value::Object(members) => {
            let filled = members.iter().map(|(name, value)| Ok((name.clone(), fill(value, scope)?)));
            Value::Object(filled.collect::<Result<_, NodeError>>()?)
        }
        other => other.clone(),
    })
}

fn fill_text(text: &str, scope: &View) -> Result<Value, NodeError> {
    match shape(text) {
        Shape::Plain(text) => Ok(Value::String(text.to_owned())),
        Shape::Expression(expression) => {
            let expression = ENVIRONMENT.compile_expression(expression).map_err(failed)?;
            let value = expression.eval(scope.clone()).map_err(failed)?;
            if value.is_undefined() {
                return Err(NodeError::failed(format!("template {text:?}: the name is not defined")));
            }
            serde_json::to_value(&value)
                .map_err(|error| NodeError::failed(format!("template {text:?}: {error}")))
        }
        Shape::Mixed(text) => {
            let template = ENVIRONMENT.template_from_str(text).map_err(failed)?;
            let mut out = Limited(Vec::new());
            template.render_captured_to(scope.clone(), &mut out).map_err(failed)?;
            String::from_utf8(out.0).map(Value::String).map_err(|error| NodeError::failed(error.to_string()))
        }
    }
}

/// A value of any type as text: strings as they are, the rest as JSON.
pub(crate) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

struct Limited(Vec<u8>);

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_LIMIT {
            return Err(io::Error::other("the rendered text is larger than 8 MiB"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn one_line(error: &minijinja::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn failed(error: minijinja::Error) -> NodeError {
    NodeError::failed(format!("template: {}", one_line(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::value::Serde;
    use serde_json::json;

    fn scope() -> View {
        View::from(Serde(json!({"inputs": {"n": 3, "list": [1, 2], "text": "a{{b"}})))
    }

    fn text(template: &str) -> Result<Value, NodeError> {
        fill(&json!(template), &scope())
    }

    #[test]
    fn one_expression_keeps_its_type_and_mixed_text_is_text() {
        assert_eq!(text("{{ inputs.n }}").unwrap(), json!(3));
        assert_eq!(text(" {{ inputs.list }} ").unwrap(), json!([1, 2]));
        assert_eq!(text("n={{ inputs.n }}").unwrap(), json!("n=3"));
        assert_eq!(text("{{ inputs.n }}{{ inputs.n }}").unwrap(), json!("33"));
        assert_eq!(text("plain").unwrap(), json!("plain"));
        assert_eq!(text("{% if inputs.n > 2 %}big{% endif %}").unwrap(), json!("big"));
        assert_eq!(text("{{ inputs.text }}").unwrap(), json!("a{{b"), "values are not templates");
        let nested = fill(&json!({"a": ["{{ inputs.n }}"], "b": true}), &scope()).unwrap();
        assert_eq!(nested, json!({"a": [3], "b": true}));
    }

    #[test]
    fn bad_templates_fail_with_one_line() {
        for bad in ["{{ missing }}", "{{ inputs.missing }}", "x{{ missing }}", "{{ 1 + }}", "{% for %}"] {
            let error = text(bad).unwrap_err();
            assert!(!error.message.contains('\n'), "{bad}: {error}");
        }
        assert!(check("{{ 1 + }}").is_err());
        assert!(check("{% for %}").is_err());
        assert!(check_condition("a == ").is_err());
    }

    #[test]
    fn endless_and_huge_templates_are_stopped() {
        assert!(
            text("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}x")
                .is_err()
        );
        assert!(text("{% for a in range(9999) %}{{ 'x' * 100000 }}{% endfor %}").is_err());
    }

    #[test]
    fn conditions_are_judged_by_truth() {
        assert!(holds("inputs.n == 3", &scope()).unwrap());
        assert!(!holds("inputs.n > 3", &scope()).unwrap());
        assert!(holds("inputs.missing == 1", &scope()).is_err());
    }
}
