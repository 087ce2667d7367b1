//! `callboard app permissions`, `acknowledge`, `publish`, `rollback` and `releases`.

use clap::Args;
use client::Part;
use serde_json::Value;
use wire::{
    AcknowledgementRecord, DeploymentSummary, Permissions as Permitted, PermissionsRecord, ReleaseRecord,
    ReleaseSummary, RollBack,
};

use super::AppArguments;
use crate::options::ServiceSession;
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::parts;
use crate::table::{self, second};
use crate::terminal::{confirm, harmless};

#[derive(Debug, Args)]
pub(crate) struct Permissions {
    #[command(flatten)]
    pub(super) named: AppArguments,
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
pub(crate) struct Acknowledge {
    #[command(flatten)]
    pub(super) named: AppArguments,
    #[command(flatten)]
    which: Which,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Publish {
    #[command(flatten)]
    pub(super) named: AppArguments,
    #[command(flatten)]
    which: Which,
}

/// A deployment of an app.
#[derive(Debug, Args)]
struct Which {
    /// Id of the deployment (default: the newest one)
    #[arg(value_name = "DEPLOYMENT")]
    deployment: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Rollback {
    #[command(flatten)]
    pub(super) named: AppArguments,
    /// Id or number of the release to repeat
    #[arg(value_name = "RELEASE")]
    release: String,
}

#[derive(Debug, Args)]
pub(crate) struct Releases {
    #[command(flatten)]
    pub(super) named: AppArguments,
}

impl Which {
    /// The deployment's id.
    async fn id(&self, session: &ServiceSession, app: &str) -> Result<String, CommandError> {
        if let Some(id) = &self.deployment {
            return Ok(id.clone());
        }
        let newest = Part { limit: Some(1), cursor: None };
        let newest = session.received(session.client.deployments(app, &newest).await)?;
        let newest: Option<DeploymentSummary> = newest.data.into_iter().next();
        newest.map(|newest| newest.id).ok_or_else(|| {
            format!("{app} has no deployment; `callboard app deploy {app} FOLDER` uploads one").into()
        })
    }
}

impl Permissions {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let id = self.which.id(session, &self.named.app).await?;
        let read = session.received(session.client.permissions(&self.named.app, &id).await)?;
        if session.output == Output::Json {
            return say(pretty(&read)?);
        }
        let is_first = is_first(session, &self.named.app).await?;
        say(format_args!("deployment   {id}"))?;
        say(format_args!("revision     {}", read.permission_revision))?;
        say(format_args!("acknowledged {}", if read.acknowledged { "yes" } else { "no" }))?;
        lines(&read, is_first).into_iter().try_for_each(say)
    }
}

impl Acknowledge {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let id = self.which.id(session, &self.named.app).await?;
        let acknowledged = acknowledge(session, &self.named.app, &id, self.yes).await?;
        if session.output == Output::Json { say(pretty(&acknowledged)?) } else { Ok(()) }
    }
}

impl Publish {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let id = self.which.id(session, &self.named.app).await?;
        publish(session, &self.named.app, &id).await
    }
}

impl Rollback {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let app = &self.named.app;
        let named = &self.release;
        let all = parts::all(session, async |part| session.client.releases(app, part).await).await?;
        let is_named = |release: &&ReleaseSummary| match named.parse::<i32>() {
            Ok(number) => release.number == number,
            Err(_) => release.id.starts_with(named),
        };
        let mut found = all.iter().filter(is_named);
        let release = match (found.next(), found.next()) {
            (Some(only), None) => only.id.clone(),
            (Some(_), Some(_)) => {
                return Err(CommandError::usage(format!("several releases begin with `{named}`")));
            }
            (None, _) => {
                let hint = format!("`callboard app releases {app}` lists its releases");
                return Err(format!("{app} has no release {named}; {hint}").into());
            }
        };
        let made = session.client.roll_back(app, &RollBack { release }).await;
        show(session, app, &session.received(made)?).await
    }
}

impl Releases {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let app = &self.named.app;
        let all = parts::all(session, async |part| session.client.releases(app, part).await).await?;
        table::print_list(
            session.output,
            all,
            format_args!("No releases found. `callboard app publish {app}` makes one."),
            ["NUMBER", "CREATED", "ACTIVE", "DEPLOYMENT", "ID"],
            row,
        )
    }
}

fn row(release: ReleaseSummary) -> [String; 5] {
    [
        release.number.to_string(),
        second(&release.created_at),
        if release.active { "yes" } else { "no" }.to_owned(),
        release.deployment_id,
        release.id,
    ]
}

/// Shows a deployment's permissions, asks for confirmation and acknowledges them; does not ask if they are already
/// acknowledged. Returns the first acknowledgement.
pub(super) async fn acknowledge(
    session: &ServiceSession,
    app: &str,
    deployment: &str,
    yes: bool,
) -> Result<AcknowledgementRecord, CommandError> {
    let read = session.received(session.client.permissions(app, deployment).await)?;
    if !read.acknowledged {
        for line in lines(&read, is_first(session, app).await?) {
            complain(line);
        }
        if !yes {
            confirm("Acknowledge these permissions?")?;
        }
    }
    let acknowledged =
        session.received(session.client.acknowledge(app, deployment, &read.permission_revision).await)?;
    if read.acknowledged {
        complain("These permissions are acknowledged.");
    } else {
        complain(format_args!("Acknowledged {}.", acknowledged.permission_revision));
    }
    Ok(acknowledged)
}

/// Publishes a deployment and prints the release.
pub(super) async fn publish(
    session: &ServiceSession,
    app: &str,
    deployment: &str,
) -> Result<(), CommandError> {
    let made = session.client.publish_app(app, deployment).await;
    show(session, app, &session.received(made)?).await
}

async fn show(session: &ServiceSession, app: &str, release: &ReleaseRecord) -> Result<(), CommandError> {
    if session.output == Output::Json {
        return say(pretty(release)?);
    }
    let ReleaseRecord { summary, .. } = release;
    say(format_args!("Published release {} of {app} ({}).", summary.number, summary.id))?;
    let app = session.received(session.client.app(app).await)?;
    say(format_args!("It opens at {}", app.url))
}

/// Whether the app has no release to compare permissions with.
async fn is_first(session: &ServiceSession, app: &str) -> Result<bool, CommandError> {
    let app = session.received(session.client.app(app).await)?;
    Ok(app.active_release.is_none())
}

/// Differences from the active release, one line per member; before the first release, all permissions.
fn lines(read: &PermissionsRecord, is_first: bool) -> Vec<String> {
    let changed = if is_first { every(&read.permissions) } else { differing(read) };
    let named = |(id, workflow): (&String, &wire::PermissionWorkflow)| {
        format!("  workflow {id} is {} ({})", harmless(&workflow.handle), harmless(&workflow.name))
    };
    let workflows = read.workflows.iter().filter(|_| is_first || !read.changes.is_empty()).map(named);
    changed.into_iter().chain(workflows).collect()
}

/// Formats all permissions as additions.
fn every(permissions: &Permitted) -> Vec<String> {
    let mut lines = vec!["The app has no release: every permission is new.".to_owned()];
    let permissions = serde_json::to_value(permissions).unwrap_or_default();
    for (part, value) in permissions.as_object().into_iter().flatten() {
        match value {
            Value::Object(named) if !named.is_empty() => {
                let named = named.iter();
                lines.extend(named.flat_map(|(name, value)| {
                    whole(&format!("+ /{part}/{}", harmless(&wire::escape(name))), value)
                }));
            }
            Value::Object(_) => lines.push(format!("+ /{part} none")),
            Value::Array(items) if items.is_empty() => lines.push(format!("+ /{part} none")),
            value => lines.extend(whole(&format!("+ /{part}"), value)),
        }
    }
    lines
}

fn differing(read: &PermissionsRecord) -> Vec<String> {
    if read.changes.is_empty() {
        return vec!["No permission differs from the active release.".to_owned()];
    }
    let line = |change: &wire::PermissionChange| {
        let path = harmless(&change.path);
        match (&change.before, &change.after) {
            (Value::Null, after) => whole(&format!("+ {path}"), after),
            (before, Value::Null) => whole(&format!("- {path}"), before),
            (before, after) => vec![format!("~ {path} {} -> {}", shown(before), shown(after))],
        }
    };
    read.changes.iter().flat_map(line).collect()
}

/// Formats an added or removed value; each object member gets a line.
fn whole(title: &str, value: &Value) -> Vec<String> {
    let Value::Object(members) = value else { return vec![format!("{title} {}", shown(value))] };
    let member = |(name, value): (&String, &Value)| match value {
        Value::Array(items) if items.is_empty() => format!("    {}: none", harmless(name)),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("    {}: {}", harmless(name), items.join(", "))
        }
        value => format!("    {}: {}", harmless(name), shown(value)),
    };
    std::iter::once(title.to_owned()).chain(members.iter().map(member)).collect()
}

/// Omits quotes only from unambiguous texts, because publishers choose the names.
fn shown(value: &Value) -> String {
    let is_plain =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !",\"".contains(c));
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        value => harmless(&value.to_string()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn before_the_first_release_every_permission_is_new() {
        let title = "The app has no release: every permission is new.";
        let none = ["+ /bindings none", "+ /collections none", "+ /frame_ancestors none", "+ /wasm false"];
        assert_eq!(every(&Permitted::default()), [&[title][..], &none].concat());
        let some: Permitted = serde_json::from_value(json!({
            "bindings": {},
            "collections": {"notes": {"kind": "user", "anonymous": [], "member": ["read"]}},
            "frame_ancestors": ["https://example.org"],
            "wasm": true,
        }))
        .unwrap();
        let mut lines = every(&some);
        lines.sort();
        let expected = [
            "    anonymous: none",
            "    kind: user",
            "    member: read",
            "+ /bindings none",
            "+ /collections/notes",
            "+ /frame_ancestors [\"https://example.org\"]",
            "+ /wasm true",
            title,
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn an_added_binding_has_a_line_for_each_member() {
        let binding = json!({"access_mode": "anonymous", "credentials": [], "fields": ["answer", "topic"], "version": 1});
        let expected = [
            "+ /bindings/ask",
            "    access_mode: anonymous",
            "    credentials: none",
            "    fields: answer, topic",
            "    version: 1",
        ];
        assert_eq!(whole("+ /bindings/ask", &binding), expected);
        assert_eq!(whole("- /wasm", &json!(true)), ["- /wasm true"]);
        let forged = json!({"fields": ["a, b", "x\n+ /wasm true"]});
        assert_eq!(whole("+ /x", &forged), ["+ /x", r#"    fields: "a, b", "x\n+ /wasm true""#]);
    }
}
