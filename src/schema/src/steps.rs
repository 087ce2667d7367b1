//! Step counting: bounds the work to check one value.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value, json};

use crate::walk::{NAMED, REFERENCES, VALUES};

/// The keyword that counts steps. Its value holds the numbers of a [`StepCost`].
pub(crate) const STEP: &str = "x-callboard-step";

/// Steps per reference; applying any other schema is one step.
const REFERENCE_STEPS: u32 = 10;

/// The unit that a check counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckUnit {
    /// Applied schemas.
    Schemas,
    /// Possible problems: their locations and texts stay in memory until all are known.
    Problems,
}

#[derive(Debug, Clone, Copy)]
struct StepBudget {
    count: CheckUnit,
    remaining: u32,
}

thread_local! {
    /// Remaining steps for the current check on this thread.
    static BUDGET: Cell<StepBudget> = const { Cell::new(StepBudget { count: CheckUnit::Schemas, remaining: 0 }) };
    /// Remaining pattern match steps.
    static MATCHES: Cell<u32> = const { Cell::new(0) };
}

/// The panic that ends a check with too many steps: the validator offers no other way to end it.
struct TooLong;

/// Runs `check` within a limit; `None` if it takes more steps. `matches` limits pattern match steps.
pub(crate) fn within<T>(count: CheckUnit, steps: u32, matches: u32, check: impl FnOnce() -> T) -> Option<T> {
    BUDGET.set(StepBudget { count, remaining: steps });
    MATCHES.set(matches);
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(checked) => Some(checked),
        Err(why) if why.is::<TooLong>() => None,
        Err(why) => resume_unwind(why),
    }
}

/// Charges a pattern match.
pub(crate) fn count_match(steps: u32) {
    match MATCHES.get().checked_sub(steps) {
        Some(remaining) => MATCHES.set(remaining),
        None => resume_unwind(Box::new(TooLong)),
    }
}

/// A schema's cost each time it is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepCost {
    schemas: u32,
    /// Problems that the schema itself can have.
    problems: u32,
    /// Further problems per child value.
    child_problems: u32,
    /// Match steps per byte of the value's member names.
    name_steps: u32,
}

impl StepCost {
    /// Parses the numbers that [`counted`] wrote.
    pub(crate) fn read(value: &Value) -> Self {
        let number = |index| {
            let number = value.get(index).and_then(Value::as_u64).unwrap_or_default();
            u32::try_from(number).unwrap_or(u32::MAX)
        };
        Self { schemas: number(0), problems: number(1), child_problems: number(2), name_steps: number(3) }
    }

    fn count(self, value: &Value) {
        let StepBudget { count, remaining } = BUDGET.get();
        if self.name_steps > 0
            && let Value::Object(members) = value
        {
            let bytes: usize = members.keys().map(String::len).sum();
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            count_match(bytes.saturating_mul(self.name_steps));
        }
        let steps = match count {
            CheckUnit::Schemas => self.schemas,
            CheckUnit::Problems => {
                let children = match value {
                    Value::Array(items) => items.len(),
                    Value::Object(members) => members.len(),
                    _ => 0,
                };
                let children = u32::try_from(children).unwrap_or(u32::MAX);
                self.problems.saturating_add(self.child_problems.saturating_mul(children))
            }
        };
        match remaining.checked_sub(steps) {
            Some(remaining) => BUDGET.set(StepBudget { count, remaining }),
            None => resume_unwind(Box::new(TooLong)),
        }
    }
}

impl<'i> Keyword<'i> for StepCost {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        self.count(instance);
        Ok(())
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.count(instance);
        true
    }
}

/// Copies the schema and adds a step to each schema object. A reference also charges `name_steps` per byte of member
/// names.
pub(crate) fn counted(schema: &Value, name_steps: usize) -> Value {
    let counted = |schema: &Value| counted(schema, name_steps);
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
    let references: Map<String, Value> =
        taken.filter_map(|keyword| counting.shift_remove_entry(keyword)).collect();
    let (problems, child_problems) = problems(members);
    if references.is_empty() {
        counting.insert(STEP.to_owned(), json!([1, problems, child_problems, 0]));
    } else {
        // The step precedes the reference, which is then not followed: a keyword that fails hides later ones. Both
        // come last in the list, because references may address its other entries by index.
        let all = counting.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(all) = all {
            let step = json!({STEP: [REFERENCE_STEPS, problems, child_problems, name_steps]});
            all.extend([step, Value::Object(references)]);
        }
    }
    Value::Object(counting)
}

/// Maximum problems of a schema itself and, in addition, per child value. Excludes nested schemas that count
/// separately. `required` counts each name, and a schema `false` has one problem each time it is applied.
fn problems(members: &Map<String, Value>) -> (usize, usize) {
    let (mut own, mut by_child) = (1_usize, 0_usize);
    for (keyword, value) in members {
        let falses = match value {
            Value::Array(entries) => {
                own += entries.iter().filter(|entry| keyword == "required" && entry.is_string()).count();
                entries.iter().filter(|entry| **entry == false).count()
            }
            Value::Object(named) if keyword == "dependentRequired" || keyword == "dependencies" => {
                own += named.values().filter_map(Value::as_array).map(Vec::len).sum::<usize>();
                named.values().filter(|entry| **entry == false).count()
            }
            Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                named.values().filter(|entry| **entry == false).count()
            }
            Value::Bool(false) if matches!(keyword.as_str(), "items" | "additionalItems") => 1,
            _ => 0,
        };
        own += falses;
        by_child += falses;
    }
    (own, by_child)
}

/// Remaining steps when the last check on this thread ended.
#[cfg(test)]
pub(crate) fn remaining() -> u32 {
    BUDGET.get().remaining
}
