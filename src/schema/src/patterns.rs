//! Patterns: compiled size and match cost.
//!
//! A match takes linear time, but the work per input byte grows with the pattern: a few KiB of input and a short
//! pattern with large repetitions take seconds. So compiled sizes are measured, summed per schema, and charged for
//! each match.

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonschema::{Keyword, PatternOptions, Regex, ValidationError, Validator};
use serde_json::{Map, Value, json};

use crate::steps::count_match;
use crate::walk::each;

/// Size classes in bytes. A compiled pattern counts as the smallest class that fits; a larger pattern is refused.
const SIZES: [usize; 14] = [
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
    8 << 20,
    LARGEST,
];
const LARGEST: usize = 16 << 20;
/// Maximum total bytes of `patternProperties` names, each occurrence counted: their matches are charged only at
/// references.
const MAX_NAME_BYTES: usize = 64 << 10;
/// Compiled pattern bytes that cost one step per input byte: about 0.1 µs, measured without a cached automaton.
const BYTES_OF_STEP: usize = 2 << 10;
/// Maximum cached automaton bytes per pattern and thread. Without a cache, a match takes longer.
const AUTOMATON_BYTES: usize = 64 << 10;
/// Maximum pattern characters shown in a message.
const SHOWN: usize = 80;

/// Options that compile a pattern to at most `bytes` bytes.
fn options(bytes: usize) -> PatternOptions<Regex> {
    PatternOptions::regex().size_limit(bytes).dfa_size_limit(AUTOMATON_BYTES)
}

/// Options for patterns whose size is already checked.
pub(crate) fn any() -> PatternOptions<Regex> {
    options(LARGEST)
}

/// A schema's compiled patterns.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    known: BTreeMap<String, Pattern>,
    bytes: usize,
    bytes_of_names: usize,
}

impl Patterns {
    /// Compiles the patterns, each once.
    ///
    /// # Errors
    /// The pattern that fails to compile, or a note that all patterns together exceed `most` bytes.
    pub(crate) fn read(schema: &Value, most: usize) -> Result<Self, String> {
        let (mut patterns, mut names) = (Vec::new(), Vec::new());
        each(schema, true, &mut |schema, _| {
            let Some(members) = schema.as_object() else { return };
            patterns.extend(members.get("pattern").and_then(Value::as_str));
            let named = members.get("patternProperties").and_then(Value::as_object);
            names.extend(named.into_iter().flat_map(Map::keys).map(String::as_str));
        });
        let mut known = Self::default();
        for name in names {
            let bytes = known.compile(name, most)?;
            known.bytes_of_names = known.bytes_of_names.saturating_add(bytes);
            if known.bytes_of_names > MAX_NAME_BYTES {
                return Err(format!(
                    "its compiled 'patternProperties' take more than {} KiB",
                    MAX_NAME_BYTES >> 10
                ));
            }
        }
        for pattern in patterns {
            known.compile(pattern, most)?;
        }
        Ok(known)
    }

    fn compile(&mut self, text: &str, most: usize) -> Result<usize, String> {
        if let Some(known) = self.known.get(text) {
            return Ok(known.bytes);
        }
        let pattern = Pattern::compile(text)?;
        let bytes = pattern.bytes;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > most {
            return Err(format!("its compiled patterns take more than {} MiB", most >> 20));
        }
        self.known.insert(text.to_owned(), pattern);
        Ok(bytes)
    }

    /// Steps per byte of a member name that is matched against all `patternProperties` names.
    pub(crate) fn name_steps(&self) -> usize {
        self.bytes_of_names / BYTES_OF_STEP
    }

    /// Approximate total size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the pattern with this text. Compiles it if the walk missed it.
    pub(crate) fn get(&self, text: &Value) -> Result<Pattern, String> {
        let text = text.as_str().unwrap_or_default();
        self.known.get(text).cloned().map_or_else(|| Pattern::compile(text), Ok)
    }
}

/// A compiled `pattern` that counts each match.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    validator: Arc<Validator>,
    bytes: usize,
}

impl Pattern {
    fn compile(text: &str) -> Result<Self, String> {
        let schema = json!({ "pattern": text });
        for bytes in SIZES {
            let compiled = jsonschema::options().with_pattern_options(options(bytes)).build(&schema);
            if let Ok(validator) = compiled {
                return Ok(Self { validator: Arc::new(validator), bytes });
            }
        }
        let shown: String = text.chars().take(SHOWN).collect();
        Err(format!(
            "the pattern '{shown}' is not a regular expression of the linear kind, or takes more than {} MiB when it is compiled",
            LARGEST >> 20
        ))
    }

    fn count(&self, value: &Value) {
        if let Some(text) = value.as_str() {
            let steps = text.len().saturating_mul(self.bytes / BYTES_OF_STEP);
            count_match(u32::try_from(steps).unwrap_or(u32::MAX));
        }
    }
}

impl<'i> Keyword<'i> for Pattern {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        self.count(instance);
        self.validator.validate(instance)
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.count(instance);
        self.validator.is_valid(instance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bounds, Schema};

    fn total_bytes(patterns: &[&str]) -> Result<usize, String> {
        let all: Vec<Value> = patterns.iter().map(|pattern| json!({"pattern": pattern})).collect();
        let bounds = Bounds { patterns: 100, pattern_bytes: 8 << 20 };
        Schema::read_within(&json!({"allOf": all}), &bounds).map(|schema| schema.pattern_bytes())
    }

    #[test]
    fn patterns_are_measured_and_summed() {
        assert_eq!(Schema::read(&json!({})).unwrap().pattern_bytes(), 0);
        assert_eq!(total_bytes(&["^[a-z]+$"]), Ok(SIZES[0]));
        let small = total_bytes(&["^\\p{L}$"]).unwrap();
        let large = total_bytes(&["^\\p{L}{30}$"]).unwrap();
        assert!(small < large && large <= SIZES[10], "{small} {large}");
        assert_eq!(total_bytes(&["^\\p{L}{30}$", "^[a-z]+$"]), Ok(large + SIZES[0]));
        assert_eq!(total_bytes(&["^[a-z]+$", "^[a-z]+$"]), Ok(SIZES[0]), "it is compiled once");
        let why = total_bytes(&["^\\p{L}{900}$"]).unwrap_err();
        assert!(why.contains("the pattern '^\\p{L}{900}$' is not") && why.contains("16 MiB"), "{why}");
        let why = total_bytes(&["(a)\\1"]).unwrap_err();
        assert!(why.contains("linear kind"), "{why}");
        let many: Vec<String> = (0..5).map(|number| format!("^\\p{{L}}{{30}}{number}$")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let why = total_bytes(&many).unwrap_err();
        assert!(why.contains("its compiled patterns take more than 8 MiB"), "{why}");
    }

    #[test]
    fn names_of_properties_are_small_patterns() {
        let read = |name: &str| Schema::read(&json!({"patternProperties": {(name): {"type": "string"}}}));
        let schema = read("^[a-z]+$").unwrap();
        assert_eq!(schema.pattern_bytes(), SIZES[0]);
        assert_eq!(schema.problems(&json!({"a": 1, "0": 1}), "").len(), 1);
        let why = read("^\\p{L}{30}$").unwrap_err();
        assert!(why.contains("patternProperties"), "{why}");
    }

    #[test]
    fn an_expensive_match_is_rejected_before_it_starts() {
        let text = "a\u{e9}".repeat(20_000);
        let schema = |count: usize| {
            let all: Vec<Value> =
                (0..count).map(|at| json!({"pattern": format!("[a-e].{{200}}[0-9]{at}")})).collect();
            Schema::read(&json!({"anyOf": all})).unwrap().for_strangers()
        };
        for value in [json!(text), json!([text])] {
            let problems = schema(4).problems(&value, "");
            assert_eq!(problems.len(), usize::from(value.is_string()), "{problems:?}");
        }
        assert!(schema(4).problems(&json!(text), "")[0].message.contains("takes too long"));
        // Plain patterns fit the limit: 300 KB of email addresses.
        let addresses = vec![json!("ada.lovelace.of.london@example.org"); 10_000];
        let plain =
            Schema::read(&json!({"items": {"pattern": "^[a-z0-9.]+@[a-z0-9-]+\\.[a-z]{2,}$"}})).unwrap();
        assert_eq!(plain.problems(&Value::Array(addresses), ""), []);
        let nothing = Schema::read(&json!({"items": {"pattern": "\\S"}})).unwrap().for_strangers();
        assert_eq!(nothing.problems(&json!(vec!["x".repeat(1 << 20)]), ""), []);
    }

    #[test]
    fn patterns_of_property_names_are_counted_at_every_reference() {
        let schema = |references: usize| {
            let all = vec![json!({"$ref": "#/$defs/a"}); references];
            let names = json!({"patternProperties": {"[a-e].{20}[0-9]": {"type": "string"}}});
            Schema::read(&json!({"$defs": {"a": names}, "allOf": all})).unwrap().for_strangers()
        };
        let value = json!({("a\u{e9}".repeat(10_000)): "x"});
        assert_eq!(schema(2).problems(&value, ""), []);
        let problems = schema(200).problems(&value, "");
        assert!(problems[0].message.contains("takes too long"), "{problems:?}");
        assert_eq!(schema(200).problems(&json!({"aaaaaaaaaaaaaaaaaaaaaa1": "x"}), ""), []);
    }

    #[test]
    fn common_patterns_for_names_and_texts_are_accepted() {
        for (pattern, value) in [
            ("^[\\p{L}\\p{M}][\\p{L}\\p{M} .'’-]{0,99}$", "Ada de la Cruz"),
            ("^[\\p{L}\\s]{2,50}$", "Ada Lovelace"),
            ("^\\p{L}{1,50}( \\p{L}{1,50})*$", "Ada Lovelace"),
            ("^[^\\p{C}]{1,100}$", "Ada"),
            ("^[\\s\\S]{1,5000}$", "a text\nof two lines"),
            ("^[a-z0-9._%+-]{1,64}@[a-z0-9.-]{1,255}\\.[a-z]{2,63}$", "ada@example.org"),
        ] {
            let schema = Schema::read(&json!({"pattern": pattern})).unwrap().for_strangers();
            assert_eq!(schema.problems(&json!(value), ""), [], "{pattern} {}", schema.pattern_bytes());
            assert_eq!(schema.problems(&json!(""), "").len(), 1, "{pattern}");
        }
    }

    #[test]
    fn a_pattern_problem_has_a_pointer() {
        let schema = Schema::read(&json!({"properties": {"a": {"items": {"pattern": "^b"}}}})).unwrap();
        let problems = schema.problems(&json!({"a": ["b", "c"]}), "/inputs");
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].pointer, "/inputs/a/1");
        assert!(problems[0].message.contains("^b"), "{problems:?}");
    }
}
