-- Attempts that were in progress when a crash or a restart cut their run off. What the next life made of each is in its row of
-- run_steps.
CREATE TABLE interrupted_attempts (
    run_id uuid NOT NULL,
    node text NOT NULL,
    visit integer NOT NULL,
    attempt integer NOT NULL,
    started_at timestamptz NOT NULL,
    noticed_at timestamptz NOT NULL,
    PRIMARY KEY (run_id, node, visit, attempt, started_at)
);
