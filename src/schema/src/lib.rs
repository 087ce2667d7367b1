//! JSON Schemas from graphs, models and apps: compiled and applied within limits.
//!
//! The authors of these schemas are not trusted. References must be local, patterns must match in linear time, and a
//! check ends after a fixed number of steps.

mod patterns;
mod steps;
mod walk;

use std::sync::Arc;

use jsonschema::{ValidationError, Validator};
use serde_json::Value;
use wire::FieldError;

use patterns::Patterns;
use steps::{CheckUnit, STEP, StepCost, counted, within};
pub use walk::{Bounds, patterns};
use walk::{check_references, check_targets};

/// Maximum problems reported per value.
const MAX_PROBLEMS: usize = 50;

/// Maximum steps to check one value. If a schema refers to itself twice for the same value, each nesting level
/// doubles the work.
const MAX_STEPS: u32 = 2_000_000;

/// Maximum steps to collect a value's problems: the validator keeps all of them before it returns the first.
const MAX_COLLECTING_STEPS: u32 = 2_000;

/// Maximum steps to find the first problem, which contains the problems of all alternatives.
const MAX_FIRST_STEPS: u32 = 20_000;

/// Maximum compiled pattern bytes per schema.
const MAX_BYTES_OF_PATTERNS: usize = 64 << 20;

/// Maximum pattern match steps per checked value. A step takes at most about 0.1 µs.
const MAX_MATCH_STEPS: u32 = 64 << 20;
const MAX_MATCH_STEPS_OF_STRANGERS: u32 = 4 << 20;

/// A compiled schema, ready to check values.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    pattern_bytes: usize,
    match_steps: u32,
}

impl Schema {
    /// Checks a value against a schema that was accepted before. Returns the problems, with pointers below `base`.
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
    /// The reason if the schema is not valid.
    pub fn read(schema: &Value) -> Result<Self, String> {
        Self::build(schema, MAX_BYTES_OF_PATTERNS)
    }

    /// Compiles a self-contained schema: all references are local, and the number and size of its patterns are
    /// bounded.
    ///
    /// # Errors
    /// The reason if the schema is not valid or exceeds the bounds.
    pub fn read_within(schema: &Value, bounds: &Bounds) -> Result<Self, String> {
        bounds.check(schema)?;
        Self::build(schema, bounds.pattern_bytes)
    }

    fn build(schema: &Value, most_pattern_bytes: usize) -> Result<Self, String> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err("it must be an object".to_owned());
        }
        check_targets(schema)?;
        check_references(schema)?;
        let patterns = Arc::new(Patterns::read(schema, most_pattern_bytes)?);
        let (pattern_bytes, name_steps) = (patterns.bytes(), patterns.name_steps());
        // Patterns that match in linear time.
        let options = jsonschema::options().with_pattern_options(patterns::any());
        let options = options.with_keyword(STEP, |_, value, _| Ok(Box::new(StepCost::read(value))));
        let options = options.with_keyword("pattern", move |_, value, _| {
            Ok(Box::new(patterns.get(value).map_err(ValidationError::custom)?))
        });
        let mut counted = counted(schema, name_steps);
        // Sorts keywords by name, so that their order in the schema changes neither errors nor step counts.
        counted.sort_all_objects();
        let validator = options.build(&counted).map_err(|error| error.to_string())?;
        Ok(Self { validator, pattern_bytes, match_steps: MAX_MATCH_STEPS })
    }

    /// Lowers the match limit, for values from strangers.
    #[must_use]
    pub fn for_strangers(self) -> Self {
        Self { match_steps: MAX_MATCH_STEPS_OF_STRANGERS, ..self }
    }

    /// Approximate compiled pattern bytes.
    #[must_use]
    pub fn pattern_bytes(&self) -> usize {
        self.pattern_bytes
    }

    fn within<T>(&self, count: CheckUnit, steps: u32, check: impl FnOnce() -> T) -> Option<T> {
        within(count, steps, self.match_steps, check)
    }

    /// Checks a value. Returns the problems, with pointers below `base`.
    #[must_use]
    pub fn problems(&self, value: &Value, base: &str) -> Vec<FieldError> {
        let problem = |error: ValidationError<'_>| {
            let pointer = format!("{base}{}", error.instance_path());
            // Masked: the value may be large or private.
            FieldError::new(pointer, "schema", error.masked().to_string())
        };
        let whole = |message: &str| vec![FieldError::new(base, "schema", message)];
        match self.within(CheckUnit::Schemas, MAX_STEPS, || self.validator.is_valid(value)) {
            Some(true) => return Vec::new(),
            Some(false) => {}
            None => {
                return whole(
                    "checking the value takes too long: the schema refers to itself too often, or its patterns are too large",
                );
            }
        }
        let all = || self.validator.iter_errors(value).take(MAX_PROBLEMS).map(problem).collect();
        let first = || self.validator.validate(value).err().map(problem).into_iter().collect();
        self.within(CheckUnit::Problems, MAX_COLLECTING_STEPS, all)
            .or_else(|| self.within(CheckUnit::Problems, MAX_FIRST_STEPS, first))
            .unwrap_or_else(|| whole("does not match the schema"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn mismatches_are_named_without_the_value() {
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
    fn a_check_ends_after_a_limited_number_of_references() {
        // Each level in the value doubles the checks of the level below.
        let again = json!({"properties": {"c": {"$ref": "#"}}, "required": ["c"]});
        for how in ["anyOf", "allOf"] {
            let schema = Schema::read(&json!({"type": ["object", "null"], how: [again, again]})).unwrap();
            let mut value = json!(2);
            for _ in 0..60 {
                value = json!({"c": value});
            }
            let problems = schema.problems(&value, "/inputs");
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(!schema.problems(&json!({"c": 2}), "").is_empty(), "afterwards as before");
        }
        // Here each level in the schema doubles the work.
        for (how, leaf) in [("allOf", json!({"type": "number"})), ("anyOf", json!({"type": "string"}))] {
            let problems =
                Schema::read(&doubling(how, 60, &leaf)).unwrap().problems(&json!({"a": 1}), "/inputs");
            assert_eq!((problems.len(), problems[0].pointer.as_str()), (1, "/inputs"));
            assert!(problems[0].message.contains("too long"), "{problems:?}");
        }
    }

    /// Nests `levels` schemas that each apply the next one twice; the last is `leaf`.
    fn doubling(keyword: &str, levels: usize, leaf: &Value) -> Value {
        let level = |number: usize| {
            let next = json!({"$ref": format!("#/$defs/{}", number + 1)});
            (number.to_string(), Map::from_iter([(keyword.to_owned(), json!([next, next]))]).into())
        };
        let mut definitions: Map<String, Value> = (0..levels).map(level).collect();
        definitions.insert(levels.to_string(), leaf.clone());
        json!({"$defs": definitions, "properties": {"a": {"$ref": "#/$defs/0"}}})
    }

    #[test]
    fn long_problem_lists_collapse_into_one_problem() {
        let bounds = Bounds { patterns: 2, pattern_bytes: 8 << 20 };
        let text = json!({"type": "string"});
        let names: Vec<String> = (0..1_500).map(|number| number.to_string()).collect();
        for (leaf, value) in [
            (json!({"allOf": vec![&text; 60]}), json!(1)),
            (json!({"allOf": vec![false; 60]}), json!(1)),
            (json!({"allOf": vec![json!({"items": false}); 60]}), json!(vec![1; 10_000])),
            (json!({"additionalProperties": {"not": true}}), json!({"b": 1})),
            (json!({"required": names}), json!({})),
        ] {
            let schema = doubling("allOf", 60, &leaf);
            assert!(schema.to_string().len() < 16_000);
            let schema = Schema::read_within(&schema, &bounds).unwrap();
            let problems = schema.problems(&json!({"a": value}), "/inputs");
            assert_eq!(problems.len(), 1, "{leaf}");
            assert!(problems[0].pointer.starts_with("/inputs/a"), "{problems:?}");
            assert!(steps::remaining() > 0);
        }
        // The first problem of `anyOf` contains the problems of each alternative.
        let schema = Schema::read(&doubling("anyOf", 14, &json!({"allOf": vec![text; 60]}))).unwrap();
        let problems = schema.problems(&json!({"a": 1}), "/inputs");
        assert_eq!(problems, [FieldError::new("/inputs", "schema", "does not match the schema")]);
        // A few problems are still collected, even among many valid items.
        let schema = Schema::read(&json!({"items": {"required": ["a", "b"]}})).unwrap();
        assert_eq!(schema.problems(&json!([{}, {}]), "").len(), 4);
    }

    #[test]
    fn a_large_value_is_checked() {
        let schema =
            Schema::read(&json!({"items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "number"}}}));
        let schema = schema.unwrap();
        assert!(schema.problems(&json!(vec![1; 150_000]), "").is_empty());
        let mut wrong = vec![json!(1); 150_000];
        wrong[140_000] = json!("x");
        let problems = schema.problems(&json!(wrong), "");
        assert_eq!(problems.len(), 1);
    }

    #[test]
    fn members_of_keywords_without_schemas_do_not_count() {
        let schema = json!({"dependentRequired": {"a": ["b"]}, "properties": {"dependentRequired": {"type": "string"}}});
        let schema = Schema::read(&schema).unwrap();
        assert!(schema.problems(&json!({"a": 1, "b": 2, "dependentRequired": "x"}), "").is_empty());
        assert_eq!(schema.problems(&json!({"a": 1, "dependentRequired": 1}), "").len(), 2);
        let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]},
            "$ref": "#/definitions/c", "definitions": {"c": {"type": "object"}}});
        let schema = Schema::read(&old).unwrap();
        assert_eq!(schema.problems(&json!([]), "").len(), 1);
    }

    #[test]
    fn normalised_references_keep_their_meaning() {
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
        let schema = Schema::read(&doubling("allOf", 40, &json!({"type": "string"}))).unwrap();
        assert!(schema.problems(&json!({}), "").is_empty());
        assert!(!schema.problems(&json!({"a": "x"}), "")[0].message.is_empty());
    }

    #[test]
    fn a_schema_of_a_manifest_has_bounds() {
        let bounds = Bounds { patterns: 2, pattern_bytes: 8 << 20 };
        let read = |schema: Value| Schema::read_within(&schema, &bounds).map(drop);
        let pattern = json!({"pattern": "^[a-z]+$"});
        assert_eq!(
            read(json!({"properties": {"a": pattern, "b": pattern, "pattern": {"type": "string"}}})),
            Ok(())
        );
        assert!(read(json!({"properties": {"a": pattern, "b": pattern, "c": pattern}})).is_err());
        assert!(read(json!({"patternProperties": {"a": true, "b": true, "c": true}})).is_err());
        assert!(read(json!({"pattern": "\\p{L}{900}"})).is_err());
        assert_eq!(read(json!({"$defs": {"a": true}, "$ref": "#/$defs/a"})), Ok(()));
        for reference in ["https://json-schema.org/draft/2020-12/schema", "other.json", "/a", ""] {
            assert!(read(json!({"properties": {"a": {"$ref": reference}}})).is_err(), "{reference}");
            assert_eq!(read(json!({"const": {"$ref": reference}})), Ok(()), "{reference}");
        }
    }

    #[test]
    fn references_lead_only_to_checked_schemas() {
        let bounds = Bounds { patterns: 2, pattern_bytes: 8 << 20 };
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
            // These members are names here but would be keywords in a schema.
            (json!({"properties": {"pattern": {"type": "string"}}}), "#/properties"),
            (json!({"$defs": {"a": true}}), "#/$defs/b"),
            (json!({"$defs": {"a": {"$anchor": "a"}}}), "#a"),
            (json!({"const": hidden}), "#/%63onst"),
            (json!({"dependentRequired": {"pattern": ["a"]}}), "#/dependentRequired"),
            (json!({"$defs": {"%3C": true}}), "#/$defs/%3C"),
            (json!({"$defs": {"\u{fffd}": true}}), "#/$defs/%FF"),
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
            (json!({"$defs": {"A<string>": {"type": "string"}}}), "#/$defs/A%3Cstring%3E"),
            (json!({"$defs": {"%3C": {"type": "string"}}}), "#/$defs/%253C"),
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
    fn references_lead_only_to_schemas_with_counted_steps() {
        let hidden = json!({"allOf": vec![json!({"items": {"type": "string"}}); 50]});
        for (place, reference) in [
            (json!({"const": hidden}), "#/const"),
            (json!({"enum": [1, hidden]}), "#/enum/1"),
            (json!({"default": {"a": hidden}}), "#/default/a"),
            (json!({"examples": [hidden]}), "#/%65xamples/0"),
            (json!({"properties": {"allOf": hidden}}), "#/properties"),
            (json!({"$id": "https://a.example/b", "const": hidden}), "https://a.example/b#/const"),
            (
                json!({"$defs": {"a": {"$id": "https://a.example/b", "const": hidden}}}),
                "https://a.example/b#/const",
            ),
            (json!({"$defs": {"a": {"$id": "b", "const": hidden, "not": {"$ref": "#/const"}}}}), "#/$defs/a"),
        ] {
            let mut schema = place;
            schema["items"] = json!({"$ref": reference});
            let why = Schema::read(&schema).map(drop).unwrap_err();
            assert!(why.ends_with("does not lead to a schema"), "{schema}: {why}");
        }
        for (place, reference) in [
            (json!({"x": {"type": "string"}}), "#/x"),
            (json!({"components": {"schemas": {"A": {"type": "string"}}}}), "#/components/schemas/A"),
            (json!({"$defs": {"const": {"type": "string"}}}), "#/$defs/const"),
            (json!({"$defs": {"a": {"$anchor": "a", "type": "string"}}}), "#a"),
            (
                json!({"$defs": {"a": {"$id": "https://a.example/b", "$defs": {"c": true}}}}),
                "https://a.example/b#/$defs/c",
            ),
        ] {
            let mut schema = place;
            schema["items"] = json!({"$ref": reference});
            assert!(Schema::read(&schema).is_ok(), "{schema}");
        }
        // Too many of both are refused before any lookup.
        let many: Map<String, Value> = (0..400)
            .map(|n| {
                (n.to_string(), json!({"$id": format!("https://a.example/{n}"), "$ref": format!("#/x/{n}")}))
            })
            .collect();
        let why = Schema::read(&json!({"$defs": many})).map(drop).unwrap_err();
        assert_eq!(why, "it has too many '$id' and '$ref'");
    }

    #[test]
    fn a_chain_of_references_has_a_maximum_length() {
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
        // The same chain, last reference first.
        let mut turned = chain(129);
        turned["allOf"] =
            (0..129).rev().map(|number| json!({"items": {"$ref": format!("#/$defs/{number:04}")}})).collect();
        assert!(Schema::read(&turned).is_err());
    }

    #[test]
    fn invalid_schemas_are_rejected() {
        for bad in [
            json!(3),
            json!({"type": "strnig"}),
            json!({"pattern": "("}),
            json!({"properties": {"a": {"$ref": "https://example.com/schema.json"}}}),
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"$defs": {"a<b>": {"$ref": "#/$defs/a%3Cb%3E"}}}),
            json!({"$defs": {"a": {"$ref": "#/$defs/%61"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}),
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}},
                   "properties": {"x": {"$ref": "#/$defs/a"}}}),
            json!({"pattern": "(a+)+(?!b)"}),
        ] {
            assert!(Schema::read(&bad).is_err(), "{bad}");
        }
        // A recursive tree is valid: each reference goes one level down.
        let tree = json!({"properties": {"child": {"$ref": "#"}}, "type": "object"});
        let tree = Schema::read(&tree).unwrap();
        assert!(tree.problems(&json!({"child": {"child": {}}}), "").is_empty());
        assert_eq!(tree.problems(&json!({"child": {"child": 1}}), "").len(), 1);
    }
}
