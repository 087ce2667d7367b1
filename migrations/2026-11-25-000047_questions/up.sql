-- The pending item that asks the question in a chat, a `wire::chat::ItemBody` as JSON; null: only the interface of runs asks.
ALTER TABLE run_questions ADD COLUMN item text;
-- Whether the run continues if no answer comes in time.
ALTER TABLE run_questions ADD COLUMN continues_without boolean NOT NULL DEFAULT true;
CREATE INDEX run_questions_by_expiry ON run_questions (expires_at)
    WHERE item IS NOT NULL AND answered_at IS NULL AND expires_at IS NOT NULL;

-- The items of questions with which turns have ended. The question moves to the run that continues the turn; its item stays.
CREATE TABLE question_items (
    item_id bytea PRIMARY KEY,
    thread_id uuid NOT NULL,
    run_id uuid NOT NULL,
    node text NOT NULL,
    visit int NOT NULL,
    attempt int NOT NULL,
    -- The stream of the turn that continues with the answer.
    stream_id uuid
);
CREATE INDEX question_items_by_run ON question_items (run_id);
CREATE INDEX question_items_by_thread ON question_items (thread_id);

-- What turns that have ended with a question had sent, JSON: the run that continues such a turn does not send it again.
CREATE TABLE turns_sent (
    run_id uuid PRIMARY KEY,
    thread_id uuid NOT NULL,
    -- The dialect of its stream, which is deleted before the turn.
    dialect text NOT NULL,
    sent text NOT NULL,
    -- When something other than a question is due, such as the end of a delay.
    due_at timestamptz,
    -- The run that has continued the turn.
    continued_by uuid
);
CREATE INDEX turns_sent_by_due ON turns_sent (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX turns_sent_by_continuation ON turns_sent (continued_by) WHERE continued_by IS NOT NULL;
CREATE INDEX turns_sent_by_thread ON turns_sent (thread_id);
