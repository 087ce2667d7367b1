//! Turns that end with a question.

use chrono::{DateTime, Utc};
use kernel::ItemKey;
use serde_json::Value;
use store::batch::{ClosedQuestionsRow, QuestionItemRow, RemovedItemRow, ReplacedItemRow, TurnSentRow};
use store::{OpenQuestion, QuestionKey, RunState};
use wire::chat::{ChatEvent, ItemBody, NoticeLevel, ThreadItem};

use super::ChatEvents;
use crate::kinds::turn::continuing::{Continued, Left, lives};
use crate::run::End;
use crate::text::{json, timestamp};

/// The notice for an answer without effect.
const ANSWER_HAS_NO_EFFECT: &str =
    "Your answer is stored. The conversation has already continued, or it waits for other answers.";

impl ChatEvents {
    /// Sets the turn that this one continues. `has_added`: an earlier life added an item. `has_started`: there was an
    /// earlier life.
    #[must_use]
    pub(in crate::kinds::turn) fn continuing(
        self,
        continued: Option<Continued>,
        has_added: bool,
        has_started: bool,
    ) -> Self {
        let needs_reply = self.needs_reply && continued.is_none();
        Self { continued, needs_reply, has_added, has_progressed: has_started, ..self }
    }

    /// Whether the continued turn no longer waits for anything.
    pub(in crate::kinds::turn) fn is_over(&self) -> bool {
        self.continued.as_ref().is_some_and(|continued| continued.is_over)
    }

    /// Sends the notice that the answer has no effect.
    pub(in crate::kinds::turn) fn notify_no_effect(&mut self) {
        self.event(ChatEvent::Notice {
            level: NoticeLevel::Info,
            message: ANSWER_HAS_NO_EFFECT.to_owned(),
            title: None,
        });
    }

    /// Starts the execution. `messages`: the thread as the turn reads it, if it may end with a question.
    pub(in crate::kinds::turn) fn begin_continuation(&mut self, messages: Option<Vec<Value>>) {
        self.messages = messages;
        let answered = self.continued.as_mut().map(|before| std::mem::take(&mut before.answered));
        for (id, item) in answered.unwrap_or_default() {
            let (thread_id, run_id, content) = (self.thread, self.run, Some(json(&item)));
            self.rows.replaced.push(ReplacedItemRow { thread_id, id, content, run_id });
            self.event(ChatEvent::ItemReplaced { item });
        }
    }

    /// Closes the questions taken over from the previous turn: they no longer wait for answers.
    pub(in crate::kinds::turn) fn close_questions(&mut self) {
        if self.continued.is_some() {
            let (run_id, at, step) = (self.run, self.clock.now(), None);
            self.rows.closed.push(ClosedQuestionsRow { run_id, at, step });
        }
    }

    /// Ends the turn with its open questions. `closed`: questions that need no answer any more. `due_at`: when
    /// something else is due.
    pub(in crate::kinds::turn) fn end_with(
        &mut self,
        open: Vec<OpenQuestion>,
        closed: Vec<OpenQuestion>,
        due_at: Option<DateTime<Utc>>,
    ) -> End {
        self.settle();
        if self.continued.is_some() && !self.has_progressed {
            self.notify_no_effect();
        }
        for question in closed {
            let QuestionKey { node, visit, attempt, .. } = question.step;
            let (run_id, at, step) = (self.run, self.clock.now(), Some((node, visit, attempt)));
            self.rows.closed.push(ClosedQuestionsRow { run_id, at, step });
        }
        let is_call =
            |question: &OpenQuestion| matches!(question.item, Some(ItemBody::ClientToolCall { .. }));
        let (mut calls, others): (Vec<_>, Vec<_>) = open.into_iter().partition(is_call);
        for question in others.into_iter().filter(|question| question.item_id.is_none()) {
            self.ask(question);
        }
        // A client runs one tool at a time, and the call must be the last item, so it is sent again if it is not.
        let asked = calls.iter().position(|call| call.item_id.is_some());
        let call = if calls.is_empty() { None } else { Some(calls.swap_remove(asked.unwrap_or_default())) };
        match call {
            Some(call) if call.item_id.is_none() => self.ask(call),
            Some(call) if self.has_added => {
                self.take_back_call(&call);
                self.ask(call);
            }
            _ => {}
        }
        self.end_changes();
        let lives = lives(self.continued.as_ref(), self.run, self.messages.take());
        let message = self.question.map(|message| message.wire("msg"));
        let sent = json(&Left { sent: self.sent.clone(), lives, message });
        let (run_id, thread_id, dialect) = (self.run, self.thread, self.dialect);
        self.rows.sent.push(TurnSentRow { run_id, thread_id, dialect, sent, due_at });
        End { status: RunState::Succeeded, output: Some("null".to_owned()), error: None }
    }

    /// Removes a call's item that other items follow.
    fn take_back_call(&mut self, call: &OpenQuestion) {
        let (Some(id), Some(body)) = (call.item_id, &call.item) else { return };
        self.rows.removed.push(RemovedItemRow { thread_id: self.thread, id, run_id: self.run });
        self.event(ChatEvent::ItemRemoved { item_id: id.wire(body.prefix()) });
    }

    /// Adds a question's pending item.
    fn ask(&mut self, question: OpenQuestion) {
        let (Some(mut body), Some(id)) = (question.item, self.id()) else { return };
        if let ItemBody::ClientToolCall { call_id, .. } = &mut body {
            *call_id = call_of(id);
        }
        let (thread_id, created_at) = (self.thread.to_string(), timestamp(self.clock.now()));
        let item = ThreadItem { id: id.wire(body.prefix()), thread_id, created_at, body };
        self.insert(id, None, json(&item));
        let (item_id, thread_id, run_id) = (id, self.thread, self.run);
        let QuestionKey { node, visit, attempt, .. } = question.step;
        self.rows.question_items.push(QuestionItemRow { item_id, thread_id, run_id, node, visit, attempt });
        self.event(ChatEvent::ItemDone { item });
    }
}

/// The id of a client tool call, for models.
fn call_of(id: ItemKey) -> String {
    id.wire("call")
}
