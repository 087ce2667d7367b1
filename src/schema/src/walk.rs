//! Walks through schemas before they are compiled.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Keywords that refer to another schema.
pub(crate) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Where a schema applies to the same value as the one around it.
const SAME_VALUE: [&str; 8] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];
/// Keywords whose members are named schemas.
pub(crate) const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Keywords whose values are no schemas.
pub(crate) const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];

/// How much a schema of a stranger may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Number of patterns.
    pub patterns: usize,
    /// Bytes of one compiled pattern.
    pub pattern_bytes: usize,
}

impl Bounds {
    pub(crate) fn check(&self, schema: &Value) -> Result<(), String> {
        let mut foreign = None;
        let mut patterns = 0_usize;
        each(schema, &mut |members| {
            let mut references = REFERENCES.iter().filter_map(|keyword| members.get(*keyword)?.as_str());
            foreign =
                foreign.take().or_else(|| references.find(|to| !to.starts_with('#')).map(str::to_owned));
            patterns += usize::from(members.get("pattern").is_some_and(Value::is_string));
            patterns += members.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
        });
        if let Some(reference) = foreign {
            return Err(format!("'{reference}' is not a local reference; begin it with '#'"));
        }
        if patterns > self.patterns {
            return Err(format!("it has {patterns} patterns; at most {} are allowed", self.patterns));
        }
        Ok(())
    }
}

/// Visits every schema in a schema.
fn each<'a>(schema: &'a Value, visit: &mut impl FnMut(&'a Map<String, Value>)) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| each(item, visit)),
        Value::Object(members) => {
            visit(members);
            for (keyword, value) in members.iter().filter(|(keyword, _)| !VALUES.contains(&keyword.as_str()))
            {
                match value {
                    Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                        named.values().for_each(|schema| each(schema, visit));
                    }
                    other => each(other, visit),
                }
            }
        }
        _ => {}
    }
}

/// A reference that leads back to itself without going down into the value: checking it would never end.
pub(crate) fn circle(schema: &Value) -> Option<String> {
    Circles { root: schema, path: Vec::new(), clear: BTreeSet::new() }.every(schema)
}

struct Circles<'a> {
    root: &'a Value,
    /// References that are followed.
    path: Vec<&'a str>,
    /// References that lead to no circle.
    clear: BTreeSet<&'a str>,
}

impl<'a> Circles<'a> {
    fn every(&mut self, value: &'a Value) -> Option<String> {
        let inner: Vec<&Value> = match value {
            Value::Object(members) => members.values().collect(),
            Value::Array(list) => list.iter().collect(),
            _ => return None,
        };
        self.same_value(value).or_else(|| inner.into_iter().find_map(|inner| self.every(inner)))
    }

    fn same_value(&mut self, schema: &'a Value) -> Option<String> {
        let members = schema.as_object()?;
        for keyword in REFERENCES {
            let reference = members.get(keyword).and_then(Value::as_str);
            if let Some(found) = reference.and_then(|reference| self.reference(reference)) {
                return Some(found);
            }
        }
        for (keyword, inner) in members.iter().filter(|(keyword, _)| SAME_VALUE.contains(&keyword.as_str())) {
            let inner: Vec<&Value> = match inner {
                Value::Array(list) => list.iter().collect(),
                Value::Object(map) if keyword == "dependentSchemas" => map.values().collect(),
                other => vec![other],
            };
            if let Some(found) = inner.into_iter().find_map(|schema| self.same_value(schema)) {
                return Some(found);
            }
        }
        None
    }

    fn reference(&mut self, reference: &'a str) -> Option<String> {
        let pointer = reference.strip_prefix('#')?;
        if self.path.contains(&reference) {
            return Some(reference.to_owned());
        }
        if self.clear.contains(reference) {
            return None;
        }
        let target = self.root.pointer(pointer)?;
        self.path.push(reference);
        let found = self.same_value(target);
        self.path.pop();
        self.clear.insert(reference);
        found
    }
}
