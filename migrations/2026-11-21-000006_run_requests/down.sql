ALTER TABLE run_steps DROP COLUMN result_blob;
ALTER TABLE run_steps DROP COLUMN note;
DROP INDEX runs_by_workflow;
ALTER TABLE runs DROP COLUMN options;
