//! Templates and conditions: minijinja with limits on instructions, bytes, depth and time, and strict undefined names.

mod constants;
mod filters;
pub(crate) mod functions;
mod operators;
mod program;
mod text_size;
mod undefined;

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::LazyLock;

use kernel::json::{Numbers, check_numbers};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, ErrorKind, Output, State, UndefinedBehavior, Value as View};
use serde_json::Value;

use self::program::Program;
use crate::limits::{LARGEST, too_deep, too_large};
use crate::{NodeError, meter, tags};

/// Maximum template machine instructions per template.
const FUEL: u64 = 300_000;
/// The same limit for brief work.
const BRIEF_FUEL: u64 = 4_000;

static SYNTAX: LazyLock<SyntaxConfig> =
    // The default marks always build.
    LazyLock::new(|| SyntaxConfig::builder().keep_trailing_newline(true).build().unwrap_or_default());

pub(crate) static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SYNTAX.clone());
    environment.set_fuel(Some(FUEL));
    environment.set_debug(false);
    environment.set_formatter(format);
    filters::add(&mut environment);
    operators::add(&mut environment);
    environment
});

static BRIEF_ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = ENVIRONMENT.clone();
    environment.set_fuel(Some(BRIEF_FUEL));
    environment
});

/// Writes lists, objects and booleans into a text as JSON.
fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &View) -> Result<(), minijinja::Error> {
    let json = match value.kind() {
        ValueKind::None => "null".to_owned(),
        ValueKind::Bool => value.is_true().to_string(),
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
            json(value, meter::room()).map_err(|error| {
                minijinja::Error::new(ErrorKind::BadSerialization, error.to_string()).with_source(error)
            })?
        }
        _ => {
            let escapes = !matches!(state.auto_escape(), minijinja::AutoEscape::None);
            let bytes = text_size::text_size(value)?;
            meter::make(bytes * if escapes { text_size::ESCAPE } else { 1 })?;
            return minijinja::escape_formatter(out, state, value);
        }
    };
    meter::make(json.len())?;
    out.write_str(&json).map_err(minijinja::Error::from)
}

/// A text's shape, by its tags.
enum TemplateShape<'a> {
    /// Exactly one `{{ expression }}`: keeps the value's type.
    Expression(Program<'a>),
    /// Text with tags.
    Mixed(Program<'a>),
    /// Text without tags.
    Plain,
}

impl<'a> TemplateShape<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        if !has_holes(text) {
            return Ok(TemplateShape::Plain);
        }
        tags::check(text)?;
        // The inside is a single expression only if it parses as one: `a }} and {{ b` does not, `{'a': {'b': 1}}`
        // does.
        let inner = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        let expression = inner.map(without_trim_marks).and_then(|inner| Program::expression(inner).ok());
        match expression {
            Some(expression) => Ok(TemplateShape::Expression(expression)),
            None => Program::template(text).map(TemplateShape::Mixed),
        }
    }
}

/// Whether a text contains tags.
pub(crate) fn has_holes(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|opener| text.contains(opener))
}

/// Removes the white space control marks `-` and `+` from a tag's inside.
fn without_trim_marks(inner: &str) -> &str {
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    inner.strip_suffix(['-', '+']).unwrap_or(inner)
}

/// Returns the names that a template uses, dotted as far as they are spelled out.
pub(crate) fn names_of_template(text: &str) -> Result<BTreeSet<String>, String> {
    Ok(match TemplateShape::parse(text)? {
        TemplateShape::Plain => BTreeSet::new(),
        TemplateShape::Expression(program) => expression_names(&program).into_iter().collect(),
        TemplateShape::Mixed(program) => template_names(&program).into_iter().collect(),
    })
}

/// Returns the names that a bare expression uses.
pub(crate) fn names_of_expression(text: &str) -> Result<BTreeSet<String>, String> {
    Ok(expression_names(&Program::expression(text)?).into_iter().collect())
}

fn expression_names(program: &Program<'_>) -> HashSet<String> {
    let expression = ENVIRONMENT.compile_expression(program.text());
    expression.map(|expression| expression.undeclared_variables(true)).unwrap_or_default()
}

fn template_names(program: &Program<'_>) -> HashSet<String> {
    let template = ENVIRONMENT.template_from_str(program.text());
    template.map(|template| template.undeclared_variables(true)).unwrap_or_default()
}

/// A bare expression, compiled once for many scopes.
pub(crate) struct Expression<'a>(Program<'a>);

impl<'a> Expression<'a> {
    /// Compiles an expression.
    pub(crate) fn compile(text: &'a str) -> Result<Self, NodeError> {
        Program::expression(text).map(Self).map_err(NodeError::failed)
    }

    /// Returns the expression's value.
    pub(crate) fn value(&self, scope: &View) -> Result<Value, NodeError> {
        let value = meter::metered(|| value_of(&self.0, scope, LARGEST));
        value.map(|(value, _)| value).map_err(|error| within("expression", self.0.text(), error))
    }

    /// Whether the expression holds as a condition.
    pub(crate) fn holds(&self, scope: &View) -> Result<bool, NodeError> {
        let value = meter::metered(|| eval(&self.0, scope));
        value.map(|value| value.is_true()).map_err(|error| within("condition", self.0.text(), error))
    }
}

/// Evaluates a bare expression.
#[cfg(test)]
pub(crate) fn evaluate(expression: &str, scope: &View) -> Result<Value, NodeError> {
    Expression::compile(expression)?.value(scope)
}

/// Evaluates an expression. Returns its typed value and its JSON bytes.
fn value_of(program: &Program<'_>, scope: &View, limit: usize) -> Result<(Value, usize), NodeError> {
    let value = eval(program, scope)?;
    let json = json(&value, limit.min(meter::room())).map_err(|error| unwritten(&error))?;
    let read = serde_json::from_str(&json).map_err(|error| unwritten(&error))?;
    check_numbers(json.as_bytes(), Numbers::Values).map_err(|error| NodeError::failed(error.to_string()))?;
    Ok((read, json.len()))
}

/// Evaluates an expression; never undefined.
fn eval(program: &Program<'_>, scope: &View) -> Result<View, NodeError> {
    let value = program.run(environment(), scope, &mut String::new());
    let value =
        value.map_err(|error| failed(&error, || expression_names(program), scope))?.unwrap_or_default();
    if value.is_undefined() { Err(undefined::error(expression_names(program), scope)) } else { Ok(value) }
}

fn environment() -> &'static Environment<'static> {
    if meter::is_brief() { &BRIEF_ENVIRONMENT } else { &ENVIRONMENT }
}

fn json(value: &View, limit: usize) -> Result<String, serde_json::Error> {
    let mut out = Limited { bytes: Vec::new(), limit };
    serde_json::to_writer(&mut out, value)?;
    // JSON is UTF-8.
    Ok(String::from_utf8(out.bytes).unwrap_or_default())
}

/// The error for a value that cannot be converted to JSON and back.
fn unwritten(error: &serde_json::Error) -> NodeError {
    let text = error.to_string();
    if error.is_io() {
        meter::exceed_brief();
        too_large("the value")
    } else if text.starts_with("recursion limit") {
        too_deep()
    } else {
        NodeError::failed(text)
    }
}

/// Whether a condition holds.
pub(crate) fn holds(condition: &str, scope: &View) -> Result<bool, NodeError> {
    let expression = Expression::compile(condition).map_err(|error| within("condition", condition, error))?;
    expression.holds(scope)
}

/// Adds names to a scope; they hide existing ones.
pub(crate) fn overlay(scope: &View, names: View) -> View {
    // In merged maps, the last one wins.
    minijinja::value::merge_maps([scope.clone(), names])
}

/// Fills every text inside `value`.
pub(crate) fn fill(value: &Value, scope: &View) -> Result<Value, NodeError> {
    meter::metered(|| Filling::new(scope).fill(value))
}

/// Fills one value; limits the bytes that all its templates may still create.
pub(crate) struct Filling<'a> {
    scope: &'a View,
    left: usize,
}

impl<'a> Filling<'a> {
    pub(crate) fn new(scope: &'a View) -> Self {
        Self { scope, left: LARGEST }
    }

    /// Fills a text that stays a text, even if it is a single expression.
    pub(crate) fn fill_as_text(&mut self, text: &str) -> Result<String, NodeError> {
        if !has_holes(text) {
            return Ok(text.to_owned());
        }
        let program = Program::template(text).map_err(NodeError::failed);
        let filled = program.and_then(|program| meter::metered(|| self.render(&program)));
        filled.map_err(|error| within("template", text, error))
    }

    pub(crate) fn fill(&mut self, value: &Value) -> Result<Value, NodeError> {
        Ok(match value {
            Value::String(text) => {
                let filled = meter::metered(|| self.fill_text(text));
                filled.map_err(|error| within("template", text, error))?
            }
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
        let (value, bytes) = match TemplateShape::parse(text).map_err(NodeError::failed)? {
            TemplateShape::Plain => return Ok(Value::String(text.to_owned())),
            TemplateShape::Expression(program) => value_of(&program, self.scope, self.left)?,
            TemplateShape::Mixed(program) => return self.render(&program).map(Value::String),
        };
        self.left = self.left.saturating_sub(bytes);
        Ok(value)
    }

    fn render(&mut self, program: &Program<'_>) -> Result<String, NodeError> {
        let mut text = String::new();
        let run = program.run(environment(), self.scope, &mut text);
        run.map_err(|error| failed(&error, || template_names(program), self.scope))?;
        self.left = self.left.checked_sub(text.len()).ok_or_else(|| too_large("the text"))?;
        Ok(text)
    }
}

/// Adds the failing text to an error.
fn within(what: &str, text: &str, error: NodeError) -> NodeError {
    NodeError { message: format!("{what} {}: {}", quoted(text), error.message), ..error }
}

/// Converts any value to text: strings unchanged, others as JSON.
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

/// Converts an error from a template or an expression that uses these names.
fn failed(error: &minijinja::Error, names: impl FnOnce() -> HashSet<String>, scope: &View) -> NodeError {
    if error.kind() == ErrorKind::OutOfFuel {
        meter::exceed_brief();
    }
    let source =
        std::error::Error::source(error).and_then(|source| source.downcast_ref::<serde_json::Error>());
    if let Some(error) = source {
        return unwritten(error);
    }
    if let Some(error) = meter::excess_error() {
        return error;
    }
    if error.kind() == ErrorKind::UndefinedError {
        return undefined::error(names(), scope);
    }
    NodeError::failed(one_line(error))
}

fn one_line(error: &minijinja::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Shortens a text so that a message fits on a line.
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
    fn invalid_templates_have_one_line_errors() {
        for bad in ["{{ missing }}", "{{ inputs.missing }}", "x{{ missing }}", "{{ 1 + }}", "{% for %}"] {
            let error = text(bad).unwrap_err();
            assert!(!error.message.contains('\n'), "{bad}: {error}");
        }
        assert!(names_of_template("{{ 1 + }}").is_err());
        assert!(names_of_template("{% for %}").is_err());
        assert!(names_of_expression("a == ").is_err());
    }

    #[test]
    fn undefined_names_are_named_in_the_error() {
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
    fn conditions_are_evaluated_by_truthiness() {
        assert!(holds("inputs.n == 3", &scope()).unwrap());
        assert!(!holds("inputs.n > 3", &scope()).unwrap());
        assert!(holds("inputs.missing == 1", &scope()).is_err());
        assert!(holds("inputs.missing", &scope()).is_err(), "a misspelt name does not select else");
        assert!(!holds("inputs.missing is defined", &scope()).unwrap());
    }
}
