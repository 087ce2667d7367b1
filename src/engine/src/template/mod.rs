//! Templates and conditions: minijinja with fuel, an output limit and strict undefined names.

pub(crate) mod functions;
mod undefined;

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, ErrorKind, Expression, Output, State, UndefinedBehavior, Value as View};
use serde_json::Value;

use crate::limits::{LARGEST, too_deep, too_large};
use crate::{NodeError, tags};

/// Steps of the template machine for one rendering.
const FUEL: u64 = 200_000;

pub(crate) static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // The default marks cannot fail to build.
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(format);
    // What a loop may carry over it may nest without end, and dropping a value nested so deep overflows the stack.
    environment.remove_global("namespace");
    functions::add_filters(&mut environment);
    environment
});

/// What is no text and no number stands in a text as JSON, as it does where it stands alone.
fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &View) -> Result<(), minijinja::Error> {
    let json = match value.kind() {
        ValueKind::None => "null".to_owned(),
        ValueKind::Bool => value.is_true().to_string(),
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => json(value, LARGEST)
            .map_err(|error| minijinja::Error::new(ErrorKind::BadSerialization, error.to_string()))?,
        _ => return minijinja::escape_formatter(out, state, value),
    };
    out.write_str(&json).map_err(minijinja::Error::from)
}

/// What a template is, once its text has been looked at.
enum Shape<'a> {
    /// Exactly one `{{ expression }}`: keeps the value's type.
    Expression(Expression<'a, 'a>),
    /// Text with holes.
    Mixed,
    /// Text without holes.
    Plain,
}

fn shape(text: &str) -> Result<Shape<'_>, String> {
    if !has_holes(text) {
        return Ok(Shape::Plain);
    }
    tags::check(text)?;
    // What is inside is one expression only if it parses as one: `a }} and {{ b` does not, `{'a': {'b': 1}}` does.
    let inner = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let expression =
        inner.map(without_trim_marks).and_then(|inner| ENVIRONMENT.compile_expression(inner).ok());
    Ok(expression.map_or(Shape::Mixed, Shape::Expression))
}

/// Whether a text is more than itself.
pub(crate) fn has_holes(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|opener| text.contains(opener))
}

/// The inside of a tag without the `-` or `+` that say what happens to the blanks around it.
fn without_trim_marks(inner: &str) -> &str {
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    inner.strip_suffix(['-', '+']).unwrap_or(inner)
}

/// The names that a template uses, dotted as far as they are written out.
pub(crate) fn names_of_template(text: &str) -> Result<BTreeSet<String>, String> {
    Ok(match shape(text)? {
        Shape::Plain => BTreeSet::new(),
        Shape::Expression(expression) => expression.undeclared_variables(true).into_iter().collect(),
        Shape::Mixed => {
            let template = ENVIRONMENT.template_from_str(text).map_err(|error| one_line(&error))?;
            template.undeclared_variables(true).into_iter().collect()
        }
    })
}

/// The names that a bare expression uses.
pub(crate) fn names_of_expression(text: &str) -> Result<BTreeSet<String>, String> {
    Ok(condition(text)?.undeclared_variables(true).into_iter().collect())
}

/// What a bare expression yields.
pub(crate) fn evaluate(expression: &str, scope: &View) -> Result<Value, NodeError> {
    let compiled = condition(expression).map_err(NodeError::failed);
    let value = compiled.and_then(|compiled| value_of(&compiled, scope, LARGEST));
    value.map(|(value, _)| value).map_err(|error| within("expression", expression, error))
}

/// An expression's value, its type kept, and how many bytes of JSON it has.
fn value_of(
    expression: &Expression<'_, '_>,
    scope: &View,
    limit: usize,
) -> Result<(Value, usize), NodeError> {
    let value = eval(expression, scope)?;
    let json = json(&value, limit).map_err(|error| unwritten(&error))?;
    let read = serde_json::from_str(&json).map_err(|error| unwritten(&error))?;
    Ok((read, json.len()))
}

/// What an expression yields; never undefined.
fn eval(expression: &Expression<'_, '_>, scope: &View) -> Result<View, NodeError> {
    let names = || expression.undeclared_variables(true);
    let value = expression.eval(scope.clone()).map_err(|error| failed(&error, names, scope))?;
    if value.is_undefined() { Err(undefined::error(names(), scope)) } else { Ok(value) }
}

fn json(value: &View, limit: usize) -> Result<String, serde_json::Error> {
    let mut out = Limited { bytes: Vec::new(), limit };
    serde_json::to_writer(&mut out, value)?;
    // JSON is UTF-8.
    Ok(String::from_utf8(out.bytes).unwrap_or_default())
}

/// Why a value could not become JSON and a value again.
fn unwritten(error: &serde_json::Error) -> NodeError {
    let text = error.to_string();
    if error.is_io() {
        too_large("the value")
    } else if text.starts_with("recursion limit") {
        too_deep()
    } else {
        NodeError::failed(text)
    }
}

fn condition(text: &str) -> Result<Expression<'_, '_>, String> {
    tags::check_length(text)?;
    ENVIRONMENT.compile_expression(text).map_err(|e| one_line(&e))
}

/// Whether a condition holds.
pub(crate) fn holds(condition: &str, scope: &View) -> Result<bool, NodeError> {
    let value = self::condition(condition)
        .map_err(NodeError::failed)
        .and_then(|expression| eval(&expression, scope))
        .map_err(|error| within("condition", condition, error))?;
    Ok(value.is_true())
}

/// The same names with more, which hide those there are.
pub(crate) fn overlay(scope: &View, names: View) -> View {
    // Of several maps the last wins.
    minijinja::value::merge_maps([scope.clone(), names])
}

/// Fills every text inside `value`.
pub(crate) fn fill(value: &Value, scope: &View) -> Result<Value, NodeError> {
    Filling::of(scope).fill(value)
}

/// One value that is filled, and how many bytes all its templates may still make.
pub(crate) struct Filling<'a> {
    scope: &'a View,
    left: usize,
}

impl<'a> Filling<'a> {
    pub(crate) fn of(scope: &'a View) -> Self {
        Self { scope, left: LARGEST }
    }

    /// A text that stays one, also where it is exactly one expression.
    pub(crate) fn fill_as_text(&mut self, text: &str) -> Result<String, NodeError> {
        if !has_holes(text) {
            return Ok(text.to_owned());
        }
        let filled = tags::check(text).map_err(NodeError::failed).and_then(|()| self.render(text));
        filled.map_err(|error| within("template", text, error))
    }

    pub(crate) fn fill(&mut self, value: &Value) -> Result<Value, NodeError> {
        Ok(match value {
            Value::String(text) => self.fill_text(text).map_err(|error| within("template", text, error))?,
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.fill(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let filled = members.iter().map(|(name, value)| Ok((name.clone(), self.fill(value)?)));
                Value::Object(filled.collect::<Result<_, NodeError>>()?)
            }
            other => other.clone(),
        })
    }

    fn fill_text(&mut self, text: &str) -> Result<Value, NodeError> {
        let (value, bytes) = match shape(text).map_err(NodeError::failed)? {
            Shape::Plain => return Ok(Value::String(text.to_owned())),
            Shape::Expression(expression) => value_of(&expression, self.scope, self.left)?,
            Shape::Mixed => return self.render(text).map(Value::String),
        };
        self.left = self.left.saturating_sub(bytes);
        Ok(value)
    }

    fn render(&mut self, text: &str) -> Result<String, NodeError> {
        let template =
            ENVIRONMENT.template_from_str(text).map_err(|error| failed(&error, HashSet::new, self.scope))?;
        let names = || template.undeclared_variables(true);
        let mut out = Limited { bytes: Vec::new(), limit: self.left };
        template
            .render_captured_to(self.scope.clone(), &mut out)
            .map_err(|error| failed(&error, names, self.scope))?;
        self.left = self.left.saturating_sub(out.bytes.len());
        String::from_utf8(out.bytes).map_err(|error| NodeError::failed(error.to_string()))
    }
}

/// The same error with the text at fault.
fn within(what: &str, text: &str, error: NodeError) -> NodeError {
    NodeError { message: format!("{what} {}: {}", quoted(text), error.message), ..error }
}

/// A value of any type as text: strings as they are, the rest as JSON.
pub(crate) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

struct Limited {
    bytes: Vec<u8>,
    limit: usize,
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::Error::other("too large"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a template or an expression that uses these names could not be filled.
fn failed(error: &minijinja::Error, names: impl FnOnce() -> HashSet<String>, scope: &View) -> NodeError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        // Only the limit of the output fails with an error of this kind.
        if error.is::<io::Error>() {
            return too_large("the text");
        }
        cause = error.source();
    }
    if error.kind() == ErrorKind::UndefinedError {
        return undefined::error(names(), scope);
    }
    NodeError::failed(one_line(error))
}

fn one_line(error: &minijinja::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// The first letters of a text, so that a message stays a line.
fn quoted(text: &str) -> String {
    const LETTERS: usize = 80;
    let mut short: String = text.chars().take(LETTERS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
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
        let values = text("{{ none }} {{ true }} {{ 0.5 }} {{ ['a', none] }} {{ {'b': false} }} {{ 'c' }}");
        assert_eq!(values.unwrap(), json!(r#"null true 0.5 ["a",null] {"b":false} c"#), "as JSON");
        assert_eq!(text("{{ inputs.n }}{{ inputs.n }}").unwrap(), json!("33"));
        assert_eq!(text("plain").unwrap(), json!("plain"));
        assert_eq!(text("{% if inputs.n > 2 %}big{% endif %}").unwrap(), json!("big"));
        assert_eq!(text("{{ inputs.text }}").unwrap(), json!("a{{b"), "values are not templates");
        assert_eq!(text("{{ {'a': {'b': inputs.n}} }}").unwrap(), json!({"a": {"b": 3}}));
        assert_eq!(text("{{ ['}}', '{{', '{%'] }}").unwrap(), json!(["}}", "{{", "{%"]));
        assert_eq!(text("{{ '}} and {{' }}").unwrap(), json!("}} and {{"));
        assert_eq!(text("{{- inputs.n -}}").unwrap(), json!(3));
        assert_eq!(text("{{--inputs.n }}").unwrap(), json!(-3), "the first - trims, the second negates");
        assert_eq!(text("{{ inputs.n }}\n").unwrap(), json!(3));
        assert_eq!(text("n={{ inputs.n }}\n").unwrap(), json!("n=3\n"), "the last line keeps its end");
        let nested = fill(&json!({"a": ["{{ inputs.n }}"], "b": true}), &scope()).unwrap();
        assert_eq!(nested, json!({"a": [3], "b": true}));
    }

    #[test]
    fn bad_templates_fail_with_one_line() {
        for bad in ["{{ missing }}", "{{ inputs.missing }}", "x{{ missing }}", "{{ 1 + }}", "{% for %}"] {
            let error = text(bad).unwrap_err();
            assert!(!error.message.contains('\n'), "{bad}: {error}");
        }
        assert!(names_of_template("{{ 1 + }}").is_err());
        assert!(names_of_template("{% for %}").is_err());
        assert!(names_of_expression("a == ").is_err());
    }

    #[test]
    fn what_is_not_defined_is_named() {
        for (template, named) in [
            ("{{ missing }}", "'missing' is not defined"),
            ("{{ inputs.missing }}", "'inputs.missing' is not defined; 'inputs' has 'list', 'n', 'text'"),
            (
                "x {{ inputs.missing.deeper }}",
                "'inputs.missing' is not defined; 'inputs' has 'list', 'n', 'text'",
            ),
            ("x{{ inputs.list[7] }}", "a value is not defined"),
            ("x{{ a }}{{ b }}", "'a' or 'b' is not defined"),
        ] {
            let error = text(template).unwrap_err();
            assert!(error.message.ends_with(&format!(": {named}")), "{template}: {error}");
        }
        let error = holds("inputs.missing == 1", &scope()).unwrap_err();
        assert!(error.message.contains("'inputs.missing' is not defined"), "{error}");
    }

    #[test]
    fn names_are_found_with_their_members() {
        let names = |text| names_of_template(text).unwrap().into_iter().collect::<Vec<_>>();
        assert_eq!(names("{{ results.a.text ~ inputs.b }}"), ["inputs.b", "results.a.text"]);
        assert_eq!(names("{% for x in state.list %}{{ x.y }} {{ loop.index }}{% endfor %}"), ["state.list"]);
        assert_eq!(names("{% set a = 1 %}{{ a }} {{ range(3) }}"), ["range"]);
        assert_eq!(names("plain"), Vec::<String>::new());
        let names = names_of_expression("results.a.kind == 'x' and not b").unwrap();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["b", "results.a.kind"]);
    }

    #[test]
    fn endless_and_huge_templates_are_stopped() {
        assert!(
            text("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}x")
                .is_err()
        );
        let nested =
            "{% set ns = namespace(x=[]) %}{% for i in range(15000) %}{% set ns.x = [ns.x] %}{% endfor %}";
        assert!(text(nested).unwrap_err().message.contains("namespace"));
        assert!(text("{{ ['x' * 1000000] * 9 }}").is_err(), "also where a value keeps its type");
        let huge = text("{% for a in range(9999) %}{{ 'x' * 100000 }}{% endfor %}").unwrap_err();
        assert!(huge.message.contains("larger than 8 MiB"), "{huge}");
    }

    #[test]
    fn conditions_are_judged_by_truth() {
        assert!(holds("inputs.n == 3", &scope()).unwrap());
        assert!(!holds("inputs.n > 3", &scope()).unwrap());
        assert!(holds("inputs.missing == 1", &scope()).is_err());
        assert!(holds("inputs.missing", &scope()).is_err(), "a misspelt name is no way to else");
        assert!(!holds("inputs.missing is defined", &scope()).unwrap());
    }
}
