//! `callboard workspace members`, `invite`, `role` and `remove`.

use clap::{Args, ValueEnum};
use wire::{AddMember, MemberRecord, UpdateMember};

use crate::options::{ClientOptions, ServiceSession};
use crate::output::{CommandError, say};
use crate::parts;
use crate::table::{self, minute};
use crate::terminal::harmless;

#[derive(Debug, Args)]
pub(crate) struct ListMembers {
    /// Slug or id.
    workspace: String,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Invite {
    /// Slug or id.
    workspace: String,
    /// The person's email address.
    email: String,
    /// The role in the workspace.
    #[arg(long, value_enum, default_value_t = RoleArgument::Viewer)]
    role: RoleArgument,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ChangeRole {
    /// Slug or id.
    workspace: String,
    /// The member's email address or account id.
    member: String,
    /// The new role.
    #[arg(value_enum)]
    role: RoleArgument,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Slug or id.
    workspace: String,
    /// The member's email address or account id.
    member: String,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

/// A role in a workspace; each includes the permissions of the roles before it.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RoleArgument {
    /// Reads.
    Viewer,
    /// Writes and runs workflows, and writes the vault.
    Editor,
    /// Publishes, and manages apps, members and tokens.
    Admin,
    /// Deletes the workspace.
    Owner,
}

impl RoleArgument {
    fn text(self) -> String {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
        .to_owned()
    }
}

impl ListMembers {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let all = all(session, &self.workspace).await?;
        let name = harmless(&self.workspace);
        let if_empty = format!("{name} has no members yet. `callboard workspace invite` invites one.");
        table::print_list(session.output, all, if_empty, ["MEMBER", "ROLE", "STATUS", "USER ID"], row)
    }
}

impl Invite {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let wanted = AddMember { email: self.email.clone(), role: self.role.text() };
        let added = session.received(session.client.add_member(&self.workspace, &wanted).await)?;
        let (who, place) = (name(&added), harmless(&self.workspace));
        let text = match &added.invited_until {
            Some(until) => format!(
                "Invited {who} to {place} as {}: signing in at {}/login before {} accepts the invitation.",
                harmless(&added.role),
                session.base(),
                minute(until)
            ),
            None => format!("{who} is a member of {place} as {}.", harmless(&added.role)),
        };
        session.output.print(&added, || say(text))
    }
}

impl ChangeRole {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let id = found(session, &self.workspace, &self.member).await?;
        let change = UpdateMember { role: self.role.text() };
        let changed = session.received(session.client.change_member(&self.workspace, &id, &change).await)?;
        let place = harmless(&self.workspace);
        let (who, role) = (name(&changed), harmless(&changed.role));
        let text = if changed.invited_until.is_some() {
            format!("Changed the invitation of {who} to {place}: {role}.")
        } else {
            format!("Changed the role of {who} in {place}: {role}.")
        };
        session.output.print(&changed, || say(text))
    }
}

impl Remove {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let id = found(session, &self.workspace, &self.member).await?;
        session.received(session.client.remove_member(&self.workspace, &id).await)?;
        let (who, place) = (harmless(&self.member), harmless(&self.workspace));
        session.output.say(format_args!("Removed {who} from {place}."))
    }
}

/// Resolves a member's email address to the account id.
async fn found(session: &ServiceSession, workspace: &str, member: &str) -> Result<String, CommandError> {
    if !member.contains('@') {
        return Ok(member.to_owned());
    }
    let all = all(session, workspace).await?;
    let exact = |found: &&MemberRecord| found.email.as_deref() == Some(member);
    let near = |found: &&MemberRecord| {
        found.email.as_deref().is_some_and(|email| email.eq_ignore_ascii_case(member))
    };
    let mut others = all.iter().filter(near);
    match (all.iter().find(exact), others.next(), others.next()) {
        (Some(found), _, _) | (None, Some(found), None) => Ok(found.user_id.clone()),
        (None, Some(_), Some(_)) => Err(CommandError::from(format!(
            "several members of {} have addresses that differ only in case; give the id",
            harmless(workspace)
        ))),
        (None, None, _) => {
            let known = all.iter().filter_map(|found| found.email.as_deref());
            let way = match wire::nearest(member, known) {
                Some(near) => format!("did you mean {}?", harmless(near)),
                None => "`callboard workspace members` lists its members".to_owned(),
            };
            let (member, workspace) = (harmless(member), harmless(workspace));
            Err(CommandError::from(format!("{member} does not belong to {workspace}; {way}")))
        }
    }
}

async fn all(session: &ServiceSession, workspace: &str) -> Result<Vec<MemberRecord>, CommandError> {
    parts::all(session, async |part| session.client.members(workspace, part).await).await
}

fn row(member: MemberRecord) -> [String; 4] {
    let status = match &member.invited_until {
        Some(until) if member.status == "invited" => format!("invited until {}", minute(until)),
        _ => member.status.clone(),
    };
    [member.email.unwrap_or_else(|| "-".to_owned()), member.role, status, member.user_id]
}

fn name(member: &MemberRecord) -> String {
    harmless(member.email.as_deref().unwrap_or(&member.user_id)).into_owned()
}
