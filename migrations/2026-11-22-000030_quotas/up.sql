-- What workspaces keep, as it was measured last.
CREATE TABLE workspace_usage (
    workspace_id uuid PRIMARY KEY REFERENCES workspaces (id),
    bytes bigint NOT NULL,
    -- As it was measured the time before.
    bytes_before bigint NOT NULL,
    measured_at timestamptz NOT NULL
);

-- A deleted index has a name that nobody can say; what it has goes part by part.
ALTER TABLE search_indexes ADD COLUMN deleted_at timestamptz;
CREATE INDEX search_indexes_deleted ON search_indexes (deleted_at) WHERE deleted_at IS NOT NULL;
