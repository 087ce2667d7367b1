-- Visitors of chats whose data is being erased.
CREATE TABLE erasures (
    workflow_id uuid NOT NULL,
    owner_kind text NOT NULL,
    owner_id text NOT NULL,
    requested_at timestamptz NOT NULL,
    -- When no content was left. The row stays until the usage of that day can be counted without the visitor.
    erased_at timestamptz,
    PRIMARY KEY (workflow_id, owner_kind, owner_id)
);

-- The threads of a workflow, the newest first.
CREATE INDEX threads_of_workflow ON threads (workflow_id, created_at, id) WHERE deleted_at IS NULL;
-- Content that came after its thread was erased.
CREATE INDEX threads_erased ON threads (workflow_id, erased_at) WHERE erased_at IS NOT NULL;
CREATE INDEX attachments_by_owner ON attachments (owner_id, workflow_id) WHERE owner_id IS NOT NULL;
