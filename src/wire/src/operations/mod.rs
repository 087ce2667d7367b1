//! The operations of the HTTP interface, each declared once. Routes, the access matrix, suggestions for wrong paths,
//! `docs/PROTOCOL.md`, `/openapi.json` and the paths of the typed client come from these declarations.

pub mod chat;
pub mod health;
pub mod indexes;
pub mod nodes;
pub mod pages;
mod parameters;
pub mod runs;
pub mod sign_in;
pub mod socket;
pub mod tokens;
pub mod triggers;
pub mod vault;
pub mod workflows;
pub mod workspaces;

use crate::operation::Operation;

/// The operations of each part of the interface, with its name.
pub static PARTS: &[(&str, &[&Operation])] = &[
    ("chat", chat::ALL),
    ("workflows", workflows::ALL),
    ("nodes", nodes::ALL),
    ("indexes", indexes::ALL),
    ("runs", runs::ALL),
    ("triggers", triggers::ALL),
    ("socket", socket::ALL),
    ("tokens", tokens::ALL),
    ("workspaces", workspaces::ALL),
    ("vault", vault::ALL),
    ("sign_in", sign_in::ALL),
    ("health", health::ALL),
    ("pages", pages::ALL),
];

/// Every operation.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    PARTS.iter().flat_map(|(_, operations)| operations.iter().copied())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_and_routes_are_distinct_and_texts_are_sentences() {
        let ids: BTreeSet<&str> = all().map(|one| one.id).collect();
        let routes: BTreeSet<_> = all().map(|one| (one.method, one.pattern())).collect();
        assert_eq!((ids.len(), routes.len()), (all().count(), all().count()));
        for one in all() {
            assert!(one.about.ends_with('.') && !one.answers.is_empty(), "{}", one.id);
            assert!(one.body.is_none() || !matches!(one.method, crate::operation::Method::Get), "{}", one.id);
        }
    }
}
