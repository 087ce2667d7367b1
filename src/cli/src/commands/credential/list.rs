//! `callboard credential list`.

use clap::Args;
use wire::CredentialRecord;

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::CommandError;
use crate::parts;
use crate::table::{self, minute};

#[derive(Debug, Args)]
pub(crate) struct ListCredentials {
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl ListCredentials {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let all = parts::all(session, async |part| session.client.credentials(part).await).await?;
        table::print_list(
            session.output,
            all,
            "No credentials found. `callboard credential create` creates one.",
            ["NAME", "SECRET", "PROVIDER", "CHANGED", "ID", "DESCRIPTION"],
            row,
        )
    }
}

fn row(credential: CredentialRecord) -> [String; 6] {
    let or_none =
        |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned());
    [
        credential.name,
        credential.preview,
        or_none(credential.provider),
        minute(&credential.updated_at),
        credential.id,
        or_none(credential.description),
    ]
}
