-- What a request asked for beside the inputs: JSON `{config, timeout_seconds, metadata}`; null for a chat turn.
ALTER TABLE runs ADD COLUMN options text;
-- A workflow's runs, newest first. Neither column changes.
CREATE INDEX runs_by_workflow ON runs (workflow_id, id);

-- What a resumed attempt has to know, JSON; noted with its start.
ALTER TABLE run_steps ADD COLUMN note text;
-- A result over 8 KiB is a blob; `result` is null then.
ALTER TABLE run_steps ADD COLUMN result_blob bytea;
