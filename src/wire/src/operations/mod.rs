//! The HTTP operations, each declared once. Routes, the access matrix, suggestions for wrong paths,
//! `docs/PROTOCOL.md`, `/openapi.json` and the paths of the typed client come from these declarations.

pub mod apps;
pub mod chat;
pub mod datasets;
pub mod health;
pub mod indexes;
pub mod nodes;
pub mod pages;
mod parameters;
pub mod releases;
pub mod rollouts;
pub mod runs;
pub mod sign_in;
pub mod socket;
pub mod tokens;
pub mod trainings;
pub mod triggers;
pub mod vault;
pub mod visitors;
pub mod workflows;
pub mod workspaces;

use crate::operation::Operation;
pub use parameters::in_path;

/// A part of the interface.
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Its subject, in a sentence.
    pub about: &'static str,
    /// Its operations, in documentation order.
    pub operations: &'static [&'static Operation],
}

/// Every part, in documentation order.
pub static PARTS: &[Part] = &[
    Part { name: "chat", about: "Turns and threads of published workflows.", operations: chat::ALL },
    Part {
        name: "visitors",
        about: "The data of a chat's visitors, for themselves and for owners.",
        operations: visitors::ALL,
    },
    Part {
        name: "workflows",
        about: "Workflows, their versions and their publication.",
        operations: workflows::ALL,
    },
    Part { name: "rollouts", about: "How versions become live: gate and canary.", operations: rollouts::ALL },
    Part { name: "nodes", about: "The catalogue of node types.", operations: nodes::ALL },
    Part { name: "indexes", about: "Search indexes.", operations: indexes::ALL },
    Part { name: "runs", about: "Executions of workflows.", operations: runs::ALL },
    Part {
        name: "trainings",
        about: "Trainings and evaluations of prompts, and checkpoints.",
        operations: trainings::ALL,
    },
    Part { name: "datasets", about: "Stored cases of trainings and evaluations.", operations: datasets::ALL },
    Part { name: "apps", about: "Hosted apps and their deployments.", operations: apps::ALL },
    Part {
        name: "releases",
        about: "Permissions of deployments, and releases of apps.",
        operations: releases::ALL,
    },
    Part { name: "triggers", about: "Schedules and webhooks.", operations: triggers::ALL },
    Part { name: "socket", about: "The websocket.", operations: socket::ALL },
    Part { name: "tokens", about: "Service tokens and the audit trail.", operations: tokens::ALL },
    Part { name: "workspaces", about: "Workspaces and their members.", operations: workspaces::ALL },
    Part { name: "vault", about: "Credentials of graphs.", operations: vault::ALL },
    Part { name: "sign_in", about: "Signing in by email or with a provider.", operations: sign_in::ALL },
    Part { name: "health", about: "Liveness and readiness.", operations: health::ALL },
    Part {
        name: "pages",
        about: "Pages for people, and the description of the interface.",
        operations: pages::ALL,
    },
];

/// Every operation.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    PARTS.iter().flat_map(|part| part.operations.iter().copied())
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
            for name in one.parameters() {
                assert!(in_path(one.path, name).is_some(), "{name} of {} has no description", one.path);
            }
            assert!(one.body.is_none() || !matches!(one.method, crate::operation::Method::Get), "{}", one.id);
        }
    }
}
