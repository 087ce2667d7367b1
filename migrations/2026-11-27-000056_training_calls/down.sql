ALTER TABLE training_cases DROP COLUMN details;
DROP INDEX training_runs_with_replies;
ALTER TABLE workspaces DROP COLUMN training_calls;
DROP INDEX training_calls_by_key;
ALTER TABLE training_runs DROP COLUMN replies_erased_at, DROP COLUMN in_flight, DROP COLUMN lost_calls;
