-- Attempts that a crash or a restart has cut off. The next life of the run makes the same attempt again, and its row in
-- run_steps is the one that ended.
CREATE TABLE interrupted_attempts (
    run_id uuid NOT NULL,
    node text NOT NULL,
    visit integer NOT NULL,
    attempt integer NOT NULL,
    started_at timestamptz NOT NULL,
    noticed_at timestamptz NOT NULL,
    PRIMARY KEY (run_id, node, visit, attempt, started_at)
);
