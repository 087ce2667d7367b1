-- Requests of a training that are in flight, and those that were lost with a process.
ALTER TABLE training_runs
    ADD COLUMN in_flight integer NOT NULL DEFAULT 0,
    ADD COLUMN lost_calls integer NOT NULL DEFAULT 0;
-- Answers are found by their keys in other runs, too.
CREATE INDEX training_calls_by_key ON training_calls USING hash (key) WHERE reply IS NOT NULL;
-- What becomes of the replies of calls once their training has ended.
ALTER TABLE workspaces
    ADD COLUMN training_calls text NOT NULL DEFAULT 'keep' CHECK (training_calls IN ('keep', 'drop'));
-- Trainings whose replies are not erased yet.
ALTER TABLE training_runs ADD COLUMN replies_erased_at timestamptz;
CREATE INDEX training_runs_with_replies ON training_runs (workflow_id) WHERE replies_erased_at IS NULL;
-- JSON: what the steps of a trace were given and have asked models, one element for each; null: not kept.
ALTER TABLE training_cases ADD COLUMN details text;
