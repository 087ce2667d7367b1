//! `callboard thread show`.

use clap::Args;
use wire::chat::{ItemBody, ThreadItem};

use super::ThreadArguments;
use crate::commands::chat::lines;
use crate::options::ServiceSession;
use crate::output::{CommandError, say};
use crate::parts;
use crate::table::second;
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
pub(crate) struct ShowThread {
    #[command(flatten)]
    pub(super) named: ThreadArguments,
}

impl ShowThread {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let ThreadArguments { workflow, thread, .. } = &self.named;
        let items =
            parts::all(session, async |part| session.client.items_of_workflow(workflow, thread, part).await)
                .await?;
        session.output.print(&items, || items.iter().try_for_each(show))
    }
}

/// Prints an item below its time and author.
fn show(item: &ThreadItem) -> Result<(), CommandError> {
    let said = match &item.body {
        ItemBody::UserMessage { .. }
        | ItemBody::AssistantMessage { .. }
        | ItemBody::StructuredInput { .. } => item.as_message(),
        _ => None,
    };
    let (author, said) = match said {
        Some(("user", text)) => ("visitor", Some(text)),
        Some((_, text)) => ("assistant", Some(text)),
        None => ("assistant", None),
    };
    let mut texts: Vec<String> = said.into_iter().chain(lines(&item.body)).collect();
    if let ItemBody::UserMessage { attachments, .. } = &item.body {
        texts.extend(attachments.iter().map(|attached| format!("[{}]", attached.name)));
    }
    if texts.is_empty() {
        return Ok(());
    }
    say(Paint::stdout().bold(format!("{} {author}", second(&item.created_at))))?;
    texts.iter().flat_map(|text| text.lines()).try_for_each(|line| say(format_args!("  {}", harmless(line))))
}
