//! Walks through schemas before they are compiled.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// Keywords that refer to another schema.
pub(crate) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords whose schemas apply to the same value as the enclosing schema.
const SAME_VALUE: [&str; 8] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];
/// Keywords whose members are named schemas.
pub(crate) const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Keywords whose values are not schemas.
pub(crate) const VALUES: [&str; 6] =
    ["const", "enum", "default", "examples", "dependentRequired", "$vocabulary"];

/// Keywords that change the meaning of references and other keywords.
const BASES: [&str; 2] = ["$id", "$schema"];
/// Maximum chained references for the same value: each takes stack.
const MAX_CHAIN: usize = 128;
/// Maximum lookups: pointers times schemas with an `$id`.
const MAX_LOOKUPS: usize = 100_000;

/// Limits for a publisher's schema.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Maximum patterns.
    pub patterns: usize,
    /// Maximum bytes of all compiled patterns.
    pub pattern_bytes: usize,
}

impl Bounds {
    pub(crate) fn check(&self, schema: &Value) -> Result<(), String> {
        let mut places = BTreeSet::new();
        each(schema, true, &mut |schema, _| {
            places.insert(std::ptr::from_ref(schema));
        });
        let dialect = schema.get("$schema").and_then(Value::as_str);
        let is_old = dialect.is_some_and(|dialect| dialect.contains("draft-04"));
        let mut wrong = None;
        each(schema, true, &mut |value, is_root| {
            if wrong.is_none() {
                wrong = value.as_object().and_then(|members| {
                    misplaced_base(members, is_root, is_old)
                        .or_else(|| invalid_reference(members, schema, &places))
                });
            }
        });
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        let patterns = patterns(schema);
        if patterns > self.patterns {
            return Err(format!("it has {patterns} patterns; at most {} are allowed", self.patterns));
        }
        Ok(())
    }
}

/// Checks that pointer references lead to locations that [`each`] visits: steps are counted only there. A pointer is
/// resolved from the root and from each schema with an `$id`, because the validator may use any of them as its base.
pub(crate) fn check_targets(schema: &Value) -> Result<(), String> {
    let (mut places, mut bases, mut pointers) = (BTreeSet::new(), vec![schema], BTreeSet::new());
    each(schema, true, &mut |schema, is_root| {
        places.insert(std::ptr::from_ref(schema));
        let Some(members) = schema.as_object() else { return };
        if !is_root && ["$id", "id"].iter().any(|keyword| members.get(*keyword).is_some_and(Value::is_string))
        {
            bases.push(schema);
        }
        let references = REFERENCES.iter().filter_map(|keyword| members.get(*keyword)?.as_str());
        pointers.extend(references.filter_map(|reference| reference.split_once('#')));
    });
    if bases.len().saturating_mul(pointers.len()) > MAX_LOOKUPS {
        return Err("it has too many '$id' and '$ref'".to_owned());
    }
    for (document, pointer) in pointers.iter().filter(|(_, pointer)| pointer.starts_with('/')) {
        let Ok(decoded) = percent_decode_str(pointer).decode_utf8() else { continue };
        let mut targets = bases.iter().filter_map(|base| base.pointer(&decoded));
        if targets.any(|target| !places.contains(&std::ptr::from_ref(target))) {
            return Err(format!("'{document}#{pointer}' does not lead to a schema"));
        }
    }
    Ok(())
}

/// Counts the patterns in a schema.
#[must_use]
pub fn patterns(schema: &Value) -> usize {
    let mut patterns = 0_usize;
    each(schema, true, &mut |schema, _| {
        let Some(members) = schema.as_object() else { return };
        patterns += usize::from(members.get("pattern").is_some_and(Value::is_string));
        patterns += members.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
    });
    patterns
}

/// Finds a keyword that changes the meaning of references and keywords below the root. Draft 4 uses `id` instead of
/// `$id`.
fn misplaced_base(members: &Map<String, Value>, is_root: bool, is_old: bool) -> Option<String> {
    let mut keywords = BASES.into_iter().chain(is_old.then_some("id"));
    let moving = keywords.find(|keyword| members.get(*keyword).is_some_and(Value::is_string))?;
    (!is_root).then(|| format!("'{moving}' is allowed only at the root"))
}

/// Finds a reference that does not lead to a location that [`each`] visits.
fn invalid_reference(
    members: &Map<String, Value>,
    root: &Value,
    places: &BTreeSet<*const Value>,
) -> Option<String> {
    let references = REFERENCES.iter().filter_map(|keyword| members.get(*keyword)?.as_str());
    references.into_iter().find_map(|reference| {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Some(format!("'{reference}' is not a local reference; begin it with '#'"));
        };
        // Anchors would have to be resolved exactly as the validator resolves them.
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Some(format!("'{reference}' is not a JSON pointer; write '#/$defs/name'"));
        }
        let target = target(root, reference).map(|(_, target)| std::ptr::from_ref(target));
        let leads = target.is_some_and(|target| places.contains(&target));
        (!leads).then(|| format!("'{reference}' does not lead to a schema"))
    })
}

/// Resolves a local reference: the pointer without percent escapes, as the validator reads it, and its target.
fn target<'a>(root: &'a Value, reference: &'a str) -> Option<(Cow<'a, str>, &'a Value)> {
    let pointer = percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
    let target = root.pointer(&pointer)?;
    Some((pointer, target))
}

/// Visits every location that can hold a schema. The flag marks the root.
pub(crate) fn each<'a>(schema: &'a Value, is_root: bool, visit: &mut impl FnMut(&'a Value, bool)) {
    visit(schema, is_root);
    match schema {
        Value::Array(items) => items.iter().for_each(|item| each(item, false, visit)),
        Value::Object(members) => {
            for (keyword, value) in members.iter().filter(|(keyword, _)| !VALUES.contains(&keyword.as_str()))
            {
                match value {
                    Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                        named.values().for_each(|schema| each(schema, false, visit));
                    }
                    other => each(other, false, visit),
                }
            }
        }
        _ => {}
    }
}

/// Checks that no reference leads back to itself for the same value, and that reference chains are bounded: otherwise
/// a check would never end or exhaust the stack.
pub(crate) fn check_references(schema: &Value) -> Result<(), String> {
    Circles { root: schema, path: Vec::new(), chain_lengths: BTreeMap::new() }.every(schema)
}

struct Circles<'a> {
    root: &'a Value,
    /// Pointers being followed.
    path: Vec<Cow<'a, str>>,
    /// Pointers known to be free of circles, with their longest chain length.
    chain_lengths: BTreeMap<Cow<'a, str>, usize>,
}

impl<'a> Circles<'a> {
    fn every(&mut self, value: &'a Value) -> Result<(), String> {
        self.same_value(value)?;
        match value {
            Value::Object(members) => members.values().try_for_each(|inner| self.every(inner)),
            Value::Array(list) => list.iter().try_for_each(|inner| self.every(inner)),
            _ => Ok(()),
        }
    }

    /// Returns the longest reference chain that begins here.
    fn same_value(&mut self, schema: &'a Value) -> Result<usize, String> {
        let Some(members) = schema.as_object() else { return Ok(0) };
        let mut longest = 0;
        for keyword in REFERENCES {
            if let Some(reference) = members.get(keyword).and_then(Value::as_str) {
                longest = longest.max(self.reference(reference)?);
            }
        }
        for (keyword, inner) in members.iter().filter(|(keyword, _)| SAME_VALUE.contains(&keyword.as_str())) {
            let inner: Vec<&Value> = match inner {
                Value::Array(list) => list.iter().collect(),
                Value::Object(map) if keyword == "dependentSchemas" => map.values().collect(),
                other => vec![other],
            };
            for schema in inner {
                longest = longest.max(self.same_value(schema)?);
            }
        }
        Ok(longest)
    }

    fn reference(&mut self, reference: &'a str) -> Result<usize, String> {
        let Some((pointer, target)) = target(self.root, reference) else { return Ok(0) };
        if self.path.contains(&pointer) {
            return Err(format!("'{reference}' leads to itself"));
        }
        let mut length = self.chain_lengths.get(&pointer).copied().unwrap_or_default();
        if length == 0 {
            self.path.push(pointer.clone());
            // Bounds the path before visiting the target, because the visit takes stack as well.
            length = if self.path.len() > MAX_CHAIN { MAX_CHAIN + 1 } else { 1 + self.same_value(target)? };
            self.path.pop();
        }
        if self.path.len() + length > MAX_CHAIN {
            return Err(format!("'{reference}' is in a chain of more than {MAX_CHAIN} references"));
        }
        self.chain_lengths.insert(pointer, length);
        Ok(length)
    }
}
