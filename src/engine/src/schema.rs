//! JSON Schemas: of a graph's inputs and of a model's answer.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use wire::FieldError;

use crate::Problems;
use crate::check::Check;

/// Most problems that one value is answered with.
const MOST_PROBLEMS: usize = 50;

/// A schema that is ready to check values.
#[derive(Debug)]
pub(crate) struct Schema(Validator);

impl Schema {
    /// Compiles a schema; a problem is noted.
    pub(crate) fn compile(schema: &Value, pointer: &str, check: &mut Check) -> Option<Self> {
        match Self::read(schema) {
            Ok(schema) => Some(schema),
            Err(message) => {
                let problem = FieldError::new(pointer, "schema", format!("is no JSON Schema: {message}"));
                check.note(problem.suggest(r#"{"type": "object", "properties": {…}, "required": […]}"#));
                None
            }
        }
    }

    fn read(schema: &Value) -> Result<Self, String> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err("it must be an object".to_owned());
        }
        if let Some(reference) = circle(schema) {
            return Err(format!("'{reference}' leads to itself"));
        }
        // Patterns of the linear kind: a schema may come from anybody who may save a graph.
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        options.build(schema).map(Self).map_err(|error| error.to_string())
    }

    /// What the schema has against a value, with pointers below `base`.
    pub(crate) fn problems(&self, value: &Value, base: &str) -> Problems {
        let errors = self.0.iter_errors(value).take(MOST_PROBLEMS);
        errors
            .map(|error| {
                let pointer = format!("{base}{}", error.instance_path());
                // The value itself may be large, or nobody else's business.
                FieldError::new(pointer, "schema", error.masked().to_string())
            })
            .collect()
    }
}

/// A reference that leads back to itself without going down into the value: checking it would never end.
fn circle(schema: &Value) -> Option<String> {
    /// Where a schema applies to the same value as the one around it.
    const SAME_VALUE: [&str; 8] =
        ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

    fn walk<'a>(root: &'a Value, schema: &'a Value, path: &mut Vec<&'a str>) -> Option<String> {
        let members = schema.as_object()?;
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(reference) = members.get(keyword).and_then(Value::as_str) else { continue };
            let Some(pointer) = reference.strip_prefix('#') else { continue };
            if path.contains(&reference) {
                return Some(reference.to_owned());
            }
            if let Some(target) = root.pointer(pointer) {
                path.push(reference);
                let found = walk(root, target, path);
                path.pop();
                if found.is_some() {
                    return found;
                }
            }
        }
        for (keyword, inner) in members.iter().filter(|(keyword, _)| SAME_VALUE.contains(&keyword.as_str())) {
            let inner: Vec<&Value> = match inner {
                Value::Array(list) => list.iter().collect(),
                Value::Object(map) if keyword == "dependentSchemas" => map.values().collect(),
                other => vec![other],
            };
            if let Some(found) = inner.into_iter().find_map(|schema| walk(root, schema, path)) {
                return Some(found);
            }
        }
        None
    }

    fn every<'a>(root: &'a Value, value: &'a Value) -> Option<String> {
        let inner: Box<dyn Iterator<Item = &Value>> = match value {
            Value::Object(members) => Box::new(members.values()),
            Value::Array(list) => Box::new(list.iter()),
            _ => return None,
        };
        walk(root, value, &mut Vec::new()).or_else(|| inner.into_iter().find_map(|inner| every(root, inner)))
    }

    every(schema, schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_fit_is_named_without_the_value() {
        let schema = Schema::read(&json!({
            "type": "object", "required": ["order"],
            "properties": {"order": {"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"}, "n": {"maximum": 3}},
        }));
        let schema = schema.unwrap();
        assert!(schema.problems(&json!({"order": "AB12"}), "/inputs").is_empty());
        let problems = schema.problems(&json!({"order": "secret", "n": 4}), "/inputs");
        let pointers: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(pointers.len(), 2);
        assert!(pointers.contains(&"/inputs/order") && pointers.contains(&"/inputs/n"));
        assert!(problems.iter().all(|problem| !problem.message.contains("secret")));
        assert!(schema.problems(&json!({}), "")[0].message.contains("order"));
    }

    #[test]
    fn checking_a_value_comes_to_an_end() {
        // Each level of the value is checked twice as often as the one above it.
        let again = json!({"properties": {"c": {"$ref": "#"}}, "required": ["c"]});
        let schema = Schema::read(&json!({"anyOf": [again, again, {"const": 1}]})).unwrap();
        let mut value = json!(2);
        for _ in 0..60 {
            value = json!({"c": value});
        }
        let problems = schema.problems(&value, "/inputs");
        assert_eq!(problems.len(), 1);
        assert!(problems[0].message.contains("too long"), "{problems:?}");
        assert_eq!(schema.problems(&json!({"c": 2}), "").len(), 1, "afterwards as before");
        assert!(schema.problems(&json!({"c": 1}), "").is_empty());
    }

    #[test]
    fn schemas_that_are_none_are_refused() {
        for bad in [
            json!(3),
            json!({"type": "strnig"}),
            json!({"pattern": "("}),
            json!({"properties": {"a": {"$ref": "https://example.com/schema.json"}}}),
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}},
                   "properties": {"x": {"$ref": "#/$defs/a"}}}),
            json!({"pattern": "(a+)+(?!b)"}),
        ] {
            assert!(Schema::read(&bad).is_err(), "{bad}");
        }
        // A tree of itself is fine: each step goes down.
        let tree = json!({"properties": {"child": {"$ref": "#"}}, "type": "object"});
        let tree = Schema::read(&tree).unwrap();
        assert!(tree.problems(&json!({"child": {"child": {}}}), "").is_empty());
        assert_eq!(tree.problems(&json!({"child": {"child": 1}}), "").len(), 1);
    }
}
