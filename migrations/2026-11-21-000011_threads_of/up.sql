-- Somebody's threads with a workflow, newest first. None of these columns changes.
CREATE INDEX threads_by_owner ON threads (owner_id, workflow_id, created_at) WHERE owner_id IS NOT NULL;
