-- A chat turn, a workflow run, a training case: all are runs. `inputs`, `output` and `error` are JSON as text,
-- because json and jsonb refuse what users may send (a NUL in a string).
CREATE TABLE runs (
    id uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    workflow_id uuid NOT NULL,
    version_id uuid NOT NULL,
    trigger text NOT NULL,
    writer_id uuid NOT NULL,
    thread_id uuid,
    stream_id uuid,
    status text NOT NULL,
    inputs text NOT NULL,
    output text,
    error text,
    cancel_requested_at timestamptz,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    finished_at timestamptz
) WITH (fillfactor = 70);
-- No index on a column that changes, so that nearly every update stays within its page (HOT).
CREATE INDEX runs_by_thread ON runs (thread_id, id) WHERE thread_id IS NOT NULL;

-- The journal: one row for each attempt of a node, written before anything depends on it.
CREATE TABLE run_steps (
    run_id uuid NOT NULL,
    node text NOT NULL,
    visit int NOT NULL,
    attempt int NOT NULL,
    step int NOT NULL,
    status text NOT NULL,
    input_digest bytea NOT NULL,
    result text,
    error text,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    PRIMARY KEY (run_id, node, visit, attempt)
);
