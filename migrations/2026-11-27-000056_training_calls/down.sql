DROP INDEX training_calls_with_reply;
ALTER TABLE workspaces DROP COLUMN training_calls;
DROP INDEX training_calls_by_key;
ALTER TABLE training_runs DROP COLUMN in_flight, DROP COLUMN lost_calls;
