//! The only way from given texts to typed values: records every requested name and every problem.

use std::collections::BTreeSet;

use kernel::Secret;

use crate::problem::{Invalid, Problem, shown};
use crate::source::{Origin, Source};
use crate::variables::{self, Variable};

/// The value was rejected, and the reader holds the problem.
#[derive(Debug)]
pub(crate) struct RejectedValue;

/// Reads variables one by one and never stops at the first problem.
pub(crate) struct VariableReader<'a> {
    source: &'a Source,
    names: BTreeSet<&'static str>,
    problems: Vec<Problem>,
}

impl<'a> VariableReader<'a> {
    pub(crate) fn new(source: &'a Source) -> Self {
        Self { source, names: BTreeSet::new(), problems: source.problems().to_vec() }
    }

    pub(crate) fn source(&self) -> &'a Source {
        self.source
    }

    pub(crate) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Every requested name.
    #[cfg(test)]
    pub(crate) fn names(&self) -> &BTreeSet<&'static str> {
        &self.names
    }

    /// A variable that always has a value: the given one or the documented default.
    pub(crate) fn value<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, Invalid>,
    ) -> Result<T, RejectedValue> {
        let variable = self.variable(name)?;
        let (text, origin) = self.given(variable);
        match text.or(variable.default.as_deref()) {
            Some(text) => self.parse(variable, text, origin, parse),
            None => {
                self.refuse(name, "is not set and has no default", "set it");
                Err(RejectedValue)
            }
        }
    }

    /// A variable that may be unset. It has no documented default, because this function would ignore one.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, Invalid>,
    ) -> Result<Option<T>, RejectedValue> {
        let variable = self.variable(name)?;
        match self.given(variable) {
            (Some(text), origin) => self.parse(variable, text, origin, parse).map(Some),
            (None, _) => Ok(None),
        }
    }

    /// An optional secret, checked by `check`.
    pub(crate) fn secret(
        &mut self,
        name: &'static str,
        check: impl FnOnce(&str) -> Result<(), Invalid>,
    ) -> Result<Option<Secret>, RejectedValue> {
        self.optional(name, |text| check(text).map(|()| Secret::from(text)))
    }

    /// Records a problem that no single value shows, such as two incompatible variables.
    pub(crate) fn refuse(
        &mut self,
        name: &'static str,
        wrong: impl Into<String>,
        instead: impl Into<String>,
    ) {
        self.problems.push(Problem {
            variable: name.to_owned(),
            origin: self.source.origin(name),
            value: None,
            wrong: wrong.into(),
            instead: instead.into(),
        });
    }

    fn variable(&mut self, name: &'static str) -> Result<&'static Variable, RejectedValue> {
        self.names.insert(name);
        variables::find(name).ok_or_else(|| {
            self.refuse(name, "is not described in variables.toml", "this is a defect of the program");
            RejectedValue
        })
    }

    /// Trims surrounding blanks, except in a secret, whose every byte counts.
    fn given(&self, variable: &Variable) -> (Option<&'a str>, Origin) {
        let text = self.source.get(&variable.name);
        let text = if variable.secret { text } else { text.map(str::trim).filter(|text| !text.is_empty()) };
        (text, self.source.origin(&variable.name))
    }

    fn parse<T>(
        &mut self,
        variable: &Variable,
        text: &str,
        origin: Origin,
        parse: impl FnOnce(&str) -> Result<T, Invalid>,
    ) -> Result<T, RejectedValue> {
        parse(text).map_err(|Invalid { wrong, mut instead, hide_value }| {
            // Without quotes, the `.env` parser drops the quotes that JSON needs.
            if origin == Origin::EnvFile && instead.contains("JSON") {
                instead.push_str(" (in a .env file within single quotes)");
            }
            self.problems.push(Problem {
                variable: variable.name.clone(),
                origin,
                value: Some(shown(text, variable.secret || hide_value)),
                wrong,
                instead,
            });
            RejectedValue
        })
    }
}
