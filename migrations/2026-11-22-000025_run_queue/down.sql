ALTER TABLE workflows DROP COLUMN max_concurrent_runs;
DROP TABLE run_signals;
DROP TABLE run_questions;
DROP TABLE run_places;
DROP TABLE run_queue;
