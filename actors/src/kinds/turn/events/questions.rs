//! The end of a turn with a question.

use chrono::{DateTime, Utc};
use kernel::ItemKey;
use store::OpenQuestion;
use store::RunState;
use store::batch::{ClosedQuestionsRow, QuestionItemRow, TurnSentRow};
use wire::chat::{ChatEvent, ItemBody, NoticeLevel, ThreadItem};

use super::ChatEvents;
use crate::kinds::turn::continuing::{Continued, Left};
use crate::run::End;
use crate::text::{json, timestamp};

/// Told if an answer changes nothing.
const OVER: &str =
    "The answer is stored. The conversation had continued without it, or still waits for other answers.";

impl ChatEvents {
    /// The turn continues another one.
    #[must_use]
    pub(in crate::kinds::turn) fn continuing(self, continued: Option<Continued>) -> Self {
        let needs_reply = self.needs_reply && continued.is_none();
        Self { continued, needs_reply, ..self }
    }

    /// Whether the turn continues one that waits for nothing any more.
    pub(in crate::kinds::turn) fn is_over(&self) -> bool {
        self.continued.as_ref().is_some_and(|continued| continued.is_over)
    }

    /// Tells that the answer changes nothing.
    pub(in crate::kinds::turn) fn tell_over(&mut self) {
        self.event(ChatEvent::Notice { level: NoticeLevel::Info, message: OVER.to_owned(), title: None });
    }

    /// The questions that the turn has taken over from the one before wait for no answer any more.
    pub(in crate::kinds::turn) fn close_questions(&mut self) {
        if self.continued.is_some() {
            self.rows.closed.push(ClosedQuestionsRow { run_id: self.run, at: self.clock.now() });
        }
    }

    /// Ends the turn with its questions. `due_at`: when something else is due.
    pub(in crate::kinds::turn) fn end_with(
        &mut self,
        questions: Vec<OpenQuestion>,
        due_at: Option<DateTime<Utc>>,
    ) -> End {
        self.settle();
        if self.continued.is_some() && !self.has_progressed {
            self.tell_over();
        }
        let is_call =
            |question: &OpenQuestion| matches!(question.item, Some(ItemBody::ClientToolCall { .. }));
        let (calls, others): (Vec<_>, Vec<_>) = questions.into_iter().partition(is_call);
        // A client runs one tool at a time, and the call has to be the last item.
        let call =
            if calls.iter().any(|call| call.item_id.is_some()) { None } else { calls.into_iter().next() };
        for question in others.into_iter().chain(call).filter(|question| question.item_id.is_none()) {
            self.ask(question);
        }
        self.end_changes();
        let lives =
            self.continued.as_ref().map_or_else(|| vec![(1, self.run)], |before| before.lives_of(self.run));
        let message = self.question.map(|message| message.wire("msg"));
        let sent = json(&Left { sent: self.sent.clone(), lives, message });
        let (run_id, thread_id, dialect) = (self.run, self.thread, self.dialect);
        self.rows.sent.push(TurnSentRow { run_id, thread_id, dialect, sent, due_at });
        End { status: RunState::Succeeded, output: Some("null".to_owned()), error: None }
    }

    /// Adds the pending item of a question.
    fn ask(&mut self, question: OpenQuestion) {
        let (Some(mut body), Some(id)) = (question.item, self.id()) else { return };
        if let ItemBody::ClientToolCall { call_id, .. } = &mut body {
            *call_id = call_of(id);
        }
        let (thread_id, created_at) = (self.thread.to_string(), timestamp(self.clock.now()));
        let item = ThreadItem { id: id.wire(body.prefix()), thread_id, created_at, body };
        self.insert(id, None, json(&item));
        let (item_id, thread_id, run_id) = (id, self.thread, self.run);
        let store::QuestionKey { node, visit, attempt, .. } = question.step;
        self.rows.question_items.push(QuestionItemRow { item_id, thread_id, run_id, node, visit, attempt });
        self.event(ChatEvent::ItemDone { item });
    }
}

/// The id of a call of a client tool, which models are told.
fn call_of(id: ItemKey) -> String {
    id.wire("call")
}
