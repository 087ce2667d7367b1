//! Every configuration rule, from outside and, for the variable table, from inside.

mod credentials;
mod dsn;
mod given;
mod rules;
mod secrets;
mod shown;
mod variables;

use crate::{Config, Problem, Source};

/// Pairs with a home folder, so that every default can be computed.
fn source(pairs: &[(&str, &str)]) -> Source {
    Source::from_pairs([("HOME", "/home/ada")].iter().chain(pairs).copied())
}

/// The configuration from valid pairs.
fn good(pairs: &[(&str, &str)]) -> Config {
    Config::load(&source(pairs)).unwrap_or_else(|problems| panic!("refused:\n{problems}"))
}

/// The problems of invalid pairs.
fn bad(pairs: &[(&str, &str)]) -> Vec<Problem> {
    match Config::load(&source(pairs)) {
        Ok(_) => panic!("accepted: {pairs:?}"),
        Err(problems) => problems.0,
    }
}

/// Checks that each value is rejected with one problem that names the variable.
fn refuses(name: &str, values: &[&str]) {
    for value in values {
        let problems = bad(&[(name, value)]);
        let names: Vec<&str> = problems.iter().map(|problem| problem.variable.as_str()).collect();
        assert_eq!(names, [name], "value {value:?}");
        assert!(!problems[0].instead.is_empty(), "value {value:?} without advice");
    }
}
