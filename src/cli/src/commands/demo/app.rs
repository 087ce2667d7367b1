//! The demo's app: a page on its own host that calls a workflow, published through the normal steps.

use std::io::{self, Cursor, Read as _};

use client::{Archive, Client, ClientError, Part};
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};
use wire::{AppAccess, AppRecord, CreateApp, CreateVersion, CreateWorkflow};

use super::save;
use crate::commands::app::archive;
use crate::options::{ServiceSession, new_key};
use crate::output::CommandError;

const HANDLE: &str = "callboard-demo-tea-shop";
const WORKFLOW: &str = include_str!("../../../../../examples/apps/ask/workflow.json");
const MODEL: &str = "practice/assistant@40ms";

/// The name that distinguishes the demo's app from a user's app, which the demo does not change.
const NAME: &str = "Tea shop (demo)";
/// The second alias is for a data folder whose user already has an app `ask`.
const ALIASES: [&str; 2] = ["ask", "callboard-demo-ask"];

const MANIFEST: (&str, &str) =
    ("service.app.json", include_str!("../../../../../examples/apps/ask/app/service.app.json"));
const FILES: [(&str, &str); 6] = [
    ("app.js", include_str!("../../../../../examples/apps/ask/app/app.js")),
    ("dom.js", include_str!("../../../../../examples/apps/ask/app/dom.js")),
    ("favourites.js", include_str!("../../../../../examples/apps/ask/app/favourites.js")),
    ("icon.svg", include_str!("../../../../../examples/apps/ask/app/icon.svg")),
    ("index.html", include_str!("../../../../../examples/apps/ask/app/index.html")),
    ("style.css", include_str!("../../../../../examples/apps/ask/app/style.css")),
];

/// Publishes the app, or returns the app of an earlier demo. `None` if both aliases are taken.
pub(super) async fn publish(session: &ServiceSession) -> Result<Option<AppRecord>, CommandError> {
    let key = new_key()?;
    session.received(published(&session.client, &key).await)
}

/// `key` is the upload's idempotency key.
async fn published(client: &Client, key: &str) -> Result<Option<AppRecord>, ClientError> {
    let version = ready(client).await?;
    let Some(app) = create(client).await? else { return Ok(None) };
    let archive = bundle(version).map_err(|error| ClientError::Usage(error.to_string()))?;
    let deployment = deploy(client, &app.alias, key, archive).await?;
    let active = app.active_release.as_ref().map(|active| active.deployment_id.as_str());
    if active != Some(deployment.as_str()) {
        let read = client.permissions(&app.alias, &deployment).await?;
        client.acknowledge(&app.alias, &deployment, &read.permission_revision).await?;
        client.publish_app(&app.alias, &deployment).await?;
    }
    Ok(Some(app))
}

/// Saves the workflow; returns the version number.
async fn ready(client: &Client) -> Result<i32, ClientError> {
    let wanted = CreateWorkflow {
        name: "Tea shop".to_owned(),
        handle: Some(HANDLE.to_owned()),
        description: Some("Answers questions to a tea shop; an app calls it.".to_owned()),
        tags: vec!["example".to_owned()],
    };
    let graph = serde_json::from_str(WORKFLOW).map_err(|error| ClientError::Usage(error.to_string()))?;
    let config = Map::from_iter([("model".to_owned(), Value::from(MODEL))]);
    let version = CreateVersion { graph, runnable_config: Some(config), metadata: None, notes: None };
    save(client, &wanted, &version).await
}

/// Creates the app, or finds the app of an earlier demo.
async fn create(client: &Client) -> Result<Option<AppRecord>, ClientError> {
    for alias in ALIASES {
        let new =
            CreateApp { alias: alias.to_owned(), name: NAME.to_owned(), access: Some(AppAccess::Public) };
        match client.create_app(&new).await {
            Ok(app) => return Ok(Some(app)),
            Err(error) if error.code() == Some("alias_taken") => {}
            Err(error) => return Err(error),
        }
        // A deleted app's alias stays taken but belongs to no app.
        let known = client.apps(&Part { limit: Some(200), cursor: None }).await?.data;
        let known = known.into_iter().find(|app| app.alias == alias && app.name == NAME);
        if known.is_some() {
            return Ok(known);
        }
    }
    Ok(None)
}

/// Uploads the archive, unless it was uploaded before; returns the deployment's id.
async fn deploy(client: &Client, alias: &str, key: &str, archive: Vec<u8>) -> Result<String, ClientError> {
    let hash = digest(&SHA256, &archive);
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let known = client.deployments(alias, &Part { limit: Some(200), cursor: None }).await?.data;
    let known = known.into_iter().find(|deployment| deployment.available && deployment.digest == hash);
    if let Some(known) = known {
        return Ok(known.id);
    }
    let size = u64::try_from(archive.len()).unwrap_or(u64::MAX);
    let archive = Archive { size, chunks: std::iter::once(Ok(archive)) };
    Ok(client.deploy(alias, key, archive).await?.summary.id)
}

/// The example's archive, whose manifest names the demo's workflow. The same version always gives the same archive.
fn bundle(version: i32) -> io::Result<Vec<u8>> {
    let (name, manifest) = MANIFEST;
    let manifest = bound(manifest, version)?;
    let files = FILES.into_iter().chain([(name, manifest.as_str())]);
    let files = files.map(|(name, text)| Ok((name.to_owned(), Cursor::new(text))));
    let mut bytes = Vec::new();
    archive::write(files)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The manifest with the demo's workflow in its binding.
fn bound(manifest: &str, version: i32) -> io::Result<String> {
    let mut manifest: Value = serde_json::from_str(manifest)?;
    let bindings = manifest.get_mut("bindings").and_then(Value::as_object_mut);
    for binding in bindings.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        binding.insert("workflow".to_owned(), HANDLE.into());
        binding.insert("version".to_owned(), version.into());
    }
    Ok(manifest.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use bundle::{Limits, Verdict};
    use kernel::SystemClock;

    use super::*;

    #[test]
    fn every_file_of_the_example_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/apps/ask/app");
        let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let embedded = FILES.iter().map(|(name, _)| *name).chain([MANIFEST.0]).map(str::to_owned);
        assert_eq!(names.collect::<BTreeSet<_>>(), embedded.collect());
    }

    #[test]
    fn the_bundle_is_accepted_and_binds_the_workflow_of_the_demo() {
        let bytes = bundle(3).unwrap();
        assert_eq!(bytes, bundle(3).unwrap());
        let verdict =
            bundle::check(&mut Cursor::new(bytes), &Limits::DEFAULT, &SystemClock::new(), bundle::TIME);
        let Ok(Verdict::Accepted(accepted)) = verdict else { panic!("{verdict:?}") };
        let manifest: Value = serde_json::from_str(&bound(MANIFEST.1, 3).unwrap()).unwrap();
        let bindings = manifest["bindings"].as_object().unwrap();
        assert_eq!(accepted.manifest.unwrap().bindings.len(), bindings.len());
        for binding in bindings.values() {
            assert_eq!((&binding["workflow"], &binding["version"]), (&HANDLE.into(), &3.into()));
        }
    }
}
