ALTER TABLE outbox DROP COLUMN progress;
