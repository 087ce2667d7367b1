//! The thread as a model read it in a past turn, as far as it can be reconstructed.

use kernel::{ItemKey, ThreadId};
use serde_json::Value;
use store::{Store, StoreError, StoredRun};

use super::again::{Again, answered_before, created_at, is_users};
use super::continuing::Left;
use super::history;
use super::resume::{Resumed, fold};

/// Stream rows that contain the first events.
const FIRST: i64 = 4;

/// Returns the messages in a turn's input; fewer if its stream is gone or its thread has changed since.
pub(crate) async fn messages(
    store: &Store,
    run: &StoredRun,
    thread: ThreadId,
) -> Result<Vec<Value>, StoreError> {
    let again = Again::stored(run.options.as_deref(), true);
    let before = store.sent_before(run.id).await?;
    let before: Option<Left> = before.and_then(|sent| serde_json::from_str(&sent).ok());
    let own = match (again, run.stream_id) {
        (Some(again), _) => Some(again.item),
        _ if before.is_some() => before.as_ref().and_then(Left::message),
        (None, Some(stream)) => {
            let dialect = store.stream(stream).await?.and_then(|stream| stream.dialect);
            let first = store.frames_after(stream, 0, FIRST).await?;
            dialect.and_then(|dialect| fold(Resumed::default(), &first, thread, dialect).user_item)
        }
        (None, None) => None,
    };
    let is_action = serde_json::from_str::<Value>(&run.inputs)
        .is_ok_and(|inputs| inputs.get("action").is_some_and(|action| !action.is_null()));
    if own.is_none() && !is_action {
        return Ok(Vec::new());
    }
    let mut items = store.thread_items(thread).await?;
    if let Some(again) = again {
        let kept = answered_before(store, thread, again.item, &items).await?;
        items.retain(|stored| again.reads(&stored.item, kept));
    }
    // Drops output created after the run started.
    items.retain(|stored| {
        let earlier = created_at(&stored.item).zip(run.started_at).is_none_or(|(at, began)| at < began);
        is_users(&stored.item) || earlier && (own.is_none() || before.is_some() || stored.answers != own)
    });
    let files = history::files(store, thread, &items).await?;
    let sent = if before.is_some() { history::answers_to(&items, own) } else { Vec::new() };
    let message = own.unwrap_or_else(|| ItemKey::at(run.id)).wire("msg");
    let own = history::TurnItems { message: Some(&message), items: &sent };
    Ok(history::messages(history::paired(items), &files, own, None))
}
