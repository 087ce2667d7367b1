//! Compiles a document into a plan and reports all structural and semantic problems at once.

mod joins;
mod names;
mod plain_secrets;
mod plan;
mod reach;
mod secret_uses;

use serde_json::Value;
use wire::FieldError;

pub use joins::warnings;
pub use plan::compile;
pub use secret_uses::{CredentialUse, credentials};

use crate::Problems;
use crate::check::Check;
use crate::execute::Plan;
use crate::graph::parse::read_graph;
use crate::meter;

/// Reads and compiles a graph, as required before saving.
///
/// # Errors
/// Every structural and semantic problem, each with a JSON pointer, a code and, where possible, a suggestion.
pub fn check(document: &Value) -> Result<Plan, Problems> {
    let mut check = Check::default();
    let graph = read_graph(document, &mut check.problems);
    if check.problems.iter().any(|problem| matches!(&*problem.code, "too_many" | "too_large")) {
        return Err(check.problems);
    }
    // An unreadable edge may have led anywhere.
    let misread =
        |problem: &FieldError| problem.pointer.starts_with("/edges") && problem.code != "unknown_field";
    let edges_are_read = !check.problems.iter().any(misread);
    let plan = graph.map(|graph| {
        let plan = plan::plan(&graph, &mut check);
        let reach = reach::Reach::from_graph(&graph).filter(|_| edges_are_read);
        // Unreachable nodes must be fixed first.
        let sound = reach.filter(|reach| reach::check(&graph, reach, &mut check));
        if let Some(reach) = &sound {
            joins::check(&graph, reach, &mut check);
        }
        names::check(&graph, sound.as_ref(), &mut check);
        plan
    });
    plain_secrets::check(document, &mut check);
    if let Some(error) = meter::excess_error() {
        return Err(vec![FieldError::new("", "too_slow", error.message).suggest("split the workflow")]);
    }
    check.problems.append(&mut check.at_saving);
    match plan {
        Some(plan) if check.problems.is_empty() => Ok(plan),
        _ => {
            check.problems.sort_by_cached_key(|problem| (place(&problem.pointer), problem.code.clone()));
            Err(check.problems)
        }
    }
}

/// A sort key for a pointer: its parts, numbers as numbers, so that problems follow document order.
pub(crate) fn place(pointer: &str) -> Vec<(u64, String)> {
    let part = |part: &str| part.parse().map_or_else(|_| (u64::MAX, part.to_owned()), |n| (n, String::new()));
    pointer.split('/').map(part).collect()
}
