//! Parses and validates run requests. Pure.

use serde_json::{Map, Value};
use wire::{CreateRun, FieldError};

use crate::http::fields::Fields;

/// Maximum time limit in seconds: a month.
const LONGEST: f64 = 31.0 * 24.0 * 3_600.0;

/// `POST /api/workflows/{ref}/runs`, without validation by the graph's `inputs` schema.
pub(super) fn create_run(body: &Map<String, Value>) -> Result<CreateRun, Vec<FieldError>> {
    let mut fields = Fields::new(body);
    let inputs = fields.object("inputs").cloned().map(Value::Object);
    let version = fields.stands("version").filter(|version| !version.is_null());
    let number = version.and_then(Value::as_i64).and_then(|number| i32::try_from(number).ok());
    let number = number.filter(|number| *number > 0);
    if version.is_some() && number.is_none() {
        fields.note(FieldError::new("/version", "range", "must be a whole number from 1"));
    }
    let config = fields.object("config").cloned();
    let timeout = fields.stands("timeout_seconds").filter(|timeout| !timeout.is_null());
    let seconds = timeout.and_then(Value::as_f64).filter(|seconds| *seconds > 0.0 && *seconds <= LONGEST);
    if timeout.is_some() && seconds.is_none() {
        let message = format!("must be a number of seconds, more than 0 and at most {LONGEST}");
        fields.note(FieldError::new("/timeout_seconds", "range", message));
    }
    let metadata = fields.object("metadata").cloned();
    let problems = fields.finish();
    let wanted = CreateRun { inputs, version: number, config, timeout_seconds: seconds, metadata };
    if problems.is_empty() { Ok(wanted) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> Result<CreateRun, Vec<FieldError>> {
        create_run(body.as_object().unwrap())
    }

    #[test]
    fn a_valid_request_is_parsed() {
        assert_eq!(read(&json!({})), Ok(CreateRun::default()));
        let body =
            json!({"inputs": {"a": 1}, "version": 2, "config": {}, "timeout_seconds": 0.5, "metadata": null});
        let request = read(&body).unwrap();
        assert_eq!((request.version, request.timeout_seconds), (Some(2), Some(0.5)));
        assert_eq!((request.inputs, request.metadata), (Some(json!({"a": 1})), None));
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let body = json!({"inputs": [], "version": 0, "config": 1, "timeout_seconds": -1, "metadata": "x", "input": 1});
        let problems = read(&body).unwrap_err();
        let lines: Vec<String> =
            problems.iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect();
        assert_eq!(
            lines,
            [
                "/inputs type",
                "/version range",
                "/config type",
                "/timeout_seconds range",
                "/metadata type",
                "/input unknown_field"
            ]
        );
        for version in [json!(1.5), json!("1"), json!(1e10), json!([])] {
            assert!(read(&json!({"version": version})).is_err(), "{version}");
        }
        for timeout in [json!(0), json!("1"), json!(1e9), json!({})] {
            assert!(read(&json!({"timeout_seconds": timeout})).is_err(), "{timeout}");
        }
    }
}
