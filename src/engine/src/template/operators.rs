//! Operators and checks for metered programs.
//!
//! They are filters with names that no template can write, so nothing in scope can hide them.

use minijinja::machinery::ast::BinOpKind;
use minijinja::value::StringInput;
use minijinja::{Environment, Error, State, Value as View};

use super::constants::{computed, repeated};
use super::functions::invalid;
use super::text_size::text_size;
use crate::meter;

/// Checks a created value.
pub(super) const CHECK: &str = "(check)";
/// Counts an operation.
pub(super) const STEP: &str = "(step)";
/// Multiplies.
pub(super) const REPEAT: &str = "(*)";
/// Concatenates as text.
pub(super) const CONCATENATE: &str = "(~)";

pub(super) fn add(environment: &mut Environment<'_>) {
    environment.add_filter(CHECK, |value: View| meter::made(value));
    environment.add_filter(STEP, |value: View| meter::step().map(|()| value));
    environment.add_filter(REPEAT, multiply);
    environment.add_filter(CONCATENATE, concatenate);
}

fn concatenate(state: &State<'_, '_>, left: View, right: View) -> Result<View, Error> {
    meter::make(text_size(&left)?.saturating_add(text_size(&right)?))?;
    let (left, right) = (StringInput::new(state, &left)?, StringInput::new(state, &right)?);
    Ok(View::from([left.as_str(), right.as_str()].concat()))
}

fn multiply(left: View, right: View) -> Result<View, Error> {
    let bytes = repeated(&left, &right).or_else(|| repeated(&right, &left));
    match bytes {
        Some(bytes) => meter::make(bytes)?,
        None => meter::step()?,
    }
    let kinds = (left.kind(), right.kind());
    let is_arithmetic = left.is_number() && right.is_number();
    match computed(BinOpKind::Mul, left, right) {
        Some(value) if is_arithmetic => Ok(value),
        Some(value) => meter::made(value),
        None if is_arithmetic => Err(invalid("the product is too large")),
        None => {
            Err(invalid(format!("tried to use * operator on unsupported types {} and {}", kinds.0, kinds.1)))
        }
    }
}
