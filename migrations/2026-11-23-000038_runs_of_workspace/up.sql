-- The runs of a workspace, newest first. Neither column changes.
CREATE INDEX runs_by_workspace ON runs (workspace_id, id);
