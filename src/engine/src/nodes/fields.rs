//! Readers for fields that several node types share.

use serde_json::Value;
use wire::FieldError;

use crate::NodeError;
use crate::channel::kind;
use crate::check::Check;
use crate::graph::fields::Fields;
use crate::template::has_holes;

/// Reads a required text template.
pub(crate) fn text_field(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let text = fields.text(name, &mut check.problems)?;
    check.template(text, &fields.at(name)).then(|| Value::String(text.to_owned()))
}

/// Reads an optional text template.
pub(crate) fn optional_text_field(
    fields: &mut Fields<'_>,
    name: &'static str,
    check: &mut Check,
) -> Option<Value> {
    if fields.value(name).is_some() { text_field(fields, name, check) } else { None }
}

/// Reads an optional value with templates inside.
pub(crate) fn optional_field(
    fields: &mut Fields<'_>,
    name: &'static str,
    check: &mut Check,
) -> Option<Value> {
    let value = fields.value(name)?;
    check.templates(value, &fields.at(name)).then(|| value.clone())
}

/// Reads an external id: an integer, or a text template.
pub(crate) fn id_field(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    match fields.value(name) {
        Some(id) if id.is_i64() => Some(id.clone()),
        _ => text_field(fields, name, check),
    }
}

/// As [`id_field`], but optional.
pub(crate) fn optional_id_field(
    fields: &mut Fields<'_>,
    name: &'static str,
    check: &mut Check,
) -> Option<Value> {
    if fields.value(name).is_some() { id_field(fields, name, check) } else { None }
}

/// Reads a required value with templates inside.
pub(crate) fn value_field(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let value = fields.required(name, &mut check.problems)?;
    check.templates(value, &fields.at(name)).then(|| value.clone())
}

/// Reads a required list, or a template that yields one.
pub(crate) fn list_field(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let good = match fields.required(name, &mut check.problems)? {
        Value::Array(_) => true,
        Value::String(text) => has_holes(text),
        _ => false,
    };
    if !good {
        let problem = FieldError::new(fields.at(name), "type", "must be a list, or a template of one");
        check.note(problem.suggest(format!("\"{name}\": \"{{{{ inputs.list }}}}\"")));
        return None;
    }
    value_field(fields, name, check)
}

/// Reads a required expression; `locals` are additional names that it may use.
pub(crate) fn expression_field(
    fields: &mut Fields<'_>,
    name: &'static str,
    locals: &[&str],
    check: &mut Check,
) -> Option<String> {
    let text = fields.text(name, &mut check.problems)?;
    check.expression(text, &fields.at(name), locals).then(|| text.to_owned())
}

/// Returns a list's entries; fails for other values.
pub(crate) fn list(items: Value) -> Result<Vec<Value>, NodeError> {
    match items {
        Value::Array(items) => Ok(items),
        other => Err(NodeError::failed(format!("items must be a list, not {}", kind(&other)))),
    }
}
