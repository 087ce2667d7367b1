//! JSON Schemas in graphs: for inputs and model answers.

use serde_json::Value;
use wire::FieldError;

pub(crate) use ::schema::Schema;

use crate::check::Check;

/// Compiles a schema and reports problems.
pub(crate) fn compile(schema: &Value, pointer: &str, check: &mut Check) -> Option<Schema> {
    match Schema::read(schema) {
        Ok(schema) => Some(schema),
        Err(message) => {
            let problem = FieldError::new(pointer, "schema", format!("is not a JSON Schema: {message}"));
            check.note(problem.suggest(r#"{"type": "object", "properties": {…}, "required": […]}"#));
            None
        }
    }
}
