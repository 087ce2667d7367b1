-- How often a run has gone into the queue: each time counts once, however often its commit is sent.
ALTER TABLE runs ADD COLUMN parked int NOT NULL DEFAULT 0;

-- Runs whose end was asked for. Whoever has such a run, or finds it in the queue, ends it; then its row goes.
CREATE TABLE run_stops (run_id uuid PRIMARY KEY);
INSERT INTO run_stops SELECT id FROM runs WHERE cancel_requested_at IS NOT NULL AND finished_at IS NULL;
