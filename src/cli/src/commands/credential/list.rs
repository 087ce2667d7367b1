//! `callboard credential list`.

use clap::Args;
use wire::CredentialRecord;

use crate::options::{ClientOptions, InWorkspace, Session};
use crate::output::{Failure, Output, complain, pretty, say};
use crate::parts;
use crate::table::{self, minute};

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl List {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let all = parts::all(session, async |part| session.client.credentials(part).await).await?;
        if session.output == Output::Json {
            return say(pretty(&all)?);
        }
        if all.is_empty() {
            complain("No credentials found. `callboard credential create` creates one.");
            return Ok(());
        }
        let head = ["NAME", "SECRET", "PROVIDER", "CHANGED", "ID", "DESCRIPTION"];
        table::print(head, all.into_iter().map(row).collect())
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
