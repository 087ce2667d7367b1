//! Patterns: how much memory they take when they are compiled, and how much work a match is.
//!
//! Matching is linear in the length of a text, but the work for each byte grows with the pattern: some KiB of input and a pattern of some
//! characters with large repetitions take seconds. So sizes are measured, summed over a schema, and counted for each match.

use std::sync::atomic::{AtomicUsize, Ordering};

use jsonschema::{Keyword, PatternOptions, Regex, ValidationError, Validator};
use serde_json::{Map, Value, json};

use crate::steps::count_match;
use crate::walk::each;

/// A compiled pattern counts as the first of these sizes that it fits into, in bytes; a larger one is refused.
const SIZES: [usize; 11] = [
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
];
/// Most bytes of all compiled patterns of a schema.
pub const MAX_PATTERN_BYTES: usize = 8 << 20;
/// Most bytes of the names in `patternProperties`, which match without being counted.
const MAX_NAME_BYTES: usize = 256 << 10;
/// Bytes of a pattern that make a step for each byte of a text: about a tenth of a microsecond, measured without an automaton in memory.
const BYTES_OF_STEP: usize = 2 << 10;
/// Most bytes of an automaton that a match keeps, of each pattern and thread. Without one, a match takes longer.
const AUTOMATON_BYTES: usize = 64 << 10;

/// How patterns are compiled: to at most so many bytes.
pub(crate) fn options(bytes: usize) -> PatternOptions<Regex> {
    PatternOptions::regex().size_limit(bytes).dfa_size_limit(AUTOMATON_BYTES)
}

/// The bytes of compiled patterns so far.
#[derive(Debug, Default)]
pub(crate) struct Total(AtomicUsize);

impl Total {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) -> Result<(), String> {
        let total = self.0.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if total <= MAX_PATTERN_BYTES {
            return Ok(());
        }
        Err(format!("its compiled patterns take more than {} MiB", MAX_PATTERN_BYTES >> 20))
    }
}

/// A compiled `pattern`, which counts each match.
pub(crate) struct Pattern {
    validator: Validator,
    steps_per_byte: u32,
}

impl Pattern {
    /// # Errors
    /// Why it cannot be compiled.
    pub(crate) fn compile(pattern: &Value, total: &Total) -> Result<Self, String> {
        let schema = json!({ "pattern": pattern });
        let mut why = String::new();
        for bytes in SIZES {
            match jsonschema::options().with_pattern_options(options(bytes)).build(&schema) {
                Ok(validator) => {
                    total.add(bytes)?;
                    let steps = u32::try_from(bytes / BYTES_OF_STEP).unwrap_or(u32::MAX);
                    return Ok(Self { validator, steps_per_byte: steps });
                }
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }

    fn count(&self, value: &Value) {
        if let Some(text) = value.as_str() {
            let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
            count_match(bytes.saturating_mul(self.steps_per_byte));
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

/// Measures the names in `patternProperties`.
///
/// # Errors
/// Why they cannot be used.
pub(crate) fn check_names(schema: &Value, total: &Total) -> Result<(), String> {
    let mut names = Vec::new();
    each(schema, true, &mut |schema, _| {
        let named = schema.get("patternProperties").and_then(Value::as_object);
        names.extend(named.into_iter().flat_map(Map::keys));
    });
    let mut bytes = 0_usize;
    for name in names {
        let pattern = Pattern::compile(&json!(name), total)?;
        bytes = bytes
            .saturating_add(usize::try_from(pattern.steps_per_byte).unwrap_or(usize::MAX) * BYTES_OF_STEP);
        if bytes > MAX_NAME_BYTES {
            return Err(format!(
                "its compiled 'patternProperties' take more than {} KiB",
                MAX_NAME_BYTES >> 10
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;

    fn of(patterns: &[&str]) -> Result<usize, String> {
        let all: Vec<Value> = patterns.iter().map(|pattern| json!({"pattern": pattern})).collect();
        Schema::read(&json!({"allOf": all})).map(|schema| schema.pattern_bytes())
    }

    #[test]
    fn patterns_are_measured_and_summed() {
        assert_eq!(Schema::read(&json!({})).unwrap().pattern_bytes(), 0);
        assert_eq!(of(&["^[a-z]+$"]), Ok(SIZES[0]));
        let small = of(&["^\\p{L}$"]).unwrap();
        let large = of(&["^\\p{L}{30}$"]).unwrap();
        assert!(small < large && large <= SIZES[10], "{small} {large}");
        assert_eq!(of(&["^\\p{L}{30}$", "^[a-z]+$"]), Ok(large + SIZES[0]));
        assert!(of(&["^\\p{L}{100}$"]).is_err(), "more than 2 MiB");
        let many: Vec<String> = (0..5).map(|number| format!("^\\p{{L}}{{30}}{number}$")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let why = of(&many).unwrap_err();
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
    fn a_match_that_is_much_work_is_refused_before_it_begins() {
        let text = "a\u{e9}".repeat(20_000);
        let schema = |count: usize| {
            let all: Vec<Value> =
                (0..count).map(|at| json!({"pattern": format!("[a-e].{{200}}[0-9]{at}")})).collect();
            Schema::read(&json!({"anyOf": all})).unwrap()
        };
        for value in [json!(text), json!([text])] {
            let problems = schema(4).problems(&value, "");
            assert_eq!(problems.len(), usize::from(value.is_string()), "{problems:?}");
        }
        assert!(schema(4).problems(&json!(text), "")[0].message.contains("takes too long"));
        // Plain patterns have room: 300 KB of addresses.
        let addresses = vec![json!("ada.lovelace.of.london@example.org"); 10_000];
        let plain =
            Schema::read(&json!({"items": {"pattern": "^[a-z0-9.]+@[a-z0-9-]+\\.[a-z]{2,}$"}})).unwrap();
        assert_eq!(plain.problems(&Value::Array(addresses), ""), []);
        let nothing = Schema::read(&json!({"items": {"pattern": "\\S"}})).unwrap();
        assert_eq!(nothing.problems(&json!(vec!["x".repeat(1 << 20)]), ""), []);
    }

    #[test]
    fn a_problem_of_a_pattern_has_its_place() {
        let schema = Schema::read(&json!({"properties": {"a": {"items": {"pattern": "^b"}}}})).unwrap();
        let problems = schema.problems(&json!({"a": ["b", "c"]}), "/inputs");
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].pointer, "/inputs/a/1");
        assert!(problems[0].message.contains("^b"), "{problems:?}");
    }
}
