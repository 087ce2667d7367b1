//! Evaluators that call graph functions or external services: the checks before the first call.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{Plan, digest};
use serde_json::{Value, json};
use training::evaluators::{Evaluator, PostTarget, check_functions};
use uuid::Uuid;
use wire::{ErrorCode, FieldError};

use super::prepare::Refused;
use crate::run::RunPorts;

/// Maximum time to resolve a service address; after that, each request resolves it.
const RESOLVE: Duration = Duration::from_secs(5);

/// Reports functions missing from the graph, credentials missing from the workspace, and addresses that must not be
/// called.
///
/// # Errors
/// [`Refused`] if the database or the sandbox is unavailable.
pub(super) async fn check(
    ports: &RunPorts,
    workspace: Uuid,
    plan: &Plan,
    evaluators: &[Evaluator],
    problems: &mut Vec<FieldError>,
) -> Result<(), Refused> {
    let functions: Vec<_> = evaluators.iter().flat_map(Evaluator::functions).collect();
    if !functions.is_empty() {
        let sandbox = ports.sandbox.for_owner(workspace);
        let named: Vec<&str> = functions.iter().map(|function| function.module.as_str()).collect();
        let known = plan.functions_of(&named, &sandbox).await.map_err(Refused::Code)?;
        let mut missing = Vec::new();
        check_functions(&functions, &known, &mut missing);
        if !missing.is_empty() {
            // Only a refusal lists all available functions.
            let known = plan.functions(&sandbox).await.map_err(Refused::Code)?;
            check_functions(&functions, &known, problems);
        }
    }
    let posts: Vec<_> = evaluators.iter().flat_map(Evaluator::posts).collect();
    if posts.is_empty() {
        return Ok(());
    }
    let credentials = ports.store.credential_names(workspace).await?;
    for post in &posts {
        let PostTarget { pointer, credential, .. } = post;
        if !credentials.contains(credential) {
            let message = format!("this workspace has no credential '{credential}'");
            let problem = FieldError::new(pointer, "unknown_credential", message);
            problems.push(
                problem.suggest(format!("create it first: `callboard credential create \"{credential}\"`")),
            );
        } else if ports.vault.is_none() {
            let problem = FieldError::new(pointer, "vault_key_missing", "the vault has no key");
            problems.push(problem.suggest("the operator sets SERVICE_VAULT_KEYS"));
        }
        if let Some(refused) = refused_address(ports, post).await {
            problems.push(FieldError::new(&post.url_pointer, "egress_refused", refused));
        }
    }
    Ok(())
}

/// The guard's reason against calling the address; `None` if it allows the call, or if the name does not resolve now.
async fn refused_address(ports: &RunPorts, post: &PostTarget) -> Option<String> {
    let (host, port) = post.place()?;
    let addresses = ports.outbound.addresses(&host, port);
    let error = kernel::timeout(&*ports.clock, RESOLVE, addresses).await?.err()?;
    (error.kind.code() == ErrorCode::EgressRefused).then_some(error.message)
}

/// SHA-256 over everything that determines the evaluators' verdicts: the request's list, and the functions' code.
pub(super) fn judges_digest(list: Value, evaluators: &[Evaluator], plan: &Plan) -> Vec<u8> {
    let mut code = BTreeMap::new();
    for name in evaluators.iter().flat_map(Evaluator::functions) {
        let Ok(function) = plan.function(&name.module, &name.function) else { continue };
        code.extend(function.sources().map(|(module, source)| (module.to_owned(), source.to_owned())));
    }
    let judges = if code.is_empty() { list } else { json!({"evaluators": list, "modules": code}) };
    digest(&judges).map(|digest| digest.to_vec()).unwrap_or_default()
}
