//! The channels of `state`: initial values and write rules. Pure.

use serde_json::{Map, Number, Value};

/// Doubles represent every integer up to this one exactly.
const EXACT: u128 = 1 << 53;

/// A channel of `state`.
#[derive(Debug, Clone, PartialEq)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// The rule for writes.
    pub rule: Rule,
    /// Initial value.
    pub initial: Value,
}

/// The effect of a write on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Keeps the last write.
    Replace,
    /// Appends the write to a list; if the write is a list, appends its entries.
    Append,
    /// Merges the write's members into an object; they override existing ones.
    Merge,
    /// Adds numbers.
    Sum,
    /// Keeps the smallest number.
    Min,
    /// Keeps the largest number.
    Max,
}

impl Rule {
    /// Rule names in a graph.
    pub(crate) const NAMES: [&'static str; 6] = ["replace", "append", "merge", "sum", "min", "max"];

    pub(crate) fn read(name: &str) -> Self {
        match name {
            "append" => Self::Append,
            "merge" => Self::Merge,
            "sum" => Self::Sum,
            "min" => Self::Min,
            "max" => Self::Max,
            _ => Self::Replace,
        }
    }

    /// The default initial value.
    pub(crate) fn empty(self) -> Value {
        match self {
            Self::Append => Value::Array(Vec::new()),
            Self::Merge => Value::Object(Map::new()),
            Self::Sum => Value::from(0),
            Self::Replace | Self::Min | Self::Max => Value::Null,
        }
    }

    /// Whether a channel with this rule may hold `value`.
    pub(crate) fn holds(self, value: &Value) -> bool {
        match self {
            Self::Replace => true,
            Self::Append => value.is_array(),
            Self::Merge => value.is_object(),
            Self::Sum => value.is_number(),
            Self::Min | Self::Max => value.is_number() || value.is_null(),
        }
    }

    /// The type that a write must have, in words.
    fn wanted(self) -> &'static str {
        match self {
            Self::Merge => "an object",
            Self::Sum | Self::Min | Self::Max => "a number",
            Self::Replace | Self::Append => "any value",
        }
    }
}

impl Channel {
    /// Returns the channel's value after `write`.
    ///
    /// # Errors
    /// One line if the write does not fit the rule.
    pub(crate) fn write(&self, before: Value, write: Value) -> Result<Value, String> {
        match (self.rule, before, write) {
            (Rule::Replace, _, write) => Ok(write),
            (Rule::Append, Value::Array(mut list), Value::Array(more)) => {
                list.extend(more);
                Ok(Value::Array(list))
            }
            (Rule::Append, Value::Array(mut list), one) => {
                list.push(one);
                Ok(Value::Array(list))
            }
            (Rule::Merge, Value::Object(mut members), Value::Object(more)) => {
                members.extend(more);
                Ok(Value::Object(members))
            }
            (Rule::Sum, Value::Number(a), Value::Number(b)) => sum(&a, &b),
            (Rule::Min | Rule::Max, Value::Null, Value::Number(write)) => Ok(Value::Number(write)),
            (Rule::Min, Value::Number(a), Value::Number(b)) => {
                Ok(Value::Number(if less(&b, &a) { b } else { a }))
            }
            (Rule::Max, Value::Number(a), Value::Number(b)) => {
                Ok(Value::Number(if less(&a, &b) { b } else { a }))
            }
            (rule, _, write) => {
                Err(format!("state.{} accepts {}, not {}", self.name, rule.wanted(), kind(&write)))
            }
        }
    }
}

fn sum(a: &Number, b: &Number) -> Result<Value, String> {
    let number = match (a.as_i128(), b.as_i128()) {
        (Some(whole), Some(other)) => Number::from_i128(whole.saturating_add(other)),
        (None, None) => float_sum(a, b),
        (Some(whole), None) | (None, Some(whole)) if whole.unsigned_abs() <= EXACT => float_sum(a, b),
        _ => None,
    };
    number.map(Value::Number).ok_or_else(|| format!("the sum of {a} and {b} is not exact as a number"))
}

fn float_sum(a: &Number, b: &Number) -> Option<Number> {
    Number::from_f64(a.as_f64()? + b.as_f64()?)
}

fn less(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a < b,
        _ => a.as_f64() < b.as_f64(),
    }
}

/// Describes a value's type in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn after(rule: &str, writes: &[Value]) -> Result<Value, String> {
        let rule = Rule::read(rule);
        let channel = Channel { name: "x".into(), rule, initial: rule.empty() };
        writes.iter().try_fold(channel.initial.clone(), |held, write| channel.write(held, write.clone()))
    }

    #[test]
    fn each_merge_rule_combines_writes() {
        assert_eq!(after("replace", &[json!(1), json!("b")]), Ok(json!("b")));
        assert_eq!(after("append", &[json!(1), json!([2, 3]), json!([[4]])]), Ok(json!([1, 2, 3, [4]])));
        assert_eq!(after("merge", &[json!({"a": 1, "b": 1}), json!({"b": 2})]), Ok(json!({"a": 1, "b": 2})));
        assert_eq!(after("sum", &[json!(1), json!(2), json!(0.5)]), Ok(json!(3.5)));
        assert_eq!(after("sum", &[json!(i64::MAX), json!(1)]), Ok(json!(9_223_372_036_854_775_808_u64)));
        assert_eq!(after("max", &[json!(u64::MAX - 1), json!(u64::MAX)]), Ok(json!(u64::MAX)));
        assert_eq!(after("min", &[json!(2), json!(1.5), json!(7)]), Ok(json!(1.5)));
        assert_eq!(after("max", &[json!(2), json!(1.5), json!(7)]), Ok(json!(7)));
        assert_eq!(after("max", &[]), Ok(Value::Null));
    }

    #[test]
    fn an_incompatible_write_has_a_clear_error() {
        assert_eq!(after("sum", &[json!("3")]).unwrap_err(), "state.x accepts a number, not a string");
        assert_eq!(after("merge", &[json!([1])]).unwrap_err(), "state.x accepts an object, not a list");
        assert!(after("max", &[json!(1), Value::Null]).is_err());
        let sum = after("sum", &[json!(u64::MAX), json!(1)]).unwrap_err();
        assert_eq!(sum, "the sum of 18446744073709551615 and 1 is not exact as a number");
        assert!(after("sum", &[json!(9_007_199_254_740_993_u64), json!(0.5)]).is_err());
    }
}
