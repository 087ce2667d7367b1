//! JSON Schemas from graphs, models and apps: compiled and applied within limits.
//!
//! Who writes such a schema is not trusted. References are local, patterns are of the linear kind, and
//! checking a value ends after a number of references.

mod walk;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::{Keyword, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};
use wire::FieldError;

pub use walk::{Bounds, patterns};
use walk::{NAMED, REFERENCES, VALUES, circles};

/// Most problems of one value.
const MAX_PROBLEMS: usize = 50;

/// Most references that are followed while one value is checked: a schema that refers to itself twice at one place takes
/// twice as long for each level of the value.
const MAX_STEPS: u32 = 200_000;

/// A schema that is ready to check values.
#[derive(Debug)]
pub struct Schema(Validator);

impl Schema {
    /// Checks a value with a schema that was accepted before. Returns the problems, with pointers below `base`.
    #[must_use]
    pub fn problems_of(schema: &Value, value: &Value, base: &str) -> Vec<FieldError> {
        match Self::read(schema) {
            Ok(schema) => schema.problems(value, base),
            Err(message) => vec![FieldError::new(base, "schema", format!("is not a JSON Schema: {message}"))],
        }
    }

    /// Compiles a schema.
    ///
    /// # Errors
    /// Why it is not a valid schema.
    pub fn read(schema: &Value) -> Result<Self, String> {
        Self::build(schema, None)
    }

    /// Compiles a schema that stands alone: every reference is local, and its patterns take a bounded amount of memory.
    ///
    /// # Errors
    /// Why it is not such a schema.
    pub fn read_within(schema: &Value, bounds: &Bounds) -> Result<Self, String> {
        bounds.check(schema)?;
        Self::build(schema, Some(bounds.pattern_bytes))
    }

    fn build(schema: &Value, pattern_bytes: Option<usize>) -> Result<Self, String> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err("it must be an object".to_owned());
        }
        circles(schema)?;
        // Patterns of the linear kind.
        let patterns = match pattern_bytes {
            Some(limit) => PatternOptions::regex().size_limit(limit),
            None => PatternOptions::regex(),
        };
        let options = jsonschema::options().with_pattern_options(patterns);
        let options = options.with_keyword(STEP, |_, _, _| Ok(Box::new(Step)));
        options.build(&counted(schema)).map(Self).map_err(|error| error.to_string())
    }

    /// Checks a value. Returns the problems, with pointers below `base`.
    #[must_use]
    pub fn problems(&self, value: &Value, base: &str) -> Vec<FieldError> {
        let problem = |error: ValidationError<'_>| {
            let pointer = format!("{base}{}", error.instance_path());
            // The value itself may be large, or private.
            FieldError::new(pointer, "schema", error.masked().to_string())
        };
        REMAINING.set(MAX_STEPS);
        let checked = catch_unwind(AssertUnwindSafe(|| {
            self.0.iter_errors(value).take(MAX_PROBLEMS).map(problem).collect()
        }));
        checked.unwrap_or_else(|why| {
            if !why.is::<TooLong>() {
                resume_unwind(why);
            }
            let message = "checking the value takes too long: the schema refers to itself too often";
            vec![FieldError::new(base, "schema", message)]
        })
    }
}

/// The keyword that counts: each reference that is followed is a step.
const STEP: &str = "x-callboard-step";

thread_local! {
    /// Steps that remain for the current check on this thread.
    static REMAINING: Cell<u32> = const { Cell::new(0) };
}

/// The panic that ends a check with too many steps: the validator offers no other way to end it.
struct TooLong;

struct Step;

impl Step {
    fn count() {
        match REMAINING.get().checked_sub(1) {
            Some(remaining) => REMAINING.set(remaining),
            None => resume_unwind(Box::new(TooLong)),
        }
    }
}

impl<'i> Keyword<'i> for Step {
    fn validate(&self, _instance: &'i Value) -> Result<(), ValidationError<'i>> {
        Self::count();
        Ok(())
    }

    fn is_valid(&self, _instance: &'i Value) -> bool {
        Self::count();
        true
    }
}

/// The same schema, with a step before each reference.
fn counted(schema: &Value) -> Value {
    let members = match schema {
        Value::Array(items) => return Value::Array(items.iter().map(counted).collect()),
        Value::Object(members) => members,
        other => return other.clone(),
    };
    let mut counting: Map<String, Value> = members
        .iter()
        .map(|(keyword, value)| {
            let value = match (keyword.as_str(), value) {
                (keyword, value) if VALUES.contains(&keyword) => value.clone(),
                (keyword, Value::Object(named)) if NAMED.contains(&keyword) => {
                    named.iter().map(|(name, schema)| (name.clone(), counted(schema))).collect()
                }
                (_, value) => counted(value),
            };
            (keyword.clone(), value)
        })
        .collect();
    let taken = REFERENCES.into_iter().filter(|keyword| members.get(*keyword).is_some_and(Value::is_string));
    let references: Map<String, Value> = taken.filter_map(|keyword| counting.remove_entry(keyword)).collect();
    if !references.is_empty() {
        // At the end of the list: references may name its other entries by their numbers.
        let all = counting.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(all) = all {
            all.extend([json!({STEP: true}), Value::Object(references)]);
        }
    }
    Value::Object(counting)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn checking_a_value_ends_after_a_number_of_references() {
        // Each level of the value is checked twice as often as the one above it.
        let again = json!({"properties": {"c": {"$ref": "#"}}, "required": ["c"]});
        for how in ["anyOf", "allOf"] {
            let schema = Schema::read(&json!({"type": ["object", "null"], how: [again, again]})).unwrap();
            let mut value = json!(2);
            for _ in 0..60 {
                value = json!({"c": value});
            }
            let problems = schema.problems(&value, "/inputs");
            assert_eq!((problems.len(), problems[0].pointer.as_str()), (1, "/inputs"));
            assert!(problems[0].message.contains("too long"), "{problems:?}");
            assert!(!schema.problems(&json!({"c": 2}), "").is_empty(), "afterwards as before");
        }
    }

    #[test]
    fn references_mean_what_they_meant() {
        let schema = json!({
            "$defs": {"name": {"type": "string"}, "short": {"allOf": [{"maxLength": 3}], "$ref": "#/$defs/name"}},
            "properties": {
                "a": {"$ref": "#/$defs/short"},
                "b": {"$ref": "#/$defs/short/allOf/0", "minLength": 2},
                "$ref": {"$ref": "#/$defs/name"},
                "c": {"const": {"$ref": "#/$defs/name"}},
            },
            "unevaluatedProperties": false,
        });
        let schema = Schema::read(&schema).unwrap();
        let fits = |value: Value| schema.problems(&value, "").is_empty();
        assert!(fits(json!({"a": "abc", "b": "ab", "$ref": "x", "c": {"$ref": "#/$defs/name"}})));
        for wrong in [
            json!({"a": "abcd"}),
            json!({"a": 1}),
            json!({"b": "a"}),
            json!({"b": "abcd"}),
            json!({"$ref": 1}),
            json!({"c": {}}),
            json!({"d": 1}),
        ] {
            assert!(!fits(wrong.clone()), "{wrong}");
        }
    }

    #[test]
    fn a_chain_of_references_that_doubles_compiles_quickly() {
        let level = |number: usize| {
            let next = json!({"$ref": format!("#/$defs/{}", number + 1)});
            (number.to_string(), json!({"allOf": [next, next]}))
        };
        let mut levels: Map<String, Value> = (0..40).map(level).collect();
        levels.insert("40".to_owned(), json!({"type": "string"}));
        let schema =
            Schema::read(&json!({"$defs": levels, "properties": {"a": {"$ref": "#/$defs/0"}}})).unwrap();
        assert!(schema.problems(&json!({}), "").is_empty());
        assert!(!schema.problems(&json!({"a": "x"}), "")[0].message.is_empty());
    }

    #[test]
    fn a_schema_of_a_manifest_has_bounds() {
        let bounds = Bounds { patterns: 2, pattern_bytes: 1 << 16 };
        let read = |schema: Value| Schema::read_within(&schema, &bounds).map(drop);
        let pattern = json!({"pattern": "^[a-z]+$"});
        assert_eq!(
            read(json!({"properties": {"a": pattern, "b": pattern, "pattern": {"type": "string"}}})),
            Ok(())
        );
        assert!(read(json!({"properties": {"a": pattern, "b": pattern, "c": pattern}})).is_err());
        assert!(read(json!({"patternProperties": {"a": true, "b": true, "c": true}})).is_err());
        assert!(read(json!({"pattern": "\\w{900}"})).is_err());
        assert_eq!(read(json!({"$defs": {"a": true}, "$ref": "#/$defs/a"})), Ok(()));
        for reference in ["https://json-schema.org/draft/2020-12/schema", "other.json", "/a", ""] {
            assert!(read(json!({"properties": {"a": {"$ref": reference}}})).is_err(), "{reference}");
            assert_eq!(read(json!({"const": {"$ref": reference}})), Ok(()), "{reference}");
        }
    }

    #[test]
    fn a_reference_leads_to_a_place_that_was_checked_as_a_schema() {
        let bounds = Bounds { patterns: 2, pattern_bytes: 1 << 16 };
        let read = |schema: Value| Schema::read_within(&schema, &bounds).map(drop);
        let hidden = json!({"allOf": [{"pattern": "a"}, {"pattern": "b"}, {"pattern": "c"}]});
        for (place, reference) in [
            (json!({"const": hidden}), "#/const"),
            (json!({"const": {"a": hidden}}), "#/const/a"),
            (json!({"enum": [hidden]}), "#/enum/0"),
            (json!({"default": hidden}), "#/default"),
            (json!({"examples": [1, hidden]}), "#/examples/1"),
            (json!({"x": {"const": hidden}}), "#/x/const"),
            (json!({"properties": {"allOf": {"const": hidden}}}), "#/properties/allOf/const"),
            // Members are names here and would be keywords there.
            (json!({"properties": {"pattern": {"type": "string"}}}), "#/properties"),
            (json!({"$defs": {"a": true}}), "#/$defs/b"),
            (json!({"$defs": {"a": {"$anchor": "a"}}}), "#a"),
            (json!({"const": hidden}), "#/%63onst"),
        ] {
            let mut schema = place;
            schema["items"] = json!({"$ref": reference});
            assert!(read(schema.clone()).is_err(), "{schema}");
        }
        for (place, reference) in [
            (json!({"x": {"type": "string"}}), "#/x"),
            (json!({"$defs": {"const": {"type": "string"}}}), "#/$defs/const"),
            (json!({"allOf": [true, {"type": "array"}]}), "#/allOf/1"),
            (json!({"$defs": {"a/b~c": {"type": "string"}}}), "#/$defs/a~1b~0c"),
            (
                json!({"$id": "https://example.com/a", "$schema": "https://json-schema.org/draft/2020-12/schema"}),
                "#",
            ),
        ] {
            let mut schema = place;
            schema["items"] = json!({"$ref": reference});
            assert_eq!(read(schema.clone()), Ok(()), "{schema}");
        }
        for inner in [json!({"$id": "a"}), json!({"$schema": "http://json-schema.org/draft-04/schema#"})] {
            assert!(read(json!({"items": inner})).is_err(), "{inner}");
        }
        let old = json!({"$schema": "http://json-schema.org/draft-04/schema#", "items": {"id": "a"}});
        assert!(read(old).is_err());
        assert_eq!(read(json!({"x": {"id": "a"}, "properties": {"$id": {"type": "string"}}})), Ok(()));
    }

    #[test]
    fn a_chain_of_references_has_a_length() {
        let chain = |length: usize| {
            let level = |number: usize| {
                let next = json!({"$ref": format!("#/$defs/{:04}", number + 1)});
                (format!("{number:04}"), if number + 1 < length { next } else { json!({"type": "string"}) })
            };
            let levels: Map<String, Value> = (0..length).map(level).collect();
            json!({"$defs": levels, "properties": {"a": {"$ref": "#/$defs/0000"}}})
        };
        let schema = Schema::read(&chain(128)).unwrap();
        assert_eq!(schema.problems(&json!({"a": 1}), "").len(), 1);
        for length in [129, 10_000] {
            let why = Schema::read(&chain(length)).map(drop).unwrap_err();
            assert!(why.contains("128 references"), "{why}");
        }
        // The last one first.
        let mut turned = chain(129);
        turned["allOf"] =
            (0..129).rev().map(|number| json!({"items": {"$ref": format!("#/$defs/{number:04}")}})).collect();
        assert!(Schema::read(&turned).is_err());
    }

    #[test]
    fn invalid_schemas_are_refused() {
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
