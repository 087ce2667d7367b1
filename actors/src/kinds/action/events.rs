//! An action's single output: its widget's last state, committed with the run's end. Pure.

use engine::ports::{SentItem, Undone};
use kernel::{ItemKey, ThreadId};
use serde::{Deserialize, Serialize};
use store::FoundItem;
use store::batch::{Batch, ReplacedItemRow};
use uuid::Uuid;
use wire::chat::{ItemBody, ThreadItem};

use crate::run::{EventWriter, Frames, Urgency};
use crate::text::json;

/// The last event in an action's stream, which only the service reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ActionEnd {
    /// It succeeded.
    Done {
        /// The widget, if it has changed.
        item: Option<Box<ThreadItem>>,
    },
    /// It failed.
    Failed,
    /// It took too long.
    TooLate,
}

/// The widget that the action belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Widget {
    pub(super) thread: ThreadId,
    pub(super) id: ItemKey,
    pub(super) item: ThreadItem,
    pub(super) key: String,
}

/// Collects the widget states that an action sends.
pub(crate) struct ActionEvents {
    run: Uuid,
    /// `None`: the page itself acts, and nothing can change.
    widget: Option<Widget>,
    /// For each item sent: the widget's state, or `None` for another item. A failed attempt's entries are removed.
    sent: Vec<Option<ItemBody>>,
    /// The last state, if the run has succeeded.
    state: Option<ThreadItem>,
    end: Option<ActionEnd>,
}

impl ActionEvents {
    pub(super) fn new(run: Uuid, widget: Option<Widget>) -> Self {
        Self { run, widget, sent: Vec::new(), state: None, end: None }
    }

    /// Ends a successful run.
    pub(super) fn succeeded(&mut self) {
        let last = self.sent.drain(..).rev().flatten().next();
        let state = self.widget.as_ref().zip(last);
        self.state = state.map(|(widget, body)| ThreadItem { body, ..widget.item.clone() });
        // An unchanged state is written too, because another action may have changed the widget since.
        let changed = self.state.as_ref().zip(self.widget.as_ref());
        let changed = changed.filter(|(state, widget)| state.body != widget.item.body);
        self.end = Some(ActionEnd::Done { item: changed.map(|(state, _)| Box::new(state.clone())) });
    }

    /// Ends a run that did not succeed: the widget is unchanged.
    pub(super) fn failed(&mut self, too_late: bool) {
        self.end = Some(if too_late { ActionEnd::TooLate } else { ActionEnd::Failed });
    }
}

/// All other output is only in the journal.
impl EventWriter for ActionEvents {
    fn item(&mut self, item: SentItem, _earlier: Option<FoundItem>) -> Urgency {
        let own = self.widget.as_ref().is_some_and(|widget| item.key.as_deref() == Some(&widget.key));
        self.sent.push(item.body.filter(|body| own && matches!(body, ItemBody::Widget { .. })));
        Urgency::Whenever
    }

    fn undo(&mut self, _node: &str, parts: &[Undone]) {
        let items = parts.iter().filter(|part| matches!(part, Undone::Item)).count();
        self.sent.truncate(self.sent.len().saturating_sub(items));
    }

    fn write(&mut self, frames: &mut Frames, batch: &mut Batch) {
        let Some(end) = self.end.take() else { return };
        frames.push(&end);
        if let (Some(item), Some(widget)) = (&self.state, &self.widget) {
            let (thread_id, id, run_id) = (widget.thread, widget.id, self.run);
            // The second row marks the run's end: the item's previous content is not kept.
            let rows = [Some(json(item)), None];
            batch.replaced_items.extend(rows.map(|content| ReplacedItemRow {
                thread_id,
                id,
                content,
                run_id,
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::chat::WidgetRoot;

    use super::*;

    fn card(text: &str) -> ItemBody {
        let root = json!({"type": "Card", "children": [{"type": "Text", "value": text}]});
        ItemBody::Widget { widget: WidgetRoot(root.as_object().unwrap().clone()), copy_text: None }
    }

    fn events() -> ActionEvents {
        let thread = ThreadId(Uuid::nil());
        let id = ItemKey([7; ItemKey::LENGTH]);
        let (wire_id, thread_id) = (id.wire("msg"), thread.to_string());
        let item = ThreadItem { body: card("a"), id: wire_id, thread_id, created_at: "t".into() };
        ActionEvents::new(Uuid::nil(), Some(Widget { thread, id, item, key: "k".to_owned() }))
    }

    fn sent(key: &str, body: Option<ItemBody>) -> SentItem {
        SentItem { body, key: Some(key.to_owned()), more: false }
    }

    /// The changes by a run that sends these items.
    fn ended(items: Vec<SentItem>) -> (Option<ItemBody>, usize) {
        let mut events = events();
        for item in items {
            events.item(item, None);
        }
        events.succeeded();
        let (mut frames, mut batch) = (Frames::new("s".to_owned(), 1), Batch::default());
        let item = match events.end.clone() {
            Some(ActionEnd::Done { item }) => item.map(|item| item.body),
            _ => None,
        };
        events.write(&mut frames, &mut batch);
        (item, batch.replaced_items.len())
    }

    #[test]
    fn the_last_state_of_the_actions_widget_counts() {
        let states =
            vec![sent("k", Some(card("b"))), sent("other", Some(card("x"))), sent("k", Some(card("c")))];
        assert_eq!(ended(states), (Some(card("c")), 2));
        assert_eq!(
            ended(vec![sent("k", Some(card("b"))), sent("k", Some(card("a")))]),
            (None, 2),
            "as before: written, and not returned"
        );
        assert_eq!(ended(vec![sent("k", Some(card("b"))), sent("k", None)]), (Some(card("b")), 2));
        assert_eq!(ended(vec![sent("k", Some(ItemBody::EndOfTurn))]), (None, 0));
    }

    #[test]
    fn a_failed_attempt_restores_the_previous_state() {
        let mut events = events();
        for item in [sent("k", Some(card("b"))), sent("other", Some(card("x"))), sent("k", Some(card("c")))] {
            events.item(item, None);
        }
        events.undo("n", &[Undone::Item, Undone::Text(3), Undone::Item]);
        events.succeeded();
        let state = events.state.clone().map(|item| item.body);
        assert_eq!(state, Some(card("b")));
    }

    #[test]
    fn an_unsuccessful_run_changes_nothing() {
        let mut events = events();
        events.item(sent("k", Some(card("b"))), None);
        events.failed(true);
        let (mut frames, mut batch) = (Frames::new("s".to_owned(), 1), Batch::default());
        events.write(&mut frames, &mut batch);
        assert!(batch.replaced_items.is_empty());
    }
}
