-- Runs that nobody writes at the moment. Each waits for a time, for somebody, or for its turn among the runs of its
-- workflow; whoever takes one out of here owns it. An unfinished run stands here or has a writer with a lease.
CREATE TABLE run_queue (
    run_id uuid PRIMARY KEY,
    workflow_id uuid NOT NULL,
    -- Whether it only waits for its turn.
    turn boolean NOT NULL,
    -- Null: it waits for somebody alone.
    due_at timestamptz
);
CREATE INDEX run_queue_by_due ON run_queue (due_at) WHERE NOT turn;
CREATE INDEX run_queue_by_turn ON run_queue (workflow_id, run_id) WHERE turn;

-- Runs that are under way, of workflows that limit how many are.
CREATE TABLE run_places (
    run_id uuid PRIMARY KEY,
    workflow_id uuid NOT NULL
);
CREATE INDEX run_places_by_workflow ON run_places (workflow_id);

-- What runs ask people; a row for each attempt that waits for an answer. `schema` and `answer` are JSON as text.
CREATE TABLE run_questions (
    run_id uuid NOT NULL,
    node text NOT NULL,
    visit int NOT NULL,
    attempt int NOT NULL,
    key text NOT NULL,
    message text,
    schema text,
    audience json NOT NULL,
    asked_at timestamptz NOT NULL,
    expires_at timestamptz,
    answer text,
    answered_by text,
    answered_at timestamptz,
    PRIMARY KEY (run_id, node, visit, attempt)
);
CREATE INDEX run_questions_by_answer ON run_questions (answered_at) WHERE answered_at IS NOT NULL;

-- Runs of another instance that it should look at again: their end was asked for, or somebody has answered. What is
-- lost with a crash is found by that instance's own round.
CREATE UNLOGGED TABLE run_signals (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    writer_id uuid NOT NULL,
    run_id uuid NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX run_signals_by_writer ON run_signals (writer_id);

-- Most runs of a workflow at the same time; null: as many as there are.
ALTER TABLE workflows ADD COLUMN max_concurrent_runs int CHECK (max_concurrent_runs > 0);
