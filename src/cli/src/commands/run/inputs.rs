//! A run's inputs, from the command line and from a file.

use std::io::Read;
use std::path::Path;

use kernel::json::{self, Numbers};
use serde_json::{Map, Value};

use crate::options::ServiceSession;
use crate::output::CommandError;

/// Inputs, and values among them that may be meant as text although they parse as another type.
#[derive(Debug)]
pub(in crate::commands) struct Inputs {
    values: Map<String, Value>,
    /// Key and text.
    unsure: Vec<(String, String)>,
}

/// Reads both sources; a pair takes precedence over the file.
pub(in crate::commands) fn read(pairs: &[String], file: Option<&Path>) -> Result<Inputs, CommandError> {
    let mut values = file.map(object).transpose()?.unwrap_or_default();
    let mut unsure = Vec::new();
    for pair in pairs {
        let Some((key, text)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(CommandError::usage(format!("--input `{pair}`: write it as key=value")));
        };
        unsure.retain(|(other, _)| other != key);
        let value = json::read(text, Numbers::Values).unwrap_or_else(|_| Value::String(text.to_owned()));
        if !value.is_string() {
            unsure.push((key.to_owned(), text.to_owned()));
        }
        values.insert(key.to_owned(), value);
    }
    Ok(Inputs { values, unsure })
}

fn object(path: &Path) -> Result<Map<String, Value>, CommandError> {
    let (name, text) = if path.as_os_str() == "-" {
        let mut text = String::new();
        ("standard input".to_owned(), std::io::stdin().lock().read_to_string(&mut text).map(|_| text))
    } else {
        (path.display().to_string(), std::fs::read_to_string(path))
    };
    let text = text.map_err(|error| CommandError::usage(format!("{name} cannot be read: {error}")))?;
    match json::read(&text, Numbers::Values) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(CommandError::usage(format!("{name} must hold a JSON object of inputs"))),
        Err(error) => Err(CommandError::usage(format!("{name} cannot be read: {error}"))),
    }
}

impl Inputs {
    /// Returns the inputs, with text where the graph requires it: for a text input, `--input zip=8010` is not a number.
    pub(in crate::commands) async fn fit(
        mut self,
        session: &ServiceSession,
        workflow: &str,
        version: Option<i32>,
    ) -> Result<Value, CommandError> {
        if !self.unsure.is_empty() {
            let failed = |error| CommandError::from(session.complaint(error).about(workflow));
            let number = match version {
                Some(number) => Some(number),
                None => session.client.workflow(workflow).await.map_err(failed)?.live_version,
            };
            // Without a version, starting the run reports the problem.
            if let Some(number) = number {
                let version = session.client.version(workflow, number).await.map_err(failed)?;
                self.as_texts(&version.graph);
            }
        }
        Ok(Value::Object(self.values))
    }

    fn as_texts(&mut self, graph: &Value) {
        for (key, text) in &self.unsure {
            let wanted =
                graph.get("inputs").and_then(|schema| schema.get("properties")?.get(key)?.get("type"));
            if wanted.and_then(Value::as_str) == Some("string") {
                self.values.insert(key.clone(), Value::String(text.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pairs(pairs: &[&str]) -> Result<Inputs, CommandError> {
        read(&pairs.iter().map(|&pair| pair.to_owned()).collect::<Vec<_>>(), None)
    }

    #[test]
    fn a_value_is_parsed_as_json_if_possible_and_the_last_one_wins() {
        let inputs = pairs(&["a=1", "b=x=y", "c={\"d\":[true]}", "e=", "f=\"7\"", "a=007"]).unwrap();
        let values = json!({"a": "007", "b": "x=y", "c": {"d": [true]}, "e": "", "f": "7"});
        assert_eq!(Value::Object(inputs.values), values);
        assert_eq!(inputs.unsure, [("c".to_owned(), "{\"d\":[true]}".to_owned())]);
        for bad in ["a", "=1"] {
            assert!(pairs(&[bad]).is_err());
        }
    }

    #[test]
    fn inputs_declared_as_strings_stay_text() {
        let mut inputs = pairs(&["zip=8010", "count=3"]).unwrap();
        inputs.as_texts(
            &json!({"inputs": {"properties": {"zip": {"type": "string"}, "count": {"type": "integer"}}}}),
        );
        assert_eq!(Value::Object(inputs.values), json!({"zip": "8010", "count": 3}));
    }
}
