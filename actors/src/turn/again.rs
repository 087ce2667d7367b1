//! What a turn that answers a message again has to know.

use kernel::{ItemKey, ThreadId};
use serde_json::{Value, json};
use store::batch::CutRow;

use super::text::stored_json;

/// A message that is answered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Again {
    /// The message.
    pub(crate) item: ItemKey,
    /// When it was asked for: users' messages from here on are later ones.
    pub(crate) asked: ItemKey,
    /// Whether what came meanwhile has been taken out.
    pub(crate) begun: bool,
}

impl Again {
    /// What the run's row keeps of it, JSON.
    pub(crate) fn options(&self) -> String {
        json!({"again": {"item": self.item.wire("msg"), "asked": self.asked.wire("msg")}}).to_string()
    }

    /// What a run's row says of it; nothing when the run answers a message for the first time.
    pub(crate) fn stored(options: Option<&str>, begun: bool) -> Option<Self> {
        let options = stored_json(options?).ok()?;
        let again = options.get("again")?;
        let key = |name| again.get(name).and_then(Value::as_str).and_then(|id| ItemKey::parse(id).ok());
        Some(Self { item: key("item")?, asked: key("asked")?, begun })
    }

    /// Takes everything behind the message out but later messages; before `id`, which is now.
    pub(crate) fn cut(&self, thread_id: ThreadId, id: ItemKey) -> CutRow {
        CutRow { thread_id, id, behind: self.item, messages_from: self.asked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_it_is_read_again() {
        let again = Again { item: ItemKey([1; 24]), asked: ItemKey([2; 24]), begun: false };
        let options = again.options();
        assert_eq!(Again::stored(Some(&options), false), Some(again));
        assert_eq!(Again::stored(Some(&options), true), Some(Again { begun: true, ..again }));
        for other in [None, Some("{}"), Some("{"), Some(r#"{"again":{"item":"x"}}"#)] {
            assert_eq!(Again::stored(other, false), None, "{other:?}");
        }
    }
}
